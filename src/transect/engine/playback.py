"""Selection of what is played: implementation of a compound, wiring, clocks and streams."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from transect.base.clocks import NS, TimeLike
from transect.errors import TransectError, UsageError
from transect.recording import FrameTree, Recording, Stream
from transect.recording.file_hashes import ReadLog
from transect.types import Image

from .arrival import describe_noisy_stamps
from .compounds import Compound
from .context import NodeEnvironment
from .determinism import one_thread_per_library
from .graph import Graph
from .offsets import ClockMapping, Offset, apply_offsets
from .player import Clock, PlayedStream, lines_of
from .statistics import NodeCount
from .wiring import NONE, CompoundInput, UncalibratedError, Wiring, WiringError, wire_inputs

ClockChoice = Literal["auto", "sample", "log"]


@dataclass(frozen=True)
class Options:
    """Everything except compound and recording that determines the result of a run."""

    # Parameters that differ from the description, by node and name
    set: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    wire: Mapping[str, str] = field(default_factory=dict[str, str])  # streams asked for, by input
    # By which times the streams are played and their samples stamped; `auto` means sample times, unless
    # these are noisy and log times are not (see `arrival`)
    clock: ClockChoice = "auto"
    reorder: float = 0.5  # the reorder horizon in seconds
    # By stream: what is added to its stamps, in ns, or "auto"
    offset: Mapping[str, Offset] = field(default_factory=dict[str, Offset])
    # The part of the recording that is played, [start, end)
    start: TimeLike | None = None
    end: TimeLike | None = None

    def __post_init__(self) -> None:
        if self.clock not in ("auto", "sample", "log"):
            raise UsageError(f"there is no clock {self.clock!r}", hint="auto, sample, or log")
        if not 0 <= self.reorder < math.inf:
            raise UsageError(f"the reorder horizon is {self.reorder!r} s", hint="0 or more seconds")

    @property
    def reorder_ns(self) -> int:
        """The reorder horizon in ns."""
        return round(self.reorder * NS)


@dataclass(frozen=True, eq=False)
class Playback:
    """An implementation that can be run, the streams that feed it, and by which clock they are played."""

    compound: Compound
    graph: Graph
    wiring: Wiring
    recording: Recording  # the part that is played, clocks moved
    frames: FrameTree  # of the whole recording, clocks moved
    mappings: Mapping[str, ClockMapping]  # by stream whose clock was moved
    lines: Sequence[PlayedStream]
    played_by: Clock
    clock_note: str  # why log times were chosen; "" where they were not
    clock_problem: str  # why the sample times that were asked for are bad; "" where they are not

    @property
    def passes(self) -> int:
        """Number of passes over the recording: the maximum over all nodes."""
        return max([1, *(type(part.node).passes for part in self.graph.parts.values())])

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last time (ns) of what is played; None if that is nothing."""
        played = [line.times for line in self.lines if len(line.times)]
        return (min(int(t[0]) for t in played), max(int(t[-1]) for t in played)) if played else None

    @property
    def clock(self) -> str:
        """The clock of the streams that are played."""
        return self.lines[0].stream.clock if self.lines else self.recording.clock

    @cached_property
    def streams_behind(self) -> Mapping[str, list[str]]:
        """By channel, the names of the streams from which its samples come."""
        return list_streams_behind(self.graph, self.wiring)


def make_playback(
    compound: Compound,
    recording: Recording,
    options: Options,
    surroundings_of: Callable[[Graph, Wiring, FrameTree], NodeEnvironment],
    reads: ReadLog,
    strict: bool = False,
) -> Playback:
    """Choose an implementation and wire it to the streams of a recording.

    Parameters
    ----------
    surroundings_of : callable
        Returns what the nodes of a wired graph reach through `ctx`: they are asked whether they can run.
    reads : ReadLog
        Where the files are entered from which payloads are loaded.
    strict : bool
        Whether a payload that cannot be read ends the run; else it is left out.
    """
    part, mappings = recording, dict[str, ClockMapping]()
    if options.offset:
        part, mappings = apply_offsets(part, options.offset)
    frames = part.frames
    if options.start is not None or options.end is not None:
        part = part.slice(options.start, options.end)
    chosen, graph, wiring = _choose(compound, recording, part, frames, options, surroundings_of)
    played = list({s.name: s for _, s in wiring.pairs}.values())
    clock, note, problem = _choose_clock(played, options)
    lines = lines_of(played, clock, options.reorder_ns)
    for line in lines:
        line.strict, line.reads = strict, reads
    return Playback(chosen, graph, wiring, part, frames, mappings, lines, clock, note, problem)


