"""Steps of wheels in the error-state filter: what they mean, how they err, how the state moves by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry.rotations import matrix_from_rotation_vector as exp
from transect.geometry.rotations import rotation_vector_from_matrix as log
from transect.geometry.rotations import skew

from .error_state import (
    ATTITUDE,
    BEND,
    CLONES,
    GYRO_BIAS,
    GYRO_HEADING,
    POSITION,
    SCALE,
    SIDE,
    SIZE,
    SLIP,
    STEER,
    UP,
    VELOCITY,
    ProcessNoise,
    Residual,
    State,
    add_variance,
)
from .measurements import Step, Turning


def by_wheels(x: State, transform: Floats) -> tuple[Floats, float, Floats]:
    """Return what a step means: way (3,) in m, turn in rad, and how these depend on the state's error (4, n).

    Both are wrong by the same part where wheels slip, or mistake their direction.
    """
    t, said = transform[:3, 3], heading_of(transform)
    aside, part = np.array([-t[1], t[0], 0.0]), 1 + x.scale + x.slip
    by = np.zeros((4, SIZE))
    by[:3, SCALE] = by[:3, SLIP] = t
    by[:3, SIDE] = aside
    by[3, SCALE] = by[3, SLIP] = by[3, STEER] = said
    by[3, BEND] = t[0]
    return part * t + x.side * aside, (part + x.steer) * said + x.bend * float(t[0]), by


def heading_of(transform: Floats) -> float:
    """Return the turn to the left in rad."""
    return float(np.arctan2(transform[1, 0], transform[0, 0]))


def step_variances(transform: Floats, seconds: float, noise: ProcessNoise) -> Floats:
    """Variances (4,) of a step of wheels: along, across, up (m2) and heading (rad2).

    Those of distance and turn add up along the way; what wheels do not see at rest adds up with time.
    """
    distance = float(np.hypot(transform[0, 3], transform[1, 3]))
    turned = abs(heading_of(transform))
    still = noise.speed_floor**2 * seconds
    return np.array(
        [
            noise.along**2 * distance + still,
            noise.across**2 * distance + still,
            noise.up**2 * distance + still,
            noise.heading**2 * distance + noise.skid**2 * turned + noise.turn_floor**2 * seconds,
        ]
    )


def age_wheels(x: State, distance: float, noise: ProcessNoise) -> None:
    """Let what is known of the wheels' errors grow old by a distance in metres."""
    kept = float(np.exp(-distance / noise.slip_length))
    x.slip *= kept
    x.covariance[SLIP, :] *= kept
    x.covariance[:, SLIP] *= kept
    x.covariance[SLIP, SLIP] += (noise.slip**2 + x.unsteady**2) * (1 - kept**2)
    x.unsteady *= kept
    x.covariance[SCALE, SCALE] += noise.scale_walk**2 * distance
    x.covariance[STEER, STEER] += noise.steer_walk**2 * distance
    x.covariance[SIDE, SIDE] += noise.side_walk**2 * distance
    x.covariance[BEND, BEND] += noise.bend_walk**2 * distance


def doubt_wheels(x: State, noise: ProcessNoise, unsteady: float) -> None:
    """Forget the slip: wheels set off, and even their direction may be wrong; `unsteady` is its sigma."""
    x.slip, x.unsteady = 0.0, unsteady
    # What it has in common with the way until now is kept: who mistakes a direction does so again.
    x.covariance[SLIP, SLIP] = max(x.covariance[SLIP, SLIP], noise.slip**2 + unsteady**2)


def doubt_leap(x: State, leap: float, unsteady: float) -> None:
    """Doubt the way of wheels that leapt by a speed in m/s: for as long as that lasts, it may be nothing."""
    ahead = x.rotation[:, 0]
    x.covariance[POSITION, POSITION] += (unsteady * leap * LEAP) ** 2 * np.outer(ahead, ahead)


