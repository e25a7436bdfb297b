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
from transect.formats.shared.rows import Lost
from transect.recording import Loss, Parsed, Source, Stream, arrow, source_of
from transect.types import Pose

from ..rock.columns import AT, LOG, VALUE, Columns
from ..rock.samples import Form, form_of
from ..rock.times import LOST
from .cursor import Broken, Cursor, Cut, end_of, octets_of
from .file import MAX_SAMPLES, Entry, Meta, Port

BITSTREAM = "asn1_bitstream"
SUFFIXES = (".asn", ".asn1")
_UPER = 0
"""CDFF's `serialization_method` for unaligned packed encoding rules."""


@dataclass(frozen=True)
class Definitions:
    """Compiled ASN.1 definitions, and a key that changes with their text."""

    compiled: Any = None
    key: str = ""

    def knows(self, type_name: str) -> bool:
        """Tell whether a type (`asn1SccPose`, `Pose`) is defined."""
        return self.compiled is not None and _asn1_name(type_name) in self.compiled.types

    def decode(self, type_name: str, data: bytes) -> Any:
        """Decode one value; raise Broken if it is not of the type."""
        import asn1tools

        try:
            return self.compiled.decode(_asn1_name(type_name), data)
        except (asn1tools.Error, ValueError, IndexError, KeyError, OverflowError, UnicodeError) as error:
            raise Broken(f"it is no {type_name} ({error})") from error


def _asn1_name(type_name: str) -> str:
    return type_name.removeprefix("asn1Scc").replace("_", "-")


def definitions_of(source: Source, path: str | None) -> Definitions:
    """Compile the ASN.1 files that lie beside a log, or that of a path."""
    files = [name for name in source.names if name.lower().endswith(SUFFIXES)]
    if path is not None:
        text = _text(source, Path(path))
    elif files:
        text = "\n".join(source.text(name) for name in files)
    else:
        return Definitions()
    try:
        import asn1tools
    except ModuleNotFoundError:
        raise MissingExtraError("asn1tools", "cdff") from None
    try:
        compiled = asn1tools.compile_string(text, "uper")
    except asn1tools.Error as error:
        where = path or ", ".join(files)
        raise ParseError("the ASN.1 definitions cannot be read", where=where, why=str(error)) from error
    return Definitions(compiled, hashlib.sha256(text.encode()).hexdigest()[:16])


def _text(source: Source, path: Path) -> str:
    try:
        return source.beside(path).document(path.name).decode("utf-8")
    except (OSError, UnicodeDecodeError, TransectError) as error:
        raise UsageError("the ASN.1 definitions cannot be opened", where=str(path), why=str(error)) from error


def decoder(view: Content, definitions: Definitions) -> Callable[[Any], Any]:
    """Return what makes a plain sample of a bit stream whose bytes are still in the log."""

    def decode(sample: Any) -> Any:
        place, name = sample.get("data"), str(sample.get("type", ""))
        if not isinstance(place, dict):
            raise Broken("a bit stream without data")
        data = octets_of(view[place["at"] : place["at"] + place["size"]]).tobytes()
        if sample.get("serialization_method") == _UPER and definitions.knows(name):
            return definitions.decode(name, data)
        return {**sample, "data": data}

    return decode


_TYPE = "Pose"


def bitstream_form(definitions: str | Path) -> Form:
    """Return how a stream of poses is written where its ASN.1 definition is known.

    Parameters
    ----------
    definitions : path
        A file, or a folder of files, with a type `Pose` of `pos` and `orient`.
    """
    known = definitions_of(source_of(definitions), None)
    if not known.knows(_TYPE):
        raise UnsupportedError(f"no type {_TYPE} is defined", where=str(definitions))

    def samples(stream: Stream) -> Iterator[dict[str, Any]]:
        plain = form_of(stream)
        for sample in plain.samples(stream) if plain else ():
            data = _encode(known.compiled, sample, stream.name)
            yield {"serialization_method": 0, "type": f"asn1Scc{_TYPE}", "data": list(data)}

    return Form(BITSTREAM, samples, frozenset(Pose.units()), timed=False)


