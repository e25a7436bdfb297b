"""A run: one execution of a compound on a recording, with its outputs, statistics, digest and provenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from transect.base import plugins
from transect.base.clocks import TimeLike, resolve
from transect.base.tables import html_table
from transect.engine.player import END
from transect.errors import TransectError, UsageError, did_you_mean
from transect.recording import Recording

from .compounds import Compound
from .context import Conclusion, KeptMap, Store
from .digest import Difference, RunsDifferError, Trace, difference, digest_of_ports, settings_that_differ
from .graph import Graph
from .inboxes import NS
from .offsets import Offset
from .output_files import Output, describe_outputs
from .provenance import config_of, files_of, request_of
from .replay import Options, Replay
from .statistics import RunStatistics
from .trust import VerdictSource

if TYPE_CHECKING:
    from transect.types import SourceFile

    from .folder import RunFolder


Status = Literal["complete", "failed", "interrupted"]
INPUTS = "inputs"
"""In place of the node, in what a run concludes of the files that it read."""


@dataclass
class Run:
    """What a run gave."""

    name: str  # of the compound and its implementation
    digest: str  # over every node output port: same bytes in, same digest out
    ports: Mapping[str, str]  # the hash of each
    # Everything that decided the result: parameters, wiring, clocks, versions, hashes of the inputs
    config: Mapping[str, Any]
    status: Status
    traces: Mapping[str, Trace]
    # None for a run that was read from its folder: see `config["statistics"]` there
    stats: RunStatistics | None = None
    # By output port; empty where they were written to `folder`
    outputs: Mapping[str, Output] = field(default_factory=dict[str, Output])
    errors: Sequence[TransectError] = ()  # of nodes that failed, or never ran; the rest of the run is there
    log: Sequence[tuple[int, str, str]] = ()  # time, node and what it said
    conclusions: Sequence[Conclusion] = ()  # what nodes say of the whole run
    folder: Path | None = None
    replay: Replay | None = None
    # Arguments of the run and its recording, sufficient to repeat it
    request: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inputs: Sequence[SourceFile] = ()  # every file that was read

    def __getitem__(self, name: str) -> Output:
        """Return the samples of an output port."""
        if name not in self.outputs:
            written = f"its outputs are in {self.folder}" if self.folder else did_you_mean(name, self.outputs)
            raise UsageError(f"the run {self.name} has no output {name!r} in memory", hint=written)
        return self.outputs[name]

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {self.status}, digest {self.digest[:12]})"

    def _repr_html_(self) -> str:
        rows = [(port, f"{len(trace)}", self.ports.get(port, "")[:12]) for port, trace in self.traces.items()]
        messages = [
            *(error.what for error in self.errors),
            *(f"{c.node}: {c.text}" for c in self.conclusions),
        ]
        title = f"{self.name}: {self.status}, digest {self.digest[:12]}"
        return html_table(title, [("port", "samples", "hash"), *rows], messages)

    @property
    def failures(self) -> tuple[str, ...]:
        """Why the result is not to be trusted; empty if nothing says so."""
        return tuple(each.text for each in self.conclusions if each.bad)

    @property
    def clock(self) -> str:
        """The clock of its times."""
        return str(self.config.get("time", {}).get("clock", "utc"))

    def diff(self, other: Run | Path | str) -> Difference:
        """Return which ports differ from another run's, since when, and what was set differently."""
        other = other if isinstance(other, Run) else Run.load(other)
        settings = settings_that_differ(self.config, other.config)
        return difference(self.traces, other.traces, settings, self.clock)

    def assert_same(self, golden: Run | Path | str) -> None:
        """Raise unless every node output is the same, byte for byte, as in another run.

        Raises
        ------
        RunsDifferError
            That says which port differed first, and when.
        """
        found = self.diff(golden)
        if found:
            named = (golden.folder or golden.name) if isinstance(golden, Run) else golden
            raise RunsDifferError(found, str(named))

    def fork(self, at: TimeLike, set: Mapping[str, Any]) -> Run:
        """Run again from a time on with other parameters; what came before is the same.

        Parameters
        ----------
        at : time
            `+12s` counts from the first sample.
        set : mapping
            ``{"icp.max_distance": 0.3}``.
        """
        if self.replay is None:
            raise UsageError(
                "a run read from its folder cannot be forked", hint="run it again, and fork that"
            )
        return _fork(self.replay, at, settings_from(set))

    def call(self, operation: str, **inputs: Any) -> Any:
        """Ask the compound for something that it does on demand (`operations` of its description).

        Its controller does it, by a method of that name, with the state that the run left.
        """
        if self.replay is None:
            raise UsageError("a run read from its folder has no state to ask", hint="run it again")
        return self.replay.call(operation, inputs)

    @staticmethod
    def load(folder: Path | str) -> Run:
        """Read a run from the folder that it was written to."""
        from .folder import damaged_run, read_content

        folder = Path(folder)
        content, traces = read_content(folder)
        try:
            return Run(
                content["name"], content["digest"], content["ports"], content["config"], content["status"],
                traces, conclusions=[Conclusion(**each) for each in content.get("conclusions", ())],
                folder=folder, request=content.get("request", {}),
            )  # fmt: skip
        except (KeyError, ValueError) as error:
            raise damaged_run(folder, error) from error


