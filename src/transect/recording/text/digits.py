"""Vectorised conversion of text to tokens, numbers and time stamps, with numpy and Arrow.

Most tokens of a log are short. Up to eight characters, digits and at most one point, fit in a machine word
and are converted by three multiplications that combine pairs, fours and eights of digits. All other tokens
are converted by Arrow or, if it fails, one by one by Python. Every number is the float64 nearest to its text.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Bytes, Floats, Ints, Mask
from transect.base.clocks import NS

from ..arrow import offsets_of

NO_STAMP = np.iinfo(np.int64).min
NEWLINE = ord("\n")
_SEPARATORS = b" \t\r,;"
_IS_WORD_LETTER = ~np.isin(np.arange(256), [*b"0123456789+-.eEnaifNAIFtyTY"])
"""Bytes that do not occur in numbers; Python's float accepts some of them (`1_000`)."""


def split(data: Bytes) -> tuple[Ints, Ints, Ints, Ints]:
    """Return start and end of each token, and for each line its first token and its number from 1."""
    is_newline = data == NEWLINE
    blank = is_newline.copy()
    for separator in _SEPARATORS:
        blank |= data == separator
    end = np.flatnonzero(blank)
    if len(data) and not blank[-1]:
        end = np.append(end, len(data))
    begin = np.empty_like(end)
    begin[:1] = 0
    np.add(end[:-1], 1, out=begin[1:])
    if (empty := begin == end).any():
        begin, end = begin[~empty], end[~empty]
    newlines = np.flatnonzero(is_newline)
    first = np.concatenate([[0], np.searchsorted(begin, newlines), [len(begin)]])
    line = np.flatnonzero(np.diff(first))
    first = first[line]
    starred = first[data[begin[first]] == ord("*")] if len(first) else first
    if not len(starred):
        return begin, end, np.append(first, len(begin)), line + 1
    return _without_stars(begin, end, first, line, starred)


