"""Tokens of free text: lines of numbers and words that are separated by blanks or commas.

`scan` converts every token of every line to a float (correctly rounded, NaN for words), and `Tokens.stamps`
converts tokens to nanoseconds by integer arithmetic. `blocks` does the same in pieces to limit memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import NS
from transect.base.file_bytes import Content, FileBytes

from ..arrow import offsets_of
from .digits import NEWLINE, read_numbers, split, stamps

BLOCK_BYTES = 1 << 20
"""Bytes scanned at a time, so that intermediate arrays stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of a text by line, without empty lines."""

    buffer: NDArray[np.uint8]  # (bytes,) uint8
    values: NDArray[np.float64]  # (tokens,), NaN for words
    is_word: NDArray[np.bool_]  # (tokens,) bool, tokens that are not numbers (`nan` and `inf` are numbers)
    # (tokens,) int64, byte range of each token; a `*` at the start of a line is not part of its first token
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    first: NDArray[np.int64]  # (lines + 1,) int64, line i has the tokens ``first[i]:first[i + 1]``
    line: NDArray[np.int64]  # (lines,) int64, line number in the file, from 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """(lines,) number of tokens in each line."""
        return np.diff(self.first)

    @property
    def word_counts(self) -> NDArray[np.int64]:
        """(lines,) number of words in each line."""
        lines = np.searchsorted(self.first, np.flatnonzero(self.is_word), side="right") - 1
        return np.bincount(lines, minlength=len(self.line))

    def text(self, token: int) -> str:
        """Return a token as text."""
        return self.buffer[self.begin[token] : self.end[token]].tobytes().decode("utf-8", "replace")

    def column(self, number: int, lines: NDArray[Any]) -> NDArray[np.float64]:
        """Return token `number` of the given lines (indices) as floats."""
        return self.values[self.first[lines] + number]

    def block(self, start: int, width: int, lines: NDArray[Any]) -> NDArray[np.float64]:
        """Return `width` successive tokens from number `start` of the given lines as (lines, width)."""
        return self.values[(self.first[lines] + start)[:, None] + np.arange(width)]

    def ragged(
        self, start: int | NDArray[np.int64], counts: NDArray[np.int64], lines: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return `counts[i]` tokens from number `start` of each line `lines[i]`, concatenated, and offsets.

        `start` is one number, or an array with one for each line.
        """
        offsets = offsets_of(counts)
        begin = self.first[lines] + start
        uniform = len(lines) > 1 and (np.diff(lines) == 1).all() and (counts == counts[0]).all()
        # Successive lines of equal length are a matrix, which needs no index per value.
        if isinstance(start, int) and uniform and (np.diff(begin) == self.counts[lines[-1]]).all():
            values = self.values[self.first[lines[0]] : self.first[lines[-1] + 1]].reshape(len(lines), -1)
            return values[:, start : start + counts[0]].reshape(-1), offsets
        shift = np.repeat(begin - offsets[:-1], counts)
        return self.values[np.arange(offsets[-1]) + shift], offsets

    def words(self, number: int) -> list[str]:
        """Return token `number` of every line as text, "" for shorter lines."""
        return [
            self.text(f + number) if n > number else ""
            for f, n in zip(self.first[:-1], self.counts, strict=True)
        ]

    def equals(self, number: int, word: bytes) -> NDArray[np.bool_]:
        """(lines,) whether token `number` of each line is `word`."""
        same = self.counts > number
        tokens = self.first[:-1][same] + number
        same[same] = self.end[tokens] - self.begin[tokens] == len(word)
        begin = self.begin[self.first[:-1][same] + number]
        letters = self.buffer[begin[:, None] + np.arange(len(word))]
        same[same] = (letters == np.frombuffer(word, np.uint8)).all(axis=1)
        return same

    def stamps(self, number: int, lines: NDArray[Any], unit_ns: int = NS) -> NDArray[np.int64]:
        """Return token `number` of the given lines as nanoseconds; `bad_stamp` marks invalid times."""
        tokens = self.first[lines] + number
        return stamps(self.buffer, self.begin[tokens], self.end[tokens], unit_ns)


def scan(buffer: Content, size: int | None = None, *, before: int = 0) -> Tokens:
    """Return the tokens of the first `size` bytes of a text, or of a piece with lines `before` it."""
    return _tokens(_bytes_of(buffer, size), before + 1)


def blocks(
    buffer: Content, size: int | None = None, *, block: int = BLOCK_BYTES, before: int = 0
) -> Iterator[Tokens]:
    """Iterate over the tokens of a text in pieces of whole lines, about `block` bytes each.

    The text may be a piece with lines `before` it. Line numbers are those of the text; `begin`, `end` and
    `first` are relative to each piece.
    """
    at, line, size = 0, before + 1, len(buffer) if size is None else size
    while at < size:
        piece = _bytes_of(buffer[at : _end_of_line(buffer, at + block, size)], None)
        yield _tokens(piece, line)
        at += len(piece)
        line += int(np.count_nonzero(piece == NEWLINE))


def _bytes_of(buffer: Content, size: int | None) -> NDArray[np.uint8]:
    if not len(buffer):
        return np.zeros(0, np.uint8)
    content = bytes(buffer) if isinstance(buffer, FileBytes) else buffer
    return np.frombuffer(content, dtype=np.uint8, count=-1 if size is None else size)


def _end_of_line(data: Content, at: int, size: int, step: int = 65_536) -> int:
    """Return the end of the line that contains byte `at`, including its newline."""
    while at < size:
        found = bytes(data[at : min(at + step, size)]).find(b"\n")
        if found >= 0:
            return at + found + 1
        at += step
    return size


def _tokens(data: NDArray[np.uint8], line: int) -> Tokens:
    begin, end, first, numbers = split(data)
    values, is_word = read_numbers(data, begin, end)
    return Tokens(data, values, is_word, begin, end, first, numbers + (line - 1))
