"""Tables of a data file: their columns, written as delimited or binary records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.errors import UsageError
from transect.recording import arrow

from ..labels.objects import DataObject, FieldGroup, HeaderObject, TableField, TableObject

MISSING, HIGH, LOW = "missing_constant", "high_representation_saturation", "low_representation_saturation"
_FORMAT = re.compile(r"%[+-]?(\d+)(\.\d+)?[doxfeEs]").fullmatch
_MISSING_CONSTANTS = (-99999, -999999, -9999999, -16777216, 99999, 999999, 9999999, 16777216)
"""Candidate special constants for missing values, exact in 32-bit floats."""


def _no_constants() -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class TableColumn:
    """A column of a table, or a group of k equal columns."""

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

    column: TableColumn
    texts: tuple[pa.Array, ...]  # one, or k of a column that is k alike
    repeated: bool  # whether it is k alike
    data_type: str
    constants: Mapping[str, str]

    @property
    def is_text(self) -> bool:
        """Whether it may contain any character."""
        return self.data_type.endswith("_String")

    @property
    def longest(self) -> int:
        """Bytes of the longest one."""
        return max((longest_text(each) for each in self.texts), default=0)


def longest_text(texts: pa.Array) -> int:
    """Return how many bytes the longest text has; 0 if there is none."""
    return int(np.diff(ends_of(texts)).max(initial=0))


def ends_of(texts: pa.Array) -> NDArray[np.int32]:
    """Return (n + 1,): where texts, not null, start and end in their buffer."""
    return np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]


def spell(column: TableColumn) -> Spelled:
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


def _spell_numbers(column: TableColumn, values: pa.Array) -> tuple[pa.Array, str, dict[str, str]]:
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
    """Return the rows that need each special constant; empty if none do."""
    if numbers.dtype.kind != "f" or np.isfinite(numbers).all():
        return {}
    masks = {MISSING: np.isnan(numbers), HIGH: np.isposinf(numbers), LOW: np.isneginf(numbers)}
    return {name: mask for name, mask in masks.items() if mask.any()}


def choose_constants(
    column: TableColumn, numbers: NDArray[Any], needed: Iterable[str], spelling: str
) -> dict[str, str]:
    """Return special constants: those given, and for others that are needed numbers that no value is near."""
    constants = dict(column.constants)
    lacking = [name for name in needed if name not in constants]
    if lacking:
        known = [float(text) for text in constants.values()]
        used = np.concatenate([numbers[np.isfinite(numbers)].astype(np.float64), known])
        free = [each for each in _MISSING_CONSTANTS if not (np.abs(used - each) < 1.0).any()]
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


def time_column(t_ns: Any, description: str = "Time, UTC") -> TableColumn:
    """Return (n,) int64 ns since the Unix epoch as a column of dates with six decimals, the rest cut off."""
    moments = np.asarray(t_ns, np.int64).view("datetime64[ns]").astype("datetime64[us]")
    texts = np.char.add(np.datetime_as_string(moments, unit="us"), "Z")
    return TableColumn("time", texts, description=description, data_type="ASCII_Date_Time_YMD_UTC")


CRLF = "\r\n"
ROWS_PER_BATCH = 1 << 15
"""Number of records that are joined at a time."""
_NUMBER_TYPES = {
    "i1": "SignedByte", "u1": "UnsignedByte", "i2": "SignedLSB2", "i4": "SignedLSB4", "i8": "SignedLSB8",
    "u2": "UnsignedLSB2", "u4": "UnsignedLSB4", "u8": "UnsignedLSB8", "f4": "IEEE754LSBSingle",
    "f8": "IEEE754LSBDouble",
}  # fmt: skip
"""What labels call numbers that are stored the least significant byte first."""


@dataclass(frozen=True)
class DelimitedTable:
    """A table with commas between its fields, lines ended by CRLF."""

    columns: Sequence[TableColumn]
    description: str = ""
    heading: bool = True  # whether the names of the columns stand in the first line
    identifier: str = "table"

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the table; return header and table."""
        spelled = [spell(each) for each in self.columns]
        records = _count(len(texts) for each in spelled for texts in each.texts)
        objects: list[DataObject] = []
        offset = 0
        if self.heading:
            line = (",".join(_headings(spelled)) + CRLF).encode()
            objects.append(HeaderObject(len(line), ascii=line.isascii()))
            offset = out.write(line)
        longest = 0
        for piece in _lines(spelled, records):
            longest = max(longest, longest_text(piece))
            out.write(_bytes_of(piece))
        fields = tuple(_delimited_field(each) for each in spelled)
        about = (longest, self.identifier, self.description)
        return [*objects, TableObject("Table_Delimited", offset, records, fields, *about)]


def _count(lengths: Any) -> int:
    found = set(lengths)
    if len(found) != 1:
        raise UsageError("the columns of a table have different lengths", why=str(sorted(found)))
    return found.pop()


def _headings(spelled: Sequence[Spelled]) -> Iterator[str]:
    for each in spelled:
        name = " ".join(each.column.name.replace('"', "'").split())
        for number in range(1, len(each.texts) + 1):
            full = f"{name}_{number}" if each.repeated else name
            yield f'"{full}"' if "," in full else full


