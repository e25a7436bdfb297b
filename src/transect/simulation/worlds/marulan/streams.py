"""Streams that are simulated in blocks when they are asked for, so that hours need little memory.

A block's random numbers depend on the seed, the stream and the block alone: any slice of a day has the rows
that the whole day has. The time axis is known without simulating; `between` and `take` of neighbouring rows
(and so `Recording.slice`) simulate nothing. Asking for `table`, or a column, simulates the rows of the stream
at hand, and these stay in memory: slice first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.base.clocks import TimeLike
from transect.recording import Parsed, Stream

Make = Callable[[Ints], pa.Table]
"""From the numbers of a block's rows to the rows."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows that are made in blocks.

    Attributes
    ----------
    times : (n,) int64 array
        Of all rows, ns.
    rows : int
        In a block; the last may have less.
    make : callable
        Makes whole blocks.
    """

    times: Ints
    rows: int
    make: Make

    def table(self, begin: int, end: int) -> pa.Table:
        """Return the rows from `begin` up to `end`."""
        if begin >= end:
            return self.table(0, 1).slice(0, 0)
        first, last = begin // self.rows, -(-end // self.rows)
        edges = [min(i * self.rows, len(self.times)) for i in range(first, last + 1)]
        tables = [self.make(np.arange(a, b)) for a, b in pairwise(edges)]
        return pa.concat_tables(tables).slice(begin - edges[0], end - begin)


def _no_blocks() -> Blocks:
    return Blocks(np.zeros(0, np.int64), 1, lambda number: pa.table({}))


@dataclass(frozen=True, eq=False)
class SimulatedStream(Stream):
    """A stream whose rows `begin` up to `end` of `blocks` are made when they are asked for."""

    blocks: Blocks = field(default_factory=_no_blocks)
    begin: int = 0
    end: int = 0

    @property
    def t_ns(self) -> Ints:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.blocks.times[self.begin : self.end]

    def __len__(self) -> int:
        return self.end - self.begin

    def between(self, start: TimeLike | None = None, end: TimeLike | None = None) -> Stream:
        t_ns = self.t_ns
        first = 0 if start is None else int(np.searchsorted(t_ns, self._time(start)))
        last = len(t_ns) if end is None else int(np.searchsorted(t_ns, self._time(end)))
        return _cut(self, self.begin + first, self.begin + max(first, last))

    slice = between

    def take(self, keep: NDArray[np.bool_]) -> Stream:
        inside = np.flatnonzero(keep)
        if len(inside) and inside[-1] - inside[0] + 1 == len(inside):
            return _cut(self, self.begin + int(inside[0]), self.begin + int(inside[-1]) + 1)
        return super().take(keep)

    def replace(self, **changes: Any) -> Stream:
        if "source" not in changes:
            return dataclasses.replace(self, **changes)
        kept = {f.name: getattr(self, f.name) for f in dataclasses.fields(Stream)}
        return Stream(**{**kept, **changes})


def simulated(name: str, kind: type, blocks: Blocks, **attributes: Any) -> SimulatedStream:
    """Return a stream of all rows of `blocks`; attributes as of `Stream`."""
    n = len(blocks.times)
    source = partial(_parse, blocks, 0, n)
    return SimulatedStream(name, kind, source, blocks=blocks, begin=0, end=n, **attributes)


def _cut(stream: SimulatedStream, begin: int, end: int) -> SimulatedStream:
    source = partial(_parse, stream.blocks, begin, end)
    return dataclasses.replace(stream, source=source, begin=begin, end=end)


def _parse(blocks: Blocks, begin: int, end: int) -> Parsed:
    return Parsed(blocks.table(begin, end))
