"""Measured positions as factors of the nearest keyframe, and their statistics in the solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.geometry import interpolation, rotations, se3
from transect.types import Record

from ..fusion.events import MeasuredPosition
from ..fusion.gnss_noise import CORRELATION_TIME_S
from ..fusion.innovation_gate import GATE, SensorTally, chi2_quantile, minimal_detectable_error
from ..fusion.position_inputs import POSITION_INPUTS
from ..fusion.position_noise import POSITION_NOISE
from .odometry_paths import PlanarPath, PosePath

POSITION_GATE = 16.27
"""99.9 % quantile of the chi-squared distribution with 3 degrees of freedom."""
INTERPOLATION_ERROR = 0.05
"""Relative error of the motion between a keyframe and a position near it."""


@dataclass(frozen=True, eq=False)
class KeyframePositions:
    """m measured positions of points that are fixed to the body at keyframes."""

    keyframe: Ints  # (m,), index of the nearest keyframe
    lever_arm: Floats  # (m, 3), of the point from the body at that keyframe, m
    position: Floats  # (m, 3), m
    sigma: Floats  # (m, 3), m

    def __len__(self) -> int:
        return len(self.keyframe)

    def predict(self, poses: Floats, covariances: Floats) -> tuple[Floats, Floats]:
        """Return the points (m, 3) by poses (n, 4, 4) of the keyframes, and their covariances (m, 3, 3).

        `covariances` (n, 6, 6) are of translation, then rotation vector, in the poses' frame.
        """
        return transform_points(poses[self.keyframe], covariances[self.keyframe], self.lever_arm)


@dataclass(frozen=True, eq=False)
class PositionStatistics:
    """Consistency of m positions with the solution."""

    nis: Floats  # (m,), of each position against all others, 3 degrees of freedom
    used: NDArray[np.bool_]  # (m,), false for outliers
    detectable: Floats  # (m,), m, minimal detectable error in the worst direction

    def part(self, part: slice) -> PositionStatistics:
        """Return those of some positions."""
        return PositionStatistics(self.nis[part], self.used[part], self.detectable[part])

    def __str__(self) -> str:
        if not len(self.nis):
            return "no positions"
        below = np.mean(self.nis <= chi2_quantile(GATE.adaptation_quantile, 3))
        rejected = np.count_nonzero(~self.used)
        median, worst = np.median(self.detectable), np.max(self.detectable)
        return (
            f"{len(self.nis)} positions, {below:.1%} of their NIS below the 95 % quantile, "
            f"{rejected} rejected; an error of {median:.3g} m (at worst {worst:.3g} m) "
            f"is detected with a probability of {GATE.power:g}"
        )


def join_statistics(parts: Sequence[PositionStatistics]) -> PositionStatistics:
    """Concatenate statistics."""
    if not parts:
        return PositionStatistics(np.zeros(0), np.zeros(0, np.bool_), np.zeros(0))
    names = [each.name for each in fields(PositionStatistics)]
    return PositionStatistics(*(np.concatenate([getattr(each, name) for each in parts]) for name in names))


def evaluate_positions(
    positions: KeyframePositions, used: NDArray[np.bool_], poses: Floats, covariances: Floats
) -> PositionStatistics:
    """Test each position against the solution by all others.

    A position that was used has attracted the solution. Its residual has the covariance ``R - P``. The NIS
    of its innovation, had it been left out, is that of ``R (R - P)^-1 r`` with covariance ``R (R - P)^-1 R``.
    """
    predicted, P = positions.predict(poses, covariances)
    R = positions.sigma[:, :, None] ** 2 * np.eye(3)
    # With robust weights P may exceed R a little; at least a hundredth of the noise remains.
    residual_covariance = np.where(used[:, None, None], _bound_eigenvalues(R - P, 0.01 * R), R + P)
    residual = positions.position - predicted
    nis = np.einsum("ni,ni->n", residual, np.linalg.solve(residual_covariance, residual[..., None])[..., 0])
    innovation_covariance = np.where(
        used[:, None, None], R @ np.linalg.solve(residual_covariance, R), residual_covariance
    )
    detectable = np.array([minimal_detectable_error(each) for each in innovation_covariance])
    return PositionStatistics(nis, used, detectable)


def record_innovations(
    positions: Sequence[MeasuredPosition], statistics: PositionStatistics, t_ns: int
) -> Record | None:
    """Return the statistics by sensor with the keys of the filter; None if there were no positions."""
    values: dict[str, Any] = {}
    sensors = np.array([each.sensor for each in positions])
    for name, tally in tally_positions(positions, statistics).items():
        values[f"{name}_count"] = float(tally.count)
        values[f"{name}_below"] = float(tally.below)
        values[f"{name}_refused"] = float(tally.rejected)
        values[f"{name}_nis"] = tally.nis
        values[f"{name}_detectable"] = float(np.max(statistics.detectable[sensors == name]))
    return Record(values, t_ns=t_ns) if values else None


def tally_positions(
    positions: Sequence[MeasuredPosition], statistics: PositionStatistics
) -> dict[str, SensorTally]:
    """Return the number of accepted and rejected positions by sensor."""
    sensors = np.array([each.sensor for each in positions])
    tallies: dict[str, SensorTally] = {}
    for name in sorted(set(sensors.tolist())):
        of_sensor = sensors == name
        nis = statistics.nis[of_sensor]
        below = np.count_nonzero(nis <= chi2_quantile(GATE.adaptation_quantile, 3))
        rejected = np.count_nonzero(~statistics.used[of_sensor])
        tallies[name] = SensorTally(len(nis), int(below), int(rejected), float(np.mean(nis)) / 3)
    return tallies


def _bound_eigenvalues(matrices: Floats, floor: Floats) -> Floats:
    """Return symmetric matrices (m, 3, 3) with eigenvalues of at least the smallest on `floor`'s diagonal."""
    values, axes = np.linalg.eigh(matrices)
    bounds = np.min(np.diagonal(floor, axis1=1, axis2=2), axis=1)[:, None]
    return np.einsum("nij,nj,nkj->nik", axes, np.maximum(values, bounds), axes)


