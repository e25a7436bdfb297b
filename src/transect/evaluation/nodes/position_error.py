"""How far a pose is from the truth, as it comes."""

from __future__ import annotations

import numpy as np

from transect.engine import At, Node
from transect.types import Pose


class PositionError(Node):
    """Distance in metres to the truth, interpolated to the time of the pose; both in one frame."""

    def process(self, pose: Pose, truth: At[Pose]) -> float | None:
        distance = float(np.linalg.norm(pose.position - truth.position))
        return distance if np.isfinite(distance) else self.ctx.skip("no position")
