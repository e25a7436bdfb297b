"""Image files: decoding, encoding, and the size from the header without decoding."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from transect.errors import ParseError, UnsupportedError
from transect.recording import Loss, Parsed, Source, arrow
from transect.recording.arrow import PAYLOAD, T_NS
from transect.recording.source import HEAD_BYTES, Buffer
from transect.types import CameraModel, Image

from .file_groups import file_table

MAX_DEFLATE_RATIO = 1032
"""Upper limit of deflate."""
MAX_PIXELS = 200_000_000
"""Images with a larger size in the header are refused."""
DEPTHS = ("uint8", "uint16", "float32")
"""Pixel types of colour images that OpenCV converts."""


def decode_image(data: Buffer, name: str, **attributes: Any) -> Image:
    """Decode an image file, with further fields of `Image` (`t_ns`, `frame`, `camera`) as `attributes`.

    Raises ParseError with the `name` and the reason if that is impossible.
    """
    import cv2

    if not len(data):
        raise ParseError(f"{name} is empty", where=name, why="it has 0 bytes")
    width, height = image_size(bytes(data[:HEAD_BYTES])) or (0, 0)
    if width * height > MAX_PIXELS:
        raise ParseError(
            f"{name} claims to be {width} x {height}, larger than any camera's image", where=name
        )
    if why := _find_png_damage(data, width * height):
        raise ParseError(f"{name} is cut off or damaged", where=name, why=why)
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise ParseError(f"{name} cannot be decoded", where=name, why=str(error)) from error
    if pixels is None:
        start = bytes(data[:8])
        raise ParseError(f"{name} is not an image", where=name, why=f"it starts with {start!r}")
    mode = attributes.pop("mode", None) or {2: "gray", 3: "bgr"}.get(pixels.ndim, "bgr")
    if pixels.ndim == 3 and mode == "bgr":
        mode = "rgb" if pixels.shape[2] == 3 else "rgba"
        if pixels.dtype.name in DEPTHS:
            code = cv2.COLOR_BGR2RGB if mode == "rgb" else cv2.COLOR_BGRA2RGBA
            pixels = cv2.cvtColor(pixels, code)
        else:
            pixels = np.ascontiguousarray(pixels[:, :, [2, 1, 0, 3][: pixels.shape[2]]])
    return Image(pixels, mode, **attributes)


def encode_image(image: Image, suffix: str, quality: int = 95) -> bytes:
    """Encode an image as the file type of `suffix` (".png", ".jpg", ".bmp", ...).

    Raises
    ------
    UnsupportedError
        If the file type does not support its number of channels or its pixel type.
    """
    import cv2

    pixels = image.data
    if bands_of(image) not in (1, 3, 4):
        raise UnsupportedError(f"an image of {size_text(image)} cannot be written as {suffix}")
    options = [cv2.IMWRITE_JPEG_QUALITY, quality] if suffix in (".jpg", ".jpeg") else []
    try:
        if image.mode in ("rgb", "rgba") and pixels.ndim == 3 and pixels.shape[2] > 1:
            code = cv2.COLOR_RGB2BGR if pixels.shape[2] == 3 else cv2.COLOR_RGBA2BGRA
            pixels = cv2.cvtColor(pixels, code)
        good, data = cv2.imencode(suffix, pixels, options)
    except cv2.error as error:
        what = f"an image of {size_text(image)} cannot be written as {suffix}"
        raise UnsupportedError(what, why=error.err) from error
    if not good:
        raise UnsupportedError(f"an image of {size_text(image)} cannot be written as {suffix}")
    return data.tobytes()


def bands_of(image: Image) -> int:
    """Return the number of channels; 0 if the array is empty or not two- or three-dimensional."""
    if image.data.ndim not in (2, 3) or not image.data.size:
        return 0
    return 1 if image.data.ndim == 2 else int(image.data.shape[2])


def size_text(image: Image) -> str:
    """Return shape, type and mode of an image for an error message."""
    return f"{' x '.join(map(str, image.data.shape))} {image.data.dtype}, mode {image.mode},"


def image_loader(
    source: Source, frame: str = "", camera: CameraModel | None = None, mode: str | None = None
) -> Callable[[Mapping[str, Any]], Image]:
    """Return a Stream loader for rows whose `payload` is the name of an image file."""

    def load(row: Mapping[str, Any]) -> Image:
        name = row[PAYLOAD]
        return decode_image(
            source.buffer(name), name, t_ns=row["t_ns"], frame=frame, camera=camera, mode=mode
        )

    return load


def find_listed(source: Source, listed: Parsed, paths: Sequence[str], listing: str) -> Parsed:
    """Return the table of listed files that exist; the others are one loss."""
    exists = np.array([path in source for path in paths], dtype=bool)
    losses = list(listed.losses)
    if not exists.all():
        first = paths[int(np.argmin(exists))]
        losses.append(Loss(first, f"{listing} lists it, but it is not there", count=int((~exists).sum())))
    present = [path for path, is_present in zip(paths, exists, strict=True) if is_present]
    return Parsed(file_table(arrow.numbers(listed.table, T_NS)[exists], present), tuple(losses))


def stamps_of_names(names: Sequence[str], pattern: str) -> tuple[list[int], list[str], list[str]]:
    """Read times in seconds from file names by integer arithmetic.

    `pattern` is a regular expression for the base name with groups `s` (seconds) and optionally `f`
    (decimals). Returns times in ns and names that match, sorted by time, and the names that do not match.
    """
    test = re.compile(pattern).fullmatch
    found: list[tuple[int, str]] = []
    others: list[str] = []
    for name in names:
        match = test(name.rpartition("/")[2])
        if match is None:
            others.append(name)
            continue
        groups = match.groupdict()
        fraction = ((groups.get("f") or "") + "000000000")[:9]
        found.append((int(groups["s"] + fraction), name))
    found.sort()
    return [t for t, _ in found], [n for _, n in found], others


_PNG = b"\x89PNG\r\n\x1a\n"
_PNM = re.compile(rb"P[1-6]\s+(?:#[^\n]*\n\s*)*(\d{1,18})\s+(?:#[^\n]*\n\s*)*(\d{1,18})\s")
_NO_SIZE = {0x01, *range(0xD0, 0xD8)}
"""JPEG markers without a length."""
_FRAME_MARKERS = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""JPEG markers of a frame header."""


def image_size(head: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels of a PNG, JPEG, PNM or BMP from its first bytes, or None."""
    try:
        if head.startswith(_PNG):
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


def _find_png_damage(data: Buffer, pixels: int) -> str:
    """Return why a PNG is too short for its header, or ""; decoders allocate the memory of the header."""
    if bytes(data[:8]) != _PNG:
        return ""
    if pixels // 8 > MAX_DEFLATE_RATIO * len(data):  # a pixel takes a bit at least
        return f"{pixels} pixels do not fit in {len(data)} bytes"
    at = len(_PNG)
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if at + 12 + length > len(data):
            return f"a part at byte {at} claims {length} bytes, and {len(data) - at - 12} are left"
        if bytes(data[at + 4 : at + 8]) == b"IEND":
            return ""
        at += 12 + length
    return "its end is not there"


def _jpeg(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(head):
        if head[at] != 0xFF:
            return None
        marker = head[at + 1]
        if marker in _FRAME_MARKERS:
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        at += 2 if marker in _NO_SIZE else 2 + max(2, int.from_bytes(head[at + 2 : at + 4], "big"))
    return None
