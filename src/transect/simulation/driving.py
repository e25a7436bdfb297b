"""Vehicle motion over terrain, from legs such as "straight for 10 m, turn left, stop".

`course` generates a `Course` in the plane with finite acceleration and jerk. `drive` adds the terrain:
height, roll and pitch are those of the ground under the wheels, low-pass filtered by a suspension, with
vibration in proportion to the speed.

A vehicle that slides down a cross slope is steered against it: it follows its course with another heading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import UsageError
from transect.geometry import planar, rotations

from .motion import SAMPLES_PER_BATCH, Motion, derivatives
from .randomness import generator

HeightFunction = Callable[[Floats], Floats]
"""Height (...) of the ground at points (..., 2) in m, e.g. ``terrain.smooth(0.25).at``."""

RATE_HZ = 200
"""Sampling rate of a course and of the motion along it."""
SUSPENSION_PASSES = 6
"""Passes of the moving average of the suspension: the motion has five continuous derivatives."""


# Legs


@dataclass(frozen=True)
class Leg:
    """A segment of a course with constant commands."""

    seconds: float  # duration at full speed; half of each ramp is before the start, half after the end
    speed: float = 0.0  # m/s, negative backwards
    curvature: float = 0.0  # 1/m, positive to the left of the vehicle's front
    crab: float = 0.0  # angle from the vehicle's heading to its direction of motion, rad to the left
    spin: float = 0.0  # rad/s to the left about the body's origin; only at zero speed

    @property
    def length(self) -> float:
        """Length of the path, m, forwards or backwards."""
        return abs(self.speed) * self.seconds


def straight(metres: float, speed: float) -> Leg:
    """Drive straight ahead, or backwards with a negative speed in m/s."""
    return Leg(metres / abs(speed), speed)


def turn(angle: float, radius: float, speed: float) -> Leg:
    """Turn by an angle in rad, to the left if positive, on a circle of a radius in m."""
    curvature = np.copysign(1.0 / radius, angle * speed)
    return Leg(abs(angle) * radius / abs(speed), speed, float(curvature))


def crab(metres: float, angle: float, speed: float) -> Leg:
    """Drive along a line at an angle in rad to the left of the constant heading."""
    return Leg(metres / abs(speed), speed, crab=angle)


def spot_turn(angle: float, rate: float) -> Leg:
    """Turn on the spot by an angle in rad, to the left if positive, at a rate in rad/s."""
    return Leg(abs(angle / rate), spin=float(np.copysign(rate, angle)))


def stop(seconds: float) -> Leg:
    """Stop for a time."""
    return Leg(seconds)


def along(waypoints: ArrayLike, radius: float, speed: float) -> list[Leg]:
    """Legs from the first of the waypoints (n, 2) in m to the last; corners are rounded to a radius in m.

    The vehicle must start at the first waypoint, heading for the second (`heading`).
    """
    steps = np.diff(np.asarray(waypoints, dtype=np.float64), axis=0)
    bearings = np.arctan2(steps[:, 1], steps[:, 0])
    angles = (np.diff(bearings) + np.pi) % (2 * np.pi) - np.pi
    cut = np.concatenate([[0.0], radius * np.abs(np.tan(angles / 2)), [0.0]])
    lengths = np.hypot(steps[:, 0], steps[:, 1]) - cut[:-1] - cut[1:]
    if (lengths < 0).any():
        at = int(np.argmin(lengths))
        raise UsageError(
            f"no turns of radius {radius} m fit between waypoints {at} and {at + 1}",
            why=f"the distance between the two corners is {-lengths[at]:.2f} m too short",
            hint="use a smaller radius or fewer waypoints",
        )
    legs = [straight(float(lengths[0]), speed)]
    for angle, length in zip(angles.tolist(), lengths[1:].tolist(), strict=True):
        legs += [turn(angle, radius, speed), straight(length, speed)]
    return [leg for leg in legs if leg.seconds > 0]


def heading(waypoints: ArrayLike) -> float:
    """Heading in rad from the first of the waypoints (n, 2) to the second, from x towards y."""
    step = np.diff(np.asarray(waypoints, dtype=np.float64)[:2], axis=0)[0]
    return float(np.arctan2(step[1], step[0]))


# The course


@dataclass(frozen=True, eq=False)
class Course:
    """The commanded path of a vehicle's origin in the plane, at `RATE_HZ`."""

    t_ns: Ints  # (n,)
    pose: Floats  # (n, 3), x, y in m and heading in rad from x to y, not wrapped
    # speed, curvature, crab, spin: (n,), see `Leg`
    speed: Floats
    curvature: Floats
    crab: Floats
    spin: Floats
    # (n,), 0 while the wheels are steered for driving, 1 while they are steered for a turn on the spot
    spinning: Floats

    @property
    def twist(self) -> Floats:
        """(n, 3): vx, vy in m/s and wz in rad/s of the vehicle, as commanded."""
        turning = self.speed * self.curvature + self.spin
        return np.column_stack([self.speed * np.cos(self.crab), self.speed * np.sin(self.crab), turning])


