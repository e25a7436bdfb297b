"""Sample time and log time of Rock and CDFF samples: units, missing times and delays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.base.clocks import NS, Clock
from transect.formats.shared.rows import clock_of

_NS_PER_US = 1000
_CALENDAR_US = (631_152_000_000_000, 4_102_444_800_000_000)
"""Years 1990 and 2100."""
_MAX_NS = 2**63 - 1
LOST_TICK = -(2**63)
"""Missing time in `Ticks`."""
_MIN_REPORTED_LAG_MS = 50.0
"""Smaller delays of the log time are not reported."""


@dataclass(frozen=True)
class Ticks:
    """Times in microseconds as in the log, and their name in notes."""

    values: Ints
    name: str

    @property
    def is_ns(self) -> bool:
        """Whether the numbers are calendar times in ns; as us they would be in the year 50,000."""
        counted = self.values[(self.values != 0) & (self.values != LOST_TICK)]
        typical = int(np.median(counted)) if len(counted) else 0
        return _CALENDAR_US[0] * _NS_PER_US <= typical <= _CALENDAR_US[1] * _NS_PER_US

    def to_ns(self) -> tuple[Ints, NDArray[np.bool_]]:
        """Return ns, and the mask of those that int64 can represent."""
        if self.is_ns:
            return self.values, self.values != LOST_TICK
        good = (self.values <= _MAX_NS // _NS_PER_US) & (self.values >= -(_MAX_NS // _NS_PER_US))
        return np.where(good, self.values, 0) * _NS_PER_US, good


@dataclass(frozen=True)
class SampleTimes:
    """Times of the samples of a stream."""

    t_ns: Ints  # (n,) int64, time of the sample, or of the log
    log_ns: Ints | None  # (n,) int64, time of logging
    good: NDArray[np.bool_]  # (n,) bool, whether the time is valid
    clock: Clock
    notes: tuple[str, ...] = ()


def times_of(count: int, own: Ticks | None, given: Ticks | None, log: Ticks | None) -> SampleTimes:
    """Determine the times of samples.

    Parameters
    ----------
    count : int
        Number of samples.
    own : Ticks or None
        Times in the samples.
    given : Ticks or None
        Logical times of the log.
    log : Ticks or None
        Times of logging.
    """
    available = [ticks for ticks in (own, given, log) if ticks is not None]
    if not available:
        note = "neither the samples nor the log have times: they are counted"
        counted = np.arange(count, dtype=np.int64) * NS
        return SampleTimes(counted, None, np.ones(count, dtype=bool), "index", (note,))
    notes = [
        f"{ticks.name} counts nanoseconds, not microseconds as the format says: read as nanoseconds"
        for ticks in available
        if ticks.is_ns
    ]
    t_ns, good = available[0].to_ns()
    if own is not None and len(available) > 1:
        unset = _unset(t_ns)
        if unset.any():
            fallback, valid = available[1].to_ns()
            t_ns, good = np.where(unset, fallback, t_ns), np.where(unset, valid, good)
            notes.append(
                f"{unset.sum()} of {count} samples have no time of their own: {available[1].name} is used"
            )
    log_ns = None
    if log is not None and log is not available[0]:
        log_ns, valid = log.to_ns()
        if (lost := log.values == LOST_TICK).any():
            log_ns, valid = np.where(lost, t_ns, log_ns), valid | lost
            notes.append(f"{lost.sum()} of {count} log times are lost: the samples' own times stand in")
        good = good & valid
        notes += _lag_notes(t_ns[good], log_ns[good])
    first = t_ns[good]
    return SampleTimes(t_ns, log_ns, good, clock_of(int(first[0])) if len(first) else "utc", tuple(notes))


def _unset(t_ns: Ints) -> NDArray[np.bool_]:
    """Whether times of 0 were not set: all are 0, or the others are dates."""
    zero = t_ns == 0
    return zero if zero.all() or clock_of(int(t_ns.max())) == "utc" else np.zeros(len(t_ns), dtype=bool)


def _lag_notes(t_ns: Ints, log_ns: Ints) -> list[str]:
    """Describe the delay of log time and the steps of both times, if the delay is large."""
    if len(t_ns) < 2 or clock_of(int(t_ns[0])) != clock_of(int(log_ns[0])):
        return []
    lag, steps, log_steps = (log_ns - t_ns) / 1e6, np.diff(t_ns) / 1e6, np.diff(log_ns) / 1e6
    if np.abs(lag).max() < _MIN_REPORTED_LAG_MS:
        return []
    behind = f"log time is {lag.min():.1f} to {lag.max():.1f} ms (median {np.median(lag):.1f}) behind"
    bursts = (
        f"it goes on in steps of {log_steps.min():.3f} to {log_steps.max():.1f} ms (median "
        f"{np.median(log_steps):.3f}), {int((log_steps == 0).sum())} times not at all, sample time in steps "
        f"of {steps.min():.1f} to {steps.max():.1f} ms"
    )
    return [f"{behind} sample time; {bursts}; t_ns is sample time, log_ns is log time"]
