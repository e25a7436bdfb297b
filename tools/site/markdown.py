"""Markdown that is made by programs, and Markdown of GitHub as mkdocs reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

FENCE = re.compile(r" *(```|~~~)\w*")
CODE = re.compile(r"`[^`]*`")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")
LINK = re.compile(r"(\]\()([^)\s#]+)")


def table_of(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table without the columns that are empty in all rows; "" without rows."""
    kept = [tuple(row) for row in rows]
    used = [k for k in range(len(heads)) if any(row[k] for row in kept)]
    lines = [heads, ["---"] * len(heads), *kept] if kept else []
    return "".join(f"| {' | '.join(_cell(line[k]) for k in used)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def name_of(text: str) -> str:
    """Return a name as code; "" stays empty."""
    return f"`{text}`" if text else ""


def block_of(text: str, language: str = "text") -> str:
    """Return a block of code with a fence longer than those in the text."""
    fence = "~~~~" if "```" in text else "```"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def adapt(text: str) -> str:
    """Return a page of GitHub for mkdocs: blanks above lists, one word after a fence, bars in code."""
    lines: list[str] = []
    fence, before = "", ""
    for line in text.splitlines():
        if (found := FENCE.match(line)) and fence in ("", found[1]):
            fence, line = "" if fence else found[1], found[0]
        elif not fence and ITEM.match(line) and _is_paragraph(before):
            lines.append("")
        elif not fence and line.startswith("|"):
            line = CODE.sub(lambda code: code[0].replace("\\|", "|"), line)
        lines.append(line)
        before = "" if found else line
    return "\n".join(lines) + "\n"


def _is_paragraph(line: str) -> bool:
    return bool(line.strip()) and not line.startswith((" ", "#", "|", ">")) and not ITEM.match(line)
