"""A robot's own odometry as poses."""

from __future__ import annotations

import numpy as np

from transect.algorithms.fusion.events import OdometryStep
from transect.algorithms.fusion.measurements import FusionInputs
from transect.engine import Node
from transect.geometry import se3
from transect.types import Odometry, Pose


class OdometryPose(Node):
    """Pose of the body relative to the start of an odometry with poses, positions alone, or twists."""

    out_name = "pose"

    def reset(self) -> None:
        self.fusion_inputs = FusionInputs()
        self.T_odom_body = np.eye(4)

    def process(self, odometry: Odometry) -> Pose | None:
        for step in self.fusion_inputs.gather(self.ctx, None, [odometry], None, None, None, None, None):
            if isinstance(step, OdometryStep):
                self.T_odom_body = self.T_odom_body @ step.transform
        orientation, position = se3.to_quaternion(self.T_odom_body)
        return Pose(position, orientation, t_ns=odometry.t_ns, frame="odom", child=odometry.child)
