"""Common interface of bag containers: channels, an index of messages, and message data on access.

The index written by the recorder is used if possible. Chunks are read when a message is accessed, and every
message is checked against the index. If the index is missing or wrong, the records of the chunks are used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.base import file_bytes
from transect.base.arrays import Ints
from transect.base.file_bytes import Content, FileBytes, crc32_of, part_of
from transect.errors import ParseError
from transect.recording import Loss

Bytes = Content
PLAIN = ("", "none")
"""Names of no compression."""
MAX_CHUNK_RATIO, UNCHECKED_CHUNK_BYTES = 200, 1 << 25
"""Largest compression ratio of chunks above the second size; messages of black images compress more."""
SPARSE_BYTES = 1 << 16
"""Uncompressed chunks with more bytes per requested message are not read as a whole."""
MAX_CHUNK_BYTES = 1 << 28
"""Larger chunks are not unpacked: recorders write about 1 MB, or one message."""


class DamagedChunkError(Exception):
    """A chunk that cannot be unpacked; internal to bag files."""


def largest_chunk(stored: int) -> int:
    """Return the maximum unpacked size of a compressed chunk, to refuse decompression bombs."""
    return min(MAX_CHUNK_BYTES, max(MAX_CHUNK_RATIO * stored, UNCHECKED_CHUNK_BYTES))


def unpack(data: bytes | memoryview, compression: str, limit: int) -> bytes:
    """Return the content of a chunk, at most `limit` bytes; of a truncated one the readable part."""
    if compression not in _UNPACKERS:
        raise DamagedChunkError(f"its compression {compression!r} is not known")
    try:
        return _UNPACKERS[compression](data, limit)
    except (OSError, EOFError, ValueError, RuntimeError, MemoryError) as error:
        raise DamagedChunkError(f"it cannot be decompressed ({error})") from error


def _unpack_bz2(data: bytes | memoryview, limit: int) -> bytes:
    import bz2

    return bz2.BZ2Decompressor().decompress(data, limit)


def _unpack_lz4(data: bytes | memoryview, limit: int) -> bytes:
    import lz4.frame

    return lz4.frame.LZ4FrameDecompressor().decompress(data, limit)


def _unpack_zstd(data: bytes | memoryview, limit: int) -> bytes:
    import zstandard

    try:
        return zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK_BYTES).stream_reader(data).read(limit)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


_UNPACKERS = {"bz2": _unpack_bz2, "lz4": _unpack_lz4, "zstd": _unpack_zstd}


MessagePosition = tuple[int, int]
"""Chunk number and offset in it, or database and row."""
MessageEntry = tuple[int, int, int]
"""Channel, offset in the chunk, log time in ns."""
MESSAGE_HEAD_BYTES = 4096
"""Bytes that are read of a message if only its header is needed."""
_LATEST = np.uint64(2**63 - 1)


@dataclass(frozen=True)
class Channel:
    """Messages of one publisher on one topic."""

    topic: str  # `/imu/data`
    type: str  # `sensor_msgs/msg/Imu`, or the name of the schema
    encoding: str  # Serialisation: `ros1`, `cdr`, `json`, `protobuf`, ...
    definition: str = ""  # Text of the type; "" if unknown
    definition_kind: str = ""  # Its language: `ros1msg`, `ros2msg`, `ros2idl`, `jsonschema`, ...
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Messages:
    """Messages of one channel, in the order of the file."""

    log_ns: Ints  # (n,) int64
    publish_ns: Ints
    places: Ints  # (n, 2) int64, see `MessagePosition`
    raws: list[
        bytes
    ]  # Their data; only the first `MESSAGE_HEAD_BYTES` bytes for the channels in `BagFile.heads`.
    sizes: Ints  # (n,) int64, bytes of each message
    losses: tuple[Loss, ...] = ()


class Chunk(NamedTuple):
    """A chunk of messages: position of its record, position and size of its data, and compression."""

    at: int
    start: int
    stored: int
    compression: str
    size: int
    crc: int = 0
    cut: bool = False


class ChunkScan(NamedTuple):
    """Result of reading the records of a chunk."""

    entries: list[MessageEntry]
    end: int  # Where reading ended
    odd: int  # Number of records that are neither messages nor channels


@dataclass(frozen=True)
class MessageIndex:
    """One row per message, in the order of the file: channel, log time, chunk and offset in it."""

    channel: Ints
    log_ns: Ints
    chunk: Ints
    offset: Ints


class BagFile(ABC):
    """One file of a bag: its channels, and an index of their messages.

    For the channels in `heads` only the first `MESSAGE_HEAD_BYTES` of each message are read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.channels: dict[int, Channel] = {}
        self.losses: list[Loss] = []
        self.notes: list[str] = []
        self.heads: frozenset[int] = frozenset()

    @cached_property
    def index(self) -> MessageIndex:
        """All messages in the order of the file."""
        return self._read_index()

    @abstractmethod
    def _read_index(self) -> MessageIndex:
        """List all messages."""

    def count(self, channel: int) -> int:
        """Number of messages in the index."""
        return int(np.count_nonzero(self.index.channel == channel))

    def first_log(self, channel: int) -> int | None:
        """Log time of the channel's first message in ns; None if it has none."""
        times = self.index.log_ns[self.index.channel == channel]
        return int(times[0]) if len(times) else None

    @abstractmethod
    def first(self, channel: int) -> bytes | None:
        """First `MESSAGE_HEAD_BYTES` of the channel's first readable message."""

    @abstractmethod
    def messages(self, channel: int) -> Messages:
        """Return all messages of a channel."""

    @abstractmethod
    def payload(self, place: MessagePosition) -> bytes:
        """Data of one message."""

    @abstractmethod
    def byte(self, place: MessagePosition) -> int | None:
        """Approximate position of a message in the file, if known."""


