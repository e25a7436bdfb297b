"""Run checks over a recording, window by window, and collect their verdicts.

Windows come in order of time, and each check sees only what had arrived when the window ended. A check that
raises is UNKNOWN for that window, with the reason, and stops nothing.
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
from transect.recording.sessions import LEAST_OTHERS, group_spans
from transect.types import GridMap, State, Trajectory, Transform, Verdict

from . import catalogue
from .config import Config, Settings, conditions_of, config_of
from .model import NO_DATA, Check, CheckContext, Finding, Input, Unknown
from .rules import Declaration, state_of, tile_sampled
from .table import SCHEMA, VerdictTable, table_of
from .windows import Grid, Track, Window

NOT_SENSORS = (GridMap, Trajectory, Transform)
NOT_SENSED = re.compile(
    r"(tfmessage|frametransforms?"  # frames, row by row
    r"|[/.](log|string|empty|header|clock|bond|parameterevent|diagnosticarray|diagnosticstatus|statisticsmessage)"
    r"|[/.](goalid|goalstatusarray|joy|joyfeedbackarray|ackermanndrive(stamped)?|(multidof)?jointtrajectory)"
    r"|geometry_msgs/(msg/)?(twist|accel|wrench))$",  # commands: what is measured has a header
    re.IGNORECASE,
)
"""Ends of logged types that no sensor measures: frames, texts, states of programs, commands."""
COMMANDS = re.compile(
    r"(?<![a-z])(cmd|cmdvel|commands?|setpoints?|goal|teleop|joy|joystick)(?![a-z])"
    r"|(?<=[a-z])(Command|Setpoint|Goal)s?(?![a-z])"
)
"""Words in names of streams that are asked for, and not measured."""
COMPUTED_ROLES = ("truth", "estimate")
"""Roles of streams that are not judged; sensors are compared with them, as lasers need the robot's poses."""
MOST_WINDOWS = 200_000
LAST_NS = 2**63 - 1
"""Latest time that a table holds; a window that would end later ends then."""
_FLUSH = 256
"""Windows whose verdicts are kept as objects before they become rows of a table."""


def check(
    recording: Recording,
    config: Config | None = None,
    *,
    checks: Sequence[str] | None = None,
    conditions: Sequence[str] = (),
    reference: Recording | None = None,
    on_window: Callable[[float], None] | None = None,
) -> VerdictTable:
    """Return how far each sensor of a recording can be trusted, when, and why.

    Parameters
    ----------
    recording : Recording
    config : Config, optional
        Limits, parameters, sensors and mutes; those of the recording's robot hold where it says nothing.
    checks : sequence of str, optional
        Names or identifiers; default all.
    conditions : sequence of str
        Words such as `night`, beside those that the recording itself has.
    reference : Recording, optional
        One of the same robot in clear air: what its sensors see there is their baseline. While the robot
        stands it has to be at the same place.
    on_window : callable, optional
        Called with the share of the work that is done.
    """
    sessions = sessions_of(recording, config, checks=checks, conditions=conditions)
    total, done = sum(len(session.grid) for session in sessions) or 1, 0
    with one_thread_per_library():
        if reference is not None:
            learn_reference(sessions, reference, config)
        for session in sessions:
            for index in range(len(session.grid)):
                session.judge(index)
                if index % _FLUSH == _FLUSH - 1:
                    session.flush()
                    if on_window is not None:
                        on_window((done + index) / total)
            done += len(session.grid)
    return collect(sessions)


@dataclass
class Session:
    """Streams that belong together in time, and the checks that judge them window by window.

    Attributes
    ----------
    grid : Grid
    jobs : list of Job
        Each check on each stream.
    """

    grid: Grid
    jobs: list[Job]

    def judge(self, index: int) -> list[Verdict]:
        """Return what all checks say of a window, in the order of the jobs; windows come in order."""
        with np.errstate(all="ignore"):
            verdicts = [job.judge(index) for job in self.jobs]
        for job, verdict in zip(self.jobs, verdicts, strict=True):
            job.keep(verdict)
        return verdicts

    def flush(self) -> None:
        """Turn the verdicts so far into rows of tables, which are smaller."""
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
    """Return the sessions of a recording, of which nothing is judged yet.

    Parameters
    ----------
    config, checks, conditions
        As in `check`.
    judged : collection of str, optional
        Names of the streams to judge; the others are only what these are compared with. Default all.
    """
    known = [each for each in (config_of(recording), config) if each is not None]
    settings = Settings(known, conditions_of(recording, conditions))
    names = list(catalogue.load_all()) if checks is None else [catalogue.find(name) for name in checks]
    names = [name for name in names if not settings.skips(name)]
    sessions: list[Session] = []
    for grid, streams in _sessions(recording, settings):
        tracks = [Track[object](s, grid, settings.sensor_of(s.name)) for s in streams]
        jobs = _jobs_of(recording, tracks, names, settings)
        wanted = [job for job in jobs if judged is None or job.track.stream.name in judged]
        sessions.append(Session(grid, wanted))
    return sessions


