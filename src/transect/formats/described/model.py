"""What a recording.yaml may say: plain dataclasses, checked with errors that name line and key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from transect import types
from transect.base import yaml_fields, yaml_parts
from transect.base.units import Unit, unit_of
from transect.base.yaml_parts import YamlPart
from transect.errors import ParseError, TransectError, did_you_mean
from transect.robots.description import check_camera, check_edge
from transect.types import type_from_alias

from . import FILE

Reference = int | str
"""A column: its number, counted from 0, or its name in the header."""
ClockName = Literal["utc", "device", "sclk", "index"]
RoleName = Literal["measurement", "derived", "truth", "estimate"]
TimeUnit = Literal["s", "ms", "us", "ns", "iso"]
NumberType = Literal[
    "float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"
]
MAX_STREAMS = 2000
"""Streams that one file describes; each of them is a file to open, and no robot has more."""
MAX_ROW_NUMBERS = 1_000_000
"""Numbers in one field of a row."""
ANGLES = ("roll", "pitch", "yaw")
PAYLOADS = ("Image", "PointCloud", "GridMap")
TYPES = (
    *("Imu", "NavFix", "Pose", "RigidBodyState", "Odometry", "Twist", "LaserScan", "RadarSpectrum"),
    *("RadarRange", "JointState", "WheelState", "Wrench", "Record", *PAYLOADS),
)


@dataclass(frozen=True)
class ColumnDescription:
    """Where a column of the stream comes from.

    Attributes
    ----------
    source : column or list of columns
        Its name or number in the file; several make a list column. Give either `source` or `value`.
    value : number
        The same number in every row, for what the file does not have, such as the `start_angle` of a laser.
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
    missing : list of numbers
        Numbers in the file that say that nothing was measured, such as 8191 of a laser: they become NaN.
    """

    short: ClassVar[str] = "source"
    source: Reference | list[Reference] | None = None
    unit: str = ""
    text: bool = False
    numbers: bool | int = False
    type: NumberType = "float64"
    convert: bool = True
    missing: list[float] = field(default_factory=list[float])
    value: float | None = None

    def check(self, part: YamlPart) -> None:
        """Note a column that has no source, or two, or too many numbers; only decimals can be missing."""
        if (self.source is None) == (self.value is None):
            part.wrong("a column has either a `source` or a `value`")
        if self.missing and (self.text or not self.type.startswith("float")):
            part.child("missing").wrong("`missing` needs a `type` of float64 or float32")
        if not 0 <= self.numbers <= MAX_ROW_NUMBERS:
            part.child("numbers").wrong(f"a field has 0 to {MAX_ROW_NUMBERS} numbers")

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
        `utc`: since 1970; `device`: the sensor's own; `sclk`: a spacecraft's; `index`: rows are counted.
    """

    short: ClassVar[str] = "column"
    column: Reference | None = None
    columns: list[Reference] | None = None
    unit: TimeUnit | None = None
    format: str = ""
    clock: ClockName = "utc"

    def check(self, part: YamlPart) -> None:
        """Note a time that is not given, or given twice."""
        if (self.column is None) == (not self.columns):
            part.wrong("a time has either a `column` or `columns`")


