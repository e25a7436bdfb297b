"""Everything that a page says, as plain values: gathered once, then only written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.base.arrays import Floats
from transect.types import SourceFile, State, Trajectory

from ..axes import Axis

if TYPE_CHECKING:
    from transect.engine import Run
    from transect.engine.folder import Validity
    from transect.evaluation.positions.common_frame import MapLayout
    from transect.evaluation.result import Result
    from transect.evaluation.traverse import Traverse
    from transect.integrity.events import SensorEvent
    from transect.integrity.report import SensorProblem, SensorReport
    from transect.products import Product
    from transect.recording.citation import Citation


@dataclass(frozen=True)
class Span:
    """From one second of an axis to another."""

    start: float
    end: float


@dataclass(frozen=True)
class Judged:
    """A stretch in which a stream had one state."""

    start: float
    end: float
    state: State


@dataclass(frozen=True)
class StreamFacts:
    """One stream over time."""

    name: str
    type: str
    role: str
    tag: str
    clock: str
    samples: int
    # NaN where that cannot be told
    rate_hz: float
    # none without times
    axis: Axis | None
    span: Span | None
    gaps: tuple[Span, ...] = ()  # the longest, on its axis; `gap_count` is that of all
    gap_count: int = 0
    longest_gap_s: float = float("nan")
    states: tuple[Judged, ...] = ()  # what all checks said together; empty where none judged it
    state: State | None = None  # the worst of them
    losses: int = 0  # lines, messages or files of it that could not be read
    frame: str = ""


@dataclass(frozen=True)
class FrameRow:
    """A line of the tree of frames: its depth, how it hangs on its parent, where that is known from."""

    name: str
    depth: int
    moving: bool
    place: str
    source: str


@dataclass(frozen=True)
class Signal:
    """A column of a stream over time, thinned so that its extremes stay."""

    stream: str
    column: str
    unit: str
    axis: Axis
    # of a line on `axis`
    seconds: Sequence[float]
    values: Sequence[float]
    samples: int  # how many it was drawn from
    step_s: float  # width of the parts whose extremes are kept, 0 where all samples are


@dataclass(frozen=True)
class Picture:
    """An image for the page: bytes of a WebP, its size in pixels, and what it shows."""

    content: bytes
    width: int
    height: int
    text: str


@dataclass(frozen=True, eq=False)
class RecordingFacts:
    """What is known of a recording."""

    name: str
    path: str  # as it was given
    format: str
    # what a person calls the machine, and where its numbers come from; "" if it is not known
    robot: str
    reference: str
    conditions: Mapping[str, Any]
    streams: tuple[StreamFacts, ...]
    axes: tuple[Axis, ...]  # the main one first; empty without times
    cameras: tuple[str, ...]
    losses: tuple[tuple[str, str, int], ...]
    notes: tuple[str, ...]
    files: tuple[SourceFile, ...]  # that were read, with their hashes
    options: Mapping[str, Any]
    # what the checks found; None where nothing was checked
    reports: tuple[SensorReport, ...] | None
    events: tuple[SensorEvent, ...]
    unchecked: tuple[str, ...]  # streams that no check can judge
    traverse: Traverse | None  # how far it drove; `no_traverse` says why that is not known
    no_traverse: str
    published: Mapping[str, Any] | None  # what the catalogue of its data set says of it
    frames: tuple[FrameRow, ...]
    signals: tuple[Signal, ...]
    more_signals: int
    truth: str
    look: Picture | None = None  # what all sensors saw in the middle of it
    # what a sensor gave when it was worst
    evidence: Mapping[tuple[str, str], Picture] = field(default_factory=dict[tuple[str, str], Picture])

    @property
    def axis(self) -> Axis | None:
        """The main axis."""
        return self.axes[0] if self.axes else None

    @property
    def problems(self) -> list[SensorProblem]:
        """All problems, BAD before SUSPECT."""
        found = [problem for report in self.reports or () for problem in report.problems]
        return sorted(found, key=lambda problem: (problem.state != "BAD", -problem.seconds))

    def start_of_sensor(self, sensors: Sequence[str]) -> int:
        """Return from when times of the first of some sensors count, ns."""
        streams = [problem.stream for problem in self.problems if problem.sensor in sensors[:1]]
        return self.start_of(streams[0] if streams else "")

    def start_of(self, stream: str) -> int:
        """Return from when times of a stream count, ns."""
        axis = next((each.axis for each in self.streams if each.name == stream), None)
        return axis.start_ns if axis else (self.axis.start_ns if self.axis else 0)


@dataclass(frozen=True, eq=False)
class RunFacts:
    """What is known of a run."""

    label: str  # tells it from the other runs of the page
    folder: Path
    run: Run
    document: Mapping[str, Any]  # of `run.json`: outputs, statistics and errors
    results: tuple[Result, ...]  # how it was judged when it was made
    trajectory: Trajectory | None
    recording: int | None  # which of the page's recordings it played; None if that is not there any more
    axis: Axis | None  # that its times are drawn on
    checked: Validity  # whether it was good, and whether its inputs are still what they were
    gone: str = ""  # why the recording could not be opened

    @property
    def judged(self) -> Result | None:
        """The result that compares its own poses with truth, if there is one."""
        return next((r for r in self.results if "ate_translation" in r.arrays), None)


@dataclass(frozen=True, eq=False)
class MapFacts:
    """Tracks from above."""

    layout: MapLayout  # tracks in metres, and the ground below them
    kinds: tuple[str, ...]  # of each track: `measured`, `truth` or `run`
    axes: tuple[Axis | None, ...]  # that the times of each track are drawn on
    times: tuple[Floats | None, ...]  # seconds of each track's points on its axis
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Report:
    """A whole page."""

    title: str
    command: str  # that makes it
    recordings: tuple[RecordingFacts, ...]
    runs: tuple[RunFacts, ...]
    map: MapFacts | None
    no_map: str = ""
    products: tuple[Product, ...] = ()  # of the store that was named; `store` is its name
    store: str = ""
    citation: Citation | None = None  # how the data are to be cited, where somebody said so
