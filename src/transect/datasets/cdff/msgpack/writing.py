"""Writing CDFF MessagePack logs: single or chunked, sample by sample or flattened, compressed or not.

When flattened, as by pocolog2msgpack's `--flatten`, samples are split into one list per field: a field `sub`
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

from ..rock.samples import SampleFormat, list_lost_content, sample_format
from .file import LIMITS, META
from .samples import bitstream_form

_NS_PER_US = 1000
SUFFIX = ".msg"


@dataclass(frozen=True)
class LogLayout:
    """Options of a log."""

    chunk: int  # samples per file; 0 for one file
    flatten: bool
    compress: bool
    forms: dict[type, SampleFormat]  # formats that differ from the default ones

    def sample_format(self, stream: Stream) -> SampleFormat | None:
        """Return the format of a stream, None if it cannot be written."""
        return self.forms.get(stream.type) or sample_format(stream)


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
    layout = LogLayout(_count(chunk), flatten, compress or path.name.endswith(".zz"), forms)
    notes: list[str] = []
    chosen = [loadable(s, notes) for s in recording.streams if layout.sample_format(s) is not None]
    if not chosen:
        raise UsageError(f"{recording.name} has no stream that can be written")
    for target, streams in zip(_targets(path, layout), iterate_chunks(chosen, layout.chunk), strict=False):
        files.refuse_existing(target, hint="choose a new file with -o")
        notes += _write_log(target, streams, layout)
    return (*dict.fromkeys(notes), *list_lost_content(recording, chosen, both_times=False))


def _count(chunk: int | str) -> int:
    try:
        size = int(chunk)
    except ValueError:
        size = -1
    if size < 0:
        raise UsageError(f"chunk={chunk} is no number of samples", hint="--write-option chunk=10000")
    return size


def _targets(path: Path, layout: LogLayout) -> Iterator[Path]:
    """Yield the file names of a log."""
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


class _CountingWriter:
    """Output of a log that counts its bytes."""

    def __init__(self, write: Callable[[bytes], Any]) -> None:
        self._write, self.size = write, 0

    def __call__(self, data: bytes) -> None:
        self.size += len(data)
        self._write(data)


@contextmanager
def _open_one(path: Path, compress: bool) -> Generator[_CountingWriter]:
    with files.atomic_write(path) as out:
        if not compress:
            yield _CountingWriter(out.write)
            return
        machine = zlib.compressobj()
        yield _CountingWriter(lambda data: out.write(machine.compress(data)))
        out.write(machine.flush())


def _write_log(path: Path, streams: Sequence[Stream], layout: LogLayout) -> Iterator[str]:
    """Write one file; yield notes for its readers."""
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
    if layout.compress and out.size > LIMITS.unpacked_bytes:
        yield Note(
            f"{path.name} unpacks to {out.size} bytes; only {LIMITS.unpacked_bytes} are read again: "
            "use --write-option chunk=10000"
        )
    for stream in streams:
        if len(stream) > LIMITS.samples:
            yield Note(
                f"{stream.name}: only {LIMITS.samples} samples of a port in a file are read again: "
                "use --write-option chunk=10000"
            )


def _samples(stream: Stream, layout: LogLayout) -> Iterator[Any]:
    form = layout.sample_format(stream)
    return (sample for piece in split_stream(stream) for sample in (form.samples(piece) if form else ()))


def _write_samples(out: _CountingWriter, packer: Any, stream: Stream, samples: Iterator[Any]) -> None:
    out(packer.pack(stream.name))
    out(packer.pack_array_header(len(stream)))
    for sample in samples:
        out(packer.pack(sample))


def _write_meta(out: _CountingWriter, packer: Any, stream: Stream, layout: LogLayout) -> None:
    form = layout.sample_format(stream)
    timed = form is not None and form.timed
    out(packer.pack(f"{stream.name}{META}"))
    out(packer.pack_map_header(2))
    out(packer.pack("type") + packer.pack(form.type_name if form else ""))
    out(packer.pack("timestamps") + packer.pack_array_header(len(stream)))
    for piece in split_stream(stream):
        logged = piece.log_ns if timed and piece.log_ns is not None else piece.t_ns
        out(b"".join(map(packer.pack, (logged // _NS_PER_US).tolist())))


def _write_fields(
    out: _CountingWriter, packer: Any, folder: Path, streams: Sequence[Stream], layout: LogLayout
) -> Iterator[str]:
    """Write a list per field; a stream with ambiguous keys is not flattened."""
    names = {stream.name for stream in streams}
    with tempfile.TemporaryFile(dir=folder) as spool:  # on the disk of the log
        flat = {s.name: FlattenedFields(_samples(s, layout), packer.pack, spool) for s in streams}
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


@dataclass(frozen=True)
class WriteBuffers:
    """Sizes of the parts of a stream that are held in memory."""

    rows: int = 4096  # of a stream that are converted to samples at a time
    # samples, and numbers in their lists, of a batch of flattened fields
    samples: int = 1024
    numbers: int = 1_000_000
    copy_bytes: int = 1 << 20  # of the temporary file


BUFFERS = WriteBuffers()


def iterate_chunks(streams: Sequence[Stream], size: int) -> Iterator[list[Stream]]:
    """Yield all streams in chunks of `size` samples in time order; a size of 0 is one chunk.

    The samples of a stream keep their order of recording, even if their times decrease.
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
        yield [slice_stream(s, int(a), int(b)) for s, (a, b) in zip(streams, ends, strict=True)]


