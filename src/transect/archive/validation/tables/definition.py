"""Tables as a label defines them: fields, groups and records, and whether these fit each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any

from transect.base.xml import local_name
from transect.formats.pds4.label import DELIMITERS, MAX_FIELDS, NAMESPACE, TABLES

from ..labels import child_line, children, text_of
from ..problems import ValidationProblem, problem

RECORD_DELIMITERS = {"carriage-return line-feed": b"\r\n", "line-feed": b"\n"}
_COUNT = re.compile(r"\+?\d{1,15}").fullmatch


class DefinitionError(Exception):
    """A definition that nothing can be read by; with the line."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line


@dataclass(frozen=True)
class BitFieldDef:
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
    bits: tuple[BitFieldDef, ...] = ()
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
    """Return whether an element of a file area is a table."""
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
            if times > MAX_FIELDS:
                raise DefinitionError(f"a group of {times} repetitions", child_line(element, "repetitions"))
            start = base + count_of(element, "group_location", 1) - 1
            step = count_of(element, "group_length", 0) // max(times, 1)
            for number in range(times):
                yield from _fields(element, start + number * step, numbers, times > 1)


def _field(element: Any, base: int, number: int, repeated: bool) -> FieldDef:
    if number > MAX_FIELDS:
        raise DefinitionError(f"there are more than {MAX_FIELDS} fields", element.sourceline or 0)
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


def _bits(packed: Any) -> Iterator[BitFieldDef]:
    for each in packed.iterfind(f"{NAMESPACE}Field_Bit"):
        first, last = count_of(each, "start_bit_location"), count_of(each, "stop_bit_location")
        yield BitFieldDef(text_of(each, "name"), first, last, each.sourceline or 0)


def constants_of(element: Any) -> dict[str, str]:
    """Return the special constants of a field or an array, by their names."""
    return {} if element is None else {name: (each.text or "").strip() for name, each in children(element)}


def real_of(element: Any, tag: str) -> float | None:
    """Return a number that a child says, or None."""
    try:
        return float(text_of(element, tag))
    except ValueError:
        return None


STRINGS = re.compile(r"ASCII_(Short_String|String|Text)", re.IGNORECASE).match
NUMBERS = re.compile(r"ASCII_(NonNegative_Integer|Numeric_Base|Real|Integer)", re.IGNORECASE).match


def layout_problems(table: TableDef) -> Iterator[ValidationProblem]:
    """Yield what contradicts itself in the definition of a table."""
    record = record_of(table.element)
    yield from _counts(record, table.name, table.kind)
    if not table.fields:
        suffix = record_of(table.element).tag.rpartition("_")[2]
        text = f"it has no Field_{suffix}"
        yield problem("label.table_definition_problem", text, line=table.line, part=table.name)
    yield from _groups(record, table.name)
    if not table.delimited:
        yield from _overlaps(table)
    if table.kind == "Table_Binary":
        yield from beyond_problems(table)
    if table.kind == "Table_Character":
        for each in table.fields:
            yield from _check_justification(each)
    for each in table.fields:
        yield from _check_packing(each)


def is_readable(problems: list[ValidationProblem]) -> bool:
    """Return whether data can be looked at in spite of these problems."""
    stop = ("table.field_value_overlap", "label.table_definition_problem", "table.bad_field_read",
            "table.bit_field_mismatch", "label.invalid_object_definition")  # fmt: skip
    return not any(each.kind in stop for each in problems)


def _counts(parent: Any, name: str, kind: str) -> Iterator[ValidationProblem]:
    """Yield a problem for each record and group that has other fields or groups than it says."""
    inside = [local_name(each) for each in parent]
    for tag, prefix in (("fields", "Field_"), ("groups", "Group_Field_")):
        found = sum(each.startswith(prefix) for each in inside)
        try:
            said = count_of(parent, tag, found)
        except DefinitionError:
            continue  # no number at all: the schema says so
        if said != found:
            named = "invalid_object_definition" if kind == "Table_Character" else "table_definition_problem"
            yield problem(
                f"label.{named}", line=child_line(parent, tag), part=name,
                text=f"{tag} is {said}, but {found} are defined",
            )  # fmt: skip
    for tag, each in children(parent):
        if tag.startswith("Group_Field_"):
            yield from _counts(each, name, kind)


