"""SciHi and SciLo tables of the IDA (SIS 5.1.5, 5.1.6), with or without the PDS4 label beside them.

Conversions: currents mA to A, `elapsed_time` hours to seconds, `th_*` are radians although printed as metres,
and -99999.0000 is NaN. Times are SCLK seconds. The label (SIS appendix E) gives columns and layout.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.base.file_bytes import Content
from transect.base.units import unit_of
from transect.base.xml import load_xml
from transect.errors import ParseError
from transect.recording import Loss, Parsed, arrow
from transect.recording.source import HEAD_BYTES, Buffer
from transect.recording.text import Csv, CsvLayout, TextPiece, line_pieces, read_csv, read_twice

from . import columns as known
from .columns import SPARE_BITS, decode_status, names_of_codes, status_word
from .status import NAMED

_FIELD_DELIMITERS = {"comma": ",", "semicolon": ";", "horizontal tab": "\t", "vertical bar": "|"}
_RECORD_DELIMITERS = {"carriage-return line-feed": "\r\n", "line-feed": "\n"}


@dataclass(frozen=True)
class LabelField:
    """One column of a delimited table."""

    # name, data_type, unit, description: as in the label
    name: str
    data_type: str
    unit: str = ""
    description: str = ""
    invalid: tuple[str, ...] = ()  # texts for "no value" (Special_Constants)


@dataclass(frozen=True)
class TableLabel:
    """The delimited table that a label describes."""

    file_name: str  # the data file's name
    fields: tuple[LabelField, ...]
    delimiter: str  # between fields
    line_end: str
    offset: int  # bytes before the first record: the length of the header
    records: int
    properties: Mapping[str, str]  # identifier, title, times, SCLK and sol, by the names of their elements

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(field.name for field in self.fields)


_PROPERTIES = (
    *("logical_identifier", "version_id", "title", "start_date_time", "stop_date_time"),
    *("product_type_name", "spacecraft_clock_start", "spacecraft_clock_stop", "start_sol_number"),
)


def parse_label(content: Buffer, name: str) -> TableLabel:
    """Parse a label; network, DTD and entities are disabled.

    Raises
    ------
    ParseError
        If it is not well-formed, has a DTD, or describes no delimited table.
    """
    root = load_xml(bytes(content), name)
    table = root.find(".//{*}Table_Delimited")
    if table is None:
        raise ParseError(f"{name} describes no delimited table", where=name, why="it has no Table_Delimited")
    delimiter = _text(table, "field_delimiter").lower()
    line_end = _text(table, "record_delimiter").lower()
    properties = {key: _text(root, key) for key in _PROPERTIES}
    return TableLabel(
        file_name=_text(root, "file_name"),
        fields=tuple(_field(element) for element in table.iterfind(".//{*}Field_Delimited")),
        delimiter=_FIELD_DELIMITERS.get(delimiter, ","),
        line_end=_RECORD_DELIMITERS.get(line_end, "\r\n"),
        offset=_number(table, "offset", name),
        records=_number(table, "records", name),
        properties={key: text for key, text in properties.items() if text},
    )


def _field(element: Any) -> LabelField:
    constants = element.iterfind("{*}Special_Constants/{*}*")
    unit = _text(element, "unit")
    return LabelField(
        name=_text(element, "name"),
        data_type=_text(element, "data_type"),
        unit="" if unit == "none" else unit,
        description=_text(element, "description"),
        invalid=tuple((constant.text or "").strip() for constant in constants),
    )


def _text(element: Any, name: str) -> str:
    found = element.find(f".//{{*}}{name}")
    return "" if found is None else (found.text or "").strip()


def _number(element: Any, name: str, file: str) -> int:
    text = _text(element, name)
    if not text.isdecimal() or len(text) > 18:
        raise ParseError(f"{name} of the table is not a number", where=file, why=f"it is {text!r}")
    return int(text)


PARTS = ("main", "encoders", "potentiometers", "tool", "forces")
_SCALES = {name: unit_of(name).scale for name in ("A", "mA", "hr", "h", "s")}


@dataclass(frozen=True)
class ScienceLayout:
    """Layout of a table: column names with their units, and start of the data."""

    units: Mapping[str, str]  # unit in the file per column, in order
    texts: tuple[str, ...]  # columns that are text
    missing: Mapping[str, tuple[float, ...]]  # values for "not measured", per column
    skip: int
    delimiter: str
    notes: tuple[str, ...] = ()

    @property
    def layout(self) -> CsvLayout:
        """For `read_csv`."""
        return CsvLayout(tuple(self.units), {"time": NS}, self.texts, self.skip, self.delimiter)


def shape_of(buffer: Buffer, file: str, label: TableLabel | None = None) -> ScienceLayout | None:
    """Determine the layout of a table from its label, header, or number of columns; None if unknown.

    The names of the label take precedence if their number matches.
    """
    delimiter = label.delimiter if label else ","
    lines = bytes(buffer[:HEAD_BYTES]).decode("utf-8-sig", "replace").splitlines()
    headers = list(takewhile(lambda line: _is_header(line, delimiter, label), lines))
    headings = headers[-1].split(delimiter) if headers else []
    sample = lines[len(headers)].split(delimiter) if len(lines) > len(headers) else headings
    width = len(headings or sample)
    notes: tuple[str, ...] = ()
    if label and len(label.fields) == width:
        units = {field.name: field.unit for field in label.fields}
    else:
        if label:
            notes = (f"{file}: the label describes {len(label.fields)} columns, the file has {width}",)
        units = _units_of_headings(headings) if headings else _list_documented(width)
    if len(units) != width or "time" not in units:
        return None
    return ScienceLayout(units, _texts(units, label), _missing(units, label), len(headers), delimiter, notes)


def _is_header(line: str, delimiter: str, label: TableLabel | None) -> bool:
    names = {known.plain_name(heading) for heading in line.split(delimiter)}
    return line.startswith("#") or bool(names & {*known.NAMES_58, *(label.names if label else ())})


def _units_of_headings(headings: Sequence[str]) -> dict[str, str]:
    return {known.plain_name(h): h.strip().partition("(")[2].rstrip(')"') for h in headings}


def _list_documented(width: int) -> dict[str, str]:
    names = {57: known.NAMES_57, 58: known.NAMES_58}.get(width, ())
    return {name: known.BY_NAME[name].header_unit for name in names}


def _texts(units: Mapping[str, str], label: TableLabel | None) -> tuple[str, ...]:
    fields = label.fields if label else ()
    said = {field.name for field in fields if "String" in field.data_type} - known.BY_NAME.keys()
    return tuple(name for name in units if name == "stat" or name in said)


def _missing(units: Mapping[str, str], label: TableLabel | None) -> dict[str, tuple[float, ...]]:
    """Return the values for "not measured": the constant of the SIS, and those of the label."""
    said = {field.name: field.invalid for field in label.fields} if label else {}
    numbers = {
        name: [float(text) for text in texts if text.lstrip("+-").replace(".", "", 1).isdecimal()]
        for name, texts in said.items()
    }
    return {name: (known.INVALID_CONSTANT, *numbers.get(name, ())) for name in units}


def parse_science(
    content: Content, file: str, label: TableLabel | None = None
) -> Iterator[dict[str, Parsed]]:
    """Read a SciHi or SciLo table, piece by piece.

    Yields
    ------
    dict of str to Parsed
        `main` (temperatures, currents, voltages, codes), `encoders` and `potentiometers` (of the joints),
        `tool` (pose of the selected tool in the IDA frame) and `forces`. The last piece has no rows and all
        the notes.
    """
    shape = shape_of(_ascii(content[:HEAD_BYTES]), file, label)
    if shape is None or (shape.skip and b"\n" not in bytes(next(line_pieces(content, file)).data)):
        reason = "the header is cut off" if shape else "neither its header nor its number of columns is known"
        yield {part: Parsed(arrow.empty(), (Loss(file, reason, line=1, count=0),)) for part in PARTS}
        return

    def read(piece: TextPiece) -> Csv:
        return _read_rows(replace(piece, data=_ascii(piece.data)), shape, file)

    def build(rows: Csv, heater: float) -> dict[str, Parsed]:
        values, units = _to_si(rows.table, shape, heater)
        seen.add(values, rows.table.num_rows)
        tables = _split(arrow.numbers(rows.table, "time"), values, units)
        return {part: Parsed(tables[part], rows.losses) for part in PARTS}

    seen = _RowStatistics()
    piece: dict[str, Parsed] = {}
    for piece in read_twice(content, file, read, partial(_heater_scale, shape=shape), build):
        yield piece
    notes = (*shape.notes, *seen.notes(file, shape, label))
    yield {part: Parsed(parsed.table.schema.empty_table(), (), notes) for part, parsed in piece.items()}


def _read_rows(piece: TextPiece, shape: ScienceLayout, file: str) -> Csv:
    csv = read_csv(piece, shape.layout, file)
    table, losses = _filter_codes(csv.table, piece, shape, file)
    return Csv(table, (*csv.losses, *losses))


def _heater_scale(every: Iterable[Csv], shape: ScienceLayout) -> float:
    """Return the scale of the heater current from the largest value in the file."""
    name = "htr_cur"
    if name not in shape.units:
        return 1.0
    columns = (_mask_invalid(arrow.numbers(rows.table, name), shape.missing[name]) for rows in every)
    return known.heater_scale(max(map(_largest, columns)))


def _ascii(text: Buffer) -> bytes:
    """Replace bytes that are not ASCII by question marks, which make numbers invalid."""
    content = bytes(text)
    return content if content.isascii() else content.decode("latin-1").encode("ascii", "replace")


def _filter_codes(
    table: pa.Table, piece: TextPiece, shape: ScienceLayout, file: str
) -> tuple[pa.Table, list[Loss]]:
    """Remove rows with an invalid status word, tool or phase."""
    tests: dict[str, Callable[[str], bool]] = {"stat": lambda text: status_word(text) is not None}
    tests |= dict.fromkeys(known.CODES, _is_code)
    keep = np.ones(table.num_rows, dtype=bool)
    losses: list[Loss] = []
    for name in [name for name in tests if name in shape.units]:
        valid = _is_valid(table, name, tests[name])
        if not valid.all():
            line = _first_line(piece, shape, list(shape.units).index(name), tests[name])
            losses.append(Loss(file, f"{name} is not a code", line=line, count=int((~valid).sum())))
            keep &= valid
    return (table if keep.all() else table.filter(arrow.from_numpy(keep))), losses


def _is_code(text: str) -> bool:
    try:
        return 0 <= float(text) < 256 and float(text).is_integer()
    except ValueError:
        return False


def _is_valid(table: pa.Table, name: str, test: Callable[[str], bool]) -> NDArray[np.bool_]:
    if name == "stat":
        texts = arrow.texts(table, name)
        fits = {text: test(text) for text in set(texts)}
        return np.array([fits[text] for text in texts], dtype=bool)
    codes = np.asarray(arrow.numbers(table, name), dtype=np.float64)
    return (codes >= 0) & (codes < 256) & (codes == np.floor(codes))


def _first_line(
    piece: TextPiece, shape: ScienceLayout, index: int, test: Callable[[str], bool]
) -> int | None:
    for number, line in enumerate(io.BytesIO(piece.data), piece.newlines + 1):
        fields = line.decode("utf-8", "replace").rstrip("\r\n").split(shape.delimiter)
        if number > shape.skip and len(fields) == len(shape.units) and not test(fields[index].strip()):
            return number
    return None


def _to_si(table: pa.Table, shape: ScienceLayout, heater: float) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the columns in SI, codes as integers, and their units; `heater` is a scale."""
    values: dict[str, Any] = {}
    units: dict[str, str] = {}
    for name, unit in shape.units.items():
        column = known.BY_NAME.get(name)
        units[name] = column.unit if column else unit
        if name == "stat":
            words = [status_word(text) or 0 for text in arrow.texts(table, name)]
            values[name] = np.array(words, dtype=np.uint32)
        elif name in known.CODES:
            values[name] = arrow.numbers(table, name).astype(np.int64)
        elif name in shape.texts:
            values[name] = arrow.texts(table, name)
        elif name != "time":
            numbers = _mask_invalid(arrow.numbers(table, name), shape.missing[name])
            values[name] = numbers * (heater if name == "htr_cur" else _scale(name, unit))
    return values, units


