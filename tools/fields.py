"""The fields of a dataclass as they are described: in `Attributes` sections, or in comments beside them."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap


def attributes_of(kind: type) -> dict[str, tuple[str, str]]:
    """Return the type and the meaning of each field that the source describes, by its name.

    A comment that follows a field, or stands in the lines above it, describes that field.
    """
    return comments_of(kind) | _section_of(kind)


def comments_of(kind: type) -> dict[str, tuple[str, str]]:
    """Return the annotation and the comment of each field that has a comment."""
    try:
        lines = textwrap.dedent(inspect.getsource(kind)).splitlines()
    except (OSError, TypeError):  # made by a program
        return {}
    (tree,) = ast.parse("\n".join(lines)).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, tuple[str, str]] = {}
    for field in tree.body:
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        above = field.lineno - 1
        while lines[above - 1].strip().startswith("#"):
            above -= 1
        comments = [line.strip() for line in lines[above : field.lineno - 1]]
        comments.append(
            lines[(field.end_lineno or field.lineno) - 1].encode()[field.end_col_offset or 0 :].decode()
        )
        text = " ".join(comment.strip().removeprefix("#").strip() for comment in comments)
        text = text.partition("pyright:")[0].partition("noqa:")[0].strip()
        if text:
            found[field.target.id] = (
                ast.unparse(field.annotation),
                text[0].upper() + text[1:].rstrip(".") + ".",
            )
    return found


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