def slice_stream(stream: Stream, start: int, end: int) -> Stream:
    """Return the rows [start, end) of a stream, a view."""
    return stream.replace(source=Parsed(stream.table.slice(start, end - start)), seams=())


def split_stream(stream: Stream) -> Iterator[Stream]:
    """Yield a stream in parts, to limit the number of samples in memory."""
    for start in range(0, len(stream), BUFFERS.rows):
        yield slice_stream(stream, start, min(start + BUFFERS.rows, len(stream)))


Pack = Callable[[Any], bytes]


def flatten_sample(sample: Any, path: str = "") -> dict[str, Any]:
    """Return the fields of a sample by path (`/field/sub`); a sample that is not a map has the path ""."""
    if isinstance(sample, dict):
        below = cast("dict[str, Any]", sample)
        return {
            p: v for key, value in below.items() for p, v in flatten_sample(value, f"{path}/{key}").items()
        }
    if isinstance(sample, list) and sample and isinstance(sample[0], dict):
        each = [flatten_sample(element, path) for element in cast("list[Any]", sample)]
        return {p: [leaves[p] for leaves in each] for p in each[0]}
    return {path: sample}


class FlattenedFields:
    """Packed fields of the samples of one stream in a temporary file.

    Samples are read one by one, but written field by field; the temporary file bounds the memory.
    """

    def __init__(self, samples: Iterable[Any], pack: Pack, spool: IO[bytes]) -> None:
        self._spool = spool
        self._batches: list[dict[str, tuple[int, int]]] = []
        for batch in _batches(samples):
            self._batches.append({path: self._keep(map(pack, values)) for path, values in batch.items()})

    def _keep(self, packed: Iterable[bytes]) -> tuple[int, int]:
        """Append to the temporary file; return the byte range."""
        start = self._spool.tell()
        self._spool.writelines(packed)
        return start, self._spool.tell()

    @property
    def paths(self) -> list[str]:
        """The paths of the fields, "" for samples without fields, or without samples."""
        return _leaf_paths(path for batch in self._batches for path in batch) or [""]

    def write(self, path: str, out: Callable[[bytes], Any]) -> None:
        """Write the values of a field, without the header of their list."""
        for batch in self._batches:
            # In a batch in which a list of maps is always empty, it has the path of the list.
            stored = next(p for p in (path, *_parents(path)) if p in batch)
            start, end = batch[stored]
            self._spool.seek(start)
            while start < end:
                block = self._spool.read(min(BUFFERS.copy_bytes, end - start))
                out(block)
                start += len(block)


def _parents(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path


def _batches(samples: Iterable[Any]) -> Iterator[Mapping[str, list[Any]]]:
    """Yield the fields of batches of samples, one value per sample."""
    batch: list[dict[str, Any]] = []
    numbers = 0
    for sample in samples:
        batch.append(flatten_sample(sample))
        numbers += sum(len(value) for value in batch[-1].values() if isinstance(value, list))
        if len(batch) == BUFFERS.samples or numbers > BUFFERS.numbers:
            yield _columns(batch)
            batch, numbers = [], 0
    if batch:
        yield _columns(batch)


def _columns(batch: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return a list per field; all fields of an empty list of maps are empty lists."""
    paths = _leaf_paths(path for leaves in batch for path in leaves)
    return {path: [leaves.get(path, []) for leaves in batch] for path in paths}


def _leaf_paths(paths: Iterable[str]) -> list[str]:
    """Return the paths that are not parents of others."""
    found = list(dict.fromkeys(paths))
    parents = {each for path in found for each in _parents(path)}
    return [path for path in found if path not in parents]
