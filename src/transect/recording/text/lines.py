"""Lines of a text: how long they may be, where the complete ones end, and pieces of whole lines.

A file cut off in the middle of a number must not be believed, and one that is a single line of gigabytes, a
disk image or a file of zeros, must not be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from transect.base.file_bytes import Content
from transect.errors import ParseError

from ..losses import Loss

LONGEST_LINE = 1 << 24
"""Bytes of a line; a longer one is refused, and so is its file. A laser's scan has some 10,000 of them."""
PIECE = 1 << 23
"""Bytes that are parsed at a time of a larger text; as numbers they may take thirty times as many."""
Read = TypeVar("Read")
Judged = TypeVar("Judged")
Built = TypeVar("Built")
_FIELD = re.compile(rb"[^\s,;]+")
_LINE_END = re.compile(rb"[\r\n]")
_CHUNK = 1 << 20


def refuse_long_lines(content: Content, file: str) -> None:
    """Raise a ParseError if a text has a line of more than `LONGEST_LINE` bytes.

    Such a line covers one of the blocks of half its length; in all others a line ends, mostly near their
    beginning, so that little is read.
    """
    block = LONGEST_LINE // 2
    for start in range(0, len(content) - block, block):
        if _find_line_end(content, start, start + block) < 0:
            first = _after_newline(content, start)
            last = _find_line_end(content, start + block, first + LONGEST_LINE + 1)
            if last < 0 and len(content) - first > LONGEST_LINE:
                raise ParseError(
                    f"{file} has a line of more than {LONGEST_LINE >> 20} MiB",
                    where=f"{file}:{_line_at(content, first)}",
                    why="no log has such lines: the file is damaged, or not text",
                )


def _find_line_end(content: Content, start: int, end: int) -> int:
    """Return where the first line ends in a range of bytes; -1 if none does."""
    step = 1 << 16
    while start < min(end, len(content)):
        found = _LINE_END.search(content[start : min(start + step, end)])
        if found:
            return start + found.start()
        start, step = start + step, _CHUNK
    return -1


@dataclass(frozen=True, eq=False)
class Piece:
    """Whole lines of a text."""

    data: bytes | memoryview
    # Lines of the text before them; a lone carriage return ends one, as it does for `read_csv`
    before: int = 0
    newlines: int = 0  # The same for `scan`, which counts newlines alone
    losses: tuple[Loss, ...] = ()  # That of the text's last line, with the last piece, if it is cut off


def line_pieces(content: Content, file: str) -> Iterator[Piece]:
    """Iterate over a text in pieces of some megabytes; one without complete lines has an empty one."""
    size, cut = whole_lines(content, file)
    lost = (cut,) if cut else ()
    start = before = newlines = 0
    if not size:
        yield Piece(b"", losses=lost)
    while start < size:
        data = _piece_at(content, start, size)
        start += len(data)
        yield Piece(data, before, newlines, lost if start == size else ())
        before, newlines = before + count_line_ends(data), newlines + data.count(b"\n")


def _piece_at(content: Content, start: int, size: int) -> bytes:
    """Return as many whole lines as a piece has room for, or the first one, if it has not."""
    data = bytes(content[start : min(start + PIECE, size)])
    if start + len(data) == size:
        return data
    if end := data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, -1) + 1:
        return data[:end]
    end = _find_line_end(content, start + PIECE, size)
    windows = bytes(content[end : end + 2]) == b"\r\n"
    return data + bytes(content[start + PIECE : size if end < 0 else end + 1 + windows])


def whole_piece(text: Content, file: str) -> Piece:
    """Return all complete lines of a text as one piece."""
    size, cut = whole_lines(text, file)
    data = text if isinstance(text, bytes | memoryview) else bytes(text)
    return Piece(memoryview(data)[:size], losses=(cut,) if cut else ())


def read_twice(
    content: Content,
    file: str,
    read: Callable[[Piece], Read],
    judge: Callable[[Iterable[Read]], Judged],
    build: Callable[[Read, Judged], Built],
) -> Iterator[Built]:
    """Build something of each piece of a text that has to be looked at as a whole first.

    Parameters
    ----------
    content, file
        The text, and its name for losses.
    read : callable
        Reads a piece. A text of several pieces is read twice, so that only one of them is in memory.
    judge : callable
        Takes all that was read, one by one, and returns what has to be known of the whole.
    build : callable
        Takes what was read of a piece, and what is known.
    """
    if len(content) <= PIECE:
        one = read(next(line_pieces(content, file)))
        yield build(one, judge([one]))
        return
    judged = judge(map(read, line_pieces(content, file)))
    yield from (build(read(piece), judged) for piece in line_pieces(content, file))


def count_line_ends(text: bytes | memoryview) -> int:
    """Return how many lines end in a text; a lone carriage return ends one, too."""
    data = bytes(text)
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def whole_lines(buffer: Content, file: str) -> tuple[int, Loss | None]:
    """Return how many bytes of a text are complete lines, and the loss of a cut last line if there is one.

    A last line without its newline is believed only if it has as many fields as the line before it and its
    last field is as long as that line's, decimals included: writers print alike, a cut makes it shorter.
    """
    refuse_long_lines(buffer, file)
    size = len(buffer)
    if ends_whole(buffer):
        return size, None
    cut = _after_newline(buffer, size)
    if cut == 0:
        return size, None
    last = _FIELD.findall(buffer[cut:size])
    before = _FIELD.findall(buffer[_after_newline(buffer, cut - 1) : cut - 1])
    if last and before and len(last) == len(before) and _as_complete(last[-1], before[-1]):
        return size, None
    return cut, Loss(file, "the last line is cut off", line=_line_at(buffer, cut), byte=cut)


def ends_whole(buffer: Content) -> bool:
    """Tell whether a text is empty or ends with the end of a line."""
    return len(buffer) == 0 or bytes(buffer[len(buffer) - 1 :]) in (b"\n", b"\r")


def _as_complete(field: bytes, model: bytes) -> bool:
    digits, wanted = field.partition(b".")[2], model.partition(b".")[2]
    return len(digits) >= len(wanted) if b"." in model else len(field) >= len(model)


def _after_newline(buffer: Content, end: int) -> int:
    """Return where the line that ends at `end` begins."""
    while end > 0:
        start = max(0, end - _CHUNK)
        found = bytes(buffer[start:end]).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _line_at(buffer: Content, at: int) -> int:
    """Return the number, from 1, of the line that begins at byte `at`."""
    return 1 + sum(bytes(buffer[i : min(i + _CHUNK, at)]).count(b"\n") for i in range(0, at, _CHUNK))
