"""ROS 1 bags (version 2.0), record by record: http://wiki.ros.org/Bags/Format/2.0."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from transect.base.arrays import Ints
from transect.base.clocks import NS
from transect.base.file_bytes import Content
from transect.errors import ParseError, UnsupportedError
from transect.recording import Loss

from . import ROS1_MAGIC
from .bag_file import Bytes, Channel, Chunk, ChunkedFile, ChunkScan, MessageEntry, gather

_U32, _U64, _TIME = struct.Struct("<I"), struct.Struct("<Q"), struct.Struct("<II")
_OPS = tuple(bytes([op]) for op in (2, 3, 4, 5, 6, 7))
_MESSAGE, _BAG, _INDEX, _CHUNK, _CHUNK_INFO, _CONNECTION = _OPS
_INDEX_ENTRY = np.dtype([("sec", "<u4"), ("nsec", "<u4"), ("offset", "<u4")])
_COUNT = np.dtype([("conn", "<u4"), ("count", "<u4")])
_HEADER_READ_BYTES = 256
"""Exceeds the header size of most records."""


class _Ros1Record(NamedTuple):
    """Header fields of a record, and the range of its data; `end` may exceed the file."""

    fields: dict[bytes, bytes]
    start: int
    end: int

    @property
    def op(self) -> bytes:
        return self.fields.get(b"op", b"")

    def number(self, name: bytes, width: struct.Struct = _U32) -> int:
        """Read a number of the header; -1 if it is missing."""
        value = self.fields.get(name, b"")
        return int(width.unpack(value)[0]) if len(value) == width.size else -1


def _fields(header: bytes) -> dict[bytes, bytes] | None:
    fields: dict[bytes, bytes] = {}
    at, end = 0, len(header)
    while at + 4 <= end:
        size = _U32.unpack_from(header, at)[0]
        name, equals, value = header[at + 4 : at + 4 + size].partition(b"=")
        at += 4 + size
        if not equals or at > end:
            return None
        fields[name] = value
    return fields if at == end else None


def _record(data: Bytes, at: int) -> _Ros1Record | None:
    """Read the record at a byte, or None."""
    if at < 0 or at + 4 > len(data):
        return None
    lead = data[at : at + _HEADER_READ_BYTES]
    length = _U32.unpack(lead[:4])[0]
    data_at = at + 4 + length
    if data_at + 4 > len(data):
        return None
    if length + 8 > len(lead):
        lead = data[at : data_at + 4]
    fields = _fields(bytes(lead[4 : 4 + length]))
    if fields is None:
        return None
    start = data_at + 4
    return _Ros1Record(fields, start, start + _U32.unpack(lead[4 + length : 8 + length])[0])


class Ros1File(ChunkedFile):
    """A ROS 1 bag, whole, not indexed, or cut off anywhere."""

    def __init__(self, name: str, content: Content) -> None:
        super().__init__(name, content)
        if bytes(self.content[: len(ROS1_MAGIC)]) != ROS1_MAGIC:
            start = bytes(self.content[:13])
            raise ParseError(
                f"{name} is not a ROS 1 bag of version 2.0",
                where=f"{name}@0",
                why=f"it starts with {start!r}",
            )
        header = _record(self.content, len(ROS1_MAGIC))
        first = len(ROS1_MAGIC)
        index_at = 0
        if header is not None and header.op == _BAG:
            if header.fields.get(b"encryptor"):
                raise UnsupportedError(
                    f"{name} is encrypted", where=name, hint="decrypt it with 'rosbag decrypt'"
                )
            first, index_at = header.end, header.number(b"index_pos", _U64)
        chunks = self._chunk_infos(header, index_at)
        if chunks is None:
            self._walk(first, closed=index_at > 0)
        else:
            for at, counts in chunks.items():
                self._add_indexed(at, counts)
        self._report_orphans()

    def _chunk_infos(self, header: _Ros1Record | None, at: int) -> dict[int, dict[int, int]] | None:
        """Read the index at the end: position of each chunk, and its number of messages by connection."""
        chunks: dict[int, dict[int, int]] = {}
        connections, size = 0, len(self.content)
        while header is not None and 0 < at < size:
            record = _record(self.content, at)
            if record is None or record.op not in (_CONNECTION, _CHUNK_INFO) or record.end > size:
                return None
            data = self.content[record.start : record.end]
            if record.op == _CONNECTION:
                connections += self._learn(record, data)
            elif record.number(b"count") * 8 != len(data):
                return None
            else:
                pairs = np.frombuffer(data, _COUNT)
                counts = dict(zip(pairs["conn"].tolist(), pairs["count"].tolist(), strict=True))
                chunks[record.number(b"chunk_pos", _U64)] = counts
            at = record.end
        is_complete = header is not None and header.number(b"conn_count") == connections
        is_complete = is_complete and header is not None and header.number(b"chunk_count") == len(chunks)
        return dict(sorted(chunks.items())) if is_complete and at == size else None

    def _add_indexed(self, at: int, counts: dict[int, int]) -> None:
        """Index a chunk by the records after it, if they agree with the index at the end."""
        number = self._add_chunk(at)
        if number is None:
            reason = "there is no chunk where the index says so"
            self.losses.append(Loss(self.name, reason, byte=at, count=sum(counts.values())))
            return
        runs = list(self._indexes(self.chunks[number].start + self.chunks[number].stored, len(counts)))
        if {conn: len(entries) for conn, entries in runs} != counts:
            self._add_scanned(number)
            return
        for conn, entries in runs:
            times = entries["sec"].astype(np.int64) * NS + entries["nsec"]
            self._add(number, conn, times, entries["offset"])

    def _indexes(self, at: int, count: int) -> Iterator[tuple[int, np.ndarray]]:
        for _ in range(count):
            record = _record(self.content, at)
            if record is None or record.op != _INDEX or record.end > len(self.content):
                return
            data = self.content[record.start : record.end]
            if record.number(b"ver") != 1 or len(data) != record.number(b"count") * _INDEX_ENTRY.itemsize:
                return
            yield record.number(b"conn"), np.frombuffer(data, _INDEX_ENTRY)
            at = record.end

    def _add_chunk(self, at: int, record: _Ros1Record | None = None) -> int | None:
        """Add the chunk at a byte; return its number."""
        record = record or _record(self.content, at)
        if record is None or record.op != _CHUNK:
            return None
        stored = min(record.end, len(self.content)) - record.start
        compression = record.fields.get(b"compression", b"none").decode("ascii", "replace")
        size = record.number(b"size") if compression != "none" else stored
        self.chunks.append(
            Chunk(at, record.start, stored, compression, size, cut=record.end > len(self.content))
        )
        return len(self.chunks) - 1

    def _walk(self, at: int, closed: bool) -> None:
        """Index a bag by reading all its records; `closed` is whether it once had an index."""
        self._learn_loose(at)
        reason = "the bag is cut off" if closed else ""
        while at < len(self.content):
            record = _record(self.content, at)
            if record is None or (record.end > len(self.content) and record.op != _CHUNK):
                reason = reason or "the last record is incomplete or damaged"
                break
            if record.op == _CHUNK and (number := self._add_chunk(at, record)) is not None:
                self._add_scanned(number)
            at = record.end
        if reason or at > len(self.content):
            at = min(at, len(self.content))
            self.losses.append(Loss(self.name, reason or "the last chunk is cut off", byte=at, count=0))
        else:
            self.notes.append(
                f"{self.name} was not closed: it has no index, its records were read one by one"
            )

    def _learn_loose(self, at: int) -> None:
        """Index messages outside of chunks: those of an unfinished chunk of a crashed recorder."""
        loose = self._scan_from(self.content, at, known=_OPS)
        if loose.odd:
            self.losses.append(Loss(self.name, "records of an unknown kind", count=loose.odd))
        if loose.entries:
            size = len(self.content)
            self.chunks.append(Chunk(0, 0, size, "", size))
            self._add_entries(len(self.chunks) - 1, loose.entries)

    def _learn(self, record: _Ros1Record, data: Bytes) -> int:
        """Add a connection; return 1 if it is readable."""
        fields = _fields(bytes(data))
        conn = record.number(b"conn")
        if fields is None or conn < 0 or b"type" not in fields:
            return 0
        topic = (record.fields.get(b"topic") or fields.get(b"topic", b"")).decode("utf-8", "replace")
        definition = fields.get(b"message_definition", b"").decode("utf-8", "replace")
        kind = fields[b"type"].decode("utf-8", "replace")
        package, _, name = kind.partition("/")
        kind = f"{package}/msg/{name}" if name and "/" not in name else kind
        self.channels.setdefault(
            conn, Channel(topic, kind, "ros1", definition, "ros1msg" if definition else "")
        )
        return 1

    def _message(self, data: Bytes, offset: int) -> tuple[int, int] | None:
        record = self._message_record(data, offset)
        return None if record is None else (record.start, record.end)

    def _message_record(self, data: Bytes, offset: int) -> _Ros1Record | None:
        """Read the message at an offset; the index may also point at the connection before it."""
        record = _record(data, offset)
        while record is not None and record.op == _CONNECTION:
            record = _record(data, record.end)
        return record if record is not None and record.op == _MESSAGE and record.end <= len(data) else None

    def _spans(self, data: Bytes, offsets: Ints, channels: Ints, log_ns: Ints) -> Ints:
        spans = self._spans_alike(data, offsets, channels, log_ns)
        for row in np.flatnonzero(spans[:, 0] < 0).tolist():
            record = self._message_record(data, int(offsets[row]))
            if record is not None and (record.number(b"conn"), _time(record)) == (channels[row], log_ns[row]):
                spans[row] = record.start, record.end, 0
        return spans

    def _spans_alike(self, data: Bytes, offsets: Ints, channels: Ints, log_ns: Ints) -> Ints:
        """Find the messages whose record header has the layout of the first one, usually all."""
        spans = np.full((len(offsets), 3), -1, dtype=np.int64)
        first = _record(data, int(offsets[0])) if len(offsets) else None
        if first is None or first.op != _MESSAGE or b"conn" not in first.fields:
            return spans
        width = first.start - int(offsets[0])
        inside, block = gather(data, offsets, width)
        header = block[0].tobytes()
        conn_at, time_at = header.find(b"conn=") + 5, header.find(b"time=") + 5
        fixed = np.ones(width, dtype=np.bool_)
        fixed[conn_at : conn_at + 4] = fixed[time_at : time_at + 8] = fixed[-4:] = False
        number = np.ascontiguousarray(block[:, conn_at : conn_at + 4]).view("<u4")[:, 0]
        time = np.ascontiguousarray(block[:, time_at : time_at + 8]).view("<u4").astype(np.int64)
        ends = offsets + width + np.ascontiguousarray(block[:, -4:]).view("<u4")[:, 0]
        good = inside & (block[:, fixed] == block[0, fixed]).all(axis=1) & (ends <= len(data))
        good &= (number == channels) & (time[:, 0] * NS + time[:, 1] == log_ns)
        spans[good] = np.column_stack([offsets + width, ends, np.zeros_like(ends)])[good]
        return spans

    def _scan(self, data: Bytes) -> ChunkScan:
        return self._scan_from(data, 0, known=(_MESSAGE, _CONNECTION))

    def _scan_from(self, data: Bytes, at: int, known: Collection[bytes]) -> ChunkScan:
        entries: list[MessageEntry] = []
        odd = 0
        while (record := _record(data, at)) is not None and record.end <= len(data):
            if record.op == _CONNECTION:
                self._learn(record, data[record.start : record.end])
            elif record.op == _MESSAGE:
                entries.append((record.number(b"conn"), at, _time(record)))
            odd += record.op not in known
            at = record.end
        return ChunkScan(entries, at, odd)


def _time(record: _Ros1Record) -> int:
    value = record.fields.get(b"time", b"")
    if len(value) != _TIME.size:
        return -1
    sec, nsec = _TIME.unpack(value)
    return sec * NS + nsec
