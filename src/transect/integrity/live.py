"""Checks while a robot drives: samples are pushed, verdicts come when a window has ended.

`Monitor` takes samples of several streams from any source. `node_of` makes a check a node, with a port for
each of its inputs, for compounds and for `transect.engine.live.Live`. Both use the very checks that judge
recordings.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from transect.base.clocks import NS
from transect.engine.nodes import Node
from transect.engine.ports import BATCH, OUT, Port
from transect.errors import UsageError, did_you_mean
from transect.recording import Recording, Stream, arrow, stream_of_values
from transect.recording.arrow import PAYLOAD
from transect.types import Verdict

from . import catalogue
from .config import Config, Settings
from .model import Check, CheckContext
from .rules import MAX_SILENT_WINDOWS
from .runner import Job
from .windows import Grid, Track

MEMORY_S = 70.0
"""Seconds of samples that are kept: checks look back a minute at most."""


class _Buffer:
    """The newest samples of one stream, a table for each window."""

    def __init__(self, name: str, kind: type) -> None:
        self.name, self.kind = name, kind
        self._waiting: list[tuple[int, Any]] = []
        self._parts: deque[tuple[int, pa.Table, list[Any]]] = deque()

    def push(self, t_ns: int, value: Any) -> None:
        """Take a sample."""
        self._waiting.append((t_ns, value))

    @property
    def earliest_ns(self) -> int | None:
        """The earliest stamp of samples that no closed window has; None without any."""
        return min((t_ns for t_ns, _ in self._waiting), default=None)

    def close(self, end_ns: int) -> Stream:
        """Return the newest samples before a time as a stream; late ones belong to what is closed now."""
        ready = [sample for sample in self._waiting if sample[0] < end_ns]
        self._waiting = [sample for sample in self._waiting if sample[0] >= end_ns]
        if ready:
            values = [value for _, value in ready]
            self._parts.append((end_ns, _table_of(self.kind, [t for t, _ in ready], values), values))
        # Two parts stay: the samples before a silence tell how long it was.
        while len(self._parts) > 2 and self._parts[0][0] < end_ns - MEMORY_S * NS:
            self._parts.popleft()
        held = [value for *_, values in self._parts for value in values]
        tables = [table for _, table, _ in self._parts]
        table = pa.concat_tables(tables) if tables else _table_of(self.kind, [], [])
        loader = _loader(held) if PAYLOAD in table.column_names else None
        if loader is not None:
            place = table.column_names.index(PAYLOAD)
            numbers = arrow.strings([str(k) for k in range(len(held))])
            table = table.set_column(place, PAYLOAD, numbers)
        return Stream(self.name, self.kind, table, loader=loader)


def _loader(held: Sequence[Any]) -> Any:
    return lambda row: held[int(row[PAYLOAD])]  # pyright: ignore[reportUnknownLambdaType]


def _table_of(kind: type, times: Sequence[int], values: Sequence[Any]) -> pa.Table:
    """Return samples as the table of a stream; what has no columns is a payload."""
    t_ns = np.array(times, np.int64)
    fields = [f for f in dataclasses.fields(kind) if "columns" in f.metadata]
    if not fields:
        return stream_of_values("", t_ns, {PAYLOAD: [""] * len(times)}, type=kind).table
    columns: dict[str, Any] = {}
    for field in fields:
        names: list[str] = list(field.metadata["columns"])
        given = [getattr(value, field.name) for value in values]
        if not given or any(each is None for each in given):
            continue
        if len(names) > 1:
            columns.update(zip(names, np.array(given, np.float64).T, strict=True))
        elif isinstance(given[0], np.ndarray):
            columns[names[0]] = [np.asarray(each, np.float64) for each in given]
        else:
            columns[names[0]] = given if isinstance(given[0], str) else np.array(given, np.float64)
    return stream_of_values("", t_ns, columns, type=kind).table


class Monitor:
    """Judges streams while their samples come.

    Parameters
    ----------
    streams : mapping of str to type
        Names and types of the streams that are pushed.
    config : Config, optional
    checks : sequence of str, optional
        Names or identifiers; default all that take these types.
    start_ns : int, optional
        When the session begins; by default with the first sample.
    """

    def __init__(
        self,
        streams: Mapping[str, type],
        config: Config | None = None,
        *,
        checks: Sequence[str] | None = None,
        context: CheckContext | None = None,
        start_ns: int | None = None,
    ) -> None:
        self._settings = Settings([config] if config is not None else [])
        self._window_ns = round(self._settings.window * NS)
        self._buffers = {name: _Buffer(name, kind) for name, kind in streams.items()}
        self._edges = [] if start_ns is None else [start_ns]
        self._silent = 0  # closed windows in a row without a sample of any stream
        self._context = context or CheckContext(recording=Recording("live", ()))
        names = list(catalogue.load_all()) if checks is None else [catalogue.find(name) for name in checks]
        empty = Grid(np.zeros(1, np.int64), self._window_ns)
        self._jobs = [
            self._job(name, Track[object](Stream(stream, kind, arrow.empty()), empty))
            for stream, kind in streams.items()
            for name in names
            if catalogue.load(name).inputs[0].accepts(kind)
        ]

    def _job(self, name: str, track: Track[object]) -> Job:
        check = self._settings.make(name, track.stream, self._context)
        muted = self._settings.mutes(name, check.id, track.stream.name)
        return Job(check, track, self._peers_of(check, {track.stream.name: track}, track), muted)

    def _peers_of(
        self, check: Check, tracks: Mapping[str, Track[object]], own: Track[object]
    ) -> list[list[Track[object]]]:
        others = [name for name in self._buffers if name != own.stream.name]
        return [
            [tracks.get(name, own) for name in others if port.accepts(self._buffers[name].kind)]
            for port in check.inputs[1:]
        ]

    def push(self, stream: str, t_ns: int, value: Any) -> list[Verdict]:
        """Take a sample; return the verdicts on windows that had ended before it came."""
        if stream not in self._buffers:
            raise UsageError(
                f"there is no stream {stream!r} to push to", hint=did_you_mean(stream, self._buffers)
            )
        verdicts = self.advance(t_ns)
        self._buffers[stream].push(t_ns, value)
        return verdicts

    def advance(self, t_ns: int) -> list[Verdict]:
        """Say that it is a time; return the verdicts on windows that have ended since."""
        if not self._edges:
            self._edges.append(t_ns)
        verdicts: list[Verdict] = []
        while t_ns >= self._edges[-1] + self._window_ns:
            earliest = [each for b in self._buffers.values() if (each := b.earliest_ns) is not None]
            count = 1
            if self._silent >= MAX_SILENT_WINDOWS:  # the rest of a silence is one window
                count = max(1, (min([t_ns, *earliest]) - self._edges[-1]) // self._window_ns)
            self._edges.append(self._edges[-1] + count * self._window_ns)
            is_silent = all(each >= self._edges[-1] for each in earliest)
            self._silent = self._silent + 1 if is_silent else 0
            verdicts += self._judge()
        return verdicts

    def _judge(self) -> list[Verdict]:
        grid = Grid(np.array(self._edges, np.int64), self._window_ns)
        tracks = {
            name: Track[object](buffer.close(self._edges[-1]), grid, self._settings.sensor_of(name))
            for name, buffer in self._buffers.items()
        }
        verdicts: list[Verdict] = []
        with np.errstate(all="ignore"):
            for job in self._jobs:
                job.track = tracks[job.track.stream.name]
                job.peers = self._peers_of(job.check, tracks, job.track)
                verdicts.append(job.judge(len(grid) - 1))
        return verdicts


class _CheckNode(Node, every=1.0):
    """What checks that are nodes have in common: a tick a second, and the samples since the last one."""

    check: ClassVar[str] = ""

    def reset(self) -> None:
        """Nothing was pushed yet."""
        kinds = {name: port.type for name, port in self.inputs.items()}
        self._monitor = Monitor(kinds, checks=[self.check])

    def push(self, *samples: Sequence[Any]) -> Verdict | None:
        """Push what came, and return the verdict on the stream that is judged, once a window has ended."""
        first = next(iter(self.inputs))
        given = zip(self.inputs, samples, strict=False)
        came = [(value.t_ns, name, value) for name, values in given for value in values]
        found: list[Verdict] = []
        for t_ns, name, value in sorted(came, key=lambda each: each[:2]):
            found += self._monitor.push(name, t_ns, value)
        found += self._monitor.advance(self.ctx.time)
        judged = [verdict for verdict in found if verdict.stream == first]
        return judged[-1] if judged else None


def node_of(name: str, types: Mapping[str, type] | None = None) -> type[Node]:
    """Return a check as a class of nodes: an input for each of its own, a `Verdict` on `out` every second.

    Parameters
    ----------
    name : str
        Name or identifier of the check.
    types : mapping of str to type, optional
        Of inputs that take several types, the one that they get.
    """
    kind = catalogue.load(catalogue.find(name))
    inputs = {
        each.name: Port(each.name, (types or {}).get(each.name, each.types[0]), BATCH, default=())
        for each in kind.inputs
    }
    made = type(kind.__name__, (_CheckNode,), {"__doc__": kind.__doc__, "check": catalogue.find(name)})
    made.process = _CheckNode.push  # pyright: ignore[reportAttributeAccessIssue]
    made.inputs, made.outputs = inputs, {OUT: Port(OUT, Verdict)}
    made.interface, made.implementations = made, {kind.__name__: made}
    return made
