"""Knows places again by stereo pairs; the body is the left camera."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import rotations, se3
from transect.types.places import Observation

from .descriptor_index import count_votes
from .place_recognition import Guess, Loop
from .stereo_verification import View, verify_motion

LEAST_VOTES = 6
"""Descriptors that a place must have in common with a view to be looked at."""
JOINED, ASIDE = 5, 0.3
"""Views that make one place where poses are known: the nearest that look the same way to so many rad."""


class StereoRecogniser:
    """Views by their descriptors; the points of both decide.

    Parameters
    ----------
    poses : (n, 4, 4) array, optional
        Of keyframes that stay where they are: what was seen from several that are near each other then counts
        together. By default each keyframe is a place of its own.
    """

    def __init__(self, poses: Floats | None = None) -> None:
        self._views: dict[int, Observation] = {}
        self._poses = poses
        self._near: dict[int, list[int]] = {}

    def add(self, k: int, observation: Observation) -> None:
        """Remember what was seen from keyframe `k`."""
        self._views[k] = observation
        self._near = {}

    def candidates(self, observation: Observation, allowed: Ints) -> Sequence[int]:
        """Return keyframes whose places have many of the same descriptors, the best first."""
        counts = count_votes(observation["descriptors"], [self._views[k]["descriptors"] for k in allowed])
        own = dict(zip(allowed.tolist(), counts.tolist(), strict=True))
        votes = np.array([sum(own.get(near, 0) for near in self._around(k)) for k in own], np.int64)
        chosen, covered = list[int](), set[int]()
        for n in np.argsort(-votes, kind="stable").tolist():
            k = int(allowed[n])
            if votes[n] >= LEAST_VOTES and covered.isdisjoint(self._around(k)):
                chosen.append(k)
                covered.update(self._around(k))
        return chosen

    def verify(self, old: int, observation: Observation, guess: Guess | None) -> Loop | None:
        """Return the motion from a keyframe to what is seen now; what is believed of it does not count."""
        return verify_motion([self._view(k, old) for k in self._around(old)], observation)

    def _view(self, k: int, old: int) -> View:
        """Return what was seen from a keyframe, and where that is, seen from an old one."""
        between = np.eye(4) if self._poses is None else se3.invert(self._poses[old]) @ self._poses[k]
        return View(between, self._views[k])

    def _around(self, k: int) -> list[int]:
        """Return the keyframes that make one place with a keyframe, itself among them."""
        if self._poses is None:
            return [k]
        if k not in self._near:
            views = np.array(list(self._views))
            apart = se3.invert(self._poses[k]) @ self._poses[views]
            turned = np.linalg.norm(rotations.rotation_vector_from_matrix(apart[:, :3, :3]), axis=1)
            away = np.where(turned < ASIDE, np.linalg.norm(apart[:, :3, 3], axis=1), np.inf)
            nearest = np.argsort(away, kind="stable")[:JOINED]
            self._near[k] = views[nearest[np.isfinite(away[nearest])]].tolist()
        return self._near[k]