def learn_reference(sessions: Sequence[Session], reference: Recording, config: Config | None = None) -> None:
    """Let the checks of sessions learn what is usual from a recording in clear air, stream by equal name."""
    if not any(job.track.stream.name in reference for session in sessions for job in session.jobs):
        raise UsageError(
            f"the reference {reference.name} has no stream of the same name as a sensor of the recording",
            hint=f"it has {', '.join(stream.name for stream in reference)}",
        )
    settings = Settings([each for each in (config_of(reference), config) if each is not None])
    for grid, streams in _sessions(reference, settings):
        tracks = {s.name: Track[object](s, grid, settings.sensor_of(s.name)) for s in streams}
        with np.errstate(all="ignore"):
            for index in range(len(grid)):
                for job in (job for session in sessions for job in session.jobs):
                    job.learn_reference(tracks, index)


def collect(sessions: Sequence[Session]) -> VerdictTable:
    """Return all verdicts of sessions so far, in the order of stream, check and time."""
    for session in sessions:
        session.flush()
    parts = [((j.track.stream.name, j.check.id), j.tables) for each in sessions for j in each.jobs]
    tables = [table for _, each in sorted(parts, key=lambda part: part[0]) for table in each]
    judged = {j.track.stream.name: j.track.stream for each in sessions for j in each.jobs}
    streams = {name: (len(stream), stream.sha256) for name, stream in sorted(judged.items())}
    whole = pa.concat_tables(tables).combine_chunks() if tables else SCHEMA.empty_table()
    return VerdictTable(whole, streams)


def checkable(stream: Stream) -> bool:
    """Return whether a stream is judged: measurements of a sensor with times.

    Truth and estimates are what programs made of measurements: a gap in them is no fault of a sensor.
    """
    return stream.role not in COMPUTED_ROLES and _has_times(stream)


def _has_times(stream: Stream) -> bool:
    """Return whether a stream has values with times: no maps, frames, texts or commands.

    A command may stay as it is and come when somebody sends it; nor does it show that the robot moves.
    """
    return not (
        stream.clock == "index"
        or stream.name.startswith("truth/")
        or issubclass(stream.type, NOT_SENSORS)
        or NOT_SENSED.search(stream.logged_type or "") is not None
        or COMMANDS.search(stream.name) is not None
        or not len(stream)
        or bool(stream.meta.get("timeless"))
    )


def _sessions(recording: Recording, settings: Settings) -> Iterator[tuple[Grid, list[Stream]]]:
    """Yield streams that belong together in time, with the windows that tile all of it.

    The session is the union of the sensors' streams on one clock, but for those that a configuration keeps in
    another. Streams of the same clock that are far from all others have a session of their own: how far is in
    their grid. Truth and estimates that overlap a session follow its sensors, to be compared with.
    """
    kept: dict[tuple[str, str], list[Stream]] = {}
    computed = [each for each in recording if each.role in COMPUTED_ROLES and _has_times(each)]
    for stream in filter(checkable, recording):
        kept.setdefault((stream.clock, settings.session_of(stream.name)), []).append(stream)
    for (clock, session), streams in sorted(kept.items()):
        compared = [s for s in computed if s.clock == clock and settings.session_of(s.name) == session]
        groups = group_spans(streams)
        main = max(groups, key=lambda group: (len(group), sum(len(s) for *_, s in group)))
        for group in groups:
            start, end = min(a for a, _, _ in group), max(b for _, b, _ in group)
            apart = 0
            if len(group) < len(main) >= LEAST_OTHERS:
                apart = max(min(a for a, _, _ in main) - end, start - max(b for _, b, _ in main), 0)
            begin = min(a for a, _, _ in main)
            members = [s for *_, s in group]
            end = min(end + 1, LAST_NS)
            start = min(start, end - 1)
            overlapping = [s for s in compared if bool(np.any((s.t_ns >= start) & (s.t_ns < end)))]
            grid = _grid_of(members, start, end, round(settings.window * NS), apart / NS, begin)
            yield grid, [*members, *overlapping]


