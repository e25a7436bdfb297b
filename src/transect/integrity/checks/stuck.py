"""S01: does a sensor repeat the same sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine.nodes import param
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import (
    Imu,
    JointState,
    LaserScan,
    NavFix,
    Odometry,
    RadarSpectrum,
    RigidBodyState,
    Twist,
    WheelState,
)

NOISY_TYPES = (Imu, LaserScan, RadarSpectrum)
"""Types whose noise never repeats: a second bit-identical sample was not measured."""
WHEEL_COLUMNS = ("wheel_velocity", "drive_ticks")
"""Columns of wheels that change while a robot drives; steering and commands may be constant."""
Stickable = (
    Imu | LaserScan | RadarSpectrum | NavFix | Odometry | Twist | WheelState | RigidBodyState | JointState
)


@dataclass(frozen=True)
class StuckSettings:
    """Numbers that distinguish a stuck sensor from one at rest."""

    # Samples at rest without a repeat after which a sensor has noise, and a repeat was not measured; ...
    noisy_samples: int = 100
    min_window_samples: int = 10  # ... each window counts as at least this number of them.
    min_reversals: int = 5  # Reversals of a joint at rest that determine how rarely it repeats a sample.
    max_repeat_probability: float = 1e-4  # Probability of a run below which it was not measured.
    joint_rest_s: float = 10.0  # Time for which a joint without a second sensor must stand still.
    max_counted_interval_s: float = 0.2  # Longer sampling intervals count as several of these.
    min_run_samples: int = 3
    # Ratio of the usual speed threshold at which a robot crawls, unseen by others.
    crawl_speed_ratio: float = 0.1
    proving_windows: int = 2  # Windows with motion in a run after which the run was not measured.
    min_range_change_m: float = 0.1  # Median change of a laser's ranges in two seconds if it moves.
    joint_rest_range_rad: float = 0.03  # Range of all samples of a joint that stands still.
    # Turn of a joint that moves, between thirds of the run; two sensors may differ by as much (X06).
    joint_motion_rad: float = 0.01
    min_motion_span_s: float = 3.0  # Shortest and longest time over which this turn is measured.
    max_motion_span_s: float = 10.0


class Stuck(Check, id="S01", group="signal", version=6, k_on=1, k_off=1):
    """Number of consecutive bit-identical samples up to the last one of the window.

    For inertial sensors, lasers and radars, which have noise, that is sufficient, as it is for sensors
    that never repeated a sample while they stood still. Fixes, wheels, joints and poses may stand still:
    another stream must show motion meanwhile, for joints another sensor of the same joints; a laser shows
    motion if most of its ranges change. Motion in two windows of a run proves that the run was not
    measured; one is enough unless only fixes show it, which may be noise. A run of a joint may also be
    too long for chance: if it reversed c times at rest and repeated m samples (or fifths of a second), k
    more repeats have the probability ``B(m + k + 1, c + 1) / B(m + 1, c + 1)``. A sampling interval of
    more than a fifth of a second counts as several. A run shorter than `shortest` is a sensor that is
    logged faster than it measures.

    Motive: InSight SIS, `enc_delta`: an encoder that "changes by less than" this means a fault.
    """

    settings = StuckSettings()

    run = Limit(10.0, 50.0, "STUCK", "", "consecutive identical samples")
    shortest: float = param(0.5, ge=0.0, unit="s", doc="shortest run that is judged")

    def reset(self) -> None:
        """Start without a sample."""
        self._last: bytes | None = None
        self._run, self._since, self._until, self._moved = 0, 0, 0, 0
        self._noisy_samples, self._reversals, self._repeated, self._was_stuck = 0, 0, 0, False
        self._newest = np.empty((0, 0))

    def evaluate(
        self,
        stream: Window[Stickable],
        peers: Sequence[Window[Moving]] = (),
        joints: Sequence[Window[JointState]] = (),
        lasers: Sequence[Window[LaserScan]] = (),
    ) -> Finding | Unknown:
        """Count how many of the last samples are the same."""
        rows = _numbers_of(stream)
        if rows is None:
            return Unknown("NO_NUMBERS", n=len(stream))
        longest, current, repeats = self._count(rows, stream.t_ns.tolist())
        kind = stream.stream.type
        if not issubclass(kind, NOISY_TYPES):
            longest = current  # motion after the end of a run is no evidence about it
            seen = [_sees_motion(laser, self._since, self.settings) for laser in lasers if len(laser)]
            moving = self._turns(stream, joints) if issubclass(kind, JointState) else _moves(peers, seen)
            if self._since > stream.t0_ns and not issubclass(kind, JointState):
                moving = None if moving is None else False  # the motion may have ended before the run began
            reversals = self._count_reversals(rows)
            if longest > self.run.warn:
                self._moved += bool(moving)
                sure = moving and (issubclass(kind, JointState) or _moves(_without_fixes(peers), seen))
                proved = sure or self._moved >= self.settings.proving_windows or self._is_improbable()
                if moving is None and not proved:
                    return Unknown("NO_PEER", "no other sensor shows whether the robot moved", len(stream))
                self._was_stuck = self._was_stuck or bool(proved)
                longest = longest if proved else 0.0
            elif issubclass(kind, JointState) and (
                moving is False or (moving is None and _rests(stream, self.settings))
            ):
                self._reversals += min(
                    reversals, round(stream.seconds / self.settings.max_counted_interval_s)
                )
            elif moving is False and not is_moving([stream], self.settings.crawl_speed_ratio):
                self._noisy_samples = (
                    0
                    if repeats
                    else min(
                        self._noisy_samples + max(len(rows), self.settings.min_window_samples),
                        self.settings.noisy_samples,
                    )
                )
        return Finding({"run": float(longest)}, len(stream))

    def _count(self, rows: Floats, times: Sequence[int]) -> tuple[float, float, int]:
        """Return the longest and the current run, in samples or fifths of a second, and the repeats."""
        current = 0.0
        longest, repeats, measured = 0.0, 0, np.count_nonzero(rows == rows, axis=1).tolist()
        for numbers, count, t_ns in zip(rows, measured, times, strict=True):
            row = numbers.tobytes() if count else None
            if row is not None and row == self._last:
                self._run, repeats = self._run + 1, repeats + 1
            else:
                self._repeated += 0 if self._was_stuck else self._repeats()
                self._last, self._run, self._since = row, 1, t_ns
                self._moved, self._was_stuck = 0, False
            self._until, lasted = t_ns, (t_ns - self._since) / NS
            is_run = lasted >= self.shortest and self._run >= self.settings.min_run_samples
            current = max(self._run, lasted / self.settings.max_counted_interval_s) if is_run else 0.0
            longest = max(longest, current)
        return longest, current, repeats

    def _count_reversals(self, rows: Floats) -> int:
        """Return how many samples (n, k) reverse their direction: noise does, slow rotation does not."""
        known = np.concatenate([self._newest, rows]) if self._newest.shape[1] == rows.shape[1] else rows
        self._newest = known[-2:]
        with np.errstate(invalid="ignore"):
            signs = np.sign(np.diff(known, axis=0))
        return int(np.any(signs[1:] * signs[:-1] < 0, axis=1).sum())

    def _repeats(self) -> int:
        """Return how often the last sample was repeated, in samples or fifths of a second."""
        return max(
            0,
            min(self._run - 1, int((self._until - self._since) / NS / self.settings.max_counted_interval_s)),
        )

    def _is_improbable(self) -> bool:
        """Return whether a sensor at rest would not repeat a sample as often as this."""
        more, known, reversals = self._repeats(), self._repeated + 1, self._reversals + 1
        chance = _log_beta(known + more, reversals) - _log_beta(known, reversals)
        is_rare = self._reversals >= self.settings.min_reversals and chance < math.log(
            self.settings.max_repeat_probability
        )
        return is_rare or self._noisy_samples >= self.settings.noisy_samples

    def _turns(self, own: Window[Any], others: Sequence[Window[JointState]]) -> bool | None:
        """Return whether the device's joints turned in the run, by its other sensors; None without any."""
        device = own.stream.name.rpartition("/")[0]
        span = min(
            max(self.settings.min_motion_span_s, (own.t1_ns - self._since) / NS),
            self.settings.max_motion_span_s,
        )
        answers = [
            bool(np.any(np.ptp(_thirds(known), axis=0) > self.settings.joint_motion_rad))
            for each in others
            if device and each.stream.name.rpartition("/")[0] == device and each.has("position")
            if len(known := _finite(each.history(span).array("position"))) > 2
        ]
        return any(answers) if answers else None


