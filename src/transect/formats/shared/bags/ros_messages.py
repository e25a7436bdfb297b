"""ROS messages as transect types: which field becomes which column, in which unit.

The column names of a type are those of `transect.types`; what a message has besides keeps its own name, the
path of the field. Stamps become nanoseconds, lists become list columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect import types
from transect.base.arrays import Ints
from transect.base.clocks import NS
from transect.base.units import from_si, to_si
from transect.recording import arrow
from transect.types.returns import errors_from_infinities, infinities_from_errors

from .ros_decoder import Columns, Lists

LOGGED = "messages without a stamp of their own have the time at which they were logged"
Convert = Callable[[dict[str, Any]], None]
_STAMPS = ("header.stamp_ns", "info.header.stamp_ns", "stamp_ns")
_FRAMES = ("header.frame_id", "info.header.frame_id")
_SEQUENCE_NUMBERS = ("header.seq", "info.header.seq")
UNMEASURED = "unmeasured"
"""Key of `Stream.meta`: columns that our own writer had no values for."""
FIX_OF_STATUS = {-1: "none", 0: "3d", 1: "sbas", 2: "differential"}


def _keep(columns: dict[str, Any]) -> None:
    """Convert nothing."""


@dataclass(frozen=True)
class Kind:
    """What a message type is here."""

    name: str = "Record"  # Name of the transect type
    # Path of a field to the name of its column; other fields keep their path as name
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    # Units of columns that the type itself does not know
    units: Mapping[str, str] = field(default_factory=dict[str, str])
    child: str = ""  # Path of the field that names the frame which moves
    headed: bool = True  # Whether the message begins with a header
    adapt: Convert = _keep  # Change columns in place from the message's conventions to ours, and back
    restore: Convert = _keep
    extra: tuple[str, ...] = ()  # Paths of further fields that `adapt` needs

    @property
    def type(self) -> type:
        """The transect type; only the types of what a bag holds are imported."""
        return getattr(types, self.name)

    @property
    def needs(self) -> frozenset[str]:
        """Paths of the fields without which a message cannot be what its type says."""
        return frozenset((*self.columns, *self.extra))


def _vector(path: str, names: str) -> dict[str, str]:
    return {f"{path}.{axis}".lstrip("."): name for axis, name in zip("xyzw", names.split(), strict=False)}


def _pose(path: str) -> dict[str, str]:
    path = f"{path}." if path else ""
    return {**_vector(f"{path}position", "x y z"), **_vector(f"{path}orientation", "qx qy qz qw")}


def _twist(path: str) -> dict[str, str]:
    path = f"{path}." if path else ""
    return {**_vector(f"{path}linear", "vx vy vz"), **_vector(f"{path}angular", "wx wy wz")}


def _transform(path: str) -> dict[str, str]:
    return {**_vector(f"{path}translation", "x y z"), **_vector(f"{path}rotation", "qx qy qz qw")}


def _wrench(path: str) -> dict[str, str]:
    return {**_vector(f"{path}force", "fx fy fz"), **_vector(f"{path}torque", "tx ty tz")}


_IMU_PARTS = {
    "orientation_covariance": ("qx", "qy", "qz", "qw"),
    "angular_velocity_covariance": ("gyro_x", "gyro_y", "gyro_z"),
    "linear_acceleration_covariance": ("acc_x", "acc_y", "acc_z"),
}


def _adapt_imu(columns: dict[str, Any]) -> None:
    """A covariance that begins with -1 says that the value was not measured (sensor_msgs/Imu)."""
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
    """Degrees to radians; sigmas from the covariance (east, north, up) where its type is not `unknown`."""
    columns["lat"], columns["lon"] = to_si(columns["lat"], "deg"), to_si(columns["lon"], "deg")
    columns["fix"] = [FIX_OF_STATUS.get(status, "none") for status in columns["status"].tolist()]
    variance = np.where(
        columns["position_covariance_type"][:, None] > 0, columns["position_covariance"], np.nan
    )
    variance = np.where(variance >= 0, variance, np.nan)
    for name, k in (("std_east", 0), ("std_north", 4), ("std_down", 8)):
        columns[name] = np.sqrt(variance[:, k])


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
        sigmas = np.column_stack(
            [columns.get(name, nothing) for name in ("std_east", "std_north", "std_down")]
        )
        known = np.asarray(np.isfinite(sigmas).all(axis=1))[:, None]
        columns["position_covariance"] = np.zeros((len(sigmas), 9))
        columns["position_covariance"][:, ::4] = np.where(known, sigmas**2, 0.0)
        columns["position_covariance_type"] = np.where(known[:, 0], 2, 0).astype(np.uint8)


def _adapt_scan(columns: dict[str, Any]) -> None:
    """REP 117: beams without a range are infinite or NaN; here they are NaN, and the reason stands beside."""
    ranges = columns["ranges"]
    errors = errors_from_infinities(ranges.values)
    columns["ranges"] = Lists(ranges.offsets, np.where(errors, np.float32(np.nan), ranges.values))
    if errors.any():
        columns["range_error"] = Lists(ranges.offsets, errors)


def _restore_scan(columns: dict[str, Any]) -> None:
    rows = zip(columns["ranges"], columns.pop("range_error", ()), strict=False)
    told = [infinities_from_errors(np.array(r, np.float64), np.array(errors)) for r, errors in rows]
    columns["ranges"] = told or columns["ranges"]
    if {"start_angle", "angle_increment"} <= set(columns):
        steps = np.array([len(ranges) - 1 for ranges in columns["ranges"]])
        last = columns["start_angle"] + np.maximum(steps, 0) * columns["angle_increment"]
        known = columns.get("angle_max", np.nan)
        columns["angle_max"] = np.where(np.isnan(known), last, known)


def _adapt_camera(columns: dict[str, Any]) -> None:
    """ROS 1 writes D, K, R, P what ROS 2 writes d, k, r, p."""
    for name in "DKRP":
        if name in columns:
            columns[name.lower()] = columns.pop(name)


_IMU_COLUMNS = {
    **_vector("orientation", "qx qy qz qw"),
    **_vector("angular_velocity", "gyro_x gyro_y gyro_z"),
    **_vector("linear_acceleration", "acc_x acc_y acc_z"),
}
_FIX_COLUMNS = {
    "latitude": "lat",
    "longitude": "lon",
    "altitude": "alt",
    "status.status": "status",
    "status.service": "service",
}
_FIX_EXTRA = ("position_covariance", "position_covariance_type")
_ODOMETRY_COLUMNS = {
    **_pose("pose.pose"),
    **_twist("twist.twist"),
    "pose.covariance": "pose_covariance",
    "twist.covariance": "twist_covariance",
}
_SCAN_COLUMNS = {"angle_min": "start_angle", "intensities": "remission"}
_SCAN_UNITS = {"angle_max": "rad", "time_increment": "s", "scan_time": "s"}
_BATTERY_UNITS = {"voltage": "V", "current": "A", "charge": "A h", "capacity": "A h", "temperature": "degC"}

KINDS: dict[str, Kind] = {
    "sensor_msgs/msg/Imu": Kind(
        "Imu", _IMU_COLUMNS, adapt=_adapt_imu, restore=_restore_imu, extra=tuple(_IMU_PARTS)
    ),
    "sensor_msgs/msg/NavSatFix": Kind(
        "NavFix", _FIX_COLUMNS, adapt=_adapt_fix, restore=_restore_fix, extra=_FIX_EXTRA
    ),
    "sensor_msgs/msg/LaserScan": Kind(
        "LaserScan", _SCAN_COLUMNS, _SCAN_UNITS, adapt=_adapt_scan, restore=_restore_scan, extra=("ranges",)
    ),
    "sensor_msgs/msg/JointState": Kind("JointState", {"name": "names"}),
    "sensor_msgs/msg/MagneticField": Kind(
        "Record",
        _vector("magnetic_field", "mag_x mag_y mag_z"),
        dict.fromkeys(("mag_x", "mag_y", "mag_z"), "T"),
    ),
    "sensor_msgs/msg/FluidPressure": Kind("Record", units={"fluid_pressure": "Pa", "variance": "Pa2"}),
    "sensor_msgs/msg/Temperature": Kind("Record", units={"temperature": "degC", "variance": "degC2"}),
    "sensor_msgs/msg/BatteryState": Kind("Record", units=_BATTERY_UNITS),
    "sensor_msgs/msg/Joy": Kind("Record"),
    "sensor_msgs/msg/CameraInfo": Kind("Record", adapt=_adapt_camera),
    "nav_msgs/msg/Odometry": Kind("Odometry", _ODOMETRY_COLUMNS, child="child_frame_id"),
    "geometry_msgs/msg/Pose": Kind("Pose", _pose(""), headed=False),
    "geometry_msgs/msg/PoseStamped": Kind("Pose", _pose("pose")),
    "geometry_msgs/msg/PoseWithCovariance": Kind("Pose", _pose("pose"), headed=False),
    "geometry_msgs/msg/PoseWithCovarianceStamped": Kind(
        "Pose", {**_pose("pose.pose"), "pose.covariance": "covariance"}
    ),
    "geometry_msgs/msg/Transform": Kind("Pose", _transform(""), headed=False),
    "geometry_msgs/msg/TransformStamped": Kind("Pose", _transform("transform."), child="child_frame_id"),
    "geometry_msgs/msg/Twist": Kind("Twist", _twist(""), headed=False),
    "geometry_msgs/msg/TwistStamped": Kind("Twist", _twist("twist")),
    "geometry_msgs/msg/TwistWithCovariance": Kind("Twist", _twist("twist"), headed=False),
    "geometry_msgs/msg/TwistWithCovarianceStamped": Kind(
        "Twist", {**_twist("twist.twist"), "twist.covariance": "covariance"}
    ),
    "geometry_msgs/msg/Wrench": Kind("Wrench", _wrench(""), headed=False),
    "geometry_msgs/msg/WrenchStamped": Kind("Wrench", _wrench("wrench.")),
    "geometry_msgs/msg/Point": Kind("Record", units=dict.fromkeys("xyz", "m"), headed=False),
    "geometry_msgs/msg/PointStamped": Kind("Record", _vector("point", "x y z"), dict.fromkeys("xyz", "m")),
    "geometry_msgs/msg/Vector3Stamped": Kind("Record", _vector("vector", "x y z")),
    "geometry_msgs/msg/QuaternionStamped": Kind("Record", _vector("quaternion", "qx qy qz qw")),
}
"""Message types that mean more than their fields; all others are rows of named values."""

PAYLOADS = {
    "sensor_msgs/msg/Image": "Image",
    "sensor_msgs/msg/CompressedImage": "Image",
    "sensor_msgs/msg/PointCloud2": "PointCloud",
    "grid_map_msgs/msg/GridMap": "GridMap",
    "nav_msgs/msg/OccupancyGrid": "GridMap",
    "nav_msgs/msg/Path": "Trajectory",
}
"""Message types whose samples are loaded one by one, with their transect types; each begins with a header."""


def kind_of(msgtype: str) -> Kind:
    """Return what a message type is here."""
    return KINDS.get(msgtype, Kind(headed=False))


def fields_of(columns: Columns) -> dict[str, Any]:
    """Return the values of a single message by path; lists as what they hold."""
    values = with_times(columns)
    return {
        path: column.values if isinstance(column, Lists) else column[0] for path, column in values.items()
    }


@dataclass(frozen=True)
class Tabulated:
    """A table, and what a person should know of it."""

    table: pa.Table
    notes: tuple[str, ...]


def tabulate(
    columns: Columns,
    kind: Kind,
    log_ns: Ints,
    *,
    topic: str,
    frame: str = "",
    child: str = "",
    clock: str = "utc",
    unmeasured: Sequence[str] = (),
) -> Tabulated:
    """Return decoded messages as the table of a stream.

    Parameters
    ----------
    columns : Columns
        Of n messages, by the path of the field.
    log_ns : (n,) int64 array
        When each was received.
    topic : str
        For the notes.
    frame, child : str
        What the stream says its frames are; where a message says otherwise they become columns.
    clock : str
        The stream's clock; on `utc` a stamp of zero means that there is none.
    unmeasured : sequence of str
        Columns whose numbers only fill the messages: they become NaN.
    """
    if not len(log_ns):
        units = getattr(kind.type, "units", dict)()
        return Tabulated(arrow.empty(units), ())
    values = with_times(columns)
    stamp = next((values[name] for name in _STAMPS if name in values), None)
    t_ns, notes = sample_times(stamp, log_ns, topic, clock)
    frames = _list_taken_frames(values, {"frame_id": frame, "child_frame_id": child}, kind.child)
    notes += [f"{topic}: its {name} changes" for name, names in frames.items() if len(set(names)) > 1]
    for name in (*_STAMPS, *_SEQUENCE_NUMBERS):
        values.pop(name, None)
    if missing := kind.needs - set(values):
        notes.append(f"{topic}: its messages have no {', '.join(sorted(missing))}: fields keep their names")
        kind = Kind(kind.name)
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
    return Tabulated(table, tuple(notes))


def _list_taken_frames(values: Columns, said: Mapping[str, str], child_path: str) -> dict[str, list[str]]:
    """Take the frames out of the columns; return those that are not what the stream says of all."""
    found = {"frame_id": _pop(values, _FRAMES), "child_frame_id": _pop(values, (child_path,))}
    return {
        name: names
        for name, names in found.items()
        if names and {frame_name(text) for text in set(names)} != {said[name]}
    }


def with_times(columns: Columns) -> Columns:
    """Return the columns with each pair `x.sec`, `x.nanosec` as one column `x_ns` of int64 nanoseconds."""
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
    """Return the time of each sample: its stamp, or when it was logged where it has none, with a note."""
    if stamp is None:
        return log_ns, [LOGGED]
    zero = stamp == 0
    if clock != "utc" or not zero.any():
        return stamp, []
    note = f"{topic}: {np.count_nonzero(zero)} of {len(stamp)} header stamps are zero, their log time is used"
    return np.where(zero, log_ns, stamp), [note]


def frame_name(frame_id: str) -> str:
    """Return a frame's name as tf2 knows it: without the leading slash of older ROS."""
    return frame_id.lstrip("/")


def _pop(values: Columns, names: tuple[str, ...]) -> list[str]:
    found = next((name for name in names if name in values), None)
    return values.pop(found) if found is not None else []


def _is_nested(column: Any) -> bool:
    return isinstance(column, Lists) and isinstance(column.values, dict)


def arrow_column(column: Any) -> Any:
    """Return a decoded column for Arrow: equally long lists with fixed size, None if all are empty."""
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
