"""X05: do wheels turn more than the robot moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine.nodes import param
from transect.errors import TransectError
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import (
    SHIFT_S,
    Arm,
    Scatter,
    Speed,
    grid_of,
    is_reference,
    mean_speed,
    newest_ns,
    shift,
    speed_over_ground,
    turn_of_gyros,
    turn_of_wheels,
)
from transect.integrity.windows import Window
from transect.recording import Robot
from transect.robots.four_wheel_steering import FourWheelGeometry
from transect.robots.slip import AVERAGE, REPORTED_SPEED, ground_twist, wheel_slip
from transect.types import Imu, NavFix, Odometry, Pose, RigidBodyState, Twist, WheelState

SPANS = (2.0, 4.0, 8.0, 16.0)
"""Seconds of the motion that is compared: the shortest that tells."""
SIGMAS = 3.0
"""Deviations that a slip must have to be none of chance."""
TELLING = 0.15
"""Uncertainty of a slip, three deviations, up to which one of 0.3 is hardly missed."""
AGREED, AGREEMENTS = 0.1, 3
"""Slip that is none, and windows in which an estimate of others must have agreed with the wheels before."""
SPINNING = 6.0
"""rad/s: no robot turns so fast; such rates are in another unit (S06)."""

Reference = NavFix | RigidBodyState | Pose | Imu | Twist


class _Motion(NamedTuple):
    """Mean speed of the wheels, m/s, and turn rates, rad/s: by wheels (1,), by gyroscopes (k,), of which."""

    speed: float
    wheels: Floats | None
    gyros: Floats | None
    peer: str = ""

    @property
    def turn(self) -> float:
        """rad/s to the left."""
        known = self.gyros if self.gyros is not None else self.wheels
        return 0.0 if known is None or not np.isfinite(known).all() else float(np.median(known))

    @property
    def turn_slip(self) -> float:
        """By how much wheels turn more or less than gyroscopes, rad/s; NaN where it is not known."""
        if self.gyros is None or self.wheels is None:
            return np.nan
        off = self.gyros - self.wheels[0]
        if not np.isfinite(off).all() or np.max(np.abs([*self.gyros, *self.wheels])) >= SPINNING:
            return np.nan
        return float(np.min(np.abs(off))) if np.ptp(np.sign(off)) == 0 else 0.0


class _Slip(NamedTuple):
    """A slip, how uncertain it is, over how many seconds, and by which reference."""

    measured: float
    unsure: float
    seconds: float
    peer: str


class Slip(Check, id="X05", group="cross", version=2):
    """``s = 1 - v_ref / v_wheel`` over two to sixteen seconds, and ``|w_gyro - w_odometry|``.

    `v_ref` is the speed between fixes a second apart, or that of a navigation system, or of an odometry by
    another sensor, that agreed with the wheels before. Gyroscopes are projected on gravity. Stamps of the two
    may differ by half a second: the shift with the smallest difference counts. A slip of less than three
    deviations is none: they come from the noise of the fixes, what is declared of them, how far they were
    faster than the wheels before, and the lever arm, which turns without slip tell. The shortest time counts
    over which they are less than 0.15, or the second over which they are less than the slip; where there is
    none, the check is UNKNOWN. Wheels that stand tell nothing, even if the robot slides. Where
    `wheel_streams` among the robot's constants names four steered wheels and an inertial navigation system,
    as of Interact, it is the mean slip of these wheels by that system.

    Motive: Document 000: "loose terrain ... considerable slip".
    """

    slip = Limit(0.2, 0.5, "SLIP", "", "part of the wheels' way that was lost")
    turn = Limit(0.1, 0.3, "SLIP", "rad/s", "turn rate of the wheels, less that of the gyroscopes")
    least_speed: float = param(0.05, gt=0.0, unit="m/s", doc="slower wheels have no slip")
    arm: float = param(0.3, ge=0.0, unit="m", doc="of the reference to the side of the centre, at most")
    reach: float = param(
        1.0, ge=0.0, unit="m", doc="of wheels from the centre, where only rim speeds are known"
    )

    def reset(self) -> None:
        """No reference has agreed with the wheels yet."""
        self._agreed: dict[str, int] = {}
        self._arms: dict[str, Arm] = {}
        self._scatters: dict[tuple[str, float], Scatter] = {}

    def look(
        self, wheels: Window[WheelState | Odometry], peers: Sequence[Window[Reference]]
    ) -> Finding | Unknown:
        """Compare the last seconds with those of each reference."""
        robot = self.about.robot
        if robot is not None and (navigation := _navigation(wheels, peers, robot)):
            return _four_wheels(wheels, navigation, robot, self)
        if not _reaches(wheels, SPANS[0]):
            return Unknown("LEARNING", n=len(wheels))
        motion = _motion_of(wheels, peers, wheels.t1_ns, SPANS[0])
        off = motion.turn_slip
        found = self._find(wheels, peers, motion)
        statistics = {"turn": off} if np.isfinite(off) else {}
        if isinstance(found, _Slip):
            statistics["slip"] = found.measured if found.measured > found.unsure else 0.0
            evidence = {"measured": found.measured, "unsure": found.unsure, "seconds": found.seconds}
            used = (motion.peer, found.peer) if np.isfinite(off) else (found.peer,)
            return Finding(statistics, len(wheels), {**evidence, "speed_m_s": motion.speed}, peers=used)
        rolls = motion.speed >= self.least_speed
        if not statistics or (rolls and off <= self.turn.warn):
            return found
        return Finding(statistics, len(wheels), peers=(motion.peer,))

    def _find(self, wheels: Window[Any], peers: Sequence[Window[Any]], now: _Motion) -> _Slip | Unknown:
        """Return the slip over the shortest time that tells it."""
        if not np.isfinite(now.speed):
            return Unknown("NO_NUMBERS", n=len(wheels))
        if now.speed < self.least_speed:
            return Unknown("AT_REST", n=len(wheels))
        why = Unknown("NO_PEER", "no reference shows the speed over ground", len(wheels))
        likely: set[str] = set()
        for seconds in (each for each in SPANS if _reaches(wheels, each)):
            for peer in (each for each in peers if is_reference(each)):
                end_ns = newest_ns(peer)
                known = seconds == SPANS[0] and end_ns == wheels.t1_ns
                motion = now if known else _motion_of(wheels, peers, end_ns, seconds)
                found = self._compare(wheels, peer, motion, end_ns, seconds)
                if isinstance(found, Unknown):
                    why = found
                if not isinstance(found, _Slip):
                    continue
                slips = found.measured > max(found.unsure, self.slip.warn)
                if found.unsure <= TELLING or (slips and found.peer in likely):
                    return found
                likely |= {found.peer} if slips else set()
                why = Unknown("UNCERTAIN", "the reference is too uncertain at this speed", len(wheels))
        return why

    def _compare(
        self, wheels: Window[Any], peer: Window[Any], motion: _Motion, end_ns: int, seconds: float
    ) -> _Slip | Unknown | None:
        """Return the slip by one reference; None where it does not tell a speed, or the wheels stood."""
        speed = speed_over_ground(peer, grid_of(end_ns, seconds))
        if speed is None or not motion.speed >= self.least_speed:
            return None
        name = peer.stream.name
        reach = self.reach if issubclass(wheels.stream.type, WheelState) else self.arm
        arm = self._arms.setdefault(name, Arm(reach))
        scatter = self._scatters.setdefault((name, seconds), Scatter())
        faster, doubt = arm.tell(motion.speed, motion.turn)
        lost = (motion.speed + faster - speed.values) / motion.speed
        slip = float(lost[np.argmin(np.abs(lost))])
        sigma = float(np.hypot(np.hypot(speed.sigma, doubt), scatter.sigma))
        unsure = SIGMAS * sigma / motion.speed + _bend(speed, motion.turn)
        scatter.learn(-slip * motion.speed)
        if seconds == SPANS[0] and slip < AGREED:
            arm.learn(motion.speed, motion.turn, faster - slip * motion.speed, speed.sigma + scatter.sigma)
        if not self._trusts(peer, slip):
            return Unknown("LEARNING", f"{name} has not agreed with the wheels yet", len(wheels))
        return _Slip(slip, unsure, seconds, name)

    def _trusts(self, peer: Window[Any], slip: float) -> bool:
        """Tell whether a reference may contradict the wheels: fixes may, others if they once agreed."""
        if issubclass(peer.stream.type, NavFix):
            return True
        count = self._agreed.get(peer.stream.name, 0) + (abs(slip) < AGREED)
        self._agreed[peer.stream.name] = count
        return count > AGREEMENTS


def _reaches(wheels: Window[Any], seconds: float) -> bool:
    """Tell whether the session has lasted for so long."""
    return wheels.t1_ns - round((seconds + 2 * SHIFT_S) * NS) >= wheels.track.grid.edges[0]


def _motion_of(wheels: Window[Any], peers: Sequence[Window[Any]], end_ns: int, seconds: float) -> _Motion:
    """Return how the wheels, and the gyroscopes, moved for so many seconds, up to a time."""
    grid = grid_of(end_ns, seconds)
    past = wheels.history((wheels.t1_ns - int(grid[0])) / NS + SHIFT_S)
    rolled = mean_speed(past, grid[None])
    times = shift(grid)
    gyros = next((g for p in peers if (g := turn_of_gyros(p, times)) is not None), ("", None))
    speed = float(rolled[0]) if rolled is not None else np.nan
    return _Motion(speed, turn_of_wheels(past, grid[None]), gyros[1], gyros[0])


def _bend(speed: Speed, turn: float) -> float:
    """Return by which part a chord of a reference's way is shorter than its arc."""
    half = min(abs(turn) * speed.step_s / 2, np.pi / 2)
    return 1.0 - float(np.sinc(half / np.pi))


