"""How the arm gets from one place to another: via points, trapezoidal profiles and guarded moves.

The flight software breaks a move into via points no further apart than RA_PATH_PARAMS allows, makes a
trapezoidal profile to each of them (RA_CTRL_PARAMS), and watches the joint torques meanwhile (RA_TAU_PARAMS).
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

ROUNDING = 1e-9
"""Part of a piece or of a sampling period that is put down to rounding."""
Kinematics = Callable[[Floats], Floats]
"""Tool poses (k, 4) of joint angles (k, n), or the inverse."""


@dataclass(frozen=True)
class PathRules:
    """How far apart via points may be (RA_PATH_PARAMS, SIS 5.1.3.5)."""

    # whether a Cartesian move keeps the tool on a straight line (`path.cart.type` 0), or only its joints
    # are interpolated (1)
    straight: bool
    error: float  # how far the tool may stray from that line, m
    delta: float  # longest way of the tool between two via points, m
    joint_delta: float  # longest way of any joint between two via points of a joint move, rad
    time_delta: float  # longest time between two via points of a timed joint move, s

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
    """Via points (k, n) of a joint move, start and goal among them, equally far apart, rad.

    No joint moves more than `joint_delta` (rad) between two of them.
    """
    q = _two(start, goal)
    return _divide(q[0], q[1], _pieces(float(np.abs(q[1] - q[0]).max()), joint_delta))


def timed_vias(
    start: ArrayLike, goal: ArrayLike, duration: float, time_delta: float
) -> tuple[Floats, Floats]:
    """Times (k,) in s from the start, and via points (k, n) in rad, of a joint move of `duration` s."""
    q = _two(start, goal)
    pieces = _pieces(duration, time_delta)
    return np.linspace(0.0, duration, pieces + 1), _divide(q[0], q[1], pieces)


def line_vias(start: ArrayLike, goal: ArrayLike, delta: float) -> Floats:
    """Tool poses (k, 4) x, y, z, th (m, rad) along a straight line, at most `delta` m apart.

    `th` turns evenly along it.
    """
    pose = _two(start, goal)
    return _divide(pose[0], pose[1], _pieces(float(np.linalg.norm(pose[1, :3] - pose[0, :3])), delta))


def cartesian_vias(
    start: ArrayLike, goal: ArrayLike, rules: PathRules, forward: Kinematics, inverse: Kinematics
) -> Floats:
    """Via points (k, n) in rad of a move to a tool pose, of the type that the rules name.

    Parameters
    ----------
    start : (n,)
        Joint angles now, rad.
    goal : (4,)
        Tool pose to reach: x, y, z in m and th in rad, IDA frame.
    forward, inverse : callable
        Tool poses (k, 4) from joint angles (k, n), and back; NaN where there are none.

    Notes
    -----
    Of a straight move the pieces are halved until the tool, between two via points moved joint by joint,
    strays no more than `rules.error` from the line. The SIS gives the tolerance, not how it is met.
    """
    q = floats("joint angles", start, ("n",))
    pose = _two(forward(q[None])[0], goal)
    if not rules.straight:
        return _interpolate(q, _reach(pose[1:], inverse)[0], rules.delta, forward)
    pieces = _pieces(float(np.linalg.norm(pose[1, :3] - pose[0, :3])), rules.delta)
    for _ in range(16):
        vias = np.concatenate([q[None], _reach(_divide(pose[0], pose[1], pieces)[1:], inverse)])
        if straying(vias, forward) <= rules.error:
            return vias
        pieces *= 2
    raise GeometryError(
        "no via points keep the tool on a straight line",
        why=f"with {pieces // 2} pieces it still strays more than {rules.error} m",
        hint="the line passes a place where the inverse kinematics jumps: go around it",
    )


def _reach(poses: Floats, inverse: Kinematics) -> Floats:
    q = inverse(poses)
    lost = ~np.isfinite(q).all(axis=1)
    if lost.any():
        raise GeometryError("a via point is out of reach", where=f"pose {poses[lost.argmax()]} (m, rad)")
    return q


def straying(vias: ArrayLike, forward: Kinematics) -> float:
    """How far, in m, the tool leaves the straight lines between via points (k, n) halfway through each."""
    q = floats("via points", vias, ("k", "n"))
    xyz, halfway = forward(q)[:, :3], forward((q[1:] + q[:-1]) / 2)[:, :3]
    along = xyz[1:] - xyz[:-1]
    aside = halfway - xyz[:-1]
    length2 = np.maximum((along**2).sum(axis=1), np.finfo(float).tiny)
    part = np.clip((aside * along).sum(axis=1) / length2, 0.0, 1.0)
    return float(np.linalg.norm(aside - part[:, None] * along, axis=1).max())


def _interpolate(start: Floats, goal: Floats, delta: float, forward: Kinematics) -> Floats:
    """Equal steps of the joints, so many that the tool moves at most `delta` m in each."""
    fine = forward(_divide(start, goal, 100))[:, :3]
    longest = float(np.linalg.norm(np.diff(fine, axis=0), axis=1).max()) * 100
    return _divide(start, goal, _pieces(longest, delta))


def _two(start: ArrayLike, goal: ArrayLike) -> Floats:
    return floats("start and goal", np.stack([np.asarray(start), np.asarray(goal)]), (2, "n"))


def _pieces(length: float, longest: float) -> int:
    if not longest > 0:
        raise GeometryError(f"the distance between via points must be positive, got {longest}")
    return max(1, int(np.ceil(length / longest - ROUNDING)))


def _divide(start: Floats, goal: Floats, pieces: int) -> Floats:
    return start + np.linspace(0.0, 1.0, pieces + 1)[:, None] * (goal - start)


@dataclass(frozen=True, eq=False)
class JointLimits:
    """What the profiles may not exceed (RA_CTRL_PARAMS, SIS 5.1.3.3), each (n,).

    The printed values reach `velocity` in 1.5 s in every joint.
    """

    velocity: Floats
    acceleration: Floats

    @classmethod
    def of(cls, parameters: Parameters) -> JointLimits:
        """Return `vel_max` (rad/s) and `acc_max` (rad/s2)."""
        return cls(
            parameters.numbers("RA_CTRL_PARAMS", "vel_max"), parameters.numbers("RA_CTRL_PARAMS", "acc_max")
        )


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Where the joints are to be, sampled: times (k,) s, then (k, n) rad, rad/s, rad/s2."""

    times: Floats
    position: Floats
    velocity: Floats
    acceleration: Floats


