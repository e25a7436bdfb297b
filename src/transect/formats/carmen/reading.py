"""Reading CARMEN logs, packed or not."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import ParseError
from transect.recording import Loss, Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.source import Buffer
from transect.recording.text import blocks, whole_lines
from transect.types import LaserScan, Odometry, Pose

from ..shared.compression import UNPACK, unpack
from ..shared.rows import clock_of, only_file
from . import LIMITS, OLD, SCANS, TAGS
from .arrival import arrival_times
from .messages import LINE, parse_messages, range_errors

ODOMETRY = ("odom_x", "odom_y", "odom_theta")
"""Columns of scans that say where the robot was, by its odometry."""
MAX_REPEAT_DELAY_NS = NS
"""Between a scan and an odometry line with its pose: one further apart has no stamp of its own."""


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
    """Return the odometry that stands in the lines of the first laser, for a log without lines of its own."""
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
    """Return a table per kind of message; under "" stand the losses and notes of the file as a whole."""
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
    """Return all messages but the ODOM lines that a mapping program wrote for its scans, and a note of them.

    Logs with corrected poses have a second ODOM line after each scan: the scan's pose once more, with stamps
    that were never set (0, or whatever was in memory). It is no odometry.
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
    """Return all messages with `log_ns` instead of their line numbers, and how the log times were found."""
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
    """Return the largest ranges in metres that a log's parameters tell, by the word of their scans."""
    words = {parameter.encode(): word for word, parameter in LIMITS.items()}
    told = re.finditer(rb"^PARAM (\w+) (\d+(?:\.\d*)?)\s", text, re.MULTILINE)
    return {words[match[1]]: float(match[2]) for match in told if match[1] in words}


def _join(parts: list[Parsed]) -> Parsed:
    """Lay the pieces of one table end to end; losses for the same reason become one."""
    losses: dict[str, Loss] = {}
    for loss in (loss for part in parts for loss in part.losses):
        first = losses.get(loss.reason, loss)
        count = loss.count + (first.count if loss.reason in losses else 0)
        losses[loss.reason] = Loss(loss.file, loss.reason, line=first.line, count=count)
    return Parsed(pa.concat_tables([part.table for part in parts]), tuple(losses.values()))


def _unpack(buffer: Buffer, file: str) -> tuple[Buffer, Loss | None]:
    opener = UNPACK.get(Path(file).suffix.lower())
    return unpack(buffer, file, opener) if opener else (buffer, None)


FEWEST = 100
"""Readings; of so few that are equal nothing can be said."""
OFTEN, NEAR = 3, 0.95
"""A largest range is read so many times more often than all ranges between this part of it and itself."""


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
    """Return the largest of ranges (n,), m, if it stands for no return: whole metres, read all too often."""
    there = ranges[np.isfinite(ranges)]
    most = float(there.max(initial=0.0))
    if most < 1.0 or most != round(most):
        return None
    here, beside = int((there == most).sum()), int((there >= NEAR * most).sum())
    return most if here >= FEWEST and here > OFTEN * (beside - here) else None
