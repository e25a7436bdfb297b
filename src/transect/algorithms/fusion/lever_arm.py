"""What an IMU feels of turning because it is not in the body's middle."""

from __future__ import annotations

from collections import deque

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS

HALF_NS = 200_000_000
"""Rates are averaged over so long before and after, to tell how they change: manoeuvres last longer, and
noise and shaking, of which the sum is nothing, are left out."""


class Swing:
    """Follows the rates of a body, and tells what they add to the force that is felt at a lever.

    The part of a steady turn, ω x (ω x r), is small. That of a turn which begins or ends, α x r, adds up to
    the speed ω x r with which the lever goes round, and must not be left out: two metres from the middle, a
    turn of 0.1 rad/s is a speed of 0.2 m/s.
    """

    def __init__(self) -> None:
        self._new, self._old = _Mean(), _Mean()

    def felt(self, t_ns: int, rate: Floats, lever: Floats) -> Floats:
        """Return the acceleration (3,) in m/s2 of a lever (3,), m, against the body's origin.

        The change of the rates (3,), rad/s, is that of 0.2 s ago, as only the past is known.
        """
        self._new.add(t_ns, rate)
        for at, past in self._new.before(t_ns - HALF_NS):
            self._old.add(at, past)
        self._old.before(t_ns - 2 * HALF_NS)
        return np.cross(rate, np.cross(rate, lever)) + np.cross(self._change(t_ns), lever)

    def _change(self, t_ns: int) -> Floats:
        """Return the angular acceleration (3,), rad/s2; 0 as long as too little is known."""
        if not self._old.kept or self._old.kept[0][0] > t_ns - 1.5 * HALF_NS:
            return np.zeros(3)
        apart = self._new.middle_ns - self._old.middle_ns
        return (self._new.value - self._old.value) * (NS / apart)


class _Mean:
    """The mean of the samples (3,) that are kept, oldest first."""

    def __init__(self) -> None:
        self.kept: deque[tuple[int, Floats]] = deque()
        self.total, self.total_ns = np.zeros(3), 0

    @property
    def value(self) -> Floats:
        return self.total / len(self.kept)

    @property
    def middle_ns(self) -> int:
        return self.total_ns // len(self.kept)

    def add(self, t_ns: int, sample: Floats) -> None:
        self.kept.append((t_ns, sample))
        self.total, self.total_ns = self.total + sample, self.total_ns + t_ns

    def before(self, t_ns: int) -> list[tuple[int, Floats]]:
        """Give away the samples before a time."""
        given: list[tuple[int, Floats]] = []
        while self.kept and self.kept[0][0] < t_ns:
            at, sample = self.kept.popleft()
            given.append((at, sample))
            self.total, self.total_ns = self.total - sample, self.total_ns - at
        return given
