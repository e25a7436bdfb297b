"""Path planning of the arm: via points, trapezoidal velocity profiles and guarded moves.

The flight software divides a move into via points with the maximum distances of RA_PATH_PARAMS, follows a
trapezoidal profile to each of them (RA_CTRL_PARAMS), and monitors the joint torques (RA_TAU_PARAMS).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.errors import GeometryError
from transect.geometry.array_checks import floats

from .parameters import ROWS, Parameters

ROUNDING_TOLERANCE = 1e-9
"""Rounding error relative to a segment or a sampling period."""
Kinematics = Callable[[Floats], Floats]
"""Tool poses (k, 4) from joint angles (k, n), or the inverse."""


@dataclass(frozen=True)
class PathRules:
    """Maximum distances of via points (RA_PATH_PARAMS, SIS 5.1.3.5)."""

    # whether a Cartesian move follows a straight line (`path.cart.type` 0), or interpolates the joints (1)
    straight: bool
    error: float  # maximum deviation of the tool from that line, m
    delta: float  # maximum distance of the tool between two via points, m
    joint_delta: float  # maximum rotation of any joint between two via points of a joint move, rad
    time_delta: float  # maximum time between two via points of a timed joint move, s
    max_halvings: int = 16  # of the segments of a straight move

    @classmethod
    def of(cls, parameters: Parameters) -> PathRules:
        """Return the rules of a parameter file."""

        def value(key: str) -> float:
            return parameters.number("RA_PATH_PARAMS", f"path.{key}")

        return cls(
            straight=value("cart.type") == 0,
            error=value("cart.error"),
            delta=value("cart.delta"),
            joint_delta=value("joint_delta"),
            time_delta=value("time_delta"),
        )


def joint_vias(start: ArrayLike, goal: ArrayLike, joint_delta: float) -> Floats:
    """Equidistant via points (k, n) of a joint move from start to goal, at most `joint_delta` apart, rad."""
    q = _two(start, goal)
    return _divide(q[0], q[1], _segment_count(float(np.abs(q[1] - q[0]).max()), joint_delta))


def timed_vias(
    start: ArrayLike, goal: ArrayLike, duration: float, time_delta: float
) -> tuple[Floats, Floats]:
    """Times (k,) in s from the start, and via points (k, n) in rad, of a joint move of `duration` s."""
    q = _two(start, goal)
    segments = _segment_count(duration, time_delta)
    return np.linspace(0.0, duration, segments + 1), _divide(q[0], q[1], segments)


def line_vias(start: ArrayLike, goal: ArrayLike, delta: float) -> Floats:
    """Tool poses (k, 4) x, y, z, th (m, rad) by linear interpolation, at most `delta` m apart."""
    pose = _two(start, goal)
    return _divide(pose[0], pose[1], _segment_count(float(np.linalg.norm(pose[1, :3] - pose[0, :3])), delta))


def cartesian_vias(
    start: ArrayLike, goal: ArrayLike, rules: PathRules, forward: Kinematics, inverse: Kinematics
) -> Floats:
    """Via points (k, n) in rad of a move to a tool pose.

    Parameters
    ----------
    start : (n,)
        Current joint angles, rad.
    goal : (4,)
        Tool pose: x, y, z in m and th in rad, IDA frame.
    forward, inverse : callable
        Tool poses (k, 4) from joint angles (k, n), and back; NaN without a solution.

    Notes
    -----
    The segments of a straight move are halved until the tool, with joints interpolated between two via
    points, deviates at most by `rules.error` from the line. The SIS gives the tolerance, but not the method.
    """
    q = floats("joint angles", start, ("n",))
    pose = _two(forward(q[None])[0], goal)
    if not rules.straight:
        return _interpolate(q, _solve_inverse(pose[1:], inverse)[0], rules.delta, forward)
    segments = _segment_count(float(np.linalg.norm(pose[1, :3] - pose[0, :3])), rules.delta)
    for _ in range(rules.max_halvings):
        vias = np.concatenate([q[None], _solve_inverse(_divide(pose[0], pose[1], segments)[1:], inverse)])
        if line_deviation(vias, forward) <= rules.error:
            return vias
        segments *= 2
    raise GeometryError(
        "no via points keep the tool on a straight line",
        why=f"with {segments // 2} segments it still deviates more than {rules.error} m",
        hint="the line crosses a discontinuity of the inverse kinematics: choose another path",
    )


def _solve_inverse(poses: Floats, inverse: Kinematics) -> Floats:
    q = inverse(poses)
    unreachable = ~np.isfinite(q).all(axis=1)
    if unreachable.any():
        raise GeometryError(
            "a via point is out of reach", where=f"pose {poses[unreachable.argmax()]} (m, rad)"
        )
    return q


def line_deviation(vias: ArrayLike, forward: Kinematics) -> float:
    """Largest deviation (m) of the tool from straight lines, halfway between via points (k, n)."""
    q = floats("via points", vias, ("k", "n"))
    xyz, halfway = forward(q)[:, :3], forward((q[1:] + q[:-1]) / 2)[:, :3]
    line = xyz[1:] - xyz[:-1]
    offset = halfway - xyz[:-1]
    length2 = np.maximum((line**2).sum(axis=1), np.finfo(float).tiny)
    fraction = np.clip((offset * line).sum(axis=1) / length2, 0.0, 1.0)
    return float(np.linalg.norm(offset - fraction[:, None] * line, axis=1).max())


def _interpolate(start: Floats, goal: Floats, delta: float, forward: Kinematics) -> Floats:
    """Equidistant joint angles between which the tool moves at most `delta` m."""
    fine = forward(_divide(start, goal, 100))[:, :3]
    longest = float(np.linalg.norm(np.diff(fine, axis=0), axis=1).max()) * 100
    return _divide(start, goal, _segment_count(longest, delta))


def _two(start: ArrayLike, goal: ArrayLike) -> Floats:
    return floats("start and goal", np.stack([np.asarray(start), np.asarray(goal)]), (2, "n"))


def _segment_count(length: float, longest: float) -> int:
    if not longest > 0:
        raise GeometryError(f"the distance between via points must be positive, got {longest}")
    return max(1, int(np.ceil(length / longest - ROUNDING_TOLERANCE)))


def _divide(start: Floats, goal: Floats, segments: int) -> Floats:
    return start + np.linspace(0.0, 1.0, segments + 1)[:, None] * (goal - start)


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of the velocity profiles (RA_CTRL_PARAMS, SIS 5.1.3.3), each (n,)."""

    velocity: Floats
    acceleration: Floats

    @classmethod
    def of(cls, parameters: Parameters) -> JointLimits:
        """Return `vel_max` (rad/s) and `acc_max` (rad/s2)."""
        return cls(
            parameters.numbers("RA_CTRL_PARAMS", "vel_max"), parameters.numbers("RA_CTRL_PARAMS", "acc_max")
        )