def _encode(compiled: Any, sample: dict[str, Any], name: str) -> bytes:
    import asn1tools

    try:
        return bytes(compiled.encode(_TYPE, sample))
    except asn1tools.Error as error:
        raise UnsupportedError(
            f"the poses of {name} do not fit the ASN.1 definition", why=str(error)
        ) from error


_BATCH, _BATCH_BYTES = 1024, 1 << 20
_LEAST = 4
"""Bytes of a map with one named number."""
_LAZY: dict[str, tuple[str, ...]] = {
    "Frame": ("data.data", "image"),
    "FramePair": ("left.data.data", "right.data.data"),
    "Pointcloud": ("data.points", "data.colors", "data.intensity", "points", "colors"),
    "asn1_bitstream": ("data",),
}
"""Long lists by the type that has them: their place is kept, not their numbers."""
Take = Callable[[Cursor], Any]
Prepare = Callable[[Any], Any]


def lazy_of(type_name: str) -> tuple[str, ...]:
    """Return the paths of the long lists in samples of a type."""
    short = type_name.rsplit("/", 1)[-1].removesuffix("_m").removeprefix("asn1Scc")
    return _LAZY.get(short, ())


@dataclass
class _Gathered:
    """Samples that fitted: their numbers in the log, their places, and columns; and what did not fit."""

    columns: Columns = field(default_factory=Columns)
    numbers: array[int] = field(default_factory=lambda: array("q"))
    places: array[int] = field(default_factory=lambda: array("q"))
    lost: Lost = field(default_factory=Lost)

    def add(self, batch: Sequence[tuple[int, int, Any]]) -> None:
        """Add (number, place, sample)."""
        fits = self.columns.add([sample for _, _, sample in batch])
        for (number, place, _), good in zip(batch, fits.tolist(), strict=True):
            if good:
                self.numbers.append(number)
                self.places.append(place)
            else:
                self.lost.add("a sample has other fields than the others of its port, or none", place)


def _gather(view: Content, entry: Entry, most: int, take: Take) -> _Gathered:
    found = _Gathered()
    batch: list[tuple[int, int, Any]] = []
    size = 0
    for number, place, sample, end in _samples(view, entry, most, take, found):
        batch.append((number, place, sample))
        size += end - place
        if len(batch) >= _BATCH or size > _BATCH_BYTES:
            found.add(batch)
            batch, size = [], 0
    found.add(batch)
    return found


def _samples(
    view: Content, entry: Entry, most: int, take: Take, found: _Gathered
) -> Iterator[tuple[int, int, Any, int]]:
    """Iterate over number, place, sample and its end; what cannot be read is counted as lost."""
    cursor, place = Cursor(view, entry.start), entry.start
    try:
        count = cursor.list_length()
    except (Cut, Broken):
        found.lost.add("this is no list of samples", place)
        return
    if _hollow(view, cursor.at, entry.end, count):
        found.lost.add(f"{count} samples in {entry.end - cursor.at} bytes can have no fields", place, count)
        return
    for number in range(min(count, most)):
        place = cursor.at
        try:
            sample = take(cursor)
        except (Cut, Broken) as error:
            cursor = _after(view, place)
            if cursor is None:
                reason = "the file is cut off" if isinstance(error, Cut) else f"it cannot be read on: {error}"
                found.lost.add(f"{reason}; {number} of {count} samples are whole", place, count - number)
                return
            found.lost.add(f"a sample cannot be read: {error}", place)
            continue
        yield number, place, sample, cursor.at
    if count > MAX_SAMPLES == most:
        found.lost.add(f"more than {MAX_SAMPLES} samples of a port", cursor.at, count - most)


