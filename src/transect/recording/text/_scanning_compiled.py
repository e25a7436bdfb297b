"""The compiled loops of `scanning`: one pass that splits and reads tokens, one that reads time stamps.

A decimal whose digits make a number up to 2**53 converts exactly by one division by a power of ten up to
10**22 (Clinger 1990). Up to 19 digits and any usual exponent go through a 128-bit product (Lemire, "Number
parsing at a gigabyte per second", 2021). What remains is marked HARD and left to Python's own conversion.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

_POWERS = 10.0 ** np.arange(23)
_EXACT = np.uint64(2**53)
_BLANK = np.isin(np.arange(256), [ord(c) for c in " \t\r,;\n"])
_NO_STAMP = np.iinfo(np.int64).min
_LARGEST_STAMP = np.uint64(2**63 - 1)
_DEEPEST = 300
"""Largest decimal exponent, up or down, of the 128-bit way: its results are normal floats."""


def _power_of_five(q: int) -> int:
    """The first 128 bits of 5**q, rounded down; up where 5**-q fits in 64 bits, as the proof wants."""
    if q >= 0:
        return 5**q << 128 >> (5**q).bit_length()
    five = 5**-q
    return (1 << (five.bit_length() + 127)) // five + (q >= -27)


_FIVES = np.array([divmod(_power_of_five(q), 2**64) for q in range(-_DEEPEST, _DEEPEST + 1)], dtype=np.uint64)


@njit(cache=True, nogil=True)
def _product(a: Any, b: Any) -> Any:
    """Return the upper and the lower 64 bits of a product of two uint64."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & low, b >> half, b & low
    cross, other = a1 * b0, a0 * b1
    middle = (a0 * b0 >> half) + (cross & low) + (other & low)
    return a1 * b1 + (cross >> half) + (other >> half) + (middle >> half), a * b


@njit(cache=True, nogil=True)
def _bits_of(mantissa: Any, q: int) -> Any:
    """Return the bits of the float64 nearest to mantissa * 10**q (uint64, not 0); whether it is normal."""
    zeros = 0
    while mantissa >> np.uint64(63) == 0:
        mantissa <<= np.uint64(1)
        zeros += 1
    upper, lower = _product(mantissa, _FIVES[q + _DEEPEST, 0])
    if upper & np.uint64(0x1FF) == np.uint64(0x1FF):
        more, _ = _product(mantissa, _FIVES[q + _DEEPEST, 1])
        lower += more
        if lower < more:
            upper += np.uint64(1)
    top = np.int64(upper >> np.uint64(63))
    shift = np.uint64(top + 9)
    rounded = upper >> shift
    exponent = (217706 * q >> 16) + 63 + top - zeros + 1023
    halfway = lower <= np.uint64(1) and -4 <= q <= 23 and rounded << shift == upper
    if halfway and rounded & np.uint64(3) == np.uint64(1):
        rounded &= ~np.uint64(1)  # to even
    rounded = (rounded + (rounded & np.uint64(1))) >> np.uint64(1)
    if rounded >> np.uint64(53):
        rounded >>= np.uint64(1)
        exponent += 1
    return (np.uint64(exponent) << np.uint64(52)) | (rounded & np.uint64(2**52 - 1)), 0 < exponent < 2047


@njit(cache=True, nogil=True)
def _special(data: Any, at: int, end: int) -> Any:
    """Read [+-](nan|inf|infinity), any case: (value, is one)."""
    negative = data[at] == 45
    if data[at] == 45 or data[at] == 43:
        at += 1
    size = end - at
    if size != 3 and size != 8:
        return 0.0, False
    a, b, c = data[at] | 32, data[at + 1] | 32, data[at + 2] | 32
    if size == 3 and a == 110 and b == 97 and c == 110:
        return np.nan, True
    infinite = a == 105 and b == 110 and c == 102
    if size == 8:
        tail = b"inity"
        for i in range(5):
            infinite = infinite and (data[at + 3 + i] | 32) == tail[i]
    return (-np.inf if negative else np.inf), infinite


@njit(cache=True, nogil=True)
def _read(data: Any, at: Any, end: Any, bits: Any, count: Any) -> Any:
    """Read one token that is not a short plain decimal into bits[count] (a float64's); return its kind."""
    start = at
    negative = data[at] == 45
    if data[at] == 45 or data[at] == 43:
        at += 1
    mantissa, digits, seen, scale, point = np.uint64(0), 0, 0, 0, False
    while at < end:
        c = data[at]
        if 48 <= c <= 57:
            seen += 1
            if digits or c != 48:
                digits += 1
            if digits <= 19:
                mantissa = mantissa * np.uint64(10) + np.uint64(c - 48)
            scale += point
        elif c == 46 and not point:
            point = True
        else:
            break
        at += 1
    if seen == 0:
        value, special = _special(data, start, end)
        bits.view(np.float64)[count] = value if special else np.nan
        return 0 if special else 1
    bits.view(np.float64)[count] = np.nan
    if at < end:
        if data[at] | 32 != 101:
            return 1
        at += 1
        down = at < end and data[at] == 45
        if at < end and (data[at] == 45 or data[at] == 43):
            at += 1
        if at == end:
            return 1
        exponent = 0
        while at < end:
            if not 48 <= data[at] <= 57:
                return 1
            exponent = min(exponent * 10 + (data[at] - 48), 99999)
            at += 1
        scale += exponent if down else -exponent
    if digits > 19 or abs(scale) > _DEEPEST:
        return 2
    value, sure = np.uint64(0), True
    if digits:
        value, sure = _bits_of(mantissa, -scale)
    bits[count] = value | (np.uint64(1) << np.uint64(63) if negative else np.uint64(0))
    return 0 if sure else 2


