"""Online checks: samples are pushed as they are measured, verdicts are returned at the end of each window.

`Monitor` accepts samples of several streams from any source. `node_of` wraps a check in a node, with a port
for each of its inputs, for compounds and for `transect.engine.live.Live`. Both use the same checks as
`check` does for recordings.
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
from .config import Config, LayeredConfig
from .model import Check, CheckContext
from .rules import RULES
from .runner import Job
from .windows import Grid, WindowedStream


class _SampleBuffer:
    """Newest samples of one stream, one table for each window."""

    def __init__(self, name: str, kind: type, memory_s: float = 70.0) -> None:
        self.name, self.kind = name, kind
        self._memory_ns = memory_s * NS  # checks use the samples of the last minute at most
        self._waiting: list[tuple[int, Any]] = []
        self._parts: deque[tuple[int, pa.Table, list[Any]]] = deque()

    def push(self, t_ns: int, value: Any) -> None:
        """Add a sample."""
        self._waiting.append((t_ns, value))

    @property
    def earliest_ns(self) -> int | None:
        """Earliest stamp of the samples that are not in a closed window; None without any."""
        return min((t_ns for t_ns, _ in self._waiting), default=None)

    def close(self, end_ns: int) -> Stream:
        """Close the window that ends at a time, and return the newest samples with late ones as a stream."""
        ready = [sample for sample in self._waiting if sample[0] < end_ns]
        self._waiting = [sample for sample in self._waiting if sample[0] >= end_ns]
        if ready:
            values = [value for _, value in ready]
            self._parts.append((end_ns, _table_of(self.kind, [t for t, _ in ready], values), values))
        # At least two parts are kept: the samples before a silence determine its length.
        while len(self._parts) > 2 and self._parts[0][0] < end_ns - self._memory_ns:
            self._parts.popleft()
        kept = [value for *_, values in self._parts for value in values]
        tables = [table for _, table, _ in self._parts]
        table = pa.concat_tables(tables) if tables else _table_of(self.kind, [], [])
        loader = _loader(kept) if PAYLOAD in table.column_names else None
        if loader is not None:
            column = table.column_names.index(PAYLOAD)
            numbers = arrow.strings([str(k) for k in range(len(kept))])
            table = table.set_column(column, PAYLOAD, numbers)
        return Stream(self.name, self.kind, table, loader=loader)


def _loader(values: Sequence[Any]) -> Any:
    return lambda row: values[int(row[PAYLOAD])]  # pyright: ignore[reportUnknownLambdaType]


def _table_of(kind: type, times: Sequence[int], values: Sequence[Any]) -> pa.Table:
    """Return samples as the table of a stream; values without columns are payloads."""
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
    """Judges streams online, as their samples arrive.

    Parameters
    ----------
    streams : mapping of str to type
        Names and types of the streams that are pushed.
    config : Config, optional
    checks : sequence of str, optional
        Names or identifiers; default all checks of these types.
    start_ns : int, optional
        Start of the session; default the first sample.
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
        self._config = LayeredConfig([config] if config is not None else [])
        self._window_ns = round(self._config.window * NS)
        self._buffers = {name: _SampleBuffer(name, kind) for name, kind in streams.items()}
        self._edges = [] if start_ns is None else [start_ns]
        self._silent = 0  # consecutive closed windows without a sample of any stream
        self._context = context or CheckContext(recording=Recording("live", ()))
        names = list(catalogue.load_all()) if checks is None else [catalogue.find(name) for name in checks]
        empty = Grid(np.zeros(1, np.int64), self._window_ns)
        self._jobs = [
            self._job(name, WindowedStream[object](Stream(stream, kind, arrow.empty()), empty))
            for stream, kind in streams.items()
            for name in names
            if catalogue.load(name).inputs[0].accepts(kind)
        ]

    def _job(self, name: str, own: WindowedStream[object]) -> Job:
        check = self._config.make(name, own.stream, self._context)
        muted = self._config.mutes(name, check.id, own.stream.name)
        return Job(check, own, self._peers_of(check, {own.stream.name: own}, own), muted)

    def _peers_of(
        self, check: Check, streams: Mapping[str, WindowedStream[object]], own: WindowedStream[object]
    ) -> list[list[WindowedStream[object]]]:
        others = [name for name in self._buffers if name != own.stream.name]
        return [
            [streams.get(name, own) for name in others if port.accepts(self._buffers[name].kind)]
            for port in check.inputs[1:]
        ]

    def push(self, stream: str, t_ns: int, value: Any) -> list[Verdict]:
        """Add a sample; return the verdicts on windows that ended before it."""
        if stream not in self._buffers:
            raise UsageError(
                f"there is no stream {stream!r} to push to", hint=did_you_mean(stream, self._buffers)
            )
        verdicts = self.advance(t_ns)
        self._buffers[stream].push(t_ns, value)
        return verdicts

    def advance(self, t_ns: int) -> list[Verdict]:
        """Advance the time; return the verdicts on windows that have ended since."""
        if not self._edges:
            self._edges.append(t_ns)
        verdicts: list[Verdict] = []
        while t_ns >= self._edges[-1] + self._window_ns:
            earliest = [each for b in self._buffers.values() if (each := b.earliest_ns) is not None]
            count = 1
            if self._silent >= RULES.max_silent_windows:  # the rest of a silence is one window
                count = max(1, (min([t_ns, *earliest]) - self._edges[-1]) // self._window_ns)
            self._edges.append(self._edges[-1] + count * self._window_ns)
            is_silent = all(each >= self._edges[-1] for each in earliest)
            self._silent = self._silent + 1 if is_silent else 0
            verdicts += self._judge()
        return verdicts

    def _judge(self) -> list[Verdict]:
        grid = Grid(np.array(self._edges, np.int64), self._window_ns)
        streams = {
            name: WindowedStream[object](buffer.close(self._edges[-1]), grid, self._config.sensor_of(name))
            for name, buffer in self._buffers.items()
        }
        verdicts: list[Verdict] = []
        with np.errstate(all="ignore"):
            for job in self._jobs:
                job.windowed = streams[job.name]
                job.peers = self._peers_of(job.check, streams, job.windowed)
                verdicts.append(job.judge(len(grid) - 1))
        return verdicts


class _CheckNode(Node, every=1.0):
    """Base class of checks as nodes: once a second, they process the samples since the last tick."""

    check: ClassVar[str] = ""

    def reset(self) -> None:
        """Restart without samples."""
        kinds = {name: port.type for name, port in self.inputs.items()}
        self._monitor = Monitor(kinds, checks=[self.check])

    def push(self, *samples: Sequence[Any]) -> Verdict | None:
        """Push new samples, and return the newest verdict on the judged stream; None if no window ended."""
        first = next(iter(self.inputs))
        received = zip(self.inputs, samples, strict=False)
        new = [(value.t_ns, name, value) for name, values in received for value in values]
        found: list[Verdict] = []
        for t_ns, name, value in sorted(new, key=lambda each: each[:2]):
            found += self._monitor.push(name, t_ns, value)
        found += self._monitor.advance(self.ctx.time)
        judged = [verdict for verdict in found if verdict.stream == first]
        return judged[-1] if judged else None


def node_of(name: str, types: Mapping[str, type] | None = None) -> type[Node]:
    """Return a node class for a check: its inputs are those of the check, `out` is a `Verdict` every second.

    Parameters
    ----------
    name : str
        Name or identifier of the check.
    types : mapping of str to type, optional
        Types of the inputs that accept several.
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
