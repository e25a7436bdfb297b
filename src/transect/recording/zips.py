"""Zip archives as a Source: members are read without unpacking the archive to disk."""

from __future__ import annotations

import re
import struct
import threading
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from transect.base.file_bytes import Content, FileBytes, crc32_of, part_of, pieces_of
from transect.errors import ParseError

from .file_hashes import FileState, file_state_of
from .losses import Loss
from .source import HEAD_BYTES, Source, sha256_bytes


@dataclass(frozen=True)
class _Checkpoint:
    """A position in a deflate stream, and zlib's state there."""

    at: int  # Unpacked bytes before it
    packed_at: int  # Packed bytes before it
    state: Any


@dataclass
class DeflateReader:
    """A raw deflate stream; only the unpacked bytes near the last position read are in memory."""

    packed: Content
    step_bytes: int = 1 << 16  # Packed bytes that are unpacked at a time
    checkpoint_bytes: int = 1 << 23  # Unpacked bytes between checkpoints, which take 40 kB each
    _checkpoints: list[_Checkpoint] = field(default_factory=list[_Checkpoint])
    _unpacked: bytes = b""  # Unpacked bytes before the current position
    _current: _Checkpoint = field(default_factory=lambda: _Checkpoint(0, 0, zlib.decompressobj(-15)))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, fewer at the end of the stream; damage is a zlib.error."""
        with self._lock:
            self._seek(start)
            parts: list[bytes] = []
            while True:
                first = self._current.at - len(self._unpacked)
                parts.append(self._unpacked[max(0, start - first) : max(0, end - first)])
                if self._current.at >= end or not self._step():
                    return b"".join(parts)

    def _seek(self, start: int) -> None:
        """Go to the last checkpoint at or before `start`, unless the current position is closer."""
        count = bisect_right(self._checkpoints, start, key=lambda each: each.at)
        last = self._checkpoints[count - 1] if count else _Checkpoint(0, 0, zlib.decompressobj(-15))
        if start < self._current.at - len(self._unpacked) or last.at > self._current.at:
            self._current = _Checkpoint(last.at, last.packed_at, last.state.copy())
            self._unpacked = b""

    def _step(self) -> bool:
        """Unpack the next bytes; return False at the end."""
        current = self._current
        packed = bytes(self.packed[current.packed_at : current.packed_at + self.step_bytes])
        if not packed or current.state.eof:
            return False
        self._unpacked = current.state.decompress(packed)
        at, packed_at = current.at + len(self._unpacked), current.packed_at + len(packed)
        self._current = _Checkpoint(at, packed_at, current.state)
        last = self._checkpoints[-1].at if self._checkpoints else 0
        if at >= last + self.checkpoint_bytes and not current.state.eof:
            self._checkpoints.append(_Checkpoint(at, packed_at, current.state.copy()))
        return True


MAX_COMPRESSION_RATIO = 200
"""Members with a larger ratio are refused as zip bombs: real recordings compress less."""
MAX_UNCHECKED_BYTES = 1 << 20
"""Members up to this size may have any compression ratio."""

_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_PLAIN = struct.Struct("<4s4x2H12xL3H12x")
"""The same entry: signature, flags, method, size, and the lengths of name, extra field and comment."""
_LOCAL = struct.Struct("<4s5H3L2H")
_MIN_LAZY_BYTES = 1 << 24
"""Stored members of at least this size are read on access."""
MIN_STREAMED_BYTES = 1 << 26
"""Deflated members of at least this size are unpacked on access, possibly several times."""
_LOCAL_SIGNATURE = b"PK\x03\x04"
_CHUNK_BYTES = 1 << 16
_PLAIN_NAME = re.compile(r"(?!__MACOSX/)\w+(?:[./ -]\w+)*", re.ASCII).fullmatch
"""Matches names of files that are neither hidden nor outside of the archive."""


class _Method(IntEnum):
    """Compression methods that are supported."""

    STORED = 0
    DEFLATED = 8


class _Flag(IntFlag):
    """General purpose flags of a member."""

    ENCRYPTED = 1 << 0
    STREAMED = 1 << 3  # CRC and sizes follow the data
    UTF8 = 1 << 11


@dataclass(frozen=True, slots=True)
class Member:
    """One file in the archive."""

    offset: int
    packed: int
    size: int
    crc: int
    method: int
    flags: int


@dataclass(frozen=True)
class _MemberReader:
    """Reads a deflated member; damage raises a ParseError."""

    inflated: DeflateReader
    name: str
    archive: str

    def read(self, start: int, end: int) -> bytes:
        try:
            return self.inflated.read(start, end)
        except zlib.error as error:
            raise _blame_damage(self.name, self.archive, str(error)) from error


class ZipSource(Source):
    """The files of a zip archive. Only stored and deflated members are read; nothing touches the disk."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._archive = FileBytes(path)
        self._opened = self.file_state("")
        self._directory, self._shift, lost = _central_directory(self._archive, path)
        self._entries, refused = _list_members(self._directory, path.name)
        self.refused = (*lost, *refused)
        self._checked: dict[str, Content] = {}

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._entries))

    @cached_property
    def content_key(self) -> str:
        """Key that changes with the content, without reading it: the directory, and the path and file state.

        The directory alone is not sufficient, because CRCs can be forged.
        """
        return f"{sha256_bytes(self._directory)}:{self.path.absolute()}:{list(self._opened)}"

    def size(self, name: str) -> int:
        return self._member(name).size

    def _member(self, name: str) -> Member:
        return _member_at(self._directory, self._entries[name], self._shift)

    def key(self, name: str) -> str:
        return f"{self.content_key}:{name}"

    def local(self, name: str) -> Path | None:
        return None

    def head(self, name: str, count: int = HEAD_BYTES) -> bytes:
        member = self._member(name)
        packed = self._pack(name, member)
        if member.method == _Method.STORED:
            return bytes(packed[:count])
        unpacking, found = zlib.decompressobj(-15), b""
        try:
            for piece in pieces_of(packed, _CHUNK_BYTES):
                found += unpacking.decompress(piece, count - len(found))
                if unpacking.eof or len(found) >= count:
                    break
        except zlib.error as error:
            raise _blame_damage(name, self.path.name, str(error)) from error
        return found

    def file_state(self, name: str) -> FileState:
        """State of the archive that was opened, even if it was replaced since."""
        stat = self._archive.stat
        assert stat is not None
        return file_state_of(stat)

    def container(self, name: str) -> Path:
        return self.path

    def _content(self, name: str) -> Content:
        if (known := self._checked.get(name)) is not None:
            return known
        member = self._member(name)
        packed = self._pack(name, member)
        if member.method == _Method.STORED:
            data = packed if member.size >= _MIN_LAZY_BYTES else bytes(packed)
            return self._check(name, member, data, b"")
        reader = _MemberReader(DeflateReader(packed), name, self.path.name)
        if member.size < MIN_STREAMED_BYTES:
            data = reader.read(0, member.size + 1)
            return self._check(name, member, data[: member.size], data[member.size :])
        content = FileBytes.over(reader, member.size)
        self._checked[name] = self._check(name, member, content, reader.read(member.size, member.size + 1))
        return content

    def _check(self, name: str, member: Member, data: Content, more: bytes) -> Content:
        """Return the data of a member after checking size and CRC; `more` are bytes beyond its size."""
        if more or crc32_of(data) != member.crc:
            wrong_size = f"it should unpack to {member.size} bytes and does not"
            why = wrong_size if more or len(data) != member.size else "its CRC does not match"
            raise _blame_damage(name, f"{self.path.name}@{member.offset}", why)
        return data

    def _pack(self, name: str, member: Member) -> Content:
        """Return the packed bytes of a member."""
        start = member.offset
        if not 0 <= start <= len(self._archive) - _LOCAL.size:
            raise ParseError(f"{name} lies outside the zip", where=f"{self.path.name}@{start}")
        header = _LOCAL.unpack(self._archive[start : start + _LOCAL.size])
        if header[0] != _LOCAL_SIGNATURE:
            raise ParseError(f"{name} has no header in the zip", where=f"{self.path.name}@{start}")
        start += _LOCAL.size + header[9] + header[10]
        if start + member.packed > len(self._archive):
            raise ParseError(f"{name} is cut off in the zip", where=f"{self.path.name}@{start}")
        return part_of(self._archive, start, start + member.packed)


