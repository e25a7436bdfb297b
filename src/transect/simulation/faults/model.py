"""What a fault is, when it happens, and what it did to a stream."""

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
"""Condition of a recording: what was injected, in order."""


@dataclass(frozen=True, eq=False)
class Event:
    """One fault that happens to one recording."""

    recording: Recording  # as it is without the fault
    fault: str
    severity: float  # in (0, 1]
    seed: int
    windows: Mapping[str, tuple[int, int]]  # when it lasts on each clock, [start, end) in ns
    parameters: Mapping[str, float]  # of the fault, all of them
    reasons: tuple[str, ...] = ()  # reason codes of a verdict that name the fault

    @property
    def mark(self) -> str:
        """A name that no fault injected before it has."""
        return f"{self.fault} {len(self.recording.conditions.get(INJECTED, ()))}"

    def window(self, stream: Stream) -> tuple[int, int]:
        """Return when it lasts on a stream's clock, [start, end) in ns."""
        return self.windows.get(stream.clock, (0, 0))

    def inside(self, stream: Stream) -> Mask:
        """Return (n,) which samples lie in the window."""
        start, end = self.window(stream)
        return (stream.t_ns >= start) & (stream.t_ns < end)

    def seconds(self, stream: Stream) -> Floats:
        """Return (n,) seconds since the window began."""
        return (stream.t_ns - self.window(stream)[0]).astype(np.float64) / NS

    def length(self, stream: Stream) -> float:
        """Return how long it lasts, s."""
        start, end = self.window(stream)
        return (end - start) / NS

    def first_part(self, stream: Stream) -> Mask:
        """Return (n,) the samples of the first part of the window, whose share of it is the severity."""
        inside = self.inside(stream)
        part = inside & (self.seconds(stream) < self.severity * self.length(stream))
        if inside.any() and not part.any():  # one sample at the least
            part[np.argmin(np.where(inside, stream.t_ns, np.iinfo(np.int64).max))] = True
        return part

    def choose(self, count: int, share: float, *purpose: str | int) -> Mask:
        """Return (count,) which of some things are hit: a share of them by chance, one at the least."""
        rank = self.generator(*purpose).permutation(count)
        return rank < max(1, round(share * count))

    def generator(self, *purpose: str | int) -> np.random.Generator:
        """Return random numbers, the same for every severity: more of it touches more, and not others."""
        return generator(self.seed, "fault", self.fault, *purpose)


@dataclass(frozen=True, eq=False)
class Change:
    """What became of a stream."""

    stream: Stream  # with the fault; some samples may be gone
    touched: Mask  # (n,) bool, Which samples of the stream without the fault are other ones now, or gone
    # (n,), how much of each sample: the share of its beams, of its light, of the worst case; 1 where there
    # is nothing to share, 0 where an earlier touch lives on
    fraction: Floats


Apply = Callable[[Stream, Event], Change]
Remount = Callable[[FrameTree, Stream, Event], FrameTree]
"""Takes the frames, a stream and the event; returns the frames with the stream's sensor mounted elsewhere."""
Damage = Callable[[bytes, float, np.random.Generator], tuple[bytes, list[tuple[int, float]]]]
"""Takes a file's content, the severity and random numbers; returns the damaged content, and which bytes."""


def _always(stream: Stream, recording: Recording) -> bool:
    return True


def _none(stream: Stream, recording: Recording) -> Stream | None:
    return None


@dataclass(frozen=True, eq=False)
class Fault:
    """A fault that can be made to happen."""

    name: str
    what: str  # what happens, a sentence
    severity: str  # what severity 1 is
    types: tuple[type, ...] = ()  # of the streams that it can happen to
    apply: Apply | None = None  # makes it happen to a stream; None for a fault of files or of mounts
    damage: Damage | None = None  # makes it happen to a file
    parameters: Mapping[str, float] = field(default_factory=dict[str, float])  # with their defaults
    # (float, float), when it happens by default: the part of the recording from 0 to 1
    lasts: tuple[float, float] = (0.25, 0.75)
    # what the severity counts; it grows with the severity in proportion, unless `severity` says otherwise
    unit: str = "share of the window"
    reasons: tuple[str, ...] = ()  # reason codes of a verdict that name the fault; each of them is right
    remount: Remount | None = None  # makes it happen to the mount of a stream's sensor in the frame tree
    # tells whether it can happen to a stream of a recording, for streams of its types
    able: Callable[[Stream, Recording], bool] = _always
    needs: str = ""  # what `able` asks for, for people
    # returns the stream of a recording that the fault happens to together with a stream, None for none
    partner: Callable[[Stream, Recording], Stream | None] = _none


def leave_alone(stream: Stream) -> Change:
    """Return that a fault left a stream alone."""
    return Change(stream, np.zeros(len(stream), dtype=bool), np.zeros(len(stream)))


def with_table(stream: Stream, table: pa.Table) -> Stream:
    """Return a stream with other columns; what was lost and noted on reading stays."""
    return stream.replace(source=dataclasses.replace(stream.parsed, table=table))


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
