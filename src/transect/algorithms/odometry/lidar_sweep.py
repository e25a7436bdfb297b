"""Registration of a moving lidar's scan with continuous motion: pose and motion during the scan, 18 unknowns.

A scan of a vibrating sensor moves differently than the mean motion since the last scan. Deskewed by the
latter, its sides are displaced by centimetres in height. Ground constrains height much more than horizontal
motion, so the whole scan shifts horizontally by centimetres. The scan is therefore cut into slices by time.
Each slice has its own normal equations, from which the rotation rate during the scan is estimated, including
its changes: wheels on stones excite several oscillations per second. The velocity is tied to the mean
velocity since the last scan by the usual accelerations.

At grazing incidence only surfaces that face the sensor are visible. The ground behind each rise is occluded,
so that distant ground appears too high, and the scan is placed too far ahead: by 3 mm per step on rough
ground, a scale error of 0.1 %. Points at grazing incidence are therefore excluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.geometry import rotations, se3

from ..clouds.deskewing import transform_each
from ..registration.gicp import (
    COVARIANCE_NEIGHBOURS,
    AlignmentLimits,
    AlignmentResult,
    PreparedCloud,
    downsample_with_incidence,
    estimate_covariances,
)

MIN_INCIDENCE_SINE = 0.13  # sine of the smallest angle between beam and surface, 7.5 degrees
MOTION_ORDER = 3  # highest power of time in the motion about the middle of a scan
FREE_COEFFICIENTS = np.flatnonzero([[True] * 6] * 2 + [[False] * 3 + [True] * 3] * (MOTION_ORDER - 1))
"""Unknowns among the coefficients (MOTION_ORDER + 1, 6): of high powers only rotations are observable."""


@dataclass(frozen=True)
class LidarSweepSettings:
    """Settings of the registration with continuous motion."""

    slices: int = 16  # with equal numbers of points: short enough that each is rigid
    min_slice_points: int = 20  # the steepest points of a slice are always used
    min_incidence_sine: float = MIN_INCIDENCE_SINE
    acceleration_sigma: tuple[float, float] = (0.5, 1.0)  # m/s2 and rad/s2, since the last scan
    rotation_change_sigma: tuple[float, float] = (0.5, 8.0)  # rad/s2 and rad/s3, of quadratic and cubic terms
    variance_inflation: float = 1000.0  # since the errors of points are correlated (see `MotionNoise`)
    full_steps: int = 5  # later ones decrease, since correspondences alternate
    step_decay: float = 0.7
    damping: float = 1e-3  # of unconstrained motions, as in small_gicp


SWEEP = LidarSweepSettings()


class AlignmentTarget(Protocol):
    """Map that a scan is aligned to."""

    def align(
        self, scan: PreparedCloud, guess: ArrayLike, limits: AlignmentLimits | None = None
    ) -> AlignmentResult: ...


@dataclass(frozen=True, eq=False)
class ScanSlice:
    """Downsampled points of a time interval of a scan, with the mean time after its middle."""

    cloud: PreparedCloud
    seconds: float


@dataclass(frozen=True, eq=False)
class PreviousScan:
    """Pose (4, 4) of the last scan, and the time since its middle, s."""

    pose: Floats
    seconds: float

    def velocity_to(self, pose: Floats) -> Floats:
        """Return the mean velocity (6,) since then, in the sensor's axes."""
        return se3.log(se3.invert(self.pose) @ pose) / self.seconds


@dataclass(frozen=True, eq=False)
class ScanTrajectory:
    """Motion of a sensor during a scan."""

    pose: Floats  # T_target_sensor (4, 4) at the middle of the scan
    motion: Floats  # (MOTION_ORDER, 6) coefficients of powers of time, about the middle in the sensor's axes
    span: tuple[float, float]  # s from the middle, of validity; constant velocity outside
    half_ns: int  # from the scan's time to its middle

    def poses_at(self, offset_ns: Ints) -> Floats:
        """Return ``T_target_sensor`` (n, 4, 4) at times (n,) in ns after the scan's time."""
        return self.pose @ se3.exp(self._twists(offset_ns))

    def deskew(self, points: Floats, offset_ns: Ints) -> Floats:
        """Return points (n, 3), measured at times (n,) in ns after the scan's time, as at that time."""
        [start] = self.poses_at(np.zeros(1, np.int64))
        return se3.apply(se3.invert(start) @ self.pose, transform_each(points, self._twists(offset_ns)))

    def _twists(self, offset_ns: Ints) -> Floats:
        """Return the motion (n, 6) of the sensor since the middle."""
        seconds = (offset_ns - self.half_ns) / NS
        clipped = np.clip(seconds, *self.span)
        return _time_powers(clipped) @ self.motion + (seconds - clipped)[:, None] * self.motion[0]


