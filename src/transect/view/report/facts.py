"""The facts of a report as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.base.arrays import Floats
from transect.types import SourceFile, State, Trajectory

from ..axes import TimeAxis

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
class AxisInterval:
    """An interval on an axis, s."""

    start: float
    end: float


@dataclass(frozen=True)
class StateInterval:
    """An interval in which a stream had one state."""

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
    rate_hz: float  # NaN if not known
    # None without times
    axis: TimeAxis | None
    span: AxisInterval | None
    gaps: tuple[AxisInterval, ...] = ()  # the longest ones; `gap_count` is the number of all
    gap_count: int = 0
    longest_gap_s: float = float("nan")
    states: tuple[StateInterval, ...] = ()  # combined verdicts of all checks; empty if not checked
    state: State | None = None  # the worst of them
    losses: int = 0  # number of lines, messages or files that could not be read
    frame: str = ""


@dataclass(frozen=True)
class FrameRow:
    """A row of the tree of frames: depth, position in the parent, and the source of that."""

    name: str
    depth: int
    moving: bool
    position: str
    source: str


@dataclass(frozen=True)
class SampledSignal:
    """A column of a stream over time, downsampled with its extremes kept."""

    stream: str
    column: str
    unit: str
    axis: TimeAxis
    seconds: Sequence[float]
    values: Sequence[float]
    samples: int  # before downsampling
    step_s: float  # block length whose extremes are kept; 0 if all samples are kept


@dataclass(frozen=True)
class Picture:
    """An image: bytes of a WebP, its size in pixels, and a caption."""

    content: bytes
    width: int
    height: int
    text: str


@dataclass(frozen=True, eq=False)
class RecordingFacts:
    """The facts of a recording."""

    name: str
    path: str  # as given on the command line
    format: str
    # name of the robot, and the reference of its description; "" if not known
    robot: str
    reference: str
    conditions: Mapping[str, Any]
    streams: tuple[StreamFacts, ...]
    axes: tuple[TimeAxis, ...]  # the main one first; empty without times
    cameras: tuple[str, ...]
    losses: tuple[tuple[str, str, int], ...]
    notes: tuple[str, ...]
    files: tuple[SourceFile, ...]  # files read, with hashes
    options: Mapping[str, Any]
    # None if not checked
    reports: tuple[SensorReport, ...] | None
    events: tuple[SensorEvent, ...]
    unchecked: tuple[str, ...]  # streams without a check
    traverse: Traverse | None  # distance travelled; `no_traverse` is the reason if it is not known
    no_traverse: str
    published: Mapping[str, Any] | None  # values of the catalogue of its data set
    frames: tuple[FrameRow, ...]
    signals: tuple[SampledSignal, ...]
    more_signals: int
    truth: str
    snapshot: Picture | None = None  # the sensors' data in the middle of the recording
    # pictures of problems by stream and reason
    evidence: Mapping[tuple[str, str], Picture] = field(default_factory=dict[tuple[str, str], Picture])

    @property
    def axis(self) -> TimeAxis | None:
        """The main axis."""
        return self.axes[0] if self.axes else None

    @property
    def problems(self) -> list[SensorProblem]:
        """All problems, BAD before SUSPECT."""
        found = [problem for report in self.reports or () for problem in report.problems]
        return sorted(found, key=lambda problem: (problem.state != "BAD", -problem.seconds))

    def start_of_sensor(self, sensors: Sequence[str]) -> int:
        """Return the zero of times of the first of some sensors, ns."""
        streams = [problem.stream for problem in self.problems if problem.sensor in sensors[:1]]
        return self.start_of(streams[0] if streams else "")

    def start_of(self, stream: str) -> int:
        """Return the zero of times of a stream, ns."""
        axis = next((each.axis for each in self.streams if each.name == stream), None)
        return axis.start_ns if axis else (self.axis.start_ns if self.axis else 0)


@dataclass(frozen=True, eq=False)
class RunFacts:
    """The facts of a run."""

    label: str  # unique on the page
    folder: Path
    run: Run
    document: Mapping[str, Any]  # of `run.json`: outputs, statistics and errors
    results: tuple[Result, ...]  # evaluations of the run
    trajectory: Trajectory | None
    recording: int | None  # index of its recording on the page; None if it could not be opened
    axis: TimeAxis | None  # of its times
    checked: Validity  # whether the result is trustworthy, and its inputs unchanged
    gone: str = ""  # why the recording could not be opened

    @property
    def judged(self) -> Result | None:
        """The result that compares its poses with the ground truth, if any."""
        return next((r for r in self.results if "ate_translation" in r.arrays), None)


@dataclass(frozen=True, eq=False)
class MapFacts:
    """Tracks from above."""

    layout: MapLayout  # tracks in metres, and the ground below them
    kinds: tuple[str, ...]  # of each track: `measured`, `truth` or `run`
    axes: tuple[TimeAxis | None, ...]  # of the times of each track
    times: tuple[Floats | None, ...]  # seconds of each track's points on its axis
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """The facts of a report."""

    title: str
    command: str  # the command line that writes it
    recordings: tuple[RecordingFacts, ...]
    runs: tuple[RunFacts, ...]
    map: MapFacts | None
    no_map: str = ""
    products: tuple[Product, ...] = ()  # of `store`
    store: str = ""
    citation: Citation | None = None  # of the data
