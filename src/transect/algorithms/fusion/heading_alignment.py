"""Initial heading of a body with an IMU and positions alone.

Gravity gives roll and pitch. The specific force without gravity, integrated twice, is the body's path in
axes that are level but turned by an unknown heading; positions measure the same path in the axes of the map::

    p(t) = p0 + v0 t + Rz(heading) s(t) + errors

Cosine and sine of the heading, p0 and v0 are estimated by linear least squares, together with the errors of
s(t), which are linear, too: a wrong tilt (acceleration during levelling looks like a slope), and biases of
accelerometers and gyroscopes. No axis needs to point forward, so a start in reverse is possible. If nothing
accelerates for long, the body is assumed to drive along its x axis, if that is known to be forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import rotations, se3

from .events import ImuSample, MeasuredPosition


@dataclass(frozen=True)
class HeadingAlignmentSettings:
    """Data that are needed, priors of the errors, and the fallback to the course over ground."""

    min_duration_s: float = 2.0  # of positions
    min_positions: int = 6
    max_heading_sigma_rad: float = 0.2  # for the filter to start
    # Priors (one sigma): of the force of a wrong tilt (a car that starts during levelling) and of biases.
    tilt_force_sigma: float = 0.7  # m/s2
    accel_bias_sigma: float = 0.2  # m/s2
    gyro_bias_sigma: float = 0.01  # rad/s
    rest_gyro_bias_sigma: float = 1e-3  # rad/s, after the mean rate at rest was subtracted
    max_rest_rate: float = 0.02  # rad/s in the first half second, for the mean rate to be a bias
    # Part of a fix's sigma that is uncorrelated; the rest is an offset over some seconds.
    white_ratio: float = 0.5
    min_path_std_m: float = 0.1  # doubly integrated accelerations have larger errors than this
    # Course over ground
    course_after_s: float = 15.0  # without accelerations that make the heading observable
    course_durations_s: tuple[float, ...] = (4.0, 8.0, 16.0)
    min_course_sigmas: float = 8.0  # length of a path, in sigmas of the positions, to have a direction
    min_reverse_chi2: float = 9.0  # by which reverse must fit better than forwards


ALIGNMENT = HeadingAlignmentSettings()
# Unknowns, two each: p0, v0, cosine and sine of the heading, force by tilt, biases of force and rate.
UNKNOWN_COUNT = 12
POSITION, VELOCITY, HEADING, TILT = slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8)


@dataclass(frozen=True, eq=False)
class HeadingAlignment:
    """First pose and velocity."""

    t_ns: int
    pose: Floats  # (4, 4), T_map_body
    velocity: Floats  # (3,), m/s in the map
    gyro_bias: Floats  # (3,), rad/s in the body
    heading_std: float  # rad
    by_course: bool  # whether the heading is the course over ground

    def __str__(self) -> str:
        if self.by_course:
            return "initial heading: course over ground; without accelerations x is assumed to be forward"
        return f"initial heading: by accelerations, sigma {np.degrees(self.heading_std):.2g} deg"


def align_by_acceleration(
    inertial: Sequence[ImuSample],
    positions: Sequence[MeasuredPosition],
    R_level_body: Floats,
    gravity: float,
    *,
    forward_is_known: bool,
) -> HeadingAlignment | None:
    """Return the pose at the first inertial sample; None if its heading is not observable yet.

    Parameters
    ----------
    R_level_body : (3, 3) array
        At that sample, with any heading.
    gravity : float
        m/s2
    forward_is_known : bool
        Whether the x axis is forward; else the course does not determine the heading.
    """
    settings = ALIGNMENT
    if not inertial:
        return None
    used = [each for each in positions if inertial[0].t_ns <= each.t_ns <= inertial[-1].t_ns]
    if len(used) < settings.min_positions or (used[-1].t_ns - used[0].t_ns) / NS < settings.min_duration_s:
        return None
    bias = _gyro_bias_at_rest(inertial)
    path = _integrate_imu(inertial, used, R_level_body, bias, gravity)
    fit = _fit(path)
    first_ns = inertial[0].t_ns
    if fit.heading_std < settings.max_heading_sigma_rad:
        return _make_alignment(first_ns, path, fit, fit.heading, fit.heading_std, bias, R_level_body, gravity)
    if not forward_is_known or path.seconds[-1] - path.seconds[0] < settings.course_after_s:
        return None
    course = _course_heading(path)
    if course is None:
        return None
    reverse = course + np.pi
    is_reverse = _cost(path, reverse) < _cost(path, course) - settings.min_reverse_chi2
    heading = reverse if is_reverse else course
    return _make_alignment(first_ns, path, fit, heading, np.inf, bias, R_level_body, gravity)


@dataclass(frozen=True, eq=False)
class _InertialPath:
    """Path by the IMU at the times of m positions."""

    seconds: Floats  # (m,)
    positions: Floats  # (m, 3), measured
    sigma: Floats  # (m,)
    integrated: Floats  # (m, 3), by the IMU, lever arms included
    headings: Floats  # (m,), by the IMU
    # (m, 4): double integrals of biases in level axes that turn with the body. Those of accelerometers along
    # and across their first direction (s2), then those of gyroscopes (m s/rad).
    bias_effect: Floats
    gyro_bias_sigma: float


@dataclass(frozen=True, eq=False)
class _AlignmentFit:
    unknowns: Floats  # (12,)
    heading: float  # rad
    heading_std: float


def _gyro_bias_at_rest(inertial: Sequence[ImuSample]) -> Floats:
    """Return the mean rate (3,) of the first half second if it may be a bias, else 0."""
    rates = np.array([each.rate for each in inertial if each.t_ns <= inertial[0].t_ns + NS // 2])
    mean, max_rate = rates.mean(axis=0), ALIGNMENT.max_rest_rate
    return mean if np.abs(mean).max() < max_rate and rates.std(axis=0).max() < max_rate else np.zeros(3)


def _integrate_imu(
    inertial: Sequence[ImuSample],
    positions: Sequence[MeasuredPosition],
    R_level_body: Floats,
    bias: Floats,
    gravity: float,
) -> _InertialPath:
    """Return the path by an IMU that starts at rest at the origin, at the times of positions."""
    settings = ALIGNMENT
    at = (np.array([each.t_ns for each in inertial], np.int64) - inertial[0].t_ns) / NS
    force, rate = (np.array([getattr(each, name) for each in inertial]) for name in ("force", "rate"))
    step = np.diff(at)[:, None]
    turns = rotations.matrix_from_rotation_vector(((rate[1:] + rate[:-1]) / 2 - bias) * step)
    R = R_level_body @ np.concatenate([np.eye(3)[None], _cumulative_product(turns)])
    acceleration = np.einsum("nij,nj->ni", R, force) - gravity * np.array([0.0, 0.0, 1.0])
    path = _integrate(_integrate(acceleration, step), step)
    heading = np.unwrap(np.arctan2(R[:, 1, 0], R[:, 0, 0]))
    relative_heading = heading - heading[0]
    direction = np.column_stack([np.cos(relative_heading), np.sin(relative_heading)])
    by_force = _integrate(_integrate(direction, step), step)
    bias_effect = np.column_stack([by_force, gravity * _integrate(by_force, step)])
    when = (np.array([each.t_ns for each in positions], np.int64) - inertial[0].t_ns) / NS
    near = np.clip(np.searchsorted(at, when), 0, len(at) - 1)
    offsets = np.einsum("nij,nj->ni", R[near], np.array([each.lever_arm for each in positions]))
    integrated = np.column_stack([np.interp(when, at, each) for each in path.T]) + offsets
    ratios = np.array([1.0 if each.white else settings.white_ratio for each in positions])
    stds = np.array([each.std[:2].max() for each in positions])
    return _InertialPath(
        when,
        np.array([each.position for each in positions]),
        np.maximum(ratios * stds, settings.min_path_std_m),
        integrated,
        np.interp(when, at, heading),
        np.column_stack([np.interp(when, at, each) for each in bias_effect.T]),
        settings.rest_gyro_bias_sigma if bias.any() else settings.gyro_bias_sigma,
    )


def _integrate(values: Floats, step: Floats) -> Floats:
    """Return the cumulative trapezoidal integral (n, k) of values (n, k) with intervals (n - 1, 1)."""
    parts = (values[1:] + values[:-1]) / 2 * step
    return np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(parts, axis=0)])


def _cumulative_product(turns: Floats) -> Floats:
    """Return the products (n, 3, 3) of the first up to each of n rotations, in log2(n) rounds."""
    result, offset = turns.copy(), 1
    while offset < len(result):
        result[offset:] = result[:-offset] @ result[offset:]
        offset *= 2
    return result


def _equations(path: _InertialPath) -> tuple[Floats, Floats]:
    """Return matrix (2 m + 6, 12) and right-hand side of the whitened least-squares problem."""
    t, (x, y), m = path.seconds, path.integrated[:, :2].T, len(path.seconds)
    a, b, c, d = path.bias_effect.T
    one, zero = np.ones(m), np.zeros(m)
    east = np.column_stack([one, zero, t, zero, x, -y, t**2 / 2, zero, a, -b, d, c])
    north = np.column_stack([zero, one, zero, t, y, x, zero, t**2 / 2, b, a, -c, d])
    A = np.concatenate([east, north]) / np.tile(path.sigma, 2)[:, None]
    sigmas = [ALIGNMENT.tilt_force_sigma, ALIGNMENT.accel_bias_sigma, path.gyro_bias_sigma]
    prior_sigmas = np.repeat(sigmas, 2)
    priors = np.eye(UNKNOWN_COUNT)[-len(prior_sigmas) :] / prior_sigmas[:, None]
    right = np.concatenate([path.positions[:, 0], path.positions[:, 1]]) / np.tile(path.sigma, 2)
    return np.concatenate([A, priors]), np.concatenate([right, np.zeros(len(prior_sigmas))])


def _fit(path: _InertialPath) -> _AlignmentFit:
    A, b = _equations(path)
    unknowns: Floats = np.linalg.lstsq(A, b, rcond=None)[0].astype(np.float64)
    c, s = unknowns[HEADING]
    size = float(np.hypot(c, s))
    covariance = np.linalg.pinv(A.T @ A)[HEADING, HEADING]
    noise = max(1.0, float(np.sum((A @ unknowns - b) ** 2)) / max(len(b) - UNKNOWN_COUNT, 1))
    radial = np.array([c, s]) / max(size, 1e-9)
    tangential = np.array([-radial[1], radial[0]])
    # Cosine and sine have the norm 1. If the norm differs by more than its sigma allows, noise was fitted.
    # A norm that is certain and wrong is a wrong unit of the IMU, which the fusion will show.
    # Without accelerations the variances are 0, up to rounding.
    variances = [float(noise * axis @ covariance @ axis) for axis in (tangential, radial)]
    std, size_std = (np.sqrt(each) if each > 0 else np.inf for each in variances)
    fits_norm = abs(size - 1) < 2 * size_std or size_std < ALIGNMENT.max_heading_sigma_rad / 2
    observable = np.linalg.matrix_rank(A[:, HEADING]) == 2 and fits_norm
    return _AlignmentFit(unknowns, float(np.arctan2(s, c)), std if observable else np.inf)


def _cost(path: _InertialPath, heading: float) -> float:
    """Return the sum of squared whitened residuals for a given heading."""
    A, b = _equations(path)
    others = np.delete(A, [4, 5], axis=1)
    residual = b - A[:, 4] * np.cos(heading) - A[:, 5] * np.sin(heading)
    return float(np.sum((others @ np.linalg.lstsq(others, residual, rcond=None)[0] - residual) ** 2))


def _course_heading(path: _InertialPath) -> float | None:
    """Return the initial heading of a body that drives along its x axis; None if it did not drive."""
    x, y = path.positions[:, 0], path.positions[:, 1]
    forward = np.column_stack([np.cos(path.headings), np.sin(path.headings)])
    reckoned = _integrate(forward, np.diff(path.seconds)[:, None])
    for duration_s in ALIGNMENT.course_durations_s:
        end = np.searchsorted(path.seconds, path.seconds + duration_s)
        first = np.flatnonzero(end < len(path.seconds))
        last = end[first]
        dx, dy = x[last] - x[first], y[last] - y[first]
        is_long = np.hypot(dx, dy) > ALIGNMENT.min_course_sigmas * np.median(path.sigma)
        if is_long.any():
            reckoned_heading = np.arctan2(*(reckoned[last] - reckoned[first]).T[::-1])
            return float(np.angle(np.mean(np.exp(1j * (np.arctan2(dy, dx) - reckoned_heading)[is_long]))))
    return None


def _make_alignment(
    t_ns: int,
    path: _InertialPath,
    fit: _AlignmentFit,
    heading: float,
    std: float,
    bias: Floats,
    R_level_body: Floats,
    gravity: float,
) -> HeadingAlignment:
    """Return the pose by a fit, with the tilt corrected; position and velocity by positions for a course."""
    by_course = not np.isfinite(std)
    turn = rotations.matrix_from_euler("z", [heading])
    force = turn[:2, :2].T @ fit.unknowns[TILT] if not by_course else np.zeros(2)
    tilt = rotations.matrix_from_rotation_vector(np.array([-force[1], force[0], 0.0]) / gravity)
    position = np.array([*fit.unknowns[POSITION], path.positions[0, 2]])
    velocity = np.array([*fit.unknowns[VELOCITY], 0.0])
    if by_course:
        early = path.seconds <= path.seconds[0] + ALIGNMENT.course_durations_s[0]
        line = np.polynomial.polynomial.polyfit(path.seconds[early], path.positions[early], 1)
        position, velocity = line[0], line[1]
    pose = se3.from_matrix(turn @ tilt @ R_level_body, position)
    return HeadingAlignment(t_ns, pose, velocity, bias, std, by_course)