def course(
    legs: Iterable[Leg],
    seconds: float,
    start_ns: int = 0,
    start: ArrayLike = (0.0, 0.0, 0.0),
    ramp_seconds: float = 1.0,
    ramp_metres: float = 0.6,
) -> Course:
    """Return the course along legs for a duration; the vehicle is at rest after the last leg.

    Speed and spin change over time, curvature and crab angle over distance, each by a polynomial with two
    continuous derivatives that preserves distances and angles. The vehicle starts at rest. Where it stops,
    changes direction or turns on the spot it is at rest for at least two ramps, and steers its wheels
    meanwhile.

    Parameters
    ----------
    start : (3,)
        x, y and heading.
    ramp_seconds, ramp_metres : float
        Duration of changes of speed and spin, and distance of changes of curvature and crab angle.
    """
    plan = _with_stops(legs, 2 * ramp_seconds)
    elapsed = np.arange(int(np.ceil(seconds * RATE_HZ)) + 1) / RATE_HZ
    all_legs = [leg for group in plan for leg in group]
    ends = ramp_seconds / 2 + np.cumsum([0.0, *(leg.seconds for leg in all_legs)])
    speed = _smooth_steps(elapsed, ends, [leg.speed for leg in all_legs], ramp_seconds)
    spin = _smooth_steps(elapsed, ends, [leg.spin for leg in all_legs], ramp_seconds)
    spinning = _spinning(elapsed, ends, all_legs, ramp_seconds)
    distance = _integral(np.abs(speed))
    curvature, crab_angle = _steering(elapsed, distance, plan, ramp_seconds, ramp_metres)
    x, y, yaw = np.asarray(start, dtype=np.float64)
    yaw = yaw + _integral(speed * curvature + spin)
    pose = [
        x + _integral(speed * np.cos(yaw + crab_angle)),
        y + _integral(speed * np.sin(yaw + crab_angle)),
        yaw,
    ]
    t_ns = start_ns + np.arange(len(elapsed), dtype=np.int64) * (NS // RATE_HZ)
    return Course(t_ns, np.column_stack(pose), speed, curvature, crab_angle, spin, spinning)


def _with_stops(legs: Iterable[Leg], min_stop: float) -> list[list[Leg]]:
    """Group legs by direction of driving or spinning, with stops of at least `min_stop` s in between."""
    plan: list[list[Leg]] = []
    for (speed, spin), part in groupby((leg for leg in legs if leg.seconds > 0), _direction):
        group = list(part)
        if not speed and not spin:
            group = [stop(max(sum(leg.seconds for leg in group), min_stop))]
        elif plan and (plan[-1][-1].speed or plan[-1][-1].spin):
            plan.append([stop(min_stop)])
        plan.append(group)
    return plan


def _direction(leg: Leg) -> tuple[float, float]:
    return float(np.sign(leg.speed)), float(np.sign(leg.spin))


def _smooth_steps(x: Floats, ends: ArrayLike, values: Sequence[float], ramp: float) -> Floats:
    """Values (k,) between ends (k + 1,), 0 outside, at sorted x (n,), with smooth ramps at the ends."""
    jumps = np.diff([0.0, *values, 0.0])
    result, held = np.zeros(len(x)), np.zeros(len(x) + 1)
    for end, jump in zip(np.asarray(ends)[jumps != 0].tolist(), jumps[jumps != 0].tolist(), strict=True):
        first, last = np.searchsorted(x, [end - ramp / 2, end + ramp / 2]).tolist()
        u = (x[first:last] - end) / ramp + 0.5
        result[first:last] += jump * u**3 * (10 - 15 * u + 6 * u**2)
        held[last] += jump
    return result + np.cumsum(held)[:-1]


def _spinning(elapsed: Floats, ends: Floats, legs: Sequence[Leg], ramp: float) -> Floats:
    """Return 1 around the legs that spin; the wheels are steered in the stops before and after."""
    spans = zip(legs, pairwise(ends.tolist()), strict=True)
    spins = [(begin - ramp, end + ramp) for leg, (begin, end) in spans if leg.spin]
    weight = sum((_smooth_steps(elapsed, span, [1.0], ramp) for span in spins), np.zeros(len(elapsed)))
    return np.minimum(weight, 1.0)


def _steering(
    elapsed: Floats, distance: Floats, plan: Sequence[Sequence[Leg]], ramp: float, ramp_metres: float
) -> tuple[Floats, Floats]:
    """Curvature and crab angle (n,) by travelled distance (n,), m; changes across stops happen at rest."""
    curvature, crab_angle = np.zeros(len(elapsed)), np.zeros(len(elapsed))
    durations = [sum(leg.seconds for leg in group) for group in plan]
    begins = ramp / 2 + np.cumsum([0.0, *durations])
    drives = [i for i, group in enumerate(plan) if group[0].speed]
    middles = [(begins[i + 1] + begins[j]) / 2 for i, j in pairwise(drives)]
    start = 0.0
    for i, span in zip(drives, pairwise([-np.inf, *middles, np.inf]), strict=False):
        edges = start + np.cumsum([0.0, *(leg.length for leg in plan[i])])
        start = edges[-1]
        edges[[0, -1]] = -np.inf, np.inf
        during = _smooth_steps(elapsed, span, [1.0], ramp)
        curvature += during * _smooth_steps(distance, edges, [leg.curvature for leg in plan[i]], ramp_metres)
        crab_angle += during * _smooth_steps(distance, edges, [leg.crab for leg in plan[i]], ramp_metres)
    return curvature, crab_angle


def _integral(values: Floats) -> Floats:
    """Integral (n,) from the first sample, by the trapezoidal rule."""
    return np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / (2 * RATE_HZ))])


