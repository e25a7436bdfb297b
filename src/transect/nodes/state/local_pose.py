"""Satellite fixes as poses in metres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transect.engine import Node
from transect.geometry import geodesy, rotations
from transect.types import NavFix, Pose

ORIGIN = "Origin"
"""Frame of a receiver whose axes are those of its attitude, x forward and z down; others have z up."""
Q_ENU_NED = np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0])
"""Half a turn about the horizontal line north-east: takes vectors of NED to ENU."""
Q_DOWN_UP = np.array([1.0, 0.0, 0.0, 0.0])
"""Half a turn about x: takes vectors of x forward, z up to x forward, z down."""


class LocalPose(Node):
    """Pose of a receiver that knows its attitude: east, north, up in metres from its first fix."""

    out_name = "pose"

    def reset(self) -> None:
        self.origin: NDArray[np.float64] | None = None

    def process(self, fix: NavFix) -> Pose | None:
        place = np.array([fix.latitude, fix.longitude, fix.altitude])
        if not np.isfinite(place).all():
            return self.ctx.skip("no fix")
        if fix.attitude is None or not np.isfinite(fix.attitude).all():
            return self.ctx.skip("no attitude")
        self.origin = place if self.origin is None else self.origin
        turned = rotations.multiply(Q_ENU_NED, rotations.quaternion_from_euler("rpy", fix.attitude))
        local = geodesy.local_from_geodetic(place, self.origin)
        if ORIGIN in self.ctx.frames or not fix.frame:
            return Pose(local, turned, frame="enu", child=ORIGIN)
        return Pose(local, rotations.multiply(turned, Q_DOWN_UP), frame="enu", child=fix.frame)
