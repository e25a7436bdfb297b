"""Labels: which samples a fault touched, and how much of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Ints
from transect.base.clocks import Clock
from transect.recording import Recording, Stream, arrow
from transect.types import Record

from ._model import INJECTED, Change, Event

LABELS = "truth/faults"
"""The stream of labels, and their file without its suffix."""


def is_kept(stream: Stream) -> bool:
    """Tell whether a stream is what no fault touches: truth of its own folder, or without time."""
    return stream.name.startswith("truth/") or bool(stream.meta.get("timeless"))


def labels_of(recording: Recording, event: Event, changes: Mapping[str, Change]) -> pa.Table:
    """Return the label of every touched sample, stream by stream."""
    rows = {name: np.flatnonzero(change.touched) for name, change in changes.items()}
    t_ns = [recording[name].t_ns[index] for name, index in rows.items()]
    fraction = [change.fraction[rows[name]] for name, change in changes.items()]
    names = [name for name, index in rows.items() for _ in range(len(index))]
    none = np.zeros(0, np.int64)
    index, shares = np.concatenate([none, *rows.values()]), np.concatenate([np.zeros(0), *fraction])
    return label_table(event, np.concatenate([none, *t_ns]), names, index, shares)


def label_table(event: Event, t_ns: Ints, names: Sequence[str], index: Ints, fraction: Floats) -> pa.Table:
    """Return labels (n,) as a table."""
    columns = {
        "stream": arrow.strings(names),
        "index": index,
        "fault": arrow.strings([event.fault] * len(names)),
        "severity": np.full(len(names), event.severity),
        "fraction": fraction,
        "reason": arrow.strings([" ".join(event.reasons)] * len(names)),
    }
    return arrow.table(t_ns, columns)


def add_labels(recording: Recording, event: Event, labels: pa.Table) -> Recording:
    """Return a recording with the labels added to those that it has, and a word of them in its conditions."""
    others = tuple(s for s in recording if s.name != LABELS)
    before = [s.table for s in recording if s.name == LABELS]
    table = pa.concat_tables([*before, labels], promote_options="permissive")
    first = arrow.texts(labels, "stream")[:1]
    timed = [s for s in others if s.name in first] or [s for s in others if s.clock == recording.clock]
    clock: Clock = timed[0].clock if timed else "utc"
    said = f"{event.fault}, severity {event.severity:g}, seed {event.seed}"
    conditions = {**recording.conditions, INJECTED: [*recording.conditions.get(INJECTED, ()), said]}
    stream = Stream(LABELS, Record, table, clock=clock, role="truth")
    return recording.replace(streams=(*others, stream), conditions=conditions)
