"""Reading of CARMEN logs, optionally compressed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from heapq import heappush, heappushpop
from pathlib import Path

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.errors import ParseError
from transect.recording import Loss, Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.source import Buffer
from transect.recording.text import blocks, whole_lines
from transect.types import LaserScan, Odometry, Pose

from ..shared.compression import UNPACK, unpack
from ..shared.rows import clock_of, only_file
from . import LIMITS, OLD, SCANS, TAGS
from .messages import LINE, parse_messages, range_errors

MAX_CLOCK_DIFFERENCE_NS = 3600 * NS
"""Logger times with a larger median difference from the stamps are on another clock."""
MIN_RESOLUTION_RATIO = 0.1
"""Logger times with a smaller ratio of unique values, relative to the stamps, are not set."""
NOMINAL_PERIOD_NS = NS // 10
"""Assumed period of messages of one kind in a log without times."""


@dataclass(frozen=True, eq=False)
class Arrival:
    """Arrival times (n,) of the lines of a log, and their origin.

    They never decrease from one message to the next of its kind.
    """

    log_ns: Ints
    note: str = ""


def arrival_times(t_ns: Ints, logger_ns: Ints, kinds: Ints) -> Arrival:
    """Return arrival times on the clock of the stamps.

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
    """Return the number (n,) of each message's cycle; a cycle ends before a kind is repeated.

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
    """Return times (n,) of all lines: estimated for kinds that go back, interpolated if not set."""
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


ODOMETRY = ("odom_x", "odom_y", "odom_theta")
"""Columns of scans with the robot's odometry pose."""
MAX_REPEAT_DELAY_NS = NS
"""Largest time between a scan and an odometry line with the same pose."""


def read(source: Source) -> Recording:
    """Read scans, odometry and true poses; the clock is that of the IPC stamps.

    Log times are those of the logger, in the order of the file (see `arrival`). Which messages a log holds
    shows only at its end, so it is parsed when it is opened (once: see the cache).
    """
    name = only_file(source)
    parts = cache.parse_many(source, name, "carmen/8", partial(_parse, file=name))
    streams = [_stream(key, part) for key, part in parts.items() if key]
    streams += [] if "ODOM" in parts else _list_odometry(streams)
    losses = parts[""].losses
    if not streams:
        why = losses[0].reason if losses else "no line begins with FLASER or ODOM"
        raise ParseError(f"{name} holds no scan and no odometry", where=name, why=why)
    return Recording(
        Path(source.stem).stem if Path(name).suffix.lower() in UNPACK else source.stem,
        tuple(streams),
        format="carmen",
        source=source,
        notes=parts[""].notes,
        reader_losses=losses,
    )


def _stream(key: str, part: Parsed) -> Stream:
    first = part.table.column("t_ns")[0].as_py() if part.table.num_rows else 0
    clock = clock_of(first)
    if key == "ODOM":
        return Stream(key, Odometry, part, clock=clock, frame="odom", child="robot")
    if key == "TRUEPOS":
        return Stream(key, Pose, part, clock=clock, role="truth", frame="world", child="robot")
    return Stream(key, LaserScan, part, clock=clock, tag=TAGS.get(key, ""), frame="laser")


def _list_odometry(streams: list[Stream]) -> list[Stream]:
    """Return the odometry in the lines of the first laser, for a log without odometry lines."""
    for scans in streams:
        if set(ODOMETRY) <= set(scans.columns):
            source = partial(_take_odometry, scans)
            return [
                Stream(
                    f"{scans.name}/odometry", Odometry, source, clock=scans.clock, frame="odom", child="robot"
                )
            ]
    return []


def _take_odometry(scans: Stream) -> Parsed:
    x, y, theta = scans.array(*ODOMETRY).T
    nothing = np.zeros_like(x)
    columns = {"x": x, "y": y, "z": nothing, "theta": theta, "qx": nothing, "qy": nothing}
    with np.errstate(invalid="ignore"):  # an infinite angle is in the text, and no attitude
        columns |= {"qz": np.sin(theta / 2), "qw": np.cos(theta / 2)}
    units = {**Odometry.units(), "theta": "rad"}
    table = arrow.table(scans.t_ns, columns, units=units, log_ns=scans.log_ns)
    return Parsed(table, notes=(f"there are no ODOM lines: {scans.name}/odometry is taken from its scans",))


