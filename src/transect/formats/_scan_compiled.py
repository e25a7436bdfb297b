"""The compiled loops of `_scan`: one pass that splits and reads tokens, one that reads time stamps.

A decimal of at most 15 digits and a power of ten up to 22 converts exactly by one multiplication or division
(Clinger 1990); anything longer is marked HARD and left to Python's own conversion.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

_POWERS = 10.0 ** np.arange(23)
_BLANK = np.zeros(256, np.bool_)
_BLANK[[ord(c) for c in " \t\r,;"]] = True
_NO_STAMP = np.iinfo(np.int64).min


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
def _read(data: Any, at: int, end: int) -> Any:
    """Read one token: (value, kind) with kind 0 number, 1 word, 2 hard."""
    start = at
    negative = data[at] == 45
    if data[at] == 45 or data[at] == 43:
        at += 1
    mantissa, digits, seen, scale, point = np.int64(0), 0, 0, 0, False
    while at < end:
        c = data[at]
        if 48 <= c <= 57:
            seen += 1
            if digits or c != 48:
                digits += 1
            if digits <= 18:
                mantissa = mantissa * 10 + (c - 48)
            scale += point
        elif c == 46 and not point:
            point = True
        else:
            break
        at += 1
    if seen == 0:
        value, special = _special(data, start, end)
        return (value, 0) if special else (np.nan, 1)
    if at < end:
        if data[at] | 32 != 101:
            return np.nan, 1
        at += 1
        down = at < end and data[at] == 45
        if at < end and (data[at] == 45 or data[at] == 43):
            at += 1
        if at == end:
            return np.nan, 1
        exponent = 0
        while at < end:
            if not 48 <= data[at] <= 57:
                return np.nan, 1
            exponent = min(exponent * 10 + (data[at] - 48), 99999)
            at += 1
        scale += exponent if down else -exponent
    if digits > 15 or scale > 22 or scale < -22:
        return np.nan, 2
    value = mantissa / _POWERS[scale] if scale >= 0 else mantissa * _POWERS[-scale]
    return (-value if negative else value), 0


@njit(cache=True, nogil=True)
def _size(data: Any) -> Any:
    """Count (tokens, lines with a newline) so that memory is taken once."""
    tokens, lines, inside = 0, 1, False
    for c in data:
        if c == 10:
            lines += 1
            inside = False
        elif _BLANK[c]:
            inside = False
        elif not inside:
            tokens += 1
            inside = True
    return tokens, lines


@njit(cache=True, nogil=True)
def scan_compiled(data: Any) -> Any:
    """Split and read all tokens; the arrays of `_scan.Tokens` in order."""
    most_tokens, most_lines = _size(data)
    values, kind = np.empty(most_tokens, np.float64), np.empty(most_tokens, np.uint8)
    begin, end = np.empty(most_tokens, np.int64), np.empty(most_tokens, np.int64)
    first, line = np.empty(most_lines + 1, np.int64), np.empty(most_lines, np.int64)
    first[0] = 0
    count, lines, number, at, size = 0, 0, 1, 0, len(data)
    while at < size:
        c = data[at]
        if c == 10 or _BLANK[c]:
            if c == 10:
                if count > first[lines]:
                    line[lines] = number
                    lines += 1
                    first[lines] = count
                number += 1
            at += 1
            continue
        if c == 42 and count == first[lines]:
            at += 1
            if at == size or data[at] == 10 or _BLANK[data[at]]:
                continue
        start = at
        while at < size and data[at] != 10 and not _BLANK[data[at]]:
            at += 1
        values[count], kind[count] = _read(data, start, at)
        begin[count], end[count] = start, at
        count += 1
    if count > first[lines]:
        line[lines] = number
        lines += 1
        first[lines] = count
    return values[:count], kind[:count], begin[:count], end[:count], first[: lines + 1], line[:lines]


@njit(cache=True, nogil=True)
def stamps_compiled(data: Any, begin: Any, end: Any, unit_ns: int) -> Any:
    """Read decimal tokens as whole nanoseconds; `_NO_STAMP` where a token is not a plain decimal."""
    out = np.empty(len(begin), np.int64)
    for i in range(len(begin)):
        at, stop = begin[i], end[i]
        negative = data[at] == 45
        at += negative
        whole, fraction, unit, digits, point, good = np.int64(0), np.int64(0), np.int64(unit_ns), 0, False, at < stop
        while at < stop:
            c = data[at]
            if 48 <= c <= 57:
                if point:
                    unit //= 10
                    fraction += (c - 48) * unit
                else:
                    digits += 1
                    whole = whole * 10 + (c - 48)
            elif c == 46 and not point:
                point = True
            else:
                good = False
            at += 1
        most = (np.int64(2**63 - 1) - fraction) // unit_ns
        good = good and digits <= 18 and whole <= most and (digits or point)
        out[i] = (-(whole * unit_ns + fraction) if negative else whole * unit_ns + fraction) if good else _NO_STAMP
    return out
