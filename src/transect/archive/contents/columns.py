"""Columns of tables as text that PDS4 allows: no NaN, no infinity, no quotes, nothing that ends a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.errors import UsageError
from transect.recording import arrow

MISSING, HIGH, LOW = "missing_constant", "high_representation_saturation", "low_representation_saturation"
_FORMAT = re.compile(r"%[+-]?(\d+)(\.\d+)?[doxfeEs]").fullmatch
_NUMBERS = (-99999, -999999, -9999999, -16777216, 99999, 999999, 9999999, 16777216)
"""For what was not measured: a float of 32 bits holds each of them exactly."""


def _no_constants() -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Column:
    """A column of a table that is to be written, or k alike side by side."""

    name: str
    # (n,) or (n, k), numpy or Arrow: numbers, texts or truth values; NaN and null are not measured
    values: Any
    unit: str = ""
    description: str = ""
    # as C prints it, with a width: `%9.4f`. "": as many digits as it takes to read the same number again.
    format: str = ""
    # special constants, exactly as they are to be written; those that are needed and not given are chosen
    constants: Mapping[str, str] = field(default_factory=_no_constants)
    data_type: str = ""  # "": by the values

    def __post_init__(self) -> None:
        if self.format and not _FORMAT(self.format):
            hint = "%WIDTH.DIGITSf, such as %9.4f; also e, d and s"
            raise UsageError(f"{self.format!r} is no format of a field", where=self.name, hint=hint)


@dataclass(frozen=True)
class Spelled:
    """A column as text."""

    column: Column
    texts: tuple[pa.Array, ...]  # one, or k of a column that is k alike
    repeated: bool  # whether it is k alike
    data_type: str
    constants: Mapping[str, str]

    @property
    def is_text(self) -> bool:
        """Whether it may hold any sign."""
        return self.data_type.endswith("_String")

    @property
    def longest(self) -> int:
        """Bytes of the longest one."""
        return max((longest_text(each) for each in self.texts), default=0)


def longest_text(texts: pa.Array) -> int:
    """Return how many bytes the longest text has; 0 if there is none."""
    return int(np.diff(ends_of(texts)).max(initial=0))


def ends_of(texts: pa.Array) -> NDArray[np.int32]:
    """Return (n + 1,): where texts, none of which is null, begin and end in their buffer."""
    return np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]


def spell(column: Column) -> Spelled:
    """Return a column as text, with the special constants that it needs."""
    values, width = plain(column.values)
    if pa.types.is_floating(values.type) or pa.types.is_integer(values.type):
        texts, data_type, constants = _spell_numbers(column, values)
    else:
        texts, constants = _spell_texts(values), dict(column.constants)
        ascii_only = _compute().all(_compute().string_is_ascii(texts)).as_py() is not False
        data_type = column.data_type or ("ASCII_String" if ascii_only else "UTF8_String")
    if width is None:
        return Spelled(column, (texts,), False, data_type, constants)
    rows = np.arange(len(texts) // max(width, 1), dtype=np.int64) * width
    parts = tuple(texts.take(arrow.from_numpy(rows + number)) for number in range(width))
    return Spelled(column, parts, True, data_type, constants)


def plain(values: Any) -> tuple[pa.Array, int | None]:
    """Return values as one flat Arrow array of numbers or texts, truth values as 1 and 0; and k of (n, k)."""
    found = values if isinstance(values, pa.Array | pa.ChunkedArray) else arrow.column(values)
    whole = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    kind = whole.type
    if pa.types.is_fixed_size_list(kind):
        return plain(whole.flatten())[0], kind.list_size
    if pa.types.is_boolean(kind):
        return whole.cast(pa.int8()), None
    if pa.types.is_dictionary(kind):
        return plain(whole.dictionary_decode())
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return whole.cast(pa.float32()) if kind == pa.float16() else whole, None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return whole.cast(pa.string()), None
    texts = ["" if each is None else json.dumps(each, default=str) for each in whole.to_pylist()]
    return arrow.strings(texts).cast(pa.string()), None


def _compute() -> Any:
    import pyarrow.compute as pc  # its functions are made at run time, and no checker knows them

    return pc


@cache
def _text(text: str) -> Any:
    """Return a text as Arrow has it; made of one in Python it would wake pandas."""
    return arrow.strings([text]).cast(pa.string())[0]


def _spell_numbers(column: Column, values: pa.Array) -> tuple[pa.Array, str, dict[str, str]]:
    pc = _compute()
    real = pa.types.is_floating(values.type)
    plain = np.from_dlpack(values) if not values.null_count and len(values) else None
    numbers = plain if plain is not None else arrow.numbers(pa.table({"x": values}), "x")
    masks = unmeasured(numbers)
    constants = choose_constants(column, numbers, masks, "{}.0" if real else "{}")
    texts = _print(values, column.format)
    if given := next(
        (each for each in constants.values() if pc.any(pc.equal(texts, _text(each))).as_py()), None
    ):
        what = f"{given} stands for what was not measured, and was measured"
        raise UsageError(what, where=column.name, hint="choose another constant")
    for name, mask in masks.items():
        texts = pc.if_else(arrow.from_numpy(mask), _text(constants[name]), texts)
    natural = "ASCII_NonNegative_Integer" if pa.types.is_uint64(values.type) else "ASCII_Integer"
    return texts, column.data_type or ("ASCII_Real" if real else natural), constants


def unmeasured(numbers: NDArray[Any]) -> dict[str, NDArray[np.bool_]]:
    """Return which numbers need which special constant; nothing where none does."""
    if numbers.dtype.kind != "f" or np.isfinite(numbers).all():
        return {}
    masks = {MISSING: np.isnan(numbers), HIGH: np.isposinf(numbers), LOW: np.isneginf(numbers)}
    return {name: mask for name, mask in masks.items() if mask.any()}


def choose_constants(
    column: Column, numbers: NDArray[Any], needed: Iterable[str], spelling: str
) -> dict[str, str]:
    """Return special constants: those given, and for others that are needed numbers that no value is near."""
    constants = dict(column.constants)
    lacking = [name for name in needed if name not in constants]
    if lacking:
        known = [float(text) for text in constants.values()]
        used = np.concatenate([numbers[np.isfinite(numbers)].astype(np.float64), known])
        free = [each for each in _NUMBERS if not (np.abs(used - each) < 1.0).any()]
        if len(free) < len(lacking):
            what = "no number is left for what was not measured"
            raise UsageError(what, where=column.name, hint="give the column's constants")
        for name, number in zip(lacking, free, strict=False):
            constants[name] = (column.format % number).strip() if column.format else spelling.format(number)
    return constants


def _print(values: pa.Array, format: str) -> pa.Array:
    """Return numbers as text; without a format the shortest that reads as the same number."""
    if not format:
        return _compute().cast(values, pa.string())
    texts = ["" if each is None else (format % each).strip() for each in values.to_pylist()]
    return arrow.strings(texts).cast(pa.string())


def _spell_texts(values: pa.Array) -> pa.Array:
    """Return texts as fields of a table: on one line, no double quotes inside."""
    pc = _compute()
    lines = pc.replace_substring_regex(values, r"[\x00-\x1f\x7f]+", " ")
    return pc.fill_null(pc.utf8_trim_whitespace(pc.replace_substring(lines, '"', "'")), _text(""))


def quoted(texts: pa.Array, delimiter: str) -> pa.Array:
    """Return texts with double quotes around those that contain the delimiter."""
    pc = _compute()
    marked = pc.binary_join_element_wise(_text('"'), texts, _text('"'), _text(""))
    return pc.if_else(pc.match_substring(texts, delimiter), marked, texts)


def join_lines(columns: Iterable[pa.Array], delimiter: str, end: str) -> pa.Array:
    """Return the records of some columns, each with its end."""
    join = _compute().binary_join_element_wise
    return join(join(*columns, _text(delimiter)), _text(""), _text(end))


def time_column(t_ns: Any, description: str = "Time, UTC") -> Column:
    """Return (n,) int64 ns since the Unix epoch as a column of dates with six decimals, the rest cut off."""
    moments = np.asarray(t_ns, np.int64).view("datetime64[ns]").astype("datetime64[us]")
    texts = np.char.add(np.datetime_as_string(moments, unit="us"), "Z")
    return Column("time", texts, description=description, data_type="ASCII_Date_Time_YMD_UTC")
