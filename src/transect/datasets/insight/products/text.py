"""`key = value` text as the IDA ground software prints it: read with tolerance, written as documented."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from transect.datasets.insight.robot.parameters import fold
from transect.recording import Loss
from transect.recording.source import Buffer

MAX_CONTINUATION = 12
"""A bracket that stays open for more lines than this was never closed."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?nan", re.IGNORECASE)


@dataclass(frozen=True)
class Line:
    """A logical line: the lines of one bracketed value are joined."""

    number: int  # of its first physical line, from 1
    text: str


def text_lines(buffer: Buffer, file: str) -> tuple[list[Line], list[Loss]]:
    """Return the logical lines of a text that are not blank, and the loss of a last line that is cut off.

    A last line without its newline is believed only where its end can be seen: at a bracket, or at the
    decimal of a `.time`, which ends every status block.
    """
    text = bytes(buffer).decode("utf-8-sig", "replace")
    physical = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    losses: list[Loss] = []
    last = physical.pop().strip()
    if last.endswith("]") or re.search(r"\.time\b.*\.\d+$", last):
        physical.append(last)
    elif last:
        losses.append(Loss(file, "the last line is cut off", line=len(physical) + 1))
    return list(_join(physical)), losses


def _join(physical: Sequence[str]) -> Iterator[Line]:
    """Join `key = [ 1 2` with the lines that follow, up to the closing bracket."""
    index = 0
    while index < len(physical):
        first = index
        text = physical[index].strip()
        index += 1
        if text.count("[") > text.count("]"):
            more = _until_closed(physical[index : index + MAX_CONTINUATION])
            text, index = " ".join([text, *more]), index + len(more)
        if text:
            yield Line(first + 1, text)


def _until_closed(following: Sequence[str]) -> list[str]:
    more: list[str] = []
    for line in following:
        if "=" in line or "[" in line:
            return []
        more.append(line.strip())
        if "]" in line:
            return more
    return []


def key_and_value(text: str, known: Collection[str]) -> tuple[str, str]:
    """Split a line at its `=`; where that is missing, at the bracket or after the longest known key.

    Parameters
    ----------
    known : collection of str
        Folded keys.

    Returns
    -------
    key, value : str
        The key folded; "" if the line holds no key, the value "" if it holds no value.
    """
    before, equals, after = text.partition("=")
    if equals:
        return fold(before), after.strip()
    if "[" in text:
        before, _, after = text.partition("[")
        return fold(before), f"[{after}"
    words = text.split()
    for count in range(len(words), 0, -1):
        key = fold(" ".join(words[:count]))
        if key in known:
            return key, " ".join(words[count:])
    return "", ""


def tokens(value: str) -> list[str]:
    """Return the words of `[ a b ]`, `[a, b]` or `a b`."""
    return value.replace("[", " ").replace("]", " ").replace(",", " ").split()


def is_number(token: str) -> bool:
    """Tell whether a word is a decimal number or NaN."""
    return _NUMBER.fullmatch(token) is not None


def bracket(words: Sequence[str]) -> str:
    """Return `[ a b ]`."""
    return f"[ {' '.join(words)} ]"


def shortest(value: float) -> str:
    """Return the shortest text that reads back as the same number, whole numbers without a point."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def exact(value: float, style: str) -> str:
    """Return a number in a format (`.6e`) if that reads back as the same number, else its shortest text."""
    text = format(value, style) if style else repr(value)
    return text if float(text) == value else repr(value)