def shortest_time(distance: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike) -> Floats:
    """Seconds (...) that a trapezoidal profile takes over a distance (...) from rest to rest.

    Where the distance is under v²/a, full speed is never reached and the profile is a triangle.
    """
    s, v, a = (np.abs(np.asarray(x, dtype=np.float64)) for x in (distance, velocity, acceleration))
    return np.where(s < v**2 / a, 2 * np.sqrt(s / a), s / v + v / a)


def move(start: ArrayLike, goal: ArrayLike, limits: JointLimits, loop_time: float) -> Trajectory:
    """Profile from rest at joint angles (n,) to rest at others, sampled every `loop_time` s.

    All joints start, cruise and arrive together: each is the same trapezoid, scaled to its own way, and so
    slow that none exceeds its limits. The last sample is the first one at rest.
    """
    q = _two(start, goal)
    way = q[1] - q[0]
    if not way.any():
        return Trajectory(np.zeros(1), q[:1], np.zeros_like(q[:1]), np.zeros_like(q[:1]))
    moving = way != 0
    speed = float((limits.velocity[moving] / np.abs(way[moving])).min())
    push = float((limits.acceleration[moving] / np.abs(way[moving])).min())
    duration = float(shortest_time(1.0, speed, push))
    times = np.arange(int(np.ceil(duration / loop_time - ROUNDING)) + 1, dtype=np.float64) * loop_time
    at_rest = times >= duration - ROUNDING * loop_time
    part, rate, change = _unit_trapezoid(np.where(at_rest, duration, times), duration, speed, push)
    position = q[0] + part[:, None] * way
    position[-1] = q[1]
    return Trajectory(times, position, rate[:, None] * way, change[:, None] * way)


