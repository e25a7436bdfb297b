"""Tables as labels define them: where their records and fields are, and what values may be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from transect.base.xml import local_name
from transect.formats.pds4.label import DELIMITERS, MOST_FIELDS, NAMESPACE, TABLES

from ..labels import child_line, children, text_of

RECORD_DELIMITERS = {"carriage-return line-feed": b"\r\n", "line-feed": b"\n"}
_COUNT = re.compile(r"\+?\d{1,15}").fullmatch


class DefinitionError(Exception):
    """A definition that nothing can be read by; with the line."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line


@dataclass(frozen=True)
class Bits:
    """A part of a packed field; bits are counted from 1, both ends included."""

    name: str
    first: int
    last: int
    line: int


@dataclass(frozen=True)
class FieldDef:
    """One field, groups laid flat."""

    name: str
    number: int  # place in the record, from 1
    data_type: str
    line: int
    # first byte, from 0, and number of bytes, of fixed records
    start: int = 0
    length: int = 0
    max_length: int = 0  # of a delimited field; 0 if it is not limited
    # `field_format` and `validation_format`
    shown_format: str = ""
    checked_format: str = ""
    # `Special_Constants`, by name, as spelled
    constants: Mapping[str, str] = field(default_factory=dict[str, str])
    # of `Field_Statistics`
    minimum: float | None = None
    maximum: float | None = None
    bits: tuple[Bits, ...] = ()
    repeated: bool = False  # whether it is in a group that repeats

    @property
    def end(self) -> int:
        """Byte after the last one."""
        return self.start + self.length

    @property
    def title(self) -> str:
        """Number and name, as people are told."""
        return f"{self.number} {self.name}".strip()


@dataclass(frozen=True)
class TableDef:
    """One table."""

    kind: str  # `Table_Character`, `Table_Delimited`, `Table_Binary` or `Inventory`
    name: str
    line: int
    offset: int  # first byte in the file, from 0
    records: int
    record_length: int  # bytes, of fixed records
    max_record_length: int  # of delimited ones; 0 if it is not limited
    record_delimiter: bytes
    field_delimiter: bytes
    fields: tuple[FieldDef, ...]
    element: Any

    @property
    def delimited(self) -> bool:
        """Whether records are of any length."""
        return self.kind in ("Table_Delimited", "Inventory")


def is_table(tag: str) -> bool:
    """Tell whether an element of a file area is a table."""
    return tag in TABLES


def read_table(element: Any, kind: str) -> TableDef:
    """Read the definition of a table.

    Raises
    ------
    DefinitionError
    """
    how = record_of(element)
    if how is None:
        raise DefinitionError(f"the {kind} does not say what a record is", element.sourceline or 0)
    word = text_of(element, "field_delimiter")
    signs = {each.lower(): sign.encode() for each, sign in DELIMITERS.items()}
    if word and word.lower() not in signs:
        raise DefinitionError(f"{word!r} is no field delimiter", child_line(element, "field_delimiter"))
    fixed = kind in ("Table_Character", "Table_Binary")
    fields = tuple(_fields(how, 0, count(1)))
    if fixed and not count_of(how, "record_length"):
        raise DefinitionError("record_length is 0", child_line(how, "record_length"))
    ends = RECORD_DELIMITERS.get(text_of(element, "record_delimiter").lower(), b"\r\n")
    name = text_of(element, "name") or text_of(element, "local_identifier") or kind
    return TableDef(
        kind, name, element.sourceline or 0,
        count_of(element, "offset", 0), count_of(element, "records"),
        count_of(how, "record_length") if fixed else 0, count_of(how, "maximum_record_length", 0),
        b"" if kind == "Table_Binary" else ends,
        signs.get(word.lower(), b","), fields, element,
    )  # fmt: skip


def record_of(element: Any) -> Any:
    """Return the element that describes a record, or None."""
    return next((each for name, each in children(element) if name.startswith("Record_")), None)


def count_of(element: Any, tag: str, otherwise: int | None = None) -> int:
    """Return a number of bytes, records, ... that a child says.

    Raises
    ------
    DefinitionError
        If it is none.
    """
    found = element.find(NAMESPACE + tag)
    return _count(text_of(element, tag), tag, element if found is None else found, otherwise)


def _count(text: str, tag: str, element: Any, otherwise: int | None) -> int:
    if not text and otherwise is not None:
        return otherwise
    if not _COUNT(text):
        said = f"is {text!r}, and no count" if text else "is missing"
        raise DefinitionError(f"{tag} {said}", element.sourceline or 0)
    return int(text)


def _fields(parent: Any, base: int, numbers: Iterator[int], repeated: bool = False) -> Iterator[FieldDef]:
    suffix = local_name(parent).rpartition("_")[2]
    for name, element in children(parent):
        if name == f"Field_{suffix}":
            yield _field(element, base, next(numbers), repeated)
        elif name == f"Group_Field_{suffix}":
            times = count_of(element, "repetitions")
            if times > MOST_FIELDS:
                raise DefinitionError(f"a group of {times} repetitions", child_line(element, "repetitions"))
            start = base + count_of(element, "group_location", 1) - 1
            step = count_of(element, "group_length", 0) // max(times, 1)
            for number in range(times):
                yield from _fields(element, start + number * step, numbers, times > 1)


def _field(element: Any, base: int, number: int, repeated: bool) -> FieldDef:
    if number > MOST_FIELDS:
        raise DefinitionError(f"there are more than {MOST_FIELDS} fields", element.sourceline or 0)
    inside = dict(children(element))  # looked through once: a label may have thousands of fields
    said = {name: (each.text or "").strip() for name, each in inside.items()}

    def size(tag: str, otherwise: int) -> int:
        return _count(said.get(tag, ""), tag, inside.get(tag, element), otherwise)

    statistics, packed = inside.get("Field_Statistics"), inside.get("Packed_Data_Fields")
    return FieldDef(
        said.get("name", ""), number, said.get("data_type", ""), element.sourceline or 0,
        base + max(size("field_location", 1), 1) - 1, size("field_length", 0),
        size("maximum_field_length", 0),
        said.get("field_format", ""), said.get("validation_format", ""),
        constants_of(inside.get("Special_Constants")),
        real_of(statistics, "minimum"), real_of(statistics, "maximum"),
        () if packed is None else tuple(_bits(packed)), repeated,
    )  # fmt: skip


def _bits(packed: Any) -> Iterator[Bits]:
    for each in packed.iterfind(f"{NAMESPACE}Field_Bit"):
        first, last = count_of(each, "start_bit_location"), count_of(each, "stop_bit_location")
        yield Bits(text_of(each, "name"), first, last, each.sourceline or 0)


def constants_of(element: Any) -> dict[str, str]:
    """Return the special constants of a field or an array, by their names."""
    return {} if element is None else {name: (each.text or "").strip() for name, each in children(element)}


def real_of(element: Any, tag: str) -> float | None:
    """Return a number that a child says, or None."""
    try:
        return float(text_of(element, tag))
    except ValueError:
        return None
