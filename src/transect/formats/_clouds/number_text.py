"""Rows of numbers as text, read and written: the body of ASCII point clouds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Array
from transect.recording import Loss, arrow
from transect.recording.source import Buffer
from transect.recording.text import Tokens, bad_stamp, scan, whole_lines

Lines = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of numbers in a text.

    Attributes
    ----------
    columns : list of (n,) array
    found : int
        How many rows stand in the text, the bad ones among them.
    losses : tuple of Loss
    """

    columns: list[Array]
    found: int
    losses: tuple[Loss, ...] = ()


def read_rows(
    body: Buffer,
    dtypes: Sequence[np.dtype[Any]],
    file: str,
    *,
    first_line: int = 1,
    skip: int = 0,
    most: int = -1,
) -> Rows:
    """Read rows of blank- or comma-separated numbers; rows that do not fit are left out and reported.

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
    skip, most : int
        Rows to pass over, and how many to read then; default all.
    """
    size, cut = whole_lines(body, file)
    tokens = scan(body, size)
    end = len(tokens.line) if most < 0 else min(skip + most, len(tokens.line))
    lines = np.arange(min(skip, end), end)
    fits = tokens.counts[lines] == len(dtypes)
    columns, usable = _convert_types(tokens, lines[fits], dtypes)
    fits[fits] = usable
    losses = _unfit(tokens.line[lines[~fits]] + first_line - 1, len(dtypes), file)
    if cut and cut.line is not None and (most < 0 or len(lines) < most):
        losses.append(Loss(file, cut.reason, line=cut.line + first_line - 1))
    return Rows([column[usable] for column in columns], len(lines), tuple(losses))


def _unfit(lines: Lines, width: int, file: str) -> list[Loss]:
    reason = f"not a row of {width} numbers"
    return [Loss(file, reason, line=int(lines[0]), count=len(lines))] if len(lines) else []


def _convert_types(
    tokens: Tokens, lines: Lines, dtypes: Sequence[np.dtype[Any]]
) -> tuple[list[Array], NDArray[np.bool_]]:
    """Return the columns of the given lines, and which lines hold nothing but numbers of these types."""
    usable = np.ones(len(lines), dtype=bool)
    columns: list[Array] = []
    for number, dtype in enumerate(dtypes):
        usable &= ~tokens.is_word[tokens.first[lines] + number]
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                columns.append(tokens.column(number, lines).astype(dtype))
            continue
        values, whole = _whole(tokens, number, lines, dtype)
        usable &= whole
        columns.append(np.where(whole, values, 0).astype(dtype))
    return columns, usable


def _whole(
    tokens: Tokens, number: int, lines: Lines, dtype: np.dtype[Any]
) -> tuple[Array, NDArray[np.bool_]]:
    """Return a column of integers, and where it holds one that the type can."""
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