def _groups(parent: Any, name: str) -> Iterator[ValidationProblem]:
    """Yield a problem for each group whose fields do not fit its length."""
    for tag, each in children(parent):
        if not tag.startswith("Group_Field_"):
            continue
        times, length = count_of(each, "repetitions"), count_of(each, "group_length", 0)
        inside = _extent(each)
        if times and length and inside:
            if length % times:
                text = f"group_length {length} is no multiple of its {times} repetitions"
                yield problem(
                    "label.table_definition_problem", text, line=child_line(each, "group_length"), part=name
                )
            elif inside > length // times:
                text = (f"group_length is {length}, {length // times} bytes for each of {times} repetitions, "
                        f"but its fields take {inside}: it should be at least {inside * times}")  # fmt: skip
                yield problem(
                    "label.table_definition_problem", text, line=child_line(each, "group_length"), part=name
                )
        yield from _groups(each, name)


def _extent(group: Any) -> int:
    """Return the last byte, from 1, that the fields and groups of one repetition take."""
    ends = [0]
    for tag, each in children(group):
        if tag.startswith("Field_"):
            ends.append(count_of(each, "field_location", 1) - 1 + count_of(each, "field_length", 0))
        elif tag.startswith("Group_Field_"):
            ends.append(count_of(each, "group_location", 1) - 1 + count_of(each, "group_length", 0))
    return max(ends)


def _overlaps(table: TableDef) -> Iterator[ValidationProblem]:
    found = [(a, b) for a, b in pairwise(table.fields) if a.end > b.start]
    for a, b in found[:10]:
        yield problem(
            "table.field_value_overlap", line=b.line, part=table.name, field=a.title,
            text=f"ends at byte {a.end}, but field {b.title} begins at byte {b.start + 1}: "
            f"its field_location should be at least {a.end + 1}",
        )  # fmt: skip


def beyond_problems(table: TableDef) -> Iterator[ValidationProblem]:
    """Yield a problem if fields and delimiter do not fit into the record."""
    last = max(table.fields, key=lambda each: each.end, default=None)
    if last is None or last.end + len(table.record_delimiter) <= table.record_length:
        return
    needed = last.end + len(table.record_delimiter)
    line = child_line(record_of(table.element), "record_length")
    kind = "table.record_length_mismatch" if table.record_delimiter else "table.bad_field_read"
    rest = f" and {len(table.record_delimiter)} for the delimiter" if table.record_delimiter else ""
    yield problem(
        kind, line=line, part=table.name, field=last.title,
        text=f"record_length is {table.record_length}, but the last field ends at byte {last.end}{rest}: "
        f"at least {needed} are needed",
    )  # fmt: skip


def _check_justification(each: FieldDef) -> Iterator[ValidationProblem]:
    for sign, kinds, what in (("%+", STRINGS, "a text"), ("%-", NUMBERS, "a number")):
        if kinds(each.data_type) and each.shown_format.startswith(sign):
            yield problem(
                "label.invalid_object_definition", line=each.line, field=each.title,
                text=f"field_format {each.shown_format}: {what} ({each.data_type}) cannot have {sign[1]!r}",
            )  # fmt: skip


def _check_packing(each: FieldDef) -> Iterator[ValidationProblem]:
    if each.repeated and each.number > 1 and not each.bits:
        return
    for bits in each.bits:
        if not 1 <= bits.first <= bits.last <= 8 * each.length:
            yield problem(
                "table.bit_field_mismatch", line=bits.line, field=f"{each.title}/{bits.name}",
                text=f"bits {bits.first} to {bits.last} are not within the {8 * each.length} of the field",
            )  # fmt: skip
    for a, b in pairwise(each.bits):
        if a.last >= b.first:
            yield problem(
                "table.field_value_overlap", line=b.line, field=f"{each.title}/{b.name}",
                text=f"begins at bit {b.first}, but {a.name} ends at bit {a.last}",
            )  # fmt: skip
