"""Lines of a text: maximum length, truncated last lines, and pieces of whole lines.

A number at the end of a truncated file is wrong, and a file with a line of gigabytes, such as a disk image or
a file of zeros, must not be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from transect.base.file_bytes import Content
from transect.errors import ParseError

from ..losses import Loss

MAX_LINE_BYTES = 1 << 24
"""Files with longer lines are refused; a laser scan has about 10,000 bytes."""
PIECE_BYTES = 1 << 23
"""Bytes of a large text that are parsed at a time; as numbers they may take thirty times the memory."""
Read = TypeVar("Read")
Context = TypeVar("Context")
Built = TypeVar("Built")
_FIELD = re.compile(rb"[^\s,;]+")
_LINE_END = re.compile(rb"[\r\n]")
_CHUNK_BYTES = 1 << 20


def refuse_long_lines(content: Content, file: str) -> None:
    """Raise a ParseError if a text has a line of more than `MAX_LINE_BYTES`.

    Such a line covers a whole block of half its length. In other blocks a line ends, usually near the start,
    so that little is read.
    """
    block = MAX_LINE_BYTES // 2
    for start in range(0, len(content) - block, block):
        if _find_line_end(content, start, start + block) < 0:
            first = _after_newline(content, start)
            last = _find_line_end(content, start + block, first + MAX_LINE_BYTES + 1)
            if last < 0 and len(content) - first > MAX_LINE_BYTES:
                raise ParseError(
                    f"{file} has a line of more than {MAX_LINE_BYTES >> 20} MiB",
                    where=f"{file}:{_line_at(content, first)}",
                    why="no log has such lines: the file is damaged, or not text",
                )


def _find_line_end(content: Content, start: int, end: int) -> int:
    """Return the position of the first line end in a range of bytes, or -1."""
    step = 1 << 16
    while start < min(end, len(content)):
        found = _LINE_END.search(content[start : min(start + step, end)])
        if found:
            return start + found.start()
        start, step = start + step, _CHUNK_BYTES
    return -1


@dataclass(frozen=True, eq=False)
class TextPiece:
    """Whole lines of a text."""

    data: bytes | memoryview
    before: int = 0  # Lines of the text before it, where a lone carriage return ends a line (`read_csv`)
    newlines: int = 0  # Newlines of the text before it (`scan`)
    losses: tuple[Loss, ...] = ()  # Truncated last line, for the last piece


def line_pieces(content: Content, file: str) -> Iterator[TextPiece]:
    """Yield a text in pieces of several megabytes; a text without complete lines as one empty piece."""
    size, cut = whole_lines(content, file)
    lost = (cut,) if cut else ()
    start = before = newlines = 0
    if not size:
        yield TextPiece(b"", losses=lost)
    while start < size:
        data = _piece_at(content, start, size)
        start += len(data)
        yield TextPiece(data, before, newlines, lost if start == size else ())
        before, newlines = before + count_line_ends(data), newlines + data.count(b"\n")


def _piece_at(content: Content, start: int, size: int) -> bytes:
    """Return as many whole lines as fit in a piece, at least one."""
    data = bytes(content[start : min(start + PIECE_BYTES, size)])
    if start + len(data) == size:
        return data
    if end := data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, -1) + 1:
        return data[:end]
    end = _find_line_end(content, start + PIECE_BYTES, size)
    windows = bytes(content[end : end + 2]) == b"\r\n"
    return data + bytes(content[start + PIECE_BYTES : size if end < 0 else end + 1 + windows])


def whole_piece(text: Content, file: str) -> TextPiece:
    """Return all complete lines of a text as one piece."""
    size, cut = whole_lines(text, file)
    data = text if isinstance(text, bytes | memoryview) else bytes(text)
    return TextPiece(memoryview(data)[:size], losses=(cut,) if cut else ())


def read_twice(
    content: Content,
    file: str,
    read: Callable[[TextPiece], Read],
    summarise: Callable[[Iterable[Read]], Context],
    build: Callable[[Read, Context], Built],
) -> Iterator[Built]:
    """Yield a result for each piece of a text that depends on the whole text.

    `read` parses a piece, `summarise` computes the context from all parsed pieces, and `build` makes a result
    from a parsed piece and the context. A text of several pieces is read twice, so that one is in memory.
    """
    if len(content) <= PIECE_BYTES:
        only = read(next(line_pieces(content, file)))
        yield build(only, summarise([only]))
        return
    context = summarise(map(read, line_pieces(content, file)))
    yield from (build(read(piece), context) for piece in line_pieces(content, file))


def count_line_ends(text: bytes | memoryview) -> int:
    """Return the number of line ends in a text, including lone carriage returns."""
    data = bytes(text)
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def whole_lines(buffer: Content, file: str) -> tuple[int, Loss | None]:
    """Return the size of the complete lines of a text, and the loss of a truncated last line.

    A last line without newline is complete if it has as many fields as the previous line, and its last field
    is at least as long, including decimals, because writers use a fixed format.
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
    """Return whether a text is empty or ends with a line end."""
    return len(buffer) == 0 or bytes(buffer[len(buffer) - 1 :]) in (b"\n", b"\r")


def _as_complete(field: bytes, model: bytes) -> bool:
    digits, wanted = field.partition(b".")[2], model.partition(b".")[2]
    return len(digits) >= len(wanted) if b"." in model else len(field) >= len(model)


def _after_newline(buffer: Content, end: int) -> int:
    """Return the start of the line that ends at `end`."""
    while end > 0:
        start = max(0, end - _CHUNK_BYTES)
        found = bytes(buffer[start:end]).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _line_at(buffer: Content, at: int) -> int:
    """Return the number, from 1, of the line that starts at byte `at`."""
    return 1 + sum(
        bytes(buffer[i : min(i + _CHUNK_BYTES, at)]).count(b"\n") for i in range(0, at, _CHUNK_BYTES)
    )
