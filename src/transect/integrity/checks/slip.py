"""X05: do wheels turn more than the robot moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.engine.params import param
from transect.errors import TransectError
from transect.geometry.robust import NORMAL
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.recording import Recording
from transect.robots.interact.driven import AVERAGE, INS, REPORTED_SPEED, wheel_slip
from transect.robots.interact.recomputed import ENCODERS
from transect.types import FIX_TYPES, Imu, NavFix, Odometry, RigidBodyState, Twist, WheelState

SPAN_S, SHIFT_S, STEP_S = 2.0, 0.5, 0.1
"""Of the motion that is compared; by which the two may be shifted; of the grid on which both are laid."""
PAST_S = 10.0
"""Over which the scatter of fixes, and the direction of gravity, are measured."""
UNSURE = 0.5
"""Uncertainty of a slip, from which on it is not told."""
AGREED, AGREEMENTS = 0.1, 3
"""Slip that is none, and windows in which an estimate of others must have agreed with the wheels before."""
SIX = float(np.sqrt(6.0))
"""Deviation of ``x0 - 2 x1 + x2`` over that of x."""
SPINNING = 6.0
"""rad/s: no robot turns so fast; such rates are in another unit (S06)."""
GRAVITY = (3.0, 30.0)
"""m/s2: accelerations whose mean shows where up is."""

Reference = NavFix | RigidBodyState | Imu | Twist


class _Speed(NamedTuple):
    """Mean speed of a reference, for each shift that is tried (k,), and its deviation; m/s."""

    values: Floats
    sigma: float


class Slip(Check, id="X05", group="cross"):
    """``s = 1 - v_ref / v_wheel`` over two seconds, and ``|w_gyro - w_odometry|``.

    `v_ref` is the speed between fixes a second apart, or that of a navigation system that agreed with the
    wheels before. Gyroscopes are projected on gravity. Stamps of the two may differ by half a second: the
    shift with the smallest difference counts. What the scatter of the fixes, and a lever arm of `arm` in
    turns, may explain is taken off. Wheels that stand tell nothing, even if the robot slides. On Interact it
    is the mean slip of the four wheels (`transect table slip`).

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

    def look(
        self, wheels: Window[WheelState | Odometry], peers: Sequence[Window[Reference]]
    ) -> Finding | Unknown:
        """Compare the last seconds with those of each reference."""
        if wheels.stream.role not in ("measurement", "derived"):
            return Unknown("ESTIMATE", "it is no measurement of wheels", len(wheels))
        if wheels.stream.name == ENCODERS and {*INS} <= {peer.stream.name for peer in peers if len(peer)}:
            return _four_wheels(wheels, peers, self)
        grid = wheels.t1_ns - round((SPAN_S + SHIFT_S) * NS) + _steps(SPAN_S)
        if grid[0] - round(SHIFT_S * NS) < wheels.track.grid.edges[0]:
            return Unknown("LEARNING", n=len(wheels))
        past = wheels.history(PAST_S)
        turned = _turn_of_wheels(past, grid[None])
        gyro = next((g for p in peers if (g := _turn_of_gyros(p, _shifted(grid))) is not None), None)
        statistics, evidence, used = dict[str, float](), dict[str, float](), list[str]()
        if gyro is not None and turned is not None:
            off = gyro[1] - turned[0]
            if np.isfinite(off).all() and np.max(np.abs([*gyro[1], *turned])) < SPINNING:
                statistics["turn"] = float(np.min(np.abs(off))) if np.ptp(np.sign(off)) == 0 else 0.0
                used.append(gyro[0])
        rolled = _mean_speed(past, grid[None])
        speed = float(rolled[0]) if rolled is not None else np.nan
        if not np.isfinite(speed):
            return self._told(statistics, evidence, used, wheels, Unknown("NO_NUMBERS", n=len(wheels)))
        if speed < self.least_speed:
            return self._told(statistics, evidence, used, wheels, Unknown("AT_REST", n=len(wheels)))
        rate = max(abs(float(turned[0])) if turned is not None else 0.0, _slowest(gyro))
        arm = self.reach if issubclass(wheels.stream.type, WheelState) else self.arm
        why = Unknown("NO_PEER", "no reference shows the speed over ground", len(wheels))
        for peer in peers:
            found = _reference(peer, grid)
            if found is None:
                continue
            unsure = (3.0 * found.sigma + rate * arm) / speed
            lost = 1.0 - found.values / speed
            slip = float(lost[np.argmin(np.abs(lost))])
            if not self._trusts(peer, slip):
                why = Unknown(
                    "LEARNING", f"{peer.stream.name} has not agreed with the wheels yet", len(wheels)
                )
            elif unsure > UNSURE:
                why = Unknown("UNCERTAIN", "the reference is too uncertain at this speed", len(wheels))
            else:
                statistics["slip"] = max(0.0, slip - unsure)
                evidence |= {"measured": slip, "unsure": unsure, "speed_m_s": speed}
                used.append(peer.stream.name)
                break
        return self._told(statistics, evidence, used, wheels, why)

    def _told(
        self,
        statistics: dict[str, float],
        evidence: dict[str, float],
        used: list[str],
        wheels: Window[Any],
        why: Unknown,
    ) -> Finding | Unknown:
        return Finding(statistics, len(wheels), evidence, peers=tuple(used)) if statistics else why

    def _trusts(self, peer: Window[Any], slip: float) -> bool:
        """Tell whether a reference may contradict the wheels: fixes may, others if they once agreed."""
        if issubclass(peer.stream.type, NavFix):
            return True
        count = self._agreed.get(peer.stream.name, 0) + (abs(slip) < AGREED)
        self._agreed[peer.stream.name] = count
        return count > AGREEMENTS


