"""XML: documents of others are read without DTD, entities or network, and are limited in size and depth."""

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
_UNSAFE = "entities are unsafe, and no file that is read here needs them"


def load_xml(content: bytes, name: str, most: int = MAX_BYTES) -> Any:
    """Return the root element of a document of at most so many bytes; comments are left out, lines are kept.

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
    if root.getroottree().docinfo.doctype:  # also in an encoding that hides it from the search above
        raise ParseError(f"{name} has a document type", where=name, why=_UNSAFE)
    if _deepest()(root):
        raise ParseError(f"{name} is nested too deeply", where=name)
    return root


def refuse_entities(content: bytes, name: str) -> None:
    """Raise ParseError for a document type or entities."""
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ParseError(f"{name} has a document type or entities", where=name, why=_UNSAFE)


def local_name(element: Any) -> str:
    """Return the name of an element without its namespace; nothing for what is no element."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


@cache
def _deepest() -> Any:
    """Return an XPath for what is one level too deep: libxml2 goes down level by level, and stops early."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    return etree.XPath("/*" * (MAX_DEPTH + 1))


_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""
_SPECIAL = re.compile("[&<>]")


def escape(text: str) -> str:
    """Return text as it stands in an element; what XML cannot write is replaced."""
    if not text.isprintable():
        text = _UNWRITABLE.sub("\ufffd", text)
    if _SPECIAL.search(text):
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text


def quote(text: str) -> str:
    """Return text as it stands in an attribute."""
    return escape(text).replace('"', "&quot;").replace("\n", "&#10;")
