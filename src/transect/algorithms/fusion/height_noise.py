"""Consistency of measured heights with a robot on the ground, which climbs as steeply as it is tilted.

Heights are the worst part of GNSS, and nothing else observes them if no sensor measures the slope: a fusion
that trusts a receiver whose height falls by 20 m along 20 m of a level street follows it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS

TiltReference = Literal["none", "relative", "absolute"]
"""Whether an IMU measures the tilt of the body, or only its change because its mount is unknown."""


@dataclass(frozen=True)
class HeightSettings:
    """Test of heights against the distance driven and the tilt."""

    # Slopes in rad that the robot may climb beyond its measured tilt.
    max_slope_unmeasured: float = 0.6
    max_slope_relative: float = 0.35
    max_slope_absolute: float = 0.1
    max_total_slope: float = 1.5  # bound of tilt and slope together, rad
    tilt_averaging_s: float = 5.0  # time over which specific force is averaged
    min_tilt_s: float = 1.0  # of specific force, before the mean is used
    max_sigmas: float = 3.0  # of both heights; a larger difference is no noise
    min_inconsistent: int = 3  # consecutive inconsistent heights that are no outliers
    new_discrepancy_ratio: float = 1.5  # of a discrepancy to the known one, to be a new one
    spacing_m: float = 1.0  # distance between the stored heights
    history_m: float = 200.0  # distance over which heights are compared

    def max_slope(self, reference: TiltReference) -> float:
        """Return the slope that the robot may climb beyond its tilt."""
        if reference == "none":
            return self.max_slope_unmeasured
        return self.max_slope_absolute if reference == "absolute" else self.max_slope_relative


HEIGHTS = HeightSettings()


@dataclass(frozen=True)
class HeightTest:
    """Result of the test of a height."""

    std: float  # m, enlarged to the discrepancy if heights are inconsistent
    discrepancy: float = 0.0  # m, if it is new
    note: str = ""  # describes a new discrepancy


class HeightConsistency:
    """Tests heights against the distance driven and the tilt of the body."""

    def __init__(self, settings: HeightSettings = HEIGHTS) -> None:
        self.settings = settings
        self.std = 0.0  # m, lower bound of the sigma of heights: the largest discrepancy found
        self._distances: dict[str, float] = {}  # by motion sensor
        self._tilt_reference: TiltReference = "none"
        self._max_tilt = 0.0
        self._force, self._mean_force = np.zeros(3), np.zeros(3)
        self._first_ns = self._last_ns = 0
        self._history: dict[str, deque[tuple[float, float, float]]] = {}  # distance, height, std by sensor
        self._inconsistent_in_row = 0

    def add_distance(self, sensor: str, distance: float) -> None:
        """Add the distance of an odometry step in m."""
        self._distances[sensor] = self._distances.get(sensor, 0.0) + distance

    def add_force(self, t_ns: int, force: Floats, *, mounted: bool) -> None:
        """Add a specific force (3,), m/s2, in the axes of the body if the mount is known (`mounted`)."""
        settings = self.settings
        if self._tilt_reference == "none":
            self._first_ns = self._last_ns = t_ns
            self._force = force.astype(np.float64)
        self._tilt_reference = "absolute" if mounted else "relative"
        seconds, elapsed = (t_ns - self._last_ns) / NS, (t_ns - self._first_ns) / NS
        self._last_ns = t_ns
        if seconds <= 0:
            return
        weight = min(seconds / min(elapsed, settings.tilt_averaging_s), 1.0)
        self._force = self._force + weight * (force - self._force)
        self._mean_force = self._mean_force + seconds / elapsed * (force - self._mean_force)
        vertical = np.array([0.0, 0.0, 1.0]) if mounted else self._mean_force
        size = float(np.linalg.norm(self._force) * np.linalg.norm(vertical))
        if elapsed >= settings.min_tilt_s and size:
            tilt = float(np.arccos(np.clip(self._force @ vertical / size, -1.0, 1.0)))
            self._max_tilt = max(self._max_tilt, tilt)

    def test(self, sensor: str, height: float, std: float) -> HeightTest:
        """Test a height (m) with its sigma (m) against earlier ones, and store it."""
        settings = self.settings
        waits_for_tilt = self._tilt_reference != "none" and (
            self._last_ns - self._first_ns < settings.min_tilt_s * NS
        )
        if not self._distances or waits_for_tilt:
            return HeightTest(std)
        distance, history = max(self._distances.values()), self._history.setdefault(sensor, deque())
        discrepancy, start = self._discrepancy(history, distance, height, std)
        is_new = discrepancy > settings.new_discrepancy_ratio * self.std
        self._inconsistent_in_row = self._inconsistent_in_row + 1 if is_new else 0
        if 0 < self._inconsistent_in_row < settings.min_inconsistent:
            return HeightTest(max(std, self.std))
        if not history or distance - history[-1][0] >= settings.spacing_m:
            history.append((distance, height, std))
        while distance - history[0][0] > settings.history_m:
            history.popleft()
        if not is_new:
            return HeightTest(max(std, self.std))
        self._inconsistent_in_row, self.std = 0, discrepancy
        note = f"{sensor}: {self._describe(discrepancy, distance - start)}"
        return HeightTest(max(std, discrepancy), discrepancy, note)

    def _discrepancy(
        self, history: Iterable[tuple[float, float, float]], distance: float, height: float, std: float
    ) -> tuple[float, float]:
        """Return the largest unexplained change of height (m; 0: none), and the distance where it starts."""
        settings = self.settings
        distances, heights, stds = np.array([(distance, height, std), *history]).T
        change = np.abs(height - heights)
        slope = min(settings.max_slope(self._tilt_reference) + self._max_tilt, settings.max_total_slope)
        climb = np.tan(slope) * (distance - distances)
        change[change <= climb + settings.max_sigmas * np.hypot(stds, std)] = 0.0
        worst = int(np.argmax(change))
        return float(change[worst]), float(distances[worst])

    def _describe(self, discrepancy: float, distance: float) -> str:
        degrees = np.degrees(self._max_tilt)
        tilt = f", and the IMU tilts by at most {degrees:.2g} deg" if self._tilt_reference != "none" else ""
        return (
            f"heights are implausible: they change by {discrepancy:.3g} m "
            f"within {distance:.3g} m of driving{tilt}. Their sigma is set to {discrepancy:.2g} m"
        )
