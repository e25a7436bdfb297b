"""Chunks of bags, packed by bz2, lz4 or zstd: unpacked up to a limit, and as far as they are whole."""

from __future__ import annotations

Bytes = bytes | memoryview
PLAIN = ("", "none")
"""Names of no compression."""
MAX_CHUNK = 1 << 28
"""A chunk that claims to be larger is not unpacked: recorders write about 1 MB, or one message."""


class Damaged(Exception):
    """A chunk that cannot be unpacked; never leaves the bag files."""


def unpacked(data: memoryview, compression: str, limit: int) -> Bytes:
    """Return the content of a chunk, at most `limit` bytes; if it is cut off, what comes before the cut."""
    if compression in PLAIN:
        return data
    if compression not in _UNPACKERS:
        raise Damaged(f"its compression {compression!r} is not known")
    try:
        return _UNPACKERS[compression](data, limit)
    except (OSError, EOFError, ValueError, RuntimeError, MemoryError) as error:
        raise Damaged(f"it cannot be decompressed ({error})") from error


def _unpack_bz2(data: memoryview, limit: int) -> bytes:
    import bz2

    return bz2.BZ2Decompressor().decompress(data, limit)


def _unpack_lz4(data: memoryview, limit: int) -> bytes:
    import lz4.frame

    return lz4.frame.LZ4FrameDecompressor().decompress(data, limit)


def _unpack_zstd(data: memoryview, limit: int) -> bytes:
    import zstandard

    try:
        return zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK).stream_reader(data).read(limit)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


_UNPACKERS = {"bz2": _unpack_bz2, "lz4": _unpack_lz4, "zstd": _unpack_zstd}
