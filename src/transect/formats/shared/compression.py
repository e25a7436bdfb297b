"""Unpacking of logs that are compressed as a whole by gzip or bzip2."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from transect.recording.losses import Loss
from transect.recording.zips import MAX_COMPRESSION_RATIO, MAX_UNCHECKED_BYTES

if TYPE_CHECKING:
    from transect.recording.source import Buffer

CHUNK_BYTES = 1 << 16
Opener = Callable[..., Any]
UNPACK: Mapping[str, Opener] = {".bz2": bz2.open, ".gz": gzip.open}
GZIP = b"\x1f\x8b"
"""First bytes of a gzip file."""


def unpack_head(packed: bytes, suffix: str) -> bytes:
    """Return the unpacked first bytes of a file; nothing if they are damaged."""
    try:
        if suffix == ".bz2":
            return bz2.BZ2Decompressor().decompress(packed, CHUNK_BYTES)
        return zlib.decompressobj(31).decompress(packed, CHUNK_BYTES)
    except (OSError, ValueError, zlib.error):
        return b""


def unpack(buffer: Buffer, file: str, opener: Opener) -> tuple[bytes, Loss | None]:
    """Unpack a file; the readable part if it is damaged, or if its compression ratio is too large."""
    most = max(MAX_UNCHECKED_BYTES, MAX_COMPRESSION_RATIO * len(buffer))
    chunks: list[bytes] = []
    size, reason = 0, ""
    try:
        with opener(io.BytesIO(bytes(buffer))) as stream:
            while size <= most and (chunk := stream.read1(CHUNK_BYTES)):
                chunks.append(chunk)
                size += len(chunk)
    except (EOFError, OSError, ValueError, zlib.error) as error:
        reason = f"the compressed data is damaged: {error}"
    if size > most:
        reason = f"it unpacks to more than {MAX_COMPRESSION_RATIO} times its size"
    return b"".join(chunks), Loss(file, reason, byte=size, count=0) if reason else None
