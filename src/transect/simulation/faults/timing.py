"""Faults of timing: missing, repeated and disordered samples, and wrong time stamps.

Clock faults change the times of samples, not those of logging.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Ints, Mask
from transect.base.clocks import NS
from transect.recording import Recording, Stream, arrow
from transect.recording.arrow import LOG_NS, PART, PAYLOAD, T_NS

from .model import Change, Event, Fault, leave_unchanged, with_table
from .samples import change_of, wrap

EVERY: tuple[type, ...] = (object,)


def _without(stream: Stream, gone: Mask) -> Change:
    """Remove samples from a stream."""
    if not gone.any():
        return leave_unchanged(stream)
    kept = stream.take(~gone)
    return Change(with_table(stream, kept.table).replace(seams=kept.seams), gone, gone.astype(np.float64))


def dropping(stream: Stream, event: Event) -> Change:
    """Remove bursts of samples, at the same times in all affected streams."""
    burst = min(event.parameters["burst"], event.length(stream) / 10)
    inside = event.inside(stream)
    if not inside.any():
        return leave_unchanged(stream)
    number = np.clip(event.seconds(stream) / burst, 0, None).astype(np.int64)
    draws = event.generator("bursts").random(max(1, math.ceil(event.length(stream) / burst)))
    ratio = max(event.severity, float(draws.min()))  # at least one burst
    return _without(stream, inside & (draws[np.minimum(number, len(draws) - 1)] <= ratio))


def starting_late(stream: Stream, event: Event) -> Change:
    """Remove the start."""
    start, end = event.window(stream)
    return _without(stream, stream.t_ns < start + round(event.severity * (end - start)))


def stopping_early(stream: Stream, event: Event) -> Change:
    """Remove the end."""
    start, end = event.window(stream)
    return _without(stream, stream.t_ns >= end - round(event.severity * (end - start)))


def stick(stream: Stream, event: Event) -> Change:
    """Repeat one sample with new times."""
    held = event.inside(stream) & (event.seconds(stream) < event.severity * event.length(stream))
    if not held.any():
        return leave_unchanged(stream)
    source = np.where(held, int(np.argmax(held)), np.arange(len(stream)))
    if stream.loader is not None:
        names = _names(stream)
        other = np.array([names[i] != names[k] for i, k in enumerate(source.tolist())], dtype=bool)
        return wrap(stream, event, other, np.ones(len(stream)), instead=source)
    names = _values(stream)
    return change_of(stream, _repeat(stream.table, names, source), comparable_columns(stream))


def _names(stream: Stream) -> list[Any]:
    known = PAYLOAD in stream.table.column_names
    return arrow.texts(stream.table, PAYLOAD) if known else list(range(len(stream)))


def _repeat(table: pa.Table, names: list[str], source: Ints) -> pa.Table:
    rows = table.take(arrow.from_numpy(source))
    for name in names:
        table = table.set_column(table.column_names.index(name), table.schema.field(name), rows.column(name))
    return table


def _values(stream: Stream) -> list[str]:
    """Return the columns of values, without times."""
    return [name for name in stream.columns if not name.endswith("_ns")]


def comparable_columns(stream: Stream) -> list[str]:
    """Return the columns of comparable values: numbers, lists of numbers, and texts."""
    names = _values(stream)
    kinds = {name: stream.table.schema.field(name).type for name in names}
    inner = {name: getattr(kind, "value_type", kind) for name, kind in kinds.items()}
    plain = {name for name, kind in inner.items() if pa.types.is_primitive(kind)}
    texts = {
        name for name, kind in kinds.items() if pa.types.is_string(kind) or pa.types.is_large_string(kind)
    }
    return [name for name in names if name in plain | texts and name not in (T_NS, LOG_NS, PART)]


TO_THE_END = (0.25, 1.0)


def move_times(stream: Stream, event: Event, by: Ints) -> Change:
    """Shift the times of a stream by (n,) nanoseconds inside the window."""
    by = np.where(event.inside(stream), by, 0)
    touched = by != 0
    if stream.clock == "index" or not touched.any():
        return leave_unchanged(stream)
    # Some formats contain the time in a payload's name, so that the name must change.
    changed = wrap(stream, event, touched, np.ones(len(stream)), instead=np.arange(len(stream))).stream
    place = changed.table.column_names.index(T_NS)
    later = arrow.from_numpy(stream.t_ns + by)
    table = changed.table.set_column(place, changed.table.schema.field(T_NS), later)
    return Change(with_table(changed, table), touched, touched.astype(np.float64))


def slow_down(stream: Stream, event: Event) -> Change:
    """Reduce the rate: keep one of two, four or eight samples."""
    kept = 2 ** math.ceil(event.severity * event.parameters["halvings"])
    inside = event.inside(stream)
    return _without(stream, inside & ((np.cumsum(inside) - 1) % kept > 0))


def jumping(stream: Stream, event: Event) -> Change:
    """Let the clock jump once, with a sign by the seed."""
    sign = event.generator("sign").choice([-1, 1])
    step = sign * round(event.severity * event.parameters["seconds"] * NS)
    return move_times(stream, event, np.full(len(stream), step, dtype=np.int64))


def drifting(stream: Stream, event: Event) -> Change:
    """Let the clock run too fast."""
    rate = event.severity * event.parameters["ppm"] * 1e-6
    return move_times(stream, event, np.rint(event.seconds(stream) * rate * NS).astype(np.int64))


def scatter(stream: Stream, event: Event) -> Change:
    """Add random errors to time stamps; samples keep their order, and stay within the window."""
    rows = np.flatnonzero(event.inside(stream))
    if len(rows) < 3:
        return leave_unchanged(stream)
    rows = rows[np.argsort(stream.t_ns[rows], kind="stable")]
    since = stream.t_ns[rows] - stream.t_ns[rows[0]]
    amplitude = event.severity * event.parameters["intervals"] * np.percentile(np.diff(since), 25)
    uniform = event.generator(stream.name, "scatter").uniform(-1.0, 1.0, len(rows))
    moved = np.abs(since + amplitude * uniform)
    moved = np.abs(since[-1] - np.abs(since[-1] - moved))  # reflected at the ends of the window
    by = np.zeros(len(stream), dtype=np.int64)
    by[rows] = np.sort(np.rint(moved)).astype(np.int64) - since
    return move_times(stream, event, by)


def has_times(stream: Stream, recording: Recording) -> bool:
    """Whether samples have time stamps, and not only indices."""
    return stream.clock != "index"


STAMPED = "samples with time stamps"


def delay(stream: Stream, event: Event) -> Change:
    """Stamp samples with their arrival instead of the time of measurement."""
    late = round(event.severity * event.parameters["seconds"] * NS)
    return move_times(stream, event, np.full(len(stream), late, dtype=np.int64))


FAULTS = (
    Fault(
        "dropout",
        "bursts of samples are lost",
        "all samples of the window are lost",
        EVERY,
        dropping,
        parameters={"burst": 0.5},
        reasons=("GAP", "NO_DATA"),
    ),
    Fault(
        "late_start",
        "a sensor starts later than the others",
        "the first half of the recording is missing",
        EVERY,
        starting_late,
        lasts=(0.0, 0.5),
        reasons=("LATE_START",),
    ),
    Fault(
        "early_stop",
        "a sensor ends before the others",
        "the last half of the recording is missing",
        EVERY,
        stopping_early,
        lasts=(0.5, 1.0),
        reasons=("EARLY_STOP",),
    ),
    Fault(
        "stuck",
        "a sensor repeats one sample with new times",
        "for the whole window",
        EVERY,
        stick,
        reasons=("STUCK", "FROZEN_IMAGE"),
    ),
    Fault(
        "other_rate",
        "the rate of a sensor is lower",
        "one sample in eight is kept (one in two up to a third, in four up to two thirds)",
        EVERY,
        slow_down,
        parameters={"halvings": 3.0},
        unit="halvings of the rate",
        reasons=("RATE",),
    ),
    Fault(
        "clock_jump",
        "the clock of the samples jumps",
        "by 1 s",
        EVERY,
        jumping,
        parameters={"seconds": 1.0},
        lasts=TO_THE_END,
        unit="s",
        reasons=("CLOCK_JUMP",),
        able=has_times,
        needs=STAMPED,
    ),
    Fault(
        "clock_drift",
        "the clock of the samples runs too fast",
        "by 500 parts per million",
        EVERY,
        drifting,
        parameters={"ppm": 500.0},
        lasts=TO_THE_END,
        unit="ppm",
        reasons=("CLOCK_DRIFT",),
        able=has_times,
        needs=STAMPED,
    ),
    Fault(
        "latency",
        "samples are stamped too late",
        "by 0.2 s",
        EVERY,
        delay,
        parameters={"seconds": 0.2},
        lasts=TO_THE_END,
        unit="s",
        reasons=("LATENCY",),
        able=has_times,
        needs=STAMPED,
    ),
    Fault(
        "jitter",
        "stamps have random errors; samples keep their order",
        "of up to two intervals",
        EVERY,
        scatter,
        parameters={"intervals": 2.0},
        unit="intervals between samples",
        reasons=("JITTER",),
        able=has_times,
        needs=STAMPED,
    ),
)


def exchange_neighbours(stream: Stream, event: Event) -> Change:
    """Swap neighbouring samples; the times of logging are unchanged."""
    rows = np.flatnonzero(event.inside(stream))
    first, second = rows[:-1:2], rows[1::2]
    hit = event.choose(len(first), event.severity * event.parameters["ratio"], stream.name)
    hit &= stream.t_ns[first] != stream.t_ns[second]
    source = np.arange(len(stream))
    source[first[hit]], source[second[hit]] = second[hit], first[hit]
    touched = source != np.arange(len(stream))
    if not touched.any():
        return leave_unchanged(stream)
    table = stream.table.take(arrow.from_numpy(source))
    if LOG_NS in table.column_names:
        place = table.column_names.index(LOG_NS)
        table = table.set_column(place, table.schema.field(place), stream.table.column(LOG_NS))
    return Change(with_table(stream, table), touched, touched.astype(np.float64))


def repeat_rows(stream: Stream, event: Event) -> Change:
    """Repeat rows."""
    rows = np.flatnonzero(event.inside(stream))
    twice = np.zeros(len(stream), dtype=bool)
    twice[rows[event.choose(len(rows), event.severity, stream.name)]] = True
    if not twice.any():
        return leave_unchanged(stream)
    source = np.repeat(np.arange(len(stream)), 1 + twice)
    table = stream.table.take(arrow.from_numpy(source))
    changed = with_table(stream, table).replace(seams=_move_seams(stream.seams, twice))
    return Change(changed, twice, twice.astype(np.float64))


def _move_seams(seams: tuple[int, ...], twice: Mask) -> tuple[int, ...]:
    before: Ints = np.concatenate([[0], np.cumsum(twice)])
    return tuple(int(seam + before[seam]) for seam in seams)


ORDER_FAULTS = (
    Fault(
        "disorder",
        "neighbouring samples are swapped; each keeps its own time",
        "one pair of neighbours in five",
        EVERY,
        exchange_neighbours,
        parameters={"ratio": 0.2},
        unit="fraction of the pairs of neighbours",
        reasons=("BACKWARD",),
        able=has_times,
        needs=STAMPED,
    ),
    Fault(
        "repeated_rows",
        "rows are repeated with the same time",
        "all rows of the window",
        EVERY,
        repeat_rows,
        unit="fraction of the rows",
        reasons=("DUPLICATE",),
    ),
)