# The body on the ground


@dataclass(frozen=True, eq=False)
class Chassis:
    """Wheel contacts, height and suspension of a vehicle."""

    contacts: Floats  # (k, 2), contact points of its wheels, x and y in the body, m; at least three
    height: float  # of the body's origin above the ground under it, m
    suspension: float = 0.3  # time constant of following the ground, s
    # standard deviation of the vibration at the wheels at 1 m/s, m; it is proportional to the speed
    shaking: float = 0.0005


def drive(
    path: Course, chassis: Chassis, heights: HeightFunction, slide: float = 0.0, seed: int = 0
) -> Motion:
    """Return the motion of a body along a course on the ground, at `RATE_HZ`.

    Parameters
    ----------
    heights : callable
        Ground height, smoothed to the size of the wheels.
    slide : float
        Angle by which the body drifts downhill per lateral slope, rad.
    seed : int
        Seed of the vibration.
    """
    pose = path.pose
    if slide:
        pose = pose + np.array([0.0, 0.0, slide]) * _ground_plane(pose, chassis, heights)[:, 2:]
    ground = _ground_plane(pose, chassis, heights) + _vibration(path, chassis, seed)
    pitch = -np.arctan(ground[:, 1])
    roll = np.arctan(ground[:, 2] * np.cos(pitch))
    angles = np.column_stack([roll, pitch, pose[:, 2]])
    quaternion = rotations.quaternion_from_euler("rpy", angles)
    raised = rotations.rotate(quaternion, [0.0, 0.0, chassis.height])
    position = np.column_stack([pose[:, :2], ground[:, 0]]) + raised
    velocity, acceleration = derivatives(position, 1 / RATE_HZ)
    angular = body_rates(angles, derivatives(angles, 1 / RATE_HZ)[0])
    return Motion(path.t_ns, position, quaternion, velocity, acceleration, angular)