def _mask_invalid(values: Floats, missing: tuple[float, ...]) -> Floats:
    """Replace values for "not measured" by NaN."""
    return np.where(np.isin(values, missing), np.nan, values)


def _scale(name: str, unit: str) -> float:
    """Return the SI value of one unit of a column."""
    column = known.BY_NAME.get(name)
    return 1.0 if column is None or column.scale == 1.0 else _SCALES.get(unit, column.scale)


def _largest(numbers: Floats) -> float:
    finite = np.abs(numbers[np.isfinite(numbers)])
    return float(finite.max()) if len(finite) else 0.0


@dataclass
class _RowStatistics:
    """Statistics of the rows for notes: their number and anomalies."""

    rows: int = 0
    spare: int = 0
    codes: dict[str, set[int]] = field(default_factory=dict[str, set[int]])

    def add(self, values: Mapping[str, Any], rows: int) -> None:
        self.rows += rows
        if "stat" in values:
            self.spare += int((values["stat"] & np.uint32(SPARE_BITS) != 0).sum())
        for name in NAMED.keys() & values.keys():
            self.codes.setdefault(name, set()).update(np.unique(values[name]).tolist())

    def notes(self, file: str, shape: ScienceLayout, label: TableLabel | None) -> list[str]:
        notes: list[str] = []
        unknown = [name for name in shape.units if name not in known.BY_NAME]
        if unknown:
            notes.append(f"{file}: columns that the SIS does not know: {', '.join(unknown)}")
        if self.spare:
            notes.append(f"{file}: spare bits 20-31 of the status word are set in {self.spare} rows")
        for name, table in NAMED.items():
            if odd := self.codes.get(name, set()) - set(range(len(table))):
                notes.append(f"{file}: {name} {', '.join(map(str, sorted(odd)))} has no name in the SIS")
        if label and label.records != self.rows:
            notes.append(f"{file}: the label promises {label.records} records, {self.rows} were read")
        return notes


