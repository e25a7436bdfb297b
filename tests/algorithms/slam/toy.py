"""A world of numbered posts, in which a robot knows a place again by the posts that it sees."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.algorithms.slam.place_recognition import Guess, Loop
from transect.geometry import align, se3

SIGHT = 4.0
NOISE = np.diag([0.02, 0.02, 0.02, 0.01, 0.01, 0.01]) ** 2


class Posts:
    """Posts at random places; `alike` of them bear each number, so that places are mistaken."""

    def __init__(self, count: int = 1500, size: float = 20.0, alike: int = 1) -> None:
        random = np.random.default_rng(5)
        each = random.uniform(-size, size, (count // alike, 3)) * (1, 1, 0.05)
        shifts = np.arange(alike)[:, None, None] * np.array([8.0, 0.0, 0.0])
        self.places = (each[None] + shifts).reshape(-1, 3)
        self.numbers = np.tile(np.arange(count // alike), alike)

    def see(self, pose: np.ndarray) -> dict[str, np.ndarray]:
        """Return what is seen from a pose: posts within sight, in the axes of the body."""
        there = se3.apply(se3.invert(pose), self.places)
        near = np.linalg.norm(there, axis=1) < SIGHT
        return {"points": there[near], "numbers": self.numbers[near]}


class PostRecogniser:
    """Knows a place by at least six posts of the same numbers, and its pose by their places."""

    def __init__(self) -> None:
        self.seen: dict[int, Any] = {}

    def add(self, k: int, observation: Any) -> None:
        self.seen[k] = observation

    def candidates(self, observation: Any, allowed: np.ndarray) -> Sequence[int]:
        common = [len(np.intersect1d(self.seen[k]["numbers"], observation["numbers"])) for k in allowed]
        return [int(allowed[n]) for n in np.argsort(common, kind="stable")[::-1] if common[n] >= 6]

    def verify(self, old: int, observation: Any, guess: Guess | None) -> Loop | None:
        known = self.seen[old]
        _, mine, theirs = np.intersect1d(observation["numbers"], known["numbers"], return_indices=True)
        if len(mine) < 6:
            return None
        found = align.umeyama(observation["points"][mine], known["points"][theirs])
        return Loop(found.matrix, NOISE, len(mine) / len(known["numbers"]))


def circle(rounds: float = 1.2, radius: float = 10.0, step: float = 0.25) -> list[np.ndarray]:
    """Return the poses of a drive round a circle."""
    count = round(rounds * 2 * np.pi * radius / step)
    turn = se3.exp([step, 0, 0, 0, 0, step / radius])
    poses = [np.eye(4)]
    poses[0][:3, 3] = (0.0, -radius, 0.0)
    for _ in range(count):
        poses.append(poses[-1] @ turn)
    return poses


def drifting(poses: Sequence[np.ndarray], drift: float = 0.002) -> list[np.ndarray]:
    """Return the poses of an odometry that turns a little too far at each step, from its own origin."""
    found = [np.eye(4)]
    for a, b in itertools.pairwise(poses):
        found.append(found[-1] @ se3.invert(a) @ b @ se3.exp([0, 0, 0, 0, 0, drift]))
    return found