@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """Commanded joint motion: times (k,) s, then (k, n) rad, rad/s, rad/s2."""

    times: Floats
    position: Floats
    velocity: Floats
    acceleration: Floats


def shortest_time(distance: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike) -> Floats:
    """Durations (...) in s of trapezoidal profiles over distances (...) from rest to rest.

    For distances below v²/a full speed is not reached and the profile is a triangle.
    """
    s, v, a = (np.abs(np.asarray(x, dtype=np.float64)) for x in (distance, velocity, acceleration))
    return np.where(s < v**2 / a, 2 * np.sqrt(s / a), s / v + v / a)


def move(start: ArrayLike, goal: ArrayLike, limits: JointLimits, loop_time: float) -> JointTrajectory:
    """Profile from rest at joint angles (n,) to rest at others, sampled every `loop_time` s.

    The joints are synchronised: each follows the same trapezoid, scaled to its distance, within the limits of
    all joints. The last sample is the first one at rest.
    """
    q = _two(start, goal)
    distance = q[1] - q[0]
    if not distance.any():
        return JointTrajectory(np.zeros(1), q[:1], np.zeros_like(q[:1]), np.zeros_like(q[:1]))
    moving = distance != 0
    speed = float((limits.velocity[moving] / np.abs(distance[moving])).min())
    acceleration = float((limits.acceleration[moving] / np.abs(distance[moving])).min())
    duration = float(shortest_time(1.0, speed, acceleration))
    times = (
        np.arange(int(np.ceil(duration / loop_time - ROUNDING_TOLERANCE)) + 1, dtype=np.float64) * loop_time
    )
    at_rest = times >= duration - ROUNDING_TOLERANCE * loop_time
    fraction, rate, rate_change = _unit_trapezoid(
        np.where(at_rest, duration, times), duration, speed, acceleration
    )
    position = q[0] + fraction[:, None] * distance
    position[-1] = q[1]
    return JointTrajectory(times, position, rate[:, None] * distance, rate_change[:, None] * distance)


def through(vias: ArrayLike, limits: JointLimits, loop_time: float) -> JointTrajectory:
    """Profile through via points (k, n), at rest in each of them.

    The flight software sends the next via point when all joints are within `eps_joint` of this one. The SIS
    does not describe how it blends the two profiles; here they are separate.
    """
    q = floats("via points", vias, ("k", "n"))
    parts = [move(a, b, limits, loop_time) for a, b in pairwise(q)] or [move(q[0], q[0], limits, loop_time)]
    starts = np.cumsum([0.0, *(part.times[-1] for part in parts[:-1])])

    def joined(name: str) -> Floats:
        return np.concatenate([getattr(parts[0], name)[:1], *(getattr(part, name)[1:] for part in parts)])

    times = np.concatenate([np.zeros(1), *(t0 + p.times[1:] for t0, p in zip(starts, parts, strict=True))])
    return JointTrajectory(times, joined("position"), joined("velocity"), joined("acceleration"))


