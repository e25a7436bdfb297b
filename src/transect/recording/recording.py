"""Everything one robot logged in one go."""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from transect.errors import StreamError, TimeError, TransectError, did_you_mean
from transect.types import CameraModel, Pose, Provenance, RigidBodyState

from . import clocks
from .clocks import TimeLike
from .frames import FrameTree
from .losses import Loss
from .robot import Robot
from .source import Source
from .stream import Sample, Stream

MERGE_CHUNK = 65_536


@dataclass(frozen=True, eq=False)
class Recording:
    """Streams, frames and metadata of one recording; columns and payloads load when asked for.

    Attributes
    ----------
    name : str
        What to call it.
    streams : tuple of Stream
        By name with ``rec["Gnss/Pose"]``.
    frames : FrameTree
        Where things are, at a time.
    cameras : mapping of str to CameraModel
    robot : Robot or None
    conditions : mapping
        What the catalogue or the folder says of the day: environment, dust, RTK coverage, ...
    format : str
        Name of the format it was read from.
    notes : tuple of str
        What the reader noticed and a person should know.
    """

    name: str
    streams: tuple[Stream, ...]
    frames: FrameTree = field(default_factory=FrameTree)
    cameras: Mapping[str, CameraModel] = field(default_factory=dict[str, CameraModel])
    robot: Robot | None = None
    conditions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    format: str = ""
    source: Source | None = None
    notes: tuple[str, ...] = ()
    reader_losses: tuple[Loss, ...] = ()
    clock_offsets: Mapping[str, int] = field(default_factory=dict[str, int])
    joined_sources: tuple[Source, ...] = ()

    def __post_init__(self) -> None:
        names = [stream.name for stream in self.streams]
        if len(set(names)) != len(names):
            twice = sorted({n for n in names if names.count(n) > 1})
            raise StreamError(f"{self.name} has several streams named {', '.join(twice)}")

    @cached_property
    def _by_name(self) -> dict[str, Stream]:
        return {stream.name: stream for stream in self.streams}

    def __getitem__(self, name: str) -> Stream:
        """Return the stream of that name; the case and a unique ending or part of the name will do."""
        if name in self._by_name:
            return self._by_name[name]
        near = [s for s in self.streams if name.lower() in s.name.lower()]
        exact = [
            s for s in near if s.name.lower().rsplit("/", 1)[-1] == name.lower().rsplit("/", 1)[-1]
        ] or near
        if len(exact) == 1:
            return exact[0]
        hint = (
            f"it could be {', '.join(s.name for s in exact)}" if exact else did_you_mean(name, self._by_name)
        )
        raise StreamError(f"{self.name} has no stream {name!r}", hint=hint)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Stream]:
        return iter(self.streams)

    def __len__(self) -> int:
        return len(self.streams)

    def select(self, *patterns: str) -> Recording:
        """Return the recording with only the streams that match any of the shell patterns."""
        kept = [
            s for s in self.streams if any(fnmatch.fnmatchcase(s.name.lower(), p.lower()) for p in patterns)
        ]
        if not kept:
            raise StreamError(
                f"no stream of {self.name} matches {' or '.join(patterns)}",
                hint=did_you_mean(patterns[0], self._by_name),
            )
        return self.replace(streams=tuple(kept))

    def replace(self, **changes: Any) -> Recording:
        """Return the recording with some attributes changed."""
        return dataclasses.replace(self, **changes)

    @property
    def sources(self) -> tuple[Source, ...]:
        """What it was read from; several for a joined recording."""
        return (*((self.source,) if self.source else ()), *self.joined_sources)

    @property
    def path(self) -> Path | None:
        """Where it was read from."""
        return self.source.path if self.source else None

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Everything that could not be kept; parses whatever was not parsed yet."""
        unique = dict.fromkeys([*self.reader_losses, *(loss for s in self.streams for loss in s.losses)])
        return tuple(unique)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """What the readers noticed; parses whatever was not parsed yet."""
        return tuple(dict.fromkeys([*self.notes, *(note for s in self.streams for note in s.parsed.notes)]))

    @property
    def provenance(self) -> Provenance:
        """Files read so far with size and sha256, and the tool that read them."""
        from transect._version import __version__

        files = tuple(file for source in self.sources for file in source.files_read)
        return Provenance(sources=files, tool=f"transect {__version__}", format=self.format)

    def spans(self) -> dict[str, tuple[int, int]]:
        """Return first and last time in ns for each clock."""
        spans: dict[str, tuple[int, int]] = {}
        for stream in self.streams:
            start, end = stream.timing.start_ns, stream.timing.end_ns
            if start is not None and end is not None:
                known = spans.get(stream.clock, (start, end))
                spans[stream.clock] = (min(known[0], start), max(known[1], end))
        return spans

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last time in ns on the recording's main clock, or None without samples."""
        spans = self.spans()
        return next((spans[c] for c in clocks.CLOCKS if c in spans), None)

    @property
    def truth(self) -> Stream | None:
        """The stream to judge by: the 6-DoF stream of role truth, else the first such by name, or None."""
        known = sorted((s for s in self.streams if s.role == "truth"), key=lambda s: s.name)
        full = [s for s in known if s.type in (Pose, RigidBodyState) and "qw" in s.columns]
        return next(iter(full or known), None)

    def slice(self, start: TimeLike | None = None, end: TimeLike | None = None) -> Recording:
        """Return the part in [start, end); `+60s` counts from the recording's first sample on each clock."""
        first = {clock: span[0] for clock, span in self.spans().items()}
        cut: list[Stream] = []
        for stream in self.streams:
            if stream.clock == "index" and len(first) > 1:
                cut.append(stream)
                continue
            origin = first.get(stream.clock, 0)
            lo = None if start is None else clocks.resolve(start, origin, stream.clock)
            hi = None if end is None else clocks.resolve(end, origin, stream.clock)
            cut.append(stream.between(lo, hi))
        return self.replace(streams=tuple(cut))

    def merge(self, *names: str) -> Iterator[Sample]:
        """Iterate over the samples of some streams (default all) in time order.

        Equal times come in the order of the streams' names, then of their rows.
        """
        chosen = sorted((self[n] for n in names) if names else self.streams, key=lambda s: s.name)
        used = {s.clock for s in chosen}
        if len(used) > 1:
            raise TimeError(
                f"streams on different clocks cannot be merged: {', '.join(sorted(used))}",
                why="; ".join(
                    f"{c}: {', '.join(s.name for s in chosen if s.clock == c)}" for c in sorted(used)
                ),
                hint="name streams of one clock",
            )
        t = np.concatenate([s.t_ns for s in chosen]) if chosen else np.zeros(0, np.int64)
        which = np.repeat(np.arange(len(chosen)), [len(s) for s in chosen])
        row = np.concatenate([np.arange(len(s)) for s in chosen]) if chosen else t
        order = np.argsort(t, kind="stable")
        for begin in range(0, len(order), MERGE_CHUNK):
            part = order[begin : begin + MERGE_CHUNK]
            for k, i in zip(which[part].tolist(), row[part].tolist(), strict=True):
                yield Sample(chosen[k], i)

    def __repr__(self) -> str:
        from .summary import text_summary

        return text_summary(self)

    def _repr_html_(self) -> str:
        from .summary import html_summary

        return html_summary(self)


