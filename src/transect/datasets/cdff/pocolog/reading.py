"""Reading Rock logs: the streams of tasks as flat columns, with the parts of a log joined."""

from __future__ import annotations

import itertools
import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.base.file_bytes import PIECE_BYTES, Content, gather
from transect.base.yaml_parts import parse
from transect.errors import ParseError
from transect.formats.shared.rows import LossCounter
from transect.recording import Loss, Parsed, Recording, Source, arrow

from ..rock import log_files
from ..rock.columns import BYTE_OFFSET, LOG_TIME, LOGICAL_TIME, VALUE, SampleColumns, blobs
from ..rock.streams import (
    LoggedPort,
    LogPart,
    ReadOptions,
    group_parts,
    log_part,
    make_streams,
    read_files,
    stream_names,
)
from . import MAGIC, SUFFIX
from .marshalling import (
    ContainerLayout,
    DamagedSample,
    FixedBlock,
    TypeLayout,
    TypelibDecoder,
    make_layout,
    plain_column,
    to_native,
)
from .typelib import UnknownType, read_registry

FORMAT_VERSION = 2
PROLOGUE = struct.Struct("<7sxII")
"""Magic, version, byte order (1 is big); with padding that spec-v2.txt omits."""
BLOCK = struct.Struct("<BBHI")
"""Block type, padding, stream, size of the content."""
SAMPLE = struct.Struct("<IIIIIB")
"""Real time and logical time in s and us, size, flags (1: compressed); always little endian."""
_SAMPLE_BLOCK = struct.Struct(BLOCK.format + SAMPLE.format[1:])
_LENGTH = struct.Struct("<I")


class BlockType(IntEnum):
    """Types of blocks."""

    STREAM = 1  # declaration
    DATA = 2  # sample
    CONTROL = 3


class StreamType(IntEnum):
    """Types of streams in a declaration."""

    DATA = 1
    CONTROL = 2


class BlockColumn(IntEnum):
    """Columns of `PocologFile.blocks`: offset and size of the data in bytes, times in us."""

    STREAM = 0
    OFFSET = 1
    SIZE = 2
    REAL_TIME = 3
    LOGICAL_TIME = 4
    FLAGS = 5


@dataclass(frozen=True)
class PocologLimits:
    """Limits of memory and time while a log is read."""

    resync_candidates: int = 100_000  # possible block starts that are tested after damage
    unpacked_sample_bytes: int = 1 << 26  # of a compressed sample
    # batch of samples that are converted to columns
    batch_samples: int = 1024
    batch_bytes: int = 1 << 22
    gathered_bytes: int = 1 << 24  # of samples of fixed size that are decoded at a time


LIMITS = PocologLimits()
_COMPRESSED_FLAG = 1


class BlockHeader(NamedTuple):
    """Type and stream of a block, and the byte range of its content."""

    kind: int
    stream: int
    start: int
    end: int


@dataclass(frozen=True)
class StreamDeclaration:
    """Declaration of a stream: name, type, type definition (XML), and metadata (YAML)."""

    name: str
    type_name: str
    registry: bytes = b""
    metadata: str = ""


@dataclass
class PocologFile:
    """Index of a file; the samples are in the order of the file."""

    name: str
    view: Content
    order: str = "<"  # byte order of the samples
    streams: dict[int, StreamDeclaration] = field(default_factory=dict[int, StreamDeclaration])
    losses: list[Loss] = field(default_factory=list[Loss])
    rows: array[int] = field(default_factory=lambda: array("q"))  # of `blocks`
    orphans: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    @cached_property
    def blocks(self) -> Ints:
        """Samples as rows of `BlockColumn`, (n, 6)."""
        return np.array(self.rows, dtype=np.int64).reshape(-1, len(BlockColumn))


def read_file(view: Content, name: str) -> PocologFile:
    """Index a log file; blocks before and after damage are kept."""
    if len(view) < PROLOGUE.size or bytes(view[: len(MAGIC)]) != MAGIC:
        raise ParseError(f"{name} is no Rock log", where=f"{name}@0", why="it does not begin with POCOSIM")
    _, version, flags = PROLOGUE.unpack(view[: PROLOGUE.size])
    if version != FORMAT_VERSION:
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
    """Index consecutive intact samples, usually up to the end of the file."""
    view, streams, extend = file.view, file.streams, file.rows.extend
    unpack, header, last = _SAMPLE_BLOCK.unpack, _SAMPLE_BLOCK.size, len(file.view)
    data_block = int(BlockType.DATA)  # enum lookups are slow in this loop
    while at + header <= last:
        start = at + header
        kind, _, stream, length, real, real_us, logical, logical_us, size, flags = unpack(view[at:start])
        end = start + size
        if kind != data_block or length != SAMPLE.size + size or end > last or stream not in streams:
            break
        times = real * 1_000_000 + real_us, logical * 1_000_000 + logical_us
        extend((stream, start, size, *times, flags))
        at = end
    return at