def _parse(buffer: Buffer, file: str) -> dict[str, Parsed]:
    """Return a table per kind of message, and under "" the losses and notes of the file."""
    text, damage = _unpack(buffer, file)
    size, cut = whole_lines(text, file)
    found: dict[str, list[Parsed]] = {}
    others: dict[str, int] = {}
    for tokens in blocks(text, size):
        for key, part in parse_messages(tokens, file, others).items():
            found.setdefault(key, []).append(part)
    said = ", ".join(f"{count} of {word}" for word, count in sorted(others.items()))
    notes = [f"lines that are not read: {said}"] if said else []
    joined, repeated = _drop_repeated_poses({key: _join(parts) for key, parts in found.items()})
    messages, timed = _with_log_times(joined)
    rest = Parsed(
        pa.table({"t_ns": pa.nulls(0, pa.int64())}),
        tuple(loss for loss in (damage, cut) if loss),
        tuple(notes + repeated + timed),
    )
    limits = _list_limits(text)
    scans = {key: limit_ranges(key, part, limits.get(key)) for key, part in messages.items()}
    return {"": rest, **scans}


def _drop_repeated_poses(messages: dict[str, Parsed]) -> tuple[dict[str, Parsed], list[str]]:
    """Return all messages except the ODOM lines that a mapping program wrote for its scans, and a note.

    Logs with corrected poses have a second ODOM line after each scan: the scan's pose once more, with stamps
    that were never set (0, or uninitialised memory). These lines are not odometry.
    """
    scans, odometry = messages.get("FLASER"), messages.get("ODOM")
    if scans is None or odometry is None or not scans.table.num_rows:
        return messages, []
    before = np.searchsorted(arrow.numbers(scans.table, LINE), arrow.numbers(odometry.table, LINE)) - 1
    repeated = before >= 0
    for name in ("x", "y", "theta"):
        repeated &= arrow.numbers(odometry.table, name) == arrow.numbers(scans.table, name)[before]
    for name in (arrow.T_NS, "logger_ns"):
        apart = arrow.numbers(odometry.table, name) - arrow.numbers(scans.table, name)[before]
        repeated &= np.abs(apart) > MAX_REPEAT_DELAY_NS
    _, first = np.unique(before, return_index=True)
    repeated &= np.isin(np.arange(len(before)), first)  # only the line that comes next
    if not repeated.any():
        return messages, []
    kept = Parsed(
        odometry.table.take(arrow.from_numpy(np.flatnonzero(~repeated))), odometry.losses, odometry.notes
    )
    count = int(repeated.sum())
    said = f"{count} ODOM lines repeat the pose of the scan before them, without stamps: left out"
    return {**messages, "ODOM": kept}, [said]


def _with_log_times(messages: dict[str, Parsed]) -> tuple[dict[str, Parsed], list[str]]:
    """Return all messages with `log_ns` instead of line numbers, and the origin of the log times."""
    if not messages:
        return {}, []
    tables = {key: part.table for key, part in messages.items()}
    lines, t_ns, logger_ns = (
        np.concatenate([arrow.numbers(table, name) for table in tables.values()])
        for name in (LINE, arrow.T_NS, "logger_ns")
    )
    order = np.argsort(lines, kind="stable")
    kinds = np.repeat(np.arange(len(tables)), [table.num_rows for table in tables.values()])
    arrival = arrival_times(t_ns[order], logger_ns[order], kinds[order])
    log_ns = np.empty_like(t_ns)
    log_ns[order] = arrival.log_ns
    split = np.split(log_ns, np.cumsum([table.num_rows for table in tables.values()])[:-1])
    timed: dict[str, Parsed] = {}
    for (key, table), times in zip(tables.items(), split, strict=True):
        column = arrow.from_numpy(times)
        field = arrow.field_with_unit(arrow.LOG_NS, column.type, "ns")
        made = table.drop_columns([LINE]).add_column(1, field, column)
        timed[key] = Parsed(made, messages[key].losses, messages[key].notes)
    return timed, [arrival.note] if arrival.note else []


