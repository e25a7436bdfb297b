"""What a bag is, whatever its container: channels, an index of their messages, and the bytes when asked for.

A bag file is indexed from the index that its recorder wrote; chunks are read when a message in them is asked
for, and every message is checked against the index then. Where the index is missing, or lies, the records of
the chunks themselves are believed.
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
MAX_RATIO, FREE_CHUNK = 200, 1 << 25
"""A chunk larger than the second does not grow more than the first: black images of one message may."""
SPARSE = 1 << 16
"""Bytes for each message asked for, from which on a chunk that is not compressed is not read whole."""
MAX_CHUNK = 1 << 28
"""A chunk that claims to be larger is not unpacked: recorders write about 1 MB, or one message."""


class Damaged(Exception):
    """A chunk that cannot be unpacked; never leaves the bag files."""


def largest_chunk(stored: int) -> int:
    """Return how many bytes a compressed chunk may unpack to; bombs claim more."""
    return min(MAX_CHUNK, max(MAX_RATIO * stored, FREE_CHUNK))


def unpack(data: bytes | memoryview, compression: str, limit: int) -> bytes:
    """Return the content of a chunk, at most `limit` bytes; if it is cut off, what comes before the cut."""
    if compression not in _UNPACKERS:
        raise Damaged(f"its compression {compression!r} is not known")
    try:
        return _UNPACKERS[compression](data, limit)
    except (OSError, EOFError, ValueError, RuntimeError, MemoryError) as error:
        raise Damaged(f"it cannot be decompressed ({error})") from error


def _unpack_bz2(data: bytes | memoryview, limit: int) -> bytes:
    import bz2

    return bz2.BZ2Decompressor().decompress(data, limit)


def _unpack_lz4(data: bytes | memoryview, limit: int) -> bytes:
    import lz4.frame

    return lz4.frame.LZ4FrameDecompressor().decompress(data, limit)


def _unpack_zstd(data: bytes | memoryview, limit: int) -> bytes:
    import zstandard

    try:
        return zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK).stream_reader(data).read(limit)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


_UNPACKERS = {"bz2": _unpack_bz2, "lz4": _unpack_lz4, "zstd": _unpack_zstd}


Place = tuple[int, int]
"""Where a message is: chunk number and offset in it, or database and row."""
Entry = tuple[int, int, int]
"""Channel, offset in the chunk, log time in ns."""
HEAD = 4096
"""How much is read of a message of which only the header is wanted."""
_LATEST = np.uint64(2**63 - 1)


@dataclass(frozen=True)
class Channel:
    """What one publisher sent on one topic."""

    topic: str  # `/imu/data`, `sensor_msgs/msg/Imu` (or whatever the schema is called)
    type: str
    encoding: str  # How messages are written: `ros1`, `cdr`, `json`, `protobuf`, ...
    # Text of the type, and its language: `ros1msg`, `ros2msg`, `ros2idl`, `jsonschema`, ...; "" if
    # unknown.
    definition: str = ""
    definition_kind: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Messages:
    """Messages of one channel, in the order of the file."""

    log_ns: Ints  # (n,) int64
    publish_ns: Ints
    places: Ints  # (n, 2) int64, where each one is, see `Place`
    raws: list[bytes]  # Their data; only the first `HEAD` bytes for the channels in `BagFile.heads`.
    sizes: Ints  # (n,) int64, how many bytes each one has
    losses: tuple[Loss, ...] = ()


class Chunk(NamedTuple):
    """Where messages lie together: position of its record, of its data, and how they are packed."""

    at: int
    start: int
    stored: int
    compression: str
    size: int
    crc: int = 0
    cut: bool = False


class Scan(NamedTuple):
    """What the records of a chunk give: messages, where reading ended, and how many records made no sense."""

    entries: list[Entry]
    end: int
    odd: int


@dataclass(frozen=True)
class Index:
    """One row per message, in the order of the file: channel, log time, chunk and offset in it."""

    channel: Ints
    log_ns: Ints
    chunk: Ints
    offset: Ints


class BagFile(ABC):
    """One file of a bag: its channels, and an index of their messages.

    Of the channels in `heads` only the first `HEAD` bytes of each message are read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.channels: dict[int, Channel] = {}
        self.losses: list[Loss] = []
        self.notes: list[str] = []
        self.heads: frozenset[int] = frozenset()

    @cached_property
    def index(self) -> Index:
        """All messages in the order of the file."""
        return self._read_index()

    @abstractmethod
    def _read_index(self) -> Index:
        """List all messages."""

    def count(self, channel: int) -> int:
        """How many messages the index lists."""
        return int(np.count_nonzero(self.index.channel == channel))

    def first_log(self, channel: int) -> int | None:
        """Log time of the channel's first message in ns; None if it has none."""
        times = self.index.log_ns[self.index.channel == channel]
        return int(times[0]) if len(times) else None

    @abstractmethod
    def first(self, channel: int) -> bytes | None:
        """First `HEAD` bytes of the channel's first readable message."""

    @abstractmethod
    def messages(self, channel: int) -> Messages:
        """Return all messages of a channel."""

    @abstractmethod
    def payload(self, place: Place) -> bytes:
        """Data of one message."""

    @abstractmethod
    def byte(self, place: Place) -> int | None:
        """Byte of the file near which a message lies, where that is known."""


