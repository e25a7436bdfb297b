"""Where a moving sensor was at each of its points, by poses that pass by while a scan waits for its end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import rotations, se3
from transect.geometry.interpolation import Limits, interpolate_poses
from transect.recording import FrameTree
from transect.types import PointCloud, Pose

KNOT_NS = 100_000
"""Points this near in time share a pose: at 1 rad/s and 30 m they are 3 mm off at most."""


class PassingPoses:
    """The poses around a scan, oldest first; those before it are forgotten.

    Parameters
    ----------
    max_gap_ns : int
        Between poses further apart nothing is known.
    """

    def __init__(self, max_gap_ns: int) -> None:
        self.max_gap_ns = max_gap_ns
        self.poses: list[Pose] = []

    def add(self, poses: Sequence[Pose], after_ns: int) -> None:
        """Take the poses that came, and forget those that are not needed from a time (ns) on."""
        self.poses += [pose for pose in poses if not self.poses or pose.t_ns > self.poses[-1].t_ns]
        older = [i for i, pose in enumerate(self.poses) if pose.t_ns <= after_ns]
        self.poses = self.poses[max(older[-1] - 1, 0) if older else 0 :]

    def place(self, cloud: PointCloud, offset_ns: Ints, frames: FrameTree) -> Floats | None:
        """Return points (n, 3) in the poses' frame, NaN where no pose is known; None without any pose."""
        sensors = self.sensor_poses(cloud, frames)
        if sensors is None:
            return None
        t_ns = cloud.t_ns + offset_ns
        knots, row = np.unique(t_ns // KNOT_NS, return_inverse=True)
        places, turns = interpolate_poses(
            [pose.t_ns for pose in self.poses],
            sensors[:, :3, 3],
            rotations.quaternion_from_matrix(sensors[:, :3, :3]),
            knots * KNOT_NS + KNOT_NS // 2,
            Limits(gap_ns=self.max_gap_ns, beyond_ns=KNOT_NS),
        )
        known = np.isfinite(places).all(axis=1)
        matrices = np.full((len(knots), 3, 3), np.nan)
        matrices[known] = rotations.matrix_from_quaternion(turns[known])
        points = np.asarray(cloud.points, dtype=np.float64)
        return np.einsum("nij,nj->ni", matrices[row], points) + places[row]

    def sensor_poses(self, cloud: PointCloud, frames: FrameTree) -> Floats | None:
        """Return the poses (n, 4, 4) of the cloud's own frame; None without any pose."""
        if not self.poses:
            return None
        child = self.poses[0].child
        body = se3.from_quaternion(
            np.stack([pose.orientation for pose in self.poses]), np.stack([p.position for p in self.poses])
        )
        if not child or not cloud.frame or child == cloud.frame:
            return body
        return body @ frames.lookup(child, cloud.frame)