def _split(t_ns: NDArray[np.int64], values: dict[str, Any], units: dict[str, str]) -> dict[str, pa.Table]:
    """Distribute the columns over the streams; every stream has all the times."""

    def part(columns: Mapping[str, Any], units: Mapping[str, str]) -> pa.Table:
        return arrow.table(t_ns, columns, units=units)

    apart = {*known.TOOL_POSE, *known.FORCES, *known.JOINT_COLUMNS}
    main = {name: column for name, column in values.items() if name not in apart}
    tables = {"main": part({**main, **_decode(values)}, units)}
    for name, gathered in known.JOINTS.items():
        tables[name] = part(
            {column: _gather(values, letter, len(t_ns)) for column, letter in gathered.items()},
            {"position": "rad", "velocity": "rad/s", "effort": "N m"},
        )
    tables["tool"] = part({n: values[n] for n in known.TOOL_POSE if n in values}, units)
    tables["forces"] = part({n: values[n] for n in known.FORCES if n in values}, units)
    return tables


def _decode(values: Mapping[str, Any]) -> dict[str, Any]:
    decoded: dict[str, Any] = decode_status(values["stat"]) if "stat" in values else {}
    for name, table in NAMED.items():
        if name in values:
            decoded[f"{name}_name"] = arrow.strings(names_of_codes(values[name], table))
    return decoded


def _gather(values: Mapping[str, Any], letter: str, count: int) -> Floats:
    unknown = np.full(count, np.nan)
    return np.column_stack([values.get(f"{letter}{joint}", unknown) for joint in (1, 2, 3, 4)])
