"""Rows that are in the wrong order, or there twice; every sample keeps its own time."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Ints, Mask
from transect.recording import Stream, arrow
from transect.recording.arrow import LOG_NS

from ._model import Change, Event, Fault, leave_alone, with_table
from .timing import EVERY, STAMPED, has_times


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


FAULTS = (
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
