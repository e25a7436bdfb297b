"""Satellite fixes as positions in metres, and as poses of the body if the receiver measures its attitude."""

from __future__ import annotations

import numpy as np

from transect.algorithms.fusion.events import MeasuredPosition
from transect.algorithms.fusion.measurements import FusionInputs
from transect.algorithms.fusion.position_inputs import PositionInputSettings
from transect.engine import Node, outputs, param
from transect.geometry import rotations
from transect.types import NavFix, Pose, RigidBodyState


@outputs
class GnssPosition:
    """Position by a fix.

    Attributes
    ----------
    pose : Pose
        Of the body in `map`, if the receiver measures its attitude.
    antenna : RigidBodyState
        Position of the antenna in `map`; its covariance has 9 numbers (3 x 3, m2), no orientation.
    """

    pose: Pose | None = None
    antenna: RigidBodyState | None = None


class GnssPose(Node):
    """East, north and up in metres from the first fix, with the lever arm of the antenna subtracted.

    The standard deviation is the fix's own, or typical of its type and HDOP.
    """

    body: str = param("", doc="frame of the body; if empty, Platform, base_link, base_footprint or Body")
    antenna: str = param("", doc="frame of the antenna; if empty, that of the fixes, or gps")
    fix_std: float = param(
        0.0, ge=0, unit="m", doc="horizontal sigma of fixes that state none; 0 = typical of type and HDOP"
    )

    def reset(self) -> None:
        positions = PositionInputSettings(fix_period=0.0, fix_std=self.fix_std)
        self.fixes = FusionInputs(self.body, self.antenna, positions=positions)

    def process(self, fix: NavFix) -> GnssPosition | None:
        measured = self.fixes.gather(self.ctx, None, None, None, None, None, [fix], None)
        if not measured or not isinstance(measured[0], MeasuredPosition):
            return None
        position = measured[0]
        antenna = RigidBodyState(
            position.position,
            np.full(4, np.nan),
            covariance=np.diag(position.std**2).reshape(-1),
            t_ns=fix.t_ns,
            frame="map",
            child=self.antenna or fix.frame,
        )
        if position.attitude is None:
            return GnssPosition(antenna=antenna)
        body = position.position - rotations.rotate(position.attitude, position.lever_arm)
        return GnssPosition(Pose(body, position.attitude, fix.t_ns, "map", self.fixes.body), antenna)