def _header(view: Content, at: int) -> BlockHeader | None:
    """Return the header of a block, None without a complete block."""
    if at + BLOCK.size > len(view):
        return None
    start = at + BLOCK.size
    kind, _, stream, size = BLOCK.unpack(view[at:start])
    if kind not in (BlockType.STREAM, BlockType.DATA, BlockType.CONTROL) or start + size > len(view):
        return None
    return BlockHeader(kind, stream, start, start + size)


def _block(file: PocologFile, at: int) -> int | None:
    """Index one block; return its end, or None if it is damaged."""
    header = _header(file.view, at)
    if header is None:
        return None
    if header.kind == BlockType.STREAM:
        return _declare(file, header)
    if header.kind == BlockType.DATA:
        if header.stream in file.streams or not _is_sample(file.view, header):
            return None
        file.orphans.setdefault(header.stream, [at, 0])[1] += 1
    return header.end


def _declare(file: PocologFile, header: BlockHeader) -> int | None:
    """Index a declaration; reading continues after it if only its content is damaged."""
    declared = _declaration(file.view, header)
    if declared is not None:
        file.streams[header.stream] = declared
    elif header.start == header.end or file.view[header.start] != StreamType.CONTROL:
        if header.end < len(file.view) and _header(file.view, header.end) is None:
            return None
        file.losses.append(Loss(file.name, "the declaration of a stream is damaged", byte=header.start))
    return header.end


def _declaration(view: Content, header: BlockHeader) -> StreamDeclaration | None:
    try:
        if view[header.start] != StreamType.DATA:
            return None
        parts = list(_texts(view, header.start + 1, header.end))
        name, type_name = parts[0].decode(), parts[1].decode()
    except (IndexError, UnicodeDecodeError, struct.error):
        return None
    registry, metadata = [*parts[2:4], b"", b""][:2]
    return StreamDeclaration(name, type_name, registry, metadata.decode("utf-8", "replace"))


def _texts(view: Content, at: int, end: int) -> Iterator[bytes]:
    while at < end:
        (length,) = _LENGTH.unpack(view[at : at + _LENGTH.size])
        at += _LENGTH.size
        if at + length > end:
            raise IndexError
        yield bytes(view[at : at + length])
        at += length


def _is_sample(view: Content, header: BlockHeader) -> bool:
    """Whether the size in the header of a sample agrees with that of its block."""
    if header.end - header.start < SAMPLE.size:
        return False
    size = SAMPLE.unpack(view[header.start : header.start + SAMPLE.size])[4]
    return header.start + SAMPLE.size + size == header.end


def _resume(file: PocologFile, at: int) -> int:
    """Report a damaged block; return the start of the next intact one, or the end of the file."""
    view = file.view
    candidates = itertools.islice(_find_types(view, at + 1), LIMITS.resync_candidates)
    start = next((byte for byte in candidates if _is_block(file, byte)), len(view))
    what = "a block is damaged" if start < len(view) else "the last block is cut off or damaged"
    file.losses.append(Loss(file.name, f"{what}: {start - at} bytes are lost", byte=at))
    return start


def _find_types(view: Content, start: int) -> Iterator[int]:
    """Iterate over the bytes that can be a block type."""
    for begin in range(start, len(view), PIECE_BYTES):
        types = np.frombuffer(view[begin : begin + PIECE_BYTES], np.uint8)
        yield from (begin + np.flatnonzero((types == BlockType.DATA) | (types == BlockType.STREAM))).tolist()


def _is_block(file: PocologFile, at: int) -> bool:
    """Whether a declaration, or a sample of a declared stream, starts here."""
    header = _header(file.view, at)
    if header is None:
        return False
    if header.kind == BlockType.STREAM:
        return _declaration(file.view, header) is not None
    return header.stream in file.streams and _is_sample(file.view, header)


@dataclass
class _DecodedBlocks:
    """Mask of the decoded blocks of a stream, and the losses of the others."""

    good: NDArray[np.bool_]
    lost: LossCounter = field(default_factory=LossCounter)

    def lose(self, number: int, reason: str, at: int) -> None:
        """Mark a block as lost."""
        self.good[number] = False
        self.lost.add(reason, at)


