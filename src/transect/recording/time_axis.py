"""Span, rate, gaps and backward steps of a time axis, computed block by block for any length."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from transect.base import clocks
from transect.base.arrays import Ints

from . import arrow

Axis = Ints | arrow.LazyColumns
_BLOCK_QUANTILES = 64
"""Stamps sampled from each block of an unsorted axis, to split it into spans of similar density."""


@dataclass(frozen=True)
class Timing:
    """Statistics of a time axis; steps across seams are ignored."""

    count: int
    start_ns: int | None  # Earliest time
    end_ns: int | None  # Latest time
    rate: float  # Samples per second over the recorded span, NaN if unknown
    gap_s: float  # Longest time without a sample
    gap_at_ns: int | None  # Start of the longest gap
    backwards: int  # Number of stamps earlier than the previous one
    repeated: int  # Number of stamps equal to the previous one
    back_s: float = 0.0  # Largest step back
    back_at_ns: int | None = None  # Stamp before the first step back

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
    """A time without samples."""

    size: int  # ns
    at: int  # Start, ns


class Gaps(NamedTuple):
    """Times without samples."""

    number: int
    longest: tuple[tuple[int, int], ...]  # Start and duration of the longest gaps, ns, in order of time


def find_gaps(t_ns: Axis, seams: Sequence[int] = (), factor: float = 5.0, most: int = 64) -> Gaps:
    """Find steps between samples (n,) longer than `factor` median steps, and return up to `most` of them.

    Steps across seams and steps back are not gaps.
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
    """Return the median forward step of the first and last block; 0 if there is none."""
    ranges = list(arrow.block_ranges(0, len(t_ns)))
    steps = [np.diff(t_ns[a:b]) for a, b in {*ranges[:1], *ranges[-1:]}]
    forward = [each[each > 0] for each in steps]
    return float(np.median(np.concatenate(forward))) if any(map(len, forward)) else 0.0


@dataclass
class _Part:
    """Statistics of a time axis between two seams; times in ns."""

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
        if part.backwards:  # gaps are found in the sorted times
            part.gap = _longest(_gaps_in_order(t_ns, first, last))
        return part

    def _add(self, t_ns: Ints) -> None:
        self.start, self.end = min(self.start, int(t_ns.min())), max(self.end, int(t_ns.max()))
        steps = np.diff(t_ns)
        if not len(steps):
            return
        self.gap = _longest(filter(None, (self.gap, _longest_step(t_ns))))
        backward = steps < 0
        if backward.any():
            self.back_at = int(t_ns[np.argmax(backward)]) if self.back_at is None else self.back_at
            self.back = max(self.back, -int(steps.min()))
        self.backwards += int(np.count_nonzero(backward))
        self.repeated += int(np.count_nonzero(steps == 0))


def _longest(gaps: Iterator[_Gap]) -> _Gap | None:
    """Return the first of the longest."""
    return max(gaps, key=lambda gap: gap.size, default=None)


def _longest_step(t_ns: Ints) -> _Gap:
    steps = np.diff(t_ns)
    longest = int(np.argmax(steps))
    return _Gap(int(steps[longest]), int(t_ns[longest]))


def _gaps_in_order(t_ns: Axis, first: int, last: int) -> Iterator[_Gap]:
    """Yield the longest gap of each of many time spans, without sorting all stamps at once."""
    ranges = list(arrow.block_ranges(first, last))
    limits = [(int(block.min()), int(block.max())) for block in (t_ns[a:b] for a, b in ranges)]
    count = _BLOCK_QUANTILES
    samples = [t_ns[a:b][:: max(1, (b - a) // count)] for a, b in ranges]
    borders: list[int] = np.unique(np.concatenate(samples))[count::count].tolist()
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
    """Return the unique times in [low, high)."""
    return np.unique(t_ns[(t_ns >= low) & ((t_ns < high) if high is not None else True)])
