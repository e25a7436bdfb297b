"""How far an estimate has drifted from a reference."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats
from transect.engine import At, Node, outputs, param
from transect.geometry import planar, rotations, se3
from transect.types import Pose


@outputs
class Drift:
    """Horizontal distance to the reference, and how far the estimate has come; both in metres."""

    error: float
    travelled: float


class PoseDrift(Node):
    """Holds an odometry against a reference: level, and begun at the reference's place and heading."""

    reference_body: str = param("Origin", doc="frame whose pose the reference gives")
    estimate_body: str = param("Platform", doc="frame whose pose the estimate gives")

    def reset(self) -> None:
        self.anchor: Floats | None = None
        self.last = np.zeros(2)
        self.travelled = 0.0

    def process(self, reference: Pose, estimate: At[Pose]) -> Drift:
        T_mount = self.ctx.frames.lookup(self.reference_body, self.estimate_body)
        true = _level(se3.from_quaternion(reference.orientation, reference.position) @ T_mount)
        found = _level(se3.from_quaternion(estimate.orientation, estimate.position))
        if self.anchor is None:
            self.anchor, self.last = _anchor(true, found), found[:2]
        self.travelled += float(np.hypot(*(found[:2] - self.last)))
        self.last = found[:2]
        turn = planar.rotations_from_headings(self.anchor[2])
        error = turn @ found[:2] + self.anchor[:2] - true[:2]
        return Drift(float(np.hypot(*error)), self.travelled)


def _level(pose: Floats) -> Floats:
    """Return x, y and heading (3,) of a pose (4, 4)."""
    heading = rotations.euler_from_quaternion("rpy", rotations.quaternion_from_matrix(pose[:3, :3]))[2]
    return np.array([pose[0, 3], pose[1, 3], heading])


def _anchor(true: Floats, found: Floats) -> Floats:
    """Return the place and heading (3,) of the estimate's axes in the reference's, by one pair of poses."""
    heading = true[2] - found[2]
    place = true[:2] - planar.rotations_from_headings(heading) @ found[:2]
    return np.array([*place, heading])
