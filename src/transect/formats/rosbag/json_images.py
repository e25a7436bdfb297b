"""Images in JSON messages, as Foxglove describes them (`foxglove.CompressedImage`): a file in base64.

https://docs.foxglove.dev/docs/visualization/message-schemas/compressed-image
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from transect.base.arrays import Ints
from transect.base.files import reached
from transect.errors import ParseError, UnsupportedError
from transect.recording import Recording, Sample, Stream
from transect.types import CameraModel, Image

from ..shared.file_heads import suffix_of
from ..shared.images import decode_image, encode_image
from ..shared.payloads import PAYLOAD_ERRORS, LeftOut, source_file
from .json_schema import IMAGES
from .messages import NS

SCHEMA: dict[str, Any] = {
    "title": IMAGES,
    "description": "A compressed image",
    "type": "object",
    "properties": {
        "timestamp": {
            "type": "object",
            "title": "time",
            "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}},
        },
        "frame_id": {"type": "string"},
        "format": {"type": "string", "description": "jpeg or png"},
        "data": {"type": "string", "contentEncoding": "base64"},
    },
}
_FORMATS = {".jpg": "jpeg", ".jpeg": "jpeg", ".png": "png"}
_STAMP = re.compile(rb'"timestamp"\s*:\s*\{\s*"sec"\s*:\s*(\d{1,10})\s*,\s*"nsec"\s*:\s*(\d{1,9})\s*\}')


def image_messages(recording: Recording, stream: Stream, left_out: LeftOut) -> Iterator[bytes | None]:
    """Yield the message of each image, None for one that cannot be had; it is then counted in `left_out`."""
    for sample in stream:
        try:
            yield _message(recording, sample)
        except PAYLOAD_ERRORS as error:
            left_out.add(error)
            yield None


def _message(recording: Recording, sample: Sample) -> bytes:
    """Return the image as it lies in its file, if that is JPEG or PNG, else as a PNG, which loses nothing."""
    reached(sample.t_ns, sample.stream.clock)
    name, source = source_file(recording, sample), recording.source_of(sample)
    if name is not None and source is not None and suffix_of(name) in _FORMATS:
        kind, data = _FORMATS[suffix_of(name)], source.read(name)
    elif (image := sample.value).data.dtype in (np.uint8, np.uint16):
        kind, data = "png", encode_image(image, ".png")
    else:
        raise UnsupportedError(f"an image of {image.data.dtype} has no place in a PNG")
    return json.dumps(
        {
            "timestamp": {"sec": sample.t_ns // NS, "nsec": sample.t_ns % NS},
            "frame_id": sample.stream.frame,
            "format": kind,
            "data": base64.b64encode(data).decode("ascii"),
        }
    ).encode()


def mosaic_of(stream: Stream) -> str:
    """Return the pattern of a colour mosaic, such as bayer_rggb, which no image file says; else ""."""
    try:
        mode = stream[0].value.mode if len(stream) else ""
    except PAYLOAD_ERRORS:
        return ""
    return mode if mode.startswith("bayer") else ""


def stamps_of(heads: Sequence[bytes]) -> Ints:
    """Return the times (n,) in ns that stand at the beginning of messages; 0 where there is none."""
    found = (_STAMP.search(head) for head in heads)
    return np.array([int(m[1]) * NS + int(m[2]) if m else 0 for m in found], dtype=np.int64)


def frame_of(head: bytes | None) -> str:
    """Return the frame at the beginning of a message, or ""."""
    match = re.search(rb'"frame_id"\s*:\s*("(?:[^"\\]|\\.)*")', head or b"")
    try:
        return str(json.loads(match[1])) if match else ""
    except ValueError:
        return ""


def read_image(
    raw: bytes, where: str, *, t_ns: int, frame: str, camera: CameraModel | None, mode: str
) -> Image:
    """Return the image that a message holds."""
    try:
        data = json.loads(raw)["data"]
        content = bytes(data) if isinstance(data, list) else base64.b64decode(data, validate=True)
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        raise ParseError("an image cannot be decoded", where=where, why=f"{error}") from error
    return decode_image(content, where, t_ns=t_ns, frame=frame, camera=camera, mode=mode or None)
