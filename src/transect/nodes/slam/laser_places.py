"""A map of what a planar laser sees, and where the body is in it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from transect.algorithms.odometry.laser_drift import Stride
from transect.algorithms.odometry.laser_odometer import LaserMotion, LaserOdometer
from transect.algorithms.odometry.laser_scans import points_of
from transect.algorithms.odometry.laser_visibility import LaserView
from transect.algorithms.registration.planar_poses import lift_pose
from transect.algorithms.slam.laser_recogniser import max_segment, recogniser_of
from transect.algorithms.slam.mapping_settings import (
    LASER_LONE,
    LASER_REACH,
    LASER_RECENT,
    laser_mapping_settings,
)
from transect.algorithms.slam.odometry_prior import Lead, Link
from transect.base.arrays import Floats
from transect.engine import Batch, Node, outputs, param
from transect.errors import FrameError
from transect.types import LaserScan, NavFix, Odometry, Pose, Twist
from transect.types.places import Observation

from .._attempts import Attempts, lower_bound
from ..lidar._passing import Reckoning
from ._session import Placed, Session, check_map

KIND = "LaserSlam"
LEANS = 5.0
"""Degrees from which on a laser is not level."""
LEAST_BEAMS = 20
"""Returns that a scan must have to be of use."""


@outputs
class LaserPlaced(Placed):
    """What a SLAM gives, and beside it the odometry that led it.

    Attributes
    ----------
    odometry : Pose
        Of the body at the time of a scan, by odometry alone; none without any.
    """

    odometry: Pose | None = None


class LaserPlaces(Node):
    """Matches each scan with the last ones, knows places again, and corrects the way between.

    The body is that of the odometry; without one it is the laser.

    Inputs
    ------
    scan
        Of one laser that is mounted level.
    odometry, pose, twist
        By wheels or anything else; they lead the matching. One of them will do, and all may be missing.
    fix
        Satellite fixes, which anchor the map.
    """

    farthest: float = param(30.0, gt=0, unit="m", doc="ranges beyond are not used")
    reach: float = param(LASER_REACH, gt=0, unit="m", doc="how near an old place must be to be looked at")
    recent: float = param(
        LASER_RECENT, gt=0, unit="m", doc="metres of the way behind in which no loop is looked for"
    )
    lone: float = param(
        LASER_LONE,
        gt=0,
        unit="m",
        doc="where the graph is surer than this, a loop that fits needs no second one",
    )
    max_bridged_distance: float = param(
        1.0, ge=0, unit="m", doc="largest motion by odometry over a gap in time that begins no new session"
    )
    max_bridged_turn: float = param(
        1.0, ge=0, le=math.pi, unit="rad", doc="largest turn by odometry over such a gap"
    )
    max_failed_ratio: float = param(
        0.5, ge=0, le=1, doc="largest ratio of failed attempts in a result that can be trusted"
    )

    max_contradicting_ratio: float = param(
        0.025,
        ge=0,
        le=1,
        doc="largest ratio of scans that see the map and do not fit it, in one to be trusted",
    )

    def reset(self) -> None:
        self.odometer: LaserOdometer | None = None
        self.session: Session | None = None
        self.lead = Lead(self.max_bridged_distance, self.max_bridged_turn)
        self.assumed = dict[str, None]()
        self.reckoning = Reckoning(self.assumed)
        self.mounting, self.view, self.stride = np.eye(4), LaserView.of({}), Stride()
        self.segment = 0.0
        self.attempts = Attempts(self.max_failed_ratio)
        self.contradicted = 0

    def ready(self) -> None:
        """Refuse a map of another kind."""
        check_map(self.ctx, KIND)

    def process(
        self,
        scan: LaserScan,
        odometry: Batch[Odometry] = (),
        pose: Batch[Pose] = (),
        twist: Batch[Twist] = (),
        fix: Batch[NavFix] = (),
    ) -> LaserPlaced | None:
        poses = self.reckoning.poses_of([*odometry, *pose, *twist])
        self.lead.add(poses)
        session = self.session = self.session or self._begin(scan, poses)
        for each in fix:
            session.add_fix(each)
        points = points_of(scan, self.mounting, self.farthest)
        if len(points) < LEAST_BEAMS:
            return self.ctx.skip("too few beams came back")
        link, led = self.lead.link_to(scan.t_ns), self.lead.at(scan.t_ns)
        moved = self._follow(scan, points, led, link)
        joined = moved is not None
        if moved is None:
            self._count_matches()
            known = self.ctx.map
            wary = known is not None and not known.extend
            self.odometer = LaserOdometer(abs(scan.angle_increment), self.view, wary, self.stride)
            self.segment += 1.0
            moved = self.odometer.step(scan.t_ns, points, led)
        self.segment += not moved.joined
        front = np.array([[*moved.pose, self.segment]])
        placed = session.step(
            scan.t_ns,
            lift_pose(moved.pose),
            moved.covariance,
            lambda: observe(points, front),
            joined=joined and moved.joined,
        )
        return LaserPlaced(**vars(placed), odometry=_lift_odometry(led, scan.t_ns, session.child))

    def finish(self) -> LaserPlaced | None:
        """Return trajectory and map, and say how it went."""
        if self.session is None or self.odometer is None:
            return None
        for said in self.assumed:
            self.ctx.log(said)
        self._count_matches()
        self.attempts.report(self.ctx, "scans did not match those before them", "the map and the path")
        self._report_contradictions()
        placed = self.session.finish(self.ctx)
        return None if placed is None else LaserPlaced(**vars(placed))

    def _follow(self, scan: LaserScan, points: Floats, led: Floats | None, link: Link) -> LaserMotion | None:
        """Return the motion from the scan before; None where that is not known.

        After a gap in time that odometry may have bridged, the scan has to match those before it.
        """
        if self.odometer is None or link == "apart":
            return None
        moved = self.odometer.step(scan.t_ns, points, led, complete=link == "uncertain")
        return None if link == "uncertain" and self.odometer.match is None else moved

    def _count_matches(self) -> None:
        """Add up how many scans were matched, and how many of them fitted nowhere."""
        if self.odometer is not None:
            self.attempts.add_many(self.odometer.matches, self.odometer.failed)
            self.contradicted += self.odometer.contradicted

    def _report_contradictions(self) -> None:
        """Conclude that a map is wrong if significantly more scans contradict it than those of good maps.

        Scans that see too little of the map do not count: they tell nothing of it, and odometry bridges them.
        """
        count, failed = self.attempts.count, self.contradicted
        if (
            failed
            and not self.attempts.are_too_many
            and lower_bound(failed, count) > self.max_contradicting_ratio
        ):
            self.ctx.conclude(
                f"{failed} of {count} scans ({100 * failed / count:.1f} %) do not fit the map around them; "
                "of good maps it is less than 1 %: do not trust the map and the path",
                bad=True,
            )

    def _begin(self, scan: LaserScan, poses: Sequence[Pose]) -> Session:
        child = (poses[-1].child if poses else "") or scan.frame
        self.mounting = self._find_mounting(child, scan.frame)
        known = self.ctx.map
        self.segment = max_segment(known.places.observations) if known is not None and known.extend else 0.0
        manner = laser_mapping_settings(self.reach, self.recent, self.lone)
        calibration = {
            "beam": abs(float(scan.angle_increment)),
            "view": [float(scan.angles[0]), float(scan.angles[-1])],
            "farthest": self.farthest,
            "T_body_laser": self.mounting.tolist(),
            "z_down": self.ctx.robot is not None and self.ctx.robot.z_down,
        }
        self.view = LaserView.of(calibration)
        return Session(self.ctx, KIND, recogniser_of(calibration), manner, calibration, child)

    def _warn_of_lean(self, laser: str, degrees: float) -> None:
        """Say that a laser leans so much that it sees the ground as well as walls."""
        if degrees > LEANS:
            self.ctx.conclude(
                f"{laser} leans by {degrees:.1f} deg, and what it sees of the ground is taken for walls: "
                "--wire scan= takes another laser, if there is one that is level"
            )

    def _find_mounting(self, body: str, laser: str) -> Floats:
        """Return T_body_laser; where frames do not tell, the laser is the body."""
        if body == laser:
            return np.eye(4)
        try:
            found = np.asarray(self.ctx.frames.lookup(body, laser), np.float64).reshape(-1, 4, 4)[0]
            self._warn_of_lean(laser, float(np.degrees(np.arccos(np.clip(abs(found[2, 2]), 0.0, 1.0)))))
            return found
        except FrameError:
            self.ctx.log(f"no frames lead from {body or 'the body'} to {laser or 'the laser'}: taken as one")
            return np.eye(4)


def _lift_odometry(led: Floats | None, t_ns: int, child: str) -> Pose | None:
    """Return a pose (3,) of the odometry at a time as one in space; None without any."""
    if led is None:
        return None
    x, y, heading = led
    attitude = np.array([0.0, 0.0, np.sin(heading / 2), np.cos(heading / 2)])
    return Pose(np.array([x, y, 0.0]), attitude, t_ns, "odom", child)


def observe(points: Floats, front: Floats) -> Observation:
    """Return what a keyframe keeps: returns (n, 2) in the body's plane, and the pose by the scans alone."""
    return {"points": points.astype(np.float32), "front": front}