def _hollow(view: Content, at: int, end: int, count: int) -> bool:
    """Tell whether samples are maps, but have too few bytes each to hold anything."""
    is_map = at < end and (0x80 <= view[at] <= 0x8F or view[at] in (0xDE, 0xDF))
    return is_map and count > _BATCH and (end - at) < _LEAST * count


def _after(view: Content, place: int) -> Cursor | None:
    try:
        return Cursor(view, end_of(view, place))
    except (Cut, Broken):
        return None


def _place(cursor: Cursor) -> dict[str, int]:
    """Pass a long list; return where it is."""
    at = cursor.at
    cursor.skip()
    return {"at": at, "size": cursor.at - at}


def _walk(cursor: Cursor, lazy: Sequence[str], path: str = "") -> dict[str, Any]:
    """Build a map, but for the lists whose paths are `lazy`."""
    result: dict[str, Any] = {}
    for _ in range(cursor.map_length()):
        key = str(cursor.value())
        here = f"{path}.{key}" if path else key
        if here in lazy:
            result[key] = _place(cursor)
        elif any(name.startswith(f"{here}.") for name in lazy):
            result[key] = _walk(cursor, lazy, here)
        else:
            result[key] = cursor.value()
    return result


def flat_of(
    view: Content,
    file: str,
    port: Port,
    meta: Meta,
    most: int = MAX_SAMPLES,
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
        Where the samples are, and their type and times.
    prepare : callable, optional
        What to make of each sample first.
    """
    lazy = lazy_of(meta.type)
    if port.data is not None:
        parts = {"": _gather(view, port.data, most, _taker(lazy, prepare))}
    else:
        parts = {
            path: _gather(view, entry, most, _place if path in lazy else Cursor.value)
            for path, entry in port.fields.items()
        }
    losses = [loss for found in parts.values() for loss in found.lost.losses(file, "byte")]
    numbers = reduce(np.intersect1d, [_ints(found.numbers) for found in parts.values()])
    ticks = meta.ticks
    if ticks is not None:
        losses += _report_unpaired(numbers, ticks, file) if most == MAX_SAMPLES and not losses else []
        ticks = np.append(ticks, np.full(max(0, int(numbers[-1:].sum()) + 1 - len(ticks)), LOST))
    columns: dict[str, Any] = {}
    for path, found in parts.items():
        columns |= _columns(path, found, numbers)
    if ticks is not None:
        columns[LOG] = arrow.from_numpy(ticks[numbers])
    return Parsed(pa.table(columns), tuple(losses))


def _taker(lazy: Sequence[str], prepare: Prepare | None) -> Take:
    take: Take = partial(_walk, lazy=lazy) if lazy else Cursor.value
    return take if prepare is None else lambda cursor: prepare(take(cursor))


def _report_unpaired(numbers: Ints, ticks: Ints, file: str) -> list[Loss]:
    """Report samples without a time, or times without a sample."""
    there = int(numbers[-1]) + 1 if len(numbers) else 0
    if there == len(ticks):
        return []
    reason = f"the log lists {len(ticks)} times for {there} samples"
    return [Loss(file, reason, count=abs(there - len(ticks)))]


def _columns(path: str, found: _Gathered, numbers: Ints) -> dict[str, Any]:
    """Return the columns of the samples of some numbers, under the path of their field."""
    columns: dict[str, Any] = {AT: arrow.from_numpy(_ints(found.places))}
    for name, column in found.columns.arrays().items():
        columns[f"{path}.{name}" if path and name != VALUE else path or name] = column
    if len(numbers) == len(found.numbers):
        return columns
    kept = pa.table(columns).filter(arrow.from_numpy(np.isin(_ints(found.numbers), numbers)))
    return {name: kept.column(name) for name in kept.column_names}


def _ints(values: array[int]) -> Ints:
    return np.frombuffer(values, dtype=np.int64) if len(values) else np.zeros(0, np.int64)
