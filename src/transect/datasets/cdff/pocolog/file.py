"""A Rock log file (POCOSIM, version 2): its stream declarations, and where their samples are."""

from __future__ import annotations

import itertools
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from transect.base.arrays import Ints
from transect.base.file_bytes import PIECE, Content
from transect.errors import ParseError
from transect.recording import Loss

from . import MAGIC

VERSION = 2
PROLOGUE = struct.Struct("<7sxII")
"""Magic, version, byte order (1 is big); spec-v2.txt leaves out the padding that the files have."""
BLOCK = struct.Struct("<BBHI")
"""Block type, padding, stream, size of what follows."""
SAMPLE = struct.Struct("<IIIIIB")
"""Real time and logical time in s and us, size, flags (1: compressed); always little endian."""
_SAMPLE_BLOCK = struct.Struct(BLOCK.format + SAMPLE.format[1:])
BLOCK_COLUMNS = 6
STREAM_BLOCK, DATA_BLOCK, CONTROL_BLOCK = 1, 2, 3
DATA_STREAM, CONTROL_STREAM = 1, 2
_LENGTH = struct.Struct("<I")
_CANDIDATES = 100_000


class Header(NamedTuple):
    """A block's type and stream, and where its content is."""

    kind: int
    stream: int
    start: int
    end: int


@dataclass(frozen=True)
class Declared:
    """A stream as declared: name, type, the XML that defines it, and metadata (YAML), as far as there."""

    name: str
    type_name: str
    registry: bytes = b""
    metadata: str = ""


@dataclass
class PocologFile:
    """What a file holds.

    Attributes
    ----------
    blocks : (n, 6) int64 array
        Of each sample, in the order of the file: stream, place and size of its data, real time and logical
        time in us, flags.
    """

    name: str
    view: Content
    order: str = "<"  # Byte order of the samples
    streams: dict[int, Declared] = field(default_factory=dict[int, Declared])
    losses: list[Loss] = field(default_factory=list[Loss])
    found: array[int] = field(default_factory=lambda: array("q"))
    orphans: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    @cached_property
    def blocks(self) -> Ints:
        """All samples."""
        return np.array(self.found, dtype=np.int64).reshape(-1, BLOCK_COLUMNS)


def read_file(view: Content, name: str) -> PocologFile:
    """Index a log file; where it is damaged, what comes before and after is kept."""
    if len(view) < PROLOGUE.size or bytes(view[: len(MAGIC)]) != MAGIC:
        raise ParseError(f"{name} is no Rock log", where=f"{name}@0", why="it does not begin with POCOSIM")
    _, version, flags = PROLOGUE.unpack(view[: PROLOGUE.size])
    if version != VERSION:
        raise ParseError(
            f"{name} is a Rock log of version {version}",
            where=f"{name}@8",
            why="only version 2 is known",
            hint="pocolog --to-new-format converts old logs",
        )
    file = PocologFile(name, view, ">" if flags & 1 else "<")
    at = PROLOGUE.size
    while at < len(view):
        at = _samples(file, at)
        end = _block(file, at) if at < len(view) else at
        at = _resume(file, at) if end is None else end
    for stream, (byte, count) in file.orphans.items():
        reason = f"samples of stream {stream}, which is not declared"
        file.losses.append(Loss(name, reason, byte=byte, count=count))
    return file


def _samples(file: PocologFile, at: int) -> int:
    """Enter samples as long as they are whole and follow each other: nearly always to the end."""
    view, streams, extend = file.view, file.streams, file.found.extend
    unpack, header, last = _SAMPLE_BLOCK.unpack, _SAMPLE_BLOCK.size, len(file.view)
    while at + header <= last:
        start = at + header
        kind, _, stream, length, real, real_us, logical, logical_us, size, flags = unpack(view[at:start])
        end = start + size
        if kind != DATA_BLOCK or length != SAMPLE.size + size or end > last or stream not in streams:
            break
        times = real * 1_000_000 + real_us, logical * 1_000_000 + logical_us
        extend((stream, start, size, *times, flags))
        at = end
    return at