def layout_or_reason(declared: StreamDeclaration) -> tuple[TypeLayout | None, str]:
    """Return the layout of a stream's samples, or the reason why it is unknown."""
    try:
        registry = read_registry(declared.registry)
        return make_layout(registry.resolve(declared.type_name)), ""
    except UnknownType as error:
        return None, str(error)


def read_columns(
    file: PocologFile, stream: int, layout: TypeLayout | None, lazy: Sequence[str], most: int | None = None
) -> Parsed:
    """Return the flat columns of the first `most` samples of a stream; as bytes without a layout."""
    blocks = file.blocks[file.blocks[:, 0] == stream][:most]
    packed = bool(blocks[:, BlockColumn.FLAGS].any())
    kept = _DecodedBlocks(np.ones(len(blocks), dtype=bool))
    if layout is None:
        columns = _raw(file, blocks, kept)
    elif len(layout.parts) == 1 and isinstance(layout.parts[0], FixedBlock) and not packed:
        columns = _records(file, blocks, layout.parts[0], kept)
    else:  # compressed samples have no byte range in the file for lazy reading
        columns = _decode(file, blocks, TypelibDecoder(layout, file.order, () if packed else lazy), kept)
    blocks = blocks[kept.good]
    for name, column in (
        (BYTE_OFFSET, BlockColumn.OFFSET),
        (LOGICAL_TIME, BlockColumn.LOGICAL_TIME),
        (LOG_TIME, BlockColumn.REAL_TIME),
    ):
        columns[name] = arrow.from_numpy(blocks[:, column])
    return Parsed(pa.table(columns), kept.lost.losses(file.name, "byte"))


def _data(file: PocologFile, block: Ints) -> memoryview:
    data = memoryview(
        file.view[int(block[BlockColumn.OFFSET]) : int(block[BlockColumn.OFFSET] + block[BlockColumn.SIZE])]
    )
    if not block[BlockColumn.FLAGS] & _COMPRESSED_FLAG:
        return data
    machine = zlib.decompressobj(wbits=47)
    try:
        plain = machine.decompress(data, LIMITS.unpacked_sample_bytes)
    except zlib.error as error:
        raise DamagedSample(f"a sample cannot be decompressed ({error})") from error
    if not machine.eof:
        raise DamagedSample(
            f"a compressed sample is cut off, or has more than {LIMITS.unpacked_sample_bytes} bytes"
        )
    return memoryview(plain)


def _raw(file: PocologFile, blocks: Ints, kept: _DecodedBlocks) -> dict[str, Any]:
    """Keep samples as bytes."""
    samples: list[bytes] = []
    for number, block in enumerate(blocks):
        try:
            samples.append(bytes(_data(file, block)))
        except DamagedSample as damage:
            kept.lose(number, str(damage), int(block[BlockColumn.OFFSET]))
    return {VALUE: blobs(samples)}


