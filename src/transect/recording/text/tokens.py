"""Numbers out of free text: lines of blank- or comma-separated tokens, some of them words.

`scan` gives every token of every line as a float (correctly rounded, NaN for words), and `Tokens.stamps`
turns tokens into nanoseconds by integer arithmetic. `blocks` does the same piece by piece, so that memory
stays small.
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

BLOCK = 1 << 20
"""Bytes scanned at a time: what is made of them stays in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of a text, line by line (empty lines have none and are left out)."""

    buffer: NDArray[np.uint8]  # (bytes,) uint8
    values: NDArray[np.float64]  # (tokens,), NaN for words
    is_word: NDArray[np.bool_]  # (tokens,) bool, tokens that are not numbers (`nan` and `inf` are numbers)
    # (tokens,) int64, byte range of each token; a `*` in front of a line is not part of its first token
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
        """(lines,) how many tokens of each line are words."""
        lines = np.searchsorted(self.first, np.flatnonzero(self.is_word), side="right") - 1
        return np.bincount(lines, minlength=len(self.line))

    def text(self, token: int) -> str:
        """Return a token as it stands."""
        return self.buffer[self.begin[token] : self.end[token]].tobytes().decode("utf-8", "replace")

    def column(self, number: int, lines: NDArray[Any]) -> NDArray[np.float64]:
        """Return token `number` of the given lines (indices) as floats."""
        return self.values[self.first[lines] + number]

    def block(self, start: int, width: int, lines: NDArray[Any]) -> NDArray[np.float64]:
        """Return `width` successive tokens from number `start` of the given lines, (lines, width)."""
        return self.values[(self.first[lines] + start)[:, None] + np.arange(width)]

    def ragged(
        self, start: int | NDArray[np.int64], counts: NDArray[np.int64], lines: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return `counts[i]` tokens from number `start` of line `lines[i]`, end to end, and their offsets.

        `start` is one number, or an array with one for each line.
        """
        offsets = offsets_of(counts)
        begin = self.first[lines] + start
        alike = len(lines) > 1 and (np.diff(lines) == 1).all() and (counts == counts[0]).all()
        # Equal lines one after another are a matrix, which needs no index per value.
        if isinstance(start, int) and alike and (np.diff(begin) == self.counts[lines[-1]]).all():
            whole = self.values[self.first[lines[0]] : self.first[lines[-1] + 1]].reshape(len(lines), -1)
            return whole[:, start : start + counts[0]].reshape(-1), offsets
        shift = np.repeat(begin - offsets[:-1], counts)
        return self.values[np.arange(offsets[-1]) + shift], offsets

    def words(self, number: int) -> list[str]:
        """Return token `number` of every line as text, "" where the line is shorter."""
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
        """Return token `number` of the given lines as nanoseconds; `bad_stamp` marks what is not a time."""
        tokens = self.first[lines] + number
        return stamps(self.buffer, self.begin[tokens], self.end[tokens], unit_ns)


def scan(buffer: Content, size: int | None = None, *, before: int = 0) -> Tokens:
    """Return the tokens of a text (of its first `size` bytes), or of a piece that has lines `before` it."""
    return _tokens(_bytes_of(buffer, size), before + 1)


def blocks(
    buffer: Content, size: int | None = None, *, block: int = BLOCK, before: int = 0
) -> Iterator[Tokens]:
    """Iterate over the tokens of a text in pieces of whole lines, about `block` bytes each.

    The text may itself be a piece that has lines `before` it.

    Line numbers run on from piece to piece; `begin`, `end` and `first` count from the start of each piece.
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
    whole = bytes(buffer) if isinstance(buffer, FileBytes) else buffer
    return np.frombuffer(whole, dtype=np.uint8, count=-1 if size is None else size)


def _end_of_line(data: Content, at: int, size: int, step: int = 65_536) -> int:
    """Return where the line that holds byte `at` ends, its newline included."""
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
