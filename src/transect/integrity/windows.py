"""Window of a stream as a check sees it: the samples that had arrived when the window ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.recording import Parsed, Stream, arrow
from transect.recording.arrow import PAYLOAD
from transect.recording.stream import values_between

T = TypeVar("T")


@dataclass(frozen=True)
class Grid:
    """Windows of a session, shared by all its streams."""

    edges: Ints  # (n + 1,) ns; window k is [edges[k], edges[k + 1])
    window_ns: int  # length of all windows but the last and those of long silences (`rules.tile_sampled`)
    apart_s: float = 0.0  # time between these streams and the recording's main group; 0 for the main group
    main_ns: int = 0  # start of the main group

    def __len__(self) -> int:
        return len(self.edges) - 1


class WindowedStream(Generic[T]):
    """A stream divided into the windows of a grid, with columns cached as arrays.

    A sample belongs to the window of its stamp, or to a later one if that window had ended when the
    sample arrived: the rows of a window are consecutive and in the order of arrival. A single stamp that
    is later than its successor does not end a window.
    """

    def __init__(self, stream: Stream, grid: Grid, sensor: str = "") -> None:
        self.stream, self.grid = stream, grid
        self.sensor = sensor or stream.name
        self._arrays: dict[str, Any] = {}
        self._lists: dict[str, tuple[int, int, Any]] = {}
        self._values: tuple[int, int, list[Any]] = (0, 0, [])

    @cached_property
    def bounds(self) -> list[int]:
        """First row of each window, and the number of rows."""
        t = self.stream.t_ns
        if not len(t):
            return [0] * (len(self.grid) + 1)
        reached = np.append(np.minimum(t[:-1], t[1:]), t[-1])
        index = np.searchsorted(self.grid.edges, reached, "right") - 1
        index = np.maximum.accumulate(np.clip(index, 0, len(self.grid) - 1))
        return np.searchsorted(index, np.arange(len(self.grid) + 1)).tolist()

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the columns."""
        return frozenset(self.stream.table.column_names)

    @cached_property
    def steps_s(self) -> Floats:
        """(n,) intervals to the previous sample, s; NaN for the first sample of each log."""
        steps = np.diff(self.stream.t_ns, prepend=self.stream.t_ns[:1]) / NS
        steps[[0, *self.stream.seams] if len(steps) else []] = np.nan
        return steps

    def window(self, index: int, back: int = 0) -> Window[T]:
        """Return window number `index`, extended by `back` earlier windows."""
        return Window(self, index, max(0, index - back))

    def column(self, name: str, start: int, stop: int) -> Any:
        """Return rows of a column: an array (n,) or (n, k), or a list of texts or unequal lists."""
        kind = self.stream.table.schema.field(name).type
        if pa.types.is_primitive(kind):
            if name not in self._arrays:
                self._arrays[name] = self.stream.column(name)
            return self._arrays[name][start:stop]
        kept = self._lists.get(name)
        if kept is None or kept[:2] != (start, stop):  # several checks use the same window
            part = pa.table({name: self.stream.table.column(name).slice(start, stop - start)})
            even = arrow.holds_numbers(kind) and not _is_ragged(part.column(0))
            rows: Any = arrow.numbers(part, name) if even else _rows_of(part, name)
            kept = self._lists[name] = (start, stop, rows)
        return kept[2]

    def values(self, start: int, stop: int) -> list[Any]:
        """Return rows as values of the stream's type; a repeated request is loaded only once."""
        if self._values[:2] != (start, stop):
            self._values = start, stop, list(values_between(self.stream, start, stop))
        return self._values[2]


def _rows_of(part: pa.Table, name: str) -> list[Any]:
    """Return the rows of a column as a list: texts, or arrays of unequal length."""
    if not arrow.holds_numbers(part.column(0).type):
        return part.column(0).to_pylist()
    flat, offsets = arrow.lists_of(part, name)
    return np.split(flat, offsets[1:-1])


def _is_ragged(column: pa.ChunkedArray) -> bool:
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return False
    lengths = [np.diff(np.from_dlpack(chunk.offsets)) for chunk in column.chunks if len(chunk)]
    return len(lengths) > 0 and len(np.unique(np.concatenate(lengths))) > 1


