"""The values of one text field against what its definition says: type, length, format, range."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from transect.base.arrays import Mask
from transect.base.tables import shorten

from ..problems import ValidationProblem, problem
from .columns import (
    FORMAT,
    FORMATS,
    LARGEST,
    LIMITS,
    NO_NUMBER,
    NUMERIC,
    PATTERNS,
    SATURATIONS,
    TextColumn,
    is_constant,
    matches,
    numbers,
    range_problems,
)
from .definition import FieldDef

MAX_SHOWN_CHARACTERS = 60


def field_problems(
    each: FieldDef, column: TextColumn, delimited: bool, rows: Any = None, formats: bool = True
) -> Iterator[ValidationProblem]:
    """Yield problems of the values of a field.

    Parameters
    ----------
    column : Column
        The values as they stand in the file.
    delimited : bool
        Whether the records are delimited: quotation marks may then surround a value.
    rows : (n,) int64, optional
        Which record each value belongs to, from 0, if some were left out.
    formats : bool
        Whether `field_format` and `validation_format` count; those of binary tables are for printing.
    """
    values = column
    if delimited:
        values, quoted = column.trimmed().unquoted()
        for signs, what in (('"', "has others"), (r"\r\n", "has a carriage return or line feed")):
            bad = _quoted_with(values, quoted, signs)
            text = f"{{}} is in quotation marks and {what} inside"
            yield from _tell(bad, values, rows, each, "validation.invalid_field_value", text)
    values = values.trimmed()
    filled = values.lengths > 0
    if not filled.any():
        return
    if each.max_length:
        yield from _tell(values.lengths > each.max_length, values, rows, each, "table.field_value_too_long",
                         f"{{}} is longer than maximum_field_length {each.max_length}")  # fmt: skip
    strings = values.strings()
    constant = _constants(strings, each)
    yield from _types(each, values, strings, filled & ~constant, rows)
    for form, exact in ((each.field_format, False), (each.validation_format, True)):
        if formats and not (exact and delimited):
            yield from _formats(each, form, exact, column, values, strings, filled & ~constant, rows)
    yield from _ranges(each, values, strings, filled & ~constant, rows)


def _tell(
    bad: Mask, values: TextColumn, rows: Any, each: FieldDef, kind: str, text: str, **more: Any
) -> Iterator[ValidationProblem]:
    """Yield one problem for all values that have it: the first, and how many there are."""
    places = np.flatnonzero(bad)
    if not places.size:
        return
    first = int(places[0])
    shown = repr(shorten(values.text(first), MAX_SHOWN_CHARACTERS))
    rest = f" (and {len(places) - 1} more records)" if len(places) > 1 else ""
    record = int(first if rows is None else rows[first]) + 1
    yield problem(
        kind,
        text.format(shown) + rest,
        field=each.title,
        record=record,
        count=len(places),
        line=each.line,
        **more,
    )


def _quoted_with(values: TextColumn, quoted: Mask, signs: str) -> Mask:
    """Return which values in quotation marks have one of these signs inside."""
    return quoted & ~matches(values.strings(), rf"[^{signs}]*") if quoted.any() else quoted


def _constants(strings: Any, each: FieldDef) -> Mask:
    """Return which values are special constants, letter by letter: those need not be of the field's type."""
    spelled = [text for name, text in each.constants.items() if text and name not in (*LIMITS, *SATURATIONS)]
    if not spelled:
        return np.zeros(len(strings), bool)
    return matches(strings, "|".join(re.escape(text) for text in spelled))


def _types(
    each: FieldDef, values: TextColumn, strings: Any, checked: Mask, rows: Any
) -> Iterator[ValidationProblem]:
    pattern = PATTERNS.get(each.data_type)
    if pattern is None:
        return
    wrong = checked & ~matches(strings, pattern)
    if each.data_type in LARGEST:
        wrong |= checked & _too_large(values, each.data_type, wrong)
    if each.data_type == "ASCII_Real" and wrong.any():
        named = wrong & matches(strings, NO_NUMBER)
        wrong &= ~named
        yield from _tell(named, values, rows, each, "table.field_value_data_type_mismatch",
                         "{} is no ASCII_Real: write a number, or a Special_Constants")  # fmt: skip
    yield from _tell(wrong, values, rows, each, "table.field_value_data_type_mismatch",
                     f"{{}} is no {each.data_type}")  # fmt: skip


def _too_large(values: TextColumn, data_type: str, wrong: Mask) -> Mask:
    """Return which whole numbers do not fit 64 bits; only those of many digits are looked at one by one."""
    found = np.zeros(len(values), bool)
    low, high = LARGEST[data_type]
    for row in np.flatnonzero((values.lengths > 18) & ~wrong):
        found[row] = not low <= int(values.text(int(row))) <= high
    return found


def _formats(
    each: FieldDef,
    form: str,
    exact: bool,
    column: TextColumn,
    values: TextColumn,
    strings: Any,
    checked: Mask,
    rows: Any,
) -> Iterator[ValidationProblem]:
    """Yield what a format does not allow.

    `field_format` gives the largest length and precision, and is a wish; `validation_format` is to be met
    exactly (Standards Reference 4B.1.2).
    """
    parts = re.fullmatch(FORMAT, form)
    if parts is None:
        return
    sign, width, precision, kind = parts.groups()
    severity = "error" if exact else "warning"

    def tell(bad: Mask, what: str, text: str) -> Iterator[ValidationProblem]:
        return _tell(checked & bad, values, rows, each, f"table.field_value_{what}", text, severity=severity)

    if sign == "+":
        yield from tell(
            column.ends > values.ends, "not_right_justified", f"{{}} is not right-justified, as {form} says"
        )
    elif sign == "-":
        yield from tell(
            column.starts < values.starts, "not_left_justified", f"{{}} is not left-justified, as {form} says"
        )
    if kind != "s":
        fits = matches(strings, FORMATS[kind.lower()])
        yield from tell(~fits, "format_specifier_mismatch", f"{{}} is not of the format {form}")
    yield from tell(values.lengths > int(width), "too_long", f"{{}} is longer than the format {form}")
    if precision is not None and kind in "feE":
        digits = f"{{{precision}}}" if exact else f"{{0,{precision}}}"
        point = r"\." if exact and int(precision) else r"\.?"
        fits = matches(strings, rf"[^.eE]*{point}[^.eE]{digits}(?:[eE].*)?")
        fits |= matches(strings, r"[^.]*") if not exact else fits
        yield from tell(~fits, "format_precision_mismatch", f"{{}} has not the precision of {form}")


def _ranges(
    each: FieldDef, values: TextColumn, strings: Any, checked: Mask, rows: Any
) -> Iterator[ValidationProblem]:
    limits = (each.minimum, each.maximum)
    valid = any(name in each.constants for name in LIMITS)
    if limits == (None, None) and not valid:
        return
    if each.data_type not in NUMERIC:
        return
    found, real = numbers(strings)
    checked = checked & ~matches(strings, NO_NUMBER)
    yield from _tell(checked & ~real, values, rows, each, "table.field_value_not_a_number",
                     "{} is no number, so that minimum and maximum cannot be checked")  # fmt: skip
    checked = checked & real
    checked &= ~is_constant(found, each.constants)
    for said in range_problems(found, checked, limits, each.constants, "table.field_value", values.text):
        record = said.record if rows is None else int(rows[said.record - 1]) + 1
        yield problem(said.kind, said.text, field=each.title, record=record, count=said.count, line=each.line)
