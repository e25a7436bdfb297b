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
MAX_REPORTED = 10  # overlaps of a table
_COUNT = re.compile(r"\+?\d{1,15}").fullmatch


class DefinitionError(Exception):
    """A definition too broken to read data with; `line`: of the label."""

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
    """One field, groups flattened."""

    name: str
    number: int  # place in the record, from 1
    data_type: str
    line: int
    # first byte, from 0, and number of bytes, of fixed records
    start: int = 0
    length: int = 0
    max_length: int = 0  # of a delimited field; 0 if it is not limited
    field_format: str = ""
    validation_format: str = ""
    # `Special_Constants`, by name, as written in the label
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
        """Number and name, for messages."""
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
        """Whether records are of variable length."""
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
    record = record_of(element)
    if record is None:
        raise DefinitionError(f"the {kind} has no Record_* element", element.sourceline or 0)
    delimiter_name = text_of(element, "field_delimiter")
    delimiters = {each.lower(): mark.encode() for each, mark in DELIMITERS.items()}
    if delimiter_name and delimiter_name.lower() not in delimiters:
        raise DefinitionError(
            f"{delimiter_name!r} is no field delimiter", child_line(element, "field_delimiter")
        )
    fixed = kind in ("Table_Character", "Table_Binary")
    fields = tuple(_fields(record, 0, count(1)))
    if fixed and not count_of(record, "record_length"):
        raise DefinitionError("record_length is 0", child_line(record, "record_length"))
    record_delimiter = RECORD_DELIMITERS.get(text_of(element, "record_delimiter").lower(), b"\r\n")
    name = text_of(element, "name") or text_of(element, "local_identifier") or kind
    return TableDef(
        kind, name, element.sourceline or 0,
        count_of(element, "offset", 0), count_of(element, "records"),
        count_of(record, "record_length") if fixed else 0, count_of(record, "maximum_record_length", 0),
        b"" if kind == "Table_Binary" else record_delimiter,
        delimiters.get(delimiter_name.lower(), b","), fields, element,
    )  # fmt: skip


def record_of(element: Any) -> Any:
    """Return the element that describes a record, or None."""
    return next((each for name, each in children(element) if name.startswith("Record_")), None)


def count_of(element: Any, tag: str, default: int | None = None) -> int:
    """Return a number of bytes, records, ... of a child element.

    Raises
    ------
    DefinitionError
        If it is missing or no count.
    """
    found = element.find(NAMESPACE + tag)
    return _count(text_of(element, tag), tag, element if found is None else found, default)


def _count(text: str, tag: str, element: Any, default: int | None) -> int:
    if not text and default is not None:
        return default
    if not _COUNT(text):
        reason = f"is {text!r}, not a count" if text else "is missing"
        raise DefinitionError(f"{tag} {reason}", element.sourceline or 0)
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
    inside = dict(children(element))  # a dict, as a label may have thousands of fields
    texts = {name: (each.text or "").strip() for name, each in inside.items()}

    def size(tag: str, default: int) -> int:
        return _count(texts.get(tag, ""), tag, inside.get(tag, element), default)

    statistics, packed = inside.get("Field_Statistics"), inside.get("Packed_Data_Fields")
    return FieldDef(
        texts.get("name", ""), number, texts.get("data_type", ""), element.sourceline or 0,
        base + max(size("field_location", 1), 1) - 1, size("field_length", 0),
        size("maximum_field_length", 0),
        texts.get("field_format", ""), texts.get("validation_format", ""),
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
    """Return a number of a child element, or None."""
    try:
        return float(text_of(element, tag))
    except ValueError:
        return None


STRINGS = re.compile(r"ASCII_(Short_String|String|Text)", re.IGNORECASE).match
NUMBERS = re.compile(r"ASCII_(NonNegative_Integer|Numeric_Base|Real|Integer)", re.IGNORECASE).match


def layout_problems(table: TableDef) -> Iterator[ValidationProblem]:
    """Yield the contradictions in the definition of a table."""
    record = record_of(table.element)
    yield from _check_counts(record, table.name, table.kind)
    if not table.fields:
        suffix = record_of(table.element).tag.rpartition("_")[2]
        text = f"it has no Field_{suffix}"
        yield problem("label.table_definition_problem", text, line=table.line, part=table.name)
    yield from _check_groups(record, table.name)
    if not table.delimited:
        yield from _check_overlaps(table)
    if table.kind == "Table_Binary":
        yield from check_record_end(table)
    if table.kind == "Table_Character":
        for each in table.fields:
            yield from _check_justification(each)
    for each in table.fields:
        yield from _check_packing(each)


def is_readable(problems: list[ValidationProblem]) -> bool:
    """Return whether data can be read despite these problems."""
    blocking = ("table.field_value_overlap", "label.table_definition_problem", "table.bad_field_read",
            "table.bit_field_mismatch", "label.invalid_object_definition")  # fmt: skip
    return not any(each.kind in blocking for each in problems)


def _check_counts(parent: Any, name: str, kind: str) -> Iterator[ValidationProblem]:
    """Yield the records and groups whose number of fields or groups differs from the declared one."""
    inside = [local_name(each) for each in parent]
    for tag, prefix in (("fields", "Field_"), ("groups", "Group_Field_")):
        found = sum(each.startswith(prefix) for each in inside)
        try:
            declared = count_of(parent, tag, found)
        except DefinitionError:
            continue  # no number: reported by schema validation
        if declared != found:
            kind_name = (
                "invalid_object_definition" if kind == "Table_Character" else "table_definition_problem"
            )
            yield problem(
                f"label.{kind_name}", line=child_line(parent, tag), part=name,
                text=f"{tag} is {declared}, but {found} are defined",
            )  # fmt: skip
    for tag, each in children(parent):
        if tag.startswith("Group_Field_"):
            yield from _check_counts(each, name, kind)


def _check_groups(parent: Any, name: str) -> Iterator[ValidationProblem]:
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
        yield from _check_groups(each, name)


def _extent(group: Any) -> int:
    """Return the last byte, from 1, of the fields and groups of one repetition."""
    ends = [0]
    for tag, each in children(group):
        if tag.startswith("Field_"):
            ends.append(count_of(each, "field_location", 1) - 1 + count_of(each, "field_length", 0))
        elif tag.startswith("Group_Field_"):
            ends.append(count_of(each, "group_location", 1) - 1 + count_of(each, "group_length", 0))
    return max(ends)


def _check_overlaps(table: TableDef) -> Iterator[ValidationProblem]:
    overlaps = [(a, b) for a, b in pairwise(table.fields) if a.end > b.start]
    for a, b in overlaps[:MAX_REPORTED]:
        yield problem(
            "table.field_value_overlap", line=b.line, part=table.name, field=a.title,
            text=f"ends at byte {a.end}, but field {b.title} begins at byte {b.start + 1}: "
            f"its field_location should be at least {a.end + 1}",
        )  # fmt: skip


def check_record_end(table: TableDef) -> Iterator[ValidationProblem]:
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
        if kinds(each.data_type) and each.field_format.startswith(sign):
            yield problem(
                "label.invalid_object_definition", line=each.line, field=each.title,
                text=f"field_format {each.field_format}: {what} ({each.data_type}) cannot have {sign[1]!r}",
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
