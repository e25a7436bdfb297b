"""A node: the running mean of an IMU's rate of turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect.engine import Node, param
from transect.types import Imu


class Smoothing(Node):
    """Exponential mean of the rate of turn."""

    weight: float = param(0.2, gt=0.0, le=1.0, doc="of the newest sample")

    def reset(self) -> None:
        """Forget what was seen."""
        self.mean: np.ndarray | None = None

    def process(self, imu: Imu) -> Imu:
        """Return the sample with the mean in place of its own rate."""
        before = imu.angular_velocity if self.mean is None else self.mean
        self.mean = before + self.weight * (imu.angular_velocity - before)
        return replace(imu, angular_velocity=self.mean)
