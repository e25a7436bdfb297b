"""The one way in which XML of others is read: no DTD, no entities, no network, bounded size and depth."""

from __future__ import annotations

from functools import cache
from typing import Any

from transect.errors import ParseError

NAMESPACE = "{http://pds.nasa.gov/pds4/pds/v1}"
MAX_BYTES, MAX_DEPTH = 16 << 20, 200


def load_xml(content: bytes, name: str) -> Any:
    """Return the root element of a document; comments are left out, lines are kept.

    Raises
    ------
    ParseError
        With the line, if it is not well-formed, too large or too deep, or has a document type or entities.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    if len(content) > MAX_BYTES:
        raise ParseError(f"{name} is too large for a label", where=name, why=f"{len(content)} bytes")
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ParseError(f"{name} has a document type or entities", where=name, hint="labels have none")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ParseError(f"{name} is not well-formed", where=f"{name}:{line}", why=str(error)) from error
    if root.getroottree().docinfo.doctype:  # also in an encoding that hides it from the search above
        raise ParseError(f"{name} has a document type", where=name, hint="labels have none")
    if _deepest()(root):
        raise ParseError(f"{name} is nested too deeply", where=name)
    return root


def local_name(element: Any) -> str:
    """Return the name of an element without its namespace; nothing for what is no element."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


@cache
def _deepest() -> Any:
    """Return an XPath for what is one level too deep: libxml2 goes down level by level, and stops early."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    return etree.XPath("/*" * (MAX_DEPTH + 1))
