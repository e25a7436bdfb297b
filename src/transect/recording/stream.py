"""One sensor's samples: an int64 time axis on a named clock, columns, and lazily loaded payloads."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base import clocks
from transect.base.arrays import Ints
from transect.base.clocks import Clock, TimeLike
from transect.errors import StreamError, TimeError
from transect.types import Record

from . import arrow
from .arrow import LOG_NS, PART, PAYLOAD, T_NS, numbers
from .column_forms import fit_columns
from .losses import Loss, Parsed
from .time_axis import Timing

Role = Literal["measurement", "derived", "truth", "estimate"]
Row = Mapping[str, Any]
LOGGED_TYPE = "logged_type"
"""Key of `Stream.meta`: name of the sample type in the log, such as sensor_msgs/msg/Imu."""
_ANGLES = ("roll", "pitch", "yaw")
_QUATERNION = ("qx", "qy", "qz", "qw")


@dataclass(frozen=True, eq=False)
class Sample:
    """One row of a stream."""

    stream: Stream
    index: int

    @property
    def t_ns(self) -> int:
        """Time on the stream's clock."""
        return int(self.stream.t_ns[self.index])

    @property
    def log_ns(self) -> int | None:
        """Time of logging, if known."""
        log_ns = self.stream.log_ns
        return None if log_ns is None else int(log_ns[self.index])

    @property
    def row(self) -> dict[str, Any]:
        """Column values by name, `t_ns` among them."""
        return self.stream.table.slice(self.index, 1).to_pylist()[0]

    @property
    def value(self) -> Any:
        """The sample as its transect type: built from the columns, or loaded from its file."""
        stream = self.stream
        if stream.loader is not None:
            return stream.loader(self.row)
        build = getattr(stream.type, "from_row", None)
        return build(self.row, t_ns=self.t_ns, frame=stream.frame, child=stream.child) if build else self.row

    payload = value

    def __repr__(self) -> str:
        stream = self.stream
        return f"Sample({stream.name!r}, {self.index}, {clocks.text_from_ns(self.t_ns, stream.clock)})"


_UNPRINTABLE = "[\0-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
"""Characters in names of damaged logs that file systems, databases, pages or terminals do not support."""


