"""T07: does the clock of the stamps go at the pace of the recorder's."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry.robust import NORMAL
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window

LEAST = 30
"""Windows that tell a drift."""
EVERY = 5
"""Windows from one fit to the next."""
NO_CLOCK = 1000.0
"""ppm; no quartz is that far off: such stamps are of a simulator, or count something else."""
NEWEST = 20
"""Windows that tell a drift that has begun of late; a shorter time tells only a larger one."""
MOST = 2000
"""Windows that are remembered; every second one is dropped when there are more."""


class ClockDrift(Check, id="T07", group="timing", version=2):
    """Slope of the lower hull of ``t_log - t_sample`` over time, less what noise explains.

    The smallest delay of each window counts: messages are late in many ways, and early in none. The slope
    is that of the edge of the lower convex hull under the middle of the time. What remains of the delays
    above that edge says how uncertain it is. Both halves of the time must show it: a jump (T06) is no drift.
    The newest 20 windows are fitted, too, and the larger drift counts.

    Motive: Document 004: clocks by NTP, offsets of "a maximum of a few milliseconds".
    """

    drift = Limit(20.0, 100.0, "CLOCK_DRIFT", "ppm", "of drift, less its uncertainty")

    def reset(self) -> None:
        """No delays are known yet."""
        self._points: list[tuple[float, float]] = []
        self._origin = (0, 0)
        self._age = 0
        self._last: Finding | Unknown = Unknown("LEARNING")

    def look(self, stream: Window[Any]) -> Finding | Unknown:
        """Add the window's smallest delay, and fit the hull."""
        log_ns = stream.log_ns
        if log_ns is None:
            return Unknown("NO_LOG_TIME", n=len(stream))
        delays = log_ns - stream.t_ns
        at = int(np.argmin(delays))
        if not self._points:
            self._origin = int(stream.t_ns[at]), int(delays[at])
        point = (int(stream.t_ns[at]) - self._origin[0]) / NS, (int(delays[at]) - self._origin[1]) / NS
        self._points = [*(self._points if len(self._points) < MOST else self._points[::2]), point]
        if len(self._points) < LEAST:
            return Unknown("LEARNING", n=len(stream))
        self._age += 1
        if self._age % EVERY == 1:
            self._last = self._fit(stream.stream.clock)
        return self._last

    def _fit(self, clock: str) -> Finding | Unknown:
        points = np.array(self._points)
        points = points[np.unique(points[:, 0], return_index=True)[1]]
        drift, slope, uncertain = max(_drift_of(points), _drift_of(points[-NEWEST:]))
        if drift > NO_CLOCK and clock != "utc":
            return Unknown("OTHER_TIME", "its stamps are of another kind of time than the log's", len(points))
        evidence = {"slope_ppm": slope, "uncertain_ppm": uncertain}
        return Finding({"drift": drift}, len(points), evidence)


def _drift_of(points: Floats) -> tuple[float, float, float]:
    """Return the drift that delays (n, 2) over time show, their slope, and how uncertain it is, ppm."""
    slope, above = _fit_below(points)
    uncertain = 2 * NORMAL * float(np.median(above)) / float(np.ptp(points[:, 0]))
    halves = [_fit_below(half)[0] for half in np.array_split(points, 2)]
    steady = min(abs(each) for each in halves) if halves[0] * halves[1] > 0 else 0.0
    return max(0.0, min(abs(slope), 2 * steady) - uncertain) * 1e6, slope * 1e6, uncertain * 1e6


def _fit_below(points: Floats) -> tuple[float, Floats]:
    """Return the slope of the lower hull of points (n, 2) under their middle, and how far they are above."""
    hull: list[tuple[float, float]] = []
    for x, y in points.tolist():
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    middle = float(np.mean(points[:, 0]))
    right = next(i for i, (x, _) in enumerate(hull) if x >= middle)
    (x0, y0), (x1, y1) = hull[max(0, right - 1)], hull[max(1, right)]
    slope = (y1 - y0) / (x1 - x0)
    return slope, points[:, 1] - (y0 + slope * (points[:, 0] - x0))


def _turns_down(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])
