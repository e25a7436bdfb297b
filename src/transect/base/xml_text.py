"""Text inside XML that we write."""

from __future__ import annotations

import re

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