def truth(motion: Motion, rate: int = 100) -> Motion:
    """Subsample a motion to a rate that divides `RATE_HZ`, which is exact."""
    step = RATE_HZ // rate
    names = ("position", "quaternion", "velocity", "acceleration", "angular_velocity")
    kept = {name: getattr(motion, name)[::step].copy() for name in names}  # a view would keep all in memory
    return replace(motion, t_ns=motion.t_ns[::step].copy(), **kept)


def body_rates(angles: Floats, rates: Floats) -> Floats:
    """Angular velocity (n, 3) in the body of roll, pitch, yaw (n, 3) in rad and their rates (n, 3)."""
    roll, pitch, _ = angles.T
    d_roll, d_pitch, d_yaw = rates.T
    x = d_roll - d_yaw * np.sin(pitch)
    y = d_pitch * np.cos(roll) + d_yaw * np.cos(pitch) * np.sin(roll)
    z = d_yaw * np.cos(pitch) * np.cos(roll) - d_pitch * np.sin(roll)
    return np.column_stack([x, y, z])


def contact_points(pose: Floats, contacts: Floats) -> Floats:
    """Positions (n, k, 2) in the world of points (k, 2) of a vehicle at planar poses (n, 3)."""
    rotated = np.einsum("nij,kj->nki", planar.rotations_from_headings(pose[:, 2]), contacts)
    return pose[:, None, :2] + rotated


def _ground_plane(pose: Floats, chassis: Chassis, heights: HeightFunction) -> Floats:
    """Height, slope ahead and slope to the left (n, 3) of the plane fitted to the ground at the wheels."""
    design = np.column_stack([np.ones(len(chassis.contacts)), chassis.contacts])
    solution = np.linalg.pinv(design).T
    # In batches: the corners around every wheel for hours of driving would take a gigabyte.
    batches = (pose[i : i + SAMPLES_PER_BATCH] for i in range(0, len(pose), SAMPLES_PER_BATCH))
    planes = [heights(contact_points(batch, chassis.contacts)) @ solution for batch in batches]
    return _low_pass(np.concatenate(planes), chassis.suspension)


def _vibration(path: Course, chassis: Chassis, seed: int) -> Floats:
    """Band-limited noise of height and slopes (n, 3), in proportion to the speed."""
    white = generator(seed, "driving", "shaking").standard_normal((len(path.t_ns), 3))
    fast, slow = _low_pass(white, chassis.suspension), _low_pass(white, 4 * chassis.suspension)
    band = (fast - slow) / np.sqrt(_band_pass_variance(chassis.suspension))
    lever = np.sqrt((chassis.contacts**2).mean(axis=0))
    size = chassis.shaking * np.array([1.0, 1.0 / lever[0], 1.0 / lever[1]])
    wheel_speed = np.abs(path.speed) + np.abs(path.spin) * float(lever.max())
    return band * size * wheel_speed[:, None]


def _band_pass_variance(seconds: float) -> float:
    """Variance of white noise after the band pass of `_vibration`."""
    middle = 4 * SUSPENSION_PASSES * _box_width(seconds)
    impulse = np.zeros((2 * middle + 1, 1))
    impulse[middle] = 1.0
    return float(((_low_pass(impulse, seconds) - _low_pass(impulse, 4 * seconds)) ** 2).sum())


def _box_width(seconds: float) -> int:
    return max(int(seconds * RATE_HZ / SUSPENSION_PASSES) // 2 * 2 + 1, 3)


def _low_pass(values: Floats, seconds: float) -> Floats:
    """Columns (n, c) after `SUSPENSION_PASSES` moving averages: a B-spline, nearly a Gaussian."""
    from scipy.ndimage import uniform_filter1d

    # The signal is extrapolated by odd reflection, so that a body that moves at the end is not decelerated.
    margin = SUSPENSION_PASSES * _box_width(seconds)
    values = np.pad(values, ((margin, margin), (0, 0)), "reflect", reflect_type="odd")
    for _ in range(SUSPENSION_PASSES):
        filtered = uniform_filter1d(values, _box_width(seconds), axis=0, mode="nearest")
        values = np.asarray(filtered, dtype=np.float64)
    return values[margin:-margin]
