"""Satellite fixes as places in metres, and as poses of the body where the receiver knows its attitude."""

from __future__ import annotations

import numpy as np

from transect.algorithms.fusion.measurements import FusionInputs, Place
from transect.engine import Node, outputs, param
from transect.geometry import rotations
from transect.types import NavFix, Pose, RigidBodyState


@outputs
class GnssPlace:
    """What a fix tells.

    Attributes
    ----------
    pose : Pose
        Of the body in `map`, where the receiver knows its attitude.
    antenna : RigidBodyState
        Place of the antenna in `map`; its covariance has 9 numbers (3 x 3, m2), its orientation is not known.
    """

    pose: Pose | None = None
    antenna: RigidBodyState | None = None


class GnssPose(Node):
    """East, north and up in metres from the first fix, with the lever arm of the antenna taken off.

    The deviation is the fix's own, or what is usual for its type and HDOP.
    """

    body: str = param("", doc="frame of the body; if empty, Platform, base_link, base_footprint or Body")
    antenna: str = param("", doc="frame of the antenna; if empty, that of the fixes, or gps")
    fix_std: float = param(
        0.0, ge=0, unit="m", doc="horizontal sigma of fixes that state none; 0 = usual for type and HDOP"
    )

    def reset(self) -> None:
        self.events = FusionInputs(self.body, self.antenna, fix_period=0.0, fix_std=self.fix_std)

    def process(self, fix: NavFix) -> GnssPlace | None:
        found = self.events.gather(self.ctx, None, None, None, None, None, [fix], None)
        if not found or not isinstance(found[0], Place):
            return None
        place = found[0]
        antenna = RigidBodyState(
            place.position,
            np.full(4, np.nan),
            covariance=np.diag(place.std**2).reshape(-1),
            t_ns=fix.t_ns,
            frame="map",
            child=self.antenna or fix.frame,
        )
        if place.attitude is None:
            return GnssPlace(antenna=antenna)
        body = place.position - rotations.rotate(place.attitude, place.lever)
        return GnssPlace(Pose(body, place.attitude, fix.t_ns, "map", self.events.body), antenna)
