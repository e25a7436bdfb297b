"""MCAP files, record by record: https://mcap.dev/spec. Checksums of chunks and summary are always checked."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.base.file_bytes import Content, crc32_of, part_of
from transect.errors import ParseError
from transect.recording import Loss

from . import MCAP_MAGIC
from .bag_file import Bytes, Channel, Chunk, ChunkedFile, ChunkScan, MessageEntry, gather, to_signed

_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _MESSAGE_INDEX, _CHUNK_INDEX, _ATTACHMENT = range(
    1, 10
)
_STATISTICS_RECORD, _DATA_END = 0x0B, 0x0F
_LEAD = struct.Struct("<BQ")
_FOOT = struct.Struct("<BQQQI")
_CHUNK_LEAD = struct.Struct("<QQQII")
_MESSAGE_LEAD = struct.Struct("<HIQ")
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_RECORD = np.dtype(
    [
        ("op", "u1"),
        ("length", "<u8"),
        ("channel", "<u2"),
        ("sequence", "<u4"),
        ("log_ns", "<u8"),
        ("publish_ns", "<u8"),
    ]
)
_INDEX_ENTRY = np.dtype([("log_ns", "<u8"), ("offset", "<u8")])
_ROS_ENCODINGS = {"ros2msg": "cdr", "ros2idl": "cdr", "ros1msg": "ros1"}


class _McapRecord(NamedTuple):
    """Opcode of a record, and the range of its content; `end` may exceed the file."""

    op: int
    start: int
    end: int


def _records(data: Bytes, at: int) -> Iterator[_McapRecord]:
    """Iterate over the records from a byte on, up to a truncated one."""
    while at + _LEAD.size <= len(data):
        op, length = _LEAD.unpack(data[at : at + _LEAD.size])
        at += _LEAD.size
        yield _McapRecord(op, at, at + length)
        if op == 0 or at + length > len(data):
            return
        at += length


class McapFile(ChunkedFile):
    """An MCAP file, whole, without a summary, or cut off anywhere."""

    def __init__(self, name: str, content: Content) -> None:
        super().__init__(name, content)
        self.profile = ""
        self._listed = 0
        self._schemas: dict[int, tuple[str, str, bytes]] = {}
        if bytes(self.content[: len(MCAP_MAGIC)]) != MCAP_MAGIC:
            start = bytes(self.content[: len(MCAP_MAGIC)])
            raise ParseError(
                f"{name} is not an MCAP file", where=f"{name}@0", why=f"it starts with {start!r}"
            )
        if not self._index_from_summary():
            self.chunks.clear()
            self._runs.clear()
            self._walk()
        self._report_orphans()
        if len(self.index.channel) < self._listed and not self.losses:
            count = self._listed - len(self.index.channel)
            self.losses.append(
                Loss(self.name, "the summary counts more messages than are found", count=count)
            )

    def _index_from_summary(self) -> bool:
        """Read the index at the end of the file; return False unless it is complete and undamaged."""
        summary = self._read_summary()
        if summary is None:
            return False
        chunk_indexes, statistics = summary
        self._note_attachments(statistics.attachment_count)
        self._listed = statistics.message_count
        counts: Counter[int] = Counter()
        for chunk_index in chunk_indexes:
            indexed = self._add_indexed(chunk_index)
            if indexed is None:
                return False
            counts.update(indexed)
        listed = {channel: count for channel, count in statistics.channel_message_counts.items() if count}
        return listed == dict(counts) and set(counts) <= set(self.channels)

    def _read_summary(self) -> tuple[list[Any], Any] | None:
        """Read the summary's chunk indexes and statistics, and add its channels; None without them."""
        start = self._summary()
        chunk_indexes: list[Any] = []
        statistics: Any = None
        before_magic = part_of(self.content, 0, len(self.content) - len(MCAP_MAGIC))
        for record in _records(before_magic, start) if start is not None else ():
            if record.end > len(self.content) or not self._learn(record, self.content):
                return None
            if record.op == _CHUNK_INDEX:
                chunk_indexes.append(self._parse(record))
            elif record.op == _STATISTICS_RECORD:
                statistics = self._parse(record)
        return None if statistics is None or None in chunk_indexes else (chunk_indexes, statistics)

    def _summary(self) -> int | None:
        """Return the position of the summary if there is one with a correct checksum."""
        foot_at = len(self.content) - 8 - _FOOT.size
        if foot_at < len(MCAP_MAGIC) or bytes(self.content[-8:]) != MCAP_MAGIC:
            return None
        op, length, start, _, crc = _FOOT.unpack(self.content[foot_at : foot_at + _FOOT.size])
        if op != _FOOTER or length != 20 or not len(MCAP_MAGIC) <= start < foot_at:
            return None
        summary = part_of(self.content, start, foot_at + _FOOT.size - 4)
        return start if not crc or crc32_of(summary) == crc else None

    def _add_indexed(self, chunk_index: Any) -> dict[int, int] | None:
        """Index a chunk by the records after it; return the number of messages of each channel, or None."""
        at = chunk_index.chunk_start_offset
        record = next(_records(self.content, at), None) if at < len(self.content) else None
        number = self._add_chunk(record) if record is not None and record.end <= len(self.content) else None
        if number is None:
            return None
        counts: dict[int, int] = {}
        for channel, where in chunk_index.message_index_offsets.items():
            entries = self._message_index(channel, where)
            if entries is None:
                return None
            self._add(number, channel, entries["log_ns"], entries["offset"])
            counts[channel] = len(entries)
        return counts

    def _message_index(self, channel: int, at: int) -> NDArray[Any] | None:
        record = next(_records(self.content, at), None) if at < len(self.content) else None
        if record is None or record.op != _MESSAGE_INDEX or record.end > len(self.content):
            return None
        data = self.content[record.start : record.end]
        if (
            len(data) < 6
            or struct.unpack_from("<HI", data) != (channel, len(data) - 6)
            or (len(data) - 6) % 16
        ):
            return None
        return np.frombuffer(data[6:], _INDEX_ENTRY)

    def _add_chunk(self, record: _McapRecord) -> int | None:
        """Add a chunk, possibly a truncated one; return its number."""
        if record.op != _CHUNK or record.start + _CHUNK_LEAD.size > len(self.content):
            return None
        _, _, size, crc, length = _CHUNK_LEAD.unpack(
            self.content[record.start : record.start + _CHUNK_LEAD.size]
        )
        name_at = record.start + _CHUNK_LEAD.size
        start = name_at + length + _U64.size
        if start > min(record.end, len(self.content)):
            return None
        compression = bytes(self.content[name_at : name_at + length]).decode("ascii", "replace")
        stored = _U64.unpack(self.content[name_at + length : start])[0]
        cut = start + stored > len(self.content)
        stored = min(stored, min(record.end, len(self.content)) - start)
        self.chunks.append(Chunk(record.start - _LEAD.size, start, stored, compression, size, crc, cut))
        return len(self.chunks) - 1

    def _walk(self) -> None:
        """Index a file without a summary by reading all its records."""
        at, closed, data_end, attachments = len(MCAP_MAGIC), False, None, 0
        for record in _records(self.content, at):
            if record.op == _CHUNK:
                self._add_walked(record)
            if record.end > len(self.content) or record.op == 0:
                break
            attachments += record.op == _ATTACHMENT
            if record.op == _DATA_END and record.end - record.start >= 4:
                data_end = record
            at, closed = record.end, record.op == _FOOTER
            if closed:
                break
            self._learn(record, self.content)
        if not closed:
            self.losses.append(Loss(self.name, "the file is cut off or damaged here", byte=at, count=0))
        self._note_attachments(attachments)
        self._add_loose(data_end)

    def _add_walked(self, record: _McapRecord) -> None:
        number = self._add_chunk(record)
        if number is not None:
            self._add_scanned(number)
        elif record.end <= len(self.content):
            at = record.start - _LEAD.size
            self.losses.append(Loss(self.name, "the header of a chunk is damaged", byte=at, count=0))

    def _note_attachments(self, count: int) -> None:
        if count:
            self.notes = [f"{self.name} has {count} attachments, which are not read"]

    def _add_loose(self, data_end: _McapRecord | None) -> None:
        """Index the messages outside of chunks, and check their common checksum."""
        entries = self._scan_from(self.content, len(MCAP_MAGIC), known=range(16)).entries
        if not entries:
            return
        size = len(self.content)
        self.chunks.append(Chunk(0, 0, size, "", size))
        self._add_entries(len(self.chunks) - 1, entries)
        if data_end is None:
            return
        crc = _U32.unpack(self.content[data_end.start : data_end.start + 4])[0]
        if crc and crc32_of(part_of(self.content, 0, data_end.start - _LEAD.size)) != crc:
            reason = (
                f"the checksum of the data does not match: some of the {len(entries)} messages are changed"
            )
            self.losses.append(Loss(self.name, reason, byte=len(MCAP_MAGIC), count=0))

    def _parse(self, record: _McapRecord, data: Bytes | None = None) -> Any:
        """Read a record with the mcap library; None if it is damaged."""
        from io import BytesIO

        from mcap import records
        from mcap.data_stream import ReadDataStream
        from mcap.exceptions import McapError

        kinds: dict[int, Any] = {
            _HEADER: records.Header,
            _SCHEMA: records.Schema,
            _CHANNEL: records.Channel,
            _CHUNK_INDEX: records.ChunkIndex,
            _STATISTICS_RECORD: records.Statistics,
        }
        content = bytes((self.content if data is None else data)[record.start : record.end])
        try:
            return kinds[record.op].read(ReadDataStream(BytesIO(content)))
        except (McapError, struct.error, UnicodeDecodeError):
            return None

    def _learn(self, record: _McapRecord, data: Bytes) -> bool:
        """Add a schema, channel or header; return False if it is damaged."""
        if record.op not in (_HEADER, _SCHEMA, _CHANNEL):
            return True
        parsed = self._parse(record, data)
        if parsed is None:
            return False
        if record.op == _HEADER:
            self.profile = parsed.profile
        elif record.op == _SCHEMA:
            self._schemas.setdefault(parsed.id, (parsed.name, parsed.encoding, parsed.data))
        else:
            name, kind, text = self._schemas.get(parsed.schema_id, ("", "", b""))
            encoding = parsed.message_encoding or _ROS_ENCODINGS.get(kind, "")
            if kind == "ros1msg" and name.count("/") == 1:
                name = name.replace("/", "/msg/")
            # a protobuf schema is bytes; latin-1 gives them back
            definition = text.decode("latin-1") if kind == "protobuf" else text.decode("utf-8", "replace")
            channel = Channel(parsed.topic, name, encoding, definition, kind, parsed.metadata)
            self.channels.setdefault(parsed.id, channel)
        return True

    def _message(self, data: Bytes, offset: int) -> tuple[int, int] | None:
        record = next(_records(data, offset), None)
        if record is None or record.op != _MESSAGE or record.end > len(data):
            return None
        start = record.start + _RECORD.itemsize - _LEAD.size
        return (start, record.end) if start <= record.end else None

    def _spans(self, data: Bytes, offsets: Ints, channels: Ints, log_ns: Ints) -> Ints:
        inside, block = gather(data, offsets, _RECORD.itemsize)
        records = block.view(_RECORD)[:, 0]
        ends = offsets + _LEAD.size + np.minimum(records["length"], len(data)).astype(np.int64)
        starts = offsets + _RECORD.itemsize
        good = inside & (records["op"] == _MESSAGE) & (records["channel"] == channels)
        good &= (to_signed(records["log_ns"]) == log_ns) & (starts <= ends) & (ends <= len(data))
        spans = np.column_stack([starts, ends, to_signed(records["publish_ns"])])
        spans[~good] = -1
        return spans

    def _scan(self, data: Bytes) -> ChunkScan:
        return self._scan_from(data, 0, known=(_SCHEMA, _CHANNEL, _MESSAGE))

    def _scan_from(self, data: Bytes, end: int, known: Collection[int]) -> ChunkScan:
        """List messages; opcodes from 0x80 on are private and ignored."""
        entries: list[MessageEntry] = []
        odd = 0
        for record in _records(data, end):
            if record.op == 0 or record.end > len(data):
                break
            if record.op == _MESSAGE and self._message(data, end) is not None:
                channel, _, log_ns = _MESSAGE_LEAD.unpack(data[record.start : record.start + 14])
                entries.append((channel, end, min(log_ns, 2**63 - 1)))
            elif not self._learn(record, data):
                break
            odd += record.op not in known and record.op < 0x80
            end = record.end
        return ChunkScan(entries, end, odd)
