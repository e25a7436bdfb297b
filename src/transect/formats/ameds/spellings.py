"""How a user tells which header is which column, where the built-in table does not know his spelling.

A file `ameds_columns.yaml`, in the recording's folder or in `~/.config/transect`, names files of Table 7,
their columns (see `columns.py`) and what stands in the header; a unit only if it is not the document's:

    GnssPose:
      lat: Breite
      lon: [Länge, Laenge]
      roll: {header: Rollwinkel, unit: deg}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transect.base.yaml_parts import Lines, Part, parse, refuse
from transect.errors import did_you_mean
from transect.recording import Source

from .columns import BY_STEM, TIME
from .headers import unit_from_header

FILE = "ameds_columns.yaml"


@dataclass(frozen=True)
class Spelling:
    """What may stand above a column, and its unit where that is not the document's."""

    headers: tuple[str, ...]
    unit: str | None = None


Spellings = Mapping[str, Mapping[str, Spelling]]
"""Stem of a file to name of a column to what stands in the header."""


def load_spellings(source: Source, given: Mapping[str, Any] | None = None) -> Spellings:
    """Return the user's spellings: from his own file, the recording's folder, and given; later ones win."""
    layers = [(given or {}, Lines("columns="))]
    if FILE in source:
        layers.insert(0, parse(source.text(FILE), FILE))
    own = _user_file()
    if own.is_file():
        layers.insert(0, parse(own.read_text(encoding="utf-8", errors="replace"), str(own)))
    result: dict[str, dict[str, Spelling]] = {}
    for data, lines in layers:
        for stem, columns in _read(Part(data or {}, (), lines)).items():
            result.setdefault(stem, {}).update(columns)
    return result


def _user_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "transect" / FILE


def _read(whole: Part) -> Spellings:
    """Return a table of which every file and column is known, or raise with all that are not."""
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


def _spelling(stem: str, name: str, part: Part) -> Spelling:
    known = {TIME: "s", **{column.name: column.si for column in BY_STEM[stem].columns}}
    entry: Mapping[str, Any] = part.data if isinstance(part.data, Mapping) else {"header": part.data}
    header, unit = entry.get("header", ()), entry.get("unit")
    if name not in known:
        part.wrong(f"{stem} has no column {name!r}", did_you_mean(str(name), known))
    elif unit is not None and unit_from_header(known[name], str(unit)) is None:
        part.wrong(f"{unit!r} is no unit for {stem}'s {name}, which is kept in {known[name]!r}")
    headers = header if isinstance(header, list | tuple) else (header,)
    return Spelling(tuple(str(h) for h in headers), None if unit is None else str(unit))
