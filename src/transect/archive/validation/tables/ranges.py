"""Ranges and special constants: which numbers may be, of fields and of arrays alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from transect.base.arrays import Mask

from ..problems import Problem, problem

LIMITS = ("valid_minimum", "valid_maximum")
SATURATIONS = ("high_instrument_saturation", "high_representation_saturation", "low_instrument_saturation",
               "low_representation_saturation")  # fmt: skip


def constant_value(text: str) -> float | None:
    """Return a special constant as a number: decimal, or its bits as `0x..` or `16#..#`."""
    try:
        if text.lower().startswith("0x"):
            return float(int(text, 16))
        if text.startswith("16#"):
            return float(int(text.strip("#")[3:], 16))
        return float(text)
    except ValueError:
        return None


def bit_pattern(text: str) -> int | None:
    """Return the bits that a special constant spells, if it spells bits."""
    digits = (
        text[2:] if text.lower().startswith("0x") else text.strip("#")[3:] if text.startswith("16#") else ""
    )
    try:
        return int(digits, 16) if digits else None
    except ValueError:
        return None


def is_constant(values: Any, constants: Mapping[str, str]) -> Mask:
    """Return which numbers are special constants; their limits are none.

    Parameters
    ----------
    values : (n,) array of numbers
    constants : mapping of str
        As the label spells them: a number, or its bits in hexadecimal.
    """
    found = np.zeros(values.shape, bool)
    for name, text in constants.items():
        if name in LIMITS:
            continue
        bits, number = bit_pattern(text), constant_value(text)
        if bits is not None and values.dtype.kind in "fiu" and bits < 2 ** (8 * values.dtype.itemsize):
            unsigned = values.astype(values.dtype.newbyteorder("=")).view(f"u{values.dtype.itemsize}")
            found |= unsigned == np.array(bits, unsigned.dtype)
        elif number is not None and np.isnan(number):
            found |= np.isnan(values)
        elif number is not None:
            found |= _equal(values, number)
    return found


def _equal(values: Any, number: float) -> Mask:
    """Compare as it is stored: -1e32 in four bytes is the constant -1.0E32, -1 without a sign all ones."""
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values == values.dtype.newbyteorder("=").type(number)
    if values.dtype.kind == "u" and number < 0:
        number += 2.0 ** (8 * values.dtype.itemsize)
    return values == number


def constant_problems(constants: Mapping[str, str], dtype: np.dtype[Any], group: str) -> Iterator[Problem]:
    """Give special constants that no binary number of a type can be.

    Parameters
    ----------
    group : str
        `field` or `array`, with which the name of the problem begins.
    """
    for name, text in constants.items():
        value, bits = constant_value(text), bit_pattern(text)
        if value is None:
            why = "is no number"
        elif bits is not None:
            why = "has too many bits" if bits >= 2 ** (8 * dtype.itemsize) else ""
        elif dtype.kind in "iu":
            low, high = np.iinfo(f"i{dtype.itemsize}").min, np.iinfo(dtype).max  # -1 stands for all ones, too
            why = "" if low <= value <= high else "does not fit"
        else:
            why = ""
        if why:
            yield problem(
                f"{group}.invalid_special_constant", f"{name} {text!r} {why} (stored as {dtype.name})"
            )


def range_problems(
    values: Any,
    checked: Mask,
    limits: tuple[float | None, float | None],
    constants: Mapping[str, str],
    group: str,
    shown: Callable[[int], str],
) -> Iterator[Problem]:
    """Give what is outside of the statistics, and of the valid range that the special constants say.

    Parameters
    ----------
    values : (n,) array of numbers
    checked : (n,) bool
        Which are numbers, and no special constants.
    limits : (minimum, maximum)
        Of the statistics, None if the label has none.
    group : str
        `table.field_value` or `array.value`, with which the names of the problems begin.
    shown : callable
        Returns a value as text, by its place.
    """
    valid = tuple(constant_value(constants.get(name, "")) for name in LIMITS)
    named = (("minimum", "maximum"), LIMITS)
    for (low, high), names, kind in zip(
        (limits, valid), named, ("out_of_min_max_range", "out_of_special_constant_min_max_range"), strict=True
    ):
        for bound, below, name in ((low, True, names[0]), (high, False, names[1])):
            if bound is None:
                continue
            with np.errstate(invalid="ignore"):
                outside = checked & ((values < bound) if below else (values > bound))
            if outside.any():
                yield _outside(values, outside, bound, below, name, f"{group}_{kind}", shown)


def _outside(
    values: Any, outside: Mask, bound: float, below: bool, name: str, kind: str, shown: Callable[[int], str]
) -> Problem:
    rows = np.flatnonzero(outside)
    extreme = rows[np.argmin(values[rows]) if below else np.argmax(values[rows])]
    side = "below" if below else "above"
    count = len(rows)
    what = f"{shown(int(rows[0]))} is {side} the {name} {bound:.17g}"
    more = f", and {count - 1} more; the farthest is {shown(int(extreme))}" if count > 1 else ""
    return problem(kind, what + more, record=int(rows[0]) + 1, count=count)
