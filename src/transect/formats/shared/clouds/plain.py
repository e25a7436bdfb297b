"""Points as plain numbers: rows of text (also of ASCII PCD, PLY and VTK), and raw float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Array
from transect.errors import ParseError, UnsupportedError
from transect.recording import Loss, arrow
from transect.recording.source import HEAD_BYTES, Buffer
from transect.recording.text import Tokens, bad_stamp, scan, whole_lines
from transect.types import PointCloud

from ..file_heads import LAYOUTS, MAX_INTENSITY, MAX_RANGE_M, MAX_RINGS, text_layout
from .points import PointColumns, columns_of

Lines = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextRows:
    """The rows of numbers in a text."""

    columns: list[Array]  # each (n,)
    row_count: int  # rows in the text, including bad ones
    losses: tuple[Loss, ...] = ()


def read_rows(
    body: Buffer,
    dtypes: Sequence[np.dtype[Any]],
    file: str,
    *,
    first_line: int = 1,
    skip: int = 0,
    max_rows: int = -1,
) -> TextRows:
    """Read rows of blank- or comma-separated numbers; rows with another number of values are losses.

    Parameters
    ----------
    body : buffer
        The text.
    dtypes : sequence of dtype
        One per number in a row; 64-bit integers are read exactly.
    file : str
        For losses.
    first_line : int
        Number of the text's first line in its file.
    skip, max_rows : int
        Rows to skip; maximum to read (-1: all).
    """
    size, truncated = whole_lines(body, file)
    tokens = scan(body, size)
    end = len(tokens.line) if max_rows < 0 else min(skip + max_rows, len(tokens.line))
    lines = np.arange(min(skip, end), end)
    fits = tokens.counts[lines] == len(dtypes)
    columns, usable = _convert_types(tokens, lines[fits], dtypes)
    fits[fits] = usable
    losses = _bad_row_losses(tokens.line[lines[~fits]] + first_line - 1, len(dtypes), file)
    if truncated and truncated.line is not None and (max_rows < 0 or len(lines) < max_rows):
        losses.append(Loss(file, truncated.reason, line=truncated.line + first_line - 1))
    return TextRows([column[usable] for column in columns], len(lines), tuple(losses))


def _bad_row_losses(lines: Lines, width: int, file: str) -> list[Loss]:
    reason = f"not a row of {width} numbers"
    return [Loss(file, reason, line=int(lines[0]), count=len(lines))] if len(lines) else []


def _convert_types(
    tokens: Tokens, lines: Lines, dtypes: Sequence[np.dtype[Any]]
) -> tuple[list[Array], NDArray[np.bool_]]:
    """Return the columns of the given lines, and which lines have only numbers of these types."""
    usable = np.ones(len(lines), dtype=bool)
    columns: list[Array] = []
    for number, dtype in enumerate(dtypes):
        usable &= ~tokens.is_word[tokens.first[lines] + number]
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                columns.append(tokens.column(number, lines).astype(dtype))
            continue
        values, is_integer = _integers(tokens, number, lines, dtype)
        usable &= is_integer
        columns.append(np.where(is_integer, values, 0).astype(dtype))
    return columns, usable


def _integers(
    tokens: Tokens, number: int, lines: Lines, dtype: np.dtype[Any]
) -> tuple[Array, NDArray[np.bool_]]:
    """Return a column of integers, and which ones fit into the type."""
    if dtype.itemsize == 8:
        exact = tokens.stamps(number, lines, 1)
        return exact, ~bad_stamp(exact) & (dtype.kind == "i" or exact >= 0)
    values, limits = tokens.column(number, lines), np.iinfo(dtype)
    return values, (values >= limits.min) & (values <= limits.max) & (values == np.trunc(values))


def text_of(columns: Mapping[str, Array], delimiter: str = " ") -> bytes:
    """Return columns as rows of text, each number with the fewest digits that read back the same."""
    import pyarrow.csv as pv

    table = pa.table({name: arrow.column(values) for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    pv.write_csv(table, sink, pv.WriteOptions(include_header=False, delimiter=delimiter))
    return sink.getvalue().to_pybytes()


def plausible_layout(data: Buffer) -> tuple[str, ...] | None:
    """Return the columns of raw float32 points by size and plausibility, or None if nothing is plausible.

    Five columns need whole ring numbers, four need an intensity that is never negative; else it is x y z.
    Truncated file (its size fits none): the first layout plausible for its complete points.
    """
    exact = [width for width in (5, 4, 3) if len(data) % (4 * width) == 0]
    for width in exact or (5, 4, 3):
        count = len(data) // (4 * width)
        if count and _plausible(np.frombuffer(data, "<f4", count * width).reshape(-1, width)):
            return LAYOUTS[width]
    return None


def raw_layout(data: Buffer) -> tuple[str, ...]:
    """Return the columns of raw float32 points: the plausible ones, else KITTI's four if the size allows."""
    return plausible_layout(data) or LAYOUTS[4 if len(data) % 16 == 0 or len(data) % 12 else 3]


