"""Tables: delimited, of fixed width, and binary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.errors import UsageError

from ..labels.objects import DataObject, Field, Group, Header, Table
from .columns import (
    Column,
    Spelled,
    choose_constants,
    ends_of,
    join_lines,
    longest_text,
    quoted,
    spell,
    unmeasured,
)

CRLF = "\r\n"
ROWS = 1 << 15
"""Records that are joined at a time."""
_NUMBER_TYPES = {
    "i1": "SignedByte", "u1": "UnsignedByte", "i2": "SignedLSB2", "i4": "SignedLSB4", "i8": "SignedLSB8",
    "u2": "UnsignedLSB2", "u4": "UnsignedLSB4", "u8": "UnsignedLSB8", "f4": "IEEE754LSBSingle",
    "f8": "IEEE754LSBDouble",
}  # fmt: skip
"""What labels call numbers that are stored the least significant byte first."""


@dataclass(frozen=True)
class DelimitedTable:
    """A table with commas between its fields, lines ended by CRLF."""

    columns: Sequence[Column]
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
            objects.append(Header(len(line), ascii=line.isascii()))
            offset = out.write(line)
        longest = 0
        for piece in _lines(spelled, records):
            longest = max(longest, longest_text(piece))
            out.write(_bytes_of(piece))
        fields = tuple(_delimited_field(each) for each in spelled)
        about = (longest, self.identifier, self.description)
        return [*objects, Table("Table_Delimited", offset, records, fields, *about)]


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


def _delimited_field(each: Spelled) -> Field | Group:
    column = each.column
    field = Field(
        column.name, each.data_type, column.unit, column.description, max(each.longest, 1), 0, column.format,
        each.constants,
    )  # fmt: skip
    return Group(len(each.texts), (field,), column.name, column.description) if each.repeated else field


def _lines(spelled: Sequence[Spelled], records: int) -> Iterator[pa.Array]:
    """Give the records with their ends, some at a time."""
    for at in range(0, records, ROWS):
        parts = [
            quoted(texts.slice(at, ROWS), ",") if each.is_text else texts.slice(at, ROWS)
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

    columns: Sequence[Column]
    description: str = ""
    identifier: str = "table"

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the table; return it."""
        spelled = [spell(each) for each in self.columns]
        records = _count(len(texts) for each in spelled for texts in each.texts)
        fields: list[Field] = []
        cells: list[NDArray[np.uint8]] = []
        location = 1
        for each in spelled:
            width, column = max(each.longest, 1), each.column
            for number, texts in enumerate(each.texts, 1):
                name = f"{column.name}_{number}" if each.repeated else column.name
                fields.append(
                    Field(
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
        return [Table("Table_Character", 0, records, tuple(fields), *about)]


def _pad(texts: pa.Array, width: int, left: bool) -> NDArray[np.uint8]:
    """Return (n, width) bytes."""
    encoded = (text.encode() for text in texts.to_pylist())
    cells = b"".join(text.ljust(width) if left else text.rjust(width) for text in encoded)
    return np.frombuffer(cells, np.uint8).reshape(-1, width)


@dataclass(frozen=True)
class BinaryTable:
    """A table of numbers as the machine stores them, the least significant byte first."""

    columns: Sequence[Column]  # of numpy arrays (n,) or (n, k)
    description: str = ""
    identifier: str = "table"

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the table; return it."""
        stored = [store(each) for each in self.columns]
        count = _count(len(values) for values, _ in stored)
        layout = [(f"f{n}", values.dtype, values.shape[1:]) for n, (values, _) in enumerate(stored)]
        records = np.empty(count, layout)
        fields: list[Field | Group] = []
        location = 1
        for (name, *_), column, (values, constants) in zip(layout, self.columns, stored, strict=True):
            records[name] = values
            fields.append(_binary_field(column, values, constants, location))
            location += int(np.prod(values.shape[1:], dtype=np.int64)) * values.dtype.itemsize
        out.write(records.view(np.uint8).data if count else b"")
        about = (records.dtype.itemsize, self.identifier, self.description)
        return [Table("Table_Binary", 0, count, tuple(fields), *about)]


def store(column: Column) -> tuple[NDArray[Any], dict[str, str]]:
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
    column: Column, values: NDArray[Any], constants: dict[str, str], location: int
) -> Field | Group:
    size = values.dtype.itemsize
    field = Field(
        column.name, number_type(values.dtype) or "", column.unit, column.description, size, location, "",
        constants,
    )  # fmt: skip
    if values.ndim == 1:
        return field
    count = int(np.prod(values.shape[1:]))
    inner = replace(field, location=1)
    return Group(count, (inner,), column.name, column.description, count * size, location)