def _steps(seconds: float) -> Ints:
    return np.rint(np.arange(0, seconds + 1e-9, STEP_S) * NS).astype(np.int64)


def _shifted(grid: Ints) -> Ints:
    """Return the times (k, m) of all shifts that are tried."""
    shifts = np.concatenate([-_steps(SHIFT_S)[:0:-1], _steps(SHIFT_S)])
    return grid + shifts[:, None]


def _resample(window: Window[Any], values: Floats, t_ns: Ints) -> Floats:
    """Return (k, m, c) values at other times (k, m), between the samples; NaN in gaps and outside."""
    known = np.isfinite(values).all(axis=1)
    t, order = np.unique(window.t_ns[known], return_index=True)
    result = np.full((*t_ns.shape, values.shape[1]), np.nan)
    if len(t) < 2:
        return result
    after = np.clip(np.searchsorted(t, t_ns), 1, len(t) - 1)
    step = t[after] - t[after - 1]
    near = (step <= NS + NS // 2) & (t_ns >= t[0] - NS // 10) & (t_ns <= t[-1] + NS // 10)
    part = np.clip((t_ns - t[after - 1]) / step, 0.0, 1.0)[..., None]
    sorted_values = values[known][order]
    between = sorted_values[after - 1] * (1 - part) + sorted_values[after] * part
    result[near] = between[near]
    return result


def _mean_speed(past: Window[Any], t_ns: Ints) -> Floats | None:
    """Return the mean speed (k,) of wheels or a body over times (k, m), without its sign."""
    if past.has("wheel_velocity"):
        rim = np.atleast_2d(past.array("wheel_velocity"))
        known = np.isfinite(rim)
        mean = np.where(known, rim, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        velocity = np.where(known.any(axis=1), mean, np.nan)[:, None]
    elif names := [name for name in ("vx", "vy") if past.has(name)]:
        velocity = past.array(*names)
        velocity[:, 1:] = np.nan_to_num(velocity[:, 1:])
    elif past.has("x", "y"):
        return _path_speed(_resample(past, past.array("x", "y"), t_ns))
    else:
        return None
    return np.linalg.norm(_resample(past, velocity, t_ns), axis=2).mean(axis=1)


def _path_speed(positions: Floats) -> Floats:
    """Return the speed (k,) along positions (k, m, 2), by steps of a second: noise makes short ones long."""
    each = round(1.0 / STEP_S)
    return np.linalg.norm(np.diff(positions[:, ::each], axis=1), axis=2).mean(axis=1)


def _turn_of_wheels(past: Window[Any], t_ns: Ints) -> Floats | None:
    return _resample(past, past.array("wz"), t_ns).mean(axis=(1, 2)) if past.has("wz") else None


def _turn_of_gyros(peer: Window[Any], t_ns: Ints) -> tuple[str, Floats] | None:
    """Return the mean turn rate (k,) about the vertical; None where it is not known where up is."""
    names = ("gyro_x", "gyro_y", "gyro_z", "acc_x", "acc_y", "acc_z")
    if not (issubclass(peer.stream.type, Imu) and peer.has(*names)):
        return None
    values = peer.history(PAST_S).array(*names)
    known = values[np.isfinite(values).all(axis=1)]
    if not len(known):
        return None
    up = known[:, 3:].mean(axis=0)
    size = float(np.linalg.norm(up))
    if not GRAVITY[0] < size < GRAVITY[1]:
        return None
    rate = _resample(peer.history(PAST_S), values[:, :3] @ (up / size)[:, None], t_ns).mean(axis=(1, 2))
    return (peer.stream.name, rate[np.isfinite(rate)]) if _few_unknown(rate) else None


def _slowest(gyro: tuple[str, Floats] | None) -> float:
    return 0.0 if gyro is None else float(np.min(np.abs(gyro[1])))


def _reference(peer: Window[Any], grid: Ints) -> _Speed | None:
    """Return how fast a reference moved over the ground; None where it does not tell."""
    past, kind = peer.history(PAST_S), peer.stream.type
    if issubclass(kind, RigidBodyState) and peer.stream.role == "measurement":
        speed = _mean_speed(past, _shifted(grid))
        return _Speed(speed[np.isfinite(speed)], 0.0) if speed is not None and _few_unknown(speed) else None
    if not (issubclass(kind, NavFix) and past.has("lat", "lon")) or not _is_fixed(past):
        return None
    points = past.array("lat", "lon")
    middle = np.nanmean(points, axis=0) if np.isfinite(points).any() else np.zeros(2)
    metres = (points - middle) * 6_371_000.0 * np.array([1.0, np.cos(middle[0])])
    newest = metres[past.t_ns >= grid[0]]
    if len(newest) > 2 and np.all(newest == newest[0]):
        return None  # the receiver holds its position
    speed = _path_speed(_resample(past, metres, _shifted(grid)))
    if not _few_unknown(speed) or len(metres) < 5:
        return None
    second = np.abs(metres[2:] - 2 * metres[1:-1] + metres[:-2])
    sigma = NORMAL * float(np.nanmedian(second)) / SIX
    # On a straight way steps add up to one, so that only its two ends scatter.
    return _Speed(speed[np.isfinite(speed)], float(np.sqrt(2.0)) * sigma / SPAN_S)


def _few_unknown(values: Floats) -> bool:
    """Tell whether most shifts can be tried: the newest samples of a slow stream have not come yet."""
    return bool(2 * np.isfinite(values).sum() > len(values))


def _is_fixed(past: Window[Any]) -> bool:
    """Tell whether the fixes are as good as they were: a float solution wanders by decimetres a second."""
    ranks = (
        [FIX_TYPES.index(each) for each in past.column("fix") if each in FIX_TYPES] if past.has("fix") else []
    )
    return not ranks or (ranks[-1] > 0 and min(ranks) == max(ranks))


def _four_wheels(wheels: Window[Any], peers: Sequence[Window[Any]], check: Slip) -> Finding | Unknown:
    """Return the slip of Interact's wheels against its inertial navigation."""
    past = [
        each.history(SPAN_S + 2 * SHIFT_S).as_stream()
        for each in (wheels, *peers)
        if each.stream.name in (ENCODERS, *INS)
    ]
    cut = Recording("window", tuple(past), frames=check.about.frames, robot=check.about.robot)
    try:
        found = wheel_slip(cut, None, max(REPORTED_SPEED, check.least_speed), AVERAGE)
    except TransectError as error:
        return Unknown("NO_PEER", error.what, len(wheels))
    ratio = np.asarray(found["slip_ratio"], dtype=np.float64)[found.t_ns >= wheels.t0_ns - NS // 2]
    known = np.isfinite(ratio)
    if known.all(axis=1).sum() < 3:
        return Unknown("AT_REST", n=len(wheels))
    each = np.array([np.median(ratio[known[:, k], k]) for k in range(ratio.shape[1])])
    evidence = {"worst_wheel": float(each.max()), "wheel": float(each.argmax()) + 1}
    return Finding({"slip": max(0.0, float(each.mean()))}, len(wheels), evidence, peers=INS)
