"""X10: is the antenna of a receiver where its mount says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.robust import NORMAL
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import angle_turned, body_of
from transect.integrity.windows import Window
from transect.types import Imu, NavFix, Odometry

EARTH = 6_371_000.0
SPAN_S, EVERY = 60.0, 5
"""Of the past that is looked at; and windows from one look to the next."""
STEP_S = 1.0
"""Over which speed and course are taken from fixes."""
SLOWEST, TURNING = 0.2, 0.05
"""m/s and rad/s: a robot that is slower has no course; one that turns less tells nothing of an arm."""
LEAST = 12
"""Steps in turns that tell an arm."""
UNSURE = 0.06
"""m: largest deviation of an arm that is told."""
ROUNDS, FAR = 3, 4.0
"""Of fitting, and deviations beyond which a step is left out."""
SIGMAS = 3.0
"""Deviations of the arm that are taken off."""


class _Steps(NamedTuple):
    """Steps between fixes: middle (s), speed (m/s), course to the left (rad), turn rate (rad/s), angle."""

    t: Floats
    speed: Floats
    course: Floats
    rate: Floats
    turned: Floats


class _Part(NamedTuple):
    """One component of the arm and its deviation, m."""

    metres: float
    sigma: float


class LeverArm(Check, id="X10", group="cross"):
    """How far the arm from the body to the antenna, as turns show it, is from that of the frame tree.

    In a turn with rate w an antenna at (x, y) of the body moves by ``v + w x r``: its speed is ``s v - w y``
    with v of the wheels and s their scale, and its course is ahead of the heading by ``w x / speed``. Both
    are fitted over a minute of fixes a second apart. What three deviations explain is taken off. Along the
    body the arm counts from where wheels do not slide sideways, which descriptions do not tell well: its
    limits are wider. It needs an odometry: speeds of single wheels are not those of the body.

    Motive: Mistakes of descriptions: a lever arm with the wrong sign, or in the wrong unit.
    """

    across = Limit(0.1, 0.3, "EXTRINSIC", "m", "arm to the left of the body, against its mount")
    along = Limit(0.25, 0.6, "EXTRINSIC", "m", "arm to the front of the body, against its mount")

    def reset(self) -> None:
        """Nothing was found yet."""
        self._windows = 0
        self._found: Finding | Unknown = Unknown("LEARNING")

    def look(self, fixes: Window[NavFix], peers: Sequence[Window[Odometry | Imu]]) -> Finding | Unknown:
        """Look at the last minute, every few windows."""
        body = body_of(self.about.frames, fixes.stream.frame)
        if body is None:
            return Unknown("NO_FRAMES", "no mount says where its antenna is", len(fixes))
        if self._windows % EVERY == 0:
            mount = self.about.frames.lookup(body, fixes.stream.frame, fixes.t1_ns)[:3, 3]
            self._found = self._fit(fixes, peers, mount)
        self._windows += 1
        return self._found

    def _fit(self, fixes: Window[Any], peers: Sequence[Window[Any]], mount: Floats) -> Finding | Unknown:
        past = [each.history(SPAN_S) for each in peers if len(each)]
        turning = sorted(past, key=lambda each: not issubclass(each.stream.type, Imu))
        gyro = next(((each, t) for each in turning if (t := angle_turned(each)) is not None), None)
        steps = None if gyro is None else _steps(fixes.history(SPAN_S), *gyro[1])
        if gyro is None or steps is None:
            return Unknown("NO_PEER", "nothing shows how it turns", len(fixes))
        if np.sum(np.abs(steps.rate) > TURNING) < LEAST:
            return Unknown("NO_TURNS", n=len(fixes))
        used, statistics, evidence = [gyro[0].stream.name], dict[str, float](), dict[str, float]()
        parts: dict[str, _Part | None] = {}
        wheels = next(((each, v) for each in past if (v := _wheel_speed(each, steps.t)) is not None), None)
        if wheels is not None:
            used.append(wheels[0].stream.name)
            parts = {"across": _across(steps, wheels[1]), "along": _along(steps)}
        declared = {"across": float(mount[1]), "along": float(mount[0])}
        for name, part in parts.items():
            if part is not None and part.sigma < UNSURE:
                evidence |= {f"{name}_m": part.metres, f"{name}_sigma_m": part.sigma}
                statistics[name] = max(0.0, abs(part.metres - declared[name]) - SIGMAS * part.sigma)
        if not statistics:
            return Unknown("TOO_FEW", "its turns do not tell the arm", len(fixes), evidence)
        return Finding(
            statistics, len(fixes), evidence, note=self._say(statistics, evidence), peers=tuple(used)
        )

    def _say(self, statistics: dict[str, float], evidence: dict[str, float]) -> str:
        wrong = [name for name, value in statistics.items() if value > self.limits[name].warn]
        side = {"across": "to the left", "along": "to the front"}
        said = " and ".join(f"{evidence[f'{name}_m']:+.2f} m {side[name]}" for name in wrong)
        return f"in turns its antenna is {said} of the body; correct its mount" if said else ""


def _steps(fixes: Window[Any], t_turned: Floats, turned: Floats) -> _Steps | None:
    """Return the steps between fixes in which the robot moved; None for too few."""
    points = fixes.array("lat", "lon")
    ok = np.isfinite(points).all(axis=1) & (np.abs(points) > 0).any(axis=1)
    t, points = fixes.t_ns[ok].astype(np.float64), points[ok]
    if len(t) < LEAST or np.any(np.diff(t) <= 0):
        return None
    metres = (points - points[0]) * EARTH * np.array([1.0, np.cos(points[0, 0])])
    grid = np.arange(max(t[0], t_turned[0]), min(t[-1], t_turned[-1]), STEP_S * 1e9)
    after = np.searchsorted(t, grid, "right").clip(1, len(t) - 1)
    near = t[after] - t[after - 1] < 1.5e9 * STEP_S
    north, east = (np.interp(grid, t, metres[:, k]) for k in (0, 1))
    angle = np.interp(grid, t_turned, turned)
    going = np.column_stack([np.diff(north), -np.diff(east)]) / STEP_S
    speed = np.hypot(*going.T)
    moves = (speed > SLOWEST) & near[1:] & near[:-1]
    if moves.sum() < LEAST:
        return None
    middle, rate = (grid[1:] + grid[:-1]) / 2, np.diff(angle) / STEP_S
    # A step is a chord: the way is longer by the arc.
    bent = rate * STEP_S / 2
    speed = speed * np.where(
        np.abs(bent) > 1e-6, bent / np.sin(np.where(np.abs(bent) > 1e-6, bent, 1.0)), 1.0
    )
    course = np.unwrap(np.arctan2(going[:, 1], going[:, 0])[moves])
    return _Steps(
        middle[moves] / 1e9, speed[moves], course, rate[moves], ((angle[1:] + angle[:-1]) / 2)[moves]
    )


def _wheel_speed(peer: Window[Any], t: Floats) -> Floats | None:
    """Return the forward speed of wheels (n,) around times t (n,), s; None where a stream has none."""
    if not (issubclass(peer.stream.type, Odometry) and peer.has("vx")):
        return None
    forward = peer.array("vx")[:, 0]
    known = np.isfinite(forward)
    seconds, forward = peer.t_ns[known] / 1e9, forward[known]
    if len(seconds) < LEAST or np.any(np.diff(seconds) <= 0):
        return None
    way = np.concatenate([[0.0], np.cumsum(np.diff(seconds) * (forward[1:] + forward[:-1]) / 2)])
    return (np.interp(t + STEP_S / 2, seconds, way) - np.interp(t - STEP_S / 2, seconds, way)) / STEP_S


def _across(steps: _Steps, wheels: Floats) -> _Part | None:
    """Return the arm to the left: ``speed = s v - w y``, for wheels that go forward."""
    forward = wheels > SLOWEST / 2
    return _regress(np.column_stack([-steps.rate, wheels])[forward], steps.speed[forward])


def _along(steps: _Steps) -> _Part | None:
    """Return the arm to the front: ``course - turned = c + d t + w x / speed``."""
    ahead = np.unwrap(steps.course - steps.turned)
    t = steps.t - steps.t[0]
    return _regress(np.column_stack([steps.rate / steps.speed, np.ones(len(t)), t]), ahead)


def _regress(columns: Floats, values: Floats) -> _Part | None:
    """Return the first coefficient of a linear fit that leaves out what is far off, and its deviation."""
    good, scatter, found = np.ones(len(values), np.bool_), 0.0, np.zeros(1)
    for _ in range(ROUNDS):
        if good.sum() < LEAST:
            return None
        found, *_ = np.linalg.lstsq(columns[good], values[good], rcond=None)
        off = values - columns @ found
        scatter = NORMAL * float(np.median(np.abs(off[good]))) + 1e-6
        good = np.abs(off) < FAR * scatter
    information = columns[good].T @ columns[good] / scatter**2
    # Errors of fixes last from step to step, and a step ends where the next begins.
    sigma = float(np.sqrt(2.0 * np.linalg.pinv(information)[0, 0]))
    return _Part(float(found[0]), sigma)