@dataclass
class _CollectedMessages:
    """Messages of a channel while they are collected; rows of log_ns, publish_ns, chunk, offset, size."""

    rows: list[Ints] = field(default_factory=list[Ints])
    raws: list[bytes] = field(default_factory=list[bytes])
    losses: list[Loss] = field(default_factory=list[Loss])

    def messages(self) -> Messages:
        rows = np.concatenate([np.zeros((0, 5), dtype=np.int64), *self.rows])
        log_ns, publish_ns, sizes = (np.ascontiguousarray(rows[:, k]) for k in (0, 1, 4))
        return Messages(log_ns, publish_ns, rows[:, 2:4], self.raws, sizes, tuple(self.losses))


class ChunkedFile(BagFile):
    """A bag with indexed chunks of messages: ROS 1 and MCAP.

    The constructor of a subclass fills `channels`, `chunks` and, with `_add` and `_add_scanned`, the index.
    """

    def __init__(self, name: str, content: Content) -> None:
        super().__init__(name)
        self.content = content
        self.chunks: list[Chunk] = []
        self._runs: list[tuple[int, Ints, Ints, Ints]] = []
        self._unpacked: tuple[int, Bytes] = (-1, b"")
        self._stash: dict[int, Messages] = {}

    @abstractmethod
    def _message(self, data: Bytes, offset: int) -> tuple[int, int] | None:
        """First and last byte of the data of the message at `offset`; None without a message."""

    @abstractmethod
    def _spans(self, data: Bytes, offsets: Ints, channels: Ints, log_ns: Ints) -> Ints:
        """Find the data of the indexed messages: (n, 3) first and last byte in `data` and publish time.

        The first byte is -1 if the index is wrong.
        """

    @abstractmethod
    def _scan(self, data: Bytes) -> ChunkScan:
        """List the messages of a chunk by reading its records; also adds channels."""

    def _add(self, chunk: int, channel: int, log_ns: NDArray[Any], offsets: NDArray[Any]) -> None:
        """Index messages of one channel in a chunk."""
        channels = np.full(len(offsets), channel, dtype=np.int64)
        self._runs.append((chunk, channels, to_signed(log_ns), to_signed(offsets)))

    def _add_entries(self, chunk: int, entries: list[MessageEntry]) -> None:
        channels, offsets, log_ns = np.array(entries, dtype=np.int64).reshape(-1, 3).T
        self._runs.append((chunk, channels, log_ns, offsets))

    def _add_scanned(self, number: int) -> None:
        """Index a chunk by reading its records."""
        chunk = self.chunks[number]
        try:
            data = self._data(number, messages=64)  # 4 MB, or read record by record
        except DamagedChunkError as damage:
            self.losses.append(Loss(self.name, f"a chunk is damaged: {damage}", byte=chunk.at, count=0))
            return
        scan = self._scan(data)
        if scan.end < len(data) and not chunk.cut:
            reason = f"a record in this chunk, {scan.end} bytes into its data, is damaged: the rest is lost"
            self.losses.append(Loss(self.name, reason, byte=chunk.at, count=0))
        if scan.odd:
            reason = "records in this chunk are neither messages nor channels"
            self.losses.append(Loss(self.name, reason, byte=chunk.at, count=scan.odd))
        self._add_entries(number, scan.entries)

    def _report_orphans(self) -> None:
        """Report the messages of unknown channels; called after indexing."""
        unknown = self.index.channel[~np.isin(self.index.channel, list(self.channels))]
        for channel, count in Counter(unknown.tolist()).items():
            reason = f"messages of channel {channel}, whose topic and type are not known"
            self.losses.append(Loss(self.name, reason, count=count))

    def _read_index(self) -> MessageIndex:
        sizes = [len(offsets) for _, _, _, offsets in self._runs]
        chunk = np.repeat(np.array([run[0] for run in self._runs], dtype=np.int64), sizes)
        none = np.zeros(0, dtype=np.int64)
        channel = np.concatenate([none, *(run[1] for run in self._runs)])
        log_ns = np.concatenate([none, *(run[2] for run in self._runs)])
        offset = np.concatenate([none, *(run[3] for run in self._runs)])
        order = np.lexsort((offset, chunk))
        return MessageIndex(channel[order], log_ns[order], chunk[order], offset[order])

    def first(self, channel: int) -> bytes | None:
        for row in np.flatnonzero(self.index.channel == channel)[:3].tolist():
            found = {channel: _CollectedMessages()}
            self._gather_chunk(int(self.index.chunk[row]), np.array([row]), found)
            if found[channel].raws:
                return found[channel].raws[0][:MESSAGE_HEAD_BYTES]
        return None

    def messages(self, channel: int) -> Messages:
        if channel not in self._stash and any(chunk.compression not in PLAIN for chunk in self.chunks):
            # Unpacking is slow: one pass serves all channels.
            self._stash = self._gather(frozenset(self.channels))
        return self._stash.pop(channel, None) or self._gather(frozenset({channel}))[channel]

    def payload(self, place: MessagePosition) -> bytes:
        number, offset = place
        where = f"{self.name}@{self.chunks[number].at}+{offset}"
        try:
            data = self._data(number)
        except DamagedChunkError as damage:
            raise ParseError(
                "a message cannot be read", where=where, why=f"its chunk is damaged: {damage}"
            ) from None
        span = self._message(data, offset)
        if span is None:
            raise ParseError("a message cannot be read", where=where, why="its record is damaged")
        return bytes(data[span[0] : span[1]])

    def byte(self, place: MessagePosition) -> int | None:
        return self.chunks[place[0]].at

    def _data(self, number: int, messages: int = 1) -> Bytes:
        """Return the content of a chunk from which some messages are needed; the last one is cached."""
        if self._unpacked[0] == number:
            return self._unpacked[1]
        chunk = self.chunks[number]
        if chunk.compression not in PLAIN and chunk.size > largest_chunk(chunk.stored):
            raise DamagedChunkError(
                f"{chunk.stored} bytes claim to unpack to {chunk.size}, which no recording's do"
            )
        stored = part_of(self.content, chunk.start, chunk.start + chunk.stored)
        if chunk.compression in PLAIN:
            if not chunk.crc and chunk.stored > SPARSE_BYTES * messages:
                return stored
            data = bytes(stored)
        else:
            data = unpack(bytes(stored), chunk.compression, chunk.size + 1)
        if not chunk.cut and len(data) != chunk.size:
            raise DamagedChunkError(f"it should have {chunk.size} bytes and has {len(data)}")
        if not chunk.cut and chunk.crc and crc32_of(data) != chunk.crc:
            raise DamagedChunkError("its checksum does not match")
        self._unpacked = (number, data)
        return data

    def _gather(self, wanted: frozenset[int]) -> dict[int, Messages]:
        """Read all messages of some channels, chunk by chunk."""
        found = {channel: _CollectedMessages() for channel in wanted}
        rows = np.flatnonzero(np.isin(self.index.channel, list(wanted)))
        edges = np.flatnonzero(np.diff(self.index.chunk[rows])) + 1
        for part in np.split(rows, edges):
            if len(part):
                self._gather_chunk(int(self.index.chunk[part[0]]), part, found)
        return {channel: collected.messages() for channel, collected in found.items()}

    def _gather_chunk(
        self, number: int, rows: NDArray[np.intp], found: dict[int, _CollectedMessages]
    ) -> None:
        index = self.index
        channels, offsets, log_ns = index.channel[rows], index.offset[rows], index.log_ns[rows]
        try:
            data = self._data(number, len(rows))
        except DamagedChunkError as damage:
            self._lose(number, Counter(channels.tolist()), found, f"a chunk is damaged: {damage}")
            return
        spans = self._spans(data, offsets, channels, log_ns)
        if (spans[:, 0] < 0).any():
            channels, offsets, log_ns, spans = self._rescue(number, data, rows, spans, found)
        for channel in sorted(set(channels.tolist())):
            mine = channels == channel
            starts, ends, publish_ns = spans[mine].T
            places = (np.full(len(starts), number), offsets[mine])
            found[channel].rows.append(np.column_stack([log_ns[mine], publish_ns, *places, ends - starts]))
            limit = MESSAGE_HEAD_BYTES if channel in self.heads else len(data)
            near, base = _near(data, starts, ends)
            found[channel].raws += [
                bytes(near[s - base : min(e, s + limit) - base]) for s, e, _ in spans[mine].tolist()
            ]

    def _rescue(
        self,
        number: int,
        data: Bytes,
        rows: NDArray[np.intp],
        spans: Ints,
        found: dict[int, _CollectedMessages],
    ) -> tuple[Ints, Ints, Ints, Ints]:
        """Complete the messages found by the index with those found by reading the chunk's records."""
        index = self.index
        listed = np.column_stack([index.channel[rows], index.offset[rows], index.log_ns[rows]])
        known: dict[int, list[int]] = {entry[1]: entry for entry in listed[spans[:, 0] >= 0].tolist()}
        for entry in self._scan(data).entries:
            if entry[0] in found:
                known.setdefault(entry[1], list(entry))
        missing = Counter(listed[:, 0].tolist())
        missing.subtract(entry[0] for entry in known.values())
        self._lose(number, +missing, found, "records in this chunk are damaged")
        kept = np.array([known[offset] for offset in sorted(known)], dtype=np.int64).reshape(-1, 3)
        channels, offsets, log_ns = kept[:, 0], kept[:, 1], kept[:, 2]
        spans = self._spans(data, offsets, channels, log_ns)
        good = spans[:, 0] >= 0
        return channels[good], offsets[good], log_ns[good], spans[good]

    def _lose(
        self, number: int, counts: Counter[int], found: dict[int, _CollectedMessages], reason: str
    ) -> None:
        for channel, count in sorted(counts.items()):
            topic = self.channels[channel].topic if channel in self.channels else f"channel {channel}"
            text = f"{reason} (messages of {topic} lost: {count})"
            found[channel].losses.append(Loss(self.name, text, byte=self.chunks[number].at, count=count))