def join(recordings: Sequence[Recording], *, prefix: bool = False, name: str = "") -> Recording:
    """Concatenate recordings into one.

    Streams of equal name, type and clock are laid end to end in time order; `Stream.seams` remembers where.

    Parameters
    ----------
    recordings : sequence of Recording
    prefix : bool
        Keep streams apart, named ``<recording>/<stream>``; overlaps and unequal calibration are then allowed.
    name : str
        Name of the whole; default the parts' names joined by `+`.
    """
    if not recordings:
        raise TransectError("nothing to join", hint="give at least one recording")
    whole = name or "+".join(r.name for r in recordings)
    if prefix:
        return _side_by_side(recordings, whole)
    ordered = sorted(recordings, key=lambda r: r.span or (0, 0))
    cameras = _same_cameras(ordered)
    frames = ordered[0].frames
    for other in ordered[1:]:
        frames = frames.merged(other.frames)
    names = list(dict.fromkeys(s.name for r in ordered for s in r.streams))
    streams = tuple(_end_to_end([r[n] for r in ordered if n in r]) for n in names)
    notes = tuple(dict.fromkeys(note for r in ordered for note in r.notes))
    losses = tuple(loss for r in ordered for loss in r.reader_losses)
    conditions = {key: value for r in reversed(ordered) for key, value in r.conditions.items()}
    return ordered[0].replace(
        joined_sources=_sources_after_first(ordered),
        conditions={**conditions, "joined": [dict(r.conditions) for r in ordered]},
        name=whole,
        streams=streams,
        frames=frames,
        cameras=cameras,
        notes=notes,
        reader_losses=losses,
    )


