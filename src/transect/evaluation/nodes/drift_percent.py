"""How far an estimate has drifted, as a part of the way travelled."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats
from transect.engine import At, Node, param
from transect.geometry import se3
from transect.types import Pose


class DriftPercent(Node):
    """Distance to the truth in percent of the way, the first pose of the estimate put onto the truth's."""

    least: float = param(1.0, ge=0, unit="m", doc="way of the truth before the first answer")

    def reset(self) -> None:
        self.anchor: Floats | None = None
        self.last = np.zeros(3)
        self.travelled = 0.0

    def process(self, pose: Pose, truth: At[Pose]) -> float | None:
        if self.anchor is None:
            self.anchor, self.last = _matrix(truth) @ se3.invert(_matrix(pose)), truth.position
        self.travelled += float(np.linalg.norm(truth.position - self.last))
        self.last = truth.position
        if self.travelled <= self.least:
            return self.ctx.skip("not travelled far enough")
        error = se3.apply(self.anchor, pose.position) - truth.position
        return 100 * float(np.linalg.norm(error)) / self.travelled


def _matrix(pose: Pose) -> Floats:
    return se3.from_quaternion(pose.orientation, pose.position)