def _near(data: Bytes, starts: Ints, ends: Ints) -> tuple[Bytes, int]:
    """Return the bytes around some messages, read at once if they are close together, and their offset."""
    if isinstance(data, FileBytes) and len(starts):
        first, last = int(starts.min()), int(ends.max())
        if last - first <= SPARSE_BYTES * len(starts):
            return data[first:last], first
    return data, 0


def to_signed(values: NDArray[Any]) -> Ints:
    """Return unsigned 64-bit numbers as int64, saturated at its maximum."""
    return np.minimum(values.astype(np.uint64), _LATEST).astype(np.int64)


def gather(data: Bytes, offsets: Ints, width: int) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """Copy `width` bytes (n, width) from each offset, zeros and False (n,) for those outside the data."""
    inside = (offsets >= 0) & (offsets <= len(data) - width)
    block = np.zeros((len(offsets), width), dtype=np.uint8)
    block[inside] = file_bytes.gather(data, offsets[inside], width)
    return inside, block


def in_log_order(axes: Sequence[Ints]) -> Iterator[tuple[int, int]]:
    """Iterate over (axis, row) of several time axes in order of time, keeping the order of each axis."""
    if not axes:
        return
    axes = [np.maximum.accumulate(axis) for axis in axes]
    which = np.repeat(np.arange(len(axes)), [len(axis) for axis in axes])
    row = np.concatenate([np.arange(len(axis)) for axis in axes])
    order = np.argsort(np.concatenate(axes), kind="stable")
    yield from zip(which[order].tolist(), row[order].tolist(), strict=True)
