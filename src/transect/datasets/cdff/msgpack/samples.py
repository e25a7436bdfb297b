"""The samples of a port in a CDFF MessagePack log, as flat columns."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Ints
from transect.base.file_bytes import Content
from transect.errors import MissingExtraError, ParseError, TransectError, UnsupportedError, UsageError
from transect.formats.shared.rows import LossCounter
from transect.recording import Loss, Parsed, Source, Stream, arrow, source_of
from transect.types import Pose

from ..rock.columns import BYTE_OFFSET, LOG_TIME, VALUE, SampleColumns
from ..rock.samples import SampleFormat, sample_format
from ..rock.times import LOST_TICK
from .cursor import InvalidValue, MessagePackCursor, TruncatedValue, decode_octets, find_end
from .file import LIMITS, MapEntry, PortEntries, PortMeta

BITSTREAM = "asn1_bitstream"
SUFFIXES = (".asn", ".asn1")
_UPER_METHOD = 0
"""CDFF's `serialization_method` for unaligned packed encoding rules."""


@dataclass(frozen=True)
class Asn1Definitions:
    """Compiled ASN.1 definitions, and a key that changes with their text."""

    compiled: Any = None
    key: str = ""

    def defines(self, type_name: str) -> bool:
        """Whether a type (`asn1SccPose`, `Pose`) is defined."""
        return self.compiled is not None and _asn1_name(type_name) in self.compiled.types

    def decode(self, type_name: str, data: bytes) -> Any:
        """Decode one value; raise InvalidValue if it is not of the type."""
        import asn1tools

        try:
            return self.compiled.decode(_asn1_name(type_name), data)
        except (asn1tools.Error, ValueError, IndexError, KeyError, OverflowError, UnicodeError) as error:
            raise InvalidValue(f"it is no {type_name} ({error})") from error


def _asn1_name(type_name: str) -> str:
    return type_name.removeprefix("asn1Scc").replace("_", "-")


def compile_definitions(source: Source, path: str | None) -> Asn1Definitions:
    """Compile the ASN.1 files beside a log, or that of a path."""
    files = [name for name in source.names if name.lower().endswith(SUFFIXES)]
    if path is not None:
        text = _text(source, Path(path))
    elif files:
        text = "\n".join(source.text(name) for name in files)
    else:
        return Asn1Definitions()
    try:
        import asn1tools
    except ModuleNotFoundError:
        raise MissingExtraError("asn1tools", "cdff") from None
    try:
        compiled = asn1tools.compile_string(text, "uper")
    except asn1tools.Error as error:
        where = path or ", ".join(files)
        raise ParseError("the ASN.1 definitions cannot be read", where=where, why=str(error)) from error
    return Asn1Definitions(compiled, hashlib.sha256(text.encode()).hexdigest()[:16])


def _text(source: Source, path: Path) -> str:
    try:
        return source.beside(path).document(path.name).decode("utf-8")
    except (OSError, UnicodeDecodeError, TransectError) as error:
        raise UsageError("the ASN.1 definitions cannot be opened", where=str(path), why=str(error)) from error


def decoder(view: Content, definitions: Asn1Definitions) -> Callable[[Any], Any]:
    """Return a function that decodes the bit stream of a sample, whose bytes are in the log."""

    def decode(sample: Any) -> Any:
        location, name = sample.get("data"), str(sample.get("type", ""))
        if not isinstance(location, dict):
            raise InvalidValue("a bit stream without data")
        data = decode_octets(view[location["at"] : location["at"] + location["size"]]).tobytes()
        if sample.get("serialization_method") == _UPER_METHOD and definitions.defines(name):
            return definitions.decode(name, data)
        return {**sample, "data": data}

    return decode


_TYPE = "Pose"


def bitstream_form(definitions: str | Path) -> SampleFormat:
    """Return the bit stream format of poses by their ASN.1 definition.

    Parameters
    ----------
    definitions : path
        A file, or a folder of files, with a type `Pose` of `pos` and `orient`.
    """
    compiled = compile_definitions(source_of(definitions), None)
    if not compiled.defines(_TYPE):
        raise UnsupportedError(f"no type {_TYPE} is defined", where=str(definitions))

    def samples(stream: Stream) -> Iterator[dict[str, Any]]:
        plain = sample_format(stream)
        for sample in plain.samples(stream) if plain else ():
            data = _encode(compiled.compiled, sample, stream.name)
            yield {"serialization_method": 0, "type": f"asn1Scc{_TYPE}", "data": list(data)}

    return SampleFormat(BITSTREAM, samples, frozenset(Pose.units()), timed=False)


