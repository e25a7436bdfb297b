"""Driving over terrain: from legs such as "straight for 10 m, turn left, stop" to the exact motion of a body.

First a `Course` in the plane, smooth enough that accelerations and their changes are finite. Then `drive`
puts the body on the ground: height, roll and pitch come from the ground under its wheels, softened by a
suspension and shaken by what wheels of finite size do not average out.

A vehicle that slides down a cross slope is steered against it: it stays on its course, its heading does not.
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

from .motion import PIECE, Motion, derivatives
from .randomness import generator

Heights = Callable[[Floats], Floats]
"""Height (...) of the ground at places (..., 2) in m: ``terrain.smooth(0.25).at``."""

RATE = 200
"""Samples per second of a course and of the motion along it."""
RAMP_SECONDS = 1.0
"""How long speed and spin take to change."""
RAMP_METRES = 0.6
"""Along how much of the way the curvature and the crab angle change."""

PASSES = 6
"""Of the moving mean that stands for a suspension: the motion then has five continuous derivatives."""


# Legs


@dataclass(frozen=True)
class Leg:
    """A part of a course with constant commands."""

    seconds: float  # how long, at full speed; ramps lie half before and half after
    speed: float = 0.0  # m/s, negative backwards
    curvature: float = 0.0  # 1/m, positive where the way bends to the left of the vehicle's front
    crab: float = 0.0  # angle from the vehicle's heading to the way, rad to the left
    spin: float = 0.0  # rad/s to the left about the body's own origin; only while it stands

    @property
    def way(self) -> float:
        """Metres along the way, forwards or backwards."""
        return abs(self.speed) * self.seconds


def straight(metres: float, speed: float) -> Leg:
    """Drive straight ahead, or backwards with a negative speed in m/s."""
    return Leg(metres / abs(speed), speed)


def turn(angle: float, radius: float, speed: float) -> Leg:
    """Turn the heading by an angle in rad, to the left if positive, on a circle of a radius in m."""
    curvature = np.copysign(1.0 / radius, angle * speed)
    return Leg(abs(angle) * radius / abs(speed), speed, float(curvature))


def crab(metres: float, angle: float, speed: float) -> Leg:
    """Drive along a line at an angle in rad to the left of the heading, which stays."""
    return Leg(metres / abs(speed), speed, crab=angle)


def spot_turn(angle: float, rate: float) -> Leg:
    """Turn on the spot by an angle in rad, to the left if positive, at a rate in rad/s."""
    return Leg(abs(angle / rate), spin=float(np.copysign(rate, angle)))


def stop(seconds: float) -> Leg:
    """Stand."""
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
            why=f"{-lengths[at]:.2f} m are missing between the two corners",
            hint="take a smaller radius or fewer waypoints",
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
    """What a driver wants, at `RATE`: the way of a vehicle's origin in the plane."""

    t_ns: Ints  # (n,)
    pose: Floats  # (n, 3), x, y in m and heading in rad from x to y, not wrapped
    # speed, curvature, crab, spin: (n,), see `Leg`
    speed: Floats
    curvature: Floats
    crab: Floats
    spin: Floats
    # (n,), 0 while the wheels are set for driving, 1 while they are set for a turn on the spot
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
    ramp_seconds: float = RAMP_SECONDS,
    ramp_metres: float = RAMP_METRES,
) -> Course:
    """Return the course along legs for a time: cut where it ends, standing after the last leg.

    Speed and spin change over time, curvature and crab angle along the way, each by a polynomial with two
    continuous derivatives that keeps distances and angles exact. The vehicle starts at rest. Where it stops,
    changes direction or turns on the spot it stands for two ramps at least, and sets its wheels meanwhile.

    Parameters
    ----------
    start : (3,)
        x, y and heading.
    """
    plan = _with_stops(legs, 2 * ramp_seconds)
    elapsed = np.arange(int(np.ceil(seconds * RATE)) + 1) / RATE
    every = [leg for part in plan for leg in part]
    ends = ramp_seconds / 2 + np.cumsum([0.0, *(leg.seconds for leg in every)])
    speed = _step(elapsed, ends, [leg.speed for leg in every], ramp_seconds)
    spin = _step(elapsed, ends, [leg.spin for leg in every], ramp_seconds)
    spinning = _spinning(elapsed, ends, every, ramp_seconds)
    bent, crabbed = _along_the_way(elapsed, _integral(np.abs(speed)), plan, ramp_seconds, ramp_metres)
    x, y, toward = np.asarray(start, dtype=np.float64)
    toward = toward + _integral(speed * bent + spin)
    pose = [
        x + _integral(speed * np.cos(toward + crabbed)),
        y + _integral(speed * np.sin(toward + crabbed)),
        toward,
    ]
    t_ns = start_ns + np.arange(len(elapsed), dtype=np.int64) * (NS // RATE)
    return Course(t_ns, np.column_stack(pose), speed, bent, crabbed, spin, spinning)


def _with_stops(legs: Iterable[Leg], least: float) -> list[list[Leg]]:
    """Parts in which the vehicle drives one way, spins one way, or stands (for `least` seconds or more)."""
    plan: list[list[Leg]] = []
    for (speed, spin), part in groupby((leg for leg in legs if leg.seconds > 0), _direction):
        group = list(part)
        if not speed and not spin:
            group = [stop(max(sum(leg.seconds for leg in group), least))]
        elif plan and (plan[-1][-1].speed or plan[-1][-1].spin):
            plan.append([stop(least)])
        plan.append(group)
    return plan


def _direction(leg: Leg) -> tuple[float, float]:
    return float(np.sign(leg.speed)), float(np.sign(leg.spin))


def _step(x: Floats, ends: ArrayLike, values: Sequence[float], ramp: float) -> Floats:
    """Values (k,) between ends (k + 1,), 0 outside, at sorted x (n,), with smooth ramps about the ends."""
    jumps = np.diff([0.0, *values, 0.0])
    result, held = np.zeros(len(x)), np.zeros(len(x) + 1)
    for end, jump in zip(np.asarray(ends)[jumps != 0].tolist(), jumps[jumps != 0].tolist(), strict=True):
        first, last = np.searchsorted(x, [end - ramp / 2, end + ramp / 2]).tolist()
        u = (x[first:last] - end) / ramp + 0.5
        result[first:last] += jump * u**3 * (10 - 15 * u + 6 * u**2)
        held[last] += jump
    return result + np.cumsum(held)[:-1]


def _spinning(elapsed: Floats, ends: Floats, legs: Sequence[Leg], ramp: float) -> Floats:
    """1 around the legs that spin: the wheels are turned in the stops before and after."""
    spans = zip(legs, pairwise(ends.tolist()), strict=True)
    spins = [(begin - ramp, end + ramp) for leg, (begin, end) in spans if leg.spin]
    weight = sum((_step(elapsed, span, [1.0], ramp) for span in spins), np.zeros(len(elapsed)))
    return np.minimum(weight, 1.0)


def _along_the_way(
    elapsed: Floats, way: Floats, plan: Sequence[Sequence[Leg]], ramp: float, ramp_metres: float
) -> tuple[Floats, Floats]:
    """Curvature and crab angle (n,) after metres (n,) of way; in the middle of a stop they are set anew."""
    bent, crabbed = np.zeros(len(elapsed)), np.zeros(len(elapsed))
    lasted = [sum(leg.seconds for leg in part) for part in plan]
    begins = ramp / 2 + np.cumsum([0.0, *lasted])
    drives = [i for i, part in enumerate(plan) if part[0].speed]
    middles = [(begins[i + 1] + begins[j]) / 2 for i, j in pairwise(drives)]
    gone = 0.0
    for i, span in zip(drives, pairwise([-np.inf, *middles, np.inf]), strict=False):
        edges = gone + np.cumsum([0.0, *(leg.way for leg in plan[i])])
        gone = edges[-1]
        edges[[0, -1]] = -np.inf, np.inf
        during = _step(elapsed, span, [1.0], ramp)
        bent += during * _step(way, edges, [leg.curvature for leg in plan[i]], ramp_metres)
        crabbed += during * _step(way, edges, [leg.crab for leg in plan[i]], ramp_metres)
    return bent, crabbed


def _integral(values: Floats) -> Floats:
    """Integral (n,) from the first sample, by trapezia."""
    return np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / (2 * RATE))])


