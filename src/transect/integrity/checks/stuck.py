"""S01: does a sensor give one sample over and over."""

from __future__ import annotations

import math
from collections.abc import Sequence
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

NOISY = (Imu, LaserScan, RadarSpectrum)
"""Types whose noise never repeats: a second sample of the same bits was not measured."""
TURNING = ("wheel_velocity", "drive_ticks")
"""Columns of wheels that change while a robot drives; steering and commands may stay as they are."""
RESTLESS, SLOW = 100, 10
"""Samples of a sensor that stood still and repeated none, after which one that repeats was not measured; and
as how many those of a window count at least."""
WAVERED, CHANCE = 5, 1e-4
"""Changes to and fro of joints that stood still that tell how seldom they repeat, at least; and how likely a
run is, by that, that was not measured."""
RESTED_S = 10.0
"""Seconds in which a joint that nothing else measures must hardly turn, to stand still."""
SLOWEST, FEWEST = 0.2, 3
"""Seconds from sample to sample, as which slower ones count; samples of a run at least."""
CRAWLING = 0.1
"""Part of a usual speed with which a robot crawls, where others do not see yet that it moves."""
PROVED = 2
"""Windows of a run in which the robot moved, after which that run was not measured, moving or not."""
SEEN = 0.1
"""m by which the middle one of a laser's ranges changes in two seconds, if it moves."""
RESTED = 0.03
"""rad in which all samples of a joint that stands still lie."""
MOVED, MOVED_S, LONGEST_S = 0.01, 3.0, 10.0
"""rad by which a joint must turn to move, between thirds of the run that is judged; which is taken to be at
least and at most so many seconds long. By as much a joint may differ from its other sensor (X06)."""
Stickable = (
    Imu | LaserScan | RadarSpectrum | NavFix | Odometry | Twist | WheelState | RigidBodyState | JointState
)


