"""The first heading of a body of which only an IMU and positions are known.

Gravity tells which way is up. What accelerometers feel beside it, added up twice, is the way of the body in
axes that are level but turned by an unknown heading; positions tell the same way in the axes of the map::

    p(t) = p0 + v0 t + Rz(heading) s(t) + errors

Cosine and sine of the heading, p0 and v0 are found by least squares, and with them what makes s(t) wrong,
which is linear, too: a tilt that gravity did not tell (a start with the foot on the pedal looks like a
slope), and biases of accelerometers and gyroscopes. That needs no idea of which axis is forward, so it is
right for a start in reverse, too. Where nothing accelerates for long, the body is taken to drive along its x
axis, if that is known to be forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import rotations, se3

from .measurements import Inertial, Place

LEAST_SECONDS = 2.0
"""Of positions, before a heading is looked for."""
LEAST_PLACES = 6
SURE = 0.2
"""rad: one sigma of a heading that is good enough to begin with."""
TILT_FORCE, FORCE_BIAS = 0.7, 0.2
"""m/s2: one sigma of what a wrong tilt does (a car that sets off while it is levelled errs by this), and of
biases of accelerometers."""
GYRO_BIAS, RESTING_BIAS = 0.01, 1e-3
"""rad/s: one sigma of biases of gyroscopes, and where their mean at rest was taken off."""
BY_COURSE = 15.0
"""Seconds without accelerations that tell the heading, after which it is taken from the way."""
COURSE_SECONDS, COURSE_SIGMAS = (4.0, 8.0, 16.0), 8.0
"""A way over one of these times that is longer than so many sigmas of the positions has a direction."""
CLEARLY = 9.0
"""Squares of sigmas by which a drive backwards must fit better than one forwards."""
WHITE_PART = 0.5
"""Of a fix's sigma is new in every fix; what they have in common does not bend a way of some seconds."""
MIN_PATH_STD_M = 0.1
"""A path by accelerations added up twice errs by more than this, whatever positions are worth."""
QUIET_RATE = 0.02
"""rad/s: a body that turns less in the first moment may be standing, and its rates be their bias."""
UNKNOWNS = 12
"""Two each: p0, v0, cosine and sine, what a wrong tilt does, biases of accelerometers and gyroscopes."""
TURN = slice(4, 6)


@dataclass(frozen=True, eq=False)
class Aligned:
    """A first pose.

    Attributes
    ----------
    t_ns : int
    pose : (4, 4) array
        T_map_body.
    velocity, gyro_bias : (3,) array
        In the map (m/s), and in the body (rad/s).
    heading_std : float
        rad
    by_course : bool
        Whether the heading is that of the way, for nothing accelerated.
    """

    t_ns: int
    pose: Floats
    velocity: Floats
    gyro_bias: Floats
    heading_std: float
    by_course: bool

    def __str__(self) -> str:
        if self.by_course:
            return "heading at the start: that of the way; nothing accelerated, so x is taken for forward"
        return f"heading at the start: by accelerations, one sigma {np.degrees(self.heading_std):.2g} deg"


def align_by_acceleration(
    inertial: Sequence[Inertial],
    places: Sequence[Place],
    level: Floats,
    gravity: float,
    *,
    knows_forward: bool,
) -> Aligned | None:
    """Return the pose at the first inertial sample; None if its heading is not known well enough yet.

    Parameters
    ----------
    level : (3, 3) array
        R_level_body at that sample, with any heading.
    gravity : float
        m/s2
    knows_forward : bool
        Whether the x axis is known to be forward; else the way tells nothing of the heading.
    """
    seen = [each for each in places if inertial[0].t_ns <= each.t_ns <= inertial[-1].t_ns] if inertial else []
    if len(seen) < LEAST_PLACES or (seen[-1].t_ns - seen[0].t_ns) / NS < LEAST_SECONDS:
        return None
    bias = _resting_rates(inertial)
    way = _reckon(inertial, seen, level, bias, gravity)
    fit = _fit(way)
    if fit.heading_std < SURE:
        return _make_aligned(inertial[0].t_ns, way, fit, fit.heading, fit.heading_std, bias, level, gravity)
    if not knows_forward or way.seconds[-1] - way.seconds[0] < BY_COURSE:
        return None
    course = _course(way)
    if course is None:
        return None
    backwards = course + np.pi
    heading = backwards if _cost(way, backwards) < _cost(way, course) - CLEARLY else course
    return _make_aligned(inertial[0].t_ns, way, fit, heading, np.inf, bias, level, gravity)


