"""Whether measured heights can be those of a body on the ground, which climbs as steeply as it is tilted.

The height is where satellites are worst, and where nothing contradicts them if no sensor tells the slope: a
receiver that falls by 20 m along 20 m of a level street is followed by any fusion that believes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS

Told = Literal["", "relative", "absolute"]
SLOPES: dict[Told, float] = {"": 0.6, "relative": 0.35, "absolute": 0.1}
"""rad: slopes that a body may climb beyond its tilt, if nothing tells that, if an IMU tells only how it
changes, for its mount is not known, and if that is known."""
OVER, AFTER = 5.0, 1.0
"""Seconds over which specific force is averaged to tell up, and after which the mean is worth something."""
SIGMAS = 3.0
"""Of both heights: what is beyond them is no noise."""
IN_A_ROW = 3
"""Heights that contradict the way one after the other are no outliers."""
WORSE = 1.5
"""Times what was found before, a contradiction is a new one."""
APART, WITHIN = 1.0, 200.0
"""m of way between the heights that are kept, and how far back."""


@dataclass(frozen=True)
class Height:
    """One sigma of a height (m) as it can be believed.

    `doubt` (m) is by how much the ones before are in doubt, `note` a sentence on that, if either is new.
    """

    std: float
    doubt: float = 0.0
    note: str = ""


class Heights:
    """Follows way, tilt and heights of a body.

    Attributes
    ----------
    std : float
        m: heights of places are not better than this; 0 while they are what was told.
    """

    def __init__(self) -> None:
        self.std = 0.0
        self.ways: dict[str, float] = {}
        self.told: Told = ""
        self.steepest = 0.0
        self.up, self.usual = np.zeros(3), np.zeros(3)
        self.first_ns = self.felt_ns = 0
        self.kept: dict[str, deque[tuple[float, float, float]]] = {}
        self.row = 0

    def move(self, sensor: str, way: float) -> None:
        """Take a step of a dead reckoning, in m."""
        self.ways[sensor] = self.ways.get(sensor, 0.0) + way

    def lean(self, t_ns: int, force: Floats, *, mounted: bool) -> None:
        """Take a specific force (3,), m/s2: in axes of the body if it is known how the IMU is `mounted`."""
        if not self.told:
            self.first_ns = self.felt_ns = t_ns
            self.up = force.astype(np.float64)
        self.told = "absolute" if mounted else "relative"
        seconds, since = (t_ns - self.felt_ns) / NS, (t_ns - self.first_ns) / NS
        self.felt_ns = t_ns
        if seconds <= 0:
            return
        self.up = self.up + min(seconds / min(since, OVER), 1.0) * (force - self.up)
        self.usual = self.usual + seconds / since * (force - self.usual)
        level = np.array([0.0, 0.0, 1.0]) if mounted else self.usual
        if since >= AFTER and (size := float(np.linalg.norm(self.up) * np.linalg.norm(level))):
            self.steepest = max(self.steepest, float(np.arccos(np.clip(self.up @ level / size, -1.0, 1.0))))

    def judge(self, sensor: str, height: float, std: float) -> Height:
        """Return how far a height (m) with one sigma (m) can be believed; take note of it."""
        if not self.ways or (self.told and self.felt_ns - self.first_ns < AFTER * NS):
            return Height(std)
        way, kept = max(self.ways.values()), self.kept.setdefault(sensor, deque())
        off, since = self._contradiction(kept, way, height, std)
        is_worse = off > WORSE * self.std
        self.row = self.row + 1 if is_worse else 0
        if 0 < self.row < IN_A_ROW:
            return Height(max(std, self.std))
        if not kept or way - kept[-1][0] >= APART:
            kept.append((way, height, std))
        while way - kept[0][0] > WITHIN:
            kept.popleft()
        if not is_worse:
            return Height(max(std, self.std))
        self.row, self.std = 0, off
        return Height(max(std, off), off, f"{sensor}: {self._describe(off, way - since)}")

    def _contradiction(
        self, kept: Iterable[tuple[float, float, float]], way: float, height: float, std: float
    ) -> tuple[float, float]:
        """Return the largest change of height that the way does not explain (m; 0: none), and since when."""
        ways, heights, stds = np.array([(way, height, std), *kept]).T
        change = np.abs(height - heights)
        climb = np.tan(min(SLOPES[self.told] + self.steepest, 1.5)) * (way - ways)
        change[change <= climb + SIGMAS * np.hypot(stds, std)] = 0.0
        worst = int(np.argmax(change))
        return float(change[worst]), float(ways[worst])

    def _describe(self, off: float, way: float) -> str:
        tilt = f", and the IMU tilts by {np.degrees(self.steepest):.2g} deg at most" if self.told else ""
        return (
            f"heights are not believable: they change by {off:.3g} m within {way:.3g} m of way{tilt}. "
            f"They are taken to be right within {off:.2g} m"
        )
