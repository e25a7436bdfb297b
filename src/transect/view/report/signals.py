"""The numbers of streams over time, thinned block by block so that no spike is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from transect.base.clocks import NS
from transect.geometry.decimation import Extremes
from transect.recording import Recording, Stream
from transect.recording.arrow import T_NS, Rows, block_ranges, unit_of

from ..axes import Axis
from .facts import Signal

PARTS = 360
"""Parts of an axis whose extremes are kept."""
WIDEST = 4
"""Numbers of a list that are drawn, each by itself; longer lists are scans and matrices."""
OF_STREAM, IN_ALL = 6, 42
"""Signals at most."""
TELLS_LITTLE = re.compile(r"q[xyzw]|.*(cov|std|sigma|seq|stamp|time).*|.*_id|id").fullmatch
"""Names of columns that say how sure a sensor is, or count: not what it measured."""


def signals_of(recording: Recording, axis_of: dict[str, Axis], prefix: str) -> tuple[tuple[Signal, ...], int]:
    """Return what sensors measured over time, and how many more signals there are.

    Parameters
    ----------
    axis_of : mapping
        Axis of each stream that has times; others are drawn over their number.
    prefix : str
        Of the axes of numbers.
    """
    found: list[Signal] = []
    more = 0
    for number, stream in enumerate(recording):
        names = list(_columns(stream)) if stream.role != "truth" and len(stream) > 1 else []
        axis = axis_of.get(stream.name) or Axis(f"{prefix}{number}", "index", 0, NS * (len(stream) - 1))
        mine = 0
        for name in names:
            if mine >= OF_STREAM or len(found) >= IN_ALL:
                more += 1
                continue
            drawn = [
                signal for signal in _signals(stream, name, axis) if min(signal.values) < max(signal.values)
            ]
            found += drawn
            mine += len(drawn)
    return tuple(found), more


def _columns(stream: Stream) -> Iterator[str]:
    """Yield the columns that are single numbers, or short lists of them."""
    for name in stream.columns:
        kind = stream.table.schema.field(name).type
        few = pa.types.is_fixed_size_list(kind) and kind.list_size <= WIDEST
        inner = kind.value_type if few else kind
        if (pa.types.is_floating(inner) or pa.types.is_integer(inner)) and not TELLS_LITTLE(name.lower()):
            yield name


def _signals(stream: Stream, name: str, axis: Axis) -> Iterator[Signal]:
    times, rows = Rows(stream.table, T_NS), Rows(stream.table, name)
    kind = stream.table.schema.field(name).type
    width = kind.list_size if pa.types.is_fixed_size_list(kind) else 1
    curves = [Extremes(0.0, axis.duration_s, PARTS) for _ in range(width)]
    for a, b in block_ranges(0, len(stream)):
        begin = a + (a > 0)  # blocks share a row, which is counted once
        x = np.arange(begin, b, dtype=np.float64)
        if axis.clock != "index":
            x = (times[begin:b] - axis.start_ns) / NS
        values = np.asarray(rows[begin:b], np.float64).reshape(len(x), width)
        for curve, column in zip(curves, values.T, strict=True):
            curve.add(x, column)
    unit = unit_of(stream.table.schema.field(name))
    for number, curve in enumerate(curves):
        seconds, column = curve.curve()
        if len(column) > 1:
            label = name if width == 1 else f"{name}[{number}]"
            step = 0.0 if curve.exact else axis.duration_s / PARTS
            yield Signal(stream.name, label, unit, axis, seconds.tolist(), column.tolist(), curve.count, step)
