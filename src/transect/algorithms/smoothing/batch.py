"""Smoothing of a whole recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import TimeError, TransectError
from transect.geometry import interpolation, se3
from transect.types import Trajectory

from .._gtsam import gtsam
from ..fusion.events import MeasuredPosition
from .factor_graph import (
    ConvergenceError,
    KeyframeGraph,
    SmootherNoise,
    add_common_variance,
    build_graph,
    marginal_covariances,
    poses_of,
    solve,
)
from .imu_preintegration import gyro_path
from .initial_values import initial_poses, path_poses
from .observations import Observations, check_overlap, keyframe_times
from .odometry_paths import CALIBRATION_SIZE, PlanarPath, PosePath
from .position_factors import POSITION_GATE, PositionStatistics, evaluate_positions
from .variance_components import estimate_variance_components
from .wheel_cross_validation import estimate_wheel_factor

MIN_POSITIONS = 3


@dataclass(frozen=True, eq=False)
class SmoothedPath:
    """Keyframes of a smoothed recording."""

    times: Ints  # (n,), ns
    path: PlanarPath | PosePath  # dead reckoning between keyframes
    gyro_path: PosePath | None  # attitude between keyframes, which a planar path lacks
    poses: Floats  # (n, 4, 4)
    covariances: Floats  # (n, 6, 6), translation, then rotation vector, in the poses' frame
    calibration: Floats  # (n, 4), of the wheels; empty without them
    positions: tuple[MeasuredPosition, ...]  # all m positions in this time
    statistics: PositionStatistics  # of all positions, outliers included
    biases: Floats | None = None  # (6,), of the IMU at the middle keyframe, m/s2 then rad/s
    factors: Mapping[str, float] = field(default_factory=dict[str, float])  # on variances, by component
    velocities: Floats | None = None  # (n, 3), m/s, if variance components were estimated

    def at(self, t_ns: Ints) -> tuple[Floats, Floats]:
        """Return poses (m, 4, 4) and covariances (m, 6, 6) at times (m,) from the first keyframe to the last.

        Between keyframes the body moves by dead reckoning and gyroscopes, and their residual at the next
        keyframe is distributed linearly. If variance components were estimated, positions are interpolated by
        cubic splines with the velocities of the keyframes instead: each source may be wrong for a moment.
        """
        around = interpolation.bracket(self.times, t_ns, interpolation.Limits(otherwise="error"))
        left, right = self.poses[around.left], self.poses[around.right]
        start = self.times[around.left]
        motion, motion_to_next = (self._motion(start, each) for each in (t_ns, self.times[around.right]))
        residual = se3.log(se3.invert(left @ motion_to_next) @ right)
        weight = around.fraction[:, None]
        poses = left @ motion @ se3.exp(weight * residual)
        if self.velocities is not None:
            poses[:, :3, 3] = self._spline(around)
        fraction = weight[:, :, None]
        covariances = (1 - fraction) * self.covariances[around.left] + fraction * self.covariances[
            around.right
        ]
        return poses, covariances

    def _spline(self, around: interpolation.Bracket) -> Floats:
        """Return positions (m, 3) on cubic Hermite splines through the keyframes."""
        assert self.velocities is not None
        seconds = ((self.times[around.right] - self.times[around.left]) * 1e-9)[:, None]
        u = around.fraction[:, None]
        p0, p1 = self.poses[around.left, :3, 3], self.poses[around.right, :3, 3]
        v0, v1 = (self.velocities[each] * seconds for each in (around.left, around.right))
        chord = p1 - p0
        return p0 + u * (v0 + u * ((3 * chord - 2 * v0 - v1) + u * (v0 + v1 - 2 * chord)))

    def _motion(self, from_ns: Ints, to_ns: Ints) -> Floats:
        """Return the motions (m, 4, 4) between times (m,) by dead reckoning and gyroscopes."""
        transforms = se3.invert(path_poses(self.path, from_ns)) @ path_poses(self.path, to_ns)
        if self.gyro_path is not None:
            transforms[:, :3, :3] = self.gyro_path.between(from_ns, to_ns)[0][:, :3, :3]
        return transforms

    def trajectory(self, t_ns: Ints, frame: str, child: str) -> Trajectory:
        """Return poses at times (m,) as a trajectory."""
        poses, covariances = self.at(t_ns)
        orientations, positions = se3.to_quaternion(poses)
        return Trajectory(t_ns, positions, orientations, covariances, frame, child)


def smooth(
    observations: Observations,
    noise: SmootherNoise | None = None,
    spacing: float = 0.5,
    *,
    learn: bool = False,
    start: Floats | None = None,
) -> SmoothedPath:
    """Return the most likely path given all measurements.

    Parameters
    ----------
    observations : Observations
        Dead reckoning, and positions and inertial samples if there are any. Without positions the path starts
        at the origin with heading 0.
    noise : SmootherNoise, optional
    spacing : float
        Seconds between keyframes.
    learn : bool
        Whether noise is estimated: with wheels, odometry and IMU by variance components, with wheels and
        positions alone by cross-validation.
    start : (4, 4) array, optional
        T_map_body at the first step of `filter_path`; see `FilterOdometry`.

    Raises
    ------
    TransectError
        If there is no dead reckoning, if positions and dead reckoning have no time in common, or if there are
        too few of them to determine the heading.
    """
    has_components = learn and observations.has_variance_components
    noise = replace(noise or SmootherNoise(), has_components=has_components)
    observations = observations if has_components else observations.without_suspect()
    check_overlap(observations)
    first, last = observations.path_interval
    if last <= first:
        raise TimeError("the dead reckoning has no duration")
    times = keyframe_times(first, last, spacing, observations.times)
    keyframes = build_graph(observations, times, noise)
    positions = keyframes.positions
    if observations.positions:
        count = len(observations.positions)
        _require_positions(len(positions), count, "are in the time of the dead reckoning")
    values = keyframes.values_from_poses(initial_poses(keyframes.path, times, positions, start))
    if has_components:
        try:
            noise, values = estimate_variance_components(observations, noise, times, values)
        except ConvergenceError:  # use the specified noise, without suspect steps
            return smooth(observations, noise, spacing, start=start)
    solution = _solve_without_outliers(observations, noise, times, values)
    if learn and not has_components:
        noise = _cross_validate(observations, noise, solution)
        solution = _solve_without_outliers(observations, noise, times, solution.values)
    return _read_solution(observations, solution, noise)


@dataclass(frozen=True, eq=False)
class _Solution:
    keyframes: KeyframeGraph
    values: Any  # gtsam.Values
    covariances: Floats  # (n, 6, 6), of the poses
    positions: Sequence[MeasuredPosition]
    used: Mask  # positions that are no outliers
    statistics: PositionStatistics


def _read_solution(observations: Observations, solution: _Solution, noise: SmootherNoise) -> SmoothedPath:
    keyframes, values = solution.keyframes, solution.values
    extract = gtsam().utilities.extractVectors
    needs_gyro = keyframes.inertial and isinstance(keyframes.path, PlanarPath)
    biases = None
    if keyframes.inertial:
        middle = gtsam().symbol("b", keyframes.first + len(keyframes.times) // 2)
        biases = np.asarray(values.atConstantBias(middle).vector())
    return SmoothedPath(
        keyframes.times,
        keyframes.path,
        gyro_path(observations.inertial) if needs_gyro else None,
        poses_of(values),
        add_common_variance(solution.covariances, observations),
        extract(values, "c").reshape(-1, CALIBRATION_SIZE),
        tuple(solution.positions),
        solution.statistics,
        biases,
        noise.factors,
        extract(values, "v").reshape(-1, 3) if noise.has_components else None,
    )


def _require_positions(usable: int, given: int, condition: str) -> None:
    if usable < MIN_POSITIONS:
        raise TransectError(
            "there are too few positions to smooth with",
            why=f"{usable} of {given} {condition}, {MIN_POSITIONS} are needed",
        )


def _cross_validate(observations: Observations, noise: SmootherNoise, solution: _Solution) -> SmootherNoise:
    """Return the noise with that of wheels by cross-validation, if no other sensor measures the motion."""
    others = observations.inertial or observations.motion or solution.keyframes.wheels is None
    if not observations.positions or others:
        return noise
    inliers = replace(observations, positions=_choose(solution.positions, solution.used))
    factor = estimate_wheel_factor(inliers, noise, solution.keyframes, solution.values)
    return replace(noise, wheels=noise.wheels.scale_by(float(np.sqrt(factor))))


def _choose(positions: Sequence[MeasuredPosition], used: Mask) -> list[MeasuredPosition]:
    return [position for position, good in zip(positions, used, strict=True) if good]


def _solve_without_outliers(
    observations: Observations, noise: SmootherNoise, times: Ints, values: Any
) -> _Solution:
    """Solve, reject positions that do not fit the others, and solve again until none is rejected."""
    keyframes = build_graph(observations, times, noise)
    positions = keyframes.positions
    inside = [each for each in observations.positions if times[0] <= each.t_ns <= times[-1]]
    used = np.ones(len(positions), dtype=np.bool_)
    while True:
        values = solve(keyframes, values)
        covariances = marginal_covariances(keyframes, values)
        statistics = evaluate_positions(positions, used, poses_of(values), covariances)
        is_inlier = used & (statistics.nis <= POSITION_GATE)
        if (is_inlier == used).all():
            statistics = replace(statistics, used=used)
            return _Solution(keyframes, values, covariances, inside, used, statistics)
        used = is_inlier
        _require_positions(int(used.sum()), len(used), "fit the dead reckoning")
        inliers = replace(observations, positions=_choose(inside, used))
        keyframes = build_graph(inliers, times, noise)