def run(
    compound: Compound | str | Path,
    recording: Recording | str | Path,
    *,
    set: Mapping[str, Any] | None = None,
    wire: Mapping[str, str] | None = None,
    clock: Literal["auto", "sample", "log"] = "auto",
    reorder: float = 0.5,
    offset: Mapping[str, float | Literal["auto"]] | None = None,
    start: TimeLike | None = None,
    end: TimeLike | None = None,
    rate: float | None = None,
    out: Path | str | None = None,
    golden: Run | Path | str | None = None,
    jobs: int = 1,
    keyframes: float | None = None,
    store: Store | None = None,
    check: Any = False,
    verdicts: Any = None,
    map: KeptMap | Path | str | None = None,
    extend: bool = False,
    play: Callable[[Replay], object] | None = None,
) -> Run:
    """Run a compound on a recording.

    Parameters
    ----------
    compound : Compound, str or Path
        `Name`, `Name/Implementation`, a YAML file, or one made with `compound`.
    recording : Recording, str or Path
    set, wire, clock, reorder, offset, start, end
        As in `Options`, but parameters as ``{"icp.max_distance": 0.3}`` and offsets in seconds, or "auto".
    rate : float
        Times real time; as fast as possible by default.
    out : path
        A new folder to which everything is written; outputs are then not kept in memory. What there is of
        a run that failed or was interrupted goes to `NAME.failed` or `NAME.interrupted` beside it.
    golden : Run or path
        Raise unless the result is the same as that run's.
    jobs : int
        Threads for nodes that do not depend on each other; changes nothing in the result.
    keyframes : float
        Seconds of the recording between states that are kept for `fork`; without, it plays from the start.
    store
        What nodes reach through `ctx`.
    check : bool, Config or path
        Let checks judge the streams that are used, in the same pass: as usual, or by a configuration of
        `transect.integrity`. Nodes know only what was known then.
    verdicts : VerdictTable, path or callable
        Of an earlier check of the recording. They are hindsight, and the run says so. A callable makes what
        is known of how far streams can be trusted (`engine.trust`).
    map : path
        The folder of a map, or of the run that made it: nodes that know places find themselves in it.
    extend : bool
        Whether they add to it what they see; the map that is given is not changed.
    play : callable
        Plays the replay that it is given; by default to the end. `transect.view.watch` lets a person do it.

    Returns
    -------
    Run
        Whose `errors` name nodes that failed: raised at the end, with the run as `run` of the error.
    """
    moved = _offsets(offset or {})
    options = Options(settings_from(set or {}), wire or {}, clock, reorder, moved, start, end)
    expected = Run.load(golden) if isinstance(golden, str | Path) else golden
    from .folder import read_kept_map

    known = read_kept_map(map, extend) if isinstance(map, str | Path) else map
    with new_folder(out) as folder:
        replay = Replay(
            Compound.of(compound), _open_one(recording), options, folder=folder.path if folder else None,
            rate=rate, keyframes=keyframes, store=store, verdicts=_choose_verdicts(check, verdicts),
            map=known, jobs=jobs,
        )  # fmt: skip
        result = finish(replay, folder, partial(play, replay) if play else None)
    _refuse_failure(result, expected)
    return result