def _grid_of(
    streams: Sequence[Stream], start_ns: int, end_ns: int, window_ns: int, apart_s: float, main_ns: int
) -> Grid:
    """Return the windows of a session; they are longer than asked for if they would be too many."""
    while True:
        edges = tile_sampled((stream.t_ns for stream in streams), start_ns, end_ns, window_ns)
        if len(edges) <= MOST_WINDOWS + 1:
            return Grid(edges, window_ns, apart_s, main_ns)
        window_ns *= -(-(len(edges) - 1) // MOST_WINDOWS)


def _jobs_of(
    recording: Recording, tracks: Sequence[Track[object]], names: Sequence[str], settings: Settings
) -> list[Job]:
    context = CheckContext(recording.frames, recording.robot, recording)
    jobs: list[Job] = []
    for track in (each for each in tracks if checkable(each.stream)):
        for name in names:
            kind = catalogue.load(name)
            if not kind.inputs[0].accepts(track.stream.type):
                continue
            made = settings.make(name, track.stream, context)
            muted = settings.mutes(name, kind.id, track.stream.name)
            peers = [
                [t for t in tracks if t is not track and i.accepts(t.stream.type)] for i in kind.inputs[1:]
            ]
            jobs.append(Job(made, track, peers, muted))
    return jobs


@dataclass
class Job:
    """One check on one stream: what it says of each window, and what is declared.

    Attributes
    ----------
    peers : list of list of Track
        For each further input of the check.
    """

    check: Check
    track: Track[object]
    peers: list[list[Track[object]]] = field(default_factory=list[list[Track[object]]])
    muted: str = ""
    tables: list[pa.Table] = field(default_factory=list[pa.Table])

    def __post_init__(self) -> None:
        self._declaration = Declaration(self.check.k_on, self.check.k_off)
        self._threshold = self.check.thresholds
        self._verdicts: list[Verdict] = []
        self._reason = ""
        further: Sequence[Input] = self.check.inputs[1:]
        self._lacks = next((i for i, p in zip(further, self.peers, strict=True) if i.needed and not p), None)

    def judge(self, index: int) -> Verdict:
        """Return the verdict on a window; windows come in order."""
        return self._verdict(self.track.window(index), self._found(index))

    def learn_reference(self, tracks: Mapping[str, Track[object]], index: int) -> None:
        """Learn what is usual from a window of a reference, given its tracks by name."""
        own = tracks.get(self.track.stream.name)
        if (
            own is None
            or self._lacks is not None
            or len(window := own.window(index)) < self.check.min_samples
        ):
            return
        peers = [
            [tracks[peer.stream.name].window(index) for peer in each if peer.stream.name in tracks]
            for each in self.peers
        ]
        self.check.learn_reference(window, *peers)

    def keep(self, verdict: Verdict) -> None:
        """Keep a verdict for the table."""
        self._verdicts.append(verdict)

    def _found(self, index: int) -> Finding | Unknown:
        if self._lacks is not None:
            kinds = " or ".join(kind.__name__ for kind in self._lacks.types)
            return Unknown("NO_PEER", f"there is no stream of {kinds} to compare with")
        window: Window[object] = self.track.window(index)
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
            self.track.sensor, window.stream.name, window.t0_ns, window.t1_ns, self.check.id,
            self.check.version, state, raw, score, reason, found.note,
            evidence, self._threshold, found.n, peers, region, self.muted,
        )  # fmt: skip

    def flush(self) -> None:
        """Turn the verdicts so far into rows of a table."""
        if self._verdicts:
            self.tables.append(table_of(self._verdicts, {self.check.id: self.check.group}))
            self._verdicts = []


def _score(check: Check, found: Finding | Unknown) -> tuple[float | None, str]:
    """Return the smallest score of a finding's statistics, and the reason that goes with it."""
    if isinstance(found, Unknown):
        return None, found.reason
    least, reason = None, "TOO_FEW"
    for name, value in found.statistics.items():
        score = check.limits[name].score(float(value))
        if score is not None and (least is None or score < least):
            least, reason = score, check.limits[name].reason
    if least is None:
        return None, reason
    least = max(least, found.min_score)
    return least, (found.reason or reason) if least < 1.0 else ""