def _records(file: PocologFile, blocks: Ints, layout: FixedBlock, kept: _DecodedBlocks) -> dict[str, Any]:
    """Decode samples of fixed size at once, with or without final padding."""
    sizes = blocks[:, BlockColumn.SIZE]
    for number in np.flatnonzero((sizes < layout.used) | (sizes > layout.size)).tolist():
        reason = f"a sample has another size than the {layout.used} bytes of its type"
        kept.lose(number, reason, int(blocks[number, BlockColumn.OFFSET]))
    offsets = blocks[kept.good, BlockColumn.OFFSET]
    step = max(LIMITS.gathered_bytes // max(layout.used, 1), 1)
    parts = [gather(file.view, offsets[i : i + step], layout.used) for i in range(0, len(offsets), step)]
    raw = np.concatenate(parts) if parts else np.zeros((0, layout.used), np.uint8)
    records = np.ascontiguousarray(raw).reshape(-1).view(layout.dtype(file.order, layout.used))
    return {
        each.path or VALUE: arrow.column(
            plain_column(records[each.path], each) if each.count is None else to_native(records[each.path])
        )
        for each in layout.fields
    }


def _decode(file: PocologFile, blocks: Ints, decoder: TypelibDecoder, kept: _DecodedBlocks) -> dict[str, Any]:
    """Decode samples with containers."""
    columns = SampleColumns()
    batch: list[list[Any]] = []
    held = 0
    for number, block in enumerate(blocks):
        try:
            batch.append(decoder.split(_data(file, block)))
        except DamagedSample as damage:
            kept.lose(number, str(damage), int(block[BlockColumn.OFFSET]))
            continue
        held += int(block[BlockColumn.SIZE])
        if len(batch) >= LIMITS.batch_samples or held > LIMITS.batch_bytes:
            _add(columns, decoder, batch)
            batch, held = [], 0
    _add(columns, decoder, batch)
    arrays = {name or VALUE: array for name, array in columns.arrays().items()}
    for path in decoder.lazy:
        if f"{path}.at" in arrays:  # relative to the sample
            begins = arrow.numbers(pa.table({BYTE_OFFSET: arrays[f"{path}.at"]}), BYTE_OFFSET)
            arrays[f"{path}.at"] = arrow.from_numpy(begins + blocks[kept.good, BlockColumn.OFFSET])
    return arrays


def _add(columns: SampleColumns, decoder: TypelibDecoder, batch: Sequence[list[Any]]) -> None:
    if batch:
        leaves = decoder.leaves(batch)
        if columns.fits(leaves):
            columns.keep(len(batch), leaves)


PART = r"(.+)\.(\d+)\.log"
"""`<task>.0.log`, `<task>.1.log`: parts of one log."""
_LAZY = {"Frame": {"image": ("u1", None)}, "Pointcloud": {"points": ("f8", 3), "colors": ("f8", 4)}}
"""Long containers by type, and their elements: only their byte ranges are stored, not their content."""


def read(source: Source) -> Recording:
    """Read a log file, or a folder of them; parts of one log are joined in order."""
    files: dict[str, PocologFile] = {}
    losses: list[Loss] = []

    def read_one(name: str) -> None:
        files[name] = read_file(source.content(name), name)
        losses.extend(files[name].losses)

    read_files(log_files(source, SUFFIX), read_one, losses)
    reading = ReadOptions(partial(_octets, files), partial(_rows, files))
    groups = group_parts(files, PART)
    ports = {
        g: dict.fromkeys(d.name for f in fs for d in files[f].streams.values()) for g, fs in groups.items()
    }
    notes: list[str] = []
    logged = [
        _log(source, name, port, [files[f] for f in groups[group]], notes)
        for (group, port), name in stream_names(ports).items()
    ]
    return Recording(
        source.stem,
        tuple(stream for each in logged for stream in make_streams(each, reading)),
        cameras=reading.cameras,
        format="pocolog",
        source=source,
        notes=tuple(notes),
        reader_losses=tuple(losses),
    )


def _log(source: Source, name: str, port: str, files: list[PocologFile], notes: list[str]) -> LoggedPort:
    pieces: list[LogPart] = []
    declared = StreamDeclaration(port, "")
    for file in files:
        for index, stream in file.streams.items():
            if stream.name != port:
                continue
            declared = stream
            layout, reason = layout_or_reason(stream)
            if reason:
                notes.append(f"{name}: samples of {stream.type_name} are kept as bytes: {reason}")
            flat = partial(read_columns, file, index, layout, _lazy(stream, layout))
            pieces.append(log_part(source, file.name, f"pocolog.flat/1/{index}", flat))
    return LoggedPort(name, declared.type_name, pieces, _metadata(declared), log_name="real time")


def _lazy(stream: StreamDeclaration, layout: TypeLayout | None) -> list[str]:
    """Return the paths of the long containers of a stream with the expected element type."""
    wanted = _LAZY.get(stream.type_name.rsplit("/", 1)[-1].removesuffix("_m"), {})
    found: list[str] = []
    for part in layout.parts if layout else ():
        if isinstance(part, ContainerLayout) and part.block is not None and part.path in wanted:
            held = [(each.number.dtype.str[1:], each.count) for each in part.block.fields]
            found += [part.path] if held == [wanted[part.path]] else []
    return found


def _metadata(declared: StreamDeclaration) -> dict[str, Any]:
    """Return the metadata of task and port; YAML with one `key: value` per line."""
    try:
        found, _ = parse(declared.metadata, declared.name)
    except ParseError:
        return {"metadata": declared.metadata}
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}


def _octets(files: dict[str, PocologFile], file: str, at: int, size: int) -> NDArray[np.uint8]:
    return np.frombuffer(files[file].view[at : at + size], np.uint8)


def _rows(files: dict[str, PocologFile], file: str, at: int, size: int, width: int) -> NDArray[np.float64]:
    log = files[file]
    numbers = np.frombuffer(log.view[at : at + size // 8 * 8], f"{log.order}f8")
    return numbers.astype(np.float64).reshape(-1, width)
