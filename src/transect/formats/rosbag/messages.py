"""Streams as ROS messages: the inverse of `messages`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.recording import Stream, arrow
from transect.recording.arrow import LOG_NS, PAYLOAD, T_NS
from transect.types import Imu, JointState, LaserScan, NavFix, Odometry, Pose, RigidBodyState, Twist, Wrench
from transect.types.returns import MEASUREMENT_ERROR, TOO_FAR, TOO_NEAR

from ..shared.bags.bag_file import Channel
from ..shared.bags.ros_decoder import PADDING, dtype_of
from ..shared.bags.ros_messages import FIX_OF_STATUS, FIX_SIGMAS, NS, UNMEASURED, mapping_of
from ..shared.bags.ros_types import ARRAY_NODE, BASE_NODE, NAME_NODE, candidates, standard_store, store_of
from ..shared.bags.topics import LABELS
from ..shared.bags.transforms import TF_TYPES
from ..shared.interface import Note

HEADER = "std_msgs/msg/Header"
TIMES = ("builtin_interfaces/msg/Time", "builtin_interfaces/msg/Duration")
TYPES: dict[type, str] = {
    Imu: "sensor_msgs/msg/Imu",
    NavFix: "sensor_msgs/msg/NavSatFix",
    LaserScan: "sensor_msgs/msg/LaserScan",
    JointState: "sensor_msgs/msg/JointState",
    Odometry: "nav_msgs/msg/Odometry",
    Pose: "geometry_msgs/msg/PoseStamped",
    RigidBodyState: "geometry_msgs/msg/PoseStamped",
    Twist: "geometry_msgs/msg/TwistStamped",
    Wrench: "geometry_msgs/msg/WrenchStamped",
}
"""Message types for streams that were not read from ROS."""
_WITH_COVARIANCE = {
    "geometry_msgs/msg/PoseStamped": "geometry_msgs/msg/PoseWithCovarianceStamped",
    "geometry_msgs/msg/TwistStamped": "geometry_msgs/msg/TwistWithCovarianceStamped",
}
_FILLS: dict[str, dict[str, float]] = {
    "sensor_msgs/msg/NavSatFix": dict.fromkeys(("latitude", "longitude", "altitude"), np.nan),
    "sensor_msgs/msg/LaserScan": dict.fromkeys(("angle_min", "angle_max", "angle_increment"), np.nan)
    | {"range_max": np.inf},
}
"""Values of unmeasured fields in which 0 would be taken for a measurement."""
_QUATERNION_W = ("orientation.w", "rotation.w")
_UNKNOWN_IS_0 = ("covariance", "covariance_type", "time_increment", "scan_time", "range_min")
"""Fields in which 0 means unknown in ROS."""
Make = Callable[[int], Any]


@dataclass(frozen=True)
class Outgoing:
    """The messages of one topic."""

    name: str  # Name of the stream
    type: str
    store: Any  # Type store with the type
    log_ns: Ints  # (n,) int64 log times
    message: Callable[[int], bytes]  # Returns message number i, serialised
    unmeasured: tuple[str, ...] = ()  # Unmeasured columns, for which messages have placeholder values
    # Attributes that ROS does not have: the stream's clock, role, tag and child frame
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


def make_serialiser(store: Any, encoding: str, kind: str, make: Make) -> Callable[[int], bytes]:
    """Return a function that makes message i and writes it in an encoding."""
    write = store.serialize_ros1 if encoding == "ros1" else store.serialize_cdr
    return lambda i: bytes(write(make(i), kind))


def log_times(stream: Stream) -> Ints:
    """Return the log times of samples, or the sample times if these are unknown."""
    return stream.t_ns if stream.log_ns is None else stream.log_ns


def labels_of(stream: Stream) -> dict[str, str]:
    """Return the attributes that ROS does not have, of a stream that was not read from ROS."""
    if "channel" in stream.meta:
        return {}
    return {name: getattr(stream, name) for name in LABELS}


def types_for(stream: Stream, encoding: str) -> list[tuple[str, Any]]:
    """Return the message types for a stream, its original type first, each with its type store."""
    found: list[tuple[str, Any]] = []
    channel, standard = stream.meta.get("channel"), standard_store(encoding)
    if isinstance(channel, Channel):
        own = _own_store(channel) if channel.encoding == encoding else None
        found += [(channel.type, own)] if own is not None else []
        found += [(channel.type, standard)] if channel.type in standard.fielddefs else []
        if not found and channel.type in TF_TYPES:  # ROS 1 has two types of the same content
            found = [(kind, standard) for kind in TF_TYPES if kind in standard.fielddefs]
    kind = TYPES.get(stream.type)
    if (
        kind in _WITH_COVARIANCE
        and "covariance" in stream.columns
        and stream["covariance"].shape[1:] == (36,)
    ):
        kind = _WITH_COVARIANCE[kind]
    return found if found or kind is None else [(kind, standard)]


@cache
def _cached_store(kind: str, definition: str, language: str, encoding: str) -> Any:
    types = next((types for types, _ in candidates(Channel("", kind, encoding, definition, language))), None)
    return None if types is None else store_of({name: types[name] for name in types})


def _own_store(channel: Channel) -> Any:
    """Return the type store of a channel's own definition."""
    if not channel.definition:
        return None
    return _cached_store(channel.type, channel.definition, channel.definition_kind, channel.encoding)