def _navigation(
    wheels: Window[Any], peers: Sequence[Window[Any]], robot: Robot
) -> tuple[Window[Any], Window[Any]] | None:
    """Return velocity and turn rate that the robot names beside these wheels; None without either."""
    named = robot.constants.get("wheel_streams")
    if not isinstance(named, Mapping) or named.get("encoders") != wheels.stream.name:
        return None
    there = {peer.stream.name: peer for peer in peers if len(peer)}
    velocity, turn_rate = (there.get(str(named.get(key))) for key in ("velocity", "turn_rate"))
    return None if velocity is None or turn_rate is None else (velocity, turn_rate)


def _four_wheels(
    wheels: Window[Any], navigation: tuple[Window[Any], Window[Any]], robot: Robot, check: Slip
) -> Finding | Unknown:
    """Return the slip of four steered wheels against inertial navigation."""
    encoders, velocity, turn_rate = (
        each.history(SPANS[0] + 2 * SHIFT_S).as_stream() for each in (wheels, *navigation)
    )
    try:
        twist = ground_twist(velocity, turn_rate, encoders, robot, encoders.t_ns)
        geometry = FourWheelGeometry.of(robot)
        found = wheel_slip(encoders, twist, geometry, max(REPORTED_SPEED, check.least_speed), AVERAGE)
    except TransectError as error:
        return Unknown("NO_PEER", error.what, len(wheels))
    ratio = np.asarray(found["slip_ratio"], dtype=np.float64)[found.t_ns >= wheels.t0_ns - NS // 2]
    known = np.isfinite(ratio)
    if known.all(axis=1).sum() < 3:
        return Unknown("AT_REST", n=len(wheels))
    each = np.array([np.median(ratio[known[:, k], k]) for k in range(ratio.shape[1])])
    evidence = {"worst_wheel": float(each.max()), "wheel": float(each.argmax()) + 1}
    return Finding(
        {"slip": max(0.0, float(each.mean()))}, len(wheels), evidence, peers=(velocity.name, turn_rate.name)
    )
