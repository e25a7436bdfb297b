"""Images and clouds, changed when they are loaded."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import StreamError
from transect.recording import Stream, arrow
from transect.recording.arrow import PAYLOAD, T_NS
from transect.types import PointCloud

from ._model import Change, Event, leave_alone, with_table

Alter = Callable[[int, Any], Any]
"""Takes the number of a sample and its payload; returns the payload with the fault."""
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
    """Return a stream whose touched payloads are altered as they are loaded.

    Their names in the table get a mark, so that a writer does not copy the file that is no longer theirs;
    payloads that are not touched are copied as ever.

    Parameters
    ----------
    touched, fraction : (n,) array
        See `Change`.
    alter : callable, optional
        Default: payloads stay as they are.
    instead : (n,) int64 array, optional
        The sample whose payload each sample gets, where that is not its own.
    other : Stream, optional
        Whose samples `instead` counts; default the stream itself.
    """
    if stream.loader is None or not touched.any():
        return leave_alone(stream)
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
    # What a bag keeps of its messages would be written in place of the new payloads.
    kept = {key: value for key, value in stream.meta.items() if key not in ("channel", "raw")}
    return Change(
        with_table(stream, table).replace(loader=loader, meta=kept), touched, np.where(touched, fraction, 0.0)
    )


def _stamp(payload: Any, t_ns: int) -> Any:
    """Return a payload with its sample's time, where it has one of its own."""
    timed = isinstance(getattr(payload, "t_ns", None), int)
    return dataclasses.replace(payload, t_ns=t_ns) if timed else payload


def _names(stream: Stream) -> list[str]:
    """Return the names of the payloads; those that are made from other columns have none."""
    known = PAYLOAD in stream.table.column_names
    return arrow.texts(stream.table, PAYLOAD) if known else [""] * len(stream)


def row_of(stream: Stream, index: int) -> dict[str, Any]:
    """Return a row as a loader takes it."""
    return stream.table.slice(index, 1).to_pylist()[0]


def payload(stream: Stream, row: Mapping[str, Any]) -> Any:
    """Return the payload of a row."""
    if stream.loader is None:
        raise StreamError(f"{stream.name} has no payloads")
    return stream.loader(row)


def wrap_clouds(stream: Stream, event: Event, alter: Callable[[int, PointCloud], Altered]) -> Change:
    """Return a stream of clouds with the fault; each is looked at once to know whether it is touched.

    Parameters
    ----------
    alter : callable
        Takes the number of a sample and its cloud; returns the new cloud, and which points (n,) of the old
        one are gone or elsewhere.
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