def _delimited_field(each: Spelled) -> TableField | FieldGroup:
    column = each.column
    field = TableField(
        column.name, each.data_type, column.unit, column.description, max(each.longest, 1), 0, column.format,
        each.constants,
    )  # fmt: skip
    return FieldGroup(len(each.texts), (field,), column.name, column.description) if each.repeated else field


def _lines(spelled: Sequence[Spelled], records: int) -> Iterator[pa.Array]:
    """Yield the records with their ends, some at a time."""
    for at in range(0, records, ROWS_PER_BATCH):
        parts = [
            quoted(texts.slice(at, ROWS_PER_BATCH), ",") if each.is_text else texts.slice(at, ROWS_PER_BATCH)
            for each in spelled
            for texts in each.texts
        ]
        yield join_lines(parts, ",", CRLF)


def _bytes_of(texts: pa.Array) -> memoryview:
    """Return texts end to end, as they lie in memory."""
    where = ends_of(texts)
    return memoryview(texts.buffers()[2])[int(where[0]) : int(where[-1])]


@dataclass(frozen=True)
class CharacterTable:
    """A table of fixed width: numbers to the right, texts to the left, a blank between fields."""

    columns: Sequence[TableColumn]
    description: str = ""
    identifier: str = "table"

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the table; return it."""
        spelled = [spell(each) for each in self.columns]
        records = _count(len(texts) for each in spelled for texts in each.texts)
        fields: list[TableField] = []
        cells: list[NDArray[np.uint8]] = []
        location = 1
        for each in spelled:
            width, column = max(each.longest, 1), each.column
            for number, texts in enumerate(each.texts, 1):
                name = f"{column.name}_{number}" if each.repeated else column.name
                fields.append(
                    TableField(
                        name, each.data_type, column.unit, column.description, width, location,
                        column.format, each.constants,
                    )
                )  # fmt: skip
                cells += [_pad(texts, width, each.is_text), np.full((records, 1), ord(" "), np.uint8)]
                location += width + 1
        end = np.tile(np.frombuffer(CRLF.encode(), np.uint8), (records, 1))
        out.write(np.ascontiguousarray(np.concatenate([*cells[:-1], end], axis=1)).data if records else b"")
        length = location - 2 + len(CRLF)
        about = (length, self.identifier, self.description)
        return [TableObject("Table_Character", 0, records, tuple(fields), *about)]


def _pad(texts: pa.Array, width: int, left: bool) -> NDArray[np.uint8]:
    """Return (n, width) bytes."""
    encoded = (text.encode() for text in texts.to_pylist())
    cells = b"".join(text.ljust(width) if left else text.rjust(width) for text in encoded)
    return np.frombuffer(cells, np.uint8).reshape(-1, width)


@dataclass(frozen=True)
class BinaryTable:
    """A table of numbers as the machine stores them, the least significant byte first."""

    columns: Sequence[TableColumn]  # of numpy arrays (n,) or (n, k)
    description: str = ""
    identifier: str = "table"

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the table; return it."""
        stored = [store(each) for each in self.columns]
        count = _count(len(values) for values, _ in stored)
        layout = [(f"f{n}", values.dtype, values.shape[1:]) for n, (values, _) in enumerate(stored)]
        records = np.empty(count, layout)
        fields: list[TableField | FieldGroup] = []
        location = 1
        for (name, *_), column, (values, constants) in zip(layout, self.columns, stored, strict=True):
            records[name] = values
            fields.append(_binary_field(column, values, constants, location))
            location += int(np.prod(values.shape[1:], dtype=np.int64)) * values.dtype.itemsize
        out.write(records.view(np.uint8).data if count else b"")
        about = (records.dtype.itemsize, self.identifier, self.description)
        return [TableObject("Table_Binary", 0, count, tuple(fields), *about)]


def store(column: TableColumn) -> tuple[NDArray[Any], dict[str, str]]:
    """Return numbers as they are stored, and the special constants that stand for NaN and infinities.

    Raises
    ------
    UsageError
        For what are no numbers, or complex ones.
    """
    values = np.asarray(column.values)
    kinds = {np.dtype(np.bool_): np.uint8, np.dtype(np.float16): np.float32}
    values = values.astype(kinds.get(values.dtype, values.dtype))
    values = values.astype(values.dtype.newbyteorder("<"))
    if number_type(values.dtype) is None:
        raise UsageError(f"{column.name} cannot be stored as binary numbers", why=str(values.dtype))
    masks = unmeasured(values)
    constants = choose_constants(column, values, masks, "{}.0")
    for name, mask in masks.items():
        values = np.where(mask, values.dtype.type(float(constants[name])), values)
    return values, constants


def number_type(dtype: np.dtype[Any]) -> str | None:
    """Return what labels call a type of numbers; None for what they have no name for."""
    return _NUMBER_TYPES.get(f"{dtype.kind}{dtype.itemsize}")


def _binary_field(
    column: TableColumn, values: NDArray[Any], constants: dict[str, str], location: int
) -> TableField | FieldGroup:
    size = values.dtype.itemsize
    field = TableField(
        column.name, number_type(values.dtype) or "", column.unit, column.description, size, location, "",
        constants,
    )  # fmt: skip
    if values.ndim == 1:
        return field
    count = int(np.prod(values.shape[1:]))
    inner = replace(field, location=1)
    return FieldGroup(count, (inner,), column.name, column.description, count * size, location)
