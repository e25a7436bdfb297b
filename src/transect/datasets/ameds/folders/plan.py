"""Assignment of the columns of a CSV file to the documented ones: by user-defined header, meaning, or order.

A file `ameds_columns.yaml`, in the recording's folder or in `~/.config/transect`, defines unknown headers. It
contains files of Table 7, their columns (see `columns.py`) and the header text; a unit only if it differs
from Table 7:

    GnssPose:
      lat: Breite
      lon: [Länge, Laenge]
      roll: {header: Rollwinkel, unit: deg}
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transect.base.yaml_parts import Lines, YamlPart, parse, refuse
from transect.errors import did_you_mean
from transect.recording import Source
from transect.recording.arrow import LOG_NS, PAYLOAD, T_NS
from transect.types import Pose

from .columns import BY_STEM, TIME, CsvColumn, CsvFile
from .headers import AXIS_OF, ColumnHeader, read_header, unit_from_header

FILE = "ameds_columns.yaml"


@dataclass(frozen=True)
class Spelling:
    """Accepted headers of a column, and its unit if it differs from Table 7."""

    headers: tuple[str, ...]
    unit: str | None = None


Spellings = Mapping[str, Mapping[str, Spelling]]
"""Spellings by file stem and column name."""


def load_spellings(source: Source, given: Mapping[str, Any] | None = None) -> Spellings:
    """Return the user-defined headers: those of the user's file, the recording's folder, and `given`.

    Later ones take precedence.
    """
    layers = [(given or {}, Lines("columns="))]
    if FILE in source:
        layers.insert(0, parse(source.text(FILE), FILE))
    own = _user_file()
    if own.is_file():
        layers.insert(0, parse(source.beside(own).text(own.name), str(own)))
    result: dict[str, dict[str, Spelling]] = {}
    for data, lines in layers:
        for stem, columns in _read(YamlPart(data or {}, (), lines)).items():
            result.setdefault(stem, {}).update(columns)
    return result


def _user_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "transect" / FILE


def _read(whole: YamlPart) -> Spellings:
    """Return the spellings of a document; raise with all unknown files and columns."""
    if not isinstance(whole.data, Mapping):
        whole.wrong("the table of columns is a mapping of files", "GnssPose: {lat: Breite}")
    result: dict[str, dict[str, Spelling]] = {}
    for stem in whole.data if isinstance(whole.data, Mapping) else ():
        part = whole.child(stem)
        if stem not in BY_STEM:
            part.wrong(f"AMEDS has no file {stem!r}", did_you_mean(str(stem), BY_STEM))
        elif not isinstance(part.data, Mapping):
            part.wrong(f"{stem} needs a mapping of its columns to headers")
        else:
            result[stem] = {name: _spelling(stem, name, part.child(name)) for name in part.data}
    refuse(whole.problems, whole.lines.file)
    return result


def _spelling(stem: str, name: str, part: YamlPart) -> Spelling:
    known = {TIME: "s", **{column.name: column.si for column in BY_STEM[stem].columns}}
    entry: Mapping[str, Any] = part.data if isinstance(part.data, Mapping) else {"header": part.data}
    header, unit = entry.get("header", ()), entry.get("unit")
    if name not in known:
        part.wrong(f"{stem} has no column {name!r}", did_you_mean(str(name), known))
    elif unit is not None and unit_from_header(known[name], str(unit)) is None:
        part.wrong(f"{unit!r} is no unit for {stem}'s {name}, which is kept in {known[name]!r}")
    headers = header if isinstance(header, list | tuple) else (header,)
    return Spelling(tuple(str(h) for h in headers), None if unit is None else str(unit))


_QUATERNION = ("qx", "qy", "qz", "qw")
_UNIT_AT_END = re.compile(r"(.*?)\s*\[([^\]]*)\]\s*")


@dataclass(frozen=True)
class ColumnPlan:
    """Names and units of the columns of one file."""

    # name of each column of the file; the header's text for an undocumented column
    names: tuple[str, ...]
    units: Mapping[str, str] = field(default_factory=dict[str, str])  # known units of headers
    own_units: Mapping[str, str] = field(default_factory=dict[str, str])  # units of undocumented columns
    missing: tuple[str, ...] = ()  # documented columns that were not found
    notes: tuple[str, ...] = ()


def make_plan(
    file: CsvFile, header: Sequence[str] | None, width: int, spellings: Mapping[str, Spelling]
) -> ColumnPlan:
    """Return the plan of the columns of a file.

    Parameters
    ----------
    header : sequence of str or None
        Fields of the header, None without one.
    width : int
        Number of columns.
    spellings : mapping of str to Spelling
        User-defined headers of the columns.
    """
    texts = list(header or [""] * width)
    headers = _count_from_one([read_header(text, file.ignored) for text in texts])
    clock = _time_column(headers, spellings)
    found = _by_spelling(file, texts, spellings, clock)
    found = _by_meaning(file, headers, found, clock)
    missing = [c for c in file.columns if not c.group and c not in found.values()]
    by_order = _by_order(file, headers, found) if missing and clock == 0 else {}
    found |= by_order
    claimed = {clock: TIME, **{i: column.name for i, column in found.items()}}
    reserved = {*file.lists, *(_QUATERNION if file.type is Pose else ())}
    names = _name(texts, claimed, reserved)
    units, odd = _units(headers, found, spellings)
    if (unit := _time_unit(headers[clock], spellings)) is not None:
        units[TIME] = unit
    assumed = "all columns" if len(by_order) == width - 1 else ", ".join(names[i] for i in by_order)
    notes = [f"{assumed} assigned by the documented order"] if by_order else []
    return ColumnPlan(
        names=names,
        units=units,
        own_units=_own_units({names[i]: texts[i] for i in range(width) if i not in found}),
        missing=() if by_order else tuple(column.name for column in missing),
        notes=tuple(f"{file.stem}.csv: {text}" for text in (*notes, *odd)),
    )


def plan_of_unknown(header: Sequence[str] | None, width: int) -> ColumnPlan:
    """Return the plan of an undocumented file: time first, the other columns by their headers."""
    texts = list(header or [""] * width)
    names = _name(texts, {0: TIME})
    return ColumnPlan(names, own_units=_own_units(dict(zip(names, texts, strict=True))))


def _own_units(texts: Mapping[str, str]) -> dict[str, str]:
    found = {name: _UNIT_AT_END.fullmatch(text) for name, text in texts.items()}
    return {name: match[2] for name, match in found.items() if match}


def _name(texts: Sequence[str], claimed: Mapping[int, str], reserved: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the name of each column: that of the documented column, else its unique header text."""
    taken = {T_NS, LOG_NS, PAYLOAD, *claimed.values(), *reserved}
    names: list[str] = []
    for index, text in enumerate(texts):
        name = claimed.get(index) or _unique(_own(index, text), taken)
        taken.add(name)
        names.append(name)
    return tuple(names)


