"""Reading Rock logs: the streams of their tasks, their samples as flat columns, parts of one log joined."""

from __future__ import annotations

import itertools
import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.base.file_bytes import PIECE, Content, gather
from transect.base.yaml_parts import parse
from transect.errors import ParseError
from transect.formats.shared.rows import Lost
from transect.recording import Loss, Parsed, Recording, Source, arrow

from ..rock import log_files
from ..rock.columns import AT, GIVEN, LOG, VALUE, Columns, blobs
from ..rock.streams import Logged, Piece, Reading, groups_of, piece_of, read_each, stream_names, streams_of
from . import MAGIC, SUFFIX
from .marshalling import Damaged, Decoder, Layout, Run, Vector, layout_of, native, plain_column
from .typelib import Unknown, read_registry

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


MAX_SAMPLE = 1 << 26
"""Bytes that a compressed sample is unpacked to."""
_COMPRESSED = 1
_BATCH, _BATCH_BYTES = 1024, 1 << 22
_GATHERED = 1 << 24
_AT, _SIZE, _REAL, _LOGICAL, _FLAGS = 1, 2, 3, 4, 5


@dataclass
class _Kept:
    """Which blocks of a stream were decoded, and what was wrong with the others."""

    good: NDArray[np.bool_]
    lost: Lost = field(default_factory=Lost)

    def lose(self, number: int, reason: str, at: int) -> None:
        """Leave a block out."""
        self.good[number] = False
        self.lost.add(reason, at)


def layout_or_reason(declared: Declared) -> tuple[Layout | None, str]:
    """Return how a stream's samples are written, or why that is not known."""
    try:
        registry = read_registry(declared.registry)
        return layout_of(registry.resolve(declared.type_name)), ""
    except Unknown as error:
        return None, str(error)


def flat_of(
    file: PocologFile, stream: int, layout: Layout | None, lazy: Sequence[str], most: int | None = None
) -> Parsed:
    """Return the flat columns of a stream's samples, of the first `most`; as bytes without a layout."""
    blocks = file.blocks[file.blocks[:, 0] == stream][:most]
    packed = bool(blocks[:, _FLAGS].any())
    kept = _Kept(np.ones(len(blocks), dtype=bool))
    if layout is None:
        columns = _raw(file, blocks, kept)
    elif len(layout.parts) == 1 and isinstance(layout.parts[0], Run) and not packed:
        columns = _records(file, blocks, layout.parts[0], kept)
    else:  # what is compressed has no place in the file that could be read later
        columns = _decode(file, blocks, Decoder(layout, file.order, () if packed else lazy), kept)
    blocks = blocks[kept.good]
    for name, column in ((AT, _AT), (GIVEN, _LOGICAL), (LOG, _REAL)):
        columns[name] = arrow.from_numpy(blocks[:, column])
    return Parsed(pa.table(columns), kept.lost.losses(file.name, "byte"))


def _data(file: PocologFile, block: Ints) -> memoryview:
    data = memoryview(file.view[int(block[_AT]) : int(block[_AT] + block[_SIZE])])
    if not block[_FLAGS] & _COMPRESSED:
        return data
    machine = zlib.decompressobj(wbits=47)
    try:
        plain = machine.decompress(data, MAX_SAMPLE)
    except zlib.error as error:
        raise Damaged(f"a sample cannot be decompressed ({error})") from error
    if not machine.eof:
        raise Damaged(f"a compressed sample is cut off, or has more than {MAX_SAMPLE} bytes")
    return memoryview(plain)


def _raw(file: PocologFile, blocks: Ints, kept: _Kept) -> dict[str, Any]:
    """Keep samples as bytes."""
    samples: list[bytes] = []
    for number, block in enumerate(blocks):
        try:
            samples.append(bytes(_data(file, block)))
        except Damaged as damage:
            kept.lose(number, str(damage), int(block[_AT]))
    return {VALUE: blobs(samples)}


