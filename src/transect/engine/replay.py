"""A replay: a compound and a recording brought together, ready to be played, stepped or paused."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from transect.base import files
from transect.base.clocks import TimeLike
from transect.errors import TransectError, UsageError, did_you_mean
from transect.recording import Loss, Recording, Stream
from transect.recording.reads import ReadLog
from transect.types import Image

from .arrival import describe_noisy_stamps
from .compounds import Compound
from .context import Conclusion, KeptMap, Store, Surroundings
from .controller import ControllerNode
from .determinism import one_thread_per_library
from .digest import Trace
from .flow import NEVER, Flow
from .graph import Graph
from .inboxes import NS
from .offsets import ClockMapping, Offset, apply_offsets
from .output_files import Count, FileKeeper, Keeper, Output
from .player import CHUNK, PAUSED, REMEMBERED, Clock, Line, Player, lines_of, remember_images, waves
from .statistics import NodeCount, RunStatistics
from .trust import Doubt, Verdicts, VerdictSource
from .wiring import NONE, Input, UncalibratedError, Wiring, WiringError, fits, wire_inputs

ClockChoice = Literal["auto", "sample", "log"]
PROGRESS_NS = NS // 5
CLOCK = "clock"
"""In place of the node, in what a run concludes of the stamps by which it was played."""
INTEGRITY = "integrity"
"""In place of the node, in what a run concludes of the verdicts that it acted on."""


@dataclass(frozen=True)
class Options:
    """Everything that decides what a run computes, besides compound and recording.

    Attributes
    ----------
    set : mapping
        Parameters that differ from the description, by node and name.
    wire : mapping
        Streams asked for, by input.
    clock : {"auto", "sample", "log"}
        By which times the streams are played and their samples stamped; `auto` means sample times, unless
        these are noisy and log times are not (see `arrival`).
    reorder : float
        The reorder horizon in seconds.
    offset : mapping
        By stream: what is added to its stamps, in ns, or "auto".
    start, end : time, optional
        The part of the recording that is played, [start, end).
    """

    set: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    wire: Mapping[str, str] = field(default_factory=dict[str, str])
    clock: ClockChoice = "auto"
    reorder: float = 0.5
    offset: Mapping[str, Offset] = field(default_factory=dict[str, Offset])
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


@dataclass(frozen=True)
class Keyframe:
    """The state of a flow before the first wave at or after a time."""

    t_ns: int
    state: Any
    outputs: Mapping[str, int]


def choose_flow(graph: Graph, jobs: int) -> Callable[..., Flow]:
    """Return what makes the flow of a graph: on several threads if these were asked for and are of use."""
    if jobs < 1:
        raise UsageError(f"{jobs} jobs cannot run anything", hint="1 or more")
    if jobs > 1 and len(graph.parts) > 1:
        from .parallel import ParallelFlow, can_run_in_parallel

        if can_run_in_parallel(graph):
            return partial(ParallelFlow, graph, jobs=jobs)
    return partial(Flow, graph)


class Replay:
    """A compound on a recording.

    Attributes
    ----------
    wiring : Wiring
        Which stream feeds which input.
    mappings : dict of str to ClockMapping
        Clocks that were moved.
    played_by : {"sample", "log"}
    clock_note : str
        Why log times were chosen; empty where they were not.
    flow : Flow
    player : Player
        Plays, steps, pauses, breaks.
    outputs : dict of str to Output
        What the output ports gave so far; empty if they go to files or are only counted.
    kept : dict of str to Keeper
        What takes the samples of each output port: these outputs, files, or counts (`in_memory=False`).
    keyframes : list of Keyframe
    reads : ReadLog
        Files from which images, clouds and other payloads were loaded so far.
    """

    def __init__(
        self,
        compound: Compound,
        recording: Recording,
        options: Options | None = None,
        *,
        folder: Path | None = None,
        rate: float | None = None,
        keyframes: float | None = None,
        store: Store | None = None,
        verdicts: VerdictSource | None = None,
        map: KeptMap | None = None,
        jobs: int = 1,
        chunk: int = CHUNK,
        in_memory: bool = True,
        strict: bool = False,
    ) -> None:
        self.options, self.jobs = options or Options(), jobs
        self.recording, self.folder = recording, folder
        self.store, self.map, self._chunk, self._rate = store, map, chunk, rate
        self.verdict_source, self.verdicts = verdicts, None
        self.doubts: dict[tuple[str, str], Doubt] = {}
        self.part, self.mappings = self._prepare()
        self.log: list[tuple[int, str, str]] = []
        self.conclusions: list[Conclusion] = map.conclude() if map is not None else []
        self.compound, self.graph, self.wiring = self._choose(compound)
        self.reads = ReadLog()
        self.played_by: Clock = "sample"
        self.clock_note = ""
        self.lines = self._lines(strict)
        if verdicts is not None:
            self.verdicts = self._ask_for_verdicts(verdicts)
        self.wall_s = 0.0
        self._prepared_passes = False
        self.trouble: BaseException | None = None
        self.flow = self._flow(self.passes - 1)
        self.player = self._player()
        self.outputs: dict[str, Output] = {}
        self.kept: dict[str, Keeper] = {}
        self._keep_outputs(in_memory)
        self.keyframes: list[Keyframe] = []
        if keyframes is not None:
            self._take_keyframes(round(keyframes * NS))

    def _prepare(self) -> tuple[Recording, dict[str, ClockMapping]]:
        """Return the part of the recording that is played, clocks moved."""
        options, part, mappings = self.options, self.recording, dict[str, ClockMapping]()
        if options.offset:
            part, mappings = apply_offsets(part, options.offset)
        self.frames = part.frames
        if options.start is not None or options.end is not None:
            part = part.slice(options.start, options.end)
        return part, mappings

    def _choose(self, compound: Compound) -> tuple[Compound, Graph, Wiring]:
        """Return the implementation that is named, else the first whose inputs the recording can feed.

        One that does not use an input for which a stream is asked comes last.
        """
        asked = {name for name, stream in self.options.wire.items() if stream != NONE}
        errors: list[TransectError] = []
        waiting = compound.candidates()
        known = len(waiting)
        for number, each in enumerate(waiting):
            try:
                with one_thread_per_library():
                    graph = each.graph(self.options.set)
                if asked - graph.used_inputs() and 1 < known > number:
                    waiting.append(each)
                    continue
                wiring = self._wire(graph)
                self._refuse_uncalibrated(each, graph, wiring)
                self._refuse_unfit(graph, wiring)
                return each, graph, wiring
            except TransectError as error:
                if not errors and not isinstance(error, WiringError):
                    raise
                errors.append(error)
        uncalibrated = [e for e in errors if isinstance(e, UncalibratedError)]
        choices = [e for e in errors if isinstance(e, WiringError) and e.options]
        raise [*uncalibrated, *choices, *errors][0]

    def _refuse_uncalibrated(self, compound: Compound, graph: Graph, wiring: Wiring) -> None:
        """Refuse images of no calibrated camera where a node needs one, directly or through others."""
        behind = self._streams_behind(graph, wiring)
        needing: dict[str, str] = {}
        for part in graph.parts.values():
            for port in part.node.calibrated:
                for name in behind.get(part.feeds[port].source, ()) if port in part.feeds else ():
                    stream = self.recording[name]
                    if stream.type is Image and stream.camera not in self.recording.cameras:
                        needing.setdefault(name, type(part.node).__name__)
        if not needing:
            return
        typed = f"{shlex.quote(compound.name)} {self.recording.typed}"
        raise UncalibratedError(
            f"the images of {' and '.join(needing)} come without calibration",
            where=self.recording.typed,
            why=f"{next(iter(needing.values()))} needs intrinsics, and the recording has none for them",
            hint=f"transect run {typed} CALIBRATION.yaml  with a file of Kalibr, OpenCV, ROS or KITTI",
        )

    def _refuse_unfit(self, graph: Graph, wiring: Wiring) -> None:
        """Ask all nodes whether something can come of what they are given, before a flow is made of them."""
        around = self._surroundings(graph, wiring)
        for part in graph.parts.values():
            part.node.ctx = around.context_of(part, NodeCount())
            part.node.ready()

    def _wire(self, graph: Graph) -> Wiring:
        used = graph.used_inputs() | self.options.wire.keys()
        inputs = {
            n: Input(n, port.type, graph.tags.get(n, ""), n in graph.many, graph.choices.get(n, ""))
            for n, port in graph.inputs.items()
            if n in used
        }
        optional = set(graph.inputs) - graph.needed_inputs()
        return wire_inputs(inputs, self.part, self.options.wire, optional)

    def _lines(self, strict: bool) -> list[Line]:
        streams: dict[str, Stream] = {s.name: s for _, s in self.wiring.pairs}
        played = list(streams.values())
        lines = lines_of(played, self._choose_clock(played), self.options.reorder_ns)
        for line in lines:
            line.strict, line.reads = strict, self.reads
        return lines

    def _choose_clock(self, streams: Sequence[Stream]) -> Clock:
        """Return by which times streams are played, and note why these are not the sample times."""
        if self.options.clock == "log":
            self.played_by = "log"
            return self.played_by
        noisy = describe_noisy_stamps(streams, self.options.reorder_ns)
        if noisy and self.options.clock == "auto":
            self.played_by = "log"
            self.clock_note = f"played by log times: {noisy} (--clock sample plays by the stamps)"
            return self.played_by
        if noisy:
            text = f"played by stamps that are not in order: {noisy}: leave out --clock sample"
            self.conclusions.append(Conclusion(CLOCK, text, bad=True))
        self.played_by = "sample"
        return self.played_by

    def _ask_for_verdicts(self, source: VerdictSource) -> Verdicts:
        """Return the verdicts on the streams that are played, whose masks act on their samples."""
        verdicts = source(self.part, [line.stream.name for line in self.lines])
        for line in self.lines:
            line.mask_of = partial(verdicts.mask_of, line.stream.name)
        return verdicts

    def describe_doubts(self) -> list[Conclusion]:
        """Return in words which streams were masked, down-weighted or left out, and when."""
        if self.verdicts is None:
            return []
        origin = (self.span or (0, 0))[0]
        masked: dict[str, Doubt] = {}
        for line in self.lines:
            for row, share in sorted(line.masked.items()):
                masked.setdefault(line.stream.name, Doubt()).mask(int(line.stream.t_ns[row]), share)
        said = [Conclusion(INTEGRITY, f"{name}: {d.describe(origin)}") for name, d in masked.items()]
        behind = self._streams_behind(self.graph, self.wiring)
        for (node, port), doubt in sorted(self.doubts.items()):
            streams = ", ".join(behind[self.graph.parts[node].feeds[port].source])
            said.append(Conclusion(INTEGRITY, f"{node}.{port} ({streams}): {doubt.describe(origin)}"))
        if self.verdicts.describe()["hindsight"]:
            said.append(Conclusion(INTEGRITY, "hindsight: the verdicts acted on know what came later"))
        return said or [Conclusion(INTEGRITY, "no stream was masked, down-weighted or left out")]

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Images, clouds, ... that could not be read when their time came, and were left out."""
        return tuple(loss for line in self.lines for loss in line.lost.values())

    @property
    def passes(self) -> int:
        """How often the recording is played: as often as the node that needs most says."""
        return max([1, *(type(part.node).passes for part in self.graph.parts.values())])

    def _run_first_passes(self) -> None:
        """Play the recording for nodes that must see it more than once; only the last pass is kept."""
        if self._prepared_passes:
            return
        self._prepared_passes = True
        remember_images(self.lines, REMEMBERED if self.passes > 1 else 0)
        for index in range(self.passes - 1):
            flow = self._flow(index)
            self._play_until_satisfied(flow, index)
            if flow.errors:
                raise flow.errors[0]
            for part in self.graph.parts.values():
                if type(part.node).passes == 1:
                    part.node.reset()
        remember_images(self.lines, 0)
        self.flow.adopt()

    def _play_until_satisfied(self, flow: Flow, pass_index: int) -> None:
        """Play a pass before the last one, as far as the nodes that need it want to see."""
        player = Player(flow, waves(self.lines, chunk=self._chunk))
        nodes = [part.node for part in self.graph.parts.values() if type(part.node).passes > pass_index + 1]

        def attend(t_ns: int) -> int:
            if all(node.is_satisfied() for node in nodes):
                player.pause()
            return t_ns + NS

        player.attend(-NEVER, attend)
        if player.play() == PAUSED:
            flow.end()

    def _flow(self, pass_index: int) -> Flow:
        around = replace(self._surroundings(self.graph, self.wiring), hashed=pass_index == self.passes - 1)
        flow = choose_flow(self.graph, self.jobs)(around, reorder_ns=self.options.reorder_ns)
        for part in self.graph.parts.values():
            part.node.ctx.pass_index = pass_index
        for line in self.lines:
            names = [name for name, stream in self.wiring.pairs if stream.name == line.stream.name]
            line.channels = tuple(flow.channels.index[name] for name in names)
        return flow

    def _surroundings(self, graph: Graph, wiring: Wiring) -> Surroundings:
        wired = wiring.streams.keys()
        unwired = graph.inputs.keys() - wired
        sensors = {name: [s.frame for each, s in wiring.pairs if each == name] for name in wired}
        return Surroundings(
            self.frames, self.store, self.verdicts, self._streams_behind(graph, wiring), unwired, self._log,
            self.conclusions.append, robot=self.recording.robot, sensors=sensors, doubts=self._doubt,
            map=self.map, candidates=self._wires_of(graph, unwired),
        )  # fmt: skip

    def _wires_of(self, graph: Graph, unwired: Collection[str]) -> dict[str, list[str]]:
        """Return, by input that nothing feeds, the options that would wire a stream to it; none of truth."""
        return {
            name: [
                f"--wire {shlex.quote(f'{name}={stream.name}')}"
                for stream in self.recording
                if stream.role != "truth" and fits(graph.inputs[name].type, stream.type)
            ]
            for name in unwired
        }

    def _streams_behind(self, graph: Graph, wiring: Wiring) -> dict[str, list[str]]:
        """Return, by channel, the names of the streams from which its samples come."""
        names = {each: [s.name for name, s in wiring.pairs if name == each] for each in wiring.streams}
        behind = graph.inputs_behind().items()
        return {channel: [s for name in inputs for s in names.get(name, ())] for channel, inputs in behind}

    def _doubt(self, node: str, port: str) -> Doubt:
        return self.doubts.setdefault((node, port), Doubt())

    def _log(self, node: str, t_ns: int, message: str) -> None:
        self.log.append((t_ns, node, message))

    def _player(self, after_ns: int | None = None) -> Player:
        player = Player(self.flow, waves(self.lines, after_ns, self._chunk), self._rate)
        clock = self.clock

        def tell(t_ns: int) -> int:
            files.reached(t_ns, clock)
            return t_ns + PROGRESS_NS

        player.attend(0, tell)
        return player

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last time (ns) of what is played; None if that is nothing."""
        played = [line.times for line in self.lines if len(line.times)]
        return (min(int(t[0]) for t in played), max(int(t[-1]) for t in played)) if played else None

    @property
    def clock(self) -> str:
        """The clock of the streams that are played."""
        return self.lines[0].stream.clock if self.lines else self.recording.clock

    def _keep_outputs(self, in_memory: bool) -> None:
        kinds = {name: outlet.port.type for name, outlet in self.flow.outlets.items()}
        kinds |= {name: port.type for name, port in self.graph.inputs.items()}
        for name, channel in self.graph.outputs.items():
            if self.folder is not None:
                keeper = FileKeeper(self.folder, name, kinds[channel], self.clock)
            elif in_memory:
                keeper = self.outputs[name] = Output(name, kinds[channel])
            else:
                keeper = Count(kinds[channel])
            self.kept[name] = keeper
            self.flow.tap(channel, self._guard(name, keeper))

    def _guard(self, name: str, keeper: Keeper) -> Any:
        """A sample that cannot be kept ends the run; it is not the node's failure."""

        def tap(t_ns: int, value: Any) -> None:
            try:
                keeper.add(t_ns, value)
            except (OSError, TransectError) as error:
                if isinstance(error, OSError) and error.filename is None:
                    error.filename = f"output {name}"
                self.trouble = self.trouble or error
                self.player.pause()

        return tap

    def _take_keyframes(self, period_ns: int) -> None:
        first, _ = self.span or (0, 0)

        def take(t_ns: int) -> int:
            counts = {name: len(output) for name, output in self.outputs.items()}
            self.keyframes.append(Keyframe(t_ns, self.flow.freeze(), counts))
            return t_ns + period_ns

        self.player.attend(first, take)

    def resume(self, keyframe: Keyframe, parent: Replay) -> None:
        """Take up another replay of the same graph where a keyframe was taken."""
        self.reads.update(parent.reads)
        for name, outlet in self.flow.outlets.items():
            other = parent.flow.outlets[name].digest
            outlet.digest.times[:], outlet.digest.checks[:] = other.times, other.checks
        self.flow.thaw(keyframe.state)
        for name, count in keyframe.outputs.items():
            self.outputs[name].begin_with(parent.outputs[name], count)
        self.log[:] = [line for line in parent.log if line[0] < keyframe.t_ns]
        self._prepared_passes = True
        self.player = self._player(keyframe.t_ns - 1)

    def play(self) -> str:
        """Play until the end, a pause or a break; return which it was. What cannot be kept is raised."""
        return self._advance(self.player.play)

    def step(self, waves: int = 1) -> str:
        """Play some waves; as `play`."""
        return self._advance(partial(self.player.step, waves))

    def _advance(self, advance: Callable[[], str]) -> str:
        began = time.perf_counter()
        try:
            with one_thread_per_library():
                self._run_first_passes()
                why = advance()
                self.flow.settle()
        except BaseException:
            self.flow.stop()
            raise
        finally:
            self.wall_s += time.perf_counter() - began
        if self.trouble is not None:
            raise self.trouble
        return why

    def call(self, operation: str, inputs: Mapping[str, Any]) -> Any:
        """Call an operation of the compound on its controller."""
        known = {each.name: each for each in self.compound.text.operations}
        name = self.compound.text.name
        if operation not in known:
            raise UsageError(f"{name} has no operation {operation!r}", hint=did_you_mean(operation, known))
        wanted = {port.name for port in known[operation].inputs}
        if wrong := sorted(wanted ^ set(inputs)):
            raise UsageError(
                f"{name}.{operation} takes {', '.join(sorted(wanted)) or 'nothing'}",
                why=f"{wrong[0]!r} differs",
            )
        nodes = [part.node for part in self.graph.parts.values() if isinstance(part.node, ControllerNode)]
        method = next((m for n in nodes if (m := getattr(n.controller, operation, None)) is not None), None)
        if method is None:
            raise UsageError(f"no controller of {name} has a method {operation!r}")
        return method(**inputs)

    @property
    def traces(self) -> dict[str, Trace]:
        """Time and checksum of everything that each node output emitted."""
        outlets = self.flow.outlets.items()
        return {name: Trace(outlet.digest.times, outlet.digest.checks) for name, outlet in outlets}

    @property
    def statistics(self) -> RunStatistics:
        """What it cost so far, and what became of every sample."""
        import resource

        first, last = self.span or (0, 0)
        played = max(min(last, self.flow.now_ns) - first, 0) / NS
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        streams = {
            line.stream.name: {
                "samples": len(line.stream),
                "played": int(np.searchsorted(line.times, self.flow.now_ns, "right")) - line.left_out,
                "late": line.late,
                **({"lost": len(line.lost)} if line.lost else {}),
                **({"masked": len(line.masked)} if line.masked else {}),
            }
            for line in self.lines
        }
        noise = [each.text for each in self.conclusions if each.noise]
        return RunStatistics(self.flow.statistics, streams, self.wall_s, played, peak, noise)
