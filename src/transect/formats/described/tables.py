"""Texts and Parquet files as the tables that a description asks for."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.clocks import NS, in_64_bits, ns_from_decimal, ns_from_iso
from transect.base.file_bytes import Content
from transect.errors import ParseError, TimeError, did_you_mean
from transect.geometry import rotations
from transect.recording import Loss, Parsed, arrow, parquet
from transect.recording.source import HEAD_BYTES, Buffer
from transect.recording.text import (
    NO_STAMP,
    CsvLayout,
    TextPiece,
    Tokens,
    bad_stamp,
    line_pieces,
    read_csv,
    scan,
)

from ..shared.column_names import split_unit
from ..shared.rows import lines_lost
from .columns import sample_of
from .layout import Text, fields_of, layout_of, with_points
from .model import ANGLES, ColumnDescription, Reference, StreamSpec, Time, is_pose, units_of

_UNIT_NS = {"s": NS, "ms": 10**6, "us": 10**3, "ns": 1}
_BOOLS = {"true": True, "1": True, "false": False, "0": False}
_QUATERNION = ("qx", "qy", "qz", "qw")
NUMBER, EXACT, TEXT = "number", "exact", "text"
Needs = dict[int, str]
"""Requested columns of a file and their kinds: NUMBER, EXACT, TEXT, or a time in s, ms, us, ns."""


@dataclass(frozen=True, eq=False)
class Taken:
    """Columns of a file by number: arrays, or lists of str."""

    columns: Mapping[int, Any]
    rows: int
    losses: tuple[Loss, ...]


def read_text(content: Content, spec: StreamSpec, file: str) -> Iterator[Parsed]:
    """Read a text according to a description, in pieces; invalid rows are losses."""
    if not len(content):
        yield Parsed(arrow.empty(), (Loss(file, "it is empty"),))
        return
    head = bytes(content[:HEAD_BYTES])
    text = layout_of(head, spec.delimiter, spec.header, spec.decimal)
    columns = dict(spec.columns) or _all_columns(text, spec, _with_points(head, text))
    needs: Needs = {}
    for reference, kind in _list_wanted(spec, columns):
        number = text.number(reference, file)
        needs[number] = kind if needs.get(number, kind) == kind else TEXT
    take = _take_blank if text.delimiter == " " else _take_delimited
    count, examples = 0, dict[str, str]()
    for piece in line_pieces(content, file):
        lines = replace(piece, data=_with_points(bytes(piece.data), text), losses=())
        rows = _Rows(take(lines, text, needs, file), lines, text, file, examples)
        t_ns, log_ns = rows.times(spec.time), rows.times(spec.log_time)
        values = {name: rows.values(column) for name, column in columns.items()}
        packed = {name: _pack(_where(v, rows.keep), columns[name]) for name, v in values.items()}
        numbered = (count + np.arange(rows.taken.rows)) * NS
        table = arrow.table(
            _where(numbered if t_ns is None else t_ns, rows.keep),
            packed | _complete_pose(packed, spec),
            units=_units(spec, columns),
            log_ns=None if log_ns is None else _where(log_ns, rows.keep),
        )
        yield Parsed(table, (*rows.losses, *piece.losses))
        count += rows.taken.rows


def _with_points(data: bytes, text: Text) -> bytes:
    return with_points(data) if text.decimal == "," else data


def _complete_pose(columns: Mapping[str, Any], spec: StreamSpec) -> dict[str, Any]:
    """Return missing columns of a pose: the quaternion from roll, pitch, yaw; NaN for the height."""
    made: dict[str, Any] = {}
    if not is_pose(units_of(spec.type)):
        return made
    if "yaw" in columns and not set(_QUATERNION) & set(columns):
        level = np.zeros(len(columns["yaw"]))
        angles = np.column_stack([columns.get(name, level) for name in ANGLES])
        made |= dict(zip(_QUATERNION, rotations.quaternion_from_euler("rpy", angles).T, strict=True))
    if {"x", "y"} <= set(columns) and "z" not in columns:
        made["z"] = np.full(len(columns["x"]), np.nan)
    return made


def _all_columns(text: Text, spec: StreamSpec, head: bytes) -> dict[str, ColumnDescription]:
    """Return every column except times, with its own name and unit."""
    times = {r for time in (spec.time, spec.log_time) for r in _references(time)}
    sample = sample_of(head, text)
    found: dict[str, ColumnDescription] = {}
    for number, title in enumerate(text.names):
        name, unit = split_unit(title)
        if not times & {number, name, title}:
            found[name] = ColumnDescription(number, unit, text=sample.is_text(number))
    return found


def _without_missing(numbers: NDArray[Any], column: ColumnDescription) -> NDArray[Any]:
    """Return the numbers of the file, with NaN for those that mean not measured."""
    return np.where(np.isin(numbers, column.missing), np.nan, numbers) if column.missing else numbers


def _references(time: Time | None) -> list[Reference]:
    if time is None:
        return []
    return list(time.columns or []) if time.column is None else [time.column]


def _sources(column: ColumnDescription) -> list[Reference]:
    if column.source is None:
        return []
    return column.source if isinstance(column.source, list) else [column.source]


def _list_wanted(
    spec: StreamSpec, columns: Mapping[str, ColumnDescription]
) -> Iterator[tuple[Reference, str]]:
    for column in columns.values():
        kind = NUMBER if column.type.startswith("float") else EXACT
        kind = TEXT if column.text or column.numbers or column.type == "bool" else kind
        yield from ((reference, kind) for reference in _sources(column))
    for time in (spec.time, spec.log_time):
        if time:
            kind = TEXT if _is_text(time) else time.unit or "s"
            yield from ((reference, kind) for reference in _references(time))


def _is_text(time: Time) -> bool:
    return bool(time.columns or time.format or time.unit == "iso")


def _take_delimited(piece: TextPiece, text: Text, needs: Needs, file: str) -> Taken:
    names = [f"{name} (column {i})" for i, name in enumerate(text.names, 1)]  # a name may stand there twice
    numbers = {names[i] for i, kind in needs.items() if kind == NUMBER}
    times = {names[i]: _UNIT_NS.get(kind, 1) for i, kind in needs.items() if kind not in (NUMBER, TEXT)}
    texts = [n for n in names if n not in numbers and n not in times]
    layout = CsvLayout(names, times, texts, text.skip, text.delimiter)
    found = read_csv(piece, layout, file)
    columns = {
        i: arrow.texts(found.table, names[i]) if kind == TEXT else arrow.numbers(found.table, names[i])
        for i, kind in needs.items()
    }
    return Taken(columns, found.table.num_rows, found.losses)


def _take_blank(piece: TextPiece, text: Text, needs: Needs, file: str) -> Taken:
    tokens = scan(piece.data, before=piece.newlines)
    body = np.flatnonzero(tokens.line > text.skip)
    fits = tokens.counts[body] == len(text.names)
    lines, columns = body[fits], dict[int, Any]()
    good = np.ones(len(lines), dtype=bool)
    for number, kind in needs.items():
        if kind == TEXT:
            columns[number] = [tokens.text(int(token)) for token in tokens.first[lines] + number]
        elif kind == NUMBER:
            columns[number] = tokens.column(number, lines)
            good &= ~tokens.is_word[tokens.first[lines] + number]
        else:
            columns[number] = _stamps(tokens, number, lines, _UNIT_NS.get(kind, 1))
            good &= ~bad_stamp(columns[number])
    losses = [
        *lines_lost(tokens, body[~fits], f"not {len(text.names)} fields", file),
        *lines_lost(tokens, lines[~good], "text where a number or a time should be", file),
    ]
    kept = {number: _where(values, good) for number, values in columns.items()}
    return Taken(kept, int(good.sum()), tuple(losses))


def _stamps(tokens: Tokens, number: int, lines: NDArray[np.int64], unit_ns: int) -> NDArray[np.int64]:
    """Return exact whole numbers; those with an exponent (`1.4037e+18`) are read one by one."""
    values = tokens.stamps(number, lines, unit_ns)
    for row in np.flatnonzero(bad_stamp(values) & ~tokens.is_word[tokens.first[lines] + number]):
        with suppress(TimeError):  # it stays marked, and becomes a loss
            exact = ns_from_decimal(tokens.text(int(tokens.first[lines[row]]) + number), unit_ns)
            values[row] = exact if abs(exact) < 2**63 else values[row]
    return values


def _repeat(column: ColumnDescription, rows: int) -> NDArray[Any]:
    """Return the value of a column that the file does not have, in SI, for each row."""
    return np.full(rows, column.conversion.to_si(np.float64(column.value or 0.0))).astype(column.type)


def _where(values: Any, keep: NDArray[np.bool_]) -> Any:
    if isinstance(values, list):
        return [value for value, kept in zip(values, keep.tolist(), strict=True) if kept]
    return values[keep]


class _Rows:
    """The rows of a piece: makes columns of them, and marks and locates those that do not fit.

    `examples` are the first texts of the file that did not fit, which its losses name.
    """

    def __init__(
        self, taken: Taken, piece: TextPiece, text: Text, file: str, examples: dict[str, str]
    ) -> None:
        self.taken, self.piece, self.text, self.file, self.examples = taken, piece, text, file, examples
        self.keep = np.ones(taken.rows, dtype=bool)
        self.losses = list(taken.losses)

    def raw(self, reference: Reference) -> Any:
        """Return a column as it was taken."""
        return self.taken.columns[self.text.number(reference, self.file)]

    def convert(
        self, column: object, texts: Sequence[str], convert: Callable[[str], Any], what: str, default: Any
    ) -> list[Any]:
        """Convert the texts of a column; rows with invalid ones are marked and get the default."""
        done: list[Any] = []
        bad: list[int] = []
        for row, text in enumerate(texts):
            try:
                done.append(convert(text))
            except (ValueError, OverflowError, KeyError):
                done.append(default)
                bad.append(row)
        if bad:
            self.keep[bad] = False
            reason = f"{self.examples.setdefault(f'{column} {what}', texts[bad[0]])!r} is not {what}"
            self.losses.append(Loss(self.file, reason, line=self.line(bad[0]), count=len(bad)))
        return done

    def line(self, row: int) -> int | None:
        """Return the number of the line that holds the texts of a row."""
        wanted = {n: v[row].strip() for n, v in self.taken.columns.items() if isinstance(v, list)}
        lines = io.TextIOWrapper(io.BytesIO(self.piece.data), "utf-8", "replace")
        for number, line in enumerate(lines, self.piece.before + 1):
            fields = fields_of(line.rstrip("\r\n"), self.text.delimiter) if number > self.text.skip else []
            if len(fields) == len(self.text.names) and all(fields[n] == v for n, v in wanted.items()):
                return number
        return None

    def times(self, time: Time | None) -> NDArray[np.int64] | None:
        """Return the times that a description asks for, in ns."""
        if time is None:
            return None
        parts = [self.raw(reference) for reference in _references(time)]
        if not isinstance(parts[0], list):
            return parts[0]
        joined = [" ".join(row) for row in zip(*parts, strict=True)]
        unit_ns = _UNIT_NS.get(time.unit or "s", NS)
        convert = _moment(time) if _is_text(time) else lambda text: ns_from_decimal(text, unit_ns)
        fitting = self.convert(time, joined, lambda text: in_64_bits(convert(text)), "a time", 0)
        return np.array(fitting, dtype=np.int64)

    def values(self, column: ColumnDescription) -> Any:
        """Return a column in SI, or as text."""
        if column.source is None:
            return _repeat(column, self.taken.rows)
        if isinstance(column.source, list):
            return np.column_stack([self.numbers(reference, column) for reference in column.source])
        if column.text:
            return self.raw(column.source)
        if column.numbers:
            return self.lists(column)
        return self.numbers(column.source, column)

    def numbers(self, reference: Reference, column: ColumnDescription) -> NDArray[Any]:
        raw, unit = self.raw(reference), column.conversion
        if column.type == "bool":
            return np.array(self.convert(reference, raw, _truth, "true or false", False), np.bool_)
        if isinstance(raw, list):
            raw = np.array(self.convert(reference, raw, float, "a number", np.nan))
        values = unit.to_si(_without_missing(raw, column))
        if column.type != "float64" and not column.type.startswith("float"):
            limits = np.iinfo(column.type)
            odd = self.keep & ~((values >= limits.min) & (values <= limits.max))
            if odd.any():
                reason = f"{reference} is not a number that {column.type} holds"
                self.losses.append(Loss(self.file, reason, count=int(odd.sum())))
                self.keep &= ~odd
        with np.errstate(over="ignore"):
            return values.astype(column.type)

    def lists(self, column: ColumnDescription) -> list[NDArray[Any]]:
        unit, size = column.conversion, column.numbers

        def convert(text: str) -> NDArray[Any]:
            values = np.array(text.split(), dtype=column.type)
            if size is not True and len(values) != size:
                raise ValueError(text)
            return unit.to_si(_without_missing(values, column))

        nothing = np.zeros(0, dtype=column.type)  # its row is left out
        reference = _sources(column)[0]
        return self.convert(reference, self.raw(reference), convert, "a list of numbers", nothing)


def _truth(text: str) -> bool:
    return _BOOLS[text.strip().lower()]


def _moment(time: Time) -> Callable[[str], int]:
    """Return what reads a date and time; decimals of the second stay integers."""
    if not time.format:
        return ns_from_iso

    def read(text: str) -> int:
        whole, fraction = _seconds_apart(text.strip(), time.format)
        moment = dt.datetime.strptime(whole, time.format).replace(tzinfo=dt.UTC)
        seconds = (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(seconds=1)
        return seconds * NS + int((fraction + "0" * 9)[:9])

    return read


def _seconds_apart(text: str, form: str) -> tuple[str, str]:
    """Split decimals of the second off, if the format ends with the second."""
    head, dot, fraction = text.rpartition(".")
    if form.endswith(("%S", "%X", "%T")) and dot and fraction.isdigit() and ":" in head:
        return head, fraction
    return text, ""


def _pack(values: Any, column: ColumnDescription) -> Any:
    if column.text:
        return arrow.strings(values)
    if column.numbers:
        if column.numbers is True:
            return arrow.ragged(values) if values else arrow.ragged([np.zeros(0, column.type)])[:0]
        return np.array(values, dtype=column.type).reshape(len(values), int(column.numbers))
    return values


def _units(spec: StreamSpec, columns: Mapping[str, ColumnDescription]) -> dict[str, str]:
    canonical = units_of(spec.type)
    return {name: canonical.get(name) or column.conversion.si for name, column in columns.items()}


def read_parquet(buffer: Buffer, spec: StreamSpec, file: str) -> Parsed:
    """Read a Parquet file according to a description; default units are those of its metadata."""
    table = parquet.read_table(buffer, file)
    times = [r for time in (spec.time, spec.log_time) for r in _references(time)]
    columns = spec.columns or {n: ColumnDescription(n) for n in table.column_names if n not in times}
    units = {n: arrow.unit_of(table.schema.field(n)) for n in table.column_names}
    found: dict[str, Any] = {}
    for name, column in columns.items():
        if column.source is None:
            found[name], units[name] = _repeat(column, table.num_rows), column.conversion.si
            continue
        source = _parquet_column(table, column.source, file)
        unit = column.conversion
        found[name] = table.column(source) if unit.is_si else unit.to_si(arrow.numbers(table, source))
        units[name] = unit.si or units.get(source, "")
    t_ns, log_ns = (_parquet_times(table, time, file) for time in (spec.time, spec.log_time))
    t_ns = np.arange(table.num_rows) * NS if t_ns is None else t_ns
    timed = np.logical_and.reduce([~bad_stamp(times) for times in (t_ns, log_ns) if times is not None])
    read = arrow.table(t_ns, found, units=units, log_ns=log_ns)
    if timed.all():
        return Parsed(read)
    reason = f"no time, or one that does not fit in 64 bits of nanoseconds (row {int(np.argmin(timed)) + 1})"
    loss = Loss(file, reason, count=int((~timed).sum()))
    return Parsed(read.filter(arrow.from_numpy(timed)), (loss,))


def _parquet_column(table: pa.Table, reference: Reference | list[Reference], file: str) -> str:
    if isinstance(reference, int) and 0 <= reference < table.num_columns:
        return str(table.column_names[reference])
    if reference in table.column_names:
        return str(reference)
    raise ParseError(
        f"{file} has no column {reference!r}",
        where=file,
        hint=did_you_mean(str(reference), table.column_names),
    )


def _parquet_times(table: pa.Table, time: Time | None, file: str) -> NDArray[np.int64] | None:
    if time is None:
        return None
    name = _parquet_column(table, _references(time)[0], file)
    column = table.column(name)
    if pa.types.is_timestamp(column.type):
        return _whole_ns(column.cast(pa.int64()), _UNIT_NS[column.type.unit])
    if not pa.types.is_integer(column.type) or _is_text(time):
        raise TimeError(
            f"{name} of {file} is not a time",
            where=file,
            why=f"it is {column.type}",
            hint="whole s, ms, us or ns",
        )
    return _whole_ns(column, _UNIT_NS[time.unit or "s"])


def _whole_ns(column: pa.ChunkedArray, unit_ns: int) -> NDArray[np.int64]:
    """Return whole numbers of a unit as nanoseconds; what is missing or too large is marked."""
    whole, fits = arrow.integers(column)
    largest = (2**63 - 1) // unit_ns
    fits &= whole <= largest
    if whole.dtype.kind == "i":
        fits &= whole >= -largest
    return np.where(fits, np.where(fits, whole, 0).astype(np.int64) * unit_ns, NO_STAMP)
