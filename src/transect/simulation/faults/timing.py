"""Clocks that go wrong: sample times move, log times stay."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Ints
from transect.base.clocks import NS
from transect.recording import Stream, arrow
from transect.recording.arrow import T_NS

from ._model import Change, Event, Fault, unchanged, with_table
from ._payloads import wrapped
from .presence import EVERY

TO_THE_END = (0.25, 1.0)


def _move(stream: Stream, event: Event, by: Ints) -> Change:
    """Return a stream whose times are later by (n,) nanoseconds inside the window."""
    by = np.where(event.inside(stream), by, 0)
    touched = by != 0
    if stream.clock == "index" or not touched.any():
        return unchanged(stream)
    # Some formats have the time in a payload's name, so that it cannot keep its name.
    changed = wrapped(stream, event, touched, np.ones(len(stream)), instead=np.arange(len(stream))).stream
    place = changed.table.column_names.index(T_NS)
    later = arrow.from_numpy(stream.t_ns + by)
    table = changed.table.set_column(place, changed.table.schema.field(T_NS), later)
    return Change(with_table(changed, table), touched, touched.astype(np.float64))


def jumping(stream: Stream, event: Event) -> Change:
    """Let the clock jump once, forwards or backwards as the seed has it."""
    sign = event.generator("sign").choice([-1, 1])
    step = sign * round(event.severity * event.parameters["seconds"] * NS)
    return _move(stream, event, np.full(len(stream), step, dtype=np.int64))


def drifting(stream: Stream, event: Event) -> Change:
    """Let the clock go too fast."""
    rate = event.severity * event.parameters["ppm"] * 1e-6
    return _move(stream, event, np.rint(event.seconds(stream) * rate * NS).astype(np.int64))


def delayed(stream: Stream, event: Event) -> Change:
    """Stamp samples when they arrive, not when they were taken."""
    late = round(event.severity * event.parameters["seconds"] * NS)
    return _move(stream, event, np.full(len(stream), late, dtype=np.int64))


FAULTS = (
    Fault(
        "clock_jump",
        "the clock of the samples jumps",
        "by 1 s",
        EVERY,
        jumping,
        parameters={"seconds": 1.0},
        lasts=TO_THE_END,
    ),
    Fault(
        "clock_drift",
        "the clock of the samples goes too fast",
        "by 500 parts in a million",
        EVERY,
        drifting,
        parameters={"ppm": 500.0},
        lasts=TO_THE_END,
    ),
    Fault(
        "latency",
        "samples are stamped too late",
        "by 0.2 s",
        EVERY,
        delayed,
        parameters={"seconds": 0.2},
        lasts=TO_THE_END,
    ),
)