@dataclass(frozen=True, eq=False)
class Stream:
    """The samples of one sensor."""

    name: str  # Unique in its recording; `/` groups streams of one device
    type: type  # The transect type of a sample; `Record` for rows of named values
    # The columns: `t_ns` (int64), `log_ns` if known, then the type's canonical columns (see `transect.types`)
    # and all others, with units in the field metadata. A callable is called on first access.
    source: pa.Table | Parsed | Callable[[], Parsed]
    clock: Clock = "utc"  # Clock of `t_ns`
    role: Role = "measurement"
    tag: str = ""  # Distinguishes similar streams: left, right, main, aux, horizontal, ...
    frame: str = ""  # Frame of the values (the sensor's own, or the parent of a pose)
    child: str = ""  # For poses: the moving frame
    loader: Callable[[Row], Any] | None = None  # Loads the payload of a row (an Image, a PointCloud, ...)
    camera: str = ""  # For images: name of the camera in `Recording.cameras`
    seams: tuple[int, ...] = ()  # Indices at which recordings were joined; rates and gaps do not span them
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if not self.name.isprintable():
            object.__setattr__(self, "name", re.sub(_UNPRINTABLE, "\ufffd", self.name))

    @cached_property
    def parsed(self) -> Parsed:
        """Table, losses and notes; parsed on first access."""
        source = self.source
        if isinstance(source, pa.Table):
            return fit_columns(Parsed(source), self.type, self.name)
        return fit_columns(source if isinstance(source, Parsed) else source(), self.type, self.name)

    @property
    def table(self) -> pa.Table:
        """The columns, `t_ns` first."""
        return self.parsed.table

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Losses of the reader."""
        return self.parsed.losses

    @cached_property
    def t_ns(self) -> Ints:
        """(n,) int64 nanoseconds on `clock`, in the order recorded."""
        return arrow.numbers(self.table, T_NS)

    @cached_property
    def log_ns(self) -> Ints | None:
        """(n,) int64 nanoseconds at which each sample was logged, or None."""
        return arrow.numbers(self.table, LOG_NS) if LOG_NS in self.table.column_names else None

    def __len__(self) -> int:
        return self.table.num_rows

    def __getitem__(self, key: int | str) -> Any:
        """Return sample number `key`, or the column named `key` as a numpy array (strings as a list)."""
        if isinstance(key, str):
            return self.column(key)
        index = key + len(self) if key < 0 else key
        if not 0 <= index < len(self):
            raise StreamError(f"{self.name} has {len(self)} samples, no number {key}")
        return Sample(self, index)

    def __iter__(self) -> Iterator[Sample]:
        return (Sample(self, index) for index in range(len(self)))

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, {self.type.__name__}, {len(self)} samples, {self.clock})"

    def _repr_html_(self) -> str:
        from .summary import html_stream

        return html_stream(self)

    @property
    def logged_type(self) -> str | None:
        """Name of the sample type in the log, such as sensor_msgs/msg/Imu; None if unknown."""
        name = self.meta.get(LOGGED_TYPE)
        return None if name is None else str(name)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the value columns (without times and payload)."""
        return tuple(n for n in self.table.column_names if n not in (T_NS, LOG_NS, PAYLOAD, PART))

    @property
    def units(self) -> dict[str, str]:
        """Unit of each column."""
        return {f.name: arrow.unit_of(f) for f in self.table.schema}

    def column(self, name: str) -> Any:
        """Return a column: numbers as (n,) or (n, k) array, text and other values as a list."""
        kind = self.table.schema.field(name).type if name in self.table.column_names else None
        if kind is not None and not arrow.holds_numbers(kind):
            return self.table.column(name).to_pylist()
        return arrow.numbers(self.table, name)

    def array(self, *names: str) -> NDArray[np.float64]:
        """Return several columns side by side as an (n, len(names)) array."""
        return np.column_stack([np.asarray(self.column(n), dtype=np.float64) for n in names])

    @cached_property
    def _order(self) -> Ints | None:
        """Indices that sort the time axis, or None if it is sorted."""
        t = self.t_ns
        return None if not len(t) or bool((t[1:] >= t[:-1]).all()) else np.argsort(t, kind="stable")

    def _time(self, time: TimeLike) -> int:
        first = int(self.t_ns.min()) if len(self) else 0
        return clocks.resolve(time, self.meta.get("first_ns", first), self.clock)

    def nearest(self, times: TimeLike | Ints) -> Any:
        """Return the index (or indices) of the sample nearest to a time or to (m,) int64 times."""
        if not len(self):
            raise StreamError(f"{self.name} has no samples")
        from transect.geometry.interpolation import nearest_index

        many = isinstance(times, np.ndarray)
        wanted = times if many else np.array([self._time(times)], dtype=np.int64)
        order = self._order
        found = nearest_index(self.t_ns if order is None else self.t_ns[order], wanted)
        found = found if order is None else order[found]
        return found if many else int(found[0])

    def at(self, time: TimeLike) -> Sample:
        """Return the sample nearest to a time (`12:04:31.2`, `+60s`, int ns, ...)."""
        return Sample(self, int(self.nearest(time)))

    def between(self, start: TimeLike | None = None, end: TimeLike | None = None) -> Stream:
        """Return the samples in [start, end); a view if the time axis is sorted."""
        keep = np.ones(len(self), dtype=bool)
        if start is not None:
            keep &= self.t_ns >= self._time(start)
        if end is not None:
            keep &= self.t_ns < self._time(end)
        return self.take(keep)

    slice = between

    def take(self, keep: NDArray[np.bool_]) -> Stream:
        """Return the samples where `keep` is true."""
        inside = np.flatnonzero(keep)
        if len(inside) and inside[-1] - inside[0] + 1 == len(inside):
            table = self.table.slice(int(inside[0]), len(inside))
        else:
            table = self.table.filter(arrow.from_numpy(keep))
        seams = tuple(int(s) for s in np.searchsorted(inside, self.seams)) if self.seams else ()
        return self.replace(source=Parsed(table), seams=tuple(s for s in seams if 0 < s < len(inside)))

    def replace(self, **changes: Any) -> Stream:
        """Return the stream with some attributes changed."""
        return dataclasses.replace(self, **changes)

    def interpolate(
        self, times: Ints, names: Sequence[str] | None = None, max_gap: float | None = None
    ) -> dict[str, NDArray[np.float64]]:
        """Interpolate columns to other times: linear, and SLERP for qx qy qz qw.

        Roll, pitch and yaw are unwrapped, and may therefore exceed one turn.

        Parameters
        ----------
        times : (m,) int64 array
            Nanoseconds on the stream's clock.
        names : sequence of str, optional
            Columns; default all numeric ones.
        max_gap : float, optional
            Seconds; the result is NaN between samples further apart, and outside the span.

        Returns
        -------
        dict of str to (m,) or (m, k) array
        """
        from transect.geometry.interpolation import (
            Limits,
            interpolate_attitudes,
            interpolate_columns,
            unwrap,
        )

        if len(self) < 2:
            raise StreamError(f"{self.name} has too few samples to interpolate", why=f"it has {len(self)}")
        names = list(names) if names is not None else [n for n in self.columns if self._is_numeric(n)]
        order = self._order if self._order is not None else slice(None)
        t = self.t_ns[order]
        limits = Limits(gap_ns=None if max_gap is None else round(max_gap * clocks.NS))
        result: dict[str, NDArray[np.float64]] = {}
        if set(_QUATERNION) <= set(names):
            q = interpolate_attitudes(t, self.array(*_QUATERNION)[order], times, limits)
            result.update({name: q[:, i] for i, name in enumerate(_QUATERNION)})
        for name in names:
            if name not in result:
                values = np.asarray(self.column(name), dtype=np.float64)[order]
                values = unwrap(values) if name in _ANGLES else values
                result[name] = interpolate_columns(t, values, times, limits)
        return {name: result[name] for name in names}

    def _is_numeric(self, name: str) -> bool:
        kind = self.table.schema.field(name).type
        return pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_fixed_size_list(kind)

    def to_numpy(self) -> dict[str, Any]:
        """Return all columns by name: arrays of numbers, and lists of other values."""
        return {name: self.column(name) for name in self.table.column_names}

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame indexed by time (UTC stamps on the utc clock, else ns)."""
        frame = self.table.to_pandas()
        if self.clock == "utc":
            import pandas as pd  # pyright: ignore[reportMissingImports]

            frame.index = pd.to_datetime(frame[T_NS], unit="ns", utc=True).rename("time")
        else:
            frame = frame.set_index(T_NS, drop=False)
        return frame

    def to_polars(self) -> Any:
        """Return a polars DataFrame."""
        import polars as pl  # pyright: ignore[reportMissingImports]

        return pl.from_arrow(self.table)

    @cached_property
    def sha256(self) -> str:
        """Hash of all columns and attributes; payloads are represented by their file names only."""
        from .content_hash import hash_stream

        return hash_stream(self)

    @cached_property
    def timing(self) -> Timing:
        """Span, rate, gaps and disorder of the time axis."""
        return Timing.of(arrow.LazyColumns(self.table, T_NS), self.seams)


def stream_of_values(name: str, t_ns: Ints, columns: Mapping[str, Any], **attributes: Any) -> Stream:
    """Return a stream from arrays; units are those of the type's canonical columns unless given."""
    kind: type = attributes.pop("type", Record)
    units = {**getattr(kind, "units", dict)(), **attributes.pop("units", {})}
    log_ns = attributes.pop("log_ns", None)
    if any(len(v) != len(t_ns) for v in columns.values()):
        raise TimeError(f"{name}: columns and times have different lengths")
    return Stream(name, kind, arrow.table(t_ns, columns, units=units, log_ns=log_ns), **attributes)


