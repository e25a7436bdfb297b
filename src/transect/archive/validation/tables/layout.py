"""What is wrong with the definition of a table before any data are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from transect.base.xml import local_name

from ..labels import child_line, children
from ..problems import Problem, problem
from .definition import DefinitionError, FieldDef, TableDef, count_of, record_of

STRINGS = re.compile(r"ASCII_(Short_String|String|Text)", re.IGNORECASE).match
NUMBERS = re.compile(r"ASCII_(NonNegative_Integer|Numeric_Base|Real|Integer)", re.IGNORECASE).match


def layout_problems(table: TableDef) -> Iterator[Problem]:
    """Give what contradicts itself in the definition of a table."""
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


def is_readable(problems: list[Problem]) -> bool:
    """Tell whether data can be looked at in spite of these problems."""
    stop = ("table.field_value_overlap", "label.table_definition_problem", "table.bad_field_read",
            "table.bit_field_mismatch", "label.invalid_object_definition")  # fmt: skip
    return not any(each.kind in stop for each in problems)


def _counts(parent: Any, name: str, kind: str) -> Iterator[Problem]:
    """Give a problem for each record and group that has other fields or groups than it says."""
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


def _groups(parent: Any, name: str) -> Iterator[Problem]:
    """Give a problem for each group whose fields do not fit its length."""
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


def _overlaps(table: TableDef) -> Iterator[Problem]:
    found = [(a, b) for a, b in pairwise(table.fields) if a.end > b.start]
    for a, b in found[:10]:
        yield problem(
            "table.field_value_overlap", line=b.line, part=table.name, field=a.title,
            text=f"ends at byte {a.end}, but field {b.title} begins at byte {b.start + 1}: "
            f"its field_location should be at least {a.end + 1}",
        )  # fmt: skip


def beyond_problems(table: TableDef) -> Iterator[Problem]:
    """Give a problem if fields and delimiter do not fit into the record."""
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


def _check_justification(each: FieldDef) -> Iterator[Problem]:
    for sign, kinds, what in (("%+", STRINGS, "a text"), ("%-", NUMBERS, "a number")):
        if kinds(each.data_type) and each.shown_format.startswith(sign):
            yield problem(
                "label.invalid_object_definition", line=each.line, field=each.title,
                text=f"field_format {each.shown_format}: {what} ({each.data_type}) cannot have {sign[1]!r}",
            )  # fmt: skip


def _check_packing(each: FieldDef) -> Iterator[Problem]:
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