@dataclass(frozen=True, eq=False)
class _Way:
    """At each of m places: time (s), place (m, 3), sigma (m,), way by the IMU (m, 3) and its heading (m,).

    `by_biases` (m, 4): what biases in level axes that turn with the body add up to. Those of accelerometers
    along and across their first direction (s2), then those of gyroscopes (m s/rad).
    """

    seconds: Floats
    places: Floats
    sigma: Floats
    felt: Floats
    turned: Floats
    by_biases: Floats
    bias_std: float


@dataclass(frozen=True, eq=False)
class _Fit:
    """The unknowns (12,), the heading (rad) and its sigma."""

    values: Floats
    heading: float
    heading_std: float


def _resting_rates(inertial: Sequence[Inertial]) -> Floats:
    """Return the mean rates (3,) of the first half second if these may be a bias, else 0."""
    rates = np.array([each.rate for each in inertial if each.t_ns <= inertial[0].t_ns + NS // 2])
    mean = rates.mean(axis=0)
    return mean if np.abs(mean).max() < QUIET_RATE and rates.std(axis=0).max() < QUIET_RATE else np.zeros(3)


def _reckon(
    inertial: Sequence[Inertial], places: Sequence[Place], level: Floats, bias: Floats, gravity: float
) -> _Way:
    """Return the way by an IMU that stood at the origin at first, at the times of places."""
    at = (np.array([each.t_ns for each in inertial], np.int64) - inertial[0].t_ns) / NS
    force, rate = (np.array([getattr(each, name) for each in inertial]) for name in ("force", "rate"))
    step = np.diff(at)[:, None]
    turns = rotations.matrix_from_rotation_vector(((rate[1:] + rate[:-1]) / 2 - bias) * step)
    R = level @ np.concatenate([np.eye(3)[None], _multiply_up(turns)])
    pull = np.einsum("nij,nj->ni", R, force) - gravity * np.array([0.0, 0.0, 1.0])
    moved = _integrate(_integrate(pull, step), step)
    heading = np.unwrap(np.arctan2(R[:, 1, 0], R[:, 0, 0]))
    turned = heading - heading[0]
    ahead = np.column_stack([np.cos(turned), np.sin(turned)])
    by_force = _integrate(_integrate(ahead, step), step)
    by_biases = np.column_stack([by_force, gravity * _integrate(by_force, step)])
    when = (np.array([each.t_ns for each in places], np.int64) - inertial[0].t_ns) / NS
    near = np.clip(np.searchsorted(at, when), 0, len(at) - 1)
    arms = np.einsum("nij,nj->ni", R[near], np.array([each.lever for each in places]))
    felt = np.column_stack([np.interp(when, at, each) for each in moved.T]) + arms
    share = np.array([1.0 if each.white else WHITE_PART for each in places])
    sigma = np.maximum(share * np.array([each.std[:2].max() for each in places]), MIN_PATH_STD_M)
    return _Way(
        when,
        np.array([each.position for each in places]),
        sigma,
        felt,
        np.interp(when, at, heading),
        np.column_stack([np.interp(when, at, each) for each in by_biases.T]),
        RESTING_BIAS if bias.any() else GYRO_BIAS,
    )


def _integrate(values: Floats, step: Floats) -> Floats:
    """Return the integral (n, k) from the first of values (n, k) on, by trapezia of widths (n - 1, 1)."""
    parts = (values[1:] + values[:-1]) / 2 * step
    return np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(parts, axis=0)])


def _multiply_up(turns: Floats) -> Floats:
    """Return the products (n, 3, 3) of the first to each of rotations (n, 3, 3), in log2(n) rounds."""
    result, apart = turns.copy(), 1
    while apart < len(result):
        result[apart:] = result[:-apart] @ result[apart:]
        apart *= 2
    return result