def values_between(stream: Stream, start: int, stop: int) -> Iterator[Any]:
    """Yield the values of samples `start` to `stop` (row numbers), equal to each sample's `value`.

    Payloads are loaded one by one as the iterator is advanced; values of columns are built together.
    """
    if stream.loader is None and _is_plain(stream):
        return _build(stream, start, stop)
    return (Sample(stream, index).value for index in range(start, stop))


def _is_plain(stream: Stream) -> bool:
    """Return whether values can be built from whole columns: a dataclass of numbers without nulls."""
    kind, table = stream.type, stream.table
    if kind is Record or not dataclasses.is_dataclass(kind) or hasattr(kind, "__post_init__"):
        return False
    wanted = [name for names in _columns_of(kind).values() for name in names if name in table.column_names]
    return all(
        (
            pa.types.is_floating(table.schema.field(name).type)
            or pa.types.is_integer(table.schema.field(name).type)
        )
        and table.column(name).null_count == 0
        for name in wanted
    )


def _columns_of(kind: type) -> dict[str, tuple[str, ...]]:
    fields = dataclasses.fields(kind)
    return {f.name: f.metadata["columns"] for f in fields if "columns" in f.metadata}


def _build(stream: Stream, start: int, stop: int) -> Iterator[Any]:
    """Build values from columns."""
    kind, table = stream.type, stream.table.slice(start, stop - start)
    columns = {name: _column(table, names) for name, names in _columns_of(kind).items() if _has(table, names)}
    empty = kind.from_row({}, frame=stream.frame, child=stream.child)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    constant: dict[str, Any] = {k: v for k, v in vars(empty).items() if k not in columns}  # pyright: ignore[reportUnknownArgumentType]
    if "t_ns" in constant:
        columns["t_ns"] = numbers(table, T_NS).tolist
    rows = zip(*(column() for column in columns.values()), range(stop - start), strict=False)
    return _fill(kind, constant, tuple(columns), rows)


