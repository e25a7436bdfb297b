"""X10: is the antenna of a receiver at its described position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.robust import SIGMA_PER_MAD
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import EARTH_RADIUS_M, angle_turned, body_of
from transect.integrity.windows import Window
from transect.types import Imu, NavFix, Odometry


@dataclass(frozen=True)
class LeverArmSettings:
    """Numbers of the fit of the lever arm."""

    span_s: float = 60.0  # Past that is fitted.
    fit_interval: int = 5  # Windows from one fit to the next.
    step_s: float = 1.0  # Time over which speed and course are taken from fixes.
    min_speed_m_s: float = 0.2  # A slower robot has no course.
    min_turn_rad_s: float = 0.05  # Slower turns do not determine an arm.
    min_steps: int = 12  # Steps in turns that determine an arm.
    max_sigma_m: float = 0.06  # Largest sigma of an arm that is judged.
    iterations: int = 3  # Iterations of the fit, which ...
    outlier_sigmas: float = 4.0  # ... leave out steps beyond this.
    arm_sigmas: float = 3.0  # Sigmas of the arm that are subtracted from its error.


class _FixSteps(NamedTuple):
    """Steps between fixes: middle (s), speed (m/s), course (rad), turn rate (rad/s), angle turned (rad)."""

    t: Floats
    speed: Floats
    course: Floats
    rate: Floats
    turned: Floats


class _ArmComponent(NamedTuple):
    """One component of the lever arm and its sigma, m."""

    metres: float
    sigma: float


class LeverArm(Check, id="X10", group="cross"):
    """Lever arm from the body to the antenna by turns, against that of the frame tree.

    In a turn with rate w an antenna at (x, y) of the body moves with ``v + w x r``: its speed is ``s v -
    w y``, with v of the wheels and s their scale, and its course is ahead of the heading by ``w x /
    speed``. Both are fitted over a minute of fixes at intervals of a second. Three sigmas are subtracted
    from the error. Along the body the arm is measured from the point where wheels do not slide sideways,
    which descriptions do not state well: its limits are wider. The check needs an odometry, as speeds of
    single wheels are not those of the body.

    Motive: Mistakes of descriptions: a lever arm with the wrong sign, or in the wrong unit.
    """

    settings = LeverArmSettings()

    across = Limit(0.1, 0.3, "EXTRINSIC", "m", "error of the lever arm to the left")
    along = Limit(0.25, 0.6, "EXTRINSIC", "m", "error of the lever arm to the front")

    def reset(self) -> None:
        """Start without a fit."""
        self._windows = 0
        self._found: Finding | Unknown = Unknown("LEARNING")

    def evaluate(self, fixes: Window[NavFix], peers: Sequence[Window[Odometry | Imu]]) -> Finding | Unknown:
        """Fit the last minute, every few windows."""
        body = body_of(self.context.frames, fixes.stream.frame)
        if body is None:
            return Unknown("NO_FRAMES", "its mount on the robot is not described", len(fixes))
        if self._windows % self.settings.fit_interval == 0:
            mount = self.context.frames.lookup(body, fixes.stream.frame, fixes.t1_ns)[:3, 3]
            self._found = self._fit(fixes, peers, mount)
        self._windows += 1
        return self._found

    def _fit(self, fixes: Window[Any], peers: Sequence[Window[Any]], mount: Floats) -> Finding | Unknown:
        past = [each.history(self.settings.span_s) for each in peers if len(each)]
        turning = sorted(past, key=lambda each: not issubclass(each.stream.type, Imu))
        gyro = next(((each, t) for each in turning if (t := angle_turned(each)) is not None), None)
        steps = None if gyro is None else _steps(fixes.history(self.settings.span_s), *gyro[1], self.settings)
        if gyro is None or steps is None:
            return Unknown("NO_PEER", "no stream shows how the robot turns", len(fixes))
        if np.sum(np.abs(steps.rate) > self.settings.min_turn_rad_s) < self.settings.min_steps:
            return Unknown("NO_TURNS", n=len(fixes))
        used, statistics, evidence = [gyro[0].stream.name], dict[str, float](), dict[str, float]()
        parts: dict[str, _ArmComponent | None] = {}
        wheels = next(
            ((each, v) for each in past if (v := _wheel_speed(each, steps.t, self.settings)) is not None),
            None,
        )
        if wheels is not None:
            used.append(wheels[0].stream.name)
            parts = {
                "across": _across(steps, wheels[1], self.settings),
                "along": _along(steps, self.settings),
            }
        declared = {"across": float(mount[1]), "along": float(mount[0])}
        for name, part in parts.items():
            if part is not None and part.sigma < self.settings.max_sigma_m:
                evidence |= {f"{name}_m": part.metres, f"{name}_sigma_m": part.sigma}
                statistics[name] = max(
                    0.0, abs(part.metres - declared[name]) - self.settings.arm_sigmas * part.sigma
                )
        if not statistics:
            return Unknown("TOO_FEW", "its turns do not determine the lever arm", len(fixes), evidence)
        return Finding(
            statistics,
            len(fixes),
            evidence,
            note=self._describe_error(statistics, evidence),
            peers=tuple(used),
        )

    def _describe_error(self, statistics: dict[str, float], evidence: dict[str, float]) -> str:
        wrong = [name for name, value in statistics.items() if value > self.limits[name].warn]
        side = {"across": "to the left", "along": "to the front"}
        error = " and ".join(f"{evidence[f'{name}_m']:+.2f} m {side[name]}" for name in wrong)
        return f"in turns its antenna is {error} of the body; correct its mount" if error else ""


def _steps(
    fixes: Window[Any], t_turned: Floats, turned: Floats, settings: LeverArmSettings
) -> _FixSteps | None:
    """Return the steps between fixes in which the robot moved; None for too few."""
    points = fixes.array("lat", "lon")
    ok = np.isfinite(points).all(axis=1) & (np.abs(points) > 0).any(axis=1)
    t, points = fixes.t_ns[ok].astype(np.float64), points[ok]
    if len(t) < settings.min_steps or np.any(np.diff(t) <= 0):
        return None
    metres = (points - points[0]) * EARTH_RADIUS_M * np.array([1.0, np.cos(points[0, 0])])
    grid = np.arange(max(t[0], t_turned[0]), min(t[-1], t_turned[-1]), settings.step_s * 1e9)
    after = np.searchsorted(t, grid, "right").clip(1, len(t) - 1)
    near = t[after] - t[after - 1] < 1.5e9 * settings.step_s
    north, east = (np.interp(grid, t, metres[:, k]) for k in (0, 1))
    angle = np.interp(grid, t_turned, turned)
    velocity = np.column_stack([np.diff(north), -np.diff(east)]) / settings.step_s
    speed = np.hypot(*velocity.T)
    moves = (speed > settings.min_speed_m_s) & near[1:] & near[:-1]
    if moves.sum() < settings.min_steps:
        return None
    middle, rate = (grid[1:] + grid[:-1]) / 2, np.diff(angle) / settings.step_s
    # A step is a chord; the path is longer.
    half_turn = rate * settings.step_s / 2
    speed = speed * np.where(
        np.abs(half_turn) > 1e-6, half_turn / np.sin(np.where(np.abs(half_turn) > 1e-6, half_turn, 1.0)), 1.0
    )
    course = np.unwrap(np.arctan2(velocity[:, 1], velocity[:, 0])[moves])
    return _FixSteps(
        middle[moves] / 1e9, speed[moves], course, rate[moves], ((angle[1:] + angle[:-1]) / 2)[moves]
    )


def _wheel_speed(peer: Window[Any], t: Floats, settings: LeverArmSettings) -> Floats | None:
    """Return the mean forward speed of wheels (n,) around times t (n,), s; None without one."""
    if not (issubclass(peer.stream.type, Odometry) and peer.has("vx")):
        return None
    forward = peer.array("vx")[:, 0]
    known = np.isfinite(forward)
    seconds, forward = peer.t_ns[known] / 1e9, forward[known]
    if len(seconds) < settings.min_steps or np.any(np.diff(seconds) <= 0):
        return None
    distance = np.concatenate([[0.0], np.cumsum(np.diff(seconds) * (forward[1:] + forward[:-1]) / 2)])
    return (
        np.interp(t + settings.step_s / 2, seconds, distance)
        - np.interp(t - settings.step_s / 2, seconds, distance)
    ) / settings.step_s


def _across(steps: _FixSteps, wheels: Floats, settings: LeverArmSettings) -> _ArmComponent | None:
    """Return the arm to the left, ``speed = s v - w y``, for forward motion."""
    forward = wheels > settings.min_speed_m_s / 2
    return _regress(np.column_stack([-steps.rate, wheels])[forward], steps.speed[forward], settings)


def _along(steps: _FixSteps, settings: LeverArmSettings) -> _ArmComponent | None:
    """Return the arm to the front: ``course - turned = c + d t + w x / speed``."""
    ahead = np.unwrap(steps.course - steps.turned)
    t = steps.t - steps.t[0]
    return _regress(np.column_stack([steps.rate / steps.speed, np.ones(len(t)), t]), ahead, settings)


def _regress(columns: Floats, values: Floats, settings: LeverArmSettings) -> _ArmComponent | None:
    """Return the first coefficient of a linear fit without outliers, and its sigma."""
    good, scatter, found = np.ones(len(values), np.bool_), 0.0, np.zeros(1)
    for _ in range(settings.iterations):
        if good.sum() < settings.min_steps:
            return None
        found, *_ = np.linalg.lstsq(columns[good], values[good], rcond=None)
        residuals = values - columns @ found
        scatter = SIGMA_PER_MAD * float(np.median(np.abs(residuals[good]))) + 1e-6
        good = np.abs(residuals) < settings.outlier_sigmas * scatter
    information = columns[good].T @ columns[good] / scatter**2
    # Errors of fixes persist from step to step, and a step ends where the next begins.
    sigma = float(np.sqrt(2.0 * np.linalg.pinv(information)[0, 0]))
    return _ArmComponent(float(found[0]), sigma)