def _header(view: Content, at: int) -> Header | None:
    """Return a block's header; None where there is no whole block."""
    if at + BLOCK.size > len(view):
        return None
    start = at + BLOCK.size
    kind, _, stream, size = BLOCK.unpack(view[at:start])
    if kind not in (STREAM_BLOCK, DATA_BLOCK, CONTROL_BLOCK) or start + size > len(view):
        return None
    return Header(kind, stream, start, start + size)


def _block(file: PocologFile, at: int) -> int | None:
    """Enter one block; return where it ends, or None if it is damaged."""
    header = _header(file.view, at)
    if header is None:
        return None
    if header.kind == STREAM_BLOCK:
        return _declare(file, header)
    if header.kind == DATA_BLOCK:
        if header.stream in file.streams or not _is_sample(file.view, header):
            return None
        file.orphans.setdefault(header.stream, [at, 0])[1] += 1
    return header.end


def _declare(file: PocologFile, header: Header) -> int | None:
    """Enter a declaration; if only its content is damaged, the file can be read on after it."""
    declared = _declaration(file.view, header)
    if declared is not None:
        file.streams[header.stream] = declared
    elif header.start == header.end or file.view[header.start] != CONTROL_STREAM:
        if header.end < len(file.view) and _header(file.view, header.end) is None:
            return None
        file.losses.append(Loss(file.name, "the declaration of a stream is damaged", byte=header.start))
    return header.end


def _declaration(view: Content, header: Header) -> Declared | None:
    try:
        if view[header.start] != DATA_STREAM:
            return None
        parts = list(_texts(view, header.start + 1, header.end))
        name, type_name = parts[0].decode(), parts[1].decode()
    except (IndexError, UnicodeDecodeError, struct.error):
        return None
    registry, metadata = [*parts[2:4], b"", b""][:2]
    return Declared(name, type_name, registry, metadata.decode("utf-8", "replace"))


def _texts(view: Content, at: int, end: int) -> Iterator[bytes]:
    while at < end:
        (length,) = _LENGTH.unpack(view[at : at + _LENGTH.size])
        at += _LENGTH.size
        if at + length > end:
            raise IndexError
        yield bytes(view[at : at + length])
        at += length


def _is_sample(view: Content, header: Header) -> bool:
    """Tell whether the size in a sample's own header agrees with that of its block."""
    if header.end - header.start < SAMPLE.size:
        return False
    size = SAMPLE.unpack(view[header.start : header.start + SAMPLE.size])[4]
    return header.start + SAMPLE.size + size == header.end


def _resume(file: PocologFile, at: int) -> int:
    """Report a damaged block; return where the next whole one begins, or the end of the file."""
    view = file.view
    candidates = itertools.islice(_find_types(view, at + 1), _CANDIDATES)
    place = next((byte for byte in candidates if _is_block(file, byte)), len(view))
    what = "a block is damaged" if place < len(view) else "the last block is cut off or damaged"
    file.losses.append(Loss(file.name, f"{what}: {place - at} bytes are lost", byte=at))
    return place


def _find_types(view: Content, start: int) -> Iterator[int]:
    """Iterate over the bytes that may be the type of a block."""
    for begin in range(start, len(view), PIECE):
        types = np.frombuffer(view[begin : begin + PIECE], np.uint8)
        yield from (begin + np.flatnonzero((types == DATA_BLOCK) | (types == STREAM_BLOCK))).tolist()


def _is_block(file: PocologFile, at: int) -> bool:
    """Tell whether a declaration, or a sample of a declared stream, begins here."""
    header = _header(file.view, at)
    if header is None:
        return False
    if header.kind == STREAM_BLOCK:
        return _declaration(file.view, header) is not None
    return header.stream in file.streams and _is_sample(file.view, header)
