"""Reading PDS4 products: labels, and what they describe as streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.clocks import in_64_bits, ns_from_iso
from transect.base.files import file_paths
from transect.errors import ParseError, TimeError
from transect.recording import Loss, Parsed, Recording, Source, Stream, arrow, cache, source_of
from transect.recording.arrow import PAYLOAD, strings
from transect.recording.source import Buffer
from transect.types import Image, Record

from . import LABELS, NAMESPACE
from .label import TABLES, Bits, DataFile, DataObject, LabelField, ProductLabel, parse_label

INTEGERS = ("ASCII_Integer", "ASCII_NonNegative_Integer")
REALS = ("ASCII_Real",)
BASES = {"ASCII_Numeric_Base2": 2, "ASCII_Numeric_Base8": 8, "ASCII_Numeric_Base16": 16}
NO_TIME_NS = -(1 << 63)
"""Time of a row without a valid date."""
DATES = "ASCII_Date"
"""Types of dates and times begin so."""
BINARY = {
    "SignedByte": "i1", "UnsignedByte": "u1", "SignedMSB2": ">i2", "SignedMSB4": ">i4", "SignedMSB8": ">i8",
    "UnsignedMSB2": ">u2", "UnsignedMSB4": ">u4", "UnsignedMSB8": ">u8", "SignedLSB2": "<i2",
    "SignedLSB4": "<i4", "SignedLSB8": "<i8", "UnsignedLSB2": "<u2", "UnsignedLSB4": "<u4",
    "UnsignedLSB8": "<u8", "IEEE754MSBSingle": ">f4", "IEEE754MSBDouble": ">f8", "IEEE754LSBSingle": "<f4",
    "IEEE754LSBDouble": "<f8", "ComplexMSB8": ">c8", "ComplexMSB16": ">c16", "ComplexLSB8": "<c8",
    "ComplexLSB16": "<c16",
}  # fmt: skip
"""numpy types of binary fields and arrays."""


def read_table(data: Buffer, part: DataObject, file: str) -> Parsed:
    """Return the columns of a table, its rows timed by its first column of dates, else counted."""
    view = memoryview(data)[part.offset :]
    if part.length is not None:
        view = view[: part.length]
    readers = {"Table_Character": _read_fixed, "Table_Binary": _read_fixed}
    columns, losses = readers.get(part.kind, _read_delimited)(view, part, file)
    rows = len(columns[0]) if columns else 0
    if part.records and rows < part.records and not losses:
        why = f"{part.name}: the label says {part.records} records, the file has {rows}"
        losses = [*losses, Loss(file, why, count=part.records - rows)]
    t_ns = _times(part, columns)
    counted = np.arange(rows, dtype=np.int64) if t_ns is None else t_ns
    units = {each.name: each.unit for each in part.fields if each.unit}
    named = {each.name: column for each, column in zip(part.fields, columns, strict=True)}
    table = arrow.table(counted, named, units=units)
    timed = counted != NO_TIME_NS
    if not timed.all():
        first = int(np.argmin(timed)) + 1
        why = f"{part.name}: no date, first in record {first}"
        losses = [*losses, Loss(file, why, count=int(np.count_nonzero(~timed)))]
        table = table.filter(arrow.from_numpy(timed))
    return Parsed(table, tuple(losses))


def has_times(part: DataObject) -> bool:
    """Return whether a table has a column of dates."""
    return any(each.data_type.startswith(DATES) for each in part.fields)


def _times(part: DataObject, columns: list[Any]) -> NDArray[np.int64] | None:
    for each, column in zip(part.fields, columns, strict=True):
        if each.data_type.startswith(DATES):
            texts = column.to_pylist()
            return np.array([_time(text) for text in texts], np.int64)
    return None


def _time(text: str | None) -> int:
    """Return a date as ns, `NO_TIME_NS` if it is missing or invalid."""
    try:
        return in_64_bits(ns_from_iso(_calendar(text))) if text else NO_TIME_NS
    except (TimeError, ValueError, OverflowError):
        return NO_TIME_NS


def _calendar(text: str) -> str:
    """Convert a date with the day of the year (2019-180T...) to one with month and day."""
    date, sign, clock = text.partition("T")
    year, _, day = date.partition("-")
    if len(day) != 3 or not day.isdigit():
        return text
    from datetime import date as calendar
    from datetime import timedelta

    found = calendar(int(year), 1, 1) + timedelta(days=int(day) - 1)
    if found.year != int(year):
        raise ValueError(f"{year} has no day {day}")
    return f"{found}{sign}{clock}"


# Delimited


def _read_delimited(view: memoryview, part: DataObject, file: str) -> tuple[list[Any], list[Loss]]:
    names = [f"f{number}" for number in range(len(part.fields))]
    if not len(view):
        return [_finish(pa.chunked_array([], _arrow_type(each)), each, file, []) for each in part.fields], []
    kinds = {name: _arrow_type(each) for name, each in zip(names, part.fields, strict=True)}
    try:
        table, bad = _read_rows(view, part.delimiter, kinds)
    except pa.ArrowInvalid:  # an invalid number: all as text, then number by number
        try:
            table, bad = _read_rows(view, part.delimiter, dict.fromkeys(names, pa.string()))
        except pa.ArrowInvalid as error:
            what = f"{part.name} cannot be read as a delimited table"
            raise ParseError(what, where=file, why=str(error)) from error
    table = table.slice(0, part.records) if part.records else table
    lost = [Loss(file, f"{part.name}: another number of fields", count=bad)] if bad else []
    chosen = zip(names, part.fields, strict=True)
    return [_finish(table.column(name), each, file, lost) for name, each in chosen], lost


def _read_rows(view: memoryview, delimiter: str, kinds: dict[str, pa.DataType]) -> tuple[pa.Table, int]:
    """Return the rows with the expected number of fields, and the number of others."""
    from pyarrow import csv

    bad: list[Any] = []

    def skip(row: Any) -> str:
        bad.append(row)
        return "skip"

    table = csv.read_csv(
        arrow.reader_of(view),
        csv.ReadOptions(column_names=list(kinds), use_threads=False),
        csv.ParseOptions(delimiter=delimiter, invalid_row_handler=skip, ignore_empty_lines=False),
        csv.ConvertOptions(column_types=kinds, strings_can_be_null=True, null_values=[""]),
    )
    return table, len(bad)


def _arrow_type(each: LabelField) -> pa.DataType:
    if each.data_type in REALS:
        return pa.float64()
    return pa.int64() if each.data_type in INTEGERS else pa.string()


def _finish(column: Any, each: LabelField, file: str, lost: list[Loss]) -> Any:
    """Return a column with its type and NaN for special constants; invalid numbers are losses."""
    pc = _compute()
    if each.data_type not in (*REALS, *INTEGERS):
        trimmed = pc.utf8_trim_whitespace(column)
        return _without_texts(trimmed, each).combine_chunks()
    if pa.types.is_string(column.type):
        column = _parse(column, each, file, lost)
    numbers = pc.cast(column, pa.float64(), safe=False)
    wanted = each.missing or each.scale != 1.0 or each.offset != 0.0 or column.null_count
    if not wanted and pa.types.is_integer(column.type):
        return column.combine_chunks()
    values = np.array(arrow.numbers(pa.table({"x": numbers}), "x"), np.float64)
    return arrow.from_numpy(_scale(_without(values, each), each))


def _compute() -> Any:
    import pyarrow.compute as pc  # its functions are made at run time, and no checker knows them

    return pc


def _parse(column: Any, each: LabelField, file: str, lost: list[Loss]) -> Any:
    """Return texts as numbers, with NaN and a loss for invalid ones."""
    values = [_number(text) for text in column.to_pylist()]
    wrong = [row for row, value in enumerate(values) if value is None]
    if wrong:
        why = f"{each.name}: no number, first in record {wrong[0] + 1}"
        lost.append(Loss(file, why, line=None, count=len(wrong)))
    return arrow.from_numpy(np.array([np.nan if v is None else v for v in values], np.float64))


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text and text.strip() else np.nan
    except ValueError:
        return None


def _without(values: NDArray[np.float64], each: LabelField) -> NDArray[np.float64]:
    """Return numbers with NaN for special constants."""
    for text in each.missing:
        constant = _constant(text)
        if constant is not None:
            values = np.where(values == constant, np.nan, values)
    return values


def _constant(text: str) -> float | None:
    """Return a special constant; binary ones are also spelled `16#FFFBFFFF#` in hexadecimal."""
    try:
        return float(int(text[3:-1], 16)) if text.startswith("16#") else float(text)
    except ValueError:
        return None


def _without_texts(column: Any, each: LabelField) -> Any:
    pc = _compute()
    for text in each.missing:
        same = pc.fill_null(pc.equal(column, text), False)
        column = pc.if_else(same, pa.scalar(None, pa.string()), column)
    return column


def _scale(values: NDArray[Any], each: LabelField) -> NDArray[Any]:
    return values if each.scale == 1.0 and each.offset == 0.0 else values * each.scale + each.offset


# Fixed width


def _read_fixed(view: memoryview, part: DataObject, file: str) -> tuple[list[Any], list[Loss]]:
    size = part.record_length
    if size <= 0:
        raise ParseError(f"{part.name} says no length of its records", where=file)
    rows = min(part.records, len(view) // size)
    if any(each.location < 1 or each.location - 1 + each.length > size for each in part.fields):
        raise ParseError(f"a field of {part.name} lies outside of its records of {size} bytes", where=file)
    records = np.frombuffer(view[: rows * size], np.uint8).reshape(rows, size)
    lost: list[Loss] = []
    columns = [_cut(records, each, file, lost) for each in part.fields]
    return columns, lost


def _cut(records: NDArray[np.uint8], each: LabelField, file: str, lost: list[Loss]) -> Any:
    """Return one column of fixed records."""
    cells = np.ascontiguousarray(records[:, each.location - 1 : each.location - 1 + each.length])
    if each.bits is not None:
        return arrow.from_numpy(_bits(cells, each.bits, each.data_type.startswith("Signed")))
    if each.data_type in BINARY:
        kind = np.dtype(BINARY[each.data_type])
        if kind.itemsize != each.length:
            why = f"{each.data_type} has {kind.itemsize} bytes"
            raise ParseError(f"{each.name} has {each.length} bytes", where=file, why=why)
        return arrow.from_numpy(decode(cells.reshape(-1).view(kind), each))
    texts = _texts(cells)
    return _finish(pa.chunked_array([texts]), each, file, lost)


def decode(stored: NDArray[Any], each: LabelField) -> NDArray[Any]:
    """Return stored numbers in the machine's order, scaled; as float where some are missing."""
    values = stored.astype(stored.dtype.newbyteorder("="))
    if values.dtype.kind == "c":
        values = np.abs(values)
    if each.missing:
        return _scale(_without(values.astype(np.float64), each), each)
    return _scale(values, each)


