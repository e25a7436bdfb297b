"""Changes of columns and payloads of streams; types, units and names are kept."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import StreamError
from transect.recording import Stream, arrow
from transect.recording.arrow import PAYLOAD, T_NS
from transect.types import (
    Imu,
    JointState,
    LaserScan,
    NavFix,
    Odometry,
    PointCloud,
    Pose,
    RadarRange,
    RigidBodyState,
    WheelState,
    Wrench,
)
from transect.types import Twist as TwistType
from transect.types.returns import NO_RETURN, TOO_FAR

from .model import Change, Event, leave_unchanged, with_table

_MOTION = ("vx", "vy", "vz", "wx", "wy", "wz")
SIGNALS: dict[type, tuple[str, ...]] = {
    Imu: ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z"),
    NavFix: ("lat", "lon", "alt"),
    LaserScan: ("ranges",),
    RadarRange: ("range",),
    Pose: ("x", "y", "z"),
    RigidBodyState: ("x", "y", "z"),
    Odometry: _MOTION,
    TwistType: _MOTION,
    WheelState: ("wheel_velocity",),
    JointState: ("position",),
    Wrench: ("fx", "fy", "fz", "tx", "ty", "tz"),
}
"""Measured columns of each type, which may be noisy or biased."""
_COPIES = {"north": "x", "east": "y", "down": "z", "dnorth": "vx", "deast": "vy", "ddown": "vz"}
"""Columns of SDI's Nav that repeat others."""
EARTH_RADIUS_M = 6_371_000.0
"""Mean radius, to convert metres to radians of latitude."""


def signals(stream: Stream) -> list[str]:
    """Return the measured columns of a stream."""
    return [name for name in SIGNALS.get(stream.type, ()) if name in stream.columns]


def flat_values(table: pa.Table, name: str) -> tuple[NDArray[Any], Ints]:
    """Return a column flattened to floats (m,), and the row (m,) of each number."""
    kind = table.schema.field(name).type
    rows = np.arange(table.num_rows)
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        flat, offsets = arrow.lists_of(table, name)
        return flat, np.repeat(rows, np.diff(offsets))
    values = arrow.numbers(table, name)
    width = int(np.prod(values.shape[1:]))
    return values.reshape(-1).astype(np.float64), np.repeat(rows, width)


def with_flat(table: pa.Table, name: str, flat: Floats) -> pa.Table:
    """Replace the numbers of a column, in the order of `flat_values`."""
    field = table.schema.field(name)
    kind = field.type
    listed = pa.types.is_large_list(kind) or pa.types.is_list(kind)
    inner = kind.value_type if listed or pa.types.is_fixed_size_list(kind) else kind
    values = _as_stored(flat, inner)
    if listed:
        _, offsets = arrow.lists_of(table, name)
        column = arrow.ragged_from_offsets(values, offsets)
    elif pa.types.is_fixed_size_list(kind):
        column = arrow.from_numpy(values.reshape(-1, kind.list_size))
    else:
        column = arrow.from_numpy(values)
    place = table.column_names.index(name)
    return table.set_column(place, field.with_type(column.type), column)


def _as_stored(flat: Floats, kind: pa.DataType) -> NDArray[Any]:
    """Convert numbers to the type of a column; integers that became NaN are kept as floats."""
    if pa.types.is_integer(kind) and np.isfinite(flat).all():
        return np.rint(flat).astype(np.dtype(str(kind)))
    return flat.astype(np.float32) if pa.types.is_float32(kind) else flat


def with_texts(table: pa.Table, name: str, texts: Sequence[str]) -> pa.Table:
    """Replace the texts of a column."""
    place = table.column_names.index(name)
    column = arrow.strings(texts)
    return table.set_column(place, table.schema.field(name).with_type(column.type), column)


def find_changed(before: pa.Table, after: pa.Table, names: Sequence[str]) -> Mask:
    """Return the mask (n,) of the rows in which any of the columns differs; NaN equals NaN."""
    rows = np.zeros(before.num_rows, dtype=bool)
    for name in names:
        if pa.types.is_string(kind := before.schema.field(name).type) or pa.types.is_large_string(kind):
            pairs = zip(arrow.texts(before, name), arrow.texts(after, name), strict=True)
            rows |= np.fromiter((a != b for a, b in pairs), dtype=bool, count=len(rows))
            continue
        rows |= _differs(flat_values(before, name), flat_values(after, name), len(rows))
    return rows


def _differs(before: tuple[Floats, Ints], after: tuple[Floats, Ints], count: int) -> Mask:
    """Return the mask (count,) of the rows whose numbers, or the count of numbers, differ."""
    (old, row), (new, new_row) = before, after
    alike = np.bincount(row, minlength=count) == np.bincount(new_row, minlength=count)
    old, row, new = old[alike[row]], row[alike[row]], new[alike[new_row]]
    result = ~alike
    result[row[(old != new) & ~(np.isnan(old) & np.isnan(new))]] = True
    return result


def change_of(
    stream: Stream, table: pa.Table, names: Sequence[str], fraction: Floats | None = None
) -> Change:
    """Return the change of a stream by other columns; rows that differ are affected.

    Parameters
    ----------
    table : Table
        Its columns with the fault.
    names : sequence of str
        The columns that may differ.
    fraction : (n,) array, optional
        Affected fraction of each sample; 1 by default.
    """
    touched = find_changed(stream.table, table, names)
    if not touched.any():
        return leave_unchanged(stream)
    table = _update_copies(table, touched)
    fractions = np.ones(len(touched)) if fraction is None else fraction
    return Change(with_table(stream, table), touched, np.where(touched, fractions, 0.0))


