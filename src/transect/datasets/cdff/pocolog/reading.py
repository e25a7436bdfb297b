"""Reading Rock logs: the streams of their tasks, their samples as flat columns, parts of one log joined."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.base.file_bytes import gather
from transect.base.yaml_parts import parse
from transect.errors import ParseError
from transect.formats.shared.rows import Lost
from transect.recording import Loss, Parsed, Recording, Source, arrow

from ..rock import log_files
from ..rock.columns import VALUE, Columns, blobs
from ..rock.flat import AT, GIVEN, LOG
from ..rock.streams import Logged, Piece, Reading, groups_of, piece_of, read_each, stream_names, streams_of
from . import SUFFIX
from .file import Declared, PocologFile, read_file
from .marshalling import Damaged, Decoder, Layout, Run, Vector, layout_of, native, plain_column
from .typelib import Unknown, read_registry

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
