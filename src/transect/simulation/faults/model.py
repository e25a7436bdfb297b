"""Faults, their events in recordings, the changes of streams, and labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS, Clock
from transect.recording import FrameTree, Recording, Stream, arrow
from transect.types import Record

from ..randomness import generator

INJECTED = "injected"
"""Condition of a recording: the injected faults, in order."""


@dataclass(frozen=True, eq=False)
class Event:
    """The injection of one fault into one recording."""

    recording: Recording  # without the fault
    fault: str
    severity: float  # in (0, 1]
    seed: int
    windows: Mapping[str, tuple[int, int]]  # time window on each clock, [start, end) in ns
    parameters: Mapping[str, float]  # all parameters of the fault
    reasons: tuple[str, ...] = ()  # reason codes of verdicts that report the fault

    @property
    def mark(self) -> str:
        """A name different from those of faults injected before."""
        return f"{self.fault} {len(self.recording.conditions.get(INJECTED, ()))}"

    def window(self, stream: Stream) -> tuple[int, int]:
        """Return the time window on a stream's clock, [start, end) in ns."""
        return self.windows.get(stream.clock, (0, 0))

    def inside(self, stream: Stream) -> Mask:
        """Return (n,) which samples are in the window."""
        start, end = self.window(stream)
        return (stream.t_ns >= start) & (stream.t_ns < end)

    def seconds(self, stream: Stream) -> Floats:
        """Return (n,) seconds since the start of the window."""
        return (stream.t_ns - self.window(stream)[0]).astype(np.float64) / NS

    def length(self, stream: Stream) -> float:
        """Return the duration of the window, s."""
        start, end = self.window(stream)
        return (end - start) / NS

    def first_part(self, stream: Stream) -> Mask:
        """Return (n,) the samples in the first part of the window, whose fraction is the severity."""
        inside = self.inside(stream)
        part = inside & (self.seconds(stream) < self.severity * self.length(stream))
        if inside.any() and not part.any():  # at least one sample
            part[np.argmin(np.where(inside, stream.t_ns, np.iinfo(np.int64).max))] = True
        return part

    def choose(self, count: int, fraction: float, *purpose: str | int) -> Mask:
        """Return a random selection (count,) of a fraction of some items, at least one."""
        rank = self.generator(*purpose).permutation(count)
        return rank < max(1, round(fraction * count))

    def generator(self, *purpose: str | int) -> np.random.Generator:
        """Return a generator that does not depend on the severity: a higher one affects a superset."""
        return generator(self.seed, "fault", self.fault, *purpose)


@dataclass(frozen=True, eq=False)
class Change:
    """The change of a stream by a fault."""

    stream: Stream  # with the fault; samples may be missing
    touched: Mask  # (n,) which samples of the stream without the fault are changed or missing
    # (n,), affected fraction of each sample: of its beams, of its light, of the worst case; 1 for samples as
    # a whole, 0 where an earlier change continues
    fraction: Floats


Apply = Callable[[Stream, Event], Change]
Remount = Callable[[FrameTree, Stream, Event], FrameTree]
"""Takes the frames, a stream and the event; returns the frames with another mount of the stream's sensor."""
Damage = Callable[[bytes, float, np.random.Generator], tuple[bytes, list[tuple[int, float]]]]
"""Takes a file's content, the severity and a generator; returns the damaged content, and the bytes."""


def _always(stream: Stream, recording: Recording) -> bool:
    return True


def _none(stream: Stream, recording: Recording) -> Stream | None:
    return None


@dataclass(frozen=True, eq=False)
class Fault:
    """A fault that can be injected."""

    name: str
    what: str  # description, a sentence
    severity: str  # description of severity 1
    types: tuple[type, ...] = ()  # of the streams that it can affect
    apply: Apply | None = None  # applies it to a stream; None for a fault of files or of mounts
    damage: Damage | None = None  # applies it to a file
    parameters: Mapping[str, float] = field(default_factory=dict[str, float])  # with their defaults
    lasts: tuple[float, float] = (0.25, 0.75)  # default window as fractions of the recording
    # unit of the severity, to which it is proportional unless `severity` states otherwise
    unit: str = "fraction of the window"
    reasons: tuple[str, ...] = ()  # reason codes of verdicts that report the fault; each of them is correct
    remount: Remount | None = None  # applies it to the mount of a stream's sensor in the frame tree
    # whether it can affect a stream of a recording, for streams of its types
    able: Callable[[Stream, Recording], bool] = _always
    needs: str = ""  # requirement of `able`, in words
    # returns the stream of a recording that is affected together with a stream, None if there is none
    counterpart: Callable[[Stream, Recording], Stream | None] = _none


def leave_unchanged(stream: Stream) -> Change:
    """Return an unchanged stream."""
    return Change(stream, np.zeros(len(stream), dtype=bool), np.zeros(len(stream)))


def with_table(stream: Stream, table: pa.Table) -> Stream:
    """Return a stream with other columns; losses and notes of reading are kept."""
    return stream.replace(source=dataclasses.replace(stream.parsed, table=table))


LABELS = "truth/faults"
"""Name of the stream of labels, and of their file without its suffix."""


def is_kept(stream: Stream) -> bool:
    """Whether a stream is not affected by any fault: truth of its own folder, or without time."""
    return stream.name.startswith("truth/") or bool(stream.meta.get("timeless"))


def labels_of(recording: Recording, event: Event, changes: Mapping[str, Change]) -> pa.Table:
    """Return the labels of all affected samples, stream by stream."""
    rows = {name: np.flatnonzero(change.touched) for name, change in changes.items()}
    t_ns = [recording[name].t_ns[index] for name, index in rows.items()]
    fraction = [change.fraction[rows[name]] for name, change in changes.items()]
    names = [name for name, index in rows.items() for _ in range(len(index))]
    none = np.zeros(0, np.int64)
    index, fractions = np.concatenate([none, *rows.values()]), np.concatenate([np.zeros(0), *fraction])
    return label_table(event, np.concatenate([none, *t_ns]), names, index, fractions)


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
    """Add labels to a recording, and the fault to its conditions."""
    others = tuple(s for s in recording if s.name != LABELS)
    before = [s.table for s in recording if s.name == LABELS]
    table = pa.concat_tables([*before, labels], promote_options="permissive")
    first = arrow.texts(labels, "stream")[:1]
    timed = [s for s in others if s.name in first] or [s for s in others if s.clock == recording.clock]
    clock: Clock = timed[0].clock if timed else "utc"
    text = f"{event.fault}, severity {event.severity:g}, seed {event.seed}"
    conditions = {**recording.conditions, INJECTED: [*recording.conditions.get(INJECTED, ()), text]}
    stream = Stream(LABELS, Record, table, clock=clock, role="truth")
    return recording.replace(streams=(*others, stream), conditions=conditions)