@dataclass(frozen=True)
class GyroTurn:
    """A turn about the vertical by a gyroscope: rad to the left, its bias in it, and its variance."""

    angle: float
    variance: float

    def part(self, fraction: float) -> GyroTurn:
        """Return a part of the turn."""
        return GyroTurn(self.angle * fraction, self.variance * fraction)


def move_by_step(
    x: State,
    transform: Floats,
    seconds: float,
    noise: ProcessNoise,
    gyro: GyroTurn | None = None,
    shaking: float = 0.0,
) -> None:
    """Move as a dead reckoning in the plane says; its heading by a gyroscope where that is given.

    `shaking` is the white noise of its ways that was seen, m2/s: see `Shaking`.
    """
    up = x.rotation @ UP
    moved, turned, by = by_wheels(x, transform)
    in_map = x.rotation @ moved
    F = np.eye(SIZE)
    F[POSITION] += x.rotation @ by[:3]
    F[POSITION, ATTITUDE] = -skew(in_map)
    variance = step_variances(transform, seconds, noise)
    variance[0] = max(variance[0], shaking * seconds)
    variance[2] += noise.hill**2 * float(np.hypot(*transform[:2, 3]))
    if gyro is None:
        F[ATTITUDE] += np.outer(up, by[3])
    else:
        F[ATTITUDE, GYRO_HEADING] = -up * seconds
        turned = gyro.angle - x.gyro_bias[2] * seconds
        variance[3] = gyro.variance
        add_variance(x, GYRO_BIAS, noise.gyro_walk**2 * seconds)
    x.covariance = F @ x.covariance @ F.T
    spread = x.rotation @ np.diag(variance[:3]) @ x.rotation.T
    x.covariance[POSITION, POSITION] += spread
    x.covariance[ATTITUDE, ATTITUDE] += variance[3] * np.outer(up, up)
    x.covariance[VELOCITY, :] = x.covariance[:, VELOCITY] = 0.0
    x.covariance[VELOCITY, VELOCITY] = spread / seconds**2
    x.p, x.v, x.rotation = x.p + in_map, in_map / seconds, x.rotation @ exp(UP * turned)


def step_residual(x: State, transform: Floats, slot: int, variances: Floats, wheels: bool) -> Residual:
    """Residual of a step between a clone and now: translation in the clone's axes, rotation in the body's.

    Parameters
    ----------
    variances : (6, 6)
        Covariance of the two.
    wheels : bool
        Whether it has the errors of wheels, and tells nothing of roll and pitch: 4 numbers, else 6.
    """
    kept = x.clones[slot]
    assert kept is not None
    _, p_then, R_then = kept
    where, how = CLONES[slot]
    moved = x.p - p_then
    H = np.zeros((6, SIZE))
    H[:3, POSITION], H[:3, where], H[:3, how] = R_then.T, -R_then.T, R_then.T @ skew(moved)
    H[3:, ATTITUDE], H[3:, how] = x.rotation.T, -x.rotation.T
    measured, R_step = transform[:3, 3], transform[:3, :3]
    if wheels:
        measured, turned, by = by_wheels(x, transform)
        R_step = exp(UP * turned)
        H[:3] -= by[:3]
        H[5] -= by[3]
    rotation = log((R_then.T @ x.rotation).T @ R_step)
    r = np.concatenate([measured - R_then.T @ moved, rotation])
    rows = [0, 1, 2, 5] if wheels else list(range(6))
    return Residual(r[rows], H[rows], variances[np.ix_(rows, rows)])


def turn_residual(x: State, transform: Floats, seconds: float, variance: float, gyro: GyroTurn) -> Residual:
    """Residual (1,) of the turn that wheels say, against that of a gyroscope: tells its bias, their bend."""
    _, turned, by = by_wheels(x, transform)
    H = -by[3:]
    H[0, GYRO_HEADING] = -seconds
    r = turned - gyro.angle + x.gyro_bias[2] * seconds
    return Residual(np.array([r]), H, np.array([[variance + gyro.variance]]))


# The gyroscope that wheels are compared with