# The body on the ground


@dataclass(frozen=True, eq=False)
class Chassis:
    """What carries a body."""

    contacts: Floats  # (k, 2), where its wheels touch the ground, x and y in the body, m; at least three
    height: float  # of the body's origin over the ground under it, m
    suspension: float = 0.3  # how long it takes to follow the ground, s
    # deviation of the shaking at 1 m/s: metres at the wheels. It grows with speed and stops with it.
    shaking: float = 0.0005


def drive(way: Course, chassis: Chassis, heights: Heights, slide: float = 0.0, seed: int = 0) -> Motion:
    """Return the motion of a body along a course on the ground, at `RATE`.

    Parameters
    ----------
    heights : callable
        Of ground as smooth as the wheels are large.
    slide : float
        Angle by which the body drifts downhill per slope across it, rad.
    seed : int
        Of the shaking.
    """
    pose = way.pose
    if slide:
        pose = pose + np.array([0.0, 0.0, slide]) * _plane(pose, chassis, heights)[:, 2:]
    ground = _plane(pose, chassis, heights) + _shaking(way, chassis, seed)
    pitch = -np.arctan(ground[:, 1])
    roll = np.arctan(ground[:, 2] * np.cos(pitch))
    angles = np.column_stack([roll, pitch, pose[:, 2]])
    quaternion = rotations.quaternion_from_euler("rpy", angles)
    raised = rotations.rotate(quaternion, [0.0, 0.0, chassis.height])
    position = np.column_stack([pose[:, :2], ground[:, 0]]) + raised
    velocity, acceleration = derivatives(position, 1 / RATE)
    angular = body_rates(angles, derivatives(angles, 1 / RATE)[0])
    return Motion(way.t_ns, position, quaternion, velocity, acceleration, angular)