def _texts(cells: NDArray[np.uint8]) -> pa.Array:
    """Return (n, k) bytes as n texts; what is no UTF-8 is replaced."""
    count, width = cells.shape
    raw = cells.tobytes()
    each = (raw[row * width : (row + 1) * width] for row in range(count))
    lines = [text.decode("utf-8", "replace").strip(" \t\r\n\0") for text in each]
    return arrow.strings(lines).cast(pa.string())


def _bits(cells: NDArray[np.uint8], bits: Bits, signed: bool) -> NDArray[np.int64]:
    """Return some bits of (n, k) bytes as numbers; bit 1 is the most significant of the first byte."""
    spread = np.unpackbits(cells, axis=1)[:, bits.first - 1 : bits.last].astype(np.int64)
    width = spread.shape[1]
    values = spread @ (1 << np.arange(width - 1, -1, -1, dtype=np.int64))
    return np.where(spread[:, 0] == 1, values - (1 << width), values) if signed and width < 63 else values


PARSER = "pds4/1"
TEXT = "Stream_Text"
_OF_COLLECTIONS = {"Product_Bundle": "/readme", "Product_Collection": "/inventory"}
"""Suffixes of stream names."""


def read(source: Source) -> Recording:
    """Read the products of labels; tables and images are loaded on access."""
    labels: list[tuple[str, ProductLabel]] = []
    losses: list[Loss] = []
    chosen = sorted(source.names)
    if len(chosen) == 1 and source.path.is_file():
        source = source_of(source.path.parent)
    for name in chosen:
        if not name.lower().endswith(LABELS) or NAMESPACE not in source.head(name):
            continue
        try:
            labels.append((name, parse_label(source.document(name), name)))
        except ParseError as error:
            losses.append(Loss(name, error.what if not error.why else f"{error.what}: {error.why}"))
    if not labels and losses:
        raise ParseError("no label can be read", where=losses[0].file, why=losses[0].reason)
    described = [each for name, label in labels for each in _describe(source, name, label, losses)]
    names = file_paths([name for name, *_ in described])
    streams = tuple(
        _stream(source, name, file, part) for name, (_, file, part) in zip(names, described, strict=True)
    )
    first = labels[0][1]
    products = {f"{label.lid}::{label.vid}": label.title for _, label in labels}
    return Recording(
        first.lid.rpartition(":")[2] or source.stem, streams, format="pds4", source=source,
        conditions={**first.context, "products": products}, reader_losses=tuple(losses),
    )  # fmt: skip