@dataclass
class _Found:
    """Messages of a channel while they are collected; rows of log_ns, publish_ns, chunk, offset, size."""

    rows: list[Ints] = field(default_factory=list[Ints])
    raws: list[bytes] = field(default_factory=list[bytes])
    losses: list[Loss] = field(default_factory=list[Loss])

    def messages(self) -> Messages:
        rows = np.concatenate([np.zeros((0, 5), dtype=np.int64), *self.rows])
        log_ns, publish_ns, sizes = (np.ascontiguousarray(rows[:, k]) for k in (0, 1, 4))
        return Messages(log_ns, publish_ns, rows[:, 2:4], self.raws, sizes, tuple(self.losses))


class ChunkedFile(BagFile):
    """A bag whose messages lie in chunks with an index: ROS 1 and MCAP.

    A subclass fills `channels`, `chunks` and, by `_add` and `_add_scanned`, the index when it is made.
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
        """First and last byte of the data of the message at `offset`; None if there is none."""

    @abstractmethod
    def _spans(self, data: Bytes, offsets: Ints, channels: Ints, log_ns: Ints) -> Ints:
        """Find the data of the messages that the index lists.

        Returns
        -------
        (n, 3) int64 array
            First and last byte in `data` and publishing time; first byte -1 where the index lies.
        """

    @abstractmethod
    def _scan(self, data: Bytes) -> Scan:
        """List the messages of a chunk by reading its records; learns channels, too."""

    def _add(self, chunk: int, channel: int, log_ns: NDArray[Any], offsets: NDArray[Any]) -> None:
        """Index messages of one channel in a chunk."""
        channels = np.full(len(offsets), channel, dtype=np.int64)
        self._runs.append((chunk, channels, to_signed(log_ns), to_signed(offsets)))

    def _add_entries(self, chunk: int, entries: list[Entry]) -> None:
        channels, offsets, log_ns = np.array(entries, dtype=np.int64).reshape(-1, 3).T
        self._runs.append((chunk, channels, log_ns, offsets))

    def _add_scanned(self, number: int) -> None:
        """Index a chunk by its own records."""
        chunk = self.chunks[number]
        try:
            data = self._data(number, messages=64)  # 4 MB, or read record by record
        except Damaged as damage:
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
        """Report the messages of channels of which nothing is known; called when all is indexed."""
        unknown = self.index.channel[~np.isin(self.index.channel, list(self.channels))]
        for channel, count in Counter(unknown.tolist()).items():
            reason = f"messages of channel {channel}, of which neither topic nor type is known"
            self.losses.append(Loss(self.name, reason, count=count))

    def _read_index(self) -> Index:
        sizes = [len(offsets) for _, _, _, offsets in self._runs]
        chunk = np.repeat(np.array([run[0] for run in self._runs], dtype=np.int64), sizes)
        none = np.zeros(0, dtype=np.int64)
        channel = np.concatenate([none, *(run[1] for run in self._runs)])
        log_ns = np.concatenate([none, *(run[2] for run in self._runs)])
        offset = np.concatenate([none, *(run[3] for run in self._runs)])
        order = np.lexsort((offset, chunk))
        return Index(channel[order], log_ns[order], chunk[order], offset[order])

    def first(self, channel: int) -> bytes | None:
        for row in np.flatnonzero(self.index.channel == channel)[:3].tolist():
            found = {channel: _Found()}
            self._gather_chunk(int(self.index.chunk[row]), np.array([row]), found)
            if found[channel].raws:
                return found[channel].raws[0][:HEAD]
        return None

    def messages(self, channel: int) -> Messages:
        if channel not in self._stash and any(chunk.compression not in PLAIN for chunk in self.chunks):
            # Unpacking is what takes time: one pass serves all channels.
            self._stash = self._gather(frozenset(self.channels))
        return self._stash.pop(channel, None) or self._gather(frozenset({channel}))[channel]

    def payload(self, place: Place) -> bytes:
        number, offset = place
        where = f"{self.name}@{self.chunks[number].at}+{offset}"
        try:
            data = self._data(number)
        except Damaged as damage:
            raise ParseError(
                "a message cannot be read", where=where, why=f"its chunk is damaged: {damage}"
            ) from None
        span = self._message(data, offset)
        if span is None:
            raise ParseError("a message cannot be read", where=where, why="its record is damaged")
        return bytes(data[span[0] : span[1]])

    def byte(self, place: Place) -> int | None:
        return self.chunks[place[0]].at

    def _data(self, number: int, messages: int = 1) -> Bytes:
        """Content of a chunk of which some messages are asked for; the last one that was read is kept."""
        if self._unpacked[0] == number:
            return self._unpacked[1]
        chunk = self.chunks[number]
        if chunk.compression not in PLAIN and chunk.size > largest_chunk(chunk.stored):
            raise Damaged(f"{chunk.stored} bytes claim to unpack to {chunk.size}, which no recording's do")
        stored = part_of(self.content, chunk.start, chunk.start + chunk.stored)
        if chunk.compression in PLAIN:
            if not chunk.crc and chunk.stored > SPARSE * messages:
                return stored
            data = bytes(stored)
        else:
            data = unpack(bytes(stored), chunk.compression, chunk.size + 1)
        if not chunk.cut and len(data) != chunk.size:
            raise Damaged(f"it should have {chunk.size} bytes and has {len(data)}")
        if not chunk.cut and chunk.crc and crc32_of(data) != chunk.crc:
            raise Damaged("its checksum does not match")
        self._unpacked = (number, data)
        return data

    def _gather(self, wanted: frozenset[int]) -> dict[int, Messages]:
        """Read all messages of some channels, chunk by chunk."""
        found = {channel: _Found() for channel in wanted}
        rows = np.flatnonzero(np.isin(self.index.channel, list(wanted)))
        edges = np.flatnonzero(np.diff(self.index.chunk[rows])) + 1
        for part in np.split(rows, edges):
            if len(part):
                self._gather_chunk(int(self.index.chunk[part[0]]), part, found)
        return {channel: collected.messages() for channel, collected in found.items()}

    def _gather_chunk(self, number: int, rows: NDArray[np.intp], found: dict[int, _Found]) -> None:
        index = self.index
        channels, offsets, log_ns = index.channel[rows], index.offset[rows], index.log_ns[rows]
        try:
            data = self._data(number, len(rows))
        except Damaged as damage:
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
            limit = HEAD if channel in self.heads else len(data)
            near, base = _near(data, starts, ends)
            found[channel].raws += [
                bytes(near[s - base : min(e, s + limit) - base]) for s, e, _ in spans[mine].tolist()
            ]

    def _rescue(
        self, number: int, data: Bytes, rows: NDArray[np.intp], spans: Ints, found: dict[int, _Found]
    ) -> tuple[Ints, Ints, Ints, Ints]:
        """Add to the messages that the index found those that the chunk's own records give."""
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

    def _lose(self, number: int, counts: Counter[int], found: dict[int, _Found], reason: str) -> None:
        for channel, count in sorted(counts.items()):
            topic = self.channels[channel].topic if channel in self.channels else f"channel {channel}"
            text = f"{reason} (messages of {topic} lost: {count})"
            found[channel].losses.append(Loss(self.name, text, byte=self.chunks[number].at, count=count))