@dataclass(frozen=True, eq=False)
class ScanFit:
    """A scan aligned to its target."""

    alignment: AlignmentResult  # of the whole scan at its middle
    motion: Floats  # (MOTION_ORDER, 6) as of `ScanTrajectory`
    clouds: Sequence[PreparedCloud]  # slices
    seconds: Floats  # (k,) of the slices, from the middle
    corrections: Floats  # (k, 4, 4) residual motions of the slices after deskewing

    @property
    def velocity(self) -> Floats:
        """(6,) at the middle."""
        return self.motion[0]

    def trajectory(self, half_ns: int) -> ScanTrajectory:
        """Return the motion during the scan, whose middle is `half_ns` after its time."""
        span = float(self.seconds[0]), float(self.seconds[-1])
        return ScanTrajectory(self.alignment.T_target_source, self.motion, span, half_ns)

    @property
    def points(self) -> Floats:
        """(n, 3) deskewed to the middle."""
        return np.concatenate(
            [se3.apply(T, c.points) for T, c in zip(self.corrections, self.clouds, strict=True)]
        )

    @property
    def inlier_ratio(self) -> float:
        """Ratio of points with a correspondence."""
        return self.alignment.inliers / max(sum(len(cloud) for cloud in self.clouds), 1)

    def is_accepted(self, min_inlier_ratio: float) -> bool:
        """Return whether it converged with at least this inlier ratio."""
        return self.alignment.converged and self.inlier_ratio >= min_inlier_ratio


def slice_scan(
    points: Floats, seconds: Floats | None, voxel: float, settings: LidarSweepSettings = SWEEP
) -> list[ScanSlice]:
    """Return slices of points (n, 3) by their times (n,) from the middle, s; one slice without times.

    Points at grazing incidence are excluded as long as enough remain, and slices with too few points unless
    all have too few.
    """
    times = np.zeros(len(points)) if seconds is None else seconds
    order = np.argsort(times, kind="stable")
    parts = [each for each in np.array_split(order, 1 if seconds is None else settings.slices) if len(each)]
    downsampled = [downsample_with_incidence(points[rows], voxel) for rows in parts]
    clouds = [estimate_covariances(points[select_steep(sine, settings)]) for points, sine in downsampled]
    slices = [ScanSlice(cloud, float(times[rows].mean())) for cloud, rows in zip(clouds, parts, strict=True)]
    return [each for each in slices if len(each.cloud) > COVARIANCE_NEIGHBOURS] or slices


def select_steep(sine: Floats, settings: LidarSweepSettings = SWEEP) -> Mask:
    """Return which points (n,) of a slice are not at grazing incidence; the steepest ones always."""
    return sine >= np.sort(sine)[-settings.min_slice_points :][:1].min(initial=settings.min_incidence_sine)


def motions_at(motion: Floats, seconds: Floats) -> Floats:
    """Return motions (k, 4, 4) from the middle to times (k,) in s, by coefficients (MOTION_ORDER, 6)."""
    return se3.exp(_time_powers(seconds) @ motion)


def _time_powers(seconds: Floats) -> Floats:
    """Return powers 1 to MOTION_ORDER of times (n,), (n, MOTION_ORDER)."""
    return seconds[:, None] ** np.arange(1, MOTION_ORDER + 1)