def _describe(
    source: Source, name: str, label: ProductLabel, losses: list[Loss]
) -> Iterator[tuple[str, str, DataObject]]:
    """Yield stream name, file and object of everything in a product that can be a stream."""
    folder = PurePosixPath(name).parent
    product = label.lid.rpartition(":")[2] or PurePosixPath(name).stem
    product += _OF_COLLECTIONS.get(label.kind, "")
    for each in label.files:
        path = _find(source, folder, each)
        if path is None:
            losses.append(Loss(name, f"{each.name} is not beside its label"))
            continue
        parts = [part for part in each.parts if part.kind in TABLES or part.kind == TEXT or part.axes]
        alone = len(parts) == 1 and len(label.files) == 1
        for part in parts:
            yield product if alone else f"{product}/{part.name}", path, part


def _find(source: Source, folder: PurePosixPath, file: DataFile) -> str | None:
    path = str(folder / file.name)
    if path in source:
        return path
    return next((name for name in source.names if name.lower() == path.lower()), None)


def _stream(source: Source, name: str, file: str, part: DataObject) -> Stream:
    if part.axes:
        table = partial(_file_row, file)
        return Stream(name, Image, table, clock="index", loader=partial(_load_array, source, part))
    if part.kind == TEXT:
        return Stream(name, Record, partial(_read_text, source, part, file), clock="index")
    key = f"{PARSER}|{hash_of(part)}"
    table = partial(cache.parse, source, file, key, partial(read_table, part=part, file=file), text=False)
    return Stream(name, Record, table, clock="utc" if has_times(part) else "index")