def _near(data: Bytes, starts: Ints, ends: Ints) -> tuple[Bytes, int]:
    """Return the bytes around some messages, read at once where they lie together, and where they begin."""
    if isinstance(data, FileBytes) and len(starts):
        first, last = int(starts.min()), int(ends.max())
        if last - first <= SPARSE * len(starts):
            return data[first:last], first
    return data, 0


def to_signed(values: NDArray[Any]) -> Ints:
    """Return unsigned 64-bit numbers as int64, those that do not fit as its largest."""
    return np.minimum(values.astype(np.uint64), _LATEST).astype(np.int64)


def gather(data: Bytes, offsets: Ints, width: int) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """Copy `width` bytes from each offset.

    Returns
    -------
    inside : (n,) bool array
        Which offsets have that many bytes.
    block : (n, width) uint8 array
        The bytes; zeros where they are not inside.
    """
    inside = (offsets >= 0) & (offsets <= len(data) - width)
    block = np.zeros((len(offsets), width), dtype=np.uint8)
    block[inside] = file_bytes.gather(data, offsets[inside], width)
    return inside, block


def in_log_order(axes: Sequence[Ints]) -> Iterator[tuple[int, int]]:
    """Iterate over (axis, row) of several time axes in order of time; rows of an axis keep their order."""
    if not axes:
        return
    axes = [np.maximum.accumulate(axis) for axis in axes]
    which = np.repeat(np.arange(len(axes)), [len(axis) for axis in axes])
    row = np.concatenate([np.arange(len(axis)) for axis in axes])
    order = np.argsort(np.concatenate(axes), kind="stable")
    yield from zip(which[order].tolist(), row[order].tolist(), strict=True)
