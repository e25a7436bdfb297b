"""Drift of an estimate from a reference."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats
from transect.engine import At, Node, outputs, param
from transect.geometry import planar, rotations, se3
from transect.types import Pose


@outputs
class PlanarDrift:
    """Horizontal distance to the reference, and length of the estimated path; both in metres."""

    error: float
    travelled: float


class PoseDrift(Node):
    """Compares an odometry with a reference in the plane, aligned at the first pose."""

    reference_body: str = param("Origin", doc="frame whose pose the reference gives")
    estimate_body: str = param("Platform", doc="frame whose pose the estimate gives")

    def reset(self) -> None:
        self.alignment: Floats | None = None
        self.last = np.zeros(2)
        self.travelled = 0.0

    def process(self, reference: Pose, estimate: At[Pose]) -> PlanarDrift:
        T_mount = self.ctx.frames.lookup(self.reference_body, self.estimate_body)
        true = _planar_pose(se3.from_quaternion(reference.orientation, reference.position) @ T_mount)
        estimated = _planar_pose(se3.from_quaternion(estimate.orientation, estimate.position))
        if self.alignment is None:
            self.alignment, self.last = _align(true, estimated), estimated[:2]
        self.travelled += float(np.hypot(*(estimated[:2] - self.last)))
        self.last = estimated[:2]
        R = planar.rotations_from_headings(self.alignment[2])
        error = R @ estimated[:2] + self.alignment[:2] - true[:2]
        return PlanarDrift(float(np.hypot(*error)), self.travelled)


def _planar_pose(pose: Floats) -> Floats:
    """Return x, y and heading (3,) of a pose (4, 4)."""
    heading = rotations.euler_from_quaternion("rpy", rotations.quaternion_from_matrix(pose[:3, :3]))[2]
    return np.array([pose[0, 3], pose[1, 3], heading])


def _align(true: Floats, estimated: Floats) -> Floats:
    """Return the planar pose (3,) of the estimate's frame in the reference's, by one pair of poses."""
    heading = true[2] - estimated[2]
    position = true[:2] - planar.rotations_from_headings(heading) @ estimated[:2]
    return np.array([*position, heading])
