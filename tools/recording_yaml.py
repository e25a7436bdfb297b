"""Write the tables of docs/recording-yaml.md: all keys of a recording.yaml, from the classes that read it."""

from __future__ import annotations

import dataclasses
import runpy
from pathlib import Path
from typing import Any

from transect import types
from transect.base import units
from transect.formats.described.model import (
    ANGLES,
    PAYLOADS,
    TYPES,
    ColumnDescription,
    RecordingDescription,
    StreamSpec,
    Time,
    is_pose,
)

attributes_of = runpy.run_path(str(Path(__file__).with_name("fields.py")))["attributes_of"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "recording-yaml.md"
FIRST = "## The file"
"""Above this line the page is written by hand."""
KINDS = (
    (RecordingDescription, "The file", ""),
    (StreamSpec, "A stream", "An entry of `streams`."),
    (
        ColumnDescription,
        "A column",
        "A value of `columns`. A name or number alone is its `source`: `x: east`.",
    ),
    (Time, "A time", "`time` and `log_time`. A name or number alone is its `column`: `time: stamp`."),
)


def page() -> str:
    """Return the page."""
    parts = [PAGE.read_text("utf-8").partition(FIRST)[0].rstrip() + "\n"]
    for kind, title, words in KINDS:
        parts.append(f"## {title}\n\n{words}\n" if words else f"## {title}\n")
        parts.append(keys_table(kind))
    parts += [
        "## Types and their columns\n",
        TYPES_TEXT,
        types_table(),
        "## Units\n",
        UNITS_TEXT,
        units_table(),
    ]
    return "\n".join(parts)


TYPES_TEXT = """\
What is not listed keeps its own name and unit beside these. A pose may have `roll`, `pitch`, `yaw` in
place of a quaternion: `R = Rz(yaw) Ry(pitch) Rx(roll)`; `yaw` alone is a robot in the plane. Image,
PointCloud and GridMap are files and have no columns. `frame` and `child` say whose axes vectors are in: see
[conventions](conventions.md).
"""
UNITS_TEXT = """\
Any of these may stand as `unit`, or in a header as `ax [g]`, `ax (g)` or `ax_g`. Numbers are converted
to the unit on the left, unless `convert: false`.
"""


def keys_table(kind: type) -> str:
    """Return the keys of a class: type, default, meaning."""
    meanings = attributes_of(kind)
    rows = [
        f"| `{field.name}` | {type_text(field)} | {default_text(field)} | {meanings[field.name][1]} |"
        for field in dataclasses.fields(kind)
    ]
    return "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *rows, ""])


def type_text(field: dataclasses.Field[Any]) -> str:
    """Return the type of a key in words."""
    text = str(field.type)
    words = {
        "Reference | list[Reference] | None": "column, or list of columns",
        "Reference | None": "column",
        "list[Reference] | None": "list of columns",
        "TimeUnit | None": "`s`, `ms`, `us`, `ns` or `iso`",
        "ClockName": "`utc`, `device`, `sclk` or `index`",
        "RoleName": "`measurement`, `derived`, `truth` or `estimate`",
        "NumberType": "`float64`, `float32`, `int64` ... `uint8`, `bool`",
        "Literal['', '.', ',']": "`.` or `,`",
        "dict[str, ColumnDescription]": "mapping of columns",
        "list[StreamSpec]": "list of streams",
        "Time | None": "time",
        "str | list[str]": "text, or list of texts",
        "list[str]": "list of texts",
        "list[float]": "list of numbers",
        "list[dict[str, Any]]": "list of frames",
        "dict[str, dict[str, Any]]": "mapping of cameras",
        "dict[str, Any]": "mapping",
        "bool | int": "true, false or a number",
        "int | None": "number",
        "float | None": "number",
        "str": "text",
        "bool": "true or false",
    }
    return words[text]


def default_text(field: dataclasses.Field[Any]) -> str:
    """Return the default of a key; nothing for optional keys without a default."""
    if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
        return "needed"
    if field.default in ("", None) or field.default is dataclasses.MISSING:
        return ""
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def types_table() -> str:
    """Return the columns of each type with their units."""
    rows: list[str] = []
    for name in TYPES:
        known: dict[str, str] = getattr(getattr(types, name), "units", dict)()
        known = known | dict.fromkeys(ANGLES, "rad") if is_pose(known) else known
        by_unit: dict[str, list[str]] = {}
        for column, unit in known.items():
            by_unit.setdefault(unit, []).append(f"`{column}`")
        text = "; ".join(f"{' '.join(columns)} {unit}".strip() for unit, columns in by_unit.items())
        if name not in PAYLOADS:
            rows.append(f"| {name} | {text or 'any'} |")
    return "\n".join(["| type | columns and their units |", "|---|---|", *rows, ""])


def units_table() -> str:
    """Return the units that may be named, by the SI unit that they become."""
    by_si: dict[str, list[str]] = {}
    for name in units.known_units():
        by_si.setdefault(units.unit_of(name).si, []).append(f"`{name}`")
    rows = [f"| {si or '(a number)'} | {' '.join(names)} |" for si, names in by_si.items()]
    return "\n".join(["| becomes | from |", "|---|---|", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE}")