def _equations(way: _Way) -> tuple[Floats, Floats]:
    """Return the matrix (2 m + 6, 12) and the right side of the least squares, in sigmas."""
    t, (x, y), m = way.seconds, way.felt[:, :2].T, len(way.seconds)
    a, b, c, d = way.by_biases.T
    one, none = np.ones(m), np.zeros(m)
    east = np.column_stack([one, none, t, none, x, -y, t**2 / 2, none, a, -b, d, c])
    north = np.column_stack([none, one, none, t, y, x, none, t**2 / 2, b, a, -c, d])
    A = np.concatenate([east, north]) / np.tile(way.sigma, 2)[:, None]
    known = np.repeat([TILT_FORCE, FORCE_BIAS, way.bias_std], 2)
    priors = np.eye(UNKNOWNS)[-len(known) :] / known[:, None]
    right = np.concatenate([way.places[:, 0], way.places[:, 1]]) / np.tile(way.sigma, 2)
    return np.concatenate([A, priors]), np.concatenate([right, np.zeros(len(known))])


def _fit(way: _Way) -> _Fit:
    A, b = _equations(way)
    values: Floats = np.linalg.lstsq(A, b, rcond=None)[0].astype(np.float64)
    c, s = values[TURN]
    size = float(np.hypot(c, s))
    spread = np.linalg.pinv(A.T @ A)[TURN, TURN]
    noise = max(1.0, float(np.sum((A @ values - b) ** 2)) / max(len(b) - UNKNOWNS, 1))
    along = np.array([c, s]) / max(size, 1e-9)
    across = np.array([-along[1], along[0]])
    # Cosine and sine make 1. What is fitted larger or smaller than its sigma allows is noise, not a heading;
    # where it is both sure and wrong, the unit of the IMU is, and the fusion will show it.
    # Where nothing accelerates, the variances are 0, up to rounding.
    variances = [float(noise * axis @ spread @ axis) for axis in (across, along)]
    std, size_std = (np.sqrt(each) if each > 0 else np.inf for each in variances)
    told = np.linalg.matrix_rank(A[:, TURN]) == 2 and (abs(size - 1) < 2 * size_std or size_std < SURE / 2)
    return _Fit(values, float(np.arctan2(s, c)), std if told else np.inf)


def _cost(way: _Way, heading: float) -> float:
    """Return the sum of squares with a heading that is given, in sigmas."""
    A, b = _equations(way)
    rest = np.delete(A, [4, 5], axis=1)
    left = b - A[:, 4] * np.cos(heading) - A[:, 5] * np.sin(heading)
    return float(np.sum((rest @ np.linalg.lstsq(rest, left, rcond=None)[0] - left) ** 2))


def _course(way: _Way) -> float | None:
    """Return the heading at the start of a body that drives along its x axis; None if it did not drive."""
    x, y = way.places[:, 0], way.places[:, 1]
    along = np.column_stack([np.cos(way.turned), np.sin(way.turned)])
    ahead = _integrate(along, np.diff(way.seconds)[:, None])
    for seconds in COURSE_SECONDS:
        far = np.searchsorted(way.seconds, way.seconds + seconds)
        first = np.flatnonzero(far < len(way.seconds))
        last = far[first]
        way_x, way_y = x[last] - x[first], y[last] - y[first]
        long = np.hypot(way_x, way_y) > COURSE_SIGMAS * np.median(way.sigma)
        if long.any():
            turned = np.arctan2(*(ahead[last] - ahead[first]).T[::-1])
            return float(np.angle(np.mean(np.exp(1j * (np.arctan2(way_y, way_x) - turned)[long]))))
    return None


def _make_aligned(
    t_ns: int, way: _Way, fit: _Fit, heading: float, std: float, bias: Floats, level: Floats, gravity: float
) -> Aligned:
    """Return the pose by a fit, tilted as that says."""
    by_course = not np.isfinite(std)
    turn = rotations.matrix_from_euler("z", [heading])
    k = turn[:2, :2].T @ fit.values[6:8] if not by_course else np.zeros(2)
    tilt = rotations.matrix_from_rotation_vector(np.array([-k[1], k[0], 0.0]) / gravity)
    place = np.array([*fit.values[:2], way.places[0, 2]])
    velocity = np.array([*fit.values[2:4], 0.0])
    if by_course:
        soon = way.seconds <= way.seconds[0] + COURSE_SECONDS[0]
        slope = np.polynomial.polynomial.polyfit(way.seconds[soon], way.places[soon], 1)
        place, velocity = slope[0], slope[1]
    pose = se3.from_matrix(turn @ tilt @ level, place)
    return Aligned(t_ns, pose, velocity, bias, std, by_course)
