"""A zip archive as a Source: listed from its central directory, read member by member, never unpacked."""

from __future__ import annotations

import re
import struct
import threading
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from transect.base.file_bytes import Content, FileBytes, crc32_of, part_of, pieces_of
from transect.errors import ParseError

from .file_hashes import Stamp, stamp_of
from .losses import Loss
from .source import HEAD, Source, sha256_bytes

STEP = 1 << 16
"""Packed bytes that are unpacked at a time."""
APART = 1 << 23
"""Unpacked bytes between the places that are remembered; each takes 40 kB."""


@dataclass(frozen=True)
class _Mark:
    """A place between two steps: bytes unpacked and packed before it, and zlib's state there."""

    at: int
    packed_at: int
    state: Any


@dataclass
class Inflated:
    """A raw deflate stream; only the unpacked bytes near the last position read are in memory."""

    packed: Content
    _marks: list[_Mark] = field(default_factory=list[_Mark])
    _near: bytes = b""
    _here: _Mark = field(default_factory=lambda: _Mark(0, 0, zlib.decompressobj(-15)))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, fewer at the end of the stream; damage is a zlib.error."""
        with self._lock:
            self._go_near(start)
            parts: list[bytes] = []
            while True:
                first = self._here.at - len(self._near)
                parts.append(self._near[max(0, start - first) : max(0, end - first)])
                if self._here.at >= end or not self._step():
                    return b"".join(parts)

    def _go_near(self, start: int) -> None:
        """Take the last place at or before `start` from which unpacking can go on."""
        known = bisect_right(self._marks, start, key=lambda mark: mark.at)
        mark = self._marks[known - 1] if known else _Mark(0, 0, zlib.decompressobj(-15))
        if start < self._here.at - len(self._near) or mark.at > self._here.at:
            self._here = _Mark(mark.at, mark.packed_at, mark.state.copy())
            self._near = b""

    def _step(self) -> bool:
        """Unpack what comes next; return False at the end."""
        here = self._here
        packed = bytes(self.packed[here.packed_at : here.packed_at + STEP])
        if not packed or here.state.eof:
            return False
        self._near = here.state.decompress(packed)
        self._here = _Mark(here.at + len(self._near), here.packed_at + len(packed), here.state)
        last = self._marks[-1].at if self._marks else 0
        if self._here.at >= last + APART and not here.state.eof:
            self._marks.append(_Mark(self._here.at, self._here.packed_at, here.state.copy()))
        return True


MAX_RATIO = 200
"""Members that claim to grow more than this are refused: real recordings never do, bombs do."""
RATIO_FREE_BYTES = 1 << 20
"""A member smaller than this may compress as well as it likes."""

_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_PLAIN = struct.Struct("<4s4x2H12xL3H12x")
"""The same entry: signature, flags, method, size, and the lengths of name, extra field and comment."""
_LOCAL = struct.Struct("<4s5H3L2H")
_LARGE = 1 << 24
"""Members from this size on that are stored as they are stay in the archive until they are asked for."""
VERY_LARGE = 1 << 26
"""Members from this size on that are deflated are unpacked where they are read, and more than once."""
_LOCAL_SIGNATURE = b"PK\x03\x04"
_PIECE = 1 << 16
_STORED, _DEFLATED = 0, 8
_METHODS = (_STORED, _DEFLATED)
_ENCRYPTED, _STREAMED = 1, 8
_PLAIN_NAME = re.compile(r"(?!__MACOSX/)\w+(?:[./ -]\w+)*", re.ASCII).fullmatch
"""A name that is no folder's, not hidden, and points nowhere else."""


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
class _Inflating:
    """Reads a deflated member; damage is an error of ours."""

    inflated: Inflated
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
        self._opened = self.stamp("")
        self._directory, self._shift, lost = _central_directory(self._archive, path)
        self._entries, refused = _list_members(self._directory, path.name)
        self.refused = (*lost, *refused)
        self._checked: dict[str, Content] = {}

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._entries))

    @cached_property
    def content_key(self) -> str:
        """What changes with the content, without reading it: the directory, and which file on disk this is.

        The directory alone would not do: CRCs can be forged, and another archive would then stand for this.
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

    def head(self, name: str, count: int = HEAD) -> bytes:
        member = self._member(name)
        packed = self._pack(name, member)
        if member.method == _STORED:
            return bytes(packed[:count])
        unpacking, found = zlib.decompressobj(-15), b""
        try:
            for piece in pieces_of(packed, _PIECE):
                found += unpacking.decompress(piece, count - len(found))
                if unpacking.eof or len(found) >= count:
                    break
        except zlib.error as error:
            raise _blame_damage(name, self.path.name, str(error)) from error
        return found

    def stamp(self, name: str) -> Stamp:
        """Stamp of the archive that was opened, also if another one has its name by now."""
        stat = self._archive.stat
        assert stat is not None
        return stamp_of(stat)

    def container(self, name: str) -> Path:
        return self.path

    def _content(self, name: str) -> Content:
        if (known := self._checked.get(name)) is not None:
            return known
        member = self._member(name)
        packed = self._pack(name, member)
        if member.method == _STORED:
            data = packed if member.size >= _LARGE else bytes(packed)
            return self._check(name, member, data, b"")
        reader = self._inflate(name, packed)
        if member.size < VERY_LARGE:
            data = reader.read(0, member.size + 1)
            return self._check(name, member, data[: member.size], data[member.size :])
        whole = FileBytes.over(reader, member.size)
        self._checked[name] = self._check(name, member, whole, reader.read(member.size, member.size + 1))
        return whole

    def _inflate(self, name: str, packed: Content) -> _Inflating:
        return _Inflating(Inflated(packed), name, self.path.name)

    def _check(self, name: str, member: Member, data: Content, more: bytes) -> Content:
        """Return the data of a member, if they are what the directory says, and there are no `more`."""
        right = crc32_of(data) == member.crc
        if more or not right:
            sizes = f"it should unpack to {member.size} bytes and does not"
            why = sizes if more or len(data) != member.size else "its CRC does not match"
            raise _blame_damage(name, f"{self.path.name}@{member.offset}", why)
        return data

    def _pack(self, name: str, member: Member) -> Content:
        """Return the member's bytes as they stand in the archive."""
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
    """Return the central directory's bytes, by how much its offsets are shifted, and what was lost of it."""
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
    """Return a directory made from the headers of the members, for an archive that lost its own.

    Archives are written from the front, so that what was cut off is the directory and the last members.
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
    """Return the directory's entry for the member at a byte, and where it ends; None if it is cut."""
    if at + _LOCAL.size > len(data):
        return None
    header = _LOCAL.unpack(data[at : at + _LOCAL.size])
    _, _, flags, method, _, _, crc, packed, size, name_length, extra_length = header
    names_at = at + _LOCAL.size
    start = names_at + name_length + extra_length
    name = bytes(data[names_at : names_at + name_length])
    if flags & _STREAMED:
        walked = _walk_streamed(data, start) if method == _DEFLATED else None
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
    """Return CRC, packed and whole size of a member that tells them only behind it, and where it ends."""
    unpacking, crc, size, at = zlib.decompressobj(-15), 0, 0, start
    while not unpacking.eof and at < len(data):
        piece = bytes(data[at : at + _PIECE])
        at += len(piece)
        try:
            whole = unpacking.decompress(piece, MAX_RATIO * _PIECE)
        except zlib.error:
            return None
        if unpacking.unconsumed_tail:
            return None  # it grows as no recording does
        crc, size = zlib.crc32(whole, crc), size + len(whole)
    end = at - len(unpacking.unused_data)
    behind = bytes(data[end : end + 4]) == b"PK\x07\x08"
    told = end + 4 * behind
    if not unpacking.eof or bytes(data[told : told + 4]) != struct.pack("<L", crc):
        return None
    wide = bytes(data[told + 4 : told + 20]) == struct.pack("<2Q", end - start, size)
    return crc, end - start, size, told + (20 if wide else 12)


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
    """Return where in the directory each member stands that may be read, and those refused with the reason.

    An archive may have 50,000 members: those whose fixed fields and name leave no doubt are entered
    at once, and only the others are looked at closely.
    """
    entries: dict[str, int] = {}
    doubtful: list[int] = []
    text = directory.decode("latin-1")
    at, last = 0, len(directory) - _CENTRAL.size
    while at <= last:
        signature, flags, method, size, length, extra, comment = _PLAIN.unpack_from(directory, at)
        if signature != b"PK\x01\x02":
            break
        start = at + _CENTRAL.size
        name = text[start : start + length]
        odd = flags & _ENCRYPTED or method not in _METHODS or size > RATIO_FREE_BYTES
        if odd or name in entries or not _PLAIN_NAME(name):
            doubtful.append(at)
        else:
            entries[name] = at
        at = start + length + extra + comment
    losses = [loss for position in doubtful for loss in _examine(directory, position, entries, archive)]
    if at != len(directory):
        reason = "the zip directory is damaged: members after this are lost"
        losses.append(Loss(archive, reason, byte=at, count=0))
    return entries, tuple(losses)