def _unit_trapezoid(
    times: Floats, duration: float, speed: float, acceleration: float
) -> tuple[Floats, Floats, Floats]:
    """Distance, velocity and acceleration at times (k,), for a total distance of 1."""
    ramp = min(speed / acceleration, duration / 2)
    remaining = duration - times
    since, until = np.minimum(times, ramp), np.minimum(remaining, ramp)
    cruise = acceleration * ramp
    fraction = np.where(
        times <= duration / 2,
        acceleration * since**2 / 2 + cruise * np.maximum(times - ramp, 0.0),
        1 - acceleration * until**2 / 2 - cruise * np.maximum(remaining - ramp, 0.0),
    )
    braking = np.where(remaining > 0, -acceleration, 0.0)
    change = np.where(times < ramp, acceleration, np.where(remaining > ramp, 0.0, braking))
    return fraction, acceleration * np.minimum(since, until), change


@dataclass(frozen=True)
class Algorithm:
    """Reaction of the arm to a large torque (SIS 5.1.3.6)."""

    code: int  # `algo_code`
    # name, parameter, reaction: in the SIS, its threshold in RA_TAU_PARAMS, and the reaction to a torque
    # above it
    name: str
    parameter: str
    reaction: str


ACCOMMODATE = Algorithm(1, "accommodate", "thresh_a", "the trajectory gives way along delta_via")
CONTACT = Algorithm(2, "contact", "thresh_c", "the arm stops on contact")
FREE_SPACE = Algorithm(3, "free space", "thresh_f", "the arm stops, there should be nothing to touch")
ALGORITHMS = (ACCOMMODATE, CONTACT, FREE_SPACE)


def algorithm_of(parameters: Parameters, op_code: int, set_name: str = "RA_TASK_ALGO") -> Algorithm | None:
    """Return the control algorithm of a command, None where the set has no row for it.

    Parameters
    ----------
    set_name : {"RA_TASK_ALGO", "RA_ACT_ALGO"}
        For task commands or for actuator commands.
    """
    rows = np.atleast_2d(parameters.numbers(set_name, ROWS))
    codes = {int(op): int(code) for op, code, _ in rows[::-1] if op}
    return next((algorithm for algorithm in ALGORITHMS if algorithm.code == codes.get(op_code)), None)


@dataclass(frozen=True, eq=False)
class Guard:
    """Torque thresholds that end a guarded move."""

    algorithm: Algorithm
    threshold: Floats  # (n,), N m
    # (n,), added to the threshold while the joint is slower than `detent_speed` (rad/s), N m
    detent: Floats
    detent_speed: Floats

    @classmethod
    def of(cls, parameters: Parameters, algorithm: Algorithm = CONTACT) -> Guard:
        """Return the thresholds of a parameter file for an algorithm."""
        return cls(
            algorithm,
            parameters.numbers("RA_TAU_PARAMS", algorithm.parameter),
            parameters.numbers("RA_TAU_PARAMS", "thresh_d"),
            parameters.numbers("RA_TAU_PARAMS2", "speed_detent"),
        )

    def find_exceeded(self, torque: ArrayLike, velocity: ArrayLike | None = None) -> Mask:
        """Whether joint torques (..., n) in N m exceed the thresholds.

        Parameters
        ----------
        velocity : (..., n), optional
            Joint velocities in rad/s; without them the detent is omitted, which is the stricter test.
        """
        tau = floats("torques", torque, (..., len(self.threshold)))
        if velocity is None:
            return np.abs(tau) > self.threshold
        slow = np.abs(floats("velocities", velocity, (..., len(self.threshold)))) < self.detent_speed
        return np.abs(tau) > self.threshold + np.where(slow, self.detent, 0.0)

    def first(self, torque: ArrayLike, velocity: ArrayLike | None = None) -> tuple[int | None, ...]:
        """First sample of (k, n) torques above the threshold of each joint, or None."""
        over = self.find_exceeded(torque, velocity)
        return tuple(int(joint.argmax()) if joint.any() else None for joint in over.T)

    def stop(self, torque: ArrayLike, velocity: ArrayLike | None = None) -> tuple[int, int] | None:
        """First sample above a threshold and its joint (1 to n); None if the move is not stopped."""
        ends = [
            (sample, j + 1) for j, sample in enumerate(self.first(torque, velocity)) if sample is not None
        ]
        return min(ends, default=None)