def _without_stars(
    begin: Ints, end: Ints, first: Ints, line: Ints, starred: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """Remove the `*` of the first tokens of lines, and tokens that consist of it."""
    begin[starred] += 1
    remaining = np.ones(len(begin), np.bool_)
    remaining[starred] = begin[starred] < end[starred]
    if remaining.all():
        return begin, end, np.append(first, len(begin)), line + 1
    removed = np.concatenate([[0], np.cumsum(~remaining)])
    first = np.append(first, len(begin))
    first -= removed[first]
    nonempty = np.diff(first) > 0
    return begin[remaining], end[remaining], np.append(first[:-1][nonempty], first[-1]), line[nonempty] + 1


def read_numbers(data: Bytes, begin: Ints, end: Ints) -> tuple[Floats, Mask]:
    """Return the value of each token, NaN for a word, and the mask of words."""
    values, short = _short_numbers(data, begin, end)
    is_word = np.zeros(len(begin), np.bool_)
    if len(other := np.flatnonzero(~short)):
        values[other], is_word[other] = _any_numbers(data, begin[other], end[other])
    return values, is_word


_MIN_ARROW_TOKENS = 4096
"""Fewer tokens are converted by Python, because Arrow takes 40 ms to import its conversion."""
_BATCH_TOKENS = 1 << 15
"""Tokens converted at a time, so that intermediate arrays stay in the processor's first cache."""
_ZEROS, _SIXES, _NIBBLES, _POINTS, _ONES, _HIGHEST = (
    np.uint64(int(byte * 8, 16)) for byte in ("30", "06", "f0", "1e", "01", "80")
)
_JOINS = tuple(
    (np.uint64(1 + (10**digits << 8 * digits)), np.uint64(8 * digits), np.uint64(mask))
    for digits, mask in ((1, 0x00FF00FF00FF00FF), (2, 0x0000FFFF0000FFFF), (4, 0x00000000FFFFFFFF))
)
"""Factor, shift and mask that combine neighbouring digits to numbers of two, four and eight digits."""
_SCALES = np.array([*10.0 ** np.arange(7, -1, -1), 1.0])
"""Divisors by the position of the point in the word; the last is for numbers without a point.

Number and divisor are exact floats, so the quotient is correctly rounded (Clinger 1990).
"""


def _short_numbers(data: Bytes, begin: Ints, end: Ints) -> tuple[Floats, Mask]:
    """Convert tokens of up to eight digits and a point; return values and the mask of such tokens."""
    values, short = np.empty(len(begin)), np.empty(len(begin), np.bool_)
    padded = np.zeros(len(data) + 24 & ~7, np.uint8)
    padded[8 : 8 + len(data)] = data
    words = padded.view("<u8")
    for at in range(0, len(begin), _BATCH_TOKENS):
        stop = end[at : at + _BATCH_TOKENS]
        size = stop - begin[at : at + _BATCH_TOKENS]
        digits = _digits(words, stop, size)
        good = _are_digits(digits)
        good &= size <= 8
        other = np.flatnonzero(~good & (size <= 8) & (size > 1))  # a point alone is a word
        others = digits[other]
        values[at : at + _BATCH_TOKENS] = _join(digits)
        values[at + other], good[other] = _decimals(others)
        short[at : at + _BATCH_TOKENS] = good
    return values, short


def _digits(words: NDArray[np.uint64], end: Ints, size: Ints) -> NDArray[np.uint64]:
    """Return the digit values of tokens as words, from little-endian words after 8 padding bytes."""
    others = ((8 - size) << 3).view(np.uint64)  # bits of the bytes before the token; a long token shifts out
    digits = _words_at(words, end)
    digits ^= _ZEROS
    digits >>= others
    digits <<= others
    return digits


def _are_digits(digits: NDArray[np.uint64]) -> Mask:
    non_digits = digits + _SIXES
    non_digits |= digits
    non_digits &= _NIBBLES
    return non_digits == 0


def _join(digits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Convert eight digits to their number, in place."""
    for factor, shift, mask in _JOINS:
        digits *= factor
        digits >>= shift
        digits &= mask
    return digits


def _decimals(digits: NDArray[np.uint64]) -> tuple[Floats, Mask]:
    """Convert tokens with a point by shifting the digits before it; return values and the valid tokens."""
    points = digits ^ _POINTS
    point = (points - _ONES) & ~points & _HIGHEST  # the lowest bit is right; none where there is no point
    point &= ~point + np.uint64(1)
    unit = point >> np.uint64(7)
    before = digits & (unit - np.uint64(1))
    digits = (digits ^ before ^ unit * np.uint64(0x1E)) | before << np.uint64(8)
    good = _are_digits(digits) & (point != 0)
    position = np.bitwise_count(point - np.uint64(1)) >> 3
    return _join(digits) / _SCALES.take(position), good


def _words_at(words: NDArray[np.uint64], byte: Ints) -> NDArray[np.uint64]:
    """Return the words that start at any byte, from the two aligned words that contain each."""
    word, bits = byte >> 3, ((byte & 7) << 3).view(np.uint64)
    low, high = words.take(word), words.take(word + 1)
    low >>= bits
    high <<= np.uint64(64) - bits  # a shift by 64, which clears all bits, if the byte is aligned
    low |= high
    return low


def _any_numbers(data: Bytes, begin: Ints, end: Ints) -> tuple[Floats, Mask]:
    """Return the value of tokens of any form, NaN for a word, and the mask of words."""
    values, is_word = np.full(len(begin), np.nan), np.ones(len(begin), np.bool_)
    plain = np.flatnonzero(~_IS_WORD_LETTER.take(data[begin]))  # detects most words by their first letter
    letters, offsets = _letters(data, begin[plain], end[plain])
    if len(word_letters := np.flatnonzero(_IS_WORD_LETTER.take(letters))):
        plain = np.delete(plain, np.searchsorted(offsets, word_letters, side="right") - 1)
        letters, offsets = _letters(data, begin[plain], end[plain])
    values[plain], is_word[plain] = _floats(letters, offsets)
    values[np.isnan(values)] = np.nan  # the sign of "-nan" has no meaning
    return values, is_word


def _floats(letters: Bytes, offsets: Ints) -> tuple[Floats, Mask]:
    """Return the value of tokens, NaN for a word, and the mask of words; with Arrow if there are many."""
    if len(offsets) > _MIN_ARROW_TOKENS:
        with suppress(pa.ArrowInvalid):
            return _cast(letters, offsets), np.zeros(len(offsets) - 1, np.bool_)
    read = [_number(letters[a:b].tobytes()) for a, b in pairwise(offsets.tolist())]
    values = np.array([np.nan if value is None else value for value in read], np.float64)
    return values, np.array([value is None for value in read], np.bool_)


def _letters(data: Bytes, begin: Ints, end: Ints) -> tuple[Bytes, Ints]:
    """Return the concatenated bytes of tokens and their offsets."""
    offsets = offsets_of(end - begin)
    borders = np.concatenate([[0], np.column_stack([begin, end]).ravel(), [len(data)]])
    inside = np.arange(len(borders) - 1) % 2 == 1
    return data[np.repeat(inside, np.diff(borders))], offsets


def _cast(letters: Bytes, offsets: Ints) -> NDArray[Any]:
    """Return tokens as floats; Arrow raises if one is not a number, or has a plus sign."""
    parts = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    texts = pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, parts)
    return np.from_dlpack(texts.cast(pa.float64()))


def _number(text: bytes) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def stamps(data: Bytes, begin: Ints, end: Ints, unit_ns: int = NS) -> Ints:
    """Return decimal tokens times `unit_ns` (a power of ten) as nanoseconds, truncated; see `bad_stamp`."""
    if len(begin) > 1 and (uniform := _uniform_stamps(data, begin, end, unit_ns)) is not None:
        return uniform
    texts = (data[b:e].tobytes() for b, e in zip(begin.tolist(), end.tolist(), strict=True))
    return np.fromiter((_stamp(text, unit_ns) for text in texts), np.int64, len(begin))


def _uniform_stamps(data: Bytes, begin: Ints, end: Ints, unit_ns: int) -> Ints | None:
    """Return stamps of the same length with the point in the same position; None if they differ."""
    size = int(end[0] - begin[0])
    if not 0 < size <= 19 or (end - begin != size).any():
        return None
    letters = data[begin[:, None] + np.arange(size)]
    points = letters == ord(".")
    if (points != points[0]).any() or points[0].sum() > 1:
        return None
    digits = letters[:, ~points[0]] - np.uint8(ord("0"))
    decimals = size - 1 - int(points[0].argmax()) if points[0].any() else 0
    if not 0 < digits.shape[1] <= 18 or (digits > 9).any() or 10**decimals > unit_ns:
        return None
    numbers = digits.astype(np.int64) @ 10 ** np.arange(digits.shape[1] - 1, -1, -1)
    scale = unit_ns // 10**decimals
    return numbers * scale if numbers.max() <= (2**63 - 1) // scale else None


def _stamp(text: bytes, unit_ns: int) -> int:
    sign, text = (-1, text[1:]) if text[:1] == b"-" else (1, text)
    whole, _, fraction = text.partition(b".")
    if not (whole + fraction).isdigit() or len(whole) > 19:
        return int(NO_STAMP)
    value = int(whole or b"0") * unit_ns + int(fraction[:18] or b"0") * unit_ns // 10 ** len(fraction[:18])
    return sign * value if value < 2**63 else int(NO_STAMP)


def bad_stamp(t_ns: Ints) -> Mask:
    """Return which results of `stamps` are not times."""
    return t_ns == NO_STAMP
