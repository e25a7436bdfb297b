"""Documentation of dataclass fields: the comments beside or above them in the source."""

from __future__ import annotations

import ast
import inspect
import textwrap


def read_field_comments(kind: type) -> dict[str, tuple[str, str]]:
    """Return the annotation and the comment of each field that has a comment.

    A comment that follows a field, or stands in the lines above it, describes that field.
    """
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