def _update_copies(table: pa.Table, rows: Mask) -> pa.Table:
    """Update columns that repeat the values of others, in the given rows."""
    known = set(table.column_names)
    again: dict[str, Floats] = {
        name: flat_values(table, original)[0]
        for name, original in _COPIES.items()
        if {name, original} <= known
    }
    if {"speed", "course", "vx", "vy"} <= known:
        north, east = (flat_values(table, name)[0] for name in ("vx", "vy"))
        again |= {"speed": np.hypot(north, east), "course": np.arctan2(east, north) % (2 * np.pi)}
    for name, values in again.items():
        table = with_flat(table, name, np.where(rows, values, flat_values(table, name)[0]))
    return _update_range_errors(table) if {"ranges", "range_error"} <= known else table


def _update_range_errors(table: pa.Table) -> pa.Table:
    """Update `range_error` of scans: 0 for a range, else the laser's own code for no return."""
    absent, errors = np.isnan(flat_values(table, "ranges")[0]), flat_values(table, "range_error")[0]
    known, counts = np.unique(errors[np.isin(errors, NO_RETURN)], return_counts=True)
    usual = known[np.argmax(counts)] if len(known) else TOO_FAR
    return with_flat(table, "range_error", np.where(absent, np.where(errors > 0, errors, usual), 0.0))


def changed_fraction(stream: Stream, table: pa.Table, name: str) -> Floats:
    """Return the fraction (n,) of the numbers of a list column that differ in each row."""
    (old, row), (new, _) = flat_values(stream.table, name), flat_values(table, name)
    other = (old != new) & ~(np.isnan(old) & np.isnan(new))
    count = np.bincount(row, minlength=len(stream))
    return np.bincount(row, weights=other, minlength=len(stream)) / np.maximum(count, 1)


Alter = Callable[[int, Any], Any]
"""Takes the index of a sample and its payload; returns the payload with the fault."""
Altered = tuple[PointCloud, Mask]
_MARK = re.compile(r"([^!/]*)!(\d+)/(.*)", re.DOTALL)


def wrap(
    stream: Stream,
    event: Event,
    touched: Mask,
    fraction: Floats,
    alter: Alter | None = None,
    instead: Ints | None = None,
    other: Stream | None = None,
) -> Change:
    """Return a stream whose affected payloads are altered when they are loaded.

    Their names in the table are marked, so that a writer does not copy their original files; other payloads
    are copied as usual.

    Parameters
    ----------
    touched, fraction : (n,) array
        See `Change`.
    alter : callable, optional
        By default payloads are unchanged.
    instead : (n,) int64 array, optional
        Index of the sample whose payload each sample gets; by default its own.
    other : Stream, optional
        Stream that `instead` refers to; by default the stream itself.
    """
    if stream.loader is None or not touched.any():
        return leave_unchanged(stream)
    mark, origin = event.mark, other or stream
    marked = [f"{mark}!{i}/{n}" if touched[i] else n for i, n in enumerate(_names(stream))]

    def loader(row: Mapping[str, Any]) -> Any:
        match = _MARK.fullmatch(row[PAYLOAD])
        if match is None or match[1] != mark:
            return payload(stream, row)
        index = int(match[2])
        if instead is None:
            found = payload(stream, {**row, PAYLOAD: match[3]})
        else:
            found = _stamp(payload(origin, row_of(origin, int(instead[index]))), row[T_NS])
        return alter(index, found) if alter else found

    columns = {name: stream.table.column(name) for name in stream.table.column_names}
    table = pa.table({**columns, PAYLOAD: arrow.strings(marked)})
    # The raw messages of a bag would be written instead of the new payloads.
    kept = {key: value for key, value in stream.meta.items() if key not in ("channel", "raw")}
    return Change(
        with_table(stream, table).replace(loader=loader, meta=kept), touched, np.where(touched, fraction, 0.0)
    )


def _stamp(payload: Any, t_ns: int) -> Any:
    """Set the time of a payload to that of its sample, if it has one."""
    timed = isinstance(getattr(payload, "t_ns", None), int)
    return dataclasses.replace(payload, t_ns=t_ns) if timed else payload


def _names(stream: Stream) -> list[str]:
    """Return the names of the payloads; payloads generated from other columns have none."""
    known = PAYLOAD in stream.table.column_names
    return arrow.texts(stream.table, PAYLOAD) if known else [""] * len(stream)


def row_of(stream: Stream, index: int) -> dict[str, Any]:
    """Return a row as the argument of a loader."""
    return stream.table.slice(index, 1).to_pylist()[0]


def payload(stream: Stream, row: Mapping[str, Any]) -> Any:
    """Return the payload of a row."""
    if stream.loader is None:
        raise StreamError(f"{stream.name} has no payloads")
    return stream.loader(row)


def wrap_clouds(stream: Stream, event: Event, alter: Callable[[int, PointCloud], Altered]) -> Change:
    """Return a stream of clouds with the fault; each is loaded once to find whether it is affected.

    Parameters
    ----------
    alter : callable
        Takes the index of a sample and its cloud; returns the new cloud, and the mask (n,) of the points of
        the old one that are missing or moved.
    """
    touched, fraction = np.zeros(len(stream), dtype=bool), np.zeros(len(stream))
    for index in np.flatnonzero(event.inside(stream)).tolist():
        before: PointCloud = payload(stream, row_of(stream, index))
        after, moved = alter(index, before)
        touched[index] = not _same(before, after)
        fraction[index] = moved.mean() if len(moved) else 0.0
    return wrap(stream, event, touched, fraction, lambda index, cloud: alter(index, cloud)[0])


def _same(a: PointCloud, b: PointCloud) -> bool:
    return np.array_equal(a.points, b.points, equal_nan=True) and all(
        np.array_equal(a.fields[name], b.fields[name], equal_nan=a.fields[name].dtype.kind == "f")
        for name in a.fields
    )