def fit_scan(
    target: AlignmentTarget,
    slices: Sequence[ScanSlice],
    guess: Floats,
    velocity: Floats,
    previous: PreviousScan,
    limits: AlignmentLimits,
    settings: LidarSweepSettings = SWEEP,
) -> ScanFit:
    """Estimate the pose at the middle of a scan and the motion during it by Gauss-Newton.

    Parameters
    ----------
    slices : sequence of ScanSlice
        Deskewed to the middle.
    guess : (4, 4)
        Initial ``T_target_scan``.
    velocity : (6,)
        Velocity that the slices were deskewed with, in the sensor's axes.
    """
    initial_motion = np.zeros((MOTION_ORDER, 6))
    initial_motion[0] = velocity
    pose, motion, single_step = guess, initial_motion, replace(limits, iterations=1)
    clouds, seconds = [each.cloud for each in slices], np.array([each.seconds for each in slices])
    corrections = np.tile(np.eye(4), (len(slices), 1, 1))
    converged, iteration, equations = False, 0, NormalEquations.of((), seconds[:0])
    while not converged and iteration < limits.iterations:
        alignments = [
            target.align(cloud, T, single_step) for cloud, T in zip(clouds, pose @ corrections, strict=True)
        ]
        equations = NormalEquations.of(alignments, seconds)
        decay = settings.step_decay ** max(iteration - settings.full_steps, 0)
        step = equations.step(previous, pose, motion, settings) * decay
        pose, motion = pose @ se3.exp(step[0]), motion + step[1:]
        corrections = motions_at(motion - initial_motion, seconds)
        translation, rotation = np.linalg.norm(step[0, :3]), np.linalg.norm(step[0, 3:])
        converged = bool(translation < limits.translation_m and rotation < limits.rotation_rad)
        iteration = iteration + 1
    hessian, gradient = equations.hessian[:6, :6], equations.gradient[:6]
    alignment = AlignmentResult(
        orthonormalise(pose), converged, iteration, equations.inliers, equations.error, hessian, gradient
    )
    return ScanFit(alignment, motion, clouds, seconds, corrections)


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Normal equations of all slices: half the sum of squares, its Hessian (18, 18) and gradient (18,)."""

    hessian: Floats
    gradient: Floats
    error: float
    inliers: int

    @classmethod
    def of(cls, alignments: Sequence[AlignmentResult], seconds: Floats) -> NormalEquations:
        """Return the sum over slices, measured at times (k,) in s after the middle."""
        powers = seconds ** np.arange(MOTION_ORDER + 1)[:, None]
        hessians = np.array([each.hessian for each in alignments]).reshape(-1, 6, 6)
        gradients = np.array([each.gradient for each in alignments]).reshape(-1, 6)
        size = 6 * (MOTION_ORDER + 1)
        hessian = np.einsum("is,js,skl->ikjl", powers, powers, hessians).reshape(size, size)
        error, inliers = sum(each.error for each in alignments), sum(each.inliers for each in alignments)
        return cls(
            hessian[FREE_COEFFICIENTS[:, None], FREE_COEFFICIENTS],
            (powers @ gradients).reshape(size)[FREE_COEFFICIENTS],
            error,
            inliers,
        )

    def step(
        self, previous: PreviousScan, pose: Floats, motion: Floats, settings: LidarSweepSettings
    ) -> Floats:
        """Return the step (MOTION_ORDER + 1, 6) to the best pose and motion.

        The velocity is tied to the mean one since the last scan; changes of the rotation rate have a prior.
        """
        size, rest = len(FREE_COEFFICIENTS), len(FREE_COEFFICIENTS) - 12
        sigma = np.repeat(settings.acceleration_sigma, 3) * previous.seconds / 2
        velocity_jacobian = (
            np.hstack([-np.eye(6) / previous.seconds, np.eye(6), np.zeros((6, rest))]) / sigma[:, None]
        )
        velocity_residual = (motion[0] - previous.velocity_to(pose)) / sigma
        rotation_weights = np.concatenate(
            [np.zeros(12), np.repeat(settings.rotation_change_sigma, 3) ** -2.0]
        )
        weight = settings.variance_inflation * 2 * self.error / max(3 * self.inliers - size, 1)
        hessian = (
            self.hessian
            + weight * (velocity_jacobian.T @ velocity_jacobian + np.diag(rotation_weights))
            + settings.damping * np.eye(size)
        )
        coefficients = np.concatenate([np.zeros(6), motion.ravel()])[FREE_COEFFICIENTS]
        gradient = self.gradient + weight * (
            velocity_jacobian.T @ velocity_residual + rotation_weights * coefficients
        )
        step = np.zeros(6 * (MOTION_ORDER + 1))
        step[FREE_COEFFICIENTS] = np.linalg.solve(hessian, -gradient)
        return step.reshape(MOTION_ORDER + 1, 6)


def orthonormalise(transform: Floats) -> Floats:
    """Return a transform (4, 4) with an orthonormal rotation: rounding errors double with each product."""
    return se3.from_matrix(rotations.nearest_rotation(transform[:3, :3]), transform[:3, 3])
