"""What a recording.yaml may say: plain dataclasses, checked with errors that name line and key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal

from transect import types
from transect.base.units import Unit, unit_of
from transect.errors import ParseError, TransectError, did_you_mean
from transect.types import type_from_alias

FILE = "recording.yaml"
LARGEST = 4_000_000
DEEPEST = 50
"""How many lists and mappings may lie in one another."""
Reference = int | str
"""A column: its number, counted from 0, or its name in the header."""
ClockName = Literal["utc", "device", "sclk", "index"]
RoleName = Literal["measurement", "derived", "truth", "estimate"]
TimeUnit = Literal["s", "ms", "us", "ns", "iso"]
NumberType = Literal[
    "float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"
]
PAYLOADS = ("Image", "PointCloud", "GridMap")
TYPES = (
    *(
        "Imu",
        "NavFix",
        "Pose",
        "RigidBodyState",
        "Odometry",
        "Twist",
        "LaserScan",
        "RadarSpectrum",
        "RadarRange",
    ),
    *("JointState", "WheelState", "Wrench", "Record"),
    *PAYLOADS,
)
_STRICT = {"extra": "forbid"}


@dataclass(frozen=True)
class Column:
    """Where a column of the stream comes from.

    Attributes
    ----------
    source : column or list of columns
        Its name or number in the file; several make a list column.
    unit : str
        Unit in the file; it is converted to SI. Default: the SI unit of the type's column.
    text : bool
        Whether it is text.
    numbers : bool or int
        Whether a field holds several numbers, separated by blanks; how many, where that is always the same.
    type : str
        Type of the numbers.
    convert : bool
        Whether the unit is converted to SI; if not, any unit will do and the numbers stay as they are.
    """

    __pydantic_config__ = _STRICT
    source: Reference | list[Reference]
    unit: str = ""
    text: bool = False
    numbers: bool | int = False
    type: NumberType = "float64"
    convert: bool = True

    @property
    def conversion(self) -> Unit:
        """What makes SI of the numbers."""
        return unit_of(self.unit) if self.convert else Unit(self.unit)


@dataclass(frozen=True)
class Time:
    """Where the time of a sample comes from.

    Attributes
    ----------
    column : column
        Its name or number in the file.
    columns : list of columns
        Date and time of day in columns of their own; they are joined by a blank.
    unit : {"s", "ms", "us", "ns", "iso"}
        `iso` is a date and time as text.
    format : str
        How a date and time is written where it is not ISO, as in strptime: ``%d.%m.%Y %H:%M:%S``; decimals of
        the second follow it as they are.
    clock : {"utc", "device", "sclk", "index"}
    """

    __pydantic_config__ = _STRICT
    column: Reference | None = None
    columns: list[Reference] | None = None
    unit: TimeUnit | None = None
    format: str = ""
    clock: ClockName = "utc"


def _no_columns() -> dict[str, Column]:
    return {}


@dataclass(frozen=True)
class StreamSpec:
    """One sensor's files.

    Attributes
    ----------
    name : str
    type : str
        A transect type: Imu, NavFix, Pose, Image, PointCloud, ... (default Record).
    file, files : str or list of str
        One file; or several, or a pattern such as `left/*.png`, in which `*` stays inside a folder.
    delimiter : str
        `,` `;` tab or a blank (any number of them); found out by default.
    header : int
        Lines before the first row; the last of them has the names. Found out by default.
    columns : mapping of str to Column
        By the names of the type (`acc_x`, `lat`, ...) or any other; default all columns of the file.
    time, log_time : Time
        When a sample was taken, and logged. Without `time`, images and clouds are timed by their names, and
        rows are counted on the `index` clock.
    frame, child, role, tag, camera : str
        See `Stream`.
    """

    __pydantic_config__ = _STRICT
    name: str
    type: str = "Record"
    file: str = ""
    files: str | list[str] = ""
    delimiter: str = ""
    header: int | None = None
    columns: dict[str, Column] = field(default_factory=_no_columns)
    time: Time | None = None
    log_time: Time | None = None
    frame: str = ""
    child: str = ""
    role: RoleName = "measurement"
    tag: str = ""
    camera: str = ""


@dataclass(frozen=True)
class Description:
    """A recording in files of one's own.

    Attributes
    ----------
    streams : list of StreamSpec
    name : str
    robot : str
        One that comes with transect, or the name of a YAML file beside this one.
    conditions : mapping
        Whatever is known of the day.
    frames : list
        Static frames: `frame`, `child`, `xyz` in metres and `quaternion`, `euler` or `matrix`.
    cameras : mapping
        `size`, `focal`, `centre`, `distortion` by name.
    calibration : str or list of str
        Calibration files beside this one.
    notes : list of str
    """

    __pydantic_config__ = _STRICT
    streams: list[StreamSpec]
    name: str = ""
    robot: str = ""
    conditions: dict[str, Any] = field(default_factory=dict[str, Any])
    frames: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    cameras: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    calibration: str | list[str] = ""
    notes: list[str] = field(default_factory=list[str])


_KEYS = {
    "": [f.name for f in fields(Description)],
    "streams": [f.name for f in fields(StreamSpec)],
    "columns": [f.name for f in fields(Column)],
    "time": [f.name for f in fields(Time)],
    "log_time": [f.name for f in fields(Time)],
}


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Description)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a recording.yaml, for editors that complete and check."""
    return {"title": FILE, **_adapter().json_schema()}


