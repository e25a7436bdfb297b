"""X05: do wheels turn more than the robot moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine.nodes import param
from transect.errors import TransectError
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import SETTINGS as MOTION
from transect.integrity.motion import (
    LeverArmEstimate,
    ReferenceScatter,
    Speed,
    grid_of,
    is_reference,
    mean_speed,
    newest_ns,
    shift_grid,
    speed_over_ground,
    turn_of_gyros,
    turn_of_wheels,
)
from transect.integrity.windows import Window
from transect.recording import Robot
from transect.robots.four_wheel_steering import FourWheelGeometry
from transect.robots.slip import AVERAGING_S, MIN_REPORTED_SPEED, ground_twist, wheel_slip
from transect.types import Imu, NavFix, Odometry, Pose, RigidBodyState, Twist, WheelState

GroundReference = NavFix | RigidBodyState | Pose | Imu | Twist


@dataclass(frozen=True)
class SlipSettings:
    """Numbers of the comparison of speeds."""

    # Times over which motion is compared: the shortest that determines the slip counts.
    spans_s: tuple[float, ...] = (2.0, 4.0, 8.0, 16.0)
    slip_sigmas: float = 3.0  # Sigmas of a slip that is not chance.
    max_uncertainty: float = 0.15  # Uncertainty of a slip up to which one of 0.3 is found.
    max_agreeing_slip: float = 0.1  # Slip of a reference that agrees with the wheels, ...
    # ... as an estimate by other sensors must have in this number of windows.
    min_agreeing_windows: int = 3
    max_turn_rad_s: float = 6.0  # No robot turns faster; such rates are in another unit (S06).


class _WheelMotion(NamedTuple):
    """Mean wheel speed, m/s, turn rates by wheels (1,) and gyroscopes (k,), rad/s, and their stream."""

    speed: float
    wheels: Floats | None
    gyros: Floats | None
    peer: str = ""

    @property
    def turn(self) -> float:
        """rad/s to the left."""
        known = self.gyros if self.gyros is not None else self.wheels
        return 0.0 if known is None or not np.isfinite(known).all() else float(np.median(known))

    def turn_slip(self, settings: SlipSettings) -> float:
        """Difference of the turn rates of wheels and gyroscopes, rad/s; NaN if unknown."""
        if self.gyros is None or self.wheels is None:
            return np.nan
        difference = self.gyros - self.wheels[0]
        if (
            not np.isfinite(difference).all()
            or np.max(np.abs([*self.gyros, *self.wheels])) >= settings.max_turn_rad_s
        ):
            return np.nan
        return float(np.min(np.abs(difference))) if np.ptp(np.sign(difference)) == 0 else 0.0


class _SlipEstimate(NamedTuple):
    """A slip, its uncertainty, the time over which it was measured, s, and the reference."""

    measured: float
    uncertainty: float
    seconds: float
    peer: str


class WheelSlip(Check, id="X05", group="cross", version=2):
    """Wheel slip ``s = 1 - v_ref / v_wheel`` over 2 to 16 s, and turn slip ``|w_gyro - w_odometry|``.

    `v_ref` is the speed between fixes a second apart, or that of a navigation system, or of an odometry
    by another sensor that agreed with the wheels before. Gyroscopes are projected on gravity. The stamps
    of the two may differ by half a second: the shift with the smallest difference counts. A slip below
    three sigmas is zero; sigma combines the noise of the fixes, their declared uncertainty, their
    previous excess over the wheels, and the lever arm, which is estimated in turns without slip. The
    shortest time counts over which three sigmas are less than 0.15, or the second over which they are
    less than the slip; otherwise the check is UNKNOWN. Wheels that stand show no slip, even if the robot
    slides. If `wheel_streams` of the robot's constants names four steered wheels and an inertial
    navigation system, as for Interact, it is the mean slip of these wheels by that system.

    Motive: AMEDS: "loose terrain ... considerable slip".
    """

    settings = SlipSettings()

    slip = Limit(0.2, 0.5, "SLIP", "", "fraction of the wheels' distance that was lost")
    turn = Limit(0.1, 0.3, "SLIP", "rad/s", "difference of the turn rates of wheels and gyroscopes")
    least_speed: float = param(0.05, gt=0.0, unit="m/s", doc="slower wheels are not judged")
    arm: float = param(0.3, ge=0.0, unit="m", doc="largest lateral lever arm of the reference")
    reach: float = param(
        1.0, ge=0.0, unit="m", doc="distance of wheels from the centre, if only rim speeds are known"
    )

    def reset(self) -> None:
        """Start without agreement of a reference."""
        self._agreed: dict[str, int] = {}
        self._arms: dict[str, LeverArmEstimate] = {}
        self._scatters: dict[tuple[str, float], ReferenceScatter] = {}

    def evaluate(
        self, wheels: Window[WheelState | Odometry], peers: Sequence[Window[GroundReference]]
    ) -> Finding | Unknown:
        """Compare the last seconds with each reference."""
        robot = self.context.robot
        if robot is not None and (navigation := _navigation(wheels, peers, robot)):
            return _four_wheels(wheels, navigation, robot, self, self.settings)
        if not _has_lasted(wheels, self.settings.spans_s[0]):
            return Unknown("LEARNING", n=len(wheels))
        motion = _motion_of(wheels, peers, wheels.t1_ns, self.settings.spans_s[0])
        off = motion.turn_slip(self.settings)
        found = self._find(wheels, peers, motion)
        statistics = {"turn": off} if np.isfinite(off) else {}
        if isinstance(found, _SlipEstimate):
            statistics["slip"] = found.measured if found.measured > found.uncertainty else 0.0
            evidence = {"measured": found.measured, "unsure": found.uncertainty, "seconds": found.seconds}
            used = (motion.peer, found.peer) if np.isfinite(off) else (found.peer,)
            return Finding(statistics, len(wheels), {**evidence, "speed_m_s": motion.speed}, peers=used)
        rolls = motion.speed >= self.least_speed
        if not statistics or (rolls and off <= self.turn.warn):
            return found
        return Finding(statistics, len(wheels), peers=(motion.peer,))

    def _find(
        self, wheels: Window[Any], peers: Sequence[Window[Any]], now: _WheelMotion
    ) -> _SlipEstimate | Unknown:
        """Return the slip over the shortest time that determines it."""
        if not np.isfinite(now.speed):
            return Unknown("NO_NUMBERS", n=len(wheels))
        if now.speed < self.least_speed:
            return Unknown("AT_REST", n=len(wheels))
        why = Unknown("NO_PEER", "no reference shows the speed over ground", len(wheels))
        likely: set[str] = set()
        for seconds in (each for each in self.settings.spans_s if _has_lasted(wheels, each)):
            for peer in (each for each in peers if is_reference(each)):
                end_ns = newest_ns(peer)
                known = seconds == self.settings.spans_s[0] and end_ns == wheels.t1_ns
                motion = now if known else _motion_of(wheels, peers, end_ns, seconds)
                found = self._compare(wheels, peer, motion, end_ns, seconds)
                if isinstance(found, Unknown):
                    why = found
                if not isinstance(found, _SlipEstimate):
                    continue
                slips = found.measured > max(found.uncertainty, self.slip.warn)
                if found.uncertainty <= self.settings.max_uncertainty or (slips and found.peer in likely):
                    return found
                likely |= {found.peer} if slips else set()
                why = Unknown("UNCERTAIN", "the reference is too uncertain at this speed", len(wheels))
        return why

    def _compare(
        self, wheels: Window[Any], peer: Window[Any], motion: _WheelMotion, end_ns: int, seconds: float
    ) -> _SlipEstimate | Unknown | None:
        """Return the slip by one reference; None without a reference speed, or if the wheels stood."""
        speed = speed_over_ground(peer, grid_of(end_ns, seconds))
        if speed is None or not motion.speed >= self.least_speed:
            return None
        name = peer.stream.name
        reach = self.reach if issubclass(wheels.stream.type, WheelState) else self.arm
        arm = self._arms.setdefault(name, LeverArmEstimate(reach))
        scatter = self._scatters.setdefault((name, seconds), ReferenceScatter())
        faster, arm_sigma = arm.predict(motion.speed, motion.turn)
        lost = (motion.speed + faster - speed.values) / motion.speed
        slip = float(lost[np.argmin(np.abs(lost))])
        sigma = float(np.hypot(np.hypot(speed.sigma, arm_sigma), scatter.sigma))
        uncertainty = self.settings.slip_sigmas * sigma / motion.speed + _chord_shortening(speed, motion.turn)
        scatter.learn(-slip * motion.speed)
        if seconds == self.settings.spans_s[0] and slip < self.settings.max_agreeing_slip:
            arm.learn(motion.speed, motion.turn, faster - slip * motion.speed, speed.sigma + scatter.sigma)
        if not self._is_accepted(peer, slip):
            return Unknown("LEARNING", f"{name} has not agreed with the wheels yet", len(wheels))
        return _SlipEstimate(slip, uncertainty, seconds, name)

    def _is_accepted(self, peer: Window[Any], slip: float) -> bool:
        """Return whether a reference may contradict the wheels: fixes may, others if they agreed before."""
        if issubclass(peer.stream.type, NavFix):
            return True
        count = self._agreed.get(peer.stream.name, 0) + (abs(slip) < self.settings.max_agreeing_slip)
        self._agreed[peer.stream.name] = count
        return count > self.settings.min_agreeing_windows


def _has_lasted(wheels: Window[Any], seconds: float) -> bool:
    """Return whether the session has lasted for this time."""
    return wheels.t1_ns - round((seconds + 2 * MOTION.max_shift_s) * NS) >= wheels.windowed.grid.edges[0]


def _motion_of(
    wheels: Window[Any], peers: Sequence[Window[Any]], end_ns: int, seconds: float
) -> _WheelMotion:
    """Return the motion of wheels and gyroscopes in the `seconds` before a time."""
    grid = grid_of(end_ns, seconds)
    past = wheels.history((wheels.t1_ns - int(grid[0])) / NS + MOTION.max_shift_s)
    rolled = mean_speed(past, grid[None])
    times = shift_grid(grid)
    gyros = next((g for p in peers if (g := turn_of_gyros(p, times)) is not None), ("", None))
    speed = float(rolled[0]) if rolled is not None else np.nan
    return _WheelMotion(speed, turn_of_wheels(past, grid[None]), gyros[1], gyros[0])


def _chord_shortening(speed: Speed, turn: float) -> float:
    """Return the ratio by which a chord of the reference's path is shorter than its arc."""
    half = min(abs(turn) * speed.step_s / 2, np.pi / 2)
    return 1.0 - float(np.sinc(half / np.pi))