def columns_outgoing(stream: Stream, encoding: str) -> tuple[Outgoing | None, list[str]]:
    """Return a stream of columns as messages, and sentences on what they cannot represent."""
    builders = [_TableMessages(store, stream, kind) for kind, store in types_for(stream, encoding)]
    if not builders:
        channel = stream.meta.get("channel")
        kind = channel.type if isinstance(channel, Channel) else stream.type.__name__
        return None, [f"{stream.name} is not written: there is no message for a {kind}"]
    builder = min(builders, key=lambda builder: len(builder.unused))
    kind = builder.kind
    notes: list[str] = []
    if builder.unused:
        notes.append(f"{stream.name}: {kind} has no place for {', '.join(builder.unused)}")
    notes += [f"{stream.name}: the lists {path} are written empty" for path in builder.emptied]
    if builder.rounded:
        notes.append(
            Note(f"{stream.name}: {kind} has fewer digits, rounded are {', '.join(builder.rounded)}")
        )
    if builder.filled and len(stream):
        unit = " (qw 1)" if "qw" in builder.filled else ""
        notes.append(Note(f"{stream.name}: not measured, so {kind} has 0{unit}: {', '.join(builder.filled)}"))
    message = make_serialiser(builder.store, encoding, kind, builder.make)
    attributes = (tuple(builder.unmeasured), labels_of(stream))
    return Outgoing(stream.name, kind, builder.store, log_times(stream), message, *attributes), notes


def _values(table: pa.Table, name: str) -> Any:
    kind = table.schema.field(name).type
    if pa.types.is_large_string(kind) or pa.types.is_string(kind):
        return arrow.texts(table, name)
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return table.column(name).to_pylist()
    return arrow.numbers(table, name)


