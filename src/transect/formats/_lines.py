"""Where the complete lines of a text end: a file cut off in the middle of a number must not be believed."""

from __future__ import annotations

import re

from transect.recording import Loss
from transect.recording.source import Buffer

_FIELD = re.compile(rb"[^\s,;]+")


def whole_lines(buffer: Buffer, file: str) -> tuple[int, Loss | None]:
    """Return how many bytes of a text are complete lines, and the loss of a cut last line.

    A last line without its newline is believed only if it has as many fields as the line before it and its
    last field is as long as that line's, decimals included: writers print alike, a cut makes it shorter.
    """
    size = len(buffer)
    if size == 0 or buffer[size - 1 : size] in (b"\n", b"\r"):
        return size, None
    tail_at = max(0, size - 1_000_000)
    tail = bytes(buffer[tail_at:size])
    cut = tail.rfind(b"\n") + 1
    if cut == 0:
        return size, None
    last = _FIELD.findall(tail[cut:])
    before = _FIELD.findall(tail[: cut - 1].rpartition(b"\n")[2])
    if last and before and len(last) == len(before) and _as_complete(last[-1], before[-1]):
        return size, None
    line = 1 + bytes(buffer[: tail_at + cut]).count(b"\n")
    return tail_at + cut, Loss(file, "the last line is cut off", line=line, byte=tail_at + cut)


def _as_complete(field: bytes, model: bytes) -> bool:
    digits, wanted = field.partition(b".")[2], model.partition(b".")[2]
    return len(digits) >= len(wanted) if b"." in model else len(field) >= len(model)
