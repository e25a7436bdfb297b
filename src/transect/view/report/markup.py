"""HTML and SVG by construction: whatever was not made here is text, and is escaped."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from typing import Any, TypeAlias

_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""What HTML forbids, and what would turn the direction of the text around it."""
VOID = frozenset({"meta", "img"})


class Markup(str):
    """Text that is HTML already; only `tag` and `join` make it."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | Iterable[Child] | None"


def clean(text: object) -> str:
    """Return a text as a page can show it: what cannot be written, or commands the browser, is replaced."""
    return _UNWRITABLE.sub("\ufffd", str(text))


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """Return an element; plain text among its children, and every value of an attribute, is escaped.

    Parameters
    ----------
    children : str, Markup, None or iterables of them
        None is left out.
    attributes
        `class_` is written as ``class``, `data_axis` as ``data-axis``; None and False are left out, True has
        no value.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Return children one after the other, plain text escaped."""
    return Markup("".join(_text(child) for child in children))


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return html.escape(clean(child), quote=False)
    return "".join(_text(part) for part in child)


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(clean(value))}"'


def data_block(identifier: str, value: Any) -> Markup:
    """Return values for the page's own script: JSON that cannot end its element, and is never run."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text = clean(text).replace("<", "\\u003c").replace("&", "\\u0026")
    return Markup(f'<script type="application/json" id="{html.escape(identifier)}">{text}</script>')


def number(value: float, digits: int = 2) -> str:
    """Return a coordinate with few digits, as short as it can be written."""
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
