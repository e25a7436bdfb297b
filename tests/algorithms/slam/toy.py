"""A world of numbered posts, in which places are recognised by the posts in view."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.algorithms.slam.place_recognition import Loop, PosePrior
from transect.geometry import align, se3

MAX_RANGE_M = 4.0
ODOMETRY_COVARIANCE = np.diag([0.02, 0.02, 0.02, 0.01, 0.01, 0.01]) ** 2


class Posts:
    """Posts at random positions; each number occurs `copies` times, so that places are ambiguous."""

    def __init__(self, count: int = 1500, size: float = 20.0, copies: int = 1) -> None:
        random = np.random.default_rng(5)
        each = random.uniform(-size, size, (count // copies, 3)) * (1, 1, 0.05)
        shifts = np.arange(copies)[:, None, None] * np.array([8.0, 0.0, 0.0])
        self.positions = (each[None] + shifts).reshape(-1, 3)
        self.numbers = np.tile(np.arange(count // copies), copies)

    def observe(self, pose: np.ndarray) -> dict[str, np.ndarray]:
        """Return the posts in range of a pose, in the axes of the body."""
        there = se3.apply(se3.invert(pose), self.positions)
        near = np.linalg.norm(there, axis=1) < MAX_RANGE_M
        return {"points": there[near], "numbers": self.numbers[near]}


class PostRecogniser:
    """Recognises a place by at least six posts with the same numbers, and its pose by their positions."""

    def __init__(self) -> None:
        self.keyframes: dict[int, Any] = {}

    def add(self, k: int, observation: Any) -> None:
        self.keyframes[k] = observation

    def candidates(self, observation: Any, allowed: np.ndarray) -> Sequence[int]:
        common = [len(np.intersect1d(self.keyframes[k]["numbers"], observation["numbers"])) for k in allowed]
        return [int(allowed[n]) for n in np.argsort(common, kind="stable")[::-1] if common[n] >= 6]

    def verify(self, old: int, observation: Any, prior: PosePrior | None) -> Loop | None:
        stored = self.keyframes[old]
        _, new_rows, old_rows = np.intersect1d(observation["numbers"], stored["numbers"], return_indices=True)
        if len(new_rows) < 6:
            return None
        drifted = align.umeyama(observation["points"][new_rows], stored["points"][old_rows])
        return Loop(drifted.matrix, ODOMETRY_COVARIANCE, len(new_rows) / len(stored["numbers"]))


def circle(rounds: float = 1.2, radius: float = 10.0, step: float = 0.25) -> list[np.ndarray]:
    """Return the poses of a drive around a circle."""
    count = round(rounds * 2 * np.pi * radius / step)
    turn = se3.exp([step, 0, 0, 0, 0, step / radius])
    poses = [np.eye(4)]
    poses[0][:3, 3] = (0.0, -radius, 0.0)
    for _ in range(count):
        poses.append(poses[-1] @ turn)
    return poses


def drifting(poses: Sequence[np.ndarray], drift: float = 0.002) -> list[np.ndarray]:
    """Return the poses of an odometry that turns slightly too far at each step, from its own origin."""
    drifted = [np.eye(4)]
    for a, b in itertools.pairwise(poses):
        drifted.append(drifted[-1] @ se3.invert(a) @ b @ se3.exp([0, 0, 0, 0, 0, drift]))
    return drifted
