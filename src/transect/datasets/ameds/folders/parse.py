"""Parser of the CSV files of AMEDS: columns are matched by meaning and converted to SI, bad rows located."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base import clocks
from transect.base.arrays import Floats, Ints
from transect.base.file_bytes import Content
from transect.errors import TimeError
from transect.geometry import rotations
from transect.recording import Loss, Parsed, Stream, arrow
from transect.recording.source import HEAD_BYTES
from transect.recording.text import Csv, CsvLayout, TextPiece, is_number, line_pieces, read_csv
from transect.types import FIX_TYPES, Pose

from ..robot.arms import ATTITUDE
from .columns import BY_STREAM, DEVICE, TIME, CsvFile
from .headers import CsvHead, sniff, unit_from_header, unix_unit
from .plan import ColumnPlan, Spelling, make_plan, plan_of_unknown


def parse(content: Content, file: CsvFile, name: str, spellings: Mapping[str, Spelling]) -> Iterator[Parsed]:
    """Return a documented CSV file as a table in SI units, piece by piece.

    Parameters
    ----------
    content : bytes or FileBytes
        Content of the file.
    file : CsvFile
        Description of the file of Table 7.
    name : str
        Name of the file, for losses.
    spellings : mapping
        User-defined headers of its columns.
    """
    sheet = sniff(bytes(content[:HEAD_BYTES]))
    table = make_table(file, np.zeros(0, np.int64), {})
    if not sheet.width:
        yield Parsed(table, (Loss(name, "the file is empty"),))
        return
    header, losses = _fitting_header(sheet, name)
    plan = make_plan(file, header, sheet.width, spellings)
    if plan.missing:
        losses.append(_report_unmatched(plan, header, sheet, name))
    odd = 0
    for read in _read(content, sheet, plan, name, file.by_name()):
        t_ns, log_ns, rejected = _times(read.table)
        odd += rejected
        table = make_table(file, t_ns, _in_si(read.table, file, plan), log_ns, plan.own_units)
        yield Parsed(table, (*losses, *read.losses), plan.notes)
        losses = []
    if odd:
        note = f"{name}: {odd} device stamps are not within a day of the log times, which are used instead"
        yield Parsed(table.slice(0, 0), (), (note,))


def make_table(
    file: CsvFile,
    t_ns: Ints,
    columns: Mapping[str, Any],
    log_ns: Ints | None = None,
    own_units: Mapping[str, str] | None = None,
) -> pa.Table:
    """Return the table of a documented file.

    Parameters
    ----------
    t_ns, log_ns : (n,) int64 arrays
    columns : mapping of str to (n,) column
        Columns by the names of `CsvFile.columns`, in SI, the fix as its code; others are kept unchanged.
    own_units : mapping of str to str
        Units of the other columns.
    """
    units = {**(own_units or {}), **_units(file)}
    return arrow.table(t_ns, _shape(dict(columns), file, len(t_ns)), units=units, log_ns=log_ns)


def make_stream(name: str, t_ns: Ints, columns: Mapping[str, Any], log_ns: Ints | None = None) -> Stream:
    """Return a stream of Table 7 by its name; a number is a constant column."""
    file = BY_STREAM[name]
    full = {key: np.broadcast_to(value, t_ns.shape).copy() for key, value in columns.items()}
    table = make_table(file, t_ns, full, log_ns)
    return Stream(name, file.type, table, role=file.role, tag=file.tag, frame=file.frame, child=file.child)


def parse_unknown(content: Content, name: str) -> Iterator[Parsed]:
    """Return a CSV file that is not in Table 7: its columns with their names and without conversion."""
    sheet = sniff(bytes(content[:HEAD_BYTES]))
    header, losses = _fitting_header(sheet, name)
    plan = plan_of_unknown(header, sheet.width)
    note = f"{name} is not described in Table 7: its columns are kept unchanged"
    for read in _read(content, sheet, plan, name):
        columns = {n: read.table.column(n) for n in plan.names if n != TIME}
        table = arrow.table(arrow.numbers(read.table, TIME), columns, units=plan.own_units)
        yield Parsed(table, (*losses, *read.losses), (note,))
        losses = []


def _fitting_header(sheet: CsvHead, name: str) -> tuple[list[str] | None, list[Loss]]:
    """Return the header if it has as many columns as the data; else report it."""
    if sheet.header is None or len(sheet.header) == sheet.width:
        return sheet.header, []
    reason = f"the header has {len(sheet.header)} fields, the first row {sheet.width}"
    return None, [Loss(name, reason, line=sheet.skip)]


def _report_unmatched(plan: ColumnPlan, header: list[str] | None, sheet: CsvHead, name: str) -> Loss:
    shown = ", ".join(plan.missing[:4])
    what = f"no column means {shown}" + (
        f" and {len(plan.missing) - 4} more" if len(plan.missing) > 4 else ""
    )
    if header is None:
        what = f"{sheet.width} columns without a header, which differs from Table 7: {what}"
    else:
        what += f"; the header is: {sheet.delimiter.join(header)}"
    return Loss(name, f"{what} (define it in ameds_columns.yaml)", line=1)


def _read(
    content: Content, sheet: CsvHead, plan: ColumnPlan, name: str, documented: Container[str] = ()
) -> Iterator[Csv]:
    """Read the rows, piece by piece; undocumented columns may contain text."""
    first = dict(zip(plan.names, sheet.first, strict=False))
    stamps = [key for key in plan.names if key == TIME or (key == DEVICE and key in documented)]
    times = {key: _unit_ns(plan.units.get(key), first.get(key, "")) for key in stamps}
    free = [key for key in first if key not in documented and key != TIME]
    texts = tuple(key for key in free if first[key] and not is_number(first[key]))
    layout = CsvLayout(plan.names, times, texts, sheet.skip, sheet.delimiter)
    for piece in line_pieces(content, name):
        read = read_csv(piece, layout, name)
        if any(loss.reason.startswith(DEVICE) for loss in read.losses):
            read = _without_device(piece, layout, name)
        yield read


def _unit_ns(unit: str | None, first: str) -> int:
    """Return the unit of a time column, ns, by its header, else by the size of its first value."""
    stated = unit_from_header("s", unit) if unit else None
    return round(stated.scale * clocks.NS) if stated else unix_unit(first) or clocks.NS


def _without_device(piece: TextPiece, layout: CsvLayout, name: str) -> Csv:
    """Read a file in which some device stamps are missing, although the rows are valid."""
    unit = layout.times[DEVICE]
    loose = replace(layout, times={TIME: layout.times[TIME]}, texts=(*layout.texts, DEVICE))
    read = read_csv(piece, loose, name)
    texts = arrow.texts(read.table, DEVICE)
    stamps = np.fromiter((_stamp(text, unit) for text in texts), np.int64)
    garbled = [i for i, t in enumerate(texts) if stamps[i] == 0 and t.strip().lower() not in _NOT_STAMPED]
    at = read.table.column_names.index(DEVICE)
    losses = list(read.losses)
    if garbled:
        line = None if len(losses) > len(piece.losses) else max(piece.before, layout.skip) + 1 + garbled[0]
        losses.append(
            Loss(name, "a device time is invalid; the log time is used", line=line, count=len(garbled))
        )
    return Csv(read.table.set_column(at, DEVICE, arrow.from_numpy(stamps)), tuple(losses))


_NOT_STAMPED = ("", "0", "0.0", "nan", "null", "none")


def _stamp(text: str, unit: int) -> int:
    try:
        value = clocks.ns_from_decimal(text, unit)
    except TimeError:
        return 0
    return value if abs(value) < 2**63 else 0


def _times(table: pa.Table) -> tuple[Ints, Ints | None, int]:
    """Return sample times, log times, and the number of rejected device stamps.

    The sample time is the stamp of the device, if it has one (GnssPose) within a day of the middleware's,
    which is the log time.
    """
    log_ns: Ints = arrow.numbers(table, TIME)
    if DEVICE not in table.column_names:
        return log_ns, None, 0
    device: Ints = arrow.numbers(table, DEVICE)
    is_valid = np.abs(device.astype(np.float64) - log_ns) < 86_400 * clocks.NS
    return np.where(is_valid, device, log_ns), log_ns, int((~is_valid).sum())


def _in_si(table: pa.Table, file: CsvFile, plan: ColumnPlan) -> dict[str, Any]:
    """Return the columns in the order of the file; documented columns are converted to SI."""
    documented = file.by_name()
    result: dict[str, Any] = {}
    for name in table.column_names:
        if name == TIME:
            continue
        values = table.column(name)
        if name in documented and name != DEVICE:
            column = documented[name]
            unit = unit_from_header(column.si, plan.units.get(name, column.unit))
            if unit and not unit.is_si:
                values = unit.to_si(arrow.numbers(table, name))
        result[name] = values
    return result


def _shape(columns: dict[str, Any], file: CsvFile, rows: int) -> dict[str, Any]:
    """Return the columns of the table: lists combined, attitudes also as quaternions, fix types by name."""
    result: dict[str, Any] = {}
    for name, parts in file.lists.items():
        if any(part in columns for part in parts):
            result[name] = np.column_stack([_floats(columns.pop(p, None), rows) for p in parts])
    result |= columns
    result |= {name: np.full(rows, np.nan) for name in file.unmeasured if name not in columns}
    if file.type is Pose:
        result |= _quaternion(columns, file, rows)
    if "fix" in result:
        result["fix"] = fix_names(_floats(columns["fix"], rows))
    return dict(_canonical_first(result, file))


def _canonical_first(columns: dict[str, Any], file: CsvFile) -> Iterator[tuple[str, Any]]:
    canonical = [name for name in file.type.units() if name in columns]  # pyright: ignore[reportAttributeAccessIssue]
    for name in dict.fromkeys([*canonical, *columns]):
        yield name, columns[name]


def _floats(values: Any, rows: int) -> Floats:
    if values is None:
        return np.full(rows, np.nan)
    return values if isinstance(values, np.ndarray) else arrow.numbers(pa.table({"v": values}), "v")


def _quaternion(columns: Mapping[str, Any], file: CsvFile, rows: int) -> dict[str, Floats]:
    """Return the attitude as a quaternion, with angles in the order of eq. 3; a planar pose is level."""
    documented = file.by_name()
    angles = [
        _floats(columns.get(name), rows) if name in documented else np.zeros(rows)
        for name in ("roll", "pitch", "yaw")
    ]
    q = rotations.quaternion_from_euler(ATTITUDE, np.column_stack(angles))
    return {name: q[:, i] for i, name in enumerate(("qx", "qy", "qz", "qw"))}


def fix_names(codes: Floats) -> pa.Array:
    """Return the Spatial Dual's fix codes 0-7 as `FIX_TYPES`; other numbers are kept, NaN is ""."""
    plain = np.isin(codes, np.arange(len(FIX_TYPES)))
    if plain.all():
        return arrow.strings(FIX_TYPES).take(arrow.from_numpy(codes.astype(np.int64)))
    texts = {c: "" if np.isnan(c) else f"{c:.17g}" for c in np.unique(codes[~plain]).tolist()}
    return arrow.strings(
        [FIX_TYPES[int(c)] if p else texts.get(c, "") for c, p in zip(codes.tolist(), plain, strict=True)]
    )


def _units(file: CsvFile) -> dict[str, str]:
    units = {column.name: column.si for column in file.columns}
    lists = {name: units[parts[0]] for name, parts in file.lists.items()}
    canonical: dict[str, str] = file.type.units()  # pyright: ignore[reportAttributeAccessIssue]
    return {**canonical, **units, **lists, DEVICE: "ns"}