def truth(motion: Motion, rate: int = 100) -> Motion:
    """Return a motion at a lower rate that divides `RATE`, its own samples: exact."""
    step = RATE // rate
    names = ("position", "quaternion", "velocity", "acceleration", "angular_velocity")
    kept = {name: getattr(motion, name)[::step].copy() for name in names}  # a view would keep all samples
    return replace(motion, t_ns=motion.t_ns[::step].copy(), **kept)


def body_rates(angles: Floats, rates: Floats) -> Floats:
    """Angular velocity (n, 3) in the body of roll, pitch, yaw (n, 3) in rad and their rates (n, 3)."""
    roll, pitch, _ = angles.T
    d_roll, d_pitch, d_yaw = rates.T
    x = d_roll - d_yaw * np.sin(pitch)
    y = d_pitch * np.cos(roll) + d_yaw * np.cos(pitch) * np.sin(roll)
    z = d_yaw * np.cos(pitch) * np.cos(roll) - d_pitch * np.sin(roll)
    return np.column_stack([x, y, z])


def contact_places(pose: Floats, contacts: Floats) -> Floats:
    """Places (n, k, 2) in the world of points (k, 2) of a vehicle at planar poses (n, 3)."""
    turned = np.einsum("nij,kj->nki", planar.rotations_from_headings(pose[:, 2]), contacts)
    return pose[:, None, :2] + turned


def _plane(pose: Floats, chassis: Chassis, heights: Heights) -> Floats:
    """Height, slope ahead and slope to the left (n, 3) of the plane nearest to the ground at the wheels."""
    design = np.column_stack([np.ones(len(chassis.contacts)), chassis.contacts])
    nearest = np.linalg.pinv(design).T
    # In pieces: the corners around every wheel of hours of driving would take a gigabyte.
    pieces = (pose[i : i + PIECE] for i in range(0, len(pose), PIECE))
    planes = [heights(contact_places(piece, chassis.contacts)) @ nearest for piece in pieces]
    return _soften(np.concatenate(planes), chassis.suspension)


def _shaking(way: Course, chassis: Chassis, seed: int) -> Floats:
    """Band-limited noise of height and slopes (n, 3), in proportion to the speed."""
    white = generator(seed, "driving", "shaking").standard_normal((len(way.t_ns), 3))
    fast, slow = _soften(white, chassis.suspension), _soften(white, 4 * chassis.suspension)
    band = (fast - slow) / np.sqrt(_gain(chassis.suspension))
    reach = np.sqrt((chassis.contacts**2).mean(axis=0))
    size = chassis.shaking * np.array([1.0, 1.0 / reach[0], 1.0 / reach[1]])
    moving = np.abs(way.speed) + np.abs(way.spin) * float(reach.max())
    return band * size * moving[:, None]


def _gain(seconds: float) -> float:
    """Variance of white noise after the band pass of `_shaking`."""
    middle = 4 * PASSES * _box(seconds)
    impulse = np.zeros((2 * middle + 1, 1))
    impulse[middle] = 1.0
    return float(((_soften(impulse, seconds) - _soften(impulse, 4 * seconds)) ** 2).sum())


def _box(seconds: float) -> int:
    return max(int(seconds * RATE / PASSES) // 2 * 2 + 1, 3)


def _soften(values: Floats, seconds: float) -> Floats:
    """Columns (n, c) after a moving mean, `PASSES` times: a B-spline, nearly a Gaussian."""
    from scipy.ndimage import uniform_filter1d

    # Beyond its ends the signal goes on as it came, so that a body that is cut off moving is not braked.
    margin = PASSES * _box(seconds)
    values = np.pad(values, ((margin, margin), (0, 0)), "reflect", reflect_type="odd")
    for _ in range(PASSES):
        values = np.asarray(uniform_filter1d(values, _box(seconds), axis=0, mode="nearest"), dtype=np.float64)
    return values[margin:-margin]
