"""Acceleration of an IMU relative to the body's origin, due to its lever arm."""

from __future__ import annotations

from collections import deque

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS


class LeverArmAcceleration:
    """Centripetal and Euler acceleration at a lever arm, from a stream of angular velocities.

    The centripetal part of a steady turn, ω x (ω x r), is small. The Euler part, α x r, integrates to the
    speed ω x r of the lever arm's end: two metres from the origin, a turn of 0.1 rad/s is a speed of 0.2 m/s.

    Parameters
    ----------
    window_s : float
        Rates are averaged over this time on both sides to estimate α. Manoeuvres last longer; noise and
        vibration, whose integral is zero, are averaged out.
    """

    def __init__(self, window_s: float = 0.2) -> None:
        self._window_ns = round(window_s * NS)
        self._recent, self._older = _MovingMean(), _MovingMean()

    def add(self, t_ns: int, rate: Floats, lever_arm: Floats) -> Floats:
        """Add an angular velocity (3,), rad/s; return the acceleration (3,), m/s2, at a lever arm (3,), m.

        The angular acceleration is that of `window_s` ago, because only the past is known.
        """
        self._recent.add(t_ns, rate)
        for past_ns, past in self._recent.pop_before(t_ns - self._window_ns):
            self._older.add(past_ns, past)
        self._older.pop_before(t_ns - 2 * self._window_ns)
        angular_acceleration = self._angular_acceleration(t_ns)
        return np.cross(rate, np.cross(rate, lever_arm)) + np.cross(angular_acceleration, lever_arm)

    def _angular_acceleration(self, t_ns: int) -> Floats:
        """Return α (3,), rad/s2; 0 until the older window is nearly full."""
        samples = self._older.samples
        if not samples or samples[0][0] > t_ns - 1.5 * self._window_ns:
            return np.zeros(3)
        interval_ns = self._recent.mean_ns - self._older.mean_ns
        return (self._recent.mean - self._older.mean) * (NS / interval_ns)


class _MovingMean:
    """Mean of a queue of samples (3,), oldest first."""

    def __init__(self) -> None:
        self.samples: deque[tuple[int, Floats]] = deque()
        self._sum, self._sum_ns = np.zeros(3), 0

    @property
    def mean(self) -> Floats:
        return self._sum / len(self.samples)

    @property
    def mean_ns(self) -> int:
        return self._sum_ns // len(self.samples)

    def add(self, t_ns: int, sample: Floats) -> None:
        self.samples.append((t_ns, sample))
        self._sum, self._sum_ns = self._sum + sample, self._sum_ns + t_ns

    def pop_before(self, t_ns: int) -> list[tuple[int, Floats]]:
        """Remove and return the samples before a time."""
        removed: list[tuple[int, Floats]] = []
        while self.samples and self.samples[0][0] < t_ns:
            sample_ns, sample = self.samples.popleft()
            removed.append((sample_ns, sample))
            self._sum, self._sum_ns = self._sum - sample, self._sum_ns - sample_ns
        return removed