# Indices below are unsigned: numba then spares the test whether each one counts from the end.
_0, _1, _10 = np.uint64(0), np.uint64(1), np.uint64(10)
_ZERO, _TEN, _POINT = np.uint8(48), np.uint8(10), np.uint8(46 - 48 + 256)


@njit(cache=True, nogil=True, inline="always")
def _decimal(data: Any, at: Any) -> Any:
    """Read digits and at most one point: (their number, count, count after the point, where they end)."""
    mantissa, whole = _0, at
    d = np.uint8(data[at] - _ZERO)
    while d < _TEN:
        mantissa = mantissa * _10 + np.uint64(d)
        at += _1
        d = np.uint8(data[at] - _ZERO)
    digits, decimals = at - whole, _0
    if d == _POINT:
        at += _1
        point = at
        d = np.uint8(data[at] - _ZERO)
        while d < _TEN:
            mantissa = mantissa * _10 + np.uint64(d)
            at += _1
            d = np.uint8(data[at] - _ZERO)
        decimals = at - point
        digits += decimals
    return mantissa, digits, decimals, at


@njit(cache=True, nogil=True)
def scan_compiled(data: Any) -> Any:
    """Split and read all tokens of a text that ends with a newline: the arrays of `Tokens` in order."""
    most = len(data) // 2  # a token and its separator; pages that are not written to take no memory
    values, kind = np.empty(most, np.float64), np.empty(most, np.uint8)
    begin, end = np.empty(most, np.int64), np.empty(most, np.int64)
    first, line = np.empty(most + 1, np.int64), np.empty(most, np.int64)
    bits = values.view(np.uint64)
    size, at, count, line_start = np.uint64(len(data)), _0, _0, _0
    first[0] = 0
    lines, number, starred = 0, 1, False
    while at < size:
        c = data[at]
        if _BLANK[c]:
            at += _1
            if c == 10:
                if count > line_start:
                    line[lines] = number
                    lines += 1
                    first[lines] = count
                    line_start = count
                number += 1
                starred = False
            continue
        if c == 42 and count == line_start and not starred:
            starred = True
            at += _1
            c = data[at]
            if _BLANK[c]:
                continue
        start, negative = at, c == 45
        if negative:
            at += _1
        mantissa, digits, decimals, at = _decimal(data, at)
        if _0 < digits and digits <= np.uint64(18) and mantissa <= _EXACT and _BLANK[data[at]]:
            value = np.float64(np.int64(mantissa))
            if decimals:
                value /= _POWERS[decimals]
            values[count] = -value if negative else value
            kind[count] = 0
        else:
            while not _BLANK[data[at]]:
                at += _1
            kind[count] = _read(data, np.int64(start), np.int64(at), bits, np.int64(count))
        begin[count], end[count] = start, at
        count += _1
    return values[:count], kind[:count], begin[:count], end[:count], first[: lines + 1], line[:lines]


@njit(cache=True, nogil=True)
def stamps_compiled(data: Any, begin: Any, end: Any, unit_ns: int) -> Any:
    """Read decimal tokens as whole nanoseconds; `_NO_STAMP` where a token is not a plain decimal."""
    out = np.empty(len(begin), np.int64)
    for i in range(len(begin)):
        at, stop = begin[i], end[i]
        negative = at < stop and data[at] == 45
        at += negative
        whole, fraction, unit = np.uint64(0), np.uint64(0), np.uint64(unit_ns)
        digits, decimals, point, good = 0, 0, False, True
        while at < stop and good:
            d = np.uint64(data[at]) - np.uint64(48)
            if d > np.uint64(9):
                good = data[at] == 46 and not point
                point = True
            elif point:
                decimals += 1
                unit //= np.uint64(10)
                fraction += d * unit
            else:
                digits += 1
                good = digits <= 19
                whole = whole * np.uint64(10) + d
            at += 1
        most = (_LARGEST_STAMP - fraction) // np.uint64(unit_ns)
        if good and digits + decimals > 0 and whole <= most:
            value = np.int64(whole * np.uint64(unit_ns) + fraction)
            out[i] = -value if negative else value
        else:
            out[i] = _NO_STAMP
    return out
