"""How a user tells which header is which column, where the built-in table does not know his spelling.

A file `ameds_columns.yaml`, in the recording's folder or in `~/.config/transect`, names files of Table 7,
their columns (see `_ameds_columns`) and what stands in the header; a unit only if it is not the document's:

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

from transect.errors import ParseError, did_you_mean
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
    layers = [_from_file(_user_file()), _from_source(source), _checked(given or {}, "columns=")]
    result: dict[str, dict[str, Spelling]] = {}
    for layer in layers:
        for stem, columns in layer.items():
            result.setdefault(stem, {}).update(columns)
    return result


def _user_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "transect" / FILE


def _from_file(path: Path) -> Spellings:
    return _parsed(path.read_text(encoding="utf-8", errors="replace"), str(path)) if path.is_file() else {}


def _from_source(source: Source) -> Spellings:
    return _parsed(source.text(FILE), FILE) if FILE in source else {}


def _parsed(text: str, where: str) -> Spellings:
    import yaml

    try:
        return _checked(yaml.safe_load(text) or {}, where)
    except yaml.YAMLError as error:
        raise ParseError(f"{where} is not YAML", where=where, why=str(error)) from error


def _checked(table: Any, where: str) -> Spellings:
    """Return the table with every file and column known, or say which is not."""
    if not isinstance(table, Mapping):
        raise ParseError(
            "the table of columns is a mapping of files", where=where, hint="GnssPose: {lat: Breite}"
        )
    result: dict[str, dict[str, Spelling]] = {}
    for stem, columns in table.items():
        if stem not in BY_STEM:
            raise ParseError(
                f"AMEDS has no file {stem!r}", where=where, hint=did_you_mean(str(stem), BY_STEM)
            )
        if not isinstance(columns, Mapping):
            raise ParseError(f"{stem} needs a mapping of its columns to headers", where=where)
        result[stem] = {name: _spelling(stem, name, said, where) for name, said in columns.items()}
    return result


def _spelling(stem: str, name: str, said: Any, where: str) -> Spelling:
    known = {TIME: "s", **{column.name: column.si for column in BY_STEM[stem].columns}}
    if name not in known:
        raise ParseError(f"{stem} has no column {name!r}", where=where, hint=did_you_mean(str(name), known))
    entry: Mapping[str, Any] = said if isinstance(said, Mapping) else {"header": said}
    header, unit = entry.get("header", ()), entry.get("unit")
    if unit is not None and unit_from_header(known[name], str(unit)) is None:
        raise ParseError(
            f"{unit!r} is no unit for {stem}'s {name}", where=where, why=f"it is kept in {known[name]!r}"
        )
    headers = header if isinstance(header, list | tuple) else (header,)
    return Spelling(tuple(str(h) for h in headers), None if unit is None else str(unit))
