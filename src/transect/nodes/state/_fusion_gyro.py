"""Turns about the vertical by a gyroscope, added up between two times."""

from __future__ import annotations

import numpy as np

from transect.base.clocks import NS

from ._fusion_events import Turning
from ._fusion_wheels import GyroTurn

KEPT_NS = NS
"""Rates older than this before the newest are forgotten."""
SILENT_NS = NS // 5
"""Over longer gaps a turn is not known."""
DIFFERENCES = 6.0
"""Variance of the second difference of white noise over that of the noise."""
FOLLOWED = 5.0
"""Seconds over which the noise is averaged."""
LEAST_DENSITY = 1e-6
"""rad/s/sqrt(Hz), of the best gyroscopes."""


class Gyro:
    """Keeps the newest rates, and how noisy they are: by their second differences, vibration included."""

    def __init__(self) -> None:
        self.rates: list[Turning] = []
        self.density = 0.0

    def take(self, turning: Turning) -> None:
        """Take a rate, later than the one before."""
        if self.rates and turning.t_ns <= self.rates[-1].t_ns:
            return
        self.rates = [*(each for each in self.rates if each.t_ns > turning.t_ns - KEPT_NS), turning]
        if len(self.rates) < 3:
            return
        a, b, c = self.rates[-3:]
        seconds = (c.t_ns - a.t_ns) / 2 / NS
        found = (a.rate - 2 * b.rate + c.rate) ** 2 * seconds / DIFFERENCES
        weight = 1.0 if not self.density else min(seconds / FOLLOWED, 1.0)
        self.density += weight * (found - self.density)

    def between(self, since_ns: int, t_ns: int) -> GyroTurn | None:
        """Return the turn between two times; None where rates do not cover them."""
        times = np.array([each.t_ns for each in self.rates], np.int64)
        if len(times) < 2 or times[0] > since_ns + SILENT_NS or times[-1] < t_ns - SILENT_NS:
            return None
        rates = np.array([each.rate for each in self.rates])
        inside = times[(times > since_ns) & (times < t_ns)]
        at = np.concatenate([[since_ns], inside, [t_ns]]).astype(np.int64)
        if np.diff(at).max() > SILENT_NS:
            return None
        elapsed = (at - since_ns) / NS
        values = np.interp(elapsed, (times - since_ns) / NS, rates)
        angle = float(np.trapezoid(values, elapsed))
        return GyroTurn(angle, max(self.density, LEAST_DENSITY**2) * (t_ns - since_ns) / NS)
