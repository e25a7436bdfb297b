"""Numbers out of free text: lines of blank- or comma-separated tokens, some of them words.

`scan` gives every token of every line as a float (correctly rounded, NaN for words), and `stamps` turns tokens
into nanoseconds by integer arithmetic. Large buffers go through compiled loops, small ones through plain Python,
since loading the compiler takes longer than reading them; both give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.recording.source import Buffer

COMPILED_FROM = 2_000_000
"""Buffers of at least this many bytes are scanned by compiled code."""
NUMBER, WORD, HARD = 0, 1, 2
_SEPARATORS = b" \t\r,;"
_NO_STAMP = np.iinfo(np.int64).min


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of a text, line by line (empty lines have none and are left out).

    Attributes
    ----------
    buffer : (bytes,) uint8 array
    values : (tokens,) float64 array
        NaN for words.
    is_word : (tokens,) bool array
        Tokens that are not numbers (`nan` and `inf` are numbers).
    begin, end : (tokens,) int64 array
        Byte range of each token; a `*` in front of a line is not part of its first token.
    first : (lines + 1,) int64 array
        Line i has the tokens ``first[i]:first[i + 1]``.
    line : (lines,) int64 array
        Line number in the file, from 1.
    """

    buffer: NDArray[np.uint8]
    values: NDArray[np.float64]
    is_word: NDArray[np.bool_]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    first: NDArray[np.int64]
    line: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """(lines,) number of tokens in each line."""
        return np.diff(self.first)

    def text(self, token: int) -> str:
        """Return a token as it stands."""
        return self.buffer[self.begin[token] : self.end[token]].tobytes().decode("utf-8", "replace")

    def column(self, number: int, lines: NDArray[Any]) -> NDArray[np.float64]:
        """Return token `number` of the given lines (indices) as floats."""
        return self.values[self.first[lines] + number]

    def block(self, start: int, width: int, lines: NDArray[Any]) -> NDArray[np.float64]:
        """Return `width` successive tokens from number `start` of the given lines, (lines, width)."""
        return self.values[(self.first[lines] + start)[:, None] + np.arange(width)]

    def words(self, number: int) -> list[str]:
        """Return token `number` of every line as text, "" where the line is shorter."""
        return [self.text(f + number) if n > number else "" for f, n in zip(self.first[:-1], self.counts, strict=True)]

    def stamps(self, number: int, lines: NDArray[Any], unit_ns: int = 1_000_000_000) -> NDArray[np.int64]:
        """Return token `number` of the given lines as nanoseconds; `bad_stamp` marks what is not a time."""
        tokens = self.first[lines] + number
        return stamps(self.buffer, self.begin[tokens], self.end[tokens], unit_ns)


def bad_stamp(t_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return where `Tokens.stamps` could not read a time."""
    return t_ns == _NO_STAMP


def scan(buffer: Buffer, size: int | None = None) -> Tokens:
    """Return the tokens of a text (of its first `size` bytes)."""
    data = np.frombuffer(buffer, dtype=np.uint8, count=-1 if size is None else size) if len(buffer) else _EMPTY
    parts = _compiled()[0](data) if len(data) >= COMPILED_FROM else _scan_python(data)
    values, kind, begin, end, first, line = parts
    for token in np.flatnonzero(kind == HARD):
        values[token] = float(data[begin[token] : end[token]].tobytes())
    return Tokens(data, values, kind == WORD, begin, end, first, line)


def stamps(
    data: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64], unit_ns: int
) -> NDArray[np.int64]:
    """Return decimal tokens times `unit_ns` as whole nanoseconds, truncated; see `bad_stamp`."""
    if len(begin) * 16 >= COMPILED_FROM:
        return _compiled()[1](data, begin, end, unit_ns)
    texts = (data[b:e].tobytes() for b, e in zip(begin.tolist(), end.tolist(), strict=True))
    return np.fromiter((_stamp_python(text, unit_ns) for text in texts), np.int64, len(begin))


_EMPTY: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)


def _stamp_python(text: bytes, unit_ns: int) -> int:
    sign, text = (-1, text[1:]) if text[:1] == b"-" else (1, text)
    whole, _, fraction = text.partition(b".")
    digits = whole + fraction
    if not digits.isdigit() or len(whole) > 19:
        return int(_NO_STAMP)
    value = int(whole or b"0") * unit_ns + int(fraction[:18] or b"0") * unit_ns // 10 ** len(fraction[:18])
    return sign * value if value < 2**63 else int(_NO_STAMP)


def _scan_python(data: NDArray[np.uint8]) -> tuple[Any, ...]:
    values: list[float] = []
    kind: list[int] = []
    begin: list[int] = []
    end: list[int] = []
    first, numbers = [0], list[int]()
    at = 0
    for number, line in enumerate(data.tobytes().split(b"\n"), 1):
        position, count = 0, len(values)
        text = line.translate(_TO_BLANKS)
        for token in text.split(b" "):
            if token:
                lead = 1 if len(values) == count and token[:1] == b"*" else 0
                if token[lead:]:
                    value, what = _number(token[lead:])
                    values.append(value)
                    kind.append(what)
                    begin.append(at + position + lead)
                    end.append(at + position + len(token))
            position += len(token) + 1
        at += len(line) + 1
        if len(values) > count:
            first.append(len(values))
            numbers.append(number)
    return (
        np.array(values, np.float64),
        np.array(kind, np.uint8),
        np.array(begin, np.int64),
        np.array(end, np.int64),
        np.array(first, np.int64),
        np.array(numbers, np.int64),
    )


_TO_BLANKS = bytes(32 if c in _SEPARATORS else c for c in range(256))
_DIGITS = frozenset(b"0123456789+-.eEnaifNAIF")


def _number(token: bytes) -> tuple[float, int]:
    if not _DIGITS.issuperset(token):
        return np.nan, WORD
    try:
        return float(token), NUMBER
    except ValueError:
        return np.nan, WORD


@cache
def _compiled() -> tuple[Any, Any]:
    from ._scan_compiled import scan_compiled, stamps_compiled

    return scan_compiled, stamps_compiled