def _choose_verdicts(check: Any, verdicts: Any) -> VerdictSource | None:
    """Return what makes the verdicts of a run; None if it is to trust everything."""
    if verdicts is None and check is False:
        return None
    if callable(verdicts):
        source: VerdictSource = verdicts  # pyright: ignore[reportAssignmentType]
        return source
    return plugins.load("judges", "checks")(check, verdicts)


def _refuse_failure(result: Run, golden: Run | None) -> None:
    """Raise if a node of a run failed, or if the run is not the same as the golden one."""
    if result.errors:
        result.errors[0].run = result  # pyright: ignore[reportAttributeAccessIssue]
        raise result.errors[0]
    if golden is not None:
        result.assert_same(golden)


def _open_one(recording: Recording | str | Path) -> Recording:
    from transect.formats import open as open_recording

    return recording if isinstance(recording, Recording) else open_recording(recording)


def new_folder(out: Path | str | None) -> AbstractContextManager[RunFolder | None]:
    """Return a folder for a run, which gets its name when the block ends and everything is in it."""
    if out is None:
        return nullcontext()
    from .folder import RunFolder

    return RunFolder(Path(out))


def finish(replay: Replay, folder: RunFolder | None = None, play: Callable[[], object] | None = None) -> Run:
    """Play a replay and return the run; one that did not come to its end is written as far as it came.

    Parameters
    ----------
    play : callable
        What plays it; by default to the end.
    """
    try:
        (play or replay.play)()
    except BaseException as error:
        from .folder import status_of

        _keep_run(replay, folder, status_of(error), error)
        raise
    if replay.player.state == "ended":
        return _keep_run(replay, folder, "failed" if replay.flow.errors else "complete")
    replay.flow.stop()
    return _keep_run(replay, folder, "interrupted")


def _keep_run(
    replay: Replay, folder: RunFolder | None, status: Status, ended_by: BaseException | None = None
) -> Run:
    result = result_of(replay, status)
    if isinstance(ended_by, Exception):
        known = isinstance(ended_by, TransectError)
        result.errors = [*result.errors, ended_by if known else TransectError(f"the run ended: {ended_by}")]
    if folder is not None:
        folder.write(result, replay)
    return result


def result_of(replay: Replay, status: Status) -> Run:
    """Return what a replay gave so far."""
    ports = replay.flow.port_digests
    inputs = files_of(replay.recording, replay.reads)
    result = Run(
        name=replay.playback.compound.name,
        digest=digest_of_ports(ports),
        ports=ports,
        config=config_of(replay, inputs),
        status=status,
        traces=replay.traces,
        stats=replay.statistics,
        outputs=replay.outputs,
        errors=list(replay.flow.errors),
        log=sorted(replay.notes.log, key=lambda line: line[:2]),
        conclusions=(*replay.notes.conclusions, *replay.describe_downgraded(), *_changed_inputs(replay)),
        folder=replay.folder,
        replay=replay,
        request=request_of(replay, inputs),
        inputs=inputs,
    )
    if status == "complete" and not result.failures:
        result.conclusions = (*describe_silence(result), *result.conclusions)
    return result


def _changed_inputs(replay: Replay) -> list[Conclusion]:
    """Return that files changed while they were used, so that the result is one of no state of theirs."""
    logs = (*(source.touched for source in replay.recording.sources), replay.reads)
    changed = sorted({name for log in logs for name in log.changed})
    if not changed:
        return []
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    text = f"{', '.join(changed[:3])}{more} changed while the run read it: run again when nobody writes to it"
    return [Conclusion(INPUTS, text, bad=True)]


