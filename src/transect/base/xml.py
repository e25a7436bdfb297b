"""Safe XML parsing: no DTD, entities or network, limited size and depth; and escaping."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from transect.errors import ParseError

MAX_BYTES, MAX_DEPTH = 16 << 20, 200
SAFE = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "remove_comments": True,
}
"""Options of lxml's parsers."""
_UNSAFE = "entities are unsafe, and not needed in these files"


def load_xml(content: bytes, name: str, most: int = MAX_BYTES) -> Any:
    """Return the root element of a document of at most `most` bytes, without comments.

    Raises
    ------
    ParseError
        With the line, if it is not well-formed, too large or too deep, or has a document type or entities.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    if len(content) > most:
        why = f"it has {len(content)} bytes, {most} are allowed"
        raise ParseError(f"{name} is too large", where=name, why=why)
    refuse_entities(content, name)
    try:
        root = etree.fromstring(content, etree.XMLParser(**SAFE))
    except (etree.XMLSyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ParseError(f"{name} is not well-formed XML", where=f"{name}:{line}", why=str(error)) from error
    if root.getroottree().docinfo.doctype:  # an encoding may hide it from the search above
        raise ParseError(f"{name} has a document type", where=name, why=_UNSAFE)
    if _deepest()(root):
        raise ParseError(f"{name} is nested too deeply", where=name)
    return root


def refuse_entities(content: bytes, name: str) -> None:
    """Raise ParseError for a document type or entities."""
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ParseError(f"{name} has a document type or entities", where=name, why=_UNSAFE)


def local_name(element: Any) -> str:
    """Return the name of an element without its namespace; "" for other nodes."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


@cache
def _deepest() -> Any:
    """Return an XPath that matches elements beyond the depth limit."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    return etree.XPath("/*" * (MAX_DEPTH + 1))


_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""
_SPECIAL = re.compile("[&<>]")


def escape(text: str) -> str:
    """Return escaped text for an element; characters that XML does not allow are replaced."""
    if not text.isprintable():
        text = _UNWRITABLE.sub("\ufffd", text)
    if _SPECIAL.search(text):
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text


def quote(text: str) -> str:
    """Return escaped text for an attribute."""
    return escape(text).replace('"', "&quot;").replace("\n", "&#10;")