def hash_of(part: DataObject) -> str:
    """Return the part of a label that determines how a table is read, for the cache key."""
    from hashlib import sha256

    return sha256(repr(part).encode()).hexdigest()[:16]


def _file_row(file: str) -> Parsed:
    return Parsed(arrow.table(np.zeros(1, np.int64), {PAYLOAD: strings([file])}))


def _read_text(source: Source, part: DataObject, file: str) -> Parsed:
    end = None if part.length is None else part.offset + part.length
    lines = source.read(file)[part.offset : end].decode("utf-8", "replace").splitlines()
    return Parsed(arrow.table(np.arange(len(lines), dtype=np.int64), {"text": strings(lines)}))


def _load_array(source: Source, part: DataObject, row: Mapping[str, Any]) -> Image:
    """Load an array: lines and samples, and bands last."""
    assert part.element is not None
    file = row[PAYLOAD]
    if part.element.data_type not in BINARY:
        raise ParseError(f"{part.element.data_type} is no type of elements", where=file)
    kind = np.dtype(BINARY[part.element.data_type])
    shape = [axis.elements for axis in part.axes]
    count = int(np.prod(shape, dtype=object))
    data = source.buffer(file)
    if part.offset + count * kind.itemsize > len(data):
        size = " x ".join(map(str, shape))
        why = f"{size} of {part.element.data_type} from byte {part.offset} on in {len(data)} bytes"
        raise ParseError(f"{file} is too short for {part.name}", where=file, why=why)
    stored = np.frombuffer(memoryview(data)[part.offset :], kind, count).reshape(shape)
    values = _bands_last(decode(stored, part.element), part)
    valid = ~np.isnan(values) if part.element.missing and values.dtype.kind == "f" else None
    if valid is not None and valid.ndim == 3:
        valid = valid.all(axis=2)
    mode = "rgb" if values.ndim == 3 and values.shape[2] == 3 and values.dtype == np.uint8 else "gray"
    return Image(values, mode, valid=valid)


def _bands_last(values: Any, part: DataObject) -> Any:
    """Return an array with its bands as the last axis; two axes for one."""
    values = values.reshape(1, -1) if values.ndim == 1 else values
    if values.ndim < 3:
        return values
    names = [axis.name.lower() for axis in part.axes]
    band = names.index("band") if "band" in names else 0
    return np.moveaxis(values, band, -1)
