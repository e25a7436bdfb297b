"""Run checks over a recording, window by window, and collect their verdicts.

Windows are processed in order of time, and a check uses only samples that had arrived at the end of the
window. If a check raises an exception its verdict on that window is UNKNOWN, and the run continues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transect.base.clocks import NS
from transect.engine.determinism import one_thread_per_library
from transect.errors import ParseError, UsageError
from transect.recording import Recording, Stream
from transect.recording.sessions import SESSIONS, group_spans
from transect.types import GridMap, State, Trajectory, Transform, Verdict

from . import catalogue
from .config import Config, LayeredConfig, conditions_of, config_of
from .model import NO_DATA, Check, CheckContext, CheckInput, Finding, Unknown
from .rules import Declaration, state_of, tile_sampled
from .table import SCHEMA, VerdictTable, table_of
from .windows import Grid, Window, WindowedStream

NON_SENSOR_TYPES = (GridMap, Trajectory, Transform)
NON_SENSOR_LOGGED_TYPES = re.compile(
    r"(tfmessage|frametransforms?"  # frames, row by row
    r"|[/.](log|string|empty|header|clock|bond|parameterevent|diagnosticarray|diagnosticstatus|statisticsmessage)"
    r"|[/.](goalid|goalstatusarray|joy|joyfeedbackarray|ackermanndrive(stamped)?|(multidof)?jointtrajectory)"
    r"|geometry_msgs/(msg/)?(twist|accel|wrench))$",  # commands: measurements have a header
    re.IGNORECASE,
)
"""Suffixes of logged types that are not measurements: frames, texts, program states, commands."""
COMMAND_NAMES = re.compile(
    r"(?<![a-z])(cmd|cmdvel|commands?|setpoints?|goal|teleop|joy|joystick)(?![a-z])"
    r"|(?<=[a-z])(Command|Setpoint|Goal)s?(?![a-z])"
)
"""Words in the names of streams with commands."""
COMPUTED_ROLES = ("truth", "estimate")
"""Roles of streams that are not judged; sensors are compared with them, e.g. lasers use the robot's poses."""
MAX_WINDOWS = 200_000
FLUSH_INTERVAL_WINDOWS = 256
"""Windows after which verdicts are converted to rows of a table, to limit the memory."""


def check(
    recording: Recording,
    config: Config | None = None,
    *,
    checks: Sequence[str] | None = None,
    conditions: Sequence[str] = (),
    reference: Recording | None = None,
    on_window: Callable[[float], None] | None = None,
) -> VerdictTable:
    """Judge every sensor of a recording window by window, and return the verdicts.

    Parameters
    ----------
    recording : Recording
    config : Config, optional
        Limits, parameters, sensors and mutes; it takes precedence over that of the recording's robot.
    checks : sequence of str, optional
        Names or identifiers; default all.
    conditions : sequence of str
        Conditions such as `night`, in addition to those of the recording.
    reference : Recording, optional
        A recording of the same robot in clear air, from which baselines are learned. If the robot stands,
        it has to stand at the same position.
    on_window : callable, optional
        Called with the progress, 0 to 1.
    """
    sessions = sessions_of(recording, config, checks=checks, conditions=conditions)
    total, done = sum(len(session.grid) for session in sessions) or 1, 0
    with one_thread_per_library():
        if reference is not None:
            learn_reference(sessions, reference, config)
        for session in sessions:
            for index in range(len(session.grid)):
                session.judge(index)
                if (index + 1) % FLUSH_INTERVAL_WINDOWS == 0:
                    session.flush()
                    if on_window is not None:
                        on_window((done + index) / total)
            done += len(session.grid)
    return collect(sessions)


@dataclass
class Session:
    """Streams that overlap in time, and the checks that judge them window by window."""

    grid: Grid
    jobs: list[Job]  # one for each check of each stream

    def judge(self, index: int) -> list[Verdict]:
        """Return the verdicts of all jobs, in their order, on a window; windows come in order."""
        with np.errstate(all="ignore"):
            verdicts = [job.judge(index) for job in self.jobs]
        for job, verdict in zip(self.jobs, verdicts, strict=True):
            job.keep(verdict)
        return verdicts

    def flush(self) -> None:
        """Convert the verdicts so far to rows of tables, which need less memory."""
        for job in self.jobs:
            job.flush()


def sessions_of(
    recording: Recording,
    config: Config | None = None,
    *,
    checks: Sequence[str] | None = None,
    conditions: Sequence[str] = (),
    judged: Collection[str] | None = None,
) -> list[Session]:
    """Return the sessions of a recording, before their first window is judged.

    Parameters
    ----------
    config, checks, conditions
        As in `check`.
    judged : collection of str, optional
        Names of the streams to judge; the others are used for comparison only. Default all.
    """
    configs = [each for each in (config_of(recording), config) if each is not None]
    layered = LayeredConfig(configs, conditions_of(recording, conditions))
    names = list(catalogue.load_all()) if checks is None else [catalogue.find(name) for name in checks]
    names = [name for name in names if not layered.skips(name)]
    sessions: list[Session] = []
    for grid, streams in _sessions(recording, layered):
        windowed = [WindowedStream[object](s, grid, layered.sensor_of(s.name)) for s in streams]
        jobs = _jobs_of(recording, windowed, names, layered)
        selected = [job for job in jobs if judged is None or job.name in judged]
        sessions.append(Session(grid, selected))
    return sessions


