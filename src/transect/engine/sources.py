"""Sources: the samples of several streams in waves of equal time, late ones left out and counted.

Order of arrival is log time, else file order. A sample is late when it is older than the newest stamp seen
minus the reorder horizon; all others come in the order of (time, stream name, sequence).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from transect.errors import TimeError
from transect.recording import Stream
from transect.recording.values import values_between

Ints = NDArray[np.int64]
Clock = Literal["sample", "log"]
CHUNK = 4096
"""Samples per stream that are put in order at a time: memory is flat, whatever the recording's length."""
Waves = Iterator[tuple[int, int, Any]]
TOGETHER = -1
"""In place of the channel: the wave has several samples, and the value is a list of (channel, value)."""


@dataclass
class Line:
    """One stream as it is played.

    Attributes
    ----------
    times : (n,) int64 array
        Of the samples that are not late, in ascending order.
    rows : (n,) int64 array or None
        Their rows in the stream; None where these are 0, 1, 2, ...
    late : int
        How many were left out.
    offset_ns : int
        Added to its stamps.
    """

    stream: Stream
    times: Ints
    rows: Ints | None
    late: int
    channels: tuple[int, ...] = ()
    position: int = field(default=0)

    def values(self, start: int, stop: int) -> Iterator[Any]:
        """Yield the values of the samples in that stretch of `times`."""
        if self.rows is None:
            return values_between(self.stream, start, stop)
        rows = self.rows[start:stop]
        return (next(values_between(self.stream, row, row + 1)) for row in rows.tolist())


def lines_of(streams: Sequence[Stream], clock: Clock = "sample", reorder_ns: int = 0) -> list[Line]:
    """Return streams ready to be played, in the order of their names.

    Parameters
    ----------
    streams : sequence of Stream
        On one clock.
    clock : {"sample", "log"}
        By which stamps they are played; `log` needs every stream to have log times.
    reorder_ns : int
        The reorder horizon.
    """
    streams = sorted(streams, key=lambda s: s.name)
    timeless = [s for s in streams if s.meta.get("timeless")]
    if timeless and len(timeless) < len(streams):
        return _with_timeless(
            timeless, lines_of([s for s in streams if s not in timeless], clock, reorder_ns)
        )
    clocks = {s.clock for s in streams}
    if len(clocks) > 1:
        named = "; ".join(
            f"{c}: {', '.join(s.name for s in streams if s.clock == c)}" for c in sorted(clocks)
        )
        raise TimeError(
            "streams on different clocks cannot be merged", why=named, hint="--offset STREAM=SECONDS"
        )
    late = _late_by_log(streams, reorder_ns) if clock == "sample" else None
    return [_line(s, clock, reorder_ns, late[k] if late else None) for k, s in enumerate(streams)]


def _with_timeless(timeless: Sequence[Stream], timed: Sequence[Line]) -> list[Line]:
    """Return also what has no time, such as a map: it is there from the first sample on."""
    first = min((int(line.times[0]) for line in timed if len(line.times)), default=0)
    lines = [Line(s, np.full(len(s), first, np.int64), None, 0) for s in timeless]
    return sorted([*timed, *lines], key=lambda line: line.stream.name)


def _line(stream: Stream, clock: Clock, reorder_ns: int, late: NDArray[np.bool_] | None) -> Line:
    times = stream.t_ns
    if clock == "log":
        if stream.log_ns is None:
            raise TimeError(f"{stream.name} has no log times", hint="play by --clock sample")
        times = stream.log_ns
    sorted_already = len(times) < 2 or bool((times[1:] >= times[:-1]).all())
    if late is None and not sorted_already:
        late = times < np.maximum.accumulate(times) - reorder_ns
    if late is not None and not late.any():
        late = None
    if late is None and sorted_already:
        return Line(stream, times, None, 0)
    kept = np.flatnonzero(~late) if late is not None else np.arange(len(times))
    rows = kept[np.argsort(times[kept], kind="stable")]
    return Line(stream, times[rows], rows, len(times) - len(rows))


def _late_by_log(streams: Sequence[Stream], reorder_ns: int) -> list[NDArray[np.bool_]] | None:
    """Return which samples came after a newer one by more than the horizon; None if no log times tell."""
    if not streams or any(s.log_ns is None for s in streams):
        return None
    delays = [s.log_ns - s.t_ns for s in streams if s.log_ns is not None and len(s)]
    if not delays or max(int(d.max()) for d in delays) - min(int(d.min()) for d in delays) < reorder_ns:
        return [np.zeros(len(s), np.bool_) for s in streams]
    logged = np.concatenate([s.log_ns for s in streams if s.log_ns is not None])
    times = np.concatenate([s.t_ns for s in streams])
    arrival = np.argsort(logged, kind="stable")
    late = np.zeros(len(times), np.bool_)
    late[arrival] = times[arrival] < np.maximum.accumulate(times[arrival]) - reorder_ns
    return np.split(late, np.cumsum([len(s) for s in streams])[:-1])


def waves(lines: Sequence[Line], after_ns: int | None = None, chunk: int = CHUNK) -> Waves:
    """Yield (time, channel, value) in ascending time; ties by stream name, then sequence.

    Samples of equal time come together: (time, `TOGETHER`, [(channel, value), ...]).

    Parameters
    ----------
    lines : sequence of Line
        In the order of their names.
    after_ns : int, optional
        Begin with the first sample later than that.
    chunk : int
        Samples per stream that are ordered at a time; changes nothing in what is yielded.
    """
    for line in lines:
        line.position = 0 if after_ns is None else int(np.searchsorted(line.times, after_ns, "right"))
    return chain.from_iterable(_chunks(lines, chunk))


def _chunks(lines: Sequence[Line], chunk: int) -> Iterator[Waves]:
    """Yield the waves in stretches that every stream's next `chunk` samples reach over."""
    while open_lines := [line for line in lines if line.position < len(line.times)]:
        until = min(int(line.times[min(line.position + chunk, len(line.times)) - 1]) for line in open_lines)
        yield _chunk(open_lines, until)


def _chunk(lines: Sequence[Line], until_ns: int) -> Waves:
    """Return the waves up to a time (inclusive), in one stable sort.

    The iterators are those of `itertools`: at a microsecond per sample a Python frame more would be felt.
    """
    times: list[Ints] = []
    values: list[Iterator[Any]] = []
    for line in lines:
        stop = int(np.searchsorted(line.times, until_ns, "right"))
        times.append(line.times[line.position : stop])
        values.append(line.values(line.position, stop))
        line.position = stop
    together = np.concatenate(times)
    which = np.repeat(np.arange(len(lines)), [len(t) for t in times])
    order = np.argsort(together, kind="stable")
    together = together[order]
    turns = which[order].tolist()
    fetched = map(next, map(values.__getitem__, turns))
    channels = [line.channels for line in lines]
    if all(len(c) == 1 for c in channels) and not bool((together[1:] == together[:-1]).any()):
        only = np.array([c[0] for c in channels])[which[order]]
        return zip(together.tolist(), only.tolist(), fetched, strict=True)
    return _grouped(zip(together.tolist(), map(channels.__getitem__, turns), fetched, strict=True))


def _grouped(samples: Iterator[tuple[int, tuple[int, ...], Any]]) -> Waves:
    """Put samples of equal time together."""
    for t_ns, same in groupby(samples, key=itemgetter(0)):
        wave = [(channel, value) for _, channels, value in same for channel in channels]
        yield (t_ns, *wave[0]) if len(wave) == 1 else (t_ns, TOGETHER, wave)
