"""Columns as text of SDI logs: numbers with the fewest digits that are read back unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.recording import arrow


def constant(text: str) -> pa.Scalar:
    """Return a string scalar; `pa.scalar` would import pandas."""
    return arrow.strings([text]).cast(pa.string())[0]


def numbers(values: NDArray[Any]) -> pa.Array:
    """Return numbers as text; whole ones have no decimals."""
    return arrow.from_numpy(np.asarray(values)).cast(pa.string())


def stamps(t_ns: Ints) -> pa.Array:
    """Return times as `*<seconds>` with three, six or nine decimals, as the column needs."""
    digits = next(d for d in (3, 6, 9) if d == 9 or not (t_ns % 10 ** (9 - d)).any())
    seconds, fraction = np.divmod(np.abs(t_ns), 10**9)
    signed = pc.binary_join_element_wise(  # pyright: ignore[reportAttributeAccessIssue]
        _either(t_ns < 0, "*-", "*"), numbers(seconds), constant("")
    )
    decimals = numbers(fraction // 10 ** (9 - digits))
    padded = pc.utf8_lpad(decimals, width=digits, padding="0")  # pyright: ignore[reportAttributeAccessIssue]
    return pc.binary_join_element_wise(signed, padded, constant("."))  # pyright: ignore[reportAttributeAccessIssue]


def _either(condition: NDArray[np.bool_], yes: str, no: str) -> pa.Array:
    return arrow.strings([yes, no]).cast(pa.string()).take(arrow.from_numpy(np.where(condition, 0, 1)))


def lists(flat: pa.Array, offsets: Ints) -> pa.Array:
    """Return texts joined by blanks: row i is ``flat[offsets[i]:offsets[i + 1]]``."""
    rows = pa.ListArray.from_arrays(arrow.from_numpy(offsets.astype(np.int32)), flat)
    return pc.binary_join(rows, constant(" "))  # pyright: ignore[reportAttributeAccessIssue]


def rows(matrix: Floats) -> pa.Array:
    """Return the rows of an (n, k) array as text."""
    return lists(numbers(matrix.reshape(-1)), np.arange(len(matrix) + 1) * matrix.shape[1])


def lines(*columns: pa.Array | str) -> pa.Array:
    """Return columns, and constant words, joined by blanks."""
    parts = [constant(part) if isinstance(part, str) else part for part in columns]
    return pc.binary_join_element_wise(*parts, constant(" "))  # pyright: ignore[reportAttributeAccessIssue]


def file_bytes(texts: pa.Array) -> bytes:
    """Return lines as the content of a file."""
    if not len(texts):
        return b""
    every = pa.ListArray.from_arrays(arrow.from_numpy(np.array([0, len(texts)], np.int32)), texts)
    return pc.binary_join(every, constant("\n"))[0].as_buffer().to_pybytes() + b"\n"  # pyright: ignore[reportAttributeAccessIssue]