def _navigation(
    wheels: Window[Any], peers: Sequence[Window[Any]], robot: Robot
) -> tuple[Window[Any], Window[Any]] | None:
    """Return velocity and turn rate that the robot names for these wheels; None without either."""
    named = robot.constants.get("wheel_streams")
    if not isinstance(named, Mapping) or named.get("encoders") != wheels.stream.name:
        return None
    by_name = {peer.stream.name: peer for peer in peers if len(peer)}
    velocity, turn_rate = (by_name.get(str(named.get(key))) for key in ("velocity", "turn_rate"))
    return None if velocity is None or turn_rate is None else (velocity, turn_rate)


def _four_wheels(
    wheels: Window[Any],
    navigation: tuple[Window[Any], Window[Any]],
    robot: Robot,
    check: WheelSlip,
    settings: SlipSettings,
) -> Finding | Unknown:
    """Return the slip of four steered wheels against inertial navigation."""
    encoders, velocity, turn_rate = (
        each.history(settings.spans_s[0] + 2 * MOTION.max_shift_s).as_stream()
        for each in (wheels, *navigation)
    )
    try:
        twist = ground_twist(velocity, turn_rate, encoders, robot, encoders.t_ns)
        geometry = FourWheelGeometry.of(robot)
        found = wheel_slip(encoders, twist, geometry, max(MIN_REPORTED_SPEED, check.least_speed), AVERAGING_S)
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