def learn_reference(sessions: Sequence[Session], reference: Recording, config: Config | None = None) -> None:
    """Let the checks of sessions learn their baselines from a recording in clear air, by stream name."""
    if not any(job.name in reference for session in sessions for job in session.jobs):
        raise UsageError(
            f"the reference {reference.name} has no stream of the same name as a sensor of the recording",
            hint=f"it has {', '.join(stream.name for stream in reference)}",
        )
    layered = LayeredConfig([each for each in (config_of(reference), config) if each is not None])
    for grid, streams in _sessions(reference, layered):
        windowed = {s.name: WindowedStream[object](s, grid, layered.sensor_of(s.name)) for s in streams}
        with np.errstate(all="ignore"):
            for index in range(len(grid)):
                for job in (job for session in sessions for job in session.jobs):
                    job.learn_reference(windowed, index)


def collect(sessions: Sequence[Session]) -> VerdictTable:
    """Return all verdicts of sessions so far, in the order of stream, check and time."""
    for session in sessions:
        session.flush()
    parts = [((j.name, j.check.id), j.tables) for each in sessions for j in each.jobs]
    tables = [table for _, each in sorted(parts, key=lambda part: part[0]) for table in each]
    judged = {j.name: j.windowed.stream for each in sessions for j in each.jobs}
    streams = {name: (len(stream), stream.sha256) for name, stream in sorted(judged.items())}
    whole = pa.concat_tables(tables).combine_chunks() if tables else SCHEMA.empty_table()
    return VerdictTable(whole, streams)


def checkable(stream: Stream) -> bool:
    """Return whether a stream is judged: measurements of a sensor with times.

    Truth and estimates are computed: a gap in them is not a fault of a sensor.
    """
    return stream.role not in COMPUTED_ROLES and _has_times(stream)


def _has_times(stream: Stream) -> bool:
    """Return whether a stream has values with times, and is not a map, frame, text or command.

    Commands may be constant, have no rate, and do not show that the robot moves.
    """
    return not (
        stream.clock == "index"
        or stream.name.startswith("truth/")
        or issubclass(stream.type, NON_SENSOR_TYPES)
        or NON_SENSOR_LOGGED_TYPES.search(stream.logged_type or "") is not None
        or COMMAND_NAMES.search(stream.name) is not None
        or not len(stream)
        or bool(stream.meta.get("timeless"))
    )


def _sessions(recording: Recording, config: LayeredConfig) -> Iterator[tuple[Grid, list[Stream]]]:
    """Yield the streams of each session, with the windows that tile it.

    A session contains the sensors' streams on one clock, except those that a configuration assigns to
    another one. Streams of the same clock that are far from all others have a separate session; its grid
    contains the distance in time. Truth and estimates that overlap a session follow its sensors, for
    comparison.
    """
    kept: dict[tuple[str, str], list[Stream]] = {}
    computed = [each for each in recording if each.role in COMPUTED_ROLES and _has_times(each)]
    for stream in filter(checkable, recording):
        kept.setdefault((stream.clock, config.session_of(stream.name)), []).append(stream)
    for (clock, session), streams in sorted(kept.items()):
        compared = [s for s in computed if s.clock == clock and config.session_of(s.name) == session]
        groups = group_spans(streams)
        main = max(groups, key=lambda group: (len(group), sum(len(s) for *_, s in group)))
        for group in groups:
            start, end = min(a for a, _, _ in group), max(b for _, b, _ in group)
            apart = 0
            if len(group) < len(main) >= SESSIONS.min_streams:
                apart = max(min(a for a, _, _ in main) - end, start - max(b for _, b, _ in main), 0)
            begin = min(a for a, _, _ in main)
            members = [s for *_, s in group]
            end = min(end + 1, np.iinfo(np.int64).max)
            start = min(start, end - 1)
            overlapping = [s for s in compared if bool(np.any((s.t_ns >= start) & (s.t_ns < end)))]
            grid = _grid_of(members, start, end, round(config.window * NS), apart / NS, begin)
            yield grid, [*members, *overlapping]


