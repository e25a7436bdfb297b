"""The size of an image, from the first bytes of its file."""

from __future__ import annotations

import re
import struct

_PNM = re.compile(rb"P[1-6]\s+(?:#[^\n]*\n\s*)*(\d+)\s+(?:#[^\n]*\n\s*)*(\d+)\s")
_NO_SIZE = {0x01, *range(0xD0, 0xD8)}
"""JPEG markers that stand alone."""
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""JPEG markers of a frame header."""


def image_size(head: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels of a PNG, JPEG, PNM or BMP; None if the bytes do not tell."""
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack(">II", head[16:24])
        if head.startswith(b"BM"):
            width, height = struct.unpack("<ii", head[18:26])
            return width, abs(height)
    except struct.error:
        return None
    if head.startswith(b"\xff\xd8"):
        return _jpeg(head)
    match = _PNM.match(head)
    return (int(match[1]), int(match[2])) if match else None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(head):
        if head[at] != 0xFF:
            return None
        marker = head[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        at += 2 if marker in _NO_SIZE else 2 + max(2, int.from_bytes(head[at + 2 : at + 4], "big"))
    return None
