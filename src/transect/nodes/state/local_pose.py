"""Poses in metres by satellite fixes with attitudes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transect.engine import Node
from transect.geometry import geodesy, rotations
from transect.types import NavFix, Pose

RECEIVER_FRAME = "Origin"
"""Frame of a receiver whose axes are those of its attitude, x forward and z down; others have z up."""
Q_ENU_NED = np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0])
"""Half a turn about the horizontal line north-east: takes vectors of NED to ENU."""
Q_DOWN_UP = np.array([1.0, 0.0, 0.0, 0.0])
"""Half a turn about x: takes vectors of x forward, z up to x forward, z down."""


class LocalPose(Node):
    """Pose of a receiver that measures its attitude: east, north, up in metres from its first fix."""

    out_name = "pose"

    def reset(self) -> None:
        self.origin: NDArray[np.float64] | None = None

    def process(self, fix: NavFix) -> Pose | None:
        geodetic = np.array([fix.latitude, fix.longitude, fix.altitude])
        if not np.isfinite(geodetic).all():
            return self.ctx.skip("no fix")
        if fix.attitude is None or not np.isfinite(fix.attitude).all():
            return self.ctx.skip("no attitude")
        self.origin = geodetic if self.origin is None else self.origin
        orientation = rotations.multiply(Q_ENU_NED, rotations.quaternion_from_euler("rpy", fix.attitude))
        local = geodesy.local_from_geodetic(geodetic, self.origin)
        if RECEIVER_FRAME in self.ctx.frames or not fix.frame:
            return Pose(local, orientation, frame="enu", child=RECEIVER_FRAME)
        return Pose(local, rotations.multiply(orientation, Q_DOWN_UP), frame="enu", child=fix.frame)
