"""Where the complete lines of a text end: a file cut off in the middle of a number must not be believed."""

from __future__ import annotations

import re

from ..losses import Loss
from ..source import Buffer

_FIELD = re.compile(rb"[^\s,;]+")
_CHUNK = 1 << 20


def whole_lines(buffer: Buffer, file: str) -> tuple[int, Loss | None]:
    """Return how many bytes of a text are complete lines, and the loss of a cut last line if there is one.

    A last line without its newline is believed only if it has as many fields as the line before it and its
    last field is as long as that line's, decimals included: writers print alike, a cut makes it shorter.
    """
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


def ends_whole(buffer: Buffer) -> bool:
    """Tell whether a text is empty or ends with the end of a line."""
    return len(buffer) == 0 or bytes(buffer[len(buffer) - 1 :]) in (b"\n", b"\r")


def _as_complete(field: bytes, model: bytes) -> bool:
    digits, wanted = field.partition(b".")[2], model.partition(b".")[2]
    return len(digits) >= len(wanted) if b"." in model else len(field) >= len(model)


def _after_newline(buffer: Buffer, end: int) -> int:
    """Return where the line that ends at `end` begins."""
    while end > 0:
        start = max(0, end - _CHUNK)
        found = bytes(buffer[start:end]).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _line_at(buffer: Buffer, at: int) -> int:
    """Return the number, from 1, of the line that begins at byte `at`."""
    return 1 + sum(bytes(buffer[i : min(i + _CHUNK, at)]).count(b"\n") for i in range(0, at, _CHUNK))


def is_number(text: str | bytes) -> bool:
    """Tell whether a field is a number; Python's `1_000` is none in a file."""
    try:
        float(text)
    except ValueError:
        return False
    return not (b"_" in text if isinstance(text, bytes) else "_" in text)
