"""The fields of a dataclass as they are described: in `Attributes` sections, or in comments beside them."""

from __future__ import annotations

import inspect
import re

from transect.base.field_docs import read_field_comments


def attributes_of(kind: type) -> dict[str, tuple[str, str]]:
    """Return the type and the meaning of each field that the source describes, by its name.

    A comment that follows a field, or stands in the lines above it, describes that field.
    """
    return read_field_comments(kind) | _section_of(kind)


def _section_of(kind: type) -> dict[str, tuple[str, str]]:
    """Return what the `Attributes` section of a docstring says."""
    section = (inspect.getdoc(kind) or "").partition("Attributes\n----------\n")[2]
    found: dict[str, tuple[str, str]] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            listed, _, shape = line.partition(":")
            names = [name.strip() for name in listed.split(",")]
            found |= dict.fromkeys(names, (_markdown(shape), ""))
        elif line:
            text = _markdown(line)
            found |= {name: (found[name][0], f"{found[name][1]} {text}".strip()) for name in names}
    return found


def _markdown(text: str) -> str:
    return re.sub(r"``(.*?)``", r"`\1`", text.strip()).replace("|", "\\|")
