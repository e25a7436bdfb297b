"""Wheels of a vehicle with separate records of its two sides."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from transect.engine import Node, Synced, param
from transect.types import Record, WheelState


class SideWheels(Node):
    """Rim speeds of the left and right wheels from their angular velocities, as of the Argo (SDI).

    The radius of its tyres is not in SDI: `datasets.marulan.robot.derived_streams.fit_drive` fits it to Nav,
    with the effective track width that `WheelOdometry/Differential` needs.
    """

    out_name = "wheels"

    radius: float = param(0.0, ge=0, unit="m", doc="effective radius of the tyres; 0 if not known")
    column: str = param("angular_velocity", doc="column of the records with the angular velocity in rad/s")

    def process(self, left: Record, right: Annotated[Record, Synced(0.1)]) -> WheelState | None:
        if not self.radius:
            return self.ctx.skip(
                f"the radius of the wheels is not known: --set {self.ctx.node}.radius=METRES"
            )
        angular_velocities = np.array([left[self.column], right[self.column]], dtype=np.float64)
        if not np.isfinite(angular_velocities).all():
            return self.ctx.skip("a side was not measured")
        return WheelState(velocity=self.radius * angular_velocities, t_ns=left.t_ns, frame=left.frame)
