"""SLAM with a planar laser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from transect.algorithms.odometry.laser_drift import OdometryScale
from transect.algorithms.odometry.laser_odometer import LaserMotion, LaserOdometer
from transect.algorithms.odometry.laser_scans import LaserFieldOfView, scan_points
from transect.algorithms.registration.scan_matching import lift_pose
from transect.algorithms.slam.keyframe_odometry import Link, OdometryPrediction, PredictionSettings
from transect.algorithms.slam.laser_recogniser import LASER_MAPPING, LaserRecogniser, max_segment
from transect.base.arrays import Floats
from transect.engine import Batch, Node, outputs, param
from transect.errors import FrameError
from transect.types import LaserScan, NavFix, Odometry, Pose, Twist
from transect.types.places import Observation

from .._attempts import Attempts, lower_bound
from ..lidar.body_poses import PoseIntegrator
from .session import SlamOutput, SlamSession, check_map

KIND = "LaserSlam"


@outputs
class LaserSlamOutput(SlamOutput):
    """Result of SLAM, and the odometry that it was given."""

    odometry: Pose | None = None  # of the body at the time of a scan; none without odometry


class LaserPoseGraph(Node):
    """Matches each scan with the last ones, closes loops, and corrects the path by a pose graph.

    The body is that of the odometry; without one it is the laser.

    Inputs
    ------
    scan
        Scans of one laser that is mounted level.
    odometry, pose, twist
        Any odometry; it predicts the poses for scan matching. One of them is enough, and all may be missing.
    fix
        Satellite fixes, which anchor the map.
    """

    max_range: float = param(30.0, gt=0, unit="m", doc="largest range that is used")
    min_returns: int = param(20, ge=1, doc="smallest number of returns of a usable scan")
    max_tilt: float = param(
        math.radians(5.0), ge=0, unit="rad", doc="largest tilt of a laser that counts as level"
    )
    search_radius: float = param(
        LASER_MAPPING.search_radius_m,
        gt=0,
        unit="m",
        doc="distance of keyframes that are candidates for a loop",
    )
    min_loop_path: float = param(
        LASER_MAPPING.min_loop_path_m,
        gt=0,
        unit="m",
        doc="smallest length of the path between two keyframes of a loop",
    )
    max_lone_sigma: float = param(
        LASER_MAPPING.loops.max_lone_sigma_m,
        gt=0,
        unit="m",
        doc="largest position sigma at which a single consistent loop is accepted",
    )
    max_bridged_distance: float = param(
        1.0, ge=0, unit="m", doc="largest motion by odometry over a gap in time that starts no new session"
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
        doc="largest ratio of scans that contradict the map, in a result that can be trusted",
    )

    def reset(self) -> None:
        self.odometer: LaserOdometer | None = None
        self.session: SlamSession | None = None
        settings = PredictionSettings(self.max_bridged_distance, self.max_bridged_turn)
        self.prediction = OdometryPrediction(settings)
        self.assumed = dict[str, None]()
        self.pose_integrator = PoseIntegrator(self.assumed)
        self.T_body_laser = np.eye(4)
        self.field_of_view = LaserFieldOfView.from_calibration({})
        self.scale = OdometryScale()
        self.segment = 0.0
        self.attempts = Attempts(self.max_failed_ratio)
        self.contradicting = 0

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
    ) -> LaserSlamOutput | None:
        poses = self.pose_integrator.poses([*odometry, *pose, *twist])
        self.prediction.add(poses)
        session = self.session = self.session or self._start_session(scan, poses)
        for each in fix:
            session.add_fix(each)
        points = scan_points(scan, self.T_body_laser, self.max_range)
        if len(points) < self.min_returns:
            return self.ctx.skip("too few returns")
        link, prior = self.prediction.link(scan.t_ns), self.prediction.predict(scan.t_ns)
        motion = self._match_next(scan, points, prior, link)
        connected = motion is not None
        if motion is None:
            self._add_statistics()
            stored = self.ctx.map
            localising = stored is not None and not stored.extend
            self.odometer = LaserOdometer(
                abs(scan.angle_increment), self.field_of_view, localising, self.scale
            )
            self.segment += 1.0
            motion = self.odometer.step(scan.t_ns, points, prior)
        self.segment += not motion.connected
        front = np.array([[*motion.pose, self.segment]])
        output = session.step(
            scan.t_ns,
            lift_pose(motion.pose),
            motion.covariance,
            lambda: observe(points, front),
            connected=connected and motion.connected,
        )
        return LaserSlamOutput(**vars(output), odometry=_odometry_pose(prior, scan.t_ns, session.child))

    def finish(self) -> LaserSlamOutput | None:
        """Return trajectory and map, and report the result."""
        if self.session is None or self.odometer is None:
            return None
        for sentence in self.assumed:
            self.ctx.log(sentence)
        self._add_statistics()
        self.attempts.report(self.ctx, "scans did not match the local map", "the map and the path")
        self._report_contradictions()
        output = self.session.finish(self.ctx)
        return None if output is None else LaserSlamOutput(**vars(output))

    def _match_next(
        self, scan: LaserScan, points: Floats, prior: Floats | None, link: Link
    ) -> LaserMotion | None:
        """Return the motion from the last scan; None if that is not known.

        After a gap in time that odometry may have bridged, the scan has to match the local map.
        """
        if self.odometer is None or link == "disconnected":
            return None
        motion = self.odometer.step(scan.t_ns, points, prior, complete=link == "uncertain")
        return None if link == "uncertain" and self.odometer.match is None else motion

    def _add_statistics(self) -> None:
        """Add up the numbers of scans that were matched, failed, and contradicted the map."""
        if self.odometer is not None:
            self.attempts.add_many(self.odometer.statistics.matches, self.odometer.statistics.failed)
            self.contradicting += self.odometer.statistics.contradicting

    def _report_contradictions(self) -> None:
        """Report a bad map if significantly more scans contradict it than those of good maps.

        Scans that see too little of the map do not count: odometry bridges them.
        """
        count, failed = self.attempts.count, self.contradicting
        if (
            failed
            and not self.attempts.are_too_many
            and lower_bound(failed, count) > self.max_contradicting_ratio
        ):
            self.ctx.conclude(
                f"{failed} of {count} scans ({100 * failed / count:.1f} %) contradict the map; "
                "of good maps less than 1 % do: do not trust the map and the path",
                bad=True,
            )

    def _start_session(self, scan: LaserScan, poses: Sequence[Pose]) -> SlamSession:
        child = (poses[-1].child if poses else "") or scan.frame
        self.T_body_laser = self._lookup_mounting(child, scan.frame)
        stored = self.ctx.map
        self.segment = (
            max_segment(stored.places.observations) if stored is not None and stored.extend else 0.0
        )
        settings = replace(
            LASER_MAPPING,
            search_radius_m=self.search_radius,
            min_loop_path_m=self.min_loop_path,
            loops=replace(LASER_MAPPING.loops, max_lone_sigma_m=self.max_lone_sigma),
        )
        calibration = {
            "beam": abs(float(scan.angle_increment)),
            "view": [float(scan.angles[0]), float(scan.angles[-1])],
            "farthest": self.max_range,
            "T_body_laser": self.T_body_laser.tolist(),
            "z_down": self.ctx.robot is not None and self.ctx.robot.z_down,
        }
        self.field_of_view = LaserFieldOfView.from_calibration(calibration)
        return SlamSession(
            self.ctx, KIND, LaserRecogniser.from_calibration(calibration), settings, calibration, child
        )

    def _lookup_mounting(self, body: str, laser: str) -> Floats:
        """Return T_body_laser; without connecting frames the laser is the body."""
        if body == laser:
            return np.eye(4)
        try:
            found = np.asarray(self.ctx.frames.lookup(body, laser), np.float64).reshape(-1, 4, 4)[0]
        except FrameError:
            self.ctx.log(
                f"no frames connect {body or 'the body'} with {laser or 'the laser'}: assumed to coincide"
            )
            return np.eye(4)
        tilt = float(np.arccos(np.clip(abs(found[2, 2]), 0.0, 1.0)))
        if tilt > self.max_tilt:
            self.ctx.conclude(
                f"{laser} is tilted by {math.degrees(tilt):.1f} deg: returns from the ground are mistaken for"
                " walls; --wire scan= selects another laser, if one is level"
            )
        return found


def _odometry_pose(prior: Floats | None, t_ns: int, child: str) -> Pose | None:
    """Return the pose (3,) of the odometry at a time as a pose in space; None without odometry."""
    if prior is None:
        return None
    x, y, heading = prior
    attitude = np.array([0.0, 0.0, np.sin(heading / 2), np.cos(heading / 2)])
    return Pose(np.array([x, y, 0.0]), attitude, t_ns, "odom", child)


def observe(points: Floats, front: Floats) -> Observation:
    """Return the observation of a keyframe: returns (n, 2) in the body's plane, and the odometry pose."""
    return {"points": points.astype(np.float32), "front": front}