def _list_limits(text: Buffer) -> dict[str, float]:
    """Return the maximum ranges in metres from a log's parameters, by keyword of the scans."""
    words = {parameter.encode(): word for word, parameter in LIMITS.items()}
    told = re.finditer(rb"^PARAM (\w+) (\d+(?:\.\d*)?)\s", text, re.MULTILINE)
    return {words[match[1]]: float(match[2]) for match in told if match[1] in words}


def _join(parts: list[Parsed]) -> Parsed:
    """Concatenate the pieces of one table; losses for the same reason become one."""
    losses: dict[str, Loss] = {}
    for loss in (loss for part in parts for loss in part.losses):
        first = losses.get(loss.reason, loss)
        count = loss.count + (first.count if loss.reason in losses else 0)
        losses[loss.reason] = Loss(loss.file, loss.reason, line=first.line, count=count)
    return Parsed(pa.concat_tables([part.table for part in parts]), tuple(losses.values()))


def _unpack(buffer: Buffer, file: str) -> tuple[Buffer, Loss | None]:
    opener = UNPACK.get(Path(file).suffix.lower())
    return unpack(buffer, file, opener) if opener else (buffer, None)


MIN_LIMIT_READINGS = 100
"""Smallest number of readings of the maximum range that indicates a limit."""
MIN_LIMIT_COUNT_RATIO, NEAR_LIMIT_RATIO = 3, 0.95
"""The limit is more frequent by this factor than all ranges between this ratio of it and itself."""


def limit_ranges(word: str, scans: Parsed, told: float | None) -> Parsed:
    """Return scans of the old form with `range_max`, if it is known, and no ranges from there on.

    Parameters
    ----------
    word : str
        Of the message; those of other forms tell their limit in each line.
    told : float or None
        The limit by a parameter of the log, m.
    """
    if SCANS.get(word) is not OLD or not scans.table.num_rows:
        return scans
    ranges, offsets = arrow.lists_of(scans.table, "ranges")
    limit = told or find_limit(ranges)
    if not limit:
        return scans
    known, _ = arrow.lists_of(scans.table, "range_error")
    errors = np.where(ranges >= limit, range_errors(ranges, limit), known)
    columns = {
        "ranges": arrow.ragged_from_offsets(np.where(errors, np.nan, ranges), offsets),
        "range_error": arrow.ragged_from_offsets(errors.astype(np.uint16), offsets),
    }
    table = scans.table
    for name, column in columns.items():
        table = table.set_column(table.column_names.index(name), table.schema.field(name), column)
    limits = arrow.from_numpy(np.full(table.num_rows, limit))
    table = table.append_column(arrow.field_with_unit("range_max", limits.type, "m"), limits)
    here = int((ranges >= limit).sum())
    note = f"{word}: {here} readings of {limit:g} m, the most that the log has, are taken for no return"
    return Parsed(table, scans.losses, scans.notes if told else (*scans.notes, note))


def find_limit(ranges: Floats) -> float | None:
    """Return the largest of ranges (n,), m, if it means no return: whole metres, and too frequent."""
    finite = ranges[np.isfinite(ranges)]
    largest = float(finite.max(initial=0.0))
    if largest < 1.0 or largest != round(largest):
        return None
    at_largest, near_largest = (
        int((finite == largest).sum()),
        int((finite >= NEAR_LIMIT_RATIO * largest).sum()),
    )
    return (
        largest
        if at_largest >= MIN_LIMIT_READINGS
        and at_largest > MIN_LIMIT_COUNT_RATIO * (near_largest - at_largest)
        else None
    )
