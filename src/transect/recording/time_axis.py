"""Span, rate, gaps and disorder of a time axis of any length: it is looked at a block at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from transect.base import clocks
from transect.base.arrays import Ints

from . import arrow

Axis = Ints | arrow.Rows
_SAMPLES = 64
"""Of each block of an axis that goes back; they tell where its times are dense."""


@dataclass(frozen=True)
class Timing:
    """What a time axis is like; steps across seams are left out."""

    count: int
    start_ns: int | None  # Earliest and latest time
    end_ns: int | None
    rate: float  # Samples per second over the recorded span, NaN if it cannot be told
    gap_s: float  # The longest time without a sample, and when it began
    gap_at_ns: int | None
    backwards: int  # How many stamps are earlier than, or equal to, the one before
    repeated: int
    back_s: float = 0.0  # How far the clock goes back at most, and the stamp after which it first does
    back_at_ns: int | None = None

    @staticmethod
    def of(t_ns: Axis, seams: Sequence[int] = ()) -> Timing:
        """Measure a time axis of (n,) int64 nanoseconds."""
        n = len(t_ns)
        if n == 0:
            return Timing(0, None, None, float("nan"), float("nan"), None, 0, 0)
        edges = [0, *(s for s in seams if 0 < s < n), n]
        parts = [_Part.of(t_ns, a, b) for a, b in itertools.pairwise(edges)]
        steps, duration = n - len(parts), sum(part.end - part.start for part in parts) / clocks.NS
        longest = max((part.gap for part in parts if part.gap), key=lambda gap: gap.size, default=None)
        return Timing(
            count=n,
            start_ns=min(part.start for part in parts),
            end_ns=max(part.end for part in parts),
            rate=steps / duration if duration > 0 else float("nan"),
            gap_s=longest.size / clocks.NS if longest else float("nan"),
            gap_at_ns=longest.at if longest else None,
            backwards=sum(part.backwards for part in parts),
            repeated=sum(part.repeated for part in parts),
            back_s=max(part.back for part in parts) / clocks.NS,
            back_at_ns=next((part.back_at for part in parts if part.back_at is not None), None),
        )


class _Gap(NamedTuple):
    """A time without samples: how long it is, and when it began, in ns."""

    size: int
    at: int


class Gaps(NamedTuple):
    """Times without samples: how many, and when the longest began and how long they are, ns, in order."""

    number: int
    longest: tuple[tuple[int, int], ...]


def find_gaps(t_ns: Axis, seams: Sequence[int] = (), factor: float = 5.0, most: int = 64) -> Gaps:
    """Find steps between samples that are longer than `factor` usual ones; steps across seams are none.

    Parameters
    ----------
    t_ns : (n,) int64
        A step back is no gap.
    most : int
        How many of the longest are told.
    """
    usual = _usual_step(t_ns)
    count, longest = 0, list[tuple[int, int]]()
    for a, b in arrow.block_ranges(0, len(t_ns)) if usual else ():
        block = t_ns[a:b]
        steps = np.diff(block)
        steps[[seam - a - 1 for seam in seams if a < seam < b]] = 0
        found = np.flatnonzero(steps > factor * usual)
        count += len(found)
        found = found[np.argsort(-steps[found], kind="stable")[:most]]
        longest += [(int(block[k]), int(steps[k])) for k in found]
        longest = sorted(longest, key=lambda gap: -gap[1])[:most]
    return Gaps(count, tuple(sorted(longest)))


def _usual_step(t_ns: Axis) -> float:
    """Return the median of the steps forward, of the first block and the last; 0 if there are none."""
    ranges = list(arrow.block_ranges(0, len(t_ns)))
    steps = [np.diff(t_ns[a:b]) for a, b in {*ranges[:1], *ranges[-1:]}]
    forward = [each[each > 0] for each in steps]
    return float(np.median(np.concatenate(forward))) if any(map(len, forward)) else 0.0


@dataclass
class _Part:
    """What a time axis is like from one seam to the next; times in ns."""

    start: int
    end: int
    gap: _Gap | None = None
    backwards: int = 0
    repeated: int = 0
    back: int = 0
    back_at: int | None = None

    @staticmethod
    def of(t_ns: Axis, first: int, last: int) -> _Part:
        start = int(t_ns[first : first + 1][0])
        part = _Part(start, start)
        for a, b in arrow.block_ranges(first, last):
            part._add(t_ns[a:b])
        if part.backwards:  # a gap is where nothing was recorded, in whatever order the rest was
            part.gap = _longest(_gaps_in_order(t_ns, first, last))
        return part

    def _add(self, t_ns: Ints) -> None:
        self.start, self.end = min(self.start, int(t_ns.min())), max(self.end, int(t_ns.max()))
        steps = np.diff(t_ns)
        if not len(steps):
            return
        self.gap = _longest(filter(None, (self.gap, _longest_step(t_ns))))
        back = steps < 0
        if back.any():
            self.back_at = int(t_ns[np.argmax(back)]) if self.back_at is None else self.back_at
            self.back = max(self.back, -int(steps.min()))
        self.backwards += int(np.count_nonzero(back))
        self.repeated += int(np.count_nonzero(steps == 0))


def _longest(gaps: Iterator[_Gap]) -> _Gap | None:
    """Return the first of the longest."""
    return max(gaps, key=lambda gap: gap.size, default=None)


def _longest_step(t_ns: Ints) -> _Gap:
    steps = np.diff(t_ns)
    longest = int(np.argmax(steps))
    return _Gap(int(steps[longest]), int(t_ns[longest]))


def _gaps_in_order(t_ns: Axis, first: int, last: int) -> Iterator[_Gap]:
    """Yield the longest gap of each of many spans of time, without sorting all stamps at once."""
    ranges = list(arrow.block_ranges(first, last))
    limits = [(int(block.min()), int(block.max())) for block in (t_ns[a:b] for a, b in ranges)]
    samples = [t_ns[a:b][:: max(1, (b - a) // _SAMPLES)] for a, b in ranges]
    borders: list[int] = np.unique(np.concatenate(samples))[_SAMPLES::_SAMPLES].tolist()
    latest = np.zeros(0, np.int64)
    for low, high in zip([min(limits)[0], *borders], [*borders, None], strict=True):
        inside = [
            _between(t_ns[a:b], low, high)
            for (a, b), (earliest, newest) in zip(ranges, limits, strict=True)
            if newest >= low and (high is None or earliest < high)
        ]
        times = np.unique(np.concatenate([latest, *inside]))
        if len(times) > 1:
            yield _longest_step(times)
        latest = times[-1:]


def _between(t_ns: Ints, low: int, high: int | None) -> Ints:
    """Return the different times in [low, high)."""
    return np.unique(t_ns[(t_ns >= low) & ((t_ns < high) if high is not None else True)])