def _log_beta(a: float, b: float) -> float:
    """Return the logarithm of the beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _moves(peers: Sequence[Window[Moving]], seen: Sequence[bool | None]) -> bool | None:
    """Return whether the robot moves, by motion sensors and lasers; None if no stream shows it."""
    answers = [is_moving(peers), *seen]
    known = [answer for answer in answers if answer is not None]
    return any(known) if known else None


def _without_fixes(peers: Sequence[Window[Moving]]) -> list[Window[Moving]]:
    return [peer for peer in peers if not issubclass(peer.stream.type, NavFix)]


def _sees_motion(laser: Window[LaserScan], since_ns: int, settings: StuckSettings) -> bool | None:
    """Return whether most ranges of a laser change in two seconds; None if scans cannot be compared.

    If a run of identical samples began in that time, only changes since then count.
    """
    past = laser.history(2 * laser.seconds)
    scans = past.column("ranges")
    if isinstance(scans, np.ndarray) and since_ns > past.t0_ns:
        scans = scans[past.t_ns >= since_ns]
    if not isinstance(scans, np.ndarray) or len(scans) < 2:
        return None
    change = np.abs(scans[-1] - scans[0])
    known = change[np.isfinite(change)]
    return bool(np.median(known) > settings.min_range_change_m) if len(known) > len(change) / 4 else None


def _rests(own: Window[Any], settings: StuckSettings) -> bool:
    """Return whether joints stand still, by their own samples."""
    if not own.has("position"):
        return False
    known = _finite(own.history(settings.joint_rest_s).array("position"))
    return len(known) > 1 and bool((np.ptp(known, axis=0) < settings.joint_rest_range_rad).all())


def _thirds(values: Floats) -> Floats:
    """Return the medians (3, k) of the thirds of rows (n, k)."""
    return np.array([np.median(part, axis=0) for part in np.array_split(values, 3)])


def _finite(values: Floats) -> Floats:
    """Return the complete rows (n, k), of the columns that have any value."""
    some = values[:, np.isfinite(values).any(axis=0)]
    return some[np.isfinite(some).all(axis=1)]


def _numbers_of(stream: Window[Any]) -> Floats | None:
    """Return all numbers (n, k) of each sample; None if there are none that must change."""
    units = getattr(stream.stream.type, "units", dict)()
    names = [name for name in units if stream.has(name)]
    if issubclass(stream.stream.type, WheelState) and not set(WHEEL_COLUMNS) & set(names):
        return None
    parts = [np.asarray(column) for name in names if isinstance(column := stream.column(name), np.ndarray)]
    wide = [part.reshape(len(stream), -1) for part in parts if part.dtype.kind in "fiu"]
    # Constants such as the angles of a laser are equal in every sample, and do not matter.
    return np.concatenate(wide, axis=1) if wide else None
