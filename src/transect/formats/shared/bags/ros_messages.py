"""Mapping of ROS messages to transect types: columns and units of the fields, read in both directions.

The column names of a type are those of `transect.types`; other fields are named by their path. Stamps become
nanoseconds, lists become list columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect import types
from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.base.units import from_si, to_si
from transect.recording import arrow
from transect.types.returns import errors_from_infinities, infinities_from_errors

from .ros_decoder import Columns, Lists

LOGGED = "messages without a stamp have the time at which they were logged"
Convert = Callable[[dict[str, Any]], None]
_STAMPS = ("header.stamp_ns", "info.header.stamp_ns", "stamp_ns")
_FRAMES = ("header.frame_id", "info.header.frame_id")
_SEQUENCE_NUMBERS = ("header.seq", "info.header.seq")
UNMEASURED = "unmeasured"
"""Key of `Stream.meta`: columns for which transect had no values when it wrote the bag."""
FIX_OF_STATUS = {-1: "none", 0: "3d", 1: "sbas", 2: "differential"}
FIX_POSITION = {"latitude": "lat", "longitude": "lon", "altitude": "alt"}
FIX_SIGMAS = {"std_east": 0, "std_north": 4, "std_down": 8}
"""Columns of standard deviations, and the index of their variance in a covariance (east, north, up)."""


def _keep(columns: dict[str, Any]) -> None:
    """Convert nothing."""


@dataclass(frozen=True)
class MessageMapping:
    """Mapping of a message type to a transect type."""

    name: str = "Record"  # Name of the transect type
    # Column names by the path of a field; other fields keep their path as name
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    units: Mapping[str, str] = field(default_factory=dict[str, str])  # Units of non-canonical columns
    child: str = ""  # Path of the field with the name of the moving frame
    headed: bool = True  # Whether the message starts with a header
    adapt: Convert = _keep  # Converts columns in place from the message's conventions
    restore: Convert = _keep  # Inverse of `adapt`
    extra: tuple[str, ...] = ()  # Paths of further fields that `adapt` needs

    @property
    def type(self) -> type:
        """The transect type, imported on access."""
        return getattr(types, self.name)

    @property
    def needs(self) -> frozenset[str]:
        """Paths of the required fields."""
        return frozenset((*self.columns, *self.extra))


def _vector(path: str, names: str) -> dict[str, str]:
    return {f"{path}.{axis}".lstrip("."): name for axis, name in zip("xyzw", names.split(), strict=False)}


def pose_columns(path: str) -> dict[str, str]:
    """Return the columns of a pose by the paths of its fields."""
    path = f"{path}." if path else ""
    return {**_vector(f"{path}position", "x y z"), **_vector(f"{path}orientation", "qx qy qz qw")}


def _twist(path: str) -> dict[str, str]:
    path = f"{path}." if path else ""
    return {**_vector(f"{path}linear", "vx vy vz"), **_vector(f"{path}angular", "wx wy wz")}


def transform_columns(path: str) -> dict[str, str]:
    """Return the columns of a transform by the paths of its fields."""
    return {**_vector(f"{path}translation", "x y z"), **_vector(f"{path}rotation", "qx qy qz qw")}


def _wrench(path: str) -> dict[str, str]:
    return {**_vector(f"{path}force", "fx fy fz"), **_vector(f"{path}torque", "tx ty tz")}


_IMU_PARTS = {
    "orientation_covariance": ("qx", "qy", "qz", "qw"),
    "angular_velocity_covariance": ("gyro_x", "gyro_y", "gyro_z"),
    "linear_acceleration_covariance": ("acc_x", "acc_y", "acc_z"),
}


def _adapt_imu(columns: dict[str, Any]) -> None:
    """Set values to NaN whose covariance starts with -1, which means not measured (sensor_msgs/Imu)."""
    for covariance, names in _IMU_PARTS.items():
        absent = columns[covariance][:, 0] == -1
        for name in names:
            columns[name] = np.where(absent, np.nan, columns[name])


def _restore_imu(columns: dict[str, Any]) -> None:
    count = len(next(iter(columns.values())))
    for covariance, names in _IMU_PARTS.items():
        known = np.array(columns.get(covariance, np.zeros((count, 9))), dtype=np.float64)
        values = [np.asarray(columns.get(name, np.full(count, np.nan))) for name in names]
        absent = np.isnan(values).all(axis=0)
        known[absent, 0] = -1.0
        columns[covariance] = known
        columns |= {name: np.where(absent, 0.0, value) for name, value in zip(names, values, strict=True)}


def _adapt_fix(columns: dict[str, Any]) -> None:
    """Convert degrees to radians, and the covariance to standard deviations if its type is not `unknown`."""
    columns["lat"], columns["lon"] = to_si(columns["lat"], "deg"), to_si(columns["lon"], "deg")
    columns["fix"] = [FIX_OF_STATUS.get(status, "none") for status in columns["status"].tolist()]
    is_known = columns["position_covariance_type"] > 0
    columns |= standard_deviations(columns["position_covariance"], is_known)


def standard_deviations(covariance: NDArray[Any], is_known: Mask) -> dict[str, Floats]:
    """Return the columns of `FIX_SIGMAS` from covariances (n, 9) in east, north, up; NaN if unknown."""
    variance = np.where(is_known[:, None] & (covariance >= 0), covariance, np.nan)
    return {name: np.sqrt(variance[:, k]) for name, k in FIX_SIGMAS.items()}


def _restore_fix(columns: dict[str, Any]) -> None:
    for name in {"lat", "lon"} & set(columns):
        columns[name] = from_si(columns[name], "deg")
    if "status" not in columns and "fix" in columns:
        better = {"sbas": 1, "differential": 2, "ppp": 2, "rtk float": 2, "rtk fixed": 2}
        columns["status"] = np.array(
            [-1 if f == "none" else better.get(f, 0) for f in columns["fix"]], np.int8
        )
    if "position_covariance" not in columns and "std_north" in columns:
        nothing = np.full(len(columns["std_north"]), np.nan)
        sigmas = np.column_stack([columns.get(name, nothing) for name in FIX_SIGMAS])
        known = np.asarray(np.isfinite(sigmas).all(axis=1))[:, None]
        columns["position_covariance"] = np.zeros((len(sigmas), 9))
        columns["position_covariance"][:, ::4] = np.where(known, sigmas**2, 0.0)
        columns["position_covariance_type"] = np.where(known[:, 0], 2, 0).astype(np.uint8)


def _adapt_scan(columns: dict[str, Any]) -> None:
    """Replace infinite ranges (REP 117) by NaN, with the reason in `range_error`."""
    ranges = columns["ranges"]
    errors = errors_from_infinities(ranges.values)
    columns["ranges"] = Lists(ranges.offsets, np.where(errors, np.float32(np.nan), ranges.values))
    if errors.any():
        columns["range_error"] = Lists(ranges.offsets, errors)


def _restore_scan(columns: dict[str, Any]) -> None:
    rows = zip(columns["ranges"], columns.pop("range_error", ()), strict=False)
    restored = [infinities_from_errors(np.array(r, np.float64), np.array(errors)) for r, errors in rows]
    columns["ranges"] = restored or columns["ranges"]
    if {"start_angle", "angle_increment"} <= set(columns):
        steps = np.array([len(ranges) - 1 for ranges in columns["ranges"]])
        last = columns["start_angle"] + np.maximum(steps, 0) * columns["angle_increment"]
        known = columns.get("angle_max", np.nan)
        columns["angle_max"] = np.where(np.isnan(known), last, known)


def _adapt_camera(columns: dict[str, Any]) -> None:
    """Rename D, K, R, P of ROS 1 to d, k, r, p of ROS 2."""
    for name in "DKRP":
        if name in columns:
            columns[name.lower()] = columns.pop(name)


_IMU_COLUMNS = {
    **_vector("orientation", "qx qy qz qw"),
    **_vector("angular_velocity", "gyro_x gyro_y gyro_z"),
    **_vector("linear_acceleration", "acc_x acc_y acc_z"),
}
_FIX_COLUMNS = {**FIX_POSITION, "status.status": "status", "status.service": "service"}
_FIX_EXTRA = ("position_covariance", "position_covariance_type")
_ODOMETRY_COLUMNS = {
    **pose_columns("pose.pose"),
    **_twist("twist.twist"),
    "pose.covariance": "pose_covariance",
    "twist.covariance": "twist_covariance",
}
_SCAN_COLUMNS = {"angle_min": "start_angle", "intensities": "remission"}
_SCAN_UNITS = {"angle_max": "rad", "time_increment": "s", "scan_time": "s"}
_BATTERY_UNITS = {"voltage": "V", "current": "A", "charge": "A h", "capacity": "A h", "temperature": "degC"}

MAPPINGS: dict[str, MessageMapping] = {
    "sensor_msgs/msg/Imu": MessageMapping(
        "Imu", _IMU_COLUMNS, adapt=_adapt_imu, restore=_restore_imu, extra=tuple(_IMU_PARTS)
    ),
    "sensor_msgs/msg/NavSatFix": MessageMapping(
        "NavFix", _FIX_COLUMNS, adapt=_adapt_fix, restore=_restore_fix, extra=_FIX_EXTRA
    ),
    "sensor_msgs/msg/LaserScan": MessageMapping(
        "LaserScan", _SCAN_COLUMNS, _SCAN_UNITS, adapt=_adapt_scan, restore=_restore_scan, extra=("ranges",)
    ),
    "sensor_msgs/msg/JointState": MessageMapping("JointState", {"name": "names"}),
    "sensor_msgs/msg/MagneticField": MessageMapping(
        "Record",
        _vector("magnetic_field", "mag_x mag_y mag_z"),
        dict.fromkeys(("mag_x", "mag_y", "mag_z"), "T"),
    ),
    "sensor_msgs/msg/FluidPressure": MessageMapping(
        "Record", units={"fluid_pressure": "Pa", "variance": "Pa2"}
    ),
    "sensor_msgs/msg/Temperature": MessageMapping(
        "Record", units={"temperature": "degC", "variance": "degC2"}
    ),
    "sensor_msgs/msg/BatteryState": MessageMapping("Record", units=_BATTERY_UNITS),
    "sensor_msgs/msg/Joy": MessageMapping("Record"),
    "sensor_msgs/msg/CameraInfo": MessageMapping("Record", adapt=_adapt_camera),
    "nav_msgs/msg/Odometry": MessageMapping("Odometry", _ODOMETRY_COLUMNS, child="child_frame_id"),
    "geometry_msgs/msg/Pose": MessageMapping("Pose", pose_columns(""), headed=False),
    "geometry_msgs/msg/PoseStamped": MessageMapping("Pose", pose_columns("pose")),
    "geometry_msgs/msg/PoseWithCovariance": MessageMapping("Pose", pose_columns("pose"), headed=False),
    "geometry_msgs/msg/PoseWithCovarianceStamped": MessageMapping(
        "Pose", {**pose_columns("pose.pose"), "pose.covariance": "covariance"}
    ),
    "geometry_msgs/msg/Transform": MessageMapping("Pose", transform_columns(""), headed=False),
    "geometry_msgs/msg/TransformStamped": MessageMapping(
        "Pose", transform_columns("transform."), child="child_frame_id"
    ),
    "geometry_msgs/msg/Twist": MessageMapping("Twist", _twist(""), headed=False),
    "geometry_msgs/msg/TwistStamped": MessageMapping("Twist", _twist("twist")),
    "geometry_msgs/msg/TwistWithCovariance": MessageMapping("Twist", _twist("twist"), headed=False),
    "geometry_msgs/msg/TwistWithCovarianceStamped": MessageMapping(
        "Twist", {**_twist("twist.twist"), "twist.covariance": "covariance"}
    ),
    "geometry_msgs/msg/Wrench": MessageMapping("Wrench", _wrench(""), headed=False),
    "geometry_msgs/msg/WrenchStamped": MessageMapping("Wrench", _wrench("wrench.")),
    "geometry_msgs/msg/Point": MessageMapping("Record", units=dict.fromkeys("xyz", "m"), headed=False),
    "geometry_msgs/msg/PointStamped": MessageMapping(
        "Record", _vector("point", "x y z"), dict.fromkeys("xyz", "m")
    ),
    "geometry_msgs/msg/Vector3Stamped": MessageMapping("Record", _vector("vector", "x y z")),
    "geometry_msgs/msg/QuaternionStamped": MessageMapping("Record", _vector("quaternion", "qx qy qz qw")),
}
"""Message types with a mapping; all others are rows of named values."""

PAYLOADS = {
    "sensor_msgs/msg/Image": "Image",
    "sensor_msgs/msg/CompressedImage": "Image",
    "sensor_msgs/msg/PointCloud2": "PointCloud",
    "grid_map_msgs/msg/GridMap": "GridMap",
    "nav_msgs/msg/OccupancyGrid": "GridMap",
    "nav_msgs/msg/Path": "Trajectory",
}
"""Message types whose samples are loaded one by one, with their transect types; each starts with a header."""


def mapping_of(msgtype: str) -> MessageMapping:
    """Return the mapping of a message type."""
    return MAPPINGS.get(msgtype, MessageMapping(headed=False))


def fields_of(columns: Columns) -> dict[str, Any]:
    """Return the values of a single message by path."""
    values = with_times(columns)
    return {
        path: column.values if isinstance(column, Lists) else column[0] for path, column in values.items()
    }


@dataclass(frozen=True)
class MessageTable:
    """The table of decoded messages, with notes for the user."""

    table: pa.Table
    notes: tuple[str, ...]


def tabulate(
    columns: Columns,
    kind: MessageMapping,
    log_ns: Ints,
    *,
    topic: str,
    frame: str = "",
    child: str = "",
    clock: str = "utc",
    unmeasured: Sequence[str] = (),
) -> MessageTable:
    """Return decoded messages as the table of a stream.

    Parameters
    ----------
    columns : Columns
        Of n messages, by the path of the field.
    log_ns : (n,) int64 array
        Times of receipt.
    frame, child : str
        Frames of the stream; if messages have other frames, these become columns.
    clock : str
        The stream's clock; a stamp of zero on `utc` means a missing stamp.
    unmeasured : sequence of str
        Columns with placeholder values, which become NaN.
    """
    if not len(log_ns):
        units = getattr(kind.type, "units", dict)()
        return MessageTable(arrow.empty(units), ())
    values = with_times(columns)
    stamp = next((values[name] for name in _STAMPS if name in values), None)
    t_ns, notes = sample_times(stamp, log_ns, topic, clock)
    frames = _list_taken_frames(values, {"frame_id": frame, "child_frame_id": child}, kind.child)
    notes += [f"{topic}: its {name} changes" for name, names in frames.items() if len(set(names)) > 1]
    for name in (*_STAMPS, *_SEQUENCE_NUMBERS):
        values.pop(name, None)
    if missing := kind.needs - set(values):
        notes.append(f"{topic}: its messages have no {', '.join(sorted(missing))}: fields keep their names")
        kind = MessageMapping(kind.name)
    values = {kind.columns.get(path, path): column for path, column in values.items()}
    kind.adapt(values)
    for name in unmeasured:
        if isinstance(column := values.get(name), np.ndarray) and column.dtype.kind == "f":
            values[name] = np.full_like(column, np.nan)
    notes += [
        f"{topic}: {n} is kept as the number of its elements" for n, c in values.items() if _is_nested(c)
    ]
    ready = {name: arrow_column(column) for name, column in (values | frames).items()}
    units = {**getattr(kind.type, "units", dict)(), **kind.units}
    table = arrow.table(t_ns, {n: c for n, c in ready.items() if c is not None}, units=units, log_ns=log_ns)
    return MessageTable(table, tuple(notes))


def _list_taken_frames(values: Columns, said: Mapping[str, str], child_path: str) -> dict[str, list[str]]:
    """Remove the frames from the columns, and return those that differ from the frames of the stream."""
    found = {"frame_id": _pop(values, _FRAMES), "child_frame_id": _pop(values, (child_path,))}
    return {
        name: names
        for name, names in found.items()
        if names and {frame_name(text) for text in set(names)} != {said[name]}
    }


def with_times(columns: Columns) -> Columns:
    """Return the columns with each pair `x.sec`, `x.nanosec` combined to a column `x_ns` of int64 ns."""
    result: Columns = {}
    for path, column in columns.items():
        base, _, last = path.rpartition(".")
        if last == "nanosec" and _is_whole(column) and _is_whole(columns.get(f"{base}.sec")):
            result.pop(f"{base}.sec", None)
            result[f"{base}_ns"] = columns[f"{base}.sec"].astype(np.int64) * NS + column
        else:
            result[path] = column
    return result


def _is_whole(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "iu"


def sample_times(stamp: Ints | None, log_ns: Ints, topic: str, clock: str) -> tuple[Ints, list[str]]:
    """Return the time of each sample: its stamp, or its log time and a note if it has no stamp."""
    if stamp is None:
        return log_ns, [LOGGED]
    zero = stamp == 0
    if clock != "utc" or not zero.any():
        return stamp, []
    note = f"{topic}: {np.count_nonzero(zero)} of {len(stamp)} header stamps are zero, their log time is used"
    return np.where(zero, log_ns, stamp), [note]


def frame_name(frame_id: str) -> str:
    """Return a frame's name in the convention of tf2: without the leading slash of older ROS."""
    return frame_id.lstrip("/")


def _pop(values: Columns, names: tuple[str, ...]) -> list[str]:
    found = next((name for name in names if name in values), None)
    return values.pop(found) if found is not None else []


def _is_nested(column: Any) -> bool:
    return isinstance(column, Lists) and isinstance(column.values, dict)


def arrow_column(column: Any) -> Any:
    """Return a decoded column for Arrow: lists of equal length with fixed size, None if all are empty."""
    if isinstance(column, Lists):
        return _list_column(column)
    if isinstance(column, np.ndarray) and column.ndim > 1 and column.dtype == np.bool_:
        return column.astype(np.uint8)
    return column


def _list_column(lists: Lists) -> Any:
    if isinstance(lists.values, dict):
        return lists.lengths
    if not lists.offsets[-1]:
        return None
    if isinstance(lists.values, list):
        return pa.LargeListArray.from_arrays(arrow.from_numpy(lists.offsets), arrow.strings(lists.values))
    values: NDArray[Any] = lists.values.astype(np.uint8) if lists.values.dtype == np.bool_ else lists.values
    lengths = lists.lengths
    if bool((lengths == lengths[0]).all()):
        return values.reshape(len(lengths), -1)
    return arrow.ragged_from_offsets(values, lists.offsets)
