"""SLAM by a lidar: its odometry, and places that it knows again."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.odometry.lidar_odometer import choose_voxel_size
from transect.algorithms.slam.lidar_keyframes import Passing
from transect.algorithms.slam.lidar_recogniser import LidarRecogniser
from transect.algorithms.slam.mapper import drift_of
from transect.algorithms.slam.mapping_settings import (
    LIDAR_REACH,
    LIDAR_RECENT,
    LIDAR_SPACING,
    LIDAR_TURNING,
    lidar_mapping_settings,
)
from transect.base.arrays import Floats
from transect.engine import Batch, Latest, Node, Shape, param
from transect.geometry import se3
from transect.types import NavFix, PointCloud, Pose

from ._session import Placed, Session, check_map

KIND = "LidarSlam"
EDGE = 0.75
"""Of the voxels of the odometry: some scans together are denser than one."""
STAYS = 1 / 40**2
"""Part of the variance of a step that stays. A pose trembles, but the next scan is aligned to the same map,
of which this one is a fortieth: what the odometry tells of its steps does not add up. On two simulated days
the errors of 10 m were those of 1 m."""
WANDER = (0.006, 0.0002)
"""Sigma of the odometry's drift over a metre, m and rad; it grows with the root of the way. The first is
twice what four simulated days had over 10 and 32 m; both were tried on six drives against their truth."""
TURNED = 1.0
"""Metres of way that a turn of 1 rad counts for."""
UNKNOWN = (0.02, 0.01)
"""The same where it tells none."""


SIDES = 12
"""Parts of the horizon; a lidar that looks into all but one sees the same whichever way it faces."""


class LidarPlaces(Node):
    """Corrects the odometry of a lidar by places that were seen before; or finds it in a map.

    Poses are of the lidar; scans are straightened already. A keyframe keeps those of the last metre as one
    thinned cloud. An old place is verified by registration (GICP) from where the graph has it, or, where that
    is not known, from where its relief fits; then believed if odometry or another place bears it out
    (`consistency`).
    """

    voxel: float = param(
        0.0,
        ge=0,
        le=5,
        unit="m",
        doc="edge of the voxels of what a keyframe keeps; 0: chosen from the first scan",
    )
    near: float = param(1.0, ge=0, unit="m", doc="smallest range of the returns that are used")
    far: float = param(40.0, gt=0, unit="m", doc="largest range of the returns that are kept in the map")
    spacing: float = param(LIDAR_SPACING, gt=0, unit="m", doc="distance between keyframes")
    turning: float = param(LIDAR_TURNING, gt=0, unit="rad", doc="rotation between keyframes")
    reach: float = param(LIDAR_REACH, gt=0, unit="m", doc="how near an old place must be to be looked at")
    recent: float = param(
        LIDAR_RECENT, gt=0, unit="m", doc="way behind the lidar in which no loop is looked for"
    )

    def reset(self) -> None:
        self.session: Session | None = None
        self.passing: Passing | None = None
        self.before: Floats | None = None

    def ready(self) -> None:
        """Refuse a map of another kind of SLAM."""
        check_map(self.ctx, KIND)

    def process(
        self,
        pose: Pose,
        cloud: PointCloud,
        covariance: Annotated[Latest[NDArray[np.float64]], Shape(6, 6)] | None = None,
        success: Batch[bool] = (),
        fix: Batch[NavFix] = (),
    ) -> Placed:
        if self.session is None or self.passing is None:
            self.session, self.passing = self._begin(cloud, pose.child)
        for each in fix:
            self.session.add_fix(each)
        T_odom_lidar = se3.from_quaternion(pose.orientation, pose.position)
        self.passing.add(cloud, T_odom_lidar)
        spread = self._spread(T_odom_lidar, covariance)
        return self.session.step(pose.t_ns, T_odom_lidar, spread, self.passing.observe, success=success)

    def finish(self) -> Placed | None:
        """Return the corrected trajectory and the map."""
        return None if self.session is None else self.session.finish(self.ctx)

    def _begin(self, cloud: PointCloud, child: str) -> tuple[Session, Passing]:
        """Begin a map, or a search in one whose clouds are as thin as that map's."""
        known = {} if self.ctx.map is None else self.ctx.map.places.calibration
        edge = (
            float(known.get("voxel", 0.0)) or self.voxel or EDGE * choose_voxel_size(np.asarray(cloud.points))
        )
        manner = lidar_mapping_settings(
            self.spacing, self.turning, self.reach, self.recent, looks_around(cloud)
        )
        session = Session(
            self.ctx, KIND, LidarRecogniser(edge), manner, {"voxel": edge, "far": self.far}, child
        )
        return session, Passing(edge, self.near, self.far, self.spacing)

    def _spread(self, T: Floats, covariance: Floats | None) -> Floats:
        """Return the covariance of the motion since the pose before, with what the odometry does not know."""
        motion = np.eye(4) if self.before is None else se3.invert(self.before) @ T
        self.before = T
        if covariance is None:
            return drift_of(motion, UNKNOWN)
        return STAYS * covariance + wander_of(motion)


def wander_of(motion: Floats) -> Floats:
    """Return the covariance (6, 6) of the drift over a motion (4, 4); a way has the sum of its steps."""
    moved = se3.log(motion)
    length = float(np.linalg.norm(moved[:3]) + TURNED * np.linalg.norm(moved[3:])) + 1e-3
    return np.diag(length * np.repeat(np.square(WANDER), 3))


def looks_around(cloud: PointCloud) -> bool:
    """Tell whether a scan has returns on all sides."""
    x, y = np.asarray(cloud.points, np.float64)[:, :2].T
    sides = np.floor(np.arctan2(y, x) / (2 * np.pi) * SIDES)
    return len(np.unique(sides[np.isfinite(sides)])) >= SIDES - 1