def _blame_damage(name: str, where: str, why: str) -> ParseError:
    what = f"{name} is damaged inside the zip"
    return ParseError(what, where=where, why=why, hint="download the archive again")


def _central_directory(data: Content, path: Path) -> tuple[bytes, int, list[Loss]]:
    """Return the bytes of the central directory, the shift of its offsets, and losses."""
    view = data[-66_000:] if len(data) > 66_000 else data[:]
    at = bytes(view).rfind(b"PK\x05\x06")
    if at < 0 or len(view) - at < _END.size:
        directory, lost = rebuild_directory(data, path.name)
        if not directory:
            raise ParseError(
                f"{path.name} is a zip without its directory",
                where=f"{path}@{len(data)}",
                why="the end-of-directory record is missing, and no member is whole: the file was cut off",
                hint="download it again",
            )
        return directory, 0, lost
    _, _, _, _, count, size, offset, _ = _END.unpack_from(view, at)
    end = len(data) - len(view) + at
    if 0xFFFFFFFF in (size, offset) or count == 0xFFFF:
        end, count, size, offset = _zip64(data, end, path)
    start = end - size
    if start < 0:
        raise ParseError(f"{path.name} has a broken zip directory", where=f"{path}@{end}")
    return bytes(data[start:end]), start - offset, []


