"""Summary of a recording as text or HTML: stream, type, samples, rate, span, longest gap."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from transect.base import clocks
from transect.base.arrays import Mask
from transect.base.tables import html_table, shorten, table_lines

from .arrow import T_NS, block_ranges, holds_numbers, numbers

if TYPE_CHECKING:
    from .recording import Recording
    from .stream import Stream

HEADINGS: tuple[str, ...] = (
    "stream",
    "type",
    "logged as",
    "samples",
    "rate",
    "start",
    "duration",
    "longest gap",
    "role",
)
NUMBERS = frozenset({"samples", "rate", "duration", "longest gap"})
IMPORTANT = ("stream", "type", "rate", "longest gap", "role", "samples", "duration", "logged as", "start")
"""Columns from the most to the least important."""
MAX_LOGGED_RATE_HZ = 1e5
"""No sensor is logged faster: samples at a higher rate were stamped together."""
NEVER_REPEATED = frozenset({"NavFix", "Imu"})
"""Types whose noise never repeats, by name because importing them is slow."""
MIN_COPIED_RATIO = 0.01
"""Ratio of rows equal to the previous one above which they are reported."""


class StreamTable(NamedTuple):
    """Rows of text under headings, with the indices of right-aligned columns and of columns by importance."""

    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]
    right: frozenset[int]
    order: tuple[int, ...]


def duration_text(seconds: float) -> str:
    """Return a duration as text: `4.20 s`, `25:02`, `1:02:03`."""
    if math.isnan(seconds):
        return "-"
    if seconds < 100:
        return f"{seconds:.2f} s" if seconds >= 0.1 or seconds == 0 else f"{1000 * seconds:.2f} ms"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def rate_text(rate: float) -> str:
    """Return a rate as text: `99.8 Hz`, `1.2 kHz`, `-`, or `at once` for nearly equal stamps."""
    if math.isnan(rate):
        return "-"
    if rate > MAX_LOGGED_RATE_HZ:
        return "at once"
    return f"{rate / 1000:.3g} kHz" if rate >= 1000 else f"{rate:.3g} Hz"


def stream_table(recording: Recording) -> StreamTable:
    """Return a row of text for each stream; empty columns are left out."""
    rows = [dict(zip(HEADINGS, _stream_row(stream), strict=True)) for stream in recording.streams]
    names = [name for name in HEADINGS if not rows or any(row[name] not in ("", "-") for row in rows)]
    return StreamTable(
        tuple(names),
        [tuple(row[name] for name in names) for row in rows],
        frozenset(k for k, name in enumerate(names) if name in NUMBERS),
        tuple(names.index(name) for name in IMPORTANT if name in names),
    )


def _logged_type(stream: Stream) -> str:
    """Return the name of the sample type in the log, without `msg/` of ROS 2, or ""."""
    return (stream.logged_type or "").replace("/msg/", "/")


def _stream_row(stream: Stream) -> tuple[str, ...]:
    timing = stream.timing
    timed = stream.clock != "index" and timing.start_ns is not None and timing.end_ns is not None
    start = clocks.text_from_ns(timing.start_ns or 0, stream.clock) if timed else "-"
    seconds = ((timing.end_ns or 0) - (timing.start_ns or 0)) / clocks.NS if timed else math.nan
    role = stream.role if not stream.tag else f"{stream.role} ({stream.tag})"
    return (
        stream.name,
        stream.type.__name__,
        _logged_type(stream) or "-",
        f"{timing.count}",
        rate_text(timing.rate) if timed else "-",
        start,
        duration_text(seconds),
        duration_text(timing.gap_s) if timed else "-",
        role,
    )


def stream_facts(stream: Stream) -> dict[str, Any]:
    """Return the summary of a stream as plain values for JSON."""
    timing = stream.timing

    def finite(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        "name": stream.name,
        "type": stream.type.__name__,
        "logged_type": stream.logged_type,
        "clock": stream.clock,
        "role": stream.role,
        "tag": stream.tag,
        "frame": stream.frame,
        "child": stream.child,
        "samples": timing.count,
        "start_ns": timing.start_ns,
        "end_ns": timing.end_ns,
        "rate_hz": finite(timing.rate),
        "longest_gap_s": finite(timing.gap_s),
        "longest_gap_at_ns": timing.gap_at_ns,
        "backwards": timing.backwards,
        "repeated": timing.repeated,
        "copied_rows": count_copies(stream),
        "columns": stream.units,
        "losses": sum(loss.count for loss in stream.losses),
    }


def first_row(stream: Stream) -> str:
    """Return the first sample as text: its time, and each column with its unit."""
    if not len(stream):
        return "no rows"
    row, units = stream[0].row, stream.units
    values = [
        f"{name} {_value_text(value)} {units[name]}".rstrip()
        for name, value in row.items()
        if name not in ("t_ns", "log_ns")
    ]
    if stream.clock == "index":
        return ", ".join(values)
    return ", ".join([f"at {clocks.text_from_ns(stream[0].t_ns, stream.clock)} ({stream.clock})", *values])


def _value_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{len(value)} values" if isinstance(value, list) else str(value)


def headline(recording: Recording) -> str:
    """Return one line: name, format, robot, span."""
    parts = [recording.name]
    parts += [recording.format] if recording.format else []
    parts += [f"robot {recording.robot.name}"] if recording.robot else []
    for clock, (start, end) in recording.spans().items():
        if clock != "index":
            parts.append(
                f"{clocks.text_from_ns(start, clock)} + {duration_text((end - start) / clocks.NS)} ({clock})"
            )
    return " · ".join(parts)


def text_summary(recording: Recording) -> str:
    """Return the table as plain text."""
    table = stream_table(recording)
    lines = table_lines([table.headings, *table.rows], table.right) if table.rows else []
    return "\n".join([headline(recording), *lines, *camera_lines(recording), *footer_lines(recording)])


def camera_lines(recording: Recording) -> list[str]:
    """Return a line per camera for recordings without streams, such as calibration files."""
    if recording.streams:
        return []
    return [
        f"camera {name}: {c.width} x {c.height}, focal {c.K[0, 0]:.2f} {c.K[1, 1]:.2f}, "
        f"centre {c.K[0, 2]:.2f} {c.K[1, 2]:.2f}, {c.distortion} {c.coefficients.tolist()}"
        for name, c in recording.cameras.items()
    ]


def footer_lines(recording: Recording) -> list[str]:
    """Return the losses and notes."""
    lost = recording.losses
    lines = [f"lost: {loss.where}: {loss.reason}{_times(loss.count)}" for loss in lost[:5]]
    lines += [f"... and {len(lost) - 5} more losses"] if len(lost) > 5 else []
    copies = [note for stream in recording if (note := _copies_note(stream))]
    return lines + [f"note: {note}" for note in (*recording.all_notes, *_backward_notes(recording), *copies)]


def _backward_notes(recording: Recording) -> list[str]:
    """Return a note for each set of streams whose clock goes back in the same way."""
    names: dict[str, list[str]] = {}
    for stream in recording:
        merged = _logged_type(stream).lower().endswith("/tfmessage")  # several nodes with their own times
        merged |= stream.role == "truth" and stream.type.__name__ == "Record"  # several sensors
        if stream.clock != "index" and stream.timing.backwards and not merged:
            names.setdefault(_backward_text(stream), []).append(stream.name)
    return [f"{', '.join(streams)}: {text}" for text, streams in names.items()]


def _backward_text(stream: Stream) -> str:
    timing = stream.timing
    first, farthest = clocks.text_from_ns(timing.back_at_ns or 0, stream.clock), duration_text(timing.back_s)
    count = timing.backwards
    often = f"{count} times, by up to {farthest}, first" if count > 1 else f"once, by {farthest},"
    return f"the clock goes back {often} after {first}; --clocks shows more"


def count_copies(stream: Stream) -> int:
    """Return how many rows of a satellite receiver or an IMU equal the previous row, except for their times.

    Their noise never repeats, so that such rows were logged faster than measured.
    """
    if stream.type.__name__ not in NEVER_REPEATED or len(stream) < 2:
        return 0
    blocks = (stream.table.slice(a, b - a) for a, b in block_ranges(0, len(stream)))
    return sum(_count_copies(stream.replace(source=block)) for block in blocks)


def _count_copies(stream: Stream) -> int:
    same = np.ones(len(stream) - 1, dtype=bool)
    for name in stream.columns:
        same &= _repeats(stream.table, name)
    return int(same.sum())


def _repeats(table: pa.Table, name: str) -> Mask:
    """Return (n - 1,) whether each row of a column equals the previous one."""
    kind = table.schema.field(name).type
    if not holds_numbers(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        rows = list(map(repr, table.column(name).to_pylist()))  # as text, NaN equals NaN
        return np.array([row == before for before, row in pairwise(rows)], dtype=bool)
    values = numbers(table, name)
    equal = np.asarray(values[1:] == values[:-1])
    if values.dtype.kind == "f":
        equal |= np.isnan(values[1:]) & np.isnan(values[:-1])
    return np.asarray(equal.reshape(len(equal), -1).all(axis=1), dtype=bool)


def _copies_note(stream: Stream) -> str:
    count, rate = count_copies(stream), stream.timing.rate
    if count <= MIN_COPIED_RATIO * len(stream):
        return ""
    note = f"{stream.name}: {count} of {len(stream)} rows are copies of the row before"
    if math.isnan(rate) or stream.clock == "index":
        return note
    return f"{note}: new values come at {rate_text(rate * (1 - count / len(stream)))}"


def _times(count: int) -> str:
    return f" ({count} in all)" if count > 1 else ""


def html_summary(recording: Recording) -> str:
    """Return the table as HTML for a notebook."""
    table = stream_table(recording)
    return html_table(headline(recording), [table.headings, *table.rows], footer_lines(recording))


def html_stream(stream: Stream, max_letters: int = 24) -> str:
    """Return the columns of a stream as HTML for a notebook: unit, first and last value of each."""
    ends = [
        stream.table.slice(row, 1).to_pylist()[0] for row in ((0, len(stream) - 1) if len(stream) else ())
    ]
    rows = [
        (name, stream.units.get(name, ""), *(shorten(_value_text(row[name]), max_letters) for row in ends))
        for name in stream.columns
    ]
    if stream.clock != "index":
        times = (clocks.text_from_ns(row[T_NS], stream.clock) for row in ends)
        rows.insert(0, ("time", stream.clock, *times))
    head = ("column", "unit", *(("first", "last") if ends else ()))
    timing = stream.timing
    return html_table(
        f"{stream.name}: {stream.type.__name__}, {len(stream)} samples, {rate_text(timing.rate)}",
        [head, *rows],
    )