def _examine(directory: bytes, at: int, entries: dict[str, int], archive: str) -> Iterator[Loss]:
    """Enter a doubtful member if it may be read; else say why not."""
    entry = _CENTRAL.unpack_from(directory, at)
    raw = directory[at + _CENTRAL.size : at + _CENTRAL.size + entry[10]]
    name = raw.decode("utf-8" if entry[3] & 0x800 else "cp437", "replace")
    if name.endswith("/"):
        return
    reason = _refusal(name, _member_at(directory, at, 0))
    reason = reason or ("the name occurs twice" if name in entries else "")
    if reason:
        yield Loss(f"{archive}/{name}", reason)
    elif not _is_hidden(name):
        entries[name] = at


def _member_at(directory: bytes, at: int, shift: int) -> Member:
    """Return the member whose entry stands at a byte of the directory."""
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
            wide = [values.pop(0) if v == 0xFFFFFFFF and values else v for v in (size, packed, offset)]
            return wide[1], wide[0], wide[2]
        at += 4 + length
    return packed, size, offset


def _refusal(name: str, member: Member) -> str:
    if (
        name.startswith(("/", "\\"))
        or ".." in PurePosixPath(name.replace("\\", "/")).parts
        or ":" in name[:2]
    ):
        return "the name points outside the archive"
    if member.size > RATIO_FREE_BYTES and member.size > MAX_RATIO * max(member.packed, 1):
        return f"it claims to unpack {member.size // max(member.packed, 1)}:1, which no recording does"
    if member.flags & _ENCRYPTED:
        return "it is encrypted"
    return "" if member.method in _METHODS else f"compression method {member.method} is not supported"


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "__MACOSX/")) or "/." in name