def rebuild_directory(data: Content, archive: str) -> tuple[bytes, list[Loss]]:
    """Return a directory made from the headers of the members, for a truncated archive.

    Truncation removes the directory and the last members.
    """
    entries: list[bytes] = []
    at = 0
    while bytes(data[at : at + 4]) == _LOCAL_SIGNATURE and (found := _walk_member(data, at)) is not None:
        entry, at = found
        entries.append(entry)
    lost = [Loss(archive, "the zip is cut off: its directory is lost", byte=len(data), count=0)]
    if bytes(data[at : at + 4]) == _LOCAL_SIGNATURE[: len(data) - at] and at < len(data):
        lost.append(Loss(archive, "the member that begins here is cut off or damaged", byte=at))
    return b"".join(entries), lost


def _walk_member(data: Content, at: int) -> tuple[bytes, int] | None:
    """Return the directory entry for the member at a byte, and its end; None if it is truncated."""
    if at + _LOCAL.size > len(data):
        return None
    header = _LOCAL.unpack(data[at : at + _LOCAL.size])
    _, _, flags, method, _, _, crc, packed, size, name_length, extra_length = header
    names_at = at + _LOCAL.size
    start = names_at + name_length + extra_length
    name = bytes(data[names_at : names_at + name_length])
    if flags & _Flag.STREAMED:
        walked = _walk_streamed(data, start) if method == _Method.DEFLATED else None
        if walked is None:
            return None
        crc, packed, size, end = walked
    else:
        packed, size, _ = _wide(bytes(data[names_at + name_length : start]), packed, size, 0)
        end = start + packed
    if end > len(data):
        return None
    extra = struct.pack("<HH3Q", 1, 24, size, packed, at)
    sizes = (0xFFFFFFFF, 0xFFFFFFFF, len(name), len(extra), 0, 0, 0, 0, 0xFFFFFFFF)
    return _CENTRAL.pack(b"PK\x01\x02", 0, 0, flags, method, 0, 0, crc, *sizes) + name + extra, end


def _walk_streamed(data: Content, start: int) -> tuple[int, int, int, int] | None:
    """Return CRC, packed size, size and end of a member whose data descriptor follows the data."""
    unpacking, crc, size, at = zlib.decompressobj(-15), 0, 0, start
    while not unpacking.eof and at < len(data):
        piece = bytes(data[at : at + _CHUNK_BYTES])
        at += len(piece)
        try:
            unpacked = unpacking.decompress(piece, MAX_COMPRESSION_RATIO * _CHUNK_BYTES)
        except zlib.error:
            return None
        if unpacking.unconsumed_tail:
            return None  # compression ratio of a zip bomb
        crc, size = zlib.crc32(unpacked, crc), size + len(unpacked)
    end = at - len(unpacking.unused_data)
    has_signature = bytes(data[end : end + 4]) == b"PK\x07\x08"
    descriptor = end + 4 * has_signature
    if not unpacking.eof or bytes(data[descriptor : descriptor + 4]) != struct.pack("<L", crc):
        return None
    is_zip64 = bytes(data[descriptor + 4 : descriptor + 20]) == struct.pack("<2Q", end - start, size)
    return crc, end - start, size, descriptor + (20 if is_zip64 else 12)


