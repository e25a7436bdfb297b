"""The CSV files of AMEDS (Table 7): their documented columns, and the columns of the streams.

All files have the unix time in their first column. Table 7 prints two lines twice, the accelerometer of
GnssImu and the angular std of Platform2DTwistEstimate, and has no positions for PlatformWheelPoseEstimate.
Both layouts are accepted: the header, or else the number of columns, determines which one it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transect.recording import Role
from transect.types import Imu, JointState, NavFix, Odometry, Pose, Record, Twist, WheelState

from .headers import Meaning

TIME = "time"
"""Name of the first column while a file is read."""
DEVICE = "device_ns"
"""Stamp of the receiver in GnssPose."""


@dataclass(frozen=True)
class CsvColumn:
    """One documented column."""

    name: str  # in the table, unless it is part of a list; and in a user's `ameds_columns.yaml`
    header: str  # of the writer, in the words of Table 7
    si: str  # unit in the table
    unit: str  # unit in the file
    meanings: tuple[Meaning, ...]  # accepted meanings of the header, see ``headers``
    group: str = ""  # "" if Table 7 lists it; else the group that the print may have lost or doubled


@dataclass(frozen=True)
class CsvFile:
    """One CSV file of Table 7."""

    stem: str  # file name without its suffix
    stream: str  # name of its stream
    type: type
    columns: tuple[CsvColumn, ...]  # after the time, in the documented order
    implied: Meaning = frozenset()  # meaning of the file's name, which a header may omit
    ignored: frozenset[str] = frozenset()  # words without a meaning in this file's headers
    # list columns of the table, and the columns of the file that they consist of
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    unmeasured: tuple[str, ...] = ()  # Columns of the type that are not measured: NaN
    role: Role = "measurement"
    tag: str = ""
    frame: str = ""
    child: str = ""

    def orders(self) -> list[tuple[CsvColumn, ...]]:
        """Return the possible orders of the columns: as printed, and with each uncertain group."""
        groups = dict.fromkeys(["", *(column.group for column in self.columns)])
        return [tuple(c for c in self.columns if c.group in ("", group)) for group in groups]

    def by_name(self) -> dict[str, CsvColumn]:
        """Return the columns by name."""
        return {column.name: column for column in self.columns}


def _words(text: str) -> Meaning:
    return frozenset(text.split())


def _one(
    name: str, header: str, si: str, *meanings: str, unit: str | None = None, group: str = ""
) -> CsvColumn:
    file_unit = si if unit is None else unit
    text = f"{header} [{file_unit}]" if file_unit else header
    return CsvColumn(name, text, si, file_unit, tuple(_words(m) for m in meanings), group)


def _vector(
    names: str, header: str, si: str, meaning: str, unit: str | None = None, group: str = ""
) -> tuple[CsvColumn, ...]:
    """Return the columns of a vector: `names` has one for each axis, x first; `meaning` is common to all."""
    axes = zip(names.split(), "xyz", strict=False)
    return tuple(_one(n, f"{a} {header}", si, f"{meaning} {a}", unit=unit, group=group) for n, a in axes)


def _each(
    count: int, name: str, header: str, si: str, *meanings: str, unit: str | None = None
) -> tuple[CsvColumn, ...]:
    """Return one column for each joint, motor or wheel; `{}` is its number."""
    return tuple(
        _one(name.format(i), header.format(i), si, *(m.format(i) for m in meanings), unit=unit)
        for i in range(1, count + 1)
    )


def _names(columns: tuple[CsvColumn, ...]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


_ROLL_PITCH_YAW = (
    _one("roll", "roll-x", "rad", "roll"),
    _one("pitch", "pitch-y", "rad", "pitch"),
    _one("yaw", "yaw-z", "rad", "yaw"),
)
_JOINTS = _each(7, "joint_{}", "joint {} angle", "rad", "{}")
_IMU = (
    *_vector("acc_x acc_y acc_z", "accelerometer", "m/s2", "acceleration"),
    *_vector("acc2_x acc2_y acc2_z", "accelerometer", "m/s2", "acceleration", group="doubled"),
    *_vector("gyro_x gyro_y gyro_z", "gyroscope", "rad/s", "angular", unit="deg/s"),
    *_vector("mag_x mag_y mag_z", "magnetometer", "T", "magnetic", unit="G"),
    _one("temperature", "imu temperature", "degC", "temperature"),
    _one("pressure", "outside pressure", "Pa", "pressure", "outside pressure"),
    _one("outside_temperature", "outside temperature", "degC", "outside temperature", "pressure temperature"),
)
_FIX = (
    _one(DEVICE, "device timestamp", "s", "device", "time", unit="unix seconds"),
    _one("lat", "latitude", "rad", "lat"),
    _one("lon", "longitude", "rad", "lon"),
    _one("alt", "altitude", "m", "alt"),
    _one("std_north", "x std NED position", "m", "std x", "std lat"),
    _one("std_east", "y std NED position", "m", "std y", "std lon"),
    _one("std_down", "z std NED position", "m", "std z", "std alt"),
    *_ROLL_PITCH_YAW,
    _one("fix", "gnss fix type", "", "fix", unit="0-7"),
)
_DRIVE_VELOCITY = _each(
    4, "drive_velocity_{}", "drive motor {} velocity", "m/s", "drive velocity {}", "velocity {}"
)
_DRIVE_CMD = _each(
    4,
    "drive_cmd_{}",
    "drive motor {} cmd velocity",
    "m/s",
    "drive cmd velocity {}",
    "cmd velocity {}",
    "drive cmd {}",
    "cmd {}",
)
_DRIVE_TICKS = _each(4, "drive_ticks_{}", "drive motor {} position", "", "drive position {}", unit="ticks")
_STEER_TICKS = _each(
    4, "steer_ticks_{}", "steer motor {} position", "", "steer position {}", "steer {}", unit="ticks"
)
_PLANAR_TWIST = (
    *_vector("vx vy", "velocity", "m/s", "velocity"),
    _one("wz", "z angular velocity", "rad/s", "angular z", "angular"),
    *_vector("std_vx std_vy", "std velocity", "m/s", "std velocity", group="linear std"),
    _one("std_wz", "z std angular velocity", "rad/s", "std angular z", "std angular"),
)
_PLANAR_POSE = (
    *_vector("x y", "NWU position", "m", "position"),
    _one("yaw", "yaw-z NWU", "rad", "yaw"),
    *_vector("std_x std_y", "std NWU position", "m", "std position"),
    _one("std_yaw", "yaw-z std NWU", "rad", "std yaw"),
)


def _of_wheel(i: int) -> tuple[CsvColumn, ...]:
    place = (
        _one(f"wheel_{i}_{a}", f"wheel {i} {a} position", "m", f"{i} {a}", group="positions") for a in "xyz"
    )
    attitude = (
        _one(f"wheel_{i}_{angle}", f"wheel {i} {angle}-{axis}", "rad", f"{i} {angle}")
        for angle, axis in (("roll", "x"), ("pitch", "y"), ("yaw", "z"))
    )
    return (*place, *attitude)


_WHEELS = tuple(column for i in range(1, 5) for column in _of_wheel(i))
_DRIVE_ANGLE = _each(4, "drive_angle_{}", "wheel {} drive angle", "rad", "drive angle {}", "drive {}")
_STEER_ANGLE = _each(4, "steer_angle_{}", "wheel {} steering angle", "rad", "steer angle {}", "steer {}")
_WHEEL_LISTS = {
    key: tuple(f"wheel_{i}_{key}" for i in range(1, 5)) for key in ("x", "y", "z", "roll", "pitch", "yaw")
}


def _velocity(which: str) -> tuple[CsvColumn, ...]:
    return (
        *_vector("vx vy vz", f"{which}velocity", "m/s", "velocity"),
        *_vector("std_vx std_vy std_vz", f"std {which}velocity", "m/s", "std velocity"),
    )


def _file(
    stream: str, kind: type, columns: tuple[CsvColumn, ...], implied: str = "", **attributes: Any
) -> CsvFile:
    """Return the file of a stream, whose name is that of the stream without the slash."""
    return CsvFile(stream.replace("/", ""), stream, kind, columns, _words(implied), **attributes)


def _arm(side: str) -> CsvFile:
    return _file(
        f"{side}Arm/JointAngles",
        JointState,
        _JOINTS,
        implied="joint angle position",
        ignored=frozenset(("a", "j", "q", "axis", "theta")),
        lists={"position": _names(_JOINTS)},
        tag=side.lower(),
        frame=f"{side}Arm (base)",
    )


def _camera_pose(side: str) -> CsvFile:
    return _file(
        f"{side}Cam/PoseEstimate",
        Pose,
        (*_vector("x y z", "position", "m", "position"), *_ROLL_PITCH_YAW),
        implied="position",
        role="derived",
        tag=side.lower(),
        frame="Origin",
        child=f"{side}Cam",
    )


# GnssBodyAcceleration is not an Imu: the acceleration of an INS does not contain gravity.
CSV_FILES: tuple[CsvFile, ...] = (
    _arm("Aux"),
    _arm("Main"),
    _camera_pose("Aux"),
    _camera_pose("Main"),
    _file(
        "Gnss/BodyAcceleration",
        Record,
        _vector("ax ay az", "acceleration", "m/s2", "acceleration"),
        implied="acceleration",
        frame="Origin",
    ),
    _file(
        "Gnss/BodyAngularVelocity",
        Twist,
        _vector("wx wy wz", "angular velocity", "rad/s", "angular"),
        implied="angular velocity",
        frame="Origin",
    ),
    _file("Gnss/BodyVelocity", Twist, _velocity(""), implied="velocity", frame="Origin"),
    _file("Gnss/Imu", Imu, _IMU, frame="Origin"),
    _file("Gnss/NedVelocity", Twist, _velocity("NED "), implied="velocity", frame="NED"),
    _file("Gnss/Pose", NavFix, _FIX, implied="position", frame="NED", child="Origin"),
    _file(
        "Platform/MotorEncoders",
        WheelState,
        (*_DRIVE_VELOCITY, *_DRIVE_CMD, *_DRIVE_TICKS, *_STEER_TICKS),
        lists={
            "wheel_velocity": _names(_DRIVE_VELOCITY),
            "wheel_velocity_cmd": _names(_DRIVE_CMD),
            "drive_ticks": _names(_DRIVE_TICKS),
            "steer_ticks": _names(_STEER_TICKS),
        },
        frame="Platform",
    ),
    _file(
        "Platform/2DVelocity",
        Odometry,
        _PLANAR_TWIST,
        implied="velocity",
        unmeasured=("vz", "wx", "wy"),
        child="Platform",
    ),
    _file(
        "Platform/2DPoseEstimate",
        Pose,
        _PLANAR_POSE,
        implied="position",
        unmeasured=("z",),
        role="derived",
        frame="NWU",
        child="Platform",
    ),
    _file(
        "Platform/2DTwistEstimate",
        Twist,
        (
            *_PLANAR_TWIST,
            _one(
                "std_wz_2", "z std angular velocity", "rad/s", "std angular z", "std angular", group="doubled"
            ),
        ),
        implied="velocity",
        unmeasured=("vz", "wx", "wy"),
        role="derived",
        frame="Platform",
    ),
    _file(
        "Platform/WheelPoseEstimate",
        WheelState,
        (*_WHEELS, *_DRIVE_ANGLE, *_STEER_ANGLE),
        implied="position",
        lists={**_WHEEL_LISTS, "drive_angle": _names(_DRIVE_ANGLE), "steering": _names(_STEER_ANGLE)},
        role="derived",
        frame="Platform",
    ),
)
"""CSV files in the order of Table 7."""

BY_STEM: Mapping[str, CsvFile] = {file.stem: file for file in CSV_FILES}
BY_STREAM: Mapping[str, CsvFile] = {file.stream: file for file in CSV_FILES}