def transform_points(poses: Floats, covariances: Floats, lever_arms: Floats) -> tuple[Floats, Floats]:
    """Return points (m, 3) at `lever_arms` (m, 3) of bodies, and their covariances (m, 3, 3)."""
    offsets = np.einsum("nij,nj->ni", poses[:, :3, :3], lever_arms)
    J = np.concatenate([np.tile(np.eye(3), (len(lever_arms), 1, 1)), -rotations.skew(offsets)], axis=2)
    return poses[:, :3, 3] + offsets, J @ covariances @ np.swapaxes(J, -1, -2)


def assign_to_keyframes(
    positions: Sequence[MeasuredPosition],
    times: Ints,
    path: PlanarPath | PosePath,
    along: Floats | None = None,
    *,
    widen: bool = True,
) -> KeyframePositions:
    """Assign positions to the keyframes nearest to them in time, moved along the path.

    Parameters
    ----------
    times : (n,)
        Of the keyframes, ns.
    along : (n - 1,), optional
        Sigma of the distance between keyframes, m, if the path is that of wheels.
    widen : bool
        Whether sigmas of correlated fixes are increased so that all of them together count as one.
    """
    inside = [each for each in positions if times[0] <= each.t_ns <= times[-1]]
    at = np.array([each.t_ns for each in inside], dtype=np.int64)
    if not inside:
        return KeyframePositions(np.zeros(0, np.int64), *(np.zeros((0, 3)) for _ in range(3)))
    near = interpolation.nearest_index(times, at)
    lever_arms = np.array([each.lever_arm for each in inside])
    T_near_there = _motion_between(path, times[near], at)
    distance = np.linalg.norm(T_near_there[:, :3, 3], axis=1)
    if along is not None:
        interval = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(along) - 1)
        fraction = np.abs(at - times[near]) / np.diff(times)[interval]
        distance = np.hypot(distance, fraction * along[interval] / INTERPOLATION_ERROR)
    sigma = np.array([each.std for each in inside])
    if widen:
        correlated = [np.zeros(3) if each.correlated_std is None else each.correlated_std for each in inside]
        sigma = np.hypot(sigma * _correlation_factors(inside), correlated)
    else:
        sigma = np.minimum(sigma, POSITION_INPUTS.unknown_height_std_m)
    return KeyframePositions(
        near,
        se3.apply(T_near_there, lever_arms),
        np.array([each.position for each in inside]),
        np.hypot(sigma, INTERPOLATION_ERROR * distance[:, None]),
    )


def common_variance(positions: Sequence[MeasuredPosition], *, imu_only: bool) -> Floats:
    """Return the variance (3,) of the error that all fixes have in common, m2, and their sigmas lack.

    `imu_only`: an IMU is the only other sensor, so that sigmas were not increased for correlation.
    """
    if not positions:
        return np.zeros(3)
    return np.median([_common_variance_of(each, imu_only=imu_only) for each in positions], axis=0)


def _common_variance_of(position: MeasuredPosition, *, imu_only: bool) -> Floats:
    stated = np.zeros(3)
    if imu_only:
        std = np.minimum(position.std, POSITION_INPUTS.unknown_height_std_m)
        stated = POSITION_NOISE.correlated_ratio * std**2
    correlated = position.correlated_std
    if correlated is not None:
        return np.array([*correlated[:2] ** 2, correlated[2] ** 2 if position.has_height else stated[2]])
    return stated if not position.white or not position.has_height else np.zeros(3)


def _motion_between(path: PlanarPath | PosePath, from_ns: Ints, to_ns: Ints) -> Floats:
    if isinstance(path, PosePath):
        return path.between(from_ns, to_ns)[0]
    x, y, heading = path.between(from_ns, to_ns).motion.T
    orientation = rotations.quaternion_from_euler("z", heading[:, None])
    return se3.from_quaternion(orientation, np.column_stack([x, y, np.zeros_like(x)]))


def _correlation_factors(positions: Sequence[MeasuredPosition]) -> Floats:
    """Return factors (m, 3) on sigmas by which n fixes with one common error count as one, not as n."""
    at = np.array([each.t_ns for each in positions])
    period = np.median(np.diff(at)) * 1e-9 if len(at) > 1 else CORRELATION_TIME_S
    factor = np.sqrt(max(1.0, 2 * CORRELATION_TIME_S / max(float(period), 1e-3)))
    factors = np.where([each.white for each in positions], 1.0, factor)
    has_height = [each.has_height for each in positions]
    return np.column_stack([factors, factors, np.where(has_height, factors, 1.0)])