def _zip64(data: Content, end: int, path: Path) -> tuple[int, int, int, int]:
    try:
        locator = data[max(0, end - _END64_LOCATOR.size) : end]
        signature, _, where, _ = _END64_LOCATOR.unpack(locator)
        record = _END64.unpack(data[where : where + _END64.size])
    except (struct.error, OverflowError):
        signature, record, where = b"", (b"", *(0,) * 9), 0
    if signature != b"PK\x06\x07" or record[0] != b"PK\x06\x06":
        raise ParseError(f"{path.name} has a broken ZIP64 directory", where=f"{path}@{end}")
    return where, int(record[7]), int(record[8]), int(record[9])


def _list_members(directory: bytes, archive: str) -> tuple[dict[str, int], tuple[Loss, ...]]:
    """Return the offset in the directory of each readable member, and the refused ones as losses.

    For speed with many members (50,000), plain members are accepted at once, and only others are examined.
    """
    entries: dict[str, int] = {}
    unusual: list[int] = []
    text, methods = directory.decode("latin-1"), tuple(map(int, _Method))
    at, last = 0, len(directory) - _CENTRAL.size
    while at <= last:
        signature, flags, method, size, length, extra, comment = _PLAIN.unpack_from(directory, at)
        if signature != b"PK\x01\x02":
            break
        start = at + _CENTRAL.size
        name = text[start : start + length]
        is_plain = not flags & _Flag.ENCRYPTED and method in methods and size <= MAX_UNCHECKED_BYTES
        if not is_plain or name in entries or not _PLAIN_NAME(name):
            unusual.append(at)
        else:
            entries[name] = at
        at = start + length + extra + comment
    losses = [loss for position in unusual for loss in _examine(directory, position, entries, archive)]
    if at != len(directory):
        reason = "the zip directory is damaged: members after this are lost"
        losses.append(Loss(archive, reason, byte=at, count=0))
    return entries, tuple(losses)


def _examine(directory: bytes, at: int, entries: dict[str, int], archive: str) -> Iterator[Loss]:
    """Add a member to the entries if it may be read; else yield the loss with the reason."""
    entry = _CENTRAL.unpack_from(directory, at)
    raw = directory[at + _CENTRAL.size : at + _CENTRAL.size + entry[10]]
    name = raw.decode("utf-8" if entry[3] & _Flag.UTF8 else "cp437", "replace")
    if name.endswith("/"):
        return
    reason = _refusal(name, _member_at(directory, at, 0))
    reason = reason or ("the name occurs twice" if name in entries else "")
    if reason:
        yield Loss(f"{archive}/{name}", reason)
    elif not _is_hidden(name):
        entries[name] = at


def _member_at(directory: bytes, at: int, shift: int) -> Member:
    """Return the member with the entry at a byte of the directory."""
    entry = _CENTRAL.unpack_from(directory, at)
    packed, size, offset = entry[8], entry[9], entry[16]
    if 0xFFFFFFFF in (packed, size, offset):
        extra_at = at + _CENTRAL.size + entry[10]
        packed, size, offset = _wide(directory[extra_at : extra_at + entry[11]], packed, size, offset)
    return Member(offset + shift, packed, size, entry[7], entry[4], entry[3])


def _wide(extra: bytes, packed: int, size: int, offset: int) -> tuple[int, int, int]:
    """Replace 32-bit placeholders by the ZIP64 values of the extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            count = min(length, len(extra) - at - 4) // 8
            values = list(struct.unpack_from(f"<{count}Q", extra, at + 4))
            sizes = [values.pop(0) if v == 0xFFFFFFFF and values else v for v in (size, packed, offset)]
            return sizes[1], sizes[0], sizes[2]
        at += 4 + length
    return packed, size, offset


def _refusal(name: str, member: Member) -> str:
    if (
        name.startswith(("/", "\\"))
        or ".." in PurePosixPath(name.replace("\\", "/")).parts
        or ":" in name[:2]
    ):
        return "the name points outside the archive"
    if member.size > MAX_UNCHECKED_BYTES and member.size > MAX_COMPRESSION_RATIO * max(member.packed, 1):
        return f"it claims to unpack {member.size // max(member.packed, 1)}:1, which no recording does"
    if member.flags & _Flag.ENCRYPTED:
        return "it is encrypted"
    is_supported = member.method in tuple(map(int, _Method))
    return "" if is_supported else f"compression method {member.method} is not supported"


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "__MACOSX/")) or "/." in name