class Stuck(Check, id="S01", group="signal", version=6, k_on=1, k_off=1):
    """Samples in a row, up to the window's last, that are bit-identical in all their numbers.

    Inertial sensors, lasers and radars have noise, so that is enough, and so it is for others that never
    repeated a sample while they stood still. Else fixes, wheels, joints and poses may stand still: a peer
    must move meanwhile, for joints another sensor of the same joints; what a laser sees moves, too, if most
    of its ranges change. Once it moved in two windows of a run, nothing of that run was measured; one is
    enough unless only fixes show it, which may be their noise. Of joints a
    run may also be too long for chance: if they wavered c times while they stood still, and repeated m times
    (in samples or fifths of a second), k more repeats have the probability
    ``B(m + k + 1, c + 1) / B(m + 1, c + 1)``. A sample that comes less often than every fifth of a second
    counts for as many. Shorter than `shortest` is a sensor that is logged faster than it measures.

    Motive: Document 002, `enc_delta`: an encoder that "changes by less than" this means a fault.
    """

    run = Limit(10.0, 50.0, "STUCK", "", "samples in a row of the same bits")
    shortest: float = param(0.5, ge=0.0, unit="s", doc="a run that is no slow sensor")

    def reset(self) -> None:
        """No sample is known yet."""
        self._last: bytes | None = None
        self._run, self._since, self._until, self._moved = 0, 0, 0, 0
        self._restless, self._wavered, self._repeated, self._was_stuck = 0, 0, 0, False
        self._newest = np.empty((0, 0))

    def look(
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
        longest, lasting, repeats = self._count(rows, stream.t_ns.tolist())
        kind = stream.stream.type
        if not issubclass(kind, NOISY):
            longest = lasting  # what moves after a run has ended tells nothing of it
            seen = [_sees_motion(laser, self._since) for laser in lasers if len(laser)]
            moving = self._turns(stream, joints) if issubclass(kind, JointState) else _moves(peers, seen)
            if self._since > stream.t0_ns and not issubclass(kind, JointState):
                moving = None if moving is None else False  # it may have moved before the run began
            wavering = self._count_wavering(rows)
            if longest > self.run.warn:
                self._moved += bool(moving)
                sure = moving and (issubclass(kind, JointState) or _moves(_without_fixes(peers), seen))
                proved = sure or self._moved >= PROVED or self._is_no_chance()
                if moving is None and not proved:
                    return Unknown("NO_PEER", "nothing else tells whether it moved", len(stream))
                self._was_stuck = self._was_stuck or bool(proved)
                longest = longest if proved else 0.0
            elif issubclass(kind, JointState) and (moving is False or (moving is None and _rests(stream))):
                self._wavered += min(wavering, round(stream.seconds / SLOWEST))
            elif moving is False and not is_moving([stream], CRAWLING):
                self._restless = 0 if repeats else min(self._restless + max(len(rows), SLOW), RESTLESS)
        return Finding({"run": float(longest)}, len(stream))

    def _count(self, rows: Floats, times: Sequence[int]) -> tuple[float, float, int]:
        """Return the longest run of equal samples and that up to the last one, and how many samples repeat.

        Runs are counted in samples or fifths of a second.
        """
        lasting = 0.0
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
            is_run = lasted >= self.shortest and self._run >= FEWEST
            lasting = max(self._run, lasted / SLOWEST) if is_run else 0.0
            longest = max(longest, lasting)
        return longest, lasting, repeats

    def _count_wavering(self, rows: Floats) -> int:
        """Return how many samples (n, k) went back by something: noise does, what turns slowly does not."""
        known = np.concatenate([self._newest, rows]) if self._newest.shape[1] == rows.shape[1] else rows
        self._newest = known[-2:]
        with np.errstate(invalid="ignore"):
            ways = np.sign(np.diff(known, axis=0))
        return int(np.any(ways[1:] * ways[:-1] < 0, axis=1).sum())

    def _repeats(self) -> int:
        """Return how often the last sample was repeated, in samples or fifths of a second."""
        return max(0, min(self._run - 1, int((self._until - self._since) / NS / SLOWEST)))

    def _is_no_chance(self) -> bool:
        """Tell whether a sensor that stands still would not repeat so often."""
        more, known, wavered = self._repeats(), self._repeated + 1, self._wavered + 1
        chance = _log_beta(known + more, wavered) - _log_beta(known, wavered)
        is_rare = self._wavered >= WAVERED and chance < math.log(CHANCE)
        return is_rare or self._restless >= RESTLESS

    def _turns(self, own: Window[Any], others: Sequence[Window[JointState]]) -> bool | None:
        """Tell whether the joints of a device turned in the run, by its other sensors; None without any."""
        device = own.stream.name.rpartition("/")[0]
        span = min(max(MOVED_S, (own.t1_ns - self._since) / NS), LONGEST_S)
        told = [
            bool(np.any(np.ptp(_thirds(known), axis=0) > MOVED))
            for each in others
            if device and each.stream.name.rpartition("/")[0] == device and each.has("position")
            if len(known := _finite(each.history(span).array("position"))) > 2
        ]
        return any(told) if told else None


def _log_beta(a: float, b: float) -> float:
    """Return the logarithm of the beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _moves(peers: Sequence[Window[Moving]], seen: Sequence[bool | None]) -> bool | None:
    """Tell whether the robot moves, by what shows it, and by what lasers see; None if nothing tells."""
    told = [is_moving(peers), *seen]
    known = [answer for answer in told if answer is not None]
    return any(known) if known else None


def _without_fixes(peers: Sequence[Window[Moving]]) -> list[Window[Moving]]:
    return [peer for peer in peers if not issubclass(peer.stream.type, NavFix)]


def _sees_motion(laser: Window[LaserScan], since_ns: int) -> bool | None:
    """Tell whether most ranges of a laser change in two seconds; None where scans cannot be compared.

    If a run of equal samples began in that time, only what has changed since then counts.
    """
    past = laser.history(2 * laser.seconds)
    scans = past.column("ranges")
    if isinstance(scans, np.ndarray) and since_ns > past.t0_ns:
        scans = scans[past.t_ns >= since_ns]
    if not isinstance(scans, np.ndarray) or len(scans) < 2:
        return None
    change = np.abs(scans[-1] - scans[0])
    known = change[np.isfinite(change)]
    return bool(np.median(known) > SEEN) if len(known) > len(change) / 4 else None


def _rests(own: Window[Any]) -> bool:
    """Tell whether joints hardly turn, by themselves."""
    if not own.has("position"):
        return False
    known = _finite(own.history(RESTED_S).array("position"))
    return len(known) > 1 and bool((np.ptp(known, axis=0) < RESTED).all())


def _thirds(values: Floats) -> Floats:
    """Return the medians (3, k) of the thirds of rows (n, k)."""
    return np.array([np.median(part, axis=0) for part in np.array_split(values, 3)])


def _finite(values: Floats) -> Floats:
    """Return the rows (n, k) of which all numbers are known, of the columns that have any."""
    some = values[:, np.isfinite(values).any(axis=0)]
    return some[np.isfinite(some).all(axis=1)]


def _numbers_of(stream: Window[Any]) -> Floats | None:
    """Return all numbers (n, k) of each sample; None where there are none that must change."""
    units = getattr(stream.stream.type, "units", dict)()
    names = [name for name in units if stream.has(name)]
    if issubclass(stream.stream.type, WheelState) and not set(TURNING) & set(names):
        return None
    parts = [np.asarray(column) for name in names if isinstance(column := stream.column(name), np.ndarray)]
    wide = [part.reshape(len(stream), -1) for part in parts if part.dtype.kind in "fiu"]
    # Constants such as angles of a laser do not hurt: they are the same in every sample.
    return np.concatenate(wide, axis=1) if wide else None
