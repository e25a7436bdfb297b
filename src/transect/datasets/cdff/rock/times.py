"""Sample time and log time of Rock and CDFF samples: which unit they count, and how far they differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.base.clocks import NS, Clock
from transect.formats.shared.rows import clock_of

_US = 1000
_YEAR_1990_US, _YEAR_2100_US = 631_152_000_000_000, 4_102_444_800_000_000
_LARGEST_NS = 2**63 - 1
LOST = -(2**63)
"""Stands in `Ticks` for a time that the log has lost."""
_LATE_MS = 50.0
"""A log that lags behind, or wanders, by more than this is worth a note."""


@dataclass(frozen=True)
class Ticks:
    """A count of microseconds per sample as the log has it, and what to call it in a note."""

    values: Ints
    name: str

    @property
    def is_ns(self) -> bool:
        """Whether the numbers are calendar times in ns; read as us they would lie in the year 50,000."""
        counted = self.values[(self.values != 0) & (self.values != LOST)]
        typical = int(np.median(counted)) if len(counted) else 0
        return _YEAR_1990_US * _US <= typical <= _YEAR_2100_US * _US

    def to_ns(self) -> tuple[Ints, NDArray[np.bool_]]:
        """Return ns, and which of them int64 can hold."""
        if self.is_ns:
            return self.values, self.values != LOST
        good = (self.values <= _LARGEST_NS // _US) & (self.values >= -(_LARGEST_NS // _US))
        return np.where(good, self.values, 0) * _US, good


@dataclass(frozen=True)
class Times:
    """Times of a stream's samples."""

    t_ns: Ints  # (n,) int64, the sample's own time, else the time the log gives it
    log_ns: Ints | None  # (n,) int64, when it was logged
    good: NDArray[np.bool_]  # (n,) bool, which times can be used
    clock: Clock
    notes: tuple[str, ...] = ()


def times_of(count: int, own: Ticks | None, given: Ticks | None, log: Ticks | None) -> Times:
    """Find the times of samples.

    Parameters
    ----------
    count : int
        How many samples there are.
    own : Ticks or None
        What the samples say themselves.
    given : Ticks or None
        The time by which the log orders them.
    log : Ticks or None
        When they were written.
    """
    known = [ticks for ticks in (own, given, log) if ticks is not None]
    if not known:
        note = "neither the samples nor the log have times: they are counted"
        counted = np.arange(count, dtype=np.int64) * NS
        return Times(counted, None, np.ones(count, dtype=bool), "index", (note,))
    notes = [
        f"{ticks.name} counts nanoseconds, not microseconds as the format says: read as nanoseconds"
        for ticks in known
        if ticks.is_ns
    ]
    t_ns, good = known[0].to_ns()
    if own is not None and len(known) > 1:
        unset = _unset(t_ns)
        if unset.any():
            fallback, fine = known[1].to_ns()
            t_ns, good = np.where(unset, fallback, t_ns), np.where(unset, fine, good)
            notes.append(
                f"{unset.sum()} of {count} samples have no time of their own: {known[1].name} is used"
            )
    log_ns = None
    if log is not None and log is not known[0]:
        log_ns, fine = log.to_ns()
        if (lost := log.values == LOST).any():
            log_ns, fine = np.where(lost, t_ns, log_ns), fine | lost
            notes.append(f"{lost.sum()} of {count} log times are lost: the samples' own times stand in")
        good = good & fine
        notes += _lag_notes(t_ns[good], log_ns[good])
    first = t_ns[good]
    return Times(t_ns, log_ns, good, clock_of(int(first[0])) if len(first) else "utc", tuple(notes))


def _unset(t_ns: Ints) -> NDArray[np.bool_]:
    """Tell which times are 0 because nobody set them: all, or some among dates."""
    zero = t_ns == 0
    return zero if zero.all() or clock_of(int(t_ns.max())) == "utc" else np.zeros(len(t_ns), dtype=bool)


def _lag_notes(t_ns: Ints, log_ns: Ints) -> list[str]:
    """Tell how far log time is behind sample time, and how both go on, if that is worth it."""
    if len(t_ns) < 2 or clock_of(int(t_ns[0])) != clock_of(int(log_ns[0])):
        return []
    lag, steps, log_steps = (log_ns - t_ns) / 1e6, np.diff(t_ns) / 1e6, np.diff(log_ns) / 1e6
    if np.abs(lag).max() < _LATE_MS:
        return []
    behind = f"log time is {lag.min():.1f} to {lag.max():.1f} ms (median {np.median(lag):.1f}) behind"
    bursts = (
        f"it goes on in steps of {log_steps.min():.3f} to {log_steps.max():.1f} ms (median "
        f"{np.median(log_steps):.3f}), {int((log_steps == 0).sum())} times not at all, sample time in steps "
        f"of {steps.min():.1f} to {steps.max():.1f} ms"
    )
    return [f"{behind} sample time; {bursts}; t_ns is sample time, log_ns is log time"]
