"""Samples that are not there, always the same, or at the wrong time.

Dropout, late start, early stop and stuck; and clocks that go wrong, by a rule or by chance: the times of
samples move, those of logging stay.
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

from .model import Change, Event, Fault, leave_alone, with_table
from .samples import change_of, wrap

EVERY: tuple[type, ...] = (object,)


def _without(stream: Stream, gone: Mask) -> Change:
    """Return a stream without some of its samples."""
    if not gone.any():
        return leave_alone(stream)
    kept = stream.take(~gone)
    return Change(with_table(stream, kept.table).replace(seams=kept.seams), gone, gone.astype(np.float64))


def dropping(stream: Stream, event: Event) -> Change:
    """Lose bursts of samples; all streams that are meant lose the same moments."""
    burst = min(event.parameters["burst"], event.length(stream) / 10)
    inside = event.inside(stream)
    if not inside.any():
        return leave_alone(stream)
    number = np.clip(event.seconds(stream) / burst, 0, None).astype(np.int64)
    luck = event.generator("bursts").random(max(1, math.ceil(event.length(stream) / burst)))
    share = max(event.severity, float(luck.min()))  # one burst at the least
    return _without(stream, inside & (luck[np.minimum(number, len(luck) - 1)] <= share))


def starting_late(stream: Stream, event: Event) -> Change:
    """Lose the beginning."""
    start, end = event.window(stream)
    return _without(stream, stream.t_ns < start + round(event.severity * (end - start)))


def stopping_early(stream: Stream, event: Event) -> Change:
    """Lose the end."""
    start, end = event.window(stream)
    return _without(stream, stream.t_ns >= end - round(event.severity * (end - start)))


def stick(stream: Stream, event: Event) -> Change:
    """Repeat one sample; its time goes on."""
    held = event.inside(stream) & (event.seconds(stream) < event.severity * event.length(stream))
    if not held.any():
        return leave_alone(stream)
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
    """Return the columns of values; a sample keeps its times when it has the values of another."""
    return [name for name in stream.columns if not name.endswith("_ns")]


def comparable_columns(stream: Stream) -> list[str]:
    """Return the columns of values that can be compared: numbers, lists of them, and texts."""
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
    """Return a stream whose times are later by (n,) nanoseconds inside the window."""
    by = np.where(event.inside(stream), by, 0)
    touched = by != 0
    if stream.clock == "index" or not touched.any():
        return leave_alone(stream)
    # Some formats have the time in a payload's name, so that it cannot keep its name.
    changed = wrap(stream, event, touched, np.ones(len(stream)), instead=np.arange(len(stream))).stream
    place = changed.table.column_names.index(T_NS)
    later = arrow.from_numpy(stream.t_ns + by)
    table = changed.table.set_column(place, changed.table.schema.field(T_NS), later)
    return Change(with_table(changed, table), touched, touched.astype(np.float64))


def slow_down(stream: Stream, event: Event) -> Change:
    """Measure less often, and evenly: of two, four or eight samples one is left."""
    kept = 2 ** math.ceil(event.severity * event.parameters["halvings"])
    inside = event.inside(stream)
    return _without(stream, inside & ((np.cumsum(inside) - 1) % kept > 0))


def jumping(stream: Stream, event: Event) -> Change:
    """Let the clock jump once, forwards or backwards as the seed has it."""
    sign = event.generator("sign").choice([-1, 1])
    step = sign * round(event.severity * event.parameters["seconds"] * NS)
    return move_times(stream, event, np.full(len(stream), step, dtype=np.int64))


def drifting(stream: Stream, event: Event) -> Change:
    """Let the clock go too fast."""
    rate = event.severity * event.parameters["ppm"] * 1e-6
    return move_times(stream, event, np.rint(event.seconds(stream) * rate * NS).astype(np.int64))


def scatter(stream: Stream, event: Event) -> Change:
    """Stamp samples too early or too late by chance; they keep their order, and stay between the others."""
    rows = np.flatnonzero(event.inside(stream))
    if len(rows) < 3:
        return leave_alone(stream)
    rows = rows[np.argsort(stream.t_ns[rows], kind="stable")]
    since = stream.t_ns[rows] - stream.t_ns[rows[0]]
    far = event.severity * event.parameters["intervals"] * np.percentile(np.diff(since), 25)
    thrown = np.abs(since + far * event.generator(stream.name, "scatter").uniform(-1.0, 1.0, len(rows)))
    thrown = np.abs(since[-1] - np.abs(since[-1] - thrown))  # the window's ends are mirrors
    by = np.zeros(len(stream), dtype=np.int64)
    by[rows] = np.sort(np.rint(thrown)).astype(np.int64) - since
    return move_times(stream, event, by)


def has_times(stream: Stream, recording: Recording) -> bool:
    """Tell whether samples have stamps, and not only numbers."""
    return stream.clock != "index"


STAMPED = "samples that have stamps"


def delay(stream: Stream, event: Event) -> Change:
    """Stamp samples when they arrive, not when they were taken."""
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
        "a sensor begins later than the others",
        "it misses the first half of the recording",
        EVERY,
        starting_late,
        lasts=(0.0, 0.5),
        reasons=("LATE_START",),
    ),
    Fault(
        "early_stop",
        "a sensor ends before the others",
        "it misses the last half of the recording",
        EVERY,
        stopping_early,
        lasts=(0.5, 1.0),
        reasons=("EARLY_STOP",),
    ),
    Fault(
        "stuck",
        "a sensor gives one sample over and over, with new times",
        "for all of the window",
        EVERY,
        stick,
        reasons=("STUCK", "FROZEN_IMAGE"),
    ),
    Fault(
        "other_rate",
        "a sensor measures less often than before, and evenly",
        "one sample in eight is left (one in two up to a third, in four up to two thirds)",
        EVERY,
        slow_down,
        parameters={"halvings": 3.0},
        unit="times that the rate is halved",
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
        "the clock of the samples goes too fast",
        "by 500 parts in a million",
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
        "stamps scatter about the true times; samples keep their order",
        "by up to two intervals to either side",
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
    """Let samples arrive after their successors; the times of logging stay where they are."""
    rows = np.flatnonzero(event.inside(stream))
    first, second = rows[:-1:2], rows[1::2]
    hit = event.choose(len(first), event.severity * event.parameters["share"], stream.name)
    hit &= stream.t_ns[first] != stream.t_ns[second]
    source = np.arange(len(stream))
    source[first[hit]], source[second[hit]] = second[hit], first[hit]
    touched = source != np.arange(len(stream))
    if not touched.any():
        return leave_alone(stream)
    table = stream.table.take(arrow.from_numpy(source))
    if LOG_NS in table.column_names:
        place = table.column_names.index(LOG_NS)
        table = table.set_column(place, table.schema.field(place), stream.table.column(LOG_NS))
    return Change(with_table(stream, table), touched, touched.astype(np.float64))


def repeat_rows(stream: Stream, event: Event) -> Change:
    """Write rows twice, one after the other."""
    rows = np.flatnonzero(event.inside(stream))
    twice = np.zeros(len(stream), dtype=bool)
    twice[rows[event.choose(len(rows), event.severity, stream.name)]] = True
    if not twice.any():
        return leave_alone(stream)
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
        "samples come after their successors; each keeps its own time",
        "one pair of neighbours in five has changed places",
        EVERY,
        exchange_neighbours,
        parameters={"share": 0.2},
        unit="share of the pairs of neighbours",
        reasons=("BACKWARD",),
        able=has_times,
        needs=STAMPED,
    ),
    Fault(
        "repeated_rows",
        "rows are there twice, with the same time",
        "each row of the window",
        EVERY,
        repeat_rows,
        unit="share of the rows",
        reasons=("DUPLICATE",),
    ),
)