def _encode(compiled: Any, sample: dict[str, Any], name: str) -> bytes:
    import asn1tools

    try:
        return bytes(compiled.encode(_TYPE, sample))
    except asn1tools.Error as error:
        raise UnsupportedError(
            f"the poses of {name} do not fit the ASN.1 definition", why=str(error)
        ) from error


@dataclass(frozen=True)
class SampleBatches:
    """Batches of samples that are converted to columns."""

    samples: int = 1024
    bytes: int = 1 << 20
    min_sample_bytes: int = 4  # of a map with one named number


BATCHES = SampleBatches()
_LAZY: dict[str, tuple[str, ...]] = {
    "Frame": ("data.data", "image"),
    "FramePair": ("left.data.data", "right.data.data"),
    "Pointcloud": ("data.points", "data.colors", "data.intensity", "points", "colors"),
    "asn1_bitstream": ("data",),
}
"""Long lists by type: only their byte ranges are stored, not their numbers."""
ReadSample = Callable[[MessagePackCursor], Any]
Prepare = Callable[[Any], Any]


def lazy_paths(type_name: str) -> tuple[str, ...]:
    """Return the paths of the long lists in samples of a type."""
    short = type_name.rsplit("/", 1)[-1].removesuffix("_m").removeprefix("asn1Scc")
    return _LAZY.get(short, ())


@dataclass
class _GatheredSamples:
    """Samples with equal fields: their indices in the log, byte offsets and columns; and the lost ones."""

    columns: SampleColumns = field(default_factory=SampleColumns)
    numbers: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("q"))
    lost: LossCounter = field(default_factory=LossCounter)

    def add(self, batch: Sequence[tuple[int, int, Any]]) -> None:
        """Add (index, byte offset, sample)."""
        fits = self.columns.add([sample for _, _, sample in batch])
        for (number, offset, _), good in zip(batch, fits.tolist(), strict=True):
            if good:
                self.numbers.append(number)
                self.offsets.append(offset)
            else:
                self.lost.add("a sample has other fields than the others of its port, or none", offset)


def _gather(view: Content, entry: MapEntry, most: int, read_sample: ReadSample) -> _GatheredSamples:
    found = _GatheredSamples()
    batch: list[tuple[int, int, Any]] = []
    size = 0
    for number, offset, sample, end in _samples(view, entry, most, read_sample, found):
        batch.append((number, offset, sample))
        size += end - offset
        if len(batch) >= BATCHES.samples or size > BATCHES.bytes:
            found.add(batch)
            batch, size = [], 0
    found.add(batch)
    return found


def _samples(
    view: Content, entry: MapEntry, most: int, read_sample: ReadSample, found: _GatheredSamples
) -> Iterator[tuple[int, int, Any, int]]:
    """Iterate over index, offset, sample and end; unreadable samples are counted as lost."""
    cursor, offset = MessagePackCursor(view, entry.start), entry.start
    try:
        count = cursor.list_length()
    except (TruncatedValue, InvalidValue):
        found.lost.add("this is no list of samples", offset)
        return
    if _is_too_small(view, cursor.at, entry.end, count):
        found.lost.add(f"{count} samples in {entry.end - cursor.at} bytes can have no fields", offset, count)
        return
    for number in range(min(count, most)):
        offset = cursor.at
        try:
            sample = read_sample(cursor)
        except (TruncatedValue, InvalidValue) as error:
            cursor = _after(view, offset)
            if cursor is None:
                reason = (
                    "the file is cut off"
                    if isinstance(error, TruncatedValue)
                    else f"it cannot be read on: {error}"
                )
                found.lost.add(f"{reason}; {number} of {count} samples are whole", offset, count - number)
                return
            found.lost.add(f"a sample cannot be read: {error}", offset)
            continue
        yield number, offset, sample, cursor.at
    if count > LIMITS.samples == most:
        found.lost.add(f"more than {LIMITS.samples} samples of a port", cursor.at, count - most)