def _own(index: int, text: str) -> str:
    """Return the name of an undocumented column: its header without the unit, or its number."""
    match = _UNIT_AT_END.fullmatch(text)
    return re.sub(r"\W+", "_", match[1] if match else text).strip("_") or f"column_{index + 1}"


def _unique(name: str, taken: Container[str]) -> str:
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return name if name not in taken else next(n for n in numbered if n not in taken)


def _count_from_one(headers: list[ColumnHeader]) -> list[ColumnHeader]:
    """Return the headers with joints and wheels counted from 1, although a file may count from 0."""
    if not any("0" in header.meaning for header in headers):
        return headers
    raised = [frozenset(str(int(w) + 1) if w.isdigit() else w for w in header.meaning) for header in headers]
    return [ColumnHeader(h.text, meaning, h.unit) for h, meaning in zip(headers, raised, strict=True)]


def _time_column(headers: Sequence[ColumnHeader], spellings: Mapping[str, Spelling]) -> int:
    """Return the index of the column with the unix time: by its header, else the first one."""
    spelled = {_bare(h) for h in spellings[TIME].headers} if TIME in spellings else set[str]()
    by_spelling = [i for i, h in enumerate(headers) if _bare(h.text) in spelled]
    by_meaning = [i for i, h in enumerate(headers) if h.meaning == frozenset(("time",))]
    return next(iter(by_spelling or by_meaning), 0)


def _time_unit(header: ColumnHeader, spellings: Mapping[str, Spelling]) -> str | None:
    unit = (spellings[TIME].unit if TIME in spellings else None) or header.unit
    return unit if unit is not None and unit_from_header("s", unit) else None


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def _by_spelling(
    file: CsvFile, texts: Sequence[str], spellings: Mapping[str, Spelling], clock: int
) -> dict[int, CsvColumn]:
    found: dict[int, CsvColumn] = {}
    columns = file.by_name()
    for name, spelling in spellings.items():
        wanted = {_bare(header) for header in spelling.headers}
        index = next((i for i, t in enumerate(texts) if t and i != clock and _bare(t) in wanted), None)
        if name in columns and index is not None:
            found[index] = columns[name]
    return found


def _by_meaning(
    file: CsvFile, headers: Sequence[ColumnHeader], found: Mapping[int, CsvColumn], clock: int
) -> dict[int, CsvColumn]:
    """Return `found` with the columns that match by meaning; columns with equal headers are in order."""
    result = dict(found)
    free = [column for column in file.columns if column not in found.values()]
    for index, header in enumerate(headers):
        if index in result or index == clock or not header.meaning:
            continue
        specific = header.meaning - file.implied
        column = next(
            (c for c in free if any(specific == meaning - file.implied for meaning in c.meanings)), None
        )
        if column is not None:
            result[index] = column
            free.remove(column)
    # An incomplete group of those that Table 7 may have lost is probably a chance match.
    incomplete = {column.group for column in free} - {""}
    return {index: column for index, column in result.items() if column.group not in incomplete}


def _by_order(
    file: CsvFile, headers: Sequence[ColumnHeader], found: Mapping[int, CsvColumn]
) -> dict[int, CsvColumn]:
    """Return the columns by their order, if the number of columns is documented and no header disagrees."""
    for order in file.orders():
        placed = dict(enumerate(order, 1))
        fits = len(headers) == len(order) + 1 and all(placed.get(i) is c for i, c in found.items())
        if fits and all(_vague(headers[i], c) for i, c in placed.items() if i not in found):
            return {i: c for i, c in placed.items() if i not in found}
    return {}


def _vague(header: ColumnHeader, column: CsvColumn) -> bool:
    """Return whether a header has no meaning, or a part of the column's: `z` for a planar pose's yaw."""
    return any(header.meaning <= m | {AXIS_OF[word] for word in m & AXIS_OF.keys()} for m in column.meanings)


def _units(
    headers: Sequence[ColumnHeader], found: Mapping[int, CsvColumn], spellings: Mapping[str, Spelling]
) -> tuple[dict[str, str], list[str]]:
    """Return the stated units, and a note for each impossible one."""
    units: dict[str, str] = {}
    odd: list[str] = []
    for index, column in found.items():
        unit = (spellings[column.name].unit if column.name in spellings else None) or headers[index].unit
        if unit is not None and unit_from_header(column.si, unit) is not None:
            units[column.name] = unit
        elif unit is not None:
            odd.append(f"{column.name} cannot be in {unit!r}, it is read as {column.unit!r}")
    return units, odd