def parse(text: str, where: str = FILE) -> Description:
    """Return what a recording.yaml says; raise ParseError with line, key and what was expected."""
    import yaml
    from pydantic import ValidationError

    if len(text) > LARGEST:
        raise ParseError(f"{where} is too large for a description", where=where)
    try:
        _refuse_aliases(text, where)
        content = yaml.safe_load(text)
        nodes = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ParseError(
            f"{where} is not YAML", where=where + line, why=str(getattr(error, "problem", None) or error)
        ) from error
    if not isinstance(content, dict):
        raise ParseError(f"{where} is not a mapping", where=where, hint="it begins with `streams:`")
    try:
        description: Description = _adapter().validate_python(_written_out(content))
    except (ValidationError, RecursionError) as error:
        found: list[Any] = error.errors() if isinstance(error, ValidationError) else []
        strange = [
            e for e in found if e["type"] == "unexpected_keyword_argument"
        ]  # a misspelt key is also missing
        first = next(iter([*strange, *found]), {"loc": (), "msg": str(error)})
        raise _explained(first, nodes, where) from error
    _check(description, nodes, where)
    return description


def _refuse_aliases(text: str, where: str) -> None:
    """Refuse aliases, of which a few lines unfold into more than any memory holds, and deep nesting."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            what, hint = f"{where} has an alias, *{event.anchor}", "write out what it stands for"
        elif depth > DEEPEST:
            what, hint = f"{where} nests lists or mappings more than {DEEPEST} deep", ""
        else:
            continue
        raise ParseError(what, where=f"{where}:{event.start_mark.line + 1}", hint=hint)


def _written_out(content: Mapping[str, Any]) -> dict[str, Any]:
    """Write short forms out: ``acc_x: ax`` is ``acc_x: {source: ax}``, ``time: t`` ``time: {column: t}``."""
    streams: Any = content.get("streams")
    if not isinstance(streams, list):
        return dict(content)
    return {**content, "streams": [_stream_written_out(s) if isinstance(s, dict) else s for s in streams]}


def _stream_written_out(stream: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(stream)
    columns = result.get("columns")
    if isinstance(columns, dict):
        result["columns"] = {k: v if isinstance(v, dict) else {"source": v} for k, v in columns.items()}
    for key in ("time", "log_time"):
        if isinstance(result.get(key), str | int):
            result[key] = {"column": result[key]}
    return result


def _explained(error: Mapping[str, Any], nodes: Any, where: str) -> ParseError:
    """Turn pydantic's first complaint into words of ours."""
    loc = [part for part in error["loc"] if not (isinstance(part, str) and part[:1].isupper())]
    inner = next((str(p) for p in reversed(loc[:-1]) if isinstance(p, str) and p in _KEYS), "")
    key = str(loc[-1]) if loc else ""
    if error.get("type") == "unexpected_keyword_argument":
        what, hint = f"there is no key {key!r} here", did_you_mean(key, _KEYS[inner])
    elif error.get("type") in ("missing", "missing_argument"):
        what, hint = f"{key!r} is missing", f"give it in {_path(loc[:-1]) or 'the file'}"
    else:
        what, hint = f"{_path(loc)}: {error['msg']}", ""
        if "expected" in error.get("ctx", {}):
            hint = did_you_mean(str(error.get("input", "")), _choices(str(error["ctx"]["expected"])))
    return ParseError(what, where=f"{where}:{_line(nodes, loc)}", why=f"at {_path(loc)}", hint=hint)


