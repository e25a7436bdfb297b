"""The scans of the last metre, each where odometry has it: what a keyframe sees."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import se3
from transect.types import PointCloud
from transect.types.places import Observation

from ..registration.gicp import thin_points

MOST = 12
"""Scans that a keyframe is made of."""
LONGEST_NS = 2 * NS
"""Between two scans of one keyframe."""


@dataclass
class Passing:
    """Scans on the way.

    Parameters
    ----------
    edge : float
        Of the voxels to which they are thinned, metres.
    near, far : float
        Metres between which returns count.
    length : float
        Metres of the way whose scans a keyframe is made of.
    """

    edge: float
    near: float
    far: float
    length: float
    scans: deque[tuple[Floats, Floats]] = field(default_factory=lambda: deque(maxlen=MOST))
    last_ns: int = 0

    def add(self, cloud: PointCloud, T_odom_lidar: Floats) -> None:
        """Take a scan, as it was at its time, and its pose (4, 4)."""
        points = np.asarray(cloud.points, np.float64)
        if not 0 < cloud.t_ns - self.last_ns < LONGEST_NS:
            self.scans.clear()
        self.last_ns = cloud.t_ns
        away = np.linalg.norm(points, axis=1)
        with np.errstate(invalid="ignore"):
            kept = points[(away > self.near) & (away < self.far)]
        self.scans.append((T_odom_lidar, thin_points(kept, self.edge)))
        while len(self.scans) > 1 and self._way() > self.length:
            self.scans.popleft()

    def _way(self) -> float:
        return float(np.linalg.norm(self.scans[-1][0][:3, 3] - self.scans[0][0][:3, 3]))

    def observe(self) -> Observation:
        """Return the points (n, 3) of all scans, thinned, in the axes of the newest one."""
        T_lidar_odom = se3.invert(self.scans[-1][0])
        clouds = [se3.apply(T_lidar_odom @ pose, points) for pose, points in self.scans]
        return {"points": thin_points(np.concatenate(clouds), self.edge).astype(np.float32)}