def settings_from(texts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return ``{"icp.max_distance": 0.3}`` by node and parameter."""
    settings: dict[str, dict[str, Any]] = {}
    for name, value in texts.items():
        node, _, parameter = name.rpartition(".")
        if not node:
            hint = f"the name of its node comes first; of one that runs alone: --set node.{name}={value}"
            raise UsageError(f"{name!r} names no parameter of a node", hint=hint)
        settings.setdefault(node, {})[parameter] = value
    return settings


def _offsets(seconds: Mapping[str, float | Literal["auto"]]) -> dict[str, Offset]:
    return {name: "auto" if value == "auto" else round(value * NS) for name, value in seconds.items()}


def _fork(parent: Replay, at: TimeLike, changed: Mapping[str, Mapping[str, Any]]) -> Run:
    """Replay a run as it was up to a time, from the last keyframe before it, then with other parameters."""
    at_ns = resolve(at, (parent.playback.span or (0, 0))[0], parent.playback.clock)
    child = Replay(
        parent.playback.compound,
        parent.recording,
        parent.options,
        store=parent.store,
        verdicts=parent.verdict_source,
        map=parent.map,
        jobs=parent.settings.jobs,
    )
    parts = child.playback.graph.parts
    if unknown := next((name for name in changed if name not in parts), None):
        raise UsageError(f"there is no node {unknown!r} to set", hint=did_you_mean(unknown, parts))
    usable = [frame for frame in parent.keyframes if frame.t_ns <= at_ns]
    if usable and parent.folder is None:
        child.resume(usable[-1], parent)
    child.player.break_at(at_ns)
    if child.play() != END:
        for name, values in changed.items():
            parts[name].node.set_parameters(values)
        child.flow.rebind()
        child.play()
    return result_of(child, "failed" if child.flow.errors else "complete")


def silent_outputs(run: Run) -> dict[str, str]:
    """Return outputs that gave nothing, and why: what the nodes say on which each depends."""
    if run.replay is None:
        return {}
    graph = run.replay.playback.graph
    samples = {name: output["samples"] for name, output in describe_outputs(run.replay.kept).items()}
    nodes = {name: _node_of(graph.outputs[name]) for name in samples}
    spoke = {nodes[name] for name, number in samples.items() if number}
    reason_of: dict[str, str] = {}
    for name in (name for name, number in samples.items() if not number):
        node = nodes[name]
        gave_others = node in spoke
        reasons = _list_skip_reasons(run, [node] if gave_others else _upstream(graph, node))
        reason_of[name] = f"{node} gave others; {reasons}" if gave_others else reasons
    return reason_of


def describe_silence(run: Run) -> list[Conclusion]:
    """Conclude that a run is bad if its first declared output, its main result, has no samples."""
    declared = run.replay.playback.compound.text.outputs if run.replay else {}
    first = next(iter(declared), None)
    if first is None or first not in silent_outputs(run):
        return []
    return [Conclusion(first, f"no output of {first}", bad=True)]


def _list_skip_reasons(run: Run, nodes: Sequence[str]) -> str:
    """Return why nodes skipped samples."""
    counts = run.stats.nodes if run.stats else {}
    reasons = [
        f"{node}: {reason} ({number} of {counts[node].calls} times)"
        for node in nodes
        if node in counts
        for reason, number in counts[node].skipped.items()
    ]
    return "; ".join(reasons) or "no node gave a reason"


def _upstream(graph: Graph, node: str) -> list[str]:
    """Return a node and all that it depends on, in the order in which they run."""
    found, waiting = set[str](), [node]
    while waiting:
        part = waiting.pop()
        if part in graph.parts and part not in found:
            found.add(part)
            waiting += [_node_of(feed.source) for feed in graph.parts[part].feeds.values()]
    return [part for part in graph.parts if part in found]


def _node_of(channel: str) -> str:
    return channel.rpartition(".")[0]
