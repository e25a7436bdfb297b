"""A check of the hauler: its IMU is not trusted while the battery is low."""

from __future__ import annotations

import numpy as np

from transect.integrity import Check, Finding, Limit, Unknown, Window
from transect.types import Imu


class Brownout(Check, id="U01", group="signal"):
    """The lowest voltage in a window, below what the IMU needs.

    Motive: below 21 V the hauler's converter drops out, and the IMU repeats itself.
    """

    shortfall = Limit(0.5, 2.0, "BROWNOUT", unit="V")

    def evaluate(self, imu: Window[Imu]) -> Finding | Unknown:
        """Return how far the voltage fell below 21 V."""
        if not imu.has("voltage"):
            return Unknown("NO_VOLTAGE", n=len(imu))
        lowest = float(np.nanmin(imu.column("voltage")))
        return Finding({"shortfall": max(0.0, 21.0 - lowest)}, len(imu))