@dataclass(frozen=True)
class StreamSpec:
    """One sensor's files.

    Attributes
    ----------
    name : str
        What to call the stream; no two have the same name.
    type : str
        A transect type: Imu, NavFix, Pose, Image, PointCloud, ...
    file : str
        One file. Give either `file` or `files`.
    files : str or list of str
        Several files, read one behind the other, or a pattern such as `left/*.png`, in which `*` stays
        inside a folder.
    delimiter : str
        `,` `;` tab or a blank (any number of them); found out by default.
    decimal : {".", ","}
        The sign before the decimals of numbers; found out by default.
    header : int
        Lines before the first row; the last of them has the names. Found out by default.
    columns : mapping of str to Column
        By the names of the type (`acc_x`, `lat`, ...) or any other; default all columns of the file. A pose
        may have `roll`, `pitch`, `yaw` (or `yaw` alone) for its quaternion: Rz(yaw) Ry(pitch) Rx(roll).
    time : Time
        When a sample was taken. Without it, images and clouds are timed by their names, and rows are
        counted on the `index` clock.
    log_time : Time
        When the sample was logged.
    frame : str
        Frame of the values: of an Imu its own, of a Pose the world.
    child : str
        Frame that moves in `frame`, of poses and velocities.
    role : {"measurement", "derived", "truth", "estimate"}
        What runs may use it for: truth judges, and is not an input.
    tag : str
        Which of a pair it is: `left` or `right`.
    camera : str
        Name of the camera that took the images, in `cameras`, `calibration` or the robot.
    """

    name: str
    type: str = "Record"
    file: str = ""
    files: str | list[str] = ""
    delimiter: str = ""
    decimal: Literal["", ".", ","] = ""
    header: int | None = None
    columns: dict[str, ColumnDescription] = field(default_factory=dict[str, ColumnDescription])
    time: Time | None = None
    log_time: Time | None = None
    frame: str = ""
    child: str = ""
    role: RoleName = "measurement"
    tag: str = ""
    camera: str = ""

    def check(self, part: YamlPart) -> None:
        """Note what types alone cannot say: a type that is not known, units that do not fit."""
        kind = type_named(self.type)
        if kind is None or kind.__name__ not in TYPES:
            hint = did_you_mean(self.type, TYPES)
            part.child("type").wrong(f"{self.name}: there is no type {self.type!r}", hint)
        if bool(self.file) == bool(self.files):
            given = part.child("file" if self.file else "name")
            given.wrong(f"{self.name}: give either `file` or `files`")
        if self.header is not None and not 0 <= self.header < 1000:
            part.child("header").wrong(f"{self.name}: `header` counts the lines before the first row")
        canonical = units_of(self.type)
        for name, column in self.columns.items():
            _check_unit(name, column, canonical.get(name), part.child("columns").child(name).child("unit"))


def _check_unit(name: str, column: ColumnDescription, wanted: str | None, part: YamlPart) -> None:
    if not column.unit or not column.convert:
        return
    try:
        unit = unit_of(column.unit)
    except TransectError as error:
        part.wrong(f"{name}: {error.what}", error.hint)
        return
    if wanted is not None and unit.si != wanted:
        part.wrong(f"{name} is in {wanted or 'no unit'}, and {column.unit!r} is not")


@dataclass(frozen=True)
class RecordingDescription:
    """A recording in files of one's own.

    Attributes
    ----------
    streams : list of StreamSpec
        What the files are, sensor by sensor.
    name : str
        What to call the recording; default the name of the folder.
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
        Sentences that `transect info` shows below its table.
    """

    streams: list[StreamSpec]
    name: str = ""
    robot: str = ""
    conditions: dict[str, Any] = field(default_factory=dict[str, Any])
    frames: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    cameras: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    calibration: str | list[str] = ""
    notes: list[str] = field(default_factory=list[str])

    def check(self, part: YamlPart) -> None:
        """Note streams of the same name."""
        seen: set[str] = set()
        for i, stream in enumerate(self.streams):
            if stream.name in seen:
                again = part.child("streams").child(i).child("name")
                again.wrong(f"{stream.name}: two streams have this name")
            seen.add(stream.name)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a recording.yaml, for editors that complete and check."""
    return {**yaml_fields.json_schema(RecordingDescription), "title": FILE}


def parse(text: str, where: str = FILE) -> RecordingDescription:
    """Return what a recording.yaml says; raise ParseError with all that is wrong, each with its line."""
    data, lines = yaml_parts.parse(text, where)
    if not isinstance(data, Mapping):
        raise ParseError(f"{where} is not a mapping", where=where, hint="it begins with `streams:`")
    if isinstance(given := data.get("streams"), list) and len(given) > MAX_STREAMS:
        why = f"it describes {len(given)} streams, at most {MAX_STREAMS} are read"
        raise ParseError(f"{where} is too large", where=where, why=why, hint="describe it in several folders")
    whole = YamlPart(data, (), lines)
    description = yaml_fields.read(whole, RecordingDescription, "the file")
    for part in whole.items("frames"):
        check_edge(part)
    for name, part in whole.members("cameras"):
        check_camera(name, part, strict=False)
    yaml_parts.refuse(whole.problems, where)
    assert description is not None, "what is not read has problems"
    return description


def units_of(name: str) -> dict[str, str]:
    """Return the units of the columns that a type knows; poses know roll, pitch and yaw, too."""
    units: dict[str, str] = getattr(type_named(name), "units", dict)()
    return units | dict.fromkeys(ANGLES, "rad") if is_pose(units) else units


def is_pose(units: Mapping[str, str]) -> bool:
    """Return whether a type with these columns is a place and an attitude."""
    return {"x", "qw"} <= set(units)


def type_named(name: str) -> type | None:
    """Return a transect type by its name or a CDFF alias, or None."""
    return getattr(types, name, None) if name in TYPES else type_from_alias(name)
