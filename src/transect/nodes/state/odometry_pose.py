"""Odometry that a robot recorded itself, as poses."""

from __future__ import annotations

import numpy as np

from transect.algorithms.fusion.measurements import FusionInputs, Step
from transect.engine import Node
from transect.geometry import se3
from transect.types import Odometry, Pose


class OdometryPose(Node):
    """Pose of the body from where an odometry began, whether it gives poses, positions alone, or twists."""

    out_name = "pose"

    def reset(self) -> None:
        self.events = FusionInputs()
        self.place = np.eye(4)

    def process(self, odometry: Odometry) -> Pose | None:
        for step in self.events.gather(self.ctx, None, [odometry], None, None, None, None, None):
            if isinstance(step, Step):
                self.place = self.place @ step.transform
        turned, moved = se3.to_quaternion(self.place)
        return Pose(moved, turned, t_ns=odometry.t_ns, frame="odom", child=odometry.child)