def _records(file: PocologFile, blocks: Ints, run: Run, kept: _Kept) -> dict[str, Any]:
    """Decode samples of one fixed size, all at once; padding at their end may or may not be there."""
    sizes = blocks[:, _SIZE]
    for number in np.flatnonzero((sizes < run.used) | (sizes > run.size)).tolist():
        reason = f"a sample has another size than the {run.used} bytes of its type"
        kept.lose(number, reason, int(blocks[number, _AT]))
    places = blocks[kept.good, _AT]
    step = max(_GATHERED // max(run.used, 1), 1)
    parts = [gather(file.view, places[i : i + step], run.used) for i in range(0, len(places), step)]
    raw = np.concatenate(parts) if parts else np.zeros((0, run.used), np.uint8)
    records = np.ascontiguousarray(raw).reshape(-1).view(run.dtype(file.order, run.used))
    return {
        place.path or VALUE: arrow.column(
            plain_column(records[place.path], place) if place.count is None else native(records[place.path])
        )
        for place in run.places
    }


def _decode(file: PocologFile, blocks: Ints, decoder: Decoder, kept: _Kept) -> dict[str, Any]:
    """Decode samples with containers."""
    columns = Columns()
    batch: list[list[Any]] = []
    held = 0
    for number, block in enumerate(blocks):
        try:
            batch.append(decoder.pieces(_data(file, block)))
        except Damaged as damage:
            kept.lose(number, str(damage), int(block[_AT]))
            continue
        held += int(block[_SIZE])
        if len(batch) >= _BATCH or held > _BATCH_BYTES:
            _add(columns, decoder, batch)
            batch, held = [], 0
    _add(columns, decoder, batch)
    arrays = {name or VALUE: array for name, array in columns.arrays().items()}
    for path in decoder.lazy:
        if f"{path}.at" in arrays:  # counted from the sample, which begins somewhere in the file
            begins = arrow.numbers(pa.table({AT: arrays[f"{path}.at"]}), AT)
            arrays[f"{path}.at"] = arrow.from_numpy(begins + blocks[kept.good, _AT])
    return arrays


def _add(columns: Columns, decoder: Decoder, batch: Sequence[list[Any]]) -> None:
    if batch:
        leaves = decoder.leaves(batch)
        if columns.fits(leaves):
            columns.keep(len(batch), leaves)


PART = r"(.+)\.(\d+)\.log"
"""`<task>.0.log`, `<task>.1.log`: parts of one log."""
_LAZY = {"Frame": {"image": ("u1", None)}, "Pointcloud": {"points": ("f8", 3), "colors": ("f8", 4)}}
"""Long containers by the type that has them, and what they hold: their place is kept, not their content."""


def read(source: Source) -> Recording:
    """Read a log file, or a folder of them; parts of one log are joined in order."""
    files: dict[str, PocologFile] = {}
    losses: list[Loss] = []

    def read_one(name: str) -> None:
        files[name] = read_file(source.content(name), name)
        losses.extend(files[name].losses)

    read_each(log_files(source, SUFFIX), read_one, losses)
    reading = Reading(partial(_octets, files), partial(_rows, files))
    groups = groups_of(files, PART)
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
        tuple(stream for each in logged for stream in streams_of(each, reading)),
        cameras=reading.cameras,
        format="pocolog",
        source=source,
        notes=tuple(notes),
        reader_losses=tuple(losses),
    )


def _log(source: Source, name: str, port: str, files: list[PocologFile], notes: list[str]) -> Logged:
    pieces: list[Piece] = []
    declared = Declared(port, "")
    for file in files:
        for index, stream in file.streams.items():
            if stream.name != port:
                continue
            declared = stream
            layout, reason = layout_or_reason(stream)
            if reason:
                notes.append(f"{name}: samples of {stream.type_name} are kept as bytes: {reason}")
            flat = partial(flat_of, file, index, layout, _lazy(stream, layout))
            pieces.append(piece_of(source, file.name, f"pocolog.flat/1/{index}", flat))
    return Logged(name, declared.type_name, pieces, _metadata(declared), log_name="real time")


def _lazy(stream: Declared, layout: Layout | None) -> list[str]:
    """Return the paths of the long containers of a stream that hold what is expected of them."""
    wanted = _LAZY.get(stream.type_name.rsplit("/", 1)[-1].removesuffix("_m"), {})
    found: list[str] = []
    for part in layout.parts if layout else ():
        if isinstance(part, Vector) and part.run is not None and part.path in wanted:
            held = [(place.number.dtype.str[1:], place.count) for place in part.run.places]
            found += [part.path] if held == [wanted[part.path]] else []
    return found


def _metadata(declared: Declared) -> dict[str, Any]:
    """Return what the declaration says of task and port; YAML, one `key: value` a line."""
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
