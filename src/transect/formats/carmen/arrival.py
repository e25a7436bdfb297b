"""When the messages of a CARMEN log arrived: the logger's times where these are sound, else estimated.

IPC delivers messages in order, and the logger appends a line for each. The order of the lines is therefore
the order of arrival, whatever the stamps are: those of several hosts, of an unset clock, or rounded. Times of
arrival are a non-decreasing function of the line number. Where the logger's own times of a kind of message
are not one, the function that is nearest to the times of all lines in the sum of absolute differences is
taken (isotonic L1 regression, here by the slope trick), which neither jumps of a clock nor noise draw off.
Lines whose time was never set (0 after other times, as programs that correct a log leave it) have no part in
that: theirs is interpolated. The times of other kinds stay as the logger wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappush, heappushpop

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS

MAX_CLOCK_DIFFERENCE_NS = 3600 * NS
"""Logger times that are usually further than this from the stamps are on a clock of their own."""
MIN_RESOLUTION_RATIO = 0.1
"""Logger times with fewer different values, compared with the stamps, are not set."""
NOMINAL_PERIOD_NS = NS // 10
"""Between messages of one kind in a log in which no clock ran."""


@dataclass(frozen=True, eq=False)
class Arrival:
    """Times (n,) at which the lines of a log arrived, and how they were found.

    They never decrease from one message to the next of its kind.
    """

    log_ns: Ints
    note: str = ""


def arrival_times(t_ns: Ints, logger_ns: Ints, kinds: Ints) -> Arrival:
    """Return times of arrival on the clock of the stamps.

    Parameters
    ----------
    t_ns, logger_ns : (n,) int64 arrays
        IPC stamps and logger times of all lines, in the order of the file.
    kinds : (n,) int64 array
        Kind of each message. Times that go back only from one kind to another are as good as they need be.
    """
    if not len(t_ns):
        return Arrival(t_ns)
    has_logger = _resolution(logger_ns) > MIN_RESOLUTION_RATIO * _resolution(t_ns)
    log_ns, source = (logger_ns, "logger times") if has_logger else (t_ns, "stamps")
    is_set = (log_ns != 0) | (np.maximum.accumulate(log_ns) <= 0)
    shift_ns = int(np.median((t_ns - log_ns)[is_set]))
    notes: list[str] = []
    if abs(shift_ns) > MAX_CLOCK_DIFFERENCE_NS:
        log_ns = log_ns + shift_ns
        notes.append(f"logger times are on another clock: {shift_ns / NS:.6f} s is added to them")
    backward = {int(k): int((np.diff(log_ns[is_set & (kinds == k)]) < 0).sum()) for k in np.unique(kinds)}
    if count := sum(backward.values()):
        notes.append(
            f"{count} {source} go back from one message to the next of its kind: log times are estimated "
            "from the order of the lines"
        )
    if not is_set.all():
        notes.append(f"{np.count_nonzero(~is_set)} {source} are not set: log times are interpolated")
    if count or not is_set.all():
        log_ns = _estimate_times(log_ns, is_set, kinds, backward)
    if len(log_ns) > 1 and log_ns[0] == log_ns[-1]:
        log_ns = log_ns[0] + NOMINAL_PERIOD_NS * _count_rounds(kinds)
        notes.append(
            f"no clock ran: log times count the lines, {NOMINAL_PERIOD_NS / NS:g} s from one message to the "
            "next of its kind"
        )
    return Arrival(log_ns, "; ".join(notes))


def _count_rounds(kinds: Ints) -> Ints:
    """Return the number (n,) of each message's round; a round ends before a kind comes for the second time.

    Messages of different kinds in one round have one time: a scan belongs to the odometry of the line before
    it. With times of their own they would seem to be a period apart, and odometry would be extrapolated.
    """
    rounds, number, present = np.empty(len(kinds), np.int64), 0, set[int]()
    for i, kind in enumerate(kinds.tolist()):
        if kind in present:
            number += 1
            present.clear()
        present.add(kind)
        rounds[i] = number
    return rounds


def _resolution(times: Ints) -> float:
    """Return the fraction of times that differ from all others."""
    return len(np.unique(times)) / max(len(times), 1)


def _estimate_times(log_ns: Ints, is_set: Mask, kinds: Ints, backward: Mapping[int, int]) -> Ints:
    """Return times (n,) of all lines: estimated for kinds that go back, interpolated where not set."""
    lines, ordered_ns = np.flatnonzero(is_set), log_ns.copy()
    is_needed = any(backward.values()) or any(not is_set[kinds == kind].any() for kind in backward)
    ordered_ns[is_set] = _monotone_times(log_ns[is_set]) if is_needed else log_ns[is_set]
    made_ns = log_ns.copy()
    for kind, count in backward.items():
        own = np.flatnonzero(kinds == kind)
        known = own[is_set[own]] if is_set[own].any() else lines
        known_ns = (ordered_ns if count or known is lines else log_ns)[known]
        seconds = np.interp(own, known, (known_ns - known_ns[0]) / NS)
        made_ns[own] = known_ns[0] + np.rint(seconds * NS).astype(np.int64)
        if known is not lines:
            made_ns[known] = known_ns  # without the rounding of seconds
    return made_ns


def _monotone_times(times: Ints) -> Ints:
    """Return the non-decreasing times nearest to times (n,) by absolute difference, without plateaus.

    Regression turns noise into steps: runs of lines with one time. Each run keeps its time in the middle, and
    lines between are interpolated by their number.
    """
    fitted = isotonic_l1((times - times[0]) / NS)
    levels, first, count = np.unique(fitted, return_index=True, return_counts=True)
    if len(levels) < 2:
        return np.full(len(times), times[0] + round(float(levels[0]) * NS))
    middle = first + (count - 1) / 2.0
    period = (levels[-1] - levels[0]) / (middle[-1] - middle[0])
    ends = np.array([0.0, len(times) - 1.0])
    beyond = np.array([levels[0] - period * middle[0], levels[-1] + period * (ends[1] - middle[-1])])
    at = np.concatenate([ends[:1] - 1.0, middle, ends[1:] + 1.0])
    level = np.concatenate([beyond[:1] - period, levels, beyond[1:] + period])
    spread = np.interp(np.arange(len(times)), at, level)
    return times[0] + np.rint(spread * NS).astype(np.int64)


def isotonic_l1(values: Floats) -> Floats:
    """Return the non-decreasing sequence (n,) nearest to values (n,) by the sum of absolute differences."""
    heap: list[float] = []  # negated: the largest breakpoint of the cost's slope comes first
    top = np.empty(len(values))
    for i, value in enumerate(values.tolist()):
        heappush(heap, -value)
        if -heap[0] > value:
            heappushpop(heap, -value)
        top[i] = -heap[0]
    return np.minimum.accumulate(top[::-1])[::-1]