def _choices(expected: str) -> list[str]:
    return [c.strip(" '") for c in expected.replace(" or ", ",").split(",")]


def _path(loc: Iterable[Any]) -> str:
    return ".".join(str(part) for part in loc)


def _line(node: Any, loc: Iterable[Any]) -> int:
    """Return the line, counted from 1, of the deepest key on a path that is there."""
    line = 1
    for part in loc:
        value = getattr(node, "value", None)
        if not isinstance(value, list):
            break
        if isinstance(part, int) and part < len(value):
            node = value[part]
            line = node.start_mark.line + 1
            continue
        found = [(k, v) for k, v in (p for p in value if isinstance(p, tuple)) if k.value == str(part)]
        if not found:
            break
        line, node = found[0][0].start_mark.line + 1, found[0][1]
    return line


def _check(description: Description, nodes: Any, where: str) -> None:
    """Check what types alone cannot say: names of types, units that fit, times that are given once."""
    names = [s.name for s in description.streams]
    for number, stream in enumerate(description.streams):
        at = ("streams", number)
        try:
            if names.index(stream.name) != number:
                raise _Wrong("two streams have this name", ("name",))
            _check_stream(stream)
        except _Wrong as error:
            loc = (*at, *error.loc)
            raise ParseError(
                f"{stream.name}: {error.what}",
                where=f"{where}:{_line(nodes, loc)}",
                why=f"at {_path(loc)}",
                hint=error.hint,
            ) from None


class _Wrong(TransectError):
    def __init__(self, what: str, loc: tuple[Any, ...], hint: str = "") -> None:
        super().__init__(what, hint=hint)
        self.loc = loc


def _check_stream(stream: StreamSpec) -> None:
    kind = type_named(stream.type)
    if kind is None or kind.__name__ not in TYPES:
        raise _Wrong(f"there is no type {stream.type!r}", ("type",), did_you_mean(stream.type, TYPES))
    if bool(stream.file) == bool(stream.files):
        raise _Wrong("give either `file` or `files`", ("file" if stream.file else "name",))
    if stream.header is not None and not 0 <= stream.header < 1000:
        raise _Wrong("`header` counts the lines before the first row", ("header",))
    for key, time in (("time", stream.time), ("log_time", stream.log_time)):
        if time and (time.column is None) == (not time.columns):
            raise _Wrong("a time has either a `column` or `columns`", (key,))
    canonical: dict[str, str] = getattr(kind, "units", dict)()
    for name, column in stream.columns.items():
        _check_unit(name, column, canonical.get(name))


def _check_unit(name: str, column: Column, wanted: str | None) -> None:
    if not column.unit or not column.convert:
        return
    try:
        unit = unit_of(column.unit)
    except TransectError as error:
        raise _Wrong(error.what, ("columns", name, "unit"), error.hint) from None
    if wanted is not None and unit.si != wanted:
        raise _Wrong(
            f"{name} is in {wanted or 'no unit'}, and {column.unit!r} is not", ("columns", name, "unit")
        )


def type_named(name: str) -> type | None:
    """Return a transect type by its name or a CDFF alias, or None."""
    return getattr(types, name, None) if name in TYPES else type_from_alias(name)
