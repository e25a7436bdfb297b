"""Schema of recording.yaml: dataclasses whose validation errors name line and key."""

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
"""Streams in one description; each is a file to open, and no robot has more."""
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
    """Source and unit of a column of the stream."""

    short: ClassVar[str] = "source"
    # Its name or number in the file; several make a list column. Give either `source` or `value`
    source: Reference | list[Reference] | None = None
    unit: str = ""  # Unit in the file, converted to SI; default the SI unit of the type's column
    text: bool = False  # Whether it is text
    # Whether a field has several numbers, separated by blanks, or their number if it is constant
    numbers: bool | int = False
    type: NumberType = "float64"  # Type of the numbers
    convert: bool = True  # Whether the unit is converted to SI; if not, any unit is allowed
    # Numbers in the file that mean not measured, such as 8191 of a laser: they become NaN
    missing: list[float] = field(default_factory=list[float])
    # Constant value for all rows, if the file does not have it, such as the `start_angle` of a laser
    value: float | None = None

    def check(self, part: YamlPart) -> None:
        """Report a column without or with two sources, with too many numbers, or with missing integers."""
        if (self.source is None) == (self.value is None):
            part.wrong("a column has either a `source` or a `value`")
        if self.missing and (self.text or not self.type.startswith("float")):
            part.child("missing").wrong("`missing` needs a `type` of float64 or float32")
        if not 0 <= self.numbers <= MAX_ROW_NUMBERS:
            part.child("numbers").wrong(f"a field has 0 to {MAX_ROW_NUMBERS} numbers")

    @property
    def conversion(self) -> Unit:
        """Conversion of the numbers to SI."""
        return unit_of(self.unit) if self.convert else Unit(self.unit)


@dataclass(frozen=True)
class Time:
    """Source of the time of a sample."""

    short: ClassVar[str] = "column"
    column: Reference | None = None  # Its name or number in the file
    columns: list[Reference] | None = None  # Date and time of day in separate columns, joined by a blank
    unit: TimeUnit | None = None  # `iso` is a date and time as text
    # Format of a date and time that is not ISO, as in strptime: `%d.%m.%Y %H:%M:%S`; decimals may follow
    format: str = ""
    # `utc`: since 1970; `device`: the sensor's own; `sclk`: a spacecraft's; `index`: rows are counted
    clock: ClockName = "utc"

    def check(self, part: YamlPart) -> None:
        """Report a time without or with two sources."""
        if (self.column is None) == (not self.columns):
            part.wrong("a time has either a `column` or `columns`")


@dataclass(frozen=True)
class StreamSpec:
    """Files of one sensor."""

    name: str  # Unique name of the stream
    type: str = "Record"  # A transect type, such as Imu, NavFix, Image
    file: str = ""  # One file. Give either `file` or `files`
    # Several files, concatenated, or a pattern such as `left/*.png`, in which `*` does not match `/`
    files: str | list[str] = ""
    delimiter: str = ""  # `,` `;` tab or a blank (any number of them); detected by default
    decimal: Literal["", ".", ","] = ""  # Decimal separator; detected by default
    header: int | None = None  # Lines before the first row, the last with the names; detected by default
    # By the names of the type (`acc_x`, `lat`, ...) or any other; default all columns of the file. A pose may
    # have `roll`, `pitch`, `yaw` (or `yaw` alone) for its quaternion: Rz(yaw) Ry(pitch) Rx(roll)
    columns: dict[str, ColumnDescription] = field(default_factory=dict[str, ColumnDescription])
    # Time of measurement. Without it, images and clouds have the time in their file names, and rows are
    # counted on the `index` clock
    time: Time | None = None
    log_time: Time | None = None  # Time of logging
    frame: str = ""  # Frame of the values: of an Imu its own, of a Pose the world
    child: str = ""  # For poses and velocities: the frame that moves in `frame`
    role: RoleName = "measurement"  # Runs compare with truth, and do not use it as input
    tag: str = ""  # For one of a pair: `left` or `right`
    camera: str = ""  # Name of the camera of the images, in `cameras`, `calibration` or the robot

    def check(self, part: YamlPart) -> None:
        """Report unknown types, and units that do not match the type."""
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
    """Description of a recording in other files."""

    streams: list[StreamSpec]  # The files of each sensor
    name: str = ""  # Name of the recording; default the name of the folder
    robot: str = ""  # A robot of transect, or the name of a YAML file in the same folder
    conditions: dict[str, Any] = field(default_factory=dict[str, Any])  # Such as weather and terrain
    # Static frames: `frame`, `child`, `xyz` in metres and `quaternion`, `euler` or `matrix`
    frames: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    # `size`, `focal`, `centre`, `distortion` by name
    cameras: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    calibration: str | list[str] = ""  # Calibration files in the same folder
    notes: list[str] = field(default_factory=list[str])  # Sentences that `transect info` shows

    def check(self, part: YamlPart) -> None:
        """Report streams of the same name."""
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
    """Return the description in a recording.yaml; raise ParseError with all problems and their lines."""
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
    """Return the units of the canonical columns of a type; poses also have roll, pitch and yaw."""
    units: dict[str, str] = getattr(type_named(name), "units", dict)()
    return units | dict.fromkeys(ANGLES, "rad") if is_pose(units) else units


def is_pose(units: Mapping[str, str]) -> bool:
    """Return whether a type with these columns has a position and an attitude."""
    return {"x", "qw"} <= set(units)


def type_named(name: str) -> type | None:
    """Return a transect type by its name or a CDFF alias, or None."""
    return getattr(types, name, None) if name in TYPES else type_from_alias(name)