def _plausible(rows: NDArray[np.float32]) -> bool:
    with np.errstate(invalid="ignore"):
        range_ok = not bool((np.abs(rows[:, :3]) > MAX_RANGE_M).any())
        if rows.shape[1] == 3:
            return range_ok
        intensity_ok = bool(((rows[:, 3] >= 0) & (rows[:, 3] <= MAX_INTENSITY)).all())
        if rows.shape[1] == 4:
            return range_ok and intensity_ok
        ring = rows[:, 4]
        return (
            range_ok
            and intensity_ok
            and bool(((ring >= 0) & (ring < MAX_RINGS) & (ring == np.trunc(ring))).all())
        )


def decode_raw(data: Buffer, name: str, columns: Sequence[str] | None = None) -> PointColumns:
    """Decode raw little-endian float32 points.

    Parameters
    ----------
    columns : sequence of str, optional
        Column names; found by `raw_layout` by default.
    """
    layout = tuple(columns) if columns else raw_layout(data)
    width = 4 * len(layout)
    count, rest = divmod(len(data), width)
    table = np.frombuffer(data, "<f4", count * len(layout)).reshape(-1, len(layout))
    return PointColumns(
        {key: table[:, i] for i, key in enumerate(layout)}, _truncation_losses(rest, count, width, name)
    )


def _truncation_losses(rest: int, count: int, width: int, name: str) -> tuple[Loss, ...]:
    reason = f"the last point has {rest} of {width} bytes"
    return (Loss(name, reason, byte=count * width),) if rest else ()


def raw_losses(size: int, layout: Sequence[str], name: str) -> tuple[Loss, ...]:
    """Compare the size of a raw file with its columns."""
    count, rest = divmod(size, 4 * len(layout))
    return _truncation_losses(rest, count, 4 * len(layout), name)


def encode_raw(cloud: PointCloud) -> bytes:
    """Encode x, y, z, then intensity and ring where the cloud has them, as little-endian float32."""
    if "ring" in cloud.fields and "intensity" not in cloud.fields:
        raise UnsupportedError("raw float32 points cannot have a ring without an intensity")
    layout = LAYOUTS[3 + ("intensity" in cloud.fields) + ("ring" in cloud.fields)]
    columns = columns_of(cloud.points, cloud.fields)
    with np.errstate(over="ignore"):  # overflow becomes inf
        return np.column_stack([columns[key].astype("<f4") for key in layout]).tobytes()


def decode_text(data: Buffer, name: str) -> PointColumns:
    """Decode text of one point per line, blank- or comma-separated, with or without a header."""
    layout, skip, _ = text_layout(bytes(data[:HEAD_BYTES]))
    if not layout:
        raise ParseError(f"{name} has no rows of numbers", where=name)
    at = 0
    for _ in range(skip):
        at = bytes(data[at : at + HEAD_BYTES]).find(b"\n") + at + 1
    float64 = np.dtype(np.float64)
    rows = read_rows(memoryview(data)[at:], [float64] * len(layout), name, first_line=skip + 1)
    return PointColumns(dict(zip(layout, rows.columns, strict=True)), rows.losses)


def encode_text(cloud: PointCloud) -> bytes:
    """Encode a cloud as CSV with a header, one column per number."""
    columns = columns_of(cloud.points, cloud.fields)
    return (",".join(columns) + "\n").encode() + text_of(columns, ",")
