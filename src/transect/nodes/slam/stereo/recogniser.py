"""Knows places again by stereo pairs; the body is the left camera."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Ints
from transect.types.places import Observation

from ..backend.recognition import Guess, Loop
from .index import count_votes
from .verification import verify_motion

LEAST_VOTES = 6
"""Descriptors that a view must have in common with another to be looked at."""


class StereoRecogniser:
    """Views by their descriptors; the points of both decide."""

    def __init__(self) -> None:
        self._views: dict[int, Observation] = {}

    def add(self, k: int, observation: Observation) -> None:
        """Remember what was seen from keyframe `k`."""
        self._views[k] = observation

    def candidates(self, observation: Observation, allowed: Ints) -> Sequence[int]:
        """Return keyframes with many of the same descriptors, the best first."""
        votes = count_votes(observation["descriptors"], [self._views[k]["descriptors"] for k in allowed])
        best = np.argsort(-votes, kind="stable")
        return allowed[best[votes[best] >= LEAST_VOTES]].tolist()

    def verify(self, old: int, observation: Observation, guess: Guess | None) -> Loop | None:
        """Return the motion from a keyframe to what is seen now; what is believed of it does not count."""
        return verify_motion(self._views[old], observation)