def through(vias: ArrayLike, limits: JointLimits, loop_time: float) -> Trajectory:
    """Profile through via points (k, n), at rest in each of them.

    The flight software sends the next via point when all joints are within `eps_joint` of this one; how it
    blends the two profiles is not in the SIS, so they stand apart here.
    """
    q = floats("via points", vias, ("k", "n"))
    parts = [move(a, b, limits, loop_time) for a, b in pairwise(q)] or [move(q[0], q[0], limits, loop_time)]
    begins = np.cumsum([0.0, *(part.times[-1] for part in parts[:-1])])

    def joined(name: str) -> Floats:
        return np.concatenate([getattr(parts[0], name)[:1], *(getattr(part, name)[1:] for part in parts)])

    times = np.concatenate([np.zeros(1), *(t0 + p.times[1:] for t0, p in zip(begins, parts, strict=True))])
    return Trajectory(times, joined("position"), joined("velocity"), joined("acceleration"))


def _unit_trapezoid(
    times: Floats, duration: float, speed: float, push: float
) -> tuple[Floats, Floats, Floats]:
    """Part of the way done, its rate and the rate's change at times (k,), for a way of length 1."""
    ramp = min(speed / push, duration / 2)
    left = duration - times
    since, until = np.minimum(times, ramp), np.minimum(left, ramp)
    cruise = push * ramp
    part = np.where(
        times <= duration / 2,
        push * since**2 / 2 + cruise * np.maximum(times - ramp, 0.0),
        1 - push * until**2 / 2 - cruise * np.maximum(left - ramp, 0.0),
    )
    change = np.where(times < ramp, push, np.where(left > ramp, 0.0, np.where(left > 0, -push, 0.0)))
    return part, push * np.minimum(since, until), change


@dataclass(frozen=True)
class Algorithm:
    """What the arm does when a torque is too large (SIS 5.1.3.6)."""

    code: int  # `algo_code`
    # name, parameter, reaction: as the SIS calls it, its threshold in RA_TAU_PARAMS, and what follows when
    # a torque exceeds that
    name: str
    parameter: str
    reaction: str


ACCOMMODATE = Algorithm(1, "accommodate", "thresh_a", "the trajectory gives way along delta_via")
CONTACT = Algorithm(2, "contact", "thresh_c", "the arm stops on contact")
FREE_SPACE = Algorithm(3, "free space", "thresh_f", "the arm stops, there should be nothing to touch")
ALGORITHMS = (ACCOMMODATE, CONTACT, FREE_SPACE)


def algorithm_of(parameters: Parameters, op_code: int, set_name: str = "RA_TASK_ALGO") -> Algorithm | None:
    """Return the algorithm in force during a command, None where the set has no row for it.

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
    """Torques that end a guarded move."""

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
        """Tell where joint torques (..., n) in N m are larger than allowed.

        Parameters
        ----------
        velocity : (..., n), optional
            Joint velocities in rad/s; without them the detent is left out, which is the stricter test.
        """
        tau = floats("torques", torque, (..., len(self.threshold)))
        if velocity is None:
            return np.abs(tau) > self.threshold
        slow = np.abs(floats("velocities", velocity, (..., len(self.threshold)))) < self.detent_speed
        return np.abs(tau) > self.threshold + np.where(slow, self.detent, 0.0)

    def first(self, torque: ArrayLike, velocity: ArrayLike | None = None) -> tuple[int | None, ...]:
        """For each joint the first sample of (k, n) torques that exceeds its threshold, None if none does."""
        over = self.find_exceeded(torque, velocity)
        return tuple(int(joint.argmax()) if joint.any() else None for joint in over.T)

    def stop(self, torque: ArrayLike, velocity: ArrayLike | None = None) -> tuple[int, int] | None:
        """Sample and joint (1 to n) that end the move: the earliest of all, None if it runs to its end."""
        ends = [
            (sample, j + 1) for j, sample in enumerate(self.first(torque, velocity)) if sample is not None
        ]
        return min(ends, default=None)
