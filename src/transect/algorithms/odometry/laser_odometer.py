"""Planar laser odometry: scans are matched with a map of the last scans, and fused with wheel odometry."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS

from ..registration.scan_matching import (
    MIN_MATCH_SIGMA,
    ScanMatch,
    SearchWindow,
    compose,
    lift_covariance,
    lift_pose,
    relative_pose,
)
from .laser_drift import OdometryDrift, OdometryScale, match_covariance, odometry_covariance
from .laser_scans import (
    LASER_MAP,
    WALLS,
    LaserFieldOfView,
    LaserKeyframe,
    LaserLocalMap,
    LaserMapSettings,
    LaserWallSettings,
    downsample,
    interpolate_walls,
)


@dataclass(frozen=True)
class LaserOdometrySettings:
    """Settings of laser odometry."""

    # Search window around the predicted pose: a margin plus a fraction of the motion since the last match.
    window_m: float = 0.1
    window_path_ratio: float = 0.15
    window_rad: float = 0.04
    window_turn_ratio: float = 0.15
    wide_window_m: float = 0.6  # without odometry, or if the first match is poor
    wide_window_rad: float = 0.5

    # A scan is matched after any of these since the last match.
    match_distance_m: float = 0.05
    match_angle_rad: float = 0.03
    match_period_ns: int = NS
    # Mean value of the map's distance field at the points: 0 no point is near a wall, 1 all are on walls.
    min_score: float = 0.5
    min_points: int = 10

    # Fusion: sigma of odometry between two matches as fractions of path and turn, and its floor (m, m, rad);
    # without odometry, sigma of the constant velocity prediction (m, m, rad).
    odometry_path_ratio: float = 0.1
    odometry_turn_ratio: float = 0.2
    odometry_floor: tuple[float, float, float] = (0.02, 0.02, 0.02)
    velocity_sigma: tuple[float, float, float] = (0.1, 0.1, 0.1)
    max_chi2: float = 12.0  # beyond, wheels slipped or the match is wrong

    # Wheel slip: a match overrides wheels if it scores as well as usual, and most recent scans matched.
    # Among trees all scans fit moderately well, and none of them proves slip.
    min_relative_score: float = 0.85
    min_match_ratio: float = 0.8
    smoothing: float = (
        0.05  # weight of a new sample in the means of period, match ratio and (if higher) score
    )
    score_decay: float = 0.005  # weight of a lower score

    # A new local map begins after any of these without a match.
    restart_scans: int = 10
    restart_distance_m: float = 1.0
    restart_angle_rad: float = 1.0
    pause_periods: float = 3.0  # a longer gap is a pause of the recorder, in which odometry may be incomplete

    walls: LaserWallSettings = WALLS
    local_map: LaserMapSettings = LASER_MAP


@dataclass(frozen=True, eq=False)
class LaserMotion:
    """Pose of the body at a scan."""

    pose: Floats  # (3,) in the frame of the body at the first scan
    covariance: Floats  # (6, 6) of the motion since the last sample, in the axes of the body
    connected: bool = True  # whether the motion since the last sample is known


@dataclass
class MatchStatistics:
    """Counts of matches, and running means of their quality."""

    usual_score: float
    match_ratio: float = 1.0
    matches: int = 0
    failed: int = 0
    contradicting: int = 0  # failed although enough of the map was in view


class LaserOdometer:
    """Estimates the motion of a body from its scans, aided by odometry if there is any.

    Parameters
    ----------
    beam_spacing : float
        Angle between neighbouring beams, rad.
    inflate_contradictions : bool
        Whether a contradiction between scans and wheels enlarges the covariance: for a robot that has to
        detect that it is lost. In mapping, loop closures resolve such contradictions.
    scale : OdometryScale, optional
        Estimate of the odometry's scale so far; it is updated.
    """

    def __init__(
        self,
        beam_spacing: float,
        field_of_view: LaserFieldOfView,
        inflate_contradictions: bool = False,
        scale: OdometryScale | None = None,
        settings: LaserOdometrySettings | None = None,
    ) -> None:
        self.beam_spacing = beam_spacing
        self.field_of_view = field_of_view
        self.inflate_contradictions = inflate_contradictions
        self.scale = OdometryScale() if scale is None else scale
        self.settings = settings or LaserOdometrySettings()
        self.drift = OdometryDrift(self.scale)
        self.pose = self.last_match_pose = np.zeros(3)
        self.odometry_pose: Floats | None = None
        self.velocity = np.zeros(3)
        self.matched_ns = self.t_ns = 0
        self.since_match = np.zeros(3)  # distance (m), 0, and angle (rad) travelled since the last match
        self.rejected_offset = np.zeros(3)  # of the last match that was rejected, from the odometry
        self.period = 0.0  # mean time between scans, s
        self.unobserved_m = 0.0  # path that may be missing in the odometry after pauses of the recorder
        self.map: LaserLocalMap | None = None
        self.match: ScanMatch | None = None
        self.misses = 0
        self.statistics = MatchStatistics(self.settings.min_score)

    def step(
        self, t_ns: int, points: Floats, odometry_pose: Floats | None, *, complete: bool = False
    ) -> LaserMotion:
        """Process the returns (n, 2) of a scan, and the pose (3,) of the odometry at its time if known.

        Parameters
        ----------
        complete : bool
            Whether odometry is assumed to cover the whole motion since the last scan, however long ago.
        """
        motion = self._predict(t_ns, odometry_pose)
        if not complete:
            self._update_unobserved(t_ns, motion)
        self.odometry_pose, self.t_ns = odometry_pose, t_ns
        self.pose = compose(self.pose, motion)
        if self.map is None:
            self._add_keyframe(points)
            return LaserMotion(self.pose, lift_covariance(np.diag(MIN_MATCH_SIGMA**2), 0.0))
        self.since_match = self.since_match + np.array([np.hypot(*motion[:2]), 0.0, abs(motion[2])])
        distance_m, angle_rad = self.since_match[0] + self.unobserved_m, self.since_match[2]
        due = (
            distance_m >= self.settings.match_distance_m
            or angle_rad >= self.settings.match_angle_rad
            or t_ns - self.matched_ns >= self.settings.match_period_ns
        )
        if not (due or odometry_pose is None):
            return LaserMotion(self.pose, self._motion_covariance(motion))
        found, self.match = self._match(self.map, points)
        self.statistics.match_ratio += self.settings.smoothing * (
            (self.match is not None) - self.statistics.match_ratio
        )
        covariance = self._motion_covariance(motion)
        if found is None or self.match is None:
            return LaserMotion(
                self.pose, covariance, not self._restart(t_ns, points) or odometry_pose is not None
            )
        self._accept_match(t_ns, self.match)
        if self.map.needs_keyframe(self.pose):
            self._update_scale(self.map.last, found)
            self._add_keyframe(points)
        return LaserMotion(self.pose, covariance)

    def _predict(self, t_ns: int, odometry_pose: Floats | None) -> Floats:
        """Return the motion (3,) since the last scan by odometry, else at constant velocity."""
        if odometry_pose is not None and self.odometry_pose is not None:
            return relative_pose(self.odometry_pose, odometry_pose) * np.array(
                [self.scale.factor, self.scale.factor, 1.0]
            )
        if odometry_pose is None and self.t_ns:
            return self.velocity * (t_ns - self.t_ns) / NS
        return np.zeros(3)

    def _update_unobserved(self, t_ns: int, motion: Floats) -> None:
        """Add up the distance that may be missing in the odometry because of a pause of the recorder."""
        elapsed_s = (t_ns - self.t_ns) / NS if self.t_ns else 0.0
        if self.period and elapsed_s > self.settings.pause_periods * self.period:
            self.unobserved_m += max(
                float(np.hypot(*self.velocity[:2]) * elapsed_s - np.hypot(*motion[:2])), 0.0
            )
        elif elapsed_s:
            self.period += (self.settings.smoothing if self.period else 1.0) * (elapsed_s - self.period)

    def _motion_covariance(self, motion: Floats) -> Floats:
        """Return the covariance (6, 6) of a motion (3,) from the last match and the drift of the odometry."""
        added = self.drift.add(motion, self.odometry_pose is not None)
        if self.match is not None:
            return match_covariance(self.match, motion, added)
        contradiction = np.maximum(np.abs(self.rejected_offset), [self.unobserved_m, self.unobserved_m, 0.0])
        return odometry_covariance(motion, added + self.drift.add_contradiction(contradiction))

    def _match(self, local_map: LaserLocalMap, points: Floats) -> tuple[ScanMatch | None, ScanMatch | None]:
        """Match a scan in a window around the prediction, and in a wider one if it does not fit well there.

        If the robot moved so far that it may be outside of both, the best match may be a wrong one. Returns
        the match, and the match fused with odometry: None if there is no match, or if it is rejected.
        """
        radius_m = (
            self.settings.window_m + self.settings.window_path_ratio * self.since_match[0] + self.unobserved_m
        )
        angle_rad = self.settings.window_rad + self.settings.window_turn_ratio * self.since_match[2]
        widest = self.settings.wide_window_m + self.unobserved_m
        scan = downsample(
            interpolate_walls(points, self.beam_spacing, self.settings.walls), self.settings.walls.cell_m
        )
        self.rejected_offset = np.zeros(3)
        used = scan[local_map.covers(scan, self.pose, radius_m)]
        self.statistics.matches += 1
        narrow_match = wide_match = None
        if (
            radius_m <= widest
            and angle_rad <= self.settings.wide_window_rad
            and len(used) >= self.settings.min_points
        ):
            if self.odometry_pose is not None:
                narrow_match = _search(
                    local_map, used, SearchWindow(self.pose, radius_m, angle_rad), self.settings.min_score
                )
            if (
                narrow_match is None
                or narrow_match.score < self.settings.min_relative_score * self.statistics.usual_score
            ):
                min_score = self.settings.min_score if narrow_match is None else narrow_match.score
                wide_match = _search(
                    local_map, used, SearchWindow(self.pose, widest, self.settings.wide_window_rad), min_score
                )
        for match in (wide_match, narrow_match):
            fused = None if match is None else self._fuse_odometry(local_map, match, used)
            if fused is not None:
                return match, fused
        self.statistics.failed += 1
        self.statistics.contradicting += len(used) >= self.settings.min_points
        return narrow_match or wide_match, None

    def _restart(self, t_ns: int, points: Floats) -> bool:
        """Start a new local map if the old one was left without a match; return whether it was."""
        self.misses += 1
        if (
            self.misses < self.settings.restart_scans
            and self.since_match[0] < self.settings.restart_distance_m
            and self.since_match[2] < self.settings.restart_angle_rad
        ):
            return False
        self.map, self.since_match, self.velocity = None, np.zeros(3), np.zeros(3)
        self.matched_ns, self.misses = t_ns, 0
        self._add_keyframe(points)
        return True

    def _fuse_odometry(self, local_map: LaserLocalMap, match: ScanMatch, points: Floats) -> ScanMatch | None:
        """Fuse a match of points (n, 2) with odometry, or with the constant velocity prediction.

        Along a corridor scans do not constrain the position. A match that contradicts the wheels is returned
        unchanged if they slipped, else rejected (None); velocities may change.
        """
        residual, sigma = self._odometry_residual(match)
        weight = np.linalg.inv(np.diag(sigma**2) + match.covariance)
        if residual @ weight @ residual > self.settings.max_chi2:
            if self.odometry_pose is not None and not self._is_wheel_slip(local_map, match, points):
                self.rejected_offset = residual
                return None
            return replace(match, rejected_odometry=residual) if self.inflate_contradictions else match
        self.statistics.usual_score += (
            self.settings.smoothing
            if match.score > self.statistics.usual_score
            else self.settings.score_decay
        ) * (match.score - self.statistics.usual_score)
        gain = np.diag(sigma**2) @ weight
        return replace(
            match,
            pose=self.pose + gain @ residual,
            covariance=gain @ match.covariance,
            odometry_gain=np.eye(3) - gain,
        )

    def _odometry_residual(self, match: ScanMatch) -> tuple[Floats, Floats]:
        """Return the residual (3,) of a match to the odometry, and its sigmas (3,): m, m and rad."""
        distance_m, angle_rad = self.since_match[0], self.since_match[2]
        residual = match.pose - self.pose
        residual[2] = (residual[2] + np.pi) % (2 * np.pi) - np.pi
        if self.odometry_pose is None:
            return residual, np.array(self.settings.velocity_sigma)
        position_sigma = self.settings.odometry_path_ratio * distance_m + self.unobserved_m
        angle_sigma = (
            self.settings.odometry_turn_ratio * angle_rad + self.settings.odometry_path_ratio * distance_m
        )
        return residual, np.array(
            [position_sigma, position_sigma, angle_sigma]
        ) + self.settings.odometry_floor

    def _is_wheel_slip(self, local_map: LaserLocalMap, match: ScanMatch, points: Floats) -> bool:
        """Return whether a match that contradicts the wheels is more plausible than they are.

        It must score as well as usual, most recent scans must have matched (among trees a scan fits
        moderately well in many places), and clearly more points (n, 2) must fit than at the pose from wheels.
        """
        if (
            match.score < self.settings.min_relative_score * self.statistics.usual_score
            or self.statistics.match_ratio < self.settings.min_match_ratio
        ):
            return False
        refined = local_map.field.refine(points, self.pose)
        residual, sigma = self._odometry_residual(refined)
        score_at_wheel_pose = (
            refined.score
            if (residual**2 / sigma**2).sum() <= self.settings.max_chi2
            else local_map.field.score(points, self.pose)
        )
        return len(points) * (match.score - score_at_wheel_pose) >= self.settings.min_points

    def _accept_match(self, t_ns: int, match: ScanMatch) -> None:
        seconds = (t_ns - self.matched_ns) / NS
        if self.matched_ns and seconds > 0:
            self.velocity = relative_pose(self.last_match_pose, match.pose) / seconds
        self.pose = self.last_match_pose = match.pose
        self.matched_ns, self.since_match, self.misses, self.unobserved_m = t_ns, np.zeros(3), 0, 0.0
        self.drift.reset_to_match(match)

    def _update_scale(self, start: LaserKeyframe, match: ScanMatch) -> None:
        """Update the odometry's scale from a match before it is fused with odometry."""
        if self.odometry_pose is None or start.odometry_pose is None:
            return
        measured = relative_pose(start.odometry_pose, self.odometry_pose)[:2]
        actual = relative_pose(start.pose, match.pose)[:2]
        direction = lift_pose(start.pose)[:2, :2] @ actual / max(float(np.hypot(*actual)), 1e-9)
        variance = 2.0 * float(direction @ match.covariance[:2, :2] @ direction)  # of a match at each end
        self.scale.update(float(np.hypot(*measured)), float(np.hypot(*actual)), variance)

    def _add_keyframe(self, points: Floats) -> None:
        """Add a scan to the local map."""
        self.last_match_pose = self.pose
        walls = interpolate_walls(points, self.beam_spacing, self.settings.walls)
        keyframe = LaserKeyframe(self.pose, walls, self.field_of_view.coverage(points), self.odometry_pose)
        previous = self.map.keyframes if self.map else ()
        self.map = LaserLocalMap([*previous, keyframe], self.settings.local_map)


def _search(
    local_map: LaserLocalMap, points: Floats, window: SearchWindow, min_score: float
) -> ScanMatch | None:
    """Return the best match of points (n, 2) in a window, None if it scores below `min_score`."""
    match = local_map.field.search(points, window, min_score)
    return None if match is None or match.score < min_score else local_map.field.inflate_covariance(match)