def _grid_of(
    streams: Sequence[Stream], start_ns: int, end_ns: int, window_ns: int, apart_s: float, main_ns: int
) -> Grid:
    """Return the windows of a session, longer than `window_ns` if there would be too many."""
    while True:
        edges = tile_sampled((stream.t_ns for stream in streams), start_ns, end_ns, window_ns)
        if len(edges) <= MAX_WINDOWS + 1:
            return Grid(edges, window_ns, apart_s, main_ns)
        window_ns *= -(-(len(edges) - 1) // MAX_WINDOWS)


def _jobs_of(
    recording: Recording,
    streams: Sequence[WindowedStream[object]],
    names: Sequence[str],
    config: LayeredConfig,
) -> list[Job]:
    context = CheckContext(recording.frames, recording.robot, recording)
    jobs: list[Job] = []
    for each in (s for s in streams if checkable(s.stream)):
        for name in names:
            kind = catalogue.load(name)
            if not kind.inputs[0].accepts(each.stream.type):
                continue
            made = config.make(name, each.stream, context)
            muted = config.mutes(name, kind.id, each.stream.name)
            peers = [
                [s for s in streams if s is not each and i.accepts(s.stream.type)] for i in kind.inputs[1:]
            ]
            jobs.append(Job(made, each, peers, muted))
    return jobs


@dataclass
class Job:
    """One check of one stream, with its declaration state and verdicts."""

    check: Check
    windowed: WindowedStream[object]
    # streams for each further input of the check
    peers: list[list[WindowedStream[object]]] = field(default_factory=list[list[WindowedStream[object]]])
    muted: str = ""  # why its verdicts are ignored
    tables: list[pa.Table] = field(default_factory=list[pa.Table])

    def __post_init__(self) -> None:
        self._declaration = Declaration(self.check.k_on, self.check.k_off)
        self._threshold = self.check.thresholds
        self._verdicts: list[Verdict] = []
        self._reason = ""
        further: Sequence[CheckInput] = self.check.inputs[1:]
        self._missing = next(
            (i for i, p in zip(further, self.peers, strict=True) if i.needed and not p), None
        )

    @property
    def name(self) -> str:
        """Name of the stream."""
        return self.windowed.stream.name

    def judge(self, index: int) -> Verdict:
        """Return the verdict on a window; windows come in order."""
        return self._verdict(self.windowed.window(index), self._evaluate(index))

    def learn_reference(self, streams: Mapping[str, WindowedStream[object]], index: int) -> None:
        """Learn the baseline from a window of a reference recording, given its streams by name."""
        own = streams.get(self.name)
        if (
            own is None
            or self._missing is not None
            or len(window := own.window(index)) < self.check.min_samples
        ):
            return
        peers = [
            [streams[peer.stream.name].window(index) for peer in each if peer.stream.name in streams]
            for each in self.peers
        ]
        self.check.learn_reference(window, *peers)

    def keep(self, verdict: Verdict) -> None:
        """Keep a verdict for the table."""
        self._verdicts.append(verdict)

    def _evaluate(self, index: int) -> Finding | Unknown:
        if self._missing is not None:
            kinds = " or ".join(kind.__name__ for kind in self._missing.types)
            return Unknown("NO_PEER", f"there is no stream of {kinds} to compare with")
        window: Window[object] = self.windowed.window(index)
        if len(window) < self.check.min_samples:
            return Unknown("TOO_FEW", n=len(window)) if len(window) else NO_DATA
        try:
            return self.check.evaluate(
                window, *([peer.window(index) for peer in each] for each in self.peers)
            )
        except Exception as error:  # noqa: BLE001 - a check that fails must not stop a run
            if isinstance(error, ParseError) and len(self.check.inputs) == 1:  # not of a peer
                return Unknown("UNREADABLE", error.what, len(window))
            return Unknown("CHECK_FAILED", f"{type(error).__name__}: {error}")

    def _verdict(self, window: Window[object], found: Finding | Unknown) -> Verdict:
        score, reason = _score(self.check, found)
        raw: State = state_of(score)
        state = self._declaration.declare(raw, window.count)
        self._reason = reason if raw in ("SUSPECT", "BAD") else self._reason
        if state == "BAD" and raw == "OK":  # not yet cleared
            reason = self._reason
        evidence = dict(found.evidence)
        peers, region = (), None
        if isinstance(found, Finding):
            evidence = {**found.statistics, **evidence}
            peers, region = found.peers, found.region
        return Verdict(
            self.windowed.sensor, window.stream.name, window.t0_ns, window.t1_ns, self.check.id,
            self.check.version, state, raw, score, reason, found.note,
            evidence, self._threshold, found.n, peers, region, self.muted,
        )  # fmt: skip

    def flush(self) -> None:
        """Convert the verdicts so far to rows of a table."""
        if self._verdicts:
            self.tables.append(table_of(self._verdicts, {self.check.id: self.check.group}))
            self._verdicts = []


def _score(check: Check, found: Finding | Unknown) -> tuple[float | None, str]:
    """Return the smallest score of a finding's statistics, and its reason."""
    if isinstance(found, Unknown):
        return None, found.reason
    smallest, reason = None, "TOO_FEW"
    for name, value in found.statistics.items():
        score = check.limits[name].score(float(value))
        if score is not None and (smallest is None or score < smallest):
            smallest, reason = score, check.limits[name].reason
    if smallest is None:
        return None, reason
    smallest = max(smallest, found.min_score)
    return smallest, (found.reason or reason) if smallest < 1.0 else ""
