"""Odometry that leads the matching of scans: where it says the body is at the time of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import se3
from transect.types import Pose

from ..registration.planar_poses import compose, flatten_pose, relate
from .mapper import GAP_PERIODS, GAP_S

AHEAD_S = 0.5
"""Seconds by which odometry is carried on, at most."""
FASTEST = 5.0
"""m/s: a jump of odometry that is faster begins anew."""
Link = Literal["joined", "uncertain", "apart"]
"""Whether odometry leads from one scan to the next; where it is uncertain the scans have to match."""


class Lead:
    """The last two poses of an odometry, its longest silence since a scan, the times of the last scans.

    Parameters
    ----------
    max_bridged_m, max_bridged_rad : float
        Motion over a gap in time up to which odometry may have gone on: one that was reset jumps farther.
    """

    def __init__(self, max_bridged_m: float, max_bridged_rad: float) -> None:
        self.max_bridged_m, self.max_bridged_rad = max_bridged_m, max_bridged_rad
        self.poses: list[tuple[int, Floats]] = []
        self.scans: list[int] = []
        self.known: tuple[int, Floats] | None = None
        self.silence = 0

    def add(self, poses: Sequence[Pose]) -> None:
        """Take poses as they come."""
        for pose in poses:
            flat = flatten_pose(se3.from_quaternion(pose.orientation, pose.position))
            if np.isfinite(flat).all() and (not self.poses or pose.t_ns > self.poses[-1][0]):
                self.silence = max(self.silence, pose.t_ns - self.poses[-1][0] if self.poses else 0)
                self.poses = [*self.poses[-1:], (pose.t_ns, flat)]

    def at(self, t_ns: int) -> Floats | None:
        """Return the pose (3,) at a time, carried on from the last two; None without odometry."""
        if not self.poses:
            return None
        last_ns, last = self.poses[-1]
        if len(self.poses) < 2:
            return last
        first_ns, first = self.poses[0]
        ahead = np.clip(t_ns - last_ns, 0, AHEAD_S * NS) / max(last_ns - first_ns, 1)
        return compose(last, relate(first, last) * min(ahead, 2.0))

    def link_to(self, t_ns: int) -> Link:
        """Return whether the motion from the scan before to one at a time is known; the first is apart."""
        now, before = self.at(t_ns), self.known
        silence, self.silence = self.silence / NS, 0
        last_ns = self.scans[-1] if self.scans else None
        periods = np.diff(self.scans)
        self.scans = [*self.scans[-50:], t_ns]
        self.known = None if now is None else (t_ns, now)
        if last_ns is None:
            return "apart"
        passed = (t_ns - last_ns) / NS
        usual = float(np.median(periods)) / NS if len(periods) else 0.0
        longest = max(GAP_S, GAP_PERIODS * usual)
        if now is None or before is None:
            return "joined" if passed <= longest else "apart"
        moved = relate(before[1], now)
        way, turn = float(np.hypot(*moved[:2])), abs(float(moved[2]))
        if silence <= longest:
            return "joined" if way <= FASTEST * max(passed, 0.2) else "apart"
        if passed <= longest:
            return "joined"
        bridged = way <= self.max_bridged_m and turn <= self.max_bridged_rad
        return "uncertain" if bridged else "apart"
