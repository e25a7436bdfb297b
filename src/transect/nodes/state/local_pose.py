"""Satellite fixes as poses in metres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transect.engine import Node
from transect.geometry import geodesy, rotations
from transect.types import NavFix, Pose

Q_ENU_NED = np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0])
"""Half a turn about the horizontal line north-east: takes vectors of NED to ENU."""


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
        return Pose(geodesy.local_from_geodetic(place, self.origin), turned, frame="enu")
