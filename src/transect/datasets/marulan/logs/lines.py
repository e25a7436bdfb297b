"""Lines of SDI logs, `*<timestamp> TEXT_TYPE data`: read in pieces; bad lines are located and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Ints, Mask
from transect.base.file_bytes import Content
from transect.formats.shared.rows import LossCounter
from transect.recording import Loss, Parsed
from transect.recording.text import Tokens, bad_stamp, blocks, ends_whole, line_pieces, scan


class LogProblems:
    """Problems of a file: skipped or shortened lines by reason, and remarks without a loss."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._lost = LossCounter()
        self._remarks: Counter[str] = Counter()

    def passed(self, tokens: Tokens, lines: Ints, good: Mask, reason: str) -> Ints:
        """Return the good lines (indices); record the others with the reason."""
        bad = lines[~good]
        if len(bad):
            self._lost.add(reason, int(tokens.line[bad[0]]), len(bad))
        return lines[good]

    def remark(self, text: str, count: int) -> None:
        """Record a remark about `count` lines or values."""
        if count:
            self._remarks[text] += count

    @property
    def losses(self) -> tuple[Loss, ...]:
        """One loss per reason, at its first line."""
        return self._lost.losses(self.file, "line")

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks as sentences."""
        return tuple(f"{self.file}: {text} ({count} x)" for text, count in self._remarks.items())


BlockReader = Callable[[Tokens, LogProblems], Mapping[str, pa.Table]]
"""Function that converts the lines of one piece of a log to rows of tables."""


def read_log(content: Content, file: str, read_block: BlockReader) -> Iterator[dict[str, Parsed]]:
    """Read a log piece by piece.

    Parameters
    ----------
    content : bytes or FileBytes
        Content of the file.
    file : str
        Its name, for losses.
    read_block : callable
        Reads the lines of a piece into tables; called without lines for an empty log.

    Yields
    ------
    dict of str to Parsed
        The tables; the last piece of each, without rows, contains all losses of the file, whose lines may be
        of any type.
    """
    problems = LogProblems(file)
    cut: tuple[Loss, ...] = ()
    for piece in line_pieces(content, file):
        found = [read_block(tokens, problems) for tokens in blocks(piece.data, before=piece.newlines)]
        found = found or [read_block(scan(b""), problems)]
        yield {name: Parsed(pa.concat_tables([each[name] for each in found])) for name in found[0]}
        cut = piece.losses
    losses, notes = [*problems.losses, *cut], list(problems.notes)
    if not len(content):
        losses.append(Loss(file, "the file is empty", byte=0, count=0))
    elif not cut and not ends_whole(content):
        notes.append(f"{file}: the last line has no newline, its last field may be cut")
    empty = read_block(scan(b""), problems)
    yield {name: Parsed(table, tuple(losses), tuple(notes)) for name, table in empty.items()}


def lines_of(
    tokens: Tokens,
    word: bytes,
    problems: LogProblems,
    *,
    words: int = 1,
    width: int | None = None,
    min_width: int = 0,
) -> tuple[Ints, Ints]:
    """Return the valid lines (indices) of a log with lines of a single type, and their times in ns."""
    lines = np.arange(len(tokens.line))
    lines = problems.passed(tokens, lines, tokens.equals(1, word), f"not a {word.decode()} line")
    return find_valid_lines(tokens, lines, problems, words=words, width=width, min_width=min_width)


def find_valid_lines(
    tokens: Tokens,
    lines: Ints,
    problems: LogProblems,
    *,
    words: int,
    width: int | None = None,
    min_width: int = 0,
) -> tuple[Ints, Ints]:
    """Return the lines (indices) with the right number of fields, and their times in ns.

    Parameters
    ----------
    tokens : Tokens
    lines : (n,) int array
        Lines of one type.
    problems : LogProblems
        Receives all others.
    words : int
        Number of fields that are words; all others must be numbers (including `nan`).
    width, min_width : int
        Number of fields, exact or minimum.
    """
    counts = tokens.counts[lines]
    fits = counts == width if width is not None else counts >= min_width
    expected = f"{width} fields are expected" if width is not None else f"fewer than {min_width} fields"
    lines = problems.passed(tokens, lines, fits, f"the line is incomplete: {expected}")
    numeric = tokens.word_counts[lines] == words
    lines = problems.passed(tokens, lines, numeric, "text where a number is expected")
    return find_timed_lines(tokens, lines, problems)


def find_timed_lines(tokens: Tokens, lines: Ints, problems: LogProblems) -> tuple[Ints, Ints]:
    """Return the lines (indices) that begin with a time, and their times in ns."""
    t_ns = tokens.stamps(0, lines)
    timed = ~bad_stamp(t_ns)
    return problems.passed(tokens, lines, timed, "the time stamp cannot be read"), t_ns[timed]


def is_whole_number(values: NDArray[Any], minimum: int) -> Mask:
    """Return which values are whole numbers of at least `minimum`."""
    return (values >= minimum) & (values == np.trunc(values)) & np.isfinite(values)