@dataclass(frozen=True, eq=False, slots=True)
class Window(Generic[T]):
    """Samples of one stream in [t0_ns, t1_ns), in the order of arrival."""

    windowed: WindowedStream[T]  # the whole stream; a causal check does not use it beyond `stop`
    index: int
    first: int  # number of the first window that is included (`history`)

    @property
    def stream(self) -> Stream:
        """Name, type, frame, tag and units of the stream."""
        return self.windowed.stream

    @property
    def t0_ns(self) -> int:
        """Start of the window."""
        return int(self.windowed.grid.edges[self.first])

    @property
    def t1_ns(self) -> int:
        """End of the window, exclusive."""
        return int(self.windowed.grid.edges[self.index + 1])

    @property
    def seconds(self) -> float:
        """Length of the regular windows of the session, s."""
        return self.windowed.grid.window_ns / NS

    @property
    def count(self) -> int:
        """Number of regular windows that this one replaces: more than one in a long silence."""
        grid = self.windowed.grid
        begin, end = (int(t) for t in grid.edges[self.index : self.index + 2])
        return max(1, -(-(end - begin) // grid.window_ns))

    @property
    def before(self) -> int:
        """Number of samples in the previous window."""
        return self.start - self.windowed.bounds[max(0, self.first - 1)]

    @property
    def start(self) -> int:
        """First row of the stream in the window."""
        return self.windowed.bounds[self.first]

    @property
    def stop(self) -> int:
        """Row after the last one of the window."""
        return self.windowed.bounds[self.index + 1]

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def t_ns(self) -> Ints:
        """(n,) stamps."""
        return self.stream.t_ns[self.start : self.stop]

    @property
    def log_ns(self) -> Ints | None:
        """(n,) times at which the samples were logged, None if unknown."""
        log_ns = self.stream.log_ns
        return None if log_ns is None else log_ns[self.start : self.stop]

    @property
    def steps_s(self) -> Floats:
        """(n,) intervals to the previous sample, s, which may be in an earlier window."""
        return self.windowed.steps_s[self.start : self.stop]

    @property
    def silence_s(self) -> float | None:
        """Time from the last sample to the end of the window, s; None before the first sample.

        The last sample time is the maximum of the three newest stamps, as a single stamp may go back.
        """
        if not self.stop:
            return None
        newest = int(self.stream.t_ns[max(0, self.stop - 3) : self.stop].max())
        return max(0, self.t1_ns - newest) / NS

    @property
    def is_over(self) -> bool:
        """Whether the stream has no later sample. Not causal: use it for the reason of a verdict only."""
        return self.stop == len(self.stream)

    def has(self, *names: str) -> bool:
        """Return whether the stream has all these columns."""
        return self.windowed.names.issuperset(names)

    def column(self, name: str) -> Any:
        """Return a column: an array (n,) or (n, k); a list for texts and for lists of unequal length."""
        return self.windowed.column(name, self.start, self.stop)

    def array(self, *names: str) -> Floats:
        """Return columns side by side, (n, k) float64; list columns give several."""
        if not len(self):
            return np.zeros((0, len(names)))
        parts = [np.asarray(self.column(name), np.float64).reshape(len(self), -1) for name in names]
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(self), 0))

    def values(self) -> Sequence[T]:
        """Return the samples as values; images and clouds are loaded once for all checks."""
        return self.windowed.values(self.start, self.stop)

    def payload_names(self) -> list[str] | None:
        """Return the file names of images and clouds, None for other types."""
        return self.column(PAYLOAD) if self.has(PAYLOAD) else None

    def history(self, seconds: float) -> Window[T]:
        """Return a window of this length, s, that ends with this one; shorter at the session's start."""
        grid = self.windowed.grid
        back = max(1, int(np.ceil(seconds * NS / grid.window_ns - 1e-9)))
        begin = int(grid.edges[self.index]) - (back - 1) * grid.window_ns
        first = int(np.searchsorted(grid.edges[: self.index + 1], begin, "right")) - 1
        return Window(self.windowed, self.index, max(0, first))

    def as_stream(self) -> Stream:
        """Return the samples of the window as a stream."""
        part = self.stream.table.slice(self.start, len(self))
        return self.stream.replace(source=Parsed(part), seams=())