def _fill(kind: type, template: dict[str, Any], names: tuple[str, ...], rows: Iterator[Any]) -> Iterator[Any]:
    """Yield values by setting `__dict__`, three times as fast as `__init__` of a frozen dataclass."""
    descriptor = next(vars(each)["__dict__"] for each in kind.__mro__ if "__dict__" in vars(each))
    make, fill = object.__new__, descriptor.__set__
    if len(names) == 3:  # fast path of Imu and Pose: two vectors and the time
        first, second, third = names
        for a, b, c, _ in rows:
            values = template.copy()
            values[first], values[second], values[third] = a, b, c
            value = make(kind)
            fill(value, values)
            yield value
        return
    for row in rows:
        value = make(kind)
        fill(value, {**template, **dict(zip(names, row, strict=False))})
        yield value


def _has(table: pa.Table, names: tuple[str, ...]) -> bool:
    return any(name in table.column_names for name in names)


def _column(table: pa.Table, names: tuple[str, ...]) -> Callable[[], Any]:
    """Return a function that returns the rows of a field: numbers, or read-only (k,) arrays."""
    if len(names) == 1:
        return numbers(table, names[0]).tolist
    given = set(table.column_names)
    none = np.full(len(table), np.nan)
    rows = np.column_stack(
        [np.asarray(numbers(table, name), np.float64) if name in given else none for name in names]
    )
    rows.flags.writeable = False
    return lambda: iter(rows)