def _is_too_small(view: Content, at: int, end: int, count: int) -> bool:
    """Whether samples are maps with too few bytes for any field."""
    is_map = at < end and (0x80 <= view[at] <= 0x8F or view[at] in (0xDE, 0xDF))
    return is_map and count > BATCHES.samples and (end - at) < BATCHES.min_sample_bytes * count


def _after(view: Content, offset: int) -> MessagePackCursor | None:
    try:
        return MessagePackCursor(view, find_end(view, offset))
    except (TruncatedValue, InvalidValue):
        return None


def _skip_list(cursor: MessagePackCursor) -> dict[str, int]:
    """Skip a long list and return its byte range."""
    at = cursor.at
    cursor.skip()
    return {"at": at, "size": cursor.at - at}


def _walk(cursor: MessagePackCursor, lazy: Sequence[str], path: str = "") -> dict[str, Any]:
    """Build a map without the lists whose paths are `lazy`."""
    result: dict[str, Any] = {}
    for _ in range(cursor.map_length()):
        key = str(cursor.value())
        here = f"{path}.{key}" if path else key
        if here in lazy:
            result[key] = _skip_list(cursor)
        elif any(name.startswith(f"{here}.") for name in lazy):
            result[key] = _walk(cursor, lazy, here)
        else:
            result[key] = cursor.value()
    return result


def read_columns(
    view: Content,
    file: str,
    port: PortEntries,
    meta: PortMeta,
    most: int = LIMITS.samples,
    prepare: Prepare | None = None,
) -> Parsed:
    """Return the flat columns of a port's samples, at most `most` of them.

    Parameters
    ----------
    view : memoryview
        The log.
    file : str
        For losses.
    port, meta
        Entries of the samples, and their type and times.
    prepare : callable, optional
        Conversion of each sample before that.
    """
    lazy = lazy_paths(meta.type)
    if port.data is not None:
        parts = {"": _gather(view, port.data, most, _sample_reader(lazy, prepare))}
    else:
        parts = {
            path: _gather(view, entry, most, _skip_list if path in lazy else MessagePackCursor.value)
            for path, entry in port.fields.items()
        }
    losses = [loss for found in parts.values() for loss in found.lost.losses(file, "byte")]
    numbers = reduce(np.intersect1d, [_ints(found.numbers) for found in parts.values()])
    ticks = meta.ticks
    if ticks is not None:
        losses += _report_unpaired(numbers, ticks, file) if most == LIMITS.samples and not losses else []
        ticks = np.append(ticks, np.full(max(0, int(numbers[-1:].sum()) + 1 - len(ticks)), LOST_TICK))
    columns: dict[str, Any] = {}
    for path, found in parts.items():
        columns |= _columns(path, found, numbers)
    if ticks is not None:
        columns[LOG_TIME] = arrow.from_numpy(ticks[numbers])
    return Parsed(pa.table(columns), tuple(losses))


def _sample_reader(lazy: Sequence[str], prepare: Prepare | None) -> ReadSample:
    read_sample: ReadSample = partial(_walk, lazy=lazy) if lazy else MessagePackCursor.value
    return read_sample if prepare is None else lambda cursor: prepare(read_sample(cursor))


def _report_unpaired(numbers: Ints, ticks: Ints, file: str) -> list[Loss]:
    """Report samples without a time, or times without a sample."""
    count = int(numbers[-1]) + 1 if len(numbers) else 0
    if count == len(ticks):
        return []
    reason = f"the log lists {len(ticks)} times for {count} samples"
    return [Loss(file, reason, count=abs(count - len(ticks)))]


def _columns(path: str, found: _GatheredSamples, numbers: Ints) -> dict[str, Any]:
    """Return the columns of the samples of some indices, under the path of their field."""
    columns: dict[str, Any] = {BYTE_OFFSET: arrow.from_numpy(_ints(found.offsets))}
    for name, column in found.columns.arrays().items():
        columns[f"{path}.{name}" if path and name != VALUE else path or name] = column
    if len(numbers) == len(found.numbers):
        return columns
    kept = pa.table(columns).filter(arrow.from_numpy(np.isin(_ints(found.numbers), numbers)))
    return {name: kept.column(name) for name in kept.column_names}


def _ints(values: array[int]) -> Ints:
    return np.frombuffer(values, dtype=np.int64) if len(values) else np.zeros(0, np.int64)