KEPT_NS = NS
"""Rates older than this before the newest are forgotten."""
SILENT_NS = NS // 5
"""Over a longer gap of an IMU neither a turn nor a motion is known."""
DIFFERENCES = 6.0
"""Variance of the second difference of white noise over that of the noise."""
FOLLOWED = 5.0
"""Seconds over which the noise is averaged."""
LEAST_DENSITY = 1e-6
"""rad/s/sqrt(Hz), of the best gyroscopes."""


class Gyro:
    """Keeps the newest rates, and how noisy they are: by their second differences, vibration included."""

    def __init__(self) -> None:
        self.rates: list[Turning] = []
        self.density = 0.0

    def take(self, turning: Turning) -> None:
        """Take a rate, later than the one before."""
        if self.rates and turning.t_ns <= self.rates[-1].t_ns:
            return
        self.rates = [*(each for each in self.rates if each.t_ns > turning.t_ns - KEPT_NS), turning]
        if len(self.rates) < 3:
            return
        a, b, c = self.rates[-3:]
        seconds = (c.t_ns - a.t_ns) / 2 / NS
        found = (a.rate - 2 * b.rate + c.rate) ** 2 * seconds / DIFFERENCES
        weight = 1.0 if not self.density else min(seconds / FOLLOWED, 1.0)
        self.density += weight * (found - self.density)

    def between(self, since_ns: int, t_ns: int) -> GyroTurn | None:
        """Return the turn between two times; None where rates do not cover them."""
        times = np.array([each.t_ns for each in self.rates], np.int64)
        if len(times) < 2 or times[0] > since_ns + SILENT_NS or times[-1] < t_ns - SILENT_NS:
            return None
        rates = np.array([each.rate for each in self.rates])
        inside = times[(times > since_ns) & (times < t_ns)]
        at = np.concatenate([[since_ns], inside, [t_ns]]).astype(np.int64)
        if np.diff(at).max() > SILENT_NS:
            return None
        elapsed = (at - since_ns) / NS
        values = np.interp(elapsed, (times - since_ns) / NS, rates)
        angle = float(np.trapezoid(values, elapsed))
        return GyroTurn(angle, max(self.density, LEAST_DENSITY**2) * (t_ns - since_ns) / NS)


