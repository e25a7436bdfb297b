"""A replay of a recording through a compound, which can be played, stepped or paused."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from transect.base import files
from transect.errors import TransectError, UsageError, did_you_mean
from transect.recording import FrameTree, Loss, Recording
from transect.recording.file_hashes import ReadLog

from .compounds import Compound
from .context import Conclusion, KeptMap, NodeEnvironment, Store
from .controller import ControllerNode
from .determinism import one_thread_per_library
from .digest import Trace
from .flow import NEVER_NS, Flow
from .graph import Graph
from .inboxes import NS
from .output_files import FileKeeper, Keeper, Output, OutputCount
from .playback import Options, list_streams_behind, make_playback
from .player import CHUNK_SAMPLES, IMAGE_CACHE_BYTES, PAUSED, Player, cache_images, waves
from .statistics import RunStatistics
from .trust import DowngradedSamples, Verdicts, VerdictSource
from .wiring import Wiring, fits

PROGRESS_NS = NS // 5
CLOCK = "clock"  # instead of a node, in conclusions about the stamps by which a run was played
INTEGRITY = "integrity"  # instead of a node, in conclusions about verdicts


@dataclass(frozen=True)
class ReplayState:
    """The state of a flow before the first wave at or after a time."""

    t_ns: int
    state: Any
    outputs: Mapping[str, int]


def choose_flow(graph: Graph, jobs: int) -> Callable[..., Flow]:
    """Return the class of flow for a graph: on several threads if these were requested and help."""
    if jobs < 1:
        raise UsageError(f"{jobs} jobs cannot run anything", hint="1 or more")
    if jobs > 1 and len(graph.parts) > 1:
        from .parallel import ParallelFlow, can_run_in_parallel

        if can_run_in_parallel(graph):
            return partial(ParallelFlow, graph, jobs=jobs)
    return partial(Flow, graph)


@dataclass(frozen=True)
class PlaySettings:
    """Settings of a replay that do not change the result."""

    jobs: int = 1  # threads
    rate: float | None = None  # times real time; as fast as possible by default
    chunk: int = CHUNK_SAMPLES


@dataclass
class RunNotes:
    """Log and conclusions of a run."""

    log: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    """Time (ns), node and text."""
    conclusions: list[Conclusion] = field(default_factory=list[Conclusion])
    downgraded: dict[tuple[str, str], DowngradedSamples] = field(
        default_factory=dict[tuple[str, str], DowngradedSamples]
    )
    """By node and input: counts of down-weighted, masked and dropped samples."""

    def add_line(self, node: str, t_ns: int, message: str) -> None:
        """Add a line to the log."""
        self.log.append((t_ns, node, message))

    def downgraded_of(self, node: str, port: str) -> DowngradedSamples:
        """Return the counts of downgraded samples of an input."""
        return self.downgraded.setdefault((node, port), DowngradedSamples())


class Replay:
    """A compound on a recording; its `player` plays, steps, pauses and breaks."""

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
        chunk: int = CHUNK_SAMPLES,
        in_memory: bool = True,
        strict: bool = False,
    ) -> None:
        self.options, self.settings = options or Options(), PlaySettings(jobs, rate, chunk)
        self.recording, self.folder = recording, folder
        self.store, self.map = store, map
        self.verdict_source, self.verdicts = verdicts, None
        self.notes = RunNotes(conclusions=map.conclude() if map is not None else [])
        self.reads = ReadLog()  # files from which images, clouds and other payloads were loaded so far
        self.playback = make_playback(
            compound, recording, self.options, self._surroundings, self.reads, strict
        )
        if self.playback.clock_problem:
            self.notes.conclusions.append(Conclusion(CLOCK, self.playback.clock_problem, bad=True))
        if verdicts is not None:
            self.verdicts = self._ask_for_verdicts(verdicts)
        self.wall_s = 0.0
        self.failure: BaseException | None = None  # a sample that could not be kept
        self._first_passes_done = False
        self.flow = self._flow(self.playback.passes - 1)
        self.player = self._player()
        self.outputs: dict[str, Output] = {}  # empty if the outputs go to files or are only counted
        self.kept: dict[str, Keeper] = {}  # by output port: `outputs`, files, or counts (`in_memory=False`)
        self._keep_outputs(in_memory)
        self.keyframes: list[ReplayState] = []
        if keyframes is not None:
            self._take_keyframes(round(keyframes * NS))

    def _ask_for_verdicts(self, source: VerdictSource) -> Verdicts:
        """Return the verdicts on the played streams, and apply their masks to the samples."""
        verdicts = source(self.playback.recording, [line.stream.name for line in self.playback.lines])
        for line in self.playback.lines:
            line.mask_of = partial(verdicts.mask_of, line.stream.name)
        return verdicts

    def describe_downgraded(self) -> list[Conclusion]:
        """Return in words which streams were masked, down-weighted or dropped, and when."""
        if self.verdicts is None:
            return []
        origin = (self.playback.span or (0, 0))[0]
        masked: dict[str, DowngradedSamples] = {}
        for line in self.playback.lines:
            for row, ratio in sorted(line.masked.items()):
                masked.setdefault(line.stream.name, DowngradedSamples()).add_mask(
                    int(line.stream.t_ns[row]), ratio
                )
        conclusions = [Conclusion(INTEGRITY, f"{name}: {d.describe(origin)}") for name, d in masked.items()]
        behind = self.playback.streams_behind
        for (node, port), counts in sorted(self.notes.downgraded.items()):
            streams = ", ".join(behind[self.playback.graph.parts[node].feeds[port].source])
            conclusions.append(Conclusion(INTEGRITY, f"{node}.{port} ({streams}): {counts.describe(origin)}"))
        if self.verdicts.describe()["hindsight"]:
            conclusions.append(Conclusion(INTEGRITY, "hindsight: the verdicts were made with later data"))
        return conclusions or [Conclusion(INTEGRITY, "no stream was masked, down-weighted or dropped")]

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Images, clouds, ... that could not be read during playback, and were dropped."""
        return tuple(loss for line in self.playback.lines for loss in line.lost.values())

    def _run_first_passes(self) -> None:
        """Play the recording for nodes that need several passes; only the last pass is kept."""
        if self._first_passes_done:
            return
        self._first_passes_done = True
        cache_images(self.playback.lines, IMAGE_CACHE_BYTES if self.playback.passes > 1 else 0)
        for index in range(self.playback.passes - 1):
            flow = self._flow(index)
            self._play_until_satisfied(flow, index)
            if flow.errors:
                raise flow.errors[0]
            for part in self.playback.graph.parts.values():
                if type(part.node).passes == 1:
                    part.node.reset()
        cache_images(self.playback.lines, 0)
        self.flow.adopt()

    def _play_until_satisfied(self, flow: Flow, pass_index: int) -> None:
        """Play a pass before the last one, until the nodes that need it are satisfied."""
        player = Player(flow, waves(self.playback.lines, chunk=self.settings.chunk))
        nodes = [
            part.node
            for part in self.playback.graph.parts.values()
            if type(part.node).passes > pass_index + 1
        ]

        def attend(t_ns: int) -> int:
            if all(node.is_satisfied() for node in nodes):
                player.pause()
            return t_ns + NS

        player.attend(-NEVER_NS, attend)
        if player.play() == PAUSED:
            flow.end()

    def _flow(self, pass_index: int) -> Flow:
        playback = self.playback
        around = replace(
            self._surroundings(playback.graph, playback.wiring, playback.frames),
            hashed=pass_index == playback.passes - 1,
        )
        flow = choose_flow(playback.graph, self.settings.jobs)(around, reorder_ns=self.options.reorder_ns)
        for part in playback.graph.parts.values():
            part.node.ctx.pass_index = pass_index
        for line in playback.lines:
            names = [name for name, stream in playback.wiring.pairs if stream.name == line.stream.name]
            line.channels = tuple(flow.channels.index[name] for name in names)
        return flow

    def _surroundings(self, graph: Graph, wiring: Wiring, frames: FrameTree) -> NodeEnvironment:
        wired = wiring.streams.keys()
        unwired = graph.inputs.keys() - wired
        sensors = {name: [s.frame for each, s in wiring.pairs if each == name] for name in wired}
        return NodeEnvironment(
            frames, self.store, self.verdicts, list_streams_behind(graph, wiring), unwired,
            self.notes.add_line, self.notes.conclusions.append, robot=self.recording.robot, sensors=sensors,
            downgraded=self.notes.downgraded_of, map=self.map, candidates=self._wires_of(graph, unwired),
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

    def _player(self, after_ns: int | None = None) -> Player:
        player = Player(
            self.flow, waves(self.playback.lines, after_ns, self.settings.chunk), self.settings.rate
        )
        clock = self.playback.clock

        def tell(t_ns: int) -> int:
            files.reached(t_ns, clock)
            return t_ns + PROGRESS_NS

        player.attend(0, tell)
        return player

    def _keep_outputs(self, in_memory: bool) -> None:
        kinds = {name: outlet.port.type for name, outlet in self.flow.outlets.items()}
        kinds |= {name: port.type for name, port in self.playback.graph.inputs.items()}
        for name, channel in self.playback.graph.outputs.items():
            if self.folder is not None:
                keeper = FileKeeper(self.folder, name, kinds[channel], self.playback.clock)
            elif in_memory:
                keeper = self.outputs[name] = Output(name, kinds[channel])
            else:
                keeper = OutputCount(kinds[channel])
            self.kept[name] = keeper
            self.flow.tap(channel, self._guard(name, keeper))

    def _guard(self, name: str, keeper: Keeper) -> Any:
        """Return a tap that ends the run if a sample cannot be kept, which is not a failure of the node."""

        def tap(t_ns: int, value: Any) -> None:
            try:
                keeper.add(t_ns, value)
            except (OSError, TransectError) as error:
                if isinstance(error, OSError) and error.filename is None:
                    error.filename = f"output {name}"
                self.failure = self.failure or error
                self.player.pause()

        return tap

    def _take_keyframes(self, period_ns: int) -> None:
        first, _ = self.playback.span or (0, 0)

        def take(t_ns: int) -> int:
            counts = {name: len(output) for name, output in self.outputs.items()}
            self.keyframes.append(ReplayState(t_ns, self.flow.freeze(), counts))
            return t_ns + period_ns

        self.player.attend(first, take)

    def resume(self, keyframe: ReplayState, parent: Replay) -> None:
        """Continue another replay of the same graph from a saved state."""
        self.reads.update(parent.reads)
        for name, outlet in self.flow.outlets.items():
            other = parent.flow.outlets[name].digest
            outlet.digest.times[:], outlet.digest.checks[:] = other.times, other.checks
        self.flow.thaw(keyframe.state)
        for name, count in keyframe.outputs.items():
            self.outputs[name].begin_with(parent.outputs[name], count)
        self.notes.log[:] = [line for line in parent.notes.log if line[0] < keyframe.t_ns]
        self._first_passes_done = True
        self.player = self._player(keyframe.t_ns - 1)

    def play(self) -> str:
        """Play until the end, a pause or a break; return which it was. Raise if a sample cannot be kept."""
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
        if self.failure is not None:
            raise self.failure
        return why

    def call(self, operation: str, inputs: Mapping[str, Any]) -> Any:
        """Call an operation of the compound on its controller."""
        known = {each.name: each for each in self.playback.compound.text.operations}
        name = self.playback.compound.text.name
        if operation not in known:
            raise UsageError(f"{name} has no operation {operation!r}", hint=did_you_mean(operation, known))
        wanted = {port.name for port in known[operation].inputs}
        if wrong := sorted(wanted ^ set(inputs)):
            raise UsageError(
                f"{name}.{operation} takes {', '.join(sorted(wanted)) or 'nothing'}",
                why=f"{wrong[0]!r} differs",
            )
        nodes = [
            part.node for part in self.playback.graph.parts.values() if isinstance(part.node, ControllerNode)
        ]
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

        first, last = self.playback.span or (0, 0)
        played = max(min(last, self.flow.now_ns) - first, 0) / NS
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        streams = {
            line.stream.name: {
                "samples": len(line.stream),
                "played": int(np.searchsorted(line.times, self.flow.now_ns, "right")) - line.dropped,
                "late": line.late,
                **({"lost": len(line.lost)} if line.lost else {}),
                **({"masked": len(line.masked)} if line.masked else {}),
            }
            for line in self.playback.lines
        }
        noise = [each.text for each in self.notes.conclusions if each.noise]
        return RunStatistics(self.flow.statistics, streams, self.wall_s, played, peak, noise)