def _choose(
    compound: Compound,
    recording: Recording,
    part: Recording,
    frames: FrameTree,
    options: Options,
    surroundings_of: Callable[[Graph, Wiring, FrameTree], NodeEnvironment],
) -> tuple[Compound, Graph, Wiring]:
    """Return the implementation that is named, else the first whose inputs the recording can feed.

    One that does not use an input for which a stream is asked comes last.
    """
    asked = {name for name, stream in options.wire.items() if stream != NONE}
    errors: list[TransectError] = []
    waiting = compound.candidates()
    known = len(waiting)
    for number, each in enumerate(waiting):
        try:
            with one_thread_per_library():
                graph = each.graph(options.set)
            if asked - graph.used_inputs() and 1 < known > number:
                waiting.append(each)
                continue
            wiring = _wire(graph, part, options)
            _refuse_uncalibrated(each, graph, wiring, recording)
            _ask_nodes(graph, surroundings_of(graph, wiring, frames))
            return each, graph, wiring
        except TransectError as error:
            if not errors and not isinstance(error, WiringError):
                raise
            errors.append(error)
    uncalibrated = [e for e in errors if isinstance(e, UncalibratedError)]
    choices = [e for e in errors if isinstance(e, WiringError) and e.options]
    raise [*uncalibrated, *choices, *errors][0]


def _refuse_uncalibrated(compound: Compound, graph: Graph, wiring: Wiring, recording: Recording) -> None:
    """Refuse images of no calibrated camera where a node needs one, directly or through others."""
    behind = list_streams_behind(graph, wiring)
    needing: dict[str, str] = {}
    for part in graph.parts.values():
        for port in part.node.calibrated:
            for name in behind.get(part.feeds[port].source, ()) if port in part.feeds else ():
                stream = recording[name]
                if stream.type is Image and stream.camera not in recording.cameras:
                    needing.setdefault(name, type(part.node).__name__)
    if not needing:
        return
    typed = f"{shlex.quote(compound.name)} {recording.typed}"
    raise UncalibratedError(
        f"the images of {' and '.join(needing)} come without calibration",
        where=recording.typed,
        why=f"{next(iter(needing.values()))} needs intrinsics, and the recording has none for them",
        hint=f"transect run {typed} CALIBRATION.yaml  with a file of Kalibr, OpenCV, ROS or KITTI",
    )


def _ask_nodes(graph: Graph, around: NodeEnvironment) -> None:
    """Let every node raise if its wired inputs are insufficient, before a flow is made."""
    for part in graph.parts.values():
        part.node.ctx = around.context_of(part, NodeCount())
        part.node.ready()


def _wire(graph: Graph, part: Recording, options: Options) -> Wiring:
    used = graph.used_inputs() | options.wire.keys()
    inputs = {
        n: CompoundInput(n, port.type, graph.tags.get(n, ""), n in graph.many, graph.choices.get(n, ""))
        for n, port in graph.inputs.items()
        if n in used
    }
    optional = set(graph.inputs) - graph.needed_inputs()
    return wire_inputs(inputs, part, options.wire, optional)


def _choose_clock(streams: Sequence[Stream], options: Options) -> tuple[Clock, str, str]:
    """Return by which times streams are played, a note on why, and a problem with these times."""
    if options.clock == "log":
        return "log", "", ""
    noisy = describe_noisy_stamps(streams, options.reorder_ns)
    if noisy and options.clock == "auto":
        return "log", f"played by log times: {noisy} (--clock sample plays by the stamps)", ""
    problem = f"played by stamps that are not in order: {noisy}: leave out --clock sample" if noisy else ""
    return "sample", "", problem


def list_streams_behind(graph: Graph, wiring: Wiring) -> dict[str, list[str]]:
    """Return, by channel, the names of the streams from which its samples come."""
    names = {each: [s.name for name, s in wiring.pairs if name == each] for each in wiring.streams}
    behind = graph.inputs_behind().items()
    return {channel: [s for name in inputs for s in names.get(name, ())] for channel, inputs in behind}