def _has_nan(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind == "f" and bool(np.isnan(column).any())


def _is_rounded(row: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether converting a list of numbers to a type changes them."""
    numbers = np.asarray(row)
    return numbers.dtype != dtype and not np.array_equal(
        numbers.astype(dtype), numbers, equal_nan=numbers.dtype.kind == "f"
    )


class _TableMessages:
    """Makes messages from the columns of a stream; fields without a column have the placeholders of ROS."""

    def __init__(self, store: Any, stream: Stream, kind: str) -> None:
        self.store, self.kind = store, kind
        self.emptied: list[str] = []  # Lists of structs that are left empty
        self.filled: list[str] = []  # Unmeasured columns whose placeholder could be taken for a measurement
        self.unmeasured: list[str] = []  # All unmeasured columns of floats
        self.rounded: list[str] = []  # Columns whose numbers have more digits than the message
        self._stream = stream
        self._columns = {name: _values(stream.table, name) for name in stream.columns}
        if len(stream) and self._columns:
            mapping_of(kind).restore(self._columns)
        self._drop_unmeasured()
        self._t_ns: list[int] = stream.t_ns.tolist()
        self._used: set[str] = {T_NS, LOG_NS, PAYLOAD}
        self._names = mapping_of(kind).columns
        self._child = mapping_of(kind).child
        self.make = self.tf() if kind in TF_TYPES else self.struct(kind, "")

    def _drop_unmeasured(self) -> None:
        """Drop columns without numbers, and set unknown covariances to 0, unless read from ROS."""
        ours = None if "channel" not in self._stream.meta else self._stream.meta.get(UNMEASURED, ())
        for name, column in list(self._columns.items()):
            if (ours is not None and name not in ours) or not _has_nan(column):
                continue
            if (column.ndim == 1 or "covariance" in name) and np.isnan(column).all():
                del self._columns[name]
            elif "covariance" in name:
                self._columns[name] = np.nan_to_num(column)
                self.filled.append(name)

    @property
    def unused(self) -> list[str]:
        """Columns that are not written."""
        derived: set[str] = set()
        if self._stream.type is NavFix:
            derived = set(FIX_SIGMAS)
            derived |= {"fix"} if self._is_fix_in_status() else set()
        if self._stream.type is LaserScan and self._are_errors_in_ranges():
            derived = {"range_error"}
        return [name for name in self._stream.columns if name not in self._used | derived]

    def _is_fix_in_status(self) -> bool:
        """Return whether the status of the message can represent the fix types; it has no RTK."""
        return "fix" not in self._stream.columns or set(self._stream["fix"]) <= set(FIX_OF_STATUS.values())

    def _are_errors_in_ranges(self) -> bool:
        """Return whether infinite ranges (REP 117) can represent the range errors of the scans."""
        if "range_error" not in self._stream.columns:
            return True
        errors = arrow.lists_of(self._stream.table, "range_error")[0]
        return bool(np.isin(errors, (0, TOO_FAR, TOO_NEAR, MEASUREMENT_ERROR)).all())

    def _column(self, path: str) -> Any:
        name = self._names.get(path, path)
        name = name if name in self._columns else name.lower()  # see `_adapt_camera`
        self._used.add(name)
        return self._columns.get(name)

    def struct(self, kind: str, path: str) -> Make:
        """Return a function that makes message i of a type from the columns under a path."""
        if kind == HEADER and path in ("header", "info.header"):
            return self._header()
        if kind in TIMES:
            return self._time(kind, path)
        cls = self.store.types[kind]
        prefix = f"{path}." if path else ""
        makers = [
            self._field(prefix + name, node)
            for name, node in self.store.fielddefs[kind][1]
            if name != PADDING
        ]
        return lambda i: cls(*[make(i) for make in makers])

    def _header(self) -> Make:
        make = header_maker(self.store.types)
        frames = self._column("frame_id") or [self._stream.frame] * len(self._t_ns)
        return lambda i: make(i, self._t_ns[i], frames[i])

    def _time(self, kind: str, path: str) -> Make:
        cls = self.store.types[kind]
        column = self._column(f"{path}_ns")
        times = self._t_ns if column is None and path == "stamp" else column
        if times is None:
            self.filled.append(f"{path}_ns")
            return lambda _: cls(0, 0)
        return lambda i: cls(*divmod(int(times[i]), NS))

    def _field(self, path: str, node: Any) -> Make:
        shape, inner = node
        if shape == NAME_NODE:
            return self.struct(inner, path)
        if shape == BASE_NODE:
            return self._child_name(path) if path == self._child else self._scalar(path, inner[0])
        element, size = inner
        if element[0] == NAME_NODE:
            return self._structs(path, element[1], size if shape == ARRAY_NODE else 0)
        if element[1][0] == "string":
            texts = self._column(path)
            return lambda i: (
                list(texts[i]) if texts is not None else [""] * (size if shape == ARRAY_NODE else 0)
            )
        return self._numbers(path, dtype_of(element[1][0]), size if shape == ARRAY_NODE else 0)

    def _child_name(self, path: str) -> Make:
        children = self._column(path) or [self._stream.child] * len(self._t_ns)
        return lambda i: children[i]

    def _scalar(self, path: str, form: str) -> Make:
        column = self._column(path)
        if form == "string":
            return lambda i: "" if column is None else column[i]
        dtype = dtype_of(form)
        if column is None:
            absent = self._not_measured(path, dtype)
            return lambda _: absent
        values = self._measure(path, column, dtype).tolist()
        return lambda i: values[i]

    def _numbers(self, path: str, dtype: np.dtype[Any], size: int) -> Make:
        column = self._column(path)
        if column is None:
            absent = np.full(size, self._not_measured(path, dtype) if size else 0, dtype=dtype)
            return lambda _: absent
        values = self._measure(path, column, dtype) if isinstance(column, np.ndarray) else column
        if isinstance(values, list) and any(_is_rounded(row, dtype) for row in values):
            self.rounded.append(self._names.get(path, path))
        return lambda i: np.ascontiguousarray(values[i], dtype=dtype)

    def _not_measured(self, path: str, dtype: np.dtype[Any]) -> float | int:
        """Return the placeholder of a field without a column."""
        name, fill = self._names.get(path, path), _FILLS.get(self.kind, {}).get(path, 0.0)
        if dtype.kind == "f":
            self.unmeasured.append(name)
            fill = 1.0 if path.endswith(_QUATERNION_W) else fill
        if fill in (0.0, 1.0) and not path.endswith(_UNKNOWN_IS_0):
            self.filled.append(name)
        return fill if dtype.kind == "f" else 0

    def _measure(self, path: str, column: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a column in the type of its field."""
        if column.dtype.kind == "f" and dtype.kind != "f":
            if np.isnan(column).any():
                self.filled.append(self._names.get(path, path))
            column = np.nan_to_num(column)
        with np.errstate(over="ignore", invalid="ignore"):  # overflows are reported below
            written = column.astype(dtype)
        if not np.array_equal(written, column, equal_nan=dtype.kind == "f"):
            self.rounded.append(self._names.get(path, path))
        return written

    def _structs(self, path: str, kind: str, size: int) -> Make:
        column = self._column(path)
        if column is not None and np.any(column):
            self.emptied.append(path)
        if not size:
            return lambda _: []
        make = self.struct(kind, f"{path}[]")
        return lambda i: [make(i) for _ in range(size)]

    def tf(self) -> Make:
        """Return a function that makes a tf message with the one transform of row i."""
        types, columns = self.store.types, self._columns
        self._used |= set(columns)
        message = types[next(kind for kind in TF_TYPES if kind in types)]
        make = transform_maker(types, columns["parent"], columns["child"], self._t_ns)
        xyz = np.column_stack([columns[axis] for axis in "xyz"])
        q = np.column_stack([columns[f"q{axis}"] for axis in "xyzw"])
        return lambda i: message([make(i, xyz[i], q[i])])


def header_maker(types: Any) -> Callable[[int, int, str], Any]:
    """Return a function that makes the header of message i from its time in ns and its frame."""
    header, time = types[HEADER], types[TIMES[0]]
    numbered = "seq" in header.__dataclass_fields__

    def make(i: int, t_ns: int, frame: str) -> Any:
        stamp = time(*divmod(int(t_ns), NS))
        return header(i, stamp, frame) if numbered else header(stamp, frame)

    return make


def transform_maker(
    types: Any, parents: Sequence[str], children: Sequence[str], t_ns: Sequence[int]
) -> Callable[..., Any]:
    """Return a function that makes TransformStamped i from a position and a quaternion x, y, z, w."""
    geometry, header = "geometry_msgs/msg", header_maker(types)

    def make(i: int, xyz: Any, q: Any) -> Any:
        translation = types[f"{geometry}/Vector3"](*map(float, xyz))
        rotation = types[f"{geometry}/Quaternion"](*map(float, q))
        transform = types[f"{geometry}/Transform"](translation, rotation)
        return types[f"{geometry}/TransformStamped"](header(i, t_ns[i], parents[i]), children[i], transform)

    return make
