"""Writing CDFF MessagePack logs: single or chunked, sample by sample or flattened, compressed or not.

Flattened, as by pocolog2msgpack's `--flatten`, samples are taken apart into one list per field: a field `sub`
of a field `field` of the port `/task.port` has the key `/task.port/field/sub`. A list of maps becomes a list
per field of the maps: `/arm.joints/elements/position` is a list of numbers in each sample.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from transect.base import files
from transect.errors import UsageError
from transect.formats.shared.interface import Note
from transect.formats.shared.payloads import loadable
from transect.recording import Parsed, Recording, Stream
from transect.types import Pose

from ..rock.samples import Form, form_of, not_carried
from .file import MAX_SAMPLES, MAX_UNPACKED, META
from .samples import bitstream_form

_US = 1000
SUFFIX = ".msg"


@dataclass(frozen=True)
class Layout:
    """How a log is laid out."""

    chunk: int  # Samples per file; 0 for one file
    flatten: bool
    compress: bool
    forms: dict[type, Form]  # Those that differ from the usual ones

    def form_of(self, stream: Stream) -> Form | None:
        """Return how a stream is written, None if it cannot be."""
        return self.forms.get(stream.type) or form_of(stream)


def write(
    recording: Recording,
    path: Path,
    chunk: int | str,
    flatten: bool,
    compress: bool,
    bitstream: str | Path | None,
) -> tuple[str, ...]:
    """Write all streams as a log; see `transect.datasets.cdff.msgpack.write`."""
    forms = {Pose: bitstream_form(bitstream)} if bitstream else {}
    layout = Layout(_count(chunk), flatten, compress or path.name.endswith(".zz"), forms)
    said: list[str] = []
    chosen = [loadable(s, said) for s in recording.streams if layout.form_of(s) is not None]
    if not chosen:
        raise UsageError(f"{recording.name} has no stream that can be written")
    for target, streams in zip(_targets(path, layout), chunks_of(chosen, layout.chunk), strict=False):
        files.refuse_existing(target, hint="choose a new file with -o")
        said += _write_log(target, streams, layout)
    return (*dict.fromkeys(said), *not_carried(recording, chosen, both_times=False))


def _count(chunk: int | str) -> int:
    try:
        size = int(chunk)
    except ValueError:
        size = -1
    if size < 0:
        raise UsageError(f"chunk={chunk} is no number of samples", hint="--write-option chunk=10000")
    return size


def _targets(path: Path, layout: Layout) -> Iterator[Path]:
    """Yield the files of a log, as many as are asked for."""
    packed = ".zz" if layout.compress else ""
    name = path.name.removesuffix(".zz")
    if not layout.chunk:
        yield path.with_name(f"{name if path.suffix else name + SUFFIX}{packed}")
        return
    prefix = (path.parent if path.suffix else path) / name.removesuffix(SUFFIX)
    number = 0
    while True:
        yield prefix.with_name(f"{prefix.name}_{number:09d}{SUFFIX}{packed}")
        number += 1


class _Out:
    """A log that is being written: takes bytes and counts them."""

    def __init__(self, write: Callable[[bytes], Any]) -> None:
        self._write, self.size = write, 0

    def __call__(self, data: bytes) -> None:
        self.size += len(data)
        self._write(data)


@contextmanager
def _open_one(path: Path, compress: bool) -> Generator[_Out]:
    with files.atomic_write(path) as out:
        if not compress:
            yield _Out(out.write)
            return
        machine = zlib.compressobj()
        yield _Out(lambda data: out.write(machine.compress(data)))
        out.write(machine.flush())


def _write_log(path: Path, streams: Sequence[Stream], layout: Layout) -> Iterator[str]:
    """Write one file; yield what a reader of it should know."""
    import msgpack

    packer: Any = msgpack.Packer()
    path.parent.mkdir(parents=True, exist_ok=True)
    with _open_one(path, layout.compress) as out:
        if layout.flatten:
            yield from _write_fields(out, packer, path.parent, streams, layout)
        else:
            out(packer.pack_map_header(2 * len(streams)))
            for stream in streams:
                _write_samples(out, packer, stream, _samples(stream, layout))
                _write_meta(out, packer, stream, layout)
    if layout.compress and out.size > MAX_UNPACKED:
        yield Note(
            f"{path.name} unpacks to {out.size} bytes, of which {MAX_UNPACKED} are read again: "
            "use --write-option chunk=10000"
        )
    for stream in streams:
        if len(stream) > MAX_SAMPLES:
            yield Note(
                f"{stream.name}: only {MAX_SAMPLES} samples of a port in a file are read again: "
                "use --write-option chunk=10000"
            )


def _samples(stream: Stream, layout: Layout) -> Iterator[Any]:
    form = layout.form_of(stream)
    return (sample for piece in pieces_of(stream) for sample in (form.samples(piece) if form else ()))


def _write_samples(out: _Out, packer: Any, stream: Stream, samples: Iterator[Any]) -> None:
    out(packer.pack(stream.name))
    out(packer.pack_array_header(len(stream)))
    for sample in samples:
        out(packer.pack(sample))


def _write_meta(out: _Out, packer: Any, stream: Stream, layout: Layout) -> None:
    form = layout.form_of(stream)
    timed = form is not None and form.timed
    out(packer.pack(f"{stream.name}{META}"))
    out(packer.pack_map_header(2))
    out(packer.pack("type") + packer.pack(form.type_name if form else ""))
    out(packer.pack("timestamps") + packer.pack_array_header(len(stream)))
    for piece in pieces_of(stream):
        logged = piece.log_ns if timed and piece.log_ns is not None else piece.t_ns
        out(b"".join(map(packer.pack, (logged // _US).tolist())))


def _write_fields(
    out: _Out, packer: Any, folder: Path, streams: Sequence[Stream], layout: Layout
) -> Iterator[str]:
    """Write a list per field; a stream whose keys another could be taken for is written as it is."""
    names = {stream.name for stream in streams}
    with tempfile.TemporaryFile(dir=folder) as spool:  # where there is room for the log too
        flat = {s.name: Flattened(_samples(s, layout), packer.pack, spool) for s in streams}
        whole = {s.name for s in streams if _is_ambiguous(s, flat[s.name].paths, names)}
        keys = sum(2 if s.name in whole else 1 + len(flat[s.name].paths) for s in streams)
        out(packer.pack_map_header(keys))
        for stream in streams:
            if stream.name in whole:
                yield Note(f"{stream.name}: its fields have names of ports or with a /: it is not flattened")
                _write_samples(out, packer, stream, _samples(stream, layout))
            else:
                for path in flat[stream.name].paths:
                    out(packer.pack(f"{stream.name}{path}") + packer.pack_array_header(len(stream)))
                    flat[stream.name].write(path, out)
            _write_meta(out, packer, stream, layout)


def _is_ambiguous(stream: Stream, paths: Sequence[str], names: set[str]) -> bool:
    slashed = any("/" in column for column in stream.columns)
    return slashed or any(f"{stream.name}{path}" in names for path in paths if path)


ROWS = 4096
"""Rows of a stream that are made into samples at a time."""


def chunks_of(streams: Sequence[Stream], size: int) -> Iterator[list[Stream]]:
    """Yield all streams again and again, each time with their part of the next `size` samples in time order.

    The samples of a stream stay in the order recorded, whatever their times are; a size of 0 is everything.
    """
    if not size:
        yield list(streams)
        return
    times = [np.maximum.accumulate(stream.t_ns) if len(stream) else stream.t_ns for stream in streams]
    merged = np.concatenate(times)
    rank = np.empty(len(merged), dtype=np.int64)
    rank[np.argsort(merged, kind="stable")] = np.arange(len(merged))
    ranks = np.split(rank, np.cumsum([len(t) for t in times])[:-1])
    for start in range(0, max(len(merged), 1), size):
        ends = [np.searchsorted(each, (start, start + size)) for each in ranks]
        yield [part_of(s, int(a), int(b)) for s, (a, b) in zip(streams, ends, strict=True)]


def part_of(stream: Stream, start: int, end: int) -> Stream:
    """Return the rows [start, end) of a stream, a view."""
    return stream.replace(source=Parsed(stream.table.slice(start, end - start)), seams=())


def pieces_of(stream: Stream) -> Iterator[Stream]:
    """Yield a stream piece by piece, so that not all of its samples are in memory at once."""
    for start in range(0, len(stream), ROWS):
        yield part_of(stream, start, min(start + ROWS, len(stream)))


Pack = Callable[[Any], bytes]
BATCH, BATCH_NUMBERS = 1024, 1_000_000
"""Samples, and numbers in their lists, that are held in memory at a time."""
_COPIED = 1 << 20


def fields_of(sample: Any, path: str = "") -> dict[str, Any]:
    """Return the leaves of a sample by path (`/field/sub`); one that is no map is its own, under ""."""
    if isinstance(sample, dict):
        below = cast("dict[str, Any]", sample)
        return {p: v for key, value in below.items() for p, v in fields_of(value, f"{path}/{key}").items()}
    if isinstance(sample, list) and sample and isinstance(sample[0], dict):
        each = [fields_of(element, path) for element in cast("list[Any]", sample)]
        return {p: [leaves[p] for leaves in each] for p in each[0]}
    return {path: sample}


class Flattened:
    """The fields of one stream's samples, packed and kept in a temporary file until they are written.

    Samples come one by one while fields are written one by one; a file between them keeps memory flat.
    """

    def __init__(self, samples: Iterable[Any], pack: Pack, spool: IO[bytes]) -> None:
        self._spool = spool
        self._batches: list[dict[str, tuple[int, int]]] = []
        for batch in _batches(samples):
            self._batches.append({path: self._keep(map(pack, values)) for path, values in batch.items()})

    def _keep(self, packed: Iterable[bytes]) -> tuple[int, int]:
        """Append to the temporary file; return where that begins and ends."""
        start = self._spool.tell()
        self._spool.writelines(packed)
        return start, self._spool.tell()

    @property
    def paths(self) -> list[str]:
        """The fields, "" for samples that have none, or if there are no samples."""
        return _lowest(path for batch in self._batches for path in batch) or [""]

    def write(self, path: str, out: Callable[[bytes], Any]) -> None:
        """Write the values of a field, without the header of their list."""
        for batch in self._batches:
            # A batch in which a list of maps is always empty has it under its own path: `[]`, as often.
            known = next(p for p in (path, *_above(path)) if p in batch)
            start, end = batch[known]
            self._spool.seek(start)
            while start < end:
                piece = self._spool.read(min(_COPIED, end - start))
                out(piece)
                start += len(piece)


def _above(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path


def _batches(samples: Iterable[Any]) -> Iterator[Mapping[str, list[Any]]]:
    """Yield the fields of some samples at a time, a value per sample."""
    batch: list[dict[str, Any]] = []
    numbers = 0
    for sample in samples:
        batch.append(fields_of(sample))
        numbers += sum(len(value) for value in batch[-1].values() if isinstance(value, list))
        if len(batch) == BATCH or numbers > BATCH_NUMBERS:
            yield _columns(batch)
            batch, numbers = [], 0
    if batch:
        yield _columns(batch)


def _columns(batch: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return a list per field; where a list of maps is empty, so are the lists of all its fields."""
    paths = _lowest(path for leaves in batch for path in leaves)
    return {path: [leaves.get(path, []) for leaves in batch] for path in paths}


def _lowest(paths: Iterable[str]) -> list[str]:
    """Return paths without those that are above others: a list counts by what it holds where it holds any."""
    found = list(dict.fromkeys(paths))
    above = {each for path in found for each in _above(path)}
    return [path for path in found if path not in above]
