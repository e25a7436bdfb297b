"""What a terminal is shown: names and notes out of a log may hold anything, but must not command it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any, TextIO


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what commands a terminal, and a whole line in bold or red, or in no style, as our own are."""
    commands = (
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but for tabulator and line feed
        "\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what turns the direction of writing
        "\ud800-\udfff]"  # what cannot be encoded
    )
    return re.compile(commands), re.compile(r"((?:\x1b\[(?:1|31)m)?)(.*)(\x1b\[0m)$")


def escape(text: str) -> str:
    r"""Return a text with what would command a terminal spelled out: `\x1b` for the escape character."""
    if text.replace("\n", "").isprintable():
        return text
    return "\n".join(map(_escape_line, text.split("\n")))


def _escape_line(line: str) -> str:
    commands, styles = _patterns()
    styled = styles.match(line)
    begin, inside, end = styled.groups() if styled else ("", line, "")
    return begin + commands.sub(lambda found: ascii(found[0])[1:-1], inside) + end


def bar_stream() -> TextIO:
    """Return stderr for a bar, which moves the cursor; its text has no names out of a log."""
    return sys.stderr.stream if isinstance(sys.stderr, PlainStream) else sys.stderr


def show_coloured(text: str, parts: Iterable[tuple[str, str]]) -> None:
    """Print a line: a text, escaped, then parts of our own, each in a colour, which are not escaped.

    Colours are for terminals, and for people who did not set NO_COLOR.
    """
    import click

    line = escape(text) + "".join(click.style(part, fg=colour) for part, colour in parts)
    stream = sys.stdout.stream if isinstance(sys.stdout, PlainStream) else sys.stdout
    click.echo(line, file=stream, color=False if os.environ.get("NO_COLOR") else None)


class PlainStream:
    """A text stream, such as stdout, that escapes what is written to it.

    Attributes
    ----------
    stream : file
        The stream behind it, for bars that move the cursor.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text, escaped."""
        self.stream.write(escape(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