class Shaking:
    """Follows how unevenly wheels say their way, by second differences of their steps.

    Stamps that jitter, pulses that are counted and slip of a moment make it: over a fraction of a second it
    is most of what wheels err, and over many seconds, in which their noise is learnt, hardly any.

    Attributes
    ----------
    density : float
        As white noise, m2/s.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.density, self.count = 0.0, 0

    def take(self, step: Step) -> None:
        """Take a step; one that does not follow the last begins anew."""
        if self.steps and self.steps[-1].t_ns != step.since_ns:
            self.steps = []
        self.steps = [*self.steps[-2:], step]
        if len(self.steps) < 3:
            return
        seconds = np.array([(each.t_ns - each.since_ns) / NS for each in self.steps])
        speeds = np.array([float(each.transform[0, 3]) for each in self.steps]) / seconds
        mean = float(seconds.mean())
        found = float(speeds @ [1.0, -2.0, 1.0]) ** 2 * mean / DIFFERENCES
        self.count += 1
        self.density += min(max(mean / FOLLOWED, 1 / self.count), 1.0) * (found - self.density)


# When wheels cannot be believed


WINDOW = 0.09
"""Seconds over which a speed is measured, at least: in less, encoders count single pulses."""
STANDING = 0.03
"""m/s; slower wheels stand."""
LEAP = 0.3
"""Seconds that a leap of the speed lasts."""
STOOD = 1.0
"""Seconds without motion after which a body may set off in the other direction."""
MOST_ACCELERATION = 5.0
"""m/s2: half of gravity is more than wheels hold on soil."""


class Pace:
    """Follows the speed that wheels report, to tell when they set off, turn round or leap.

    Wheels that count pulses do not measure their direction: it is that of the command, which changes before a
    rolling body does, or not at all when a body rolls back. Near a standstill pulses are too rare to give a
    speed: the last one is held, or leaps.

    Attributes
    ----------
    sets_off : bool
        Whether wheels set off with the last step: after they stood, or in the other direction.
    leap : float
        Speed in m/s by which they leapt with the last step, as no body on wheels does; 0 if they did not.
    """

    def __init__(self) -> None:
        self.speed: float | None = None
        self.way = self.seconds = self.stood = self.direction = 0.0
        self.sets_off, self.leap = False, 0.0

    def take(self, step: Step) -> None:
        """Take a step."""
        self.sets_off, self.leap = False, 0.0
        self.way += float(step.transform[0, 3])
        self.seconds += (step.t_ns - step.since_ns) / NS
        if self.seconds < WINDOW:
            return
        before, now, seconds = self.speed, self.way / self.seconds, self.seconds
        self.speed, self.way, self.seconds = now, 0.0, 0.0
        if abs(now) < STANDING:
            self.stood += seconds
            return
        turned_round = now * self.direction < 0
        self.sets_off = self.stood >= STOOD or turned_round
        self.direction, self.stood = float(np.sign(now)), 0.0
        change = abs(now - before) if before is not None else 0.0
        if not self.sets_off and change > max(MOST_ACCELERATION * seconds, abs(now) / 2):
            self.leap = change


LEARNT_AFTER, LEAST_BURST = 0.5, 0.1
"""Metres after which a direction is compared with places, and the least where wheels stand before."""
REMEMBERED = 30.0
"""Seconds after which what was seen of reversals is worth a third: it holds for one manoeuvre."""
SURE = 0.2
"""Part of that way which may be uncertain."""
PRIOR_REVERSALS = 0.25
"""As many reversals are worth what was told of them: wheels see them or not, so that one tells much."""
WRONG = 4.0
"""Square of the relative error of a way in the wrong direction."""


class SetOffs:
    """Learns from places how wrong wheels are when they set off: from those on which the body went back.

    Wheels that never say so are right as long as the body goes forwards; that tells nothing.

    Parameters
    ----------
    told : float
        One sigma of the relative error of their way, before any was seen.
    """

    def __init__(self, told: float) -> None:
        self.told, self.seen, self.squares, self.t_ns = told, 0.0, 0.0, 0
        self.began: tuple[Floats, Floats, float] | None = None
        self.said, self.rests = 0.0, False

    def unsteady(self, t_ns: int) -> float:
        """Return one sigma of the relative error of a way after setting off now, by all that is known."""
        aged = np.exp(-(t_ns - self.t_ns) / NS / REMEMBERED)
        known = PRIOR_REVERSALS * self.told**2 + aged * self.squares
        return float(np.sqrt(known / (PRIOR_REVERSALS + aged * self.seen)))

    def begin(self, x: State) -> None:
        """Remember where wheels set off."""
        self.began, self.said, self.rests = (
            (x.p, x.rotation[:, 0], self._sigma(x, x.rotation[:, 0])),
            0.0,
            False,
        )

    def move(self, way: float, rests: bool) -> None:
        """Take the way of a step in m, and whether wheels rest after it."""
        self.said += way
        self.rests = self.rests or rests

    def compare(self, x: State) -> None:
        """Compare the way that wheels said with that by places, which the state has just taken."""
        if self.began is None or abs(self.said) < (LEAST_BURST if self.rests else LEARNT_AFTER):
            return
        place, ahead, sigma = self.began
        self.began = None
        if max(sigma, self._sigma(x, ahead)) > SURE * abs(self.said):
            return
        moved = float((x.p - place) @ ahead)
        if min(moved, self.said) < -LEAST_BURST / 2:
            part, aged = moved / self.said - 1 - x.scale, np.exp(-(x.t_ns - self.t_ns) / NS / REMEMBERED)
            self.seen, self.squares = aged * self.seen + 1, aged * self.squares + min(part**2, WRONG)
            self.t_ns = x.t_ns

    def _sigma(self, x: State, ahead: Floats) -> float:
        return float(np.sqrt(ahead @ x.covariance[POSITION, POSITION] @ ahead))