def _side_by_side(recordings: Sequence[Recording], name: str) -> Recording:
    streams = [_prefixed(s, f"{r.name}/") for r in recordings for s in r]
    cameras = {
        f"{r.name}/{key}": dataclasses.replace(camera, frame=camera.frame and f"{r.name}/{camera.frame}")
        for r in recordings
        for key, camera in r.cameras.items()
    }
    frames = FrameTree()
    for r in recordings:
        frames = frames.merged(r.frames, prefix=f"{r.name}/")
    losses = tuple(loss for r in recordings for loss in r.reader_losses)
    return recordings[0].replace(
        name=name,
        streams=tuple(streams),
        cameras=cameras,
        frames=frames,
        reader_losses=losses,
        joined_sources=_sources_after_first(recordings),
    )


def _prefixed(stream: Stream, prefix: str) -> Stream:
    names = {name: getattr(stream, name) for name in ("camera", "frame", "child")}
    return stream.replace(name=prefix + stream.name, **{k: v and prefix + v for k, v in names.items()})


def _sources_after_first(recordings: Sequence[Recording]) -> tuple[Source, ...]:
    return tuple(source for recording in recordings for source in recording.sources)[1:]


def _same_cameras(recordings: Iterable[Recording]) -> dict[str, CameraModel]:
    cameras: dict[str, CameraModel] = {}
    for recording in recordings:
        for key, camera in recording.cameras.items():
            if key in cameras and not cameras[key].same_as(camera):
                raise TransectError(
                    f"the calibrations of {key!r} differ between the recordings",
                    where=recording.name,
                    hint="join(..., prefix=True) keeps them apart",
                )
            cameras[key] = camera
    return cameras


def _end_to_end(parts: Sequence[Stream]) -> Stream:
    import pyarrow as pa

    from .losses import Parsed

    first = parts[0]
    for part in parts[1:]:
        if (part.type, part.clock) != (first.type, first.clock):
            raise StreamError(f"{first.name} is of another type or clock in one of the recordings")
    filled = [p for p in parts if len(p)]
    for before, after in itertools.pairwise(filled):
        end, start = before.timing.end_ns, after.timing.start_ns
        if end is not None and start is not None and start <= end and first.clock != "index":
            raise TimeError(
                f"the recordings overlap in {first.name}",
                why=f"one ends at {clocks.text_from_ns(end, first.clock)}, the next starts at "
                f"{clocks.text_from_ns(start, first.clock)}",
                hint="join(..., prefix=True) keeps them apart",
            )
    table = pa.concat_tables([p.table for p in parts], promote_options="permissive")
    ends = np.cumsum([len(p) for p in parts])
    inner = [int(s + e - len(p)) for p, e in zip(parts, ends, strict=True) for s in p.seams]
    seams = tuple(sorted({*inner, *(int(e) for e in ends[:-1] if 0 < e < ends[-1])}))
    losses = tuple(loss for p in parts for loss in p.losses)
    notes = tuple(dict.fromkeys(n for p in parts for n in p.parsed.notes))
    return first.replace(source=Parsed(table, losses, notes), seams=seams, loader=_loader_of(parts))


def _loader_of(parts: Sequence[Stream]) -> Any:
    """Return a loader that asks the part a row came from; rows are told apart by their time."""
    if first_without := next((p for p in parts if p.loader is None), None):
        return first_without.loader
    starts = np.array([p.timing.start_ns or 0 for p in parts], dtype=np.int64)

    def load(row: Mapping[str, Any]) -> Any:
        part = parts[max(int(np.searchsorted(starts, row["t_ns"], side="right")) - 1, 0)]
        return part.loader(row) if part.loader else None

    return load
