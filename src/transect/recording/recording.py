"""Recording: the streams, frames, cameras and metadata of one log."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base import clocks
from transect.base.clocks import TimeLike
from transect.errors import StreamError, TimeError, did_you_mean

from .arrow import PART
from .frames import FrameTree
from .losses import Loss
from .source import Source
from .stream import Sample, Stream

if TYPE_CHECKING:
    from transect.types import CameraModel, Provenance


def _nothing() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, eq=False)
class Robot:
    """Description of a robot: static frames, cameras and parameters."""

    name: str  # `interact`, `weeder`, `argo`, `ida`, or the user's own
    title: str = ""  # Full name
    frames: FrameTree = field(default_factory=FrameTree)  # Static frames only
    cameras: Mapping[str, CameraModel] = field(default_factory=_nothing)
    constants: Mapping[str, Any] = field(default_factory=_nothing)  # Parameters by name, SI units and radians
    reference: str = ""  # Source of the values
    z_down: bool = False  # Whether z of the robot's root frame points down
    # Geometry: boxes, wheels, fields of view, lengths (`transect.robots.description`)
    body: Mapping[str, Any] = field(default_factory=_nothing)
    topics: Mapping[str, str] = field(default_factory=_nothing)  # ROS topic of each stream, by its name

    def __repr__(self) -> str:
        return (
            f"Robot({self.name!r}, {len(self.frames)} frames, cameras: {', '.join(self.cameras) or 'none'})"
        )


@dataclass(frozen=True, eq=False)
class Recording:
    """Streams, frames and metadata of one recording; columns and payloads are loaded on demand."""

    name: str
    streams: tuple[Stream, ...]  # By name with ``rec["Gnss/Pose"]``
    frames: FrameTree = field(default_factory=FrameTree)  # Static and moving transforms
    cameras: Mapping[str, CameraModel] = field(default_factory=dict[str, "CameraModel"])
    robot: Robot | None = None
    # Conditions from the catalogue or folder: environment, dust, RTK coverage, ...
    conditions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    format: str = ""  # Name of the format from which it was read
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])  # Options of the format
    source: Source | None = None  # Files from which it was read; see `parts` for joined recordings
    notes: tuple[str, ...] = ()  # Notes of the reader for the user
    reader_losses: tuple[Loss, ...] = ()
    clock_offsets: Mapping[str, int] = field(default_factory=dict[str, int])
    parts: tuple[Source | None, ...] = ()

    def __post_init__(self) -> None:
        names = Counter(stream.name for stream in self.streams)
        if len(names) != len(self.streams):
            twice = sorted(name for name, count in names.items() if count > 1)
            raise StreamError(f"{self.name} has several streams named {', '.join(twice)}")

    @cached_property
    def _by_name(self) -> dict[str, Stream]:
        return {stream.name: stream for stream in self.streams}

    def __getitem__(self, name: str | Stream) -> Stream:
        """Return a stream by its name, a unique ending or a unique part of its name, ignoring case.

        A stream may be given in place of its name, for example to get the same stream of a sliced recording.
        """
        name = name.name if isinstance(name, Stream) else name
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise StreamError(f"{name!r} is not the name of a stream", hint="by number they are in .streams")
        if name in self._by_name:
            return self._by_name[name]
        near = [s for s in self.streams if name.lower() in s.name.lower()]
        ending = name.lower().rsplit("/", 1)[-1]
        exact = [s for s in near if s.name.lower().rsplit("/", 1)[-1] == ending] or near
        if len(exact) == 1:
            return exact[0]
        if exact:
            hint = f"it could be {', '.join(s.name for s in exact)}"
            raise StreamError(f"several streams of {self.name} match {name!r}", hint=hint)
        raise StreamError(f"{self.name} has no stream {name!r}", hint=did_you_mean(name, self._by_name))

    def __contains__(self, name: str | Stream) -> bool:
        return (name.name if isinstance(name, Stream) else name) in self._by_name

    def __iter__(self) -> Iterator[Stream]:
        return iter(self.streams)

    def __len__(self) -> int:
        return len(self.streams)

    def select(self, *patterns: str) -> Recording:
        """Return the recording with only the streams that match any of the shell patterns.

        Patterns are matched with whole names, ignoring case; a pattern without a match is an error.
        """
        chosen = {p: [s for s in self.streams if fnmatchcase(s.name.lower(), p.lower())] for p in patterns}
        if missing := next((pattern for pattern, streams in chosen.items() if not streams), None):
            raise StreamError(
                f"no stream of {self.name} matches {missing}", hint=did_you_mean(missing, self._by_name)
            )
        names = {s.name for streams in chosen.values() for s in streams}
        return self.replace(streams=tuple(s for s in self.streams if s.name in names))

    def replace(self, **changes: Any) -> Recording:
        """Return the recording with some attributes changed."""
        return dataclasses.replace(self, **changes)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Sources from which it was read; several for a joined recording."""
        return tuple(source for source in self.parts or (self.source,) if source is not None)

    def source_of(self, sample: Sample) -> Source | None:
        """Return the source of a sample of this recording, if known."""
        if not self.parts:
            return self.source
        if PART not in sample.stream.table.column_names:
            return None
        return self.parts[sample.stream.table.column(PART)[sample.index].as_py()]

    @property
    def path(self) -> Path | None:
        """Path from which it was read."""
        return self.source.path if self.source else None

    @property
    def typed(self) -> str:
        """Paths quoted for a shell; the name of the recording if it was not read from files."""
        import shlex

        return shlex.join([str(source.path) for source in self.sources] or [self.name])

    def typed_streams(self, names: Iterable[str]) -> str:
        """Return `PATH:STREAM or PATH:STREAM`, the form in which commands take streams."""
        import shlex

        return " or ".join(f"{self.typed}:{shlex.quote(name)}" for name in names)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """All losses; parses streams that were not parsed yet."""
        unique = dict.fromkeys([*self.reader_losses, *(loss for s in self.streams for loss in s.losses)])
        return tuple(unique)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """All notes; parses streams that were not parsed yet."""
        return tuple(dict.fromkeys([*self.notes, *(note for s in self.streams for note in s.parsed.notes)]))

    @property
    def provenance(self) -> Provenance:
        """Files read so far with size and sha256, and the tool that read them."""
        from transect._version import __version__
        from transect.types import Provenance

        files = tuple(file for source in self.sources for file in source.files_read)
        return Provenance(files, f"transect {__version__}", self.format, parameters=self.options)

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
        return self.spans().get(self.clock)

    @property
    def clock(self) -> str:
        """The main clock: the one that covers most time; `index` only if there is no other."""
        spans = {c: end - start for c, (start, end) in self.spans().items()}
        return max(spans, key=lambda c: (c != "index", spans[c]), default="utc")

    @property
    def truth(self) -> Stream | None:
        """The ground truth: a stream of role truth with poses, else positions, else the first, or None.

        Streams of a folder `truth/` take precedence over those that a reader marks as truth, such as RTK.
        """
        from transect.types import NavFix, Pose, RigidBodyState

        chosen = (s for s in self.streams if s.role == "truth")
        known = sorted(chosen, key=lambda s: (not s.name.startswith("truth/"), s.name))
        paths = [s for s in known if s.type in (Pose, RigidBodyState, NavFix)]
        full = [s for s in paths if "qw" in s.columns]
        return next(iter(full or paths or known), None)

    def slice(self, start: TimeLike | None = None, end: TimeLike | None = None) -> Recording:
        """Return the part in [start, end); `+60s` is relative to the first sample on each clock."""
        first = {clock: span[0] for clock, span in self.spans().items()}
        cut: list[Stream] = []
        for stream in self.streams:
            if stream.meta.get("timeless") or (stream.clock == "index" and len(first) > 1):
                cut.append(stream)
                continue
            origin = first.get(stream.clock, 0)
            lo = None if start is None else clocks.resolve(start, origin, stream.clock)
            hi = None if end is None else clocks.resolve(end, origin, stream.clock)
            if lo is not None and hi is not None and hi <= lo:
                raise TimeError(f"the end {end} is not after the start {start}")
            cut.append(stream.between(lo, hi))
        return self.replace(streams=tuple(cut))

    def merge(self, *names: str) -> Iterator[Sample]:
        """Iterate over the samples of some streams (default all) in time order.

        Samples of equal time are sorted by stream name, then by row.
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
        stream_of = np.repeat(np.arange(len(chosen)), [len(s) for s in chosen])
        row = np.concatenate([np.arange(len(s)) for s in chosen]) if chosen else t
        order = np.argsort(t, kind="stable")
        chunk = 65_536  # rows converted to Python numbers at a time
        for begin in range(0, len(order), chunk):
            part = order[begin : begin + chunk]
            for k, i in zip(stream_of[part].tolist(), row[part].tolist(), strict=True):
                yield Sample(chosen[k], i)

    def __repr__(self) -> str:
        from .summary import text_summary

        return text_summary(self)

    def _repr_html_(self) -> str:
        from .summary import html_summary

        return html_summary(self)
