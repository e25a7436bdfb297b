"""Mapping of Rock and CDFF types to transect types and of their fields to canonical columns.

Field names are those of the ESROCOS types of CDFF and of the Rock types `/base/samples/*` from which they are
derived; `FlatColumns` normalises their spelling. Fields without a canonical column keep their names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import transect.types as types
from transect.base.arrays import Floats
from transect.base.units import to_si
from transect.errors import StreamError
from transect.recording import arrow
from transect.recording.arrow import LOG_NS, PAYLOAD, T_NS
from transect.recording.stream import Role
from transect.types import (
    Image,
    Imu,
    JointState,
    LaserScan,
    NavFix,
    PointCloud,
    Pose,
    Record,
    RigidBodyState,
    Transform,
    Wrench,
    type_from_alias,
)

from .columns import LOGICAL, FlatColumns, require_columns, split
from .times import Ticks

QuaternionOrder = Literal["xyzw", "wxyz"]


@dataclass(frozen=True)
class OrderDetection:
    """Thresholds of `detect_order`."""

    min_attitudes: int = 10
    max_scalar: float = 1e-9  # of a scalar part that is zero throughout
    max_norm_error: float = 1e-3  # of a unit quaternion
    min_rotation: float = 1e-3  # range of a component, and relative scatter about one axis
    max_motion_m: float = 1e-6  # of the constant position of a joint


DETECTION = OrderDetection()
_HINT = "--option quaternion=wxyz, or xyzw, decides it"


def detect_order(numbers: Floats, positions: Floats | None) -> tuple[QuaternionOrder, str]:
    """Detect the order of quaternion components, with a note where it is unusual or ambiguous.

    CDFF's four numbers are x, y, z, w; some logs have w first without documenting it. It is detectable for a
    joint that rotates about one axis: in the wrong order the scalar part is zero throughout, as if the body
    were always rotated by exactly 180 degrees about a varying axis.

    Parameters
    ----------
    numbers : (n, 4) array
        As recorded.
    positions : (n, 3) array or None
        A moving body can be rotated by 180 degrees throughout (a z axis that points down), so only the
        attitude of a joint, whose position is constant, is read as w, x, y, z.
    """
    q = numbers[np.isfinite(numbers).all(axis=1)]
    if (
        len(q) < DETECTION.min_attitudes
        or (np.abs(np.linalg.norm(q, axis=1) - 1.0) > DETECTION.max_norm_error).any()
    ):
        return "xyzw", ""
    if (np.abs(q[:, 3]) > DETECTION.max_scalar).any() or np.median(np.abs(q[:, 0])) < 0.5:
        return "xyzw", ""
    rotates = np.ptp(q, axis=0).max() > DETECTION.min_rotation
    if rotates and _is_one_axis(q[:, 1:]) and _is_constant(positions):
        return "wxyz", (
            "orientations are written scalar first (read as x, y, z, w the body would always be turned by "
            f"exactly 180 degrees, about a wandering axis): read as w, x, y, z; {_HINT}"
        )
    return "xyzw", (
        "orientations have no scalar part throughout: half a turn all the time, or written scalar first; "
        f"read as x, y, z, w; {_HINT}"
    )


def _is_one_axis(vectors: Floats) -> bool:
    """Whether all vectors are parallel."""
    values = np.linalg.svd(vectors, compute_uv=False)
    return bool(values[1] <= DETECTION.min_rotation * values[0])


def _is_constant(positions: Floats | None) -> bool:
    if positions is None:
        return True
    valid = positions[np.isfinite(positions).all(axis=1)]
    return not len(valid) or bool(np.ptp(valid, axis=0).max() <= DETECTION.max_motion_m)


TRANSECT_PREFIX = "/transect/"
"""Prefix of the names of transect types without a CDFF type."""
XYZ, QUATERNION = ("x", "y", "z"), ("qx", "qy", "qz", "qw")
COVARIANCES = ("cov_position", "cov_orientation", "cov_velocity", "cov_angular_velocity")
TIMES = tuple(
    f"{name}{unit}"
    for name in ("timestamp", "reftime", "time", "metadata.timestamp", "metadata.childtime")
    for unit in (".microseconds", "")
)
"""Fields of the time of samples."""
DEPTHS = {"|u1": "8U", "|i1": "8S", "<u2": "16U", "<i2": "16S", "<i4": "32S", "<f4": "32F", "<f8": "64F"}
"""Pixel types and their names in CDFF."""
FIRST_VALID_RANGE_MM = 6
"""Smaller ranges are Rock's error codes: too far, too near, measurement error, ..."""
_FIXES = {
    "NO_SOLUTION": "none",
    "INVALID": "none",
    "AUTONOMOUS_2D": "2d",
    "AUTONOMOUS": "3d",
    "DIFFERENTIAL": "differential",
    "RTK_FLOAT": "rtk float",
    "RTK_FIXED": "rtk fixed",
}


@dataclass
class MappedColumns:
    """Canonical columns of a stream, and notes."""

    columns: dict[str, Any] = field(default_factory=dict[str, Any])
    units: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])

    def add(self, rows: NDArray[Any] | None, *names: str) -> None:
        """Add the columns of (n, k) rows, if not None."""
        self.columns.update(split(rows, names))

    def put(self, name: str, column: Any) -> None:
        """Add a column, if not None."""
        if column is not None:
            self.columns[name] = column


def read_sample_time(flat: FlatColumns) -> Ticks | None:
    """Return the time of the samples in ticks, or None."""
    ticks = flat.ticks(*TIMES)
    return None if ticks is None else Ticks(ticks, "the samples' own time")


Mapper = Callable[[FlatColumns, MappedColumns, QuaternionOrder | None], None]


@dataclass(frozen=True)
class TypeMapping:
    """A transect type and the function that maps its columns."""

    type: type
    mapper: Mapper
    role: Role = "measurement"

    def columns_of(self, flat: FlatColumns, order: QuaternionOrder | None = None) -> MappedColumns:
        """Return all columns; raise StreamError if a required one is missing."""
        mapped = MappedColumns(units=dict(getattr(self.type, "units", dict)()))
        self.mapper(flat, mapped, order)
        for name, column in flat.rest().items():
            mapped.columns[_unused_name(name, mapped.columns)] = column
        return mapped


def _unused_name(name: str, taken: Collection[str]) -> str:
    """Return a name that is neither taken nor reserved."""
    while name in taken or name in (T_NS, LOG_NS, PAYLOAD, LOGICAL):
        name += "_"
    return name


def _record(flat: FlatColumns, mapped: MappedColumns, order: QuaternionOrder | None) -> None:
    """Keep all columns with their names."""


def _orientation(
    flat: FlatColumns, positions: Floats | None, order: QuaternionOrder | None, mapped: MappedColumns
) -> Floats | None:
    """Return (n, 4) quaternions x, y, z, w; Rock names their components, CDFF does not."""
    imaginary, real = flat.vector(3, "orientation.im"), flat.numbers("orientation.re")
    if imaginary is not None and real is not None:
        return np.column_stack([imaginary, real])
    numbers = flat.vector(4, "orient", "orientation", "data.orientation")
    if numbers is None:
        return None
    if order is None:
        order, note = detect_order(numbers, positions)
        mapped.notes += [note] if note else []
    return np.roll(numbers, -1, axis=1) if order == "wxyz" else numbers


def _pose(flat: FlatColumns, mapped: MappedColumns, order: QuaternionOrder | None) -> None:
    positions = flat.vector(3, "pos", "position", "data.translation")
    mapped.add(positions, *XYZ)
    mapped.add(_orientation(flat, positions, order, mapped), *QUATERNION)
    require_columns(mapped.columns, "x", "qw")


def _state(flat: FlatColumns, mapped: MappedColumns, order: QuaternionOrder | None) -> None:
    _pose(flat, mapped, order)
    mapped.add(flat.vector(3, "velocity"), "vx", "vy", "vz")
    mapped.add(flat.vector(3, "angularvelocity"), "wx", "wy", "wz")
    for name in COVARIANCES:
        mapped.put(name, flat.vector(9, name.replace("_", "")))
    for name in ("source_frame", "target_frame"):
        frames = flat.texts(name.replace("_", ""))
        mapped.put(name, frames)
        if frames is not None and len(set(frames)) > 1:
            mapped.notes.append(f"its {name} changes: {', '.join(sorted(set(frames)))}")


def _transform(flat: FlatColumns, mapped: MappedColumns, order: QuaternionOrder | None) -> None:
    _pose(flat, mapped, order)
    mapped.put("covariance", flat.vector(36, "data.cov"))
    for name, path in (("target_frame", "parentframeid"), ("source_frame", "childframeid")):
        mapped.put(name, flat.texts(f"metadata.{path}"))
    estimated = flat.vector(7, "metadata.dataestimated")
    mapped.put("estimated", None if estimated is None else estimated.astype(bool).astype(np.uint8))
    mapped.put("producer", flat.texts("metadata.producerid"))
    _add_second_time(flat, mapped, "target_t_ns", "metadata.parenttime")


def _add_second_time(flat: FlatColumns, mapped: MappedColumns, name: str, *paths: str) -> None:
    """Add a second time of the samples."""
    ticks = flat.ticks(*(f"{path}.microseconds" for path in paths))
    if ticks is not None:
        mapped.columns[name] = Ticks(ticks, name).to_ns()[0]
        mapped.units[name] = "ns"


def _imu(flat: FlatColumns, mapped: MappedColumns, order: QuaternionOrder | None) -> None:
    mapped.add(flat.vector(3, "acc"), "acc_x", "acc_y", "acc_z")
    mapped.add(flat.vector(3, "gyro"), "gyro_x", "gyro_y", "gyro_z")
    # The types define no unit of the magnetometer: Xsens writes it relative to the field at its calibration.
    mapped.add(flat.vector(3, "mag"), "mag_raw_x", "mag_raw_y", "mag_raw_z")
    require_columns(mapped.columns, "acc_x", "gyro_x")


def _wrench(flat: FlatColumns, mapped: MappedColumns, order: QuaternionOrder | None) -> None:
    mapped.add(flat.vector(3, "force"), "fx", "fy", "fz")
    mapped.add(flat.vector(3, "torque"), "tx", "ty", "tz")
    require_columns(mapped.columns, "fx")


def _joints(flat: FlatColumns, mapped: MappedColumns, order: QuaternionOrder | None) -> None:
    named = {"position": "position", "speed": "velocity", "effort": "effort"}
    extra = {"raw": "raw", "acceleration": "acceleration"}
    for path, name in {**named, **extra}.items():
        one = flat.numbers(path) if flat.has(path) else None
        many = flat.lists(f"elements.{path}")
        if one is not None:
            mapped.columns[name] = one.astype(np.float64).reshape(-1, 1)
        elif many is not None:
            mapped.columns[name] = _equal_or_ragged(many[0].astype(np.float64), many[1])
    mapped.put("names", flat.column("names"))
    mapped.units["acceleration"] = "rad/s2"
    require_columns(mapped.columns, "position")


def _equal_or_ragged(values: NDArray[Any], offsets: NDArray[np.int64]) -> Any:
    lengths = np.diff(offsets)
    if len(lengths) and lengths[0] and (lengths == lengths[0]).all():
        return values.reshape(len(lengths), -1)
    return arrow.ragged_from_offsets(values, offsets)


def _scan(flat: FlatColumns, mapped: MappedColumns, order: QuaternionOrder | None) -> None:
    ranges = flat.lists("ranges")
    if ranges is None:
        raise StreamError("it has no ranges")
    values, offsets = ranges
    bad = values < FIRST_VALID_RANGE_MM
    metres = np.where(bad, np.nan, to_si(values, "mm"))
    mapped.columns["ranges"] = arrow.ragged_from_offsets(metres, offsets)
    if bad.any():
        codes = np.where(bad, values, 0).clip(0).astype(np.uint16)
        mapped.columns["range_error"] = arrow.ragged_from_offsets(codes, offsets)
    for name, path in (("start_angle", "startangle"), ("angle_increment", "angularresolution")):
        mapped.columns[name] = _floats(flat, path)
    for name, path in (("range_min", "minrange"), ("range_max", "maxrange")):
        mapped.columns[name] = to_si(_floats(flat, path), "mm")
    if flat.has("speed"):
        mapped.columns["speed"] = _floats(flat, "speed")
        mapped.units["speed"] = "rad/s"
    remission = flat.lists("remission")
    if remission is not None and len(remission[0]):
        mapped.columns["remission"] = arrow.ragged_from_offsets(remission[0].astype(np.float64), remission[1])
    mapped.notes.append("ranges are read as millimetres, as in Rock: the type does not say")


def _floats(flat: FlatColumns, name: str) -> Floats:
    numbers = flat.numbers(name)
    return np.full(len(flat), np.nan) if numbers is None else numbers.astype(np.float64)


def _fix(flat: FlatColumns, mapped: MappedColumns, order: QuaternionOrder | None) -> None:
    if not flat.has("latitude") or not flat.has("longitude"):
        raise StreamError("it has no latitude and longitude")
    mapped.columns["lat"] = to_si(_floats(flat, "latitude"), "deg")
    mapped.columns["lon"] = to_si(_floats(flat, "longitude"), "deg")
    mapped.columns["alt"] = _floats(flat, "altitude")
    for name, path in (("north", "latitude"), ("east", "longitude"), ("down", "altitude")):
        if flat.has(f"deviation{path}"):
            mapped.columns[f"std_{name}"] = _floats(flat, f"deviation{path}")
    fixes = flat.texts("positiontype")
    if fixes is not None:
        mapped.columns["fix"] = [_FIXES.get(fix, fix) for fix in fixes]
    mapped.put("satellites", flat.numbers("noofsatellites"))


def _add_byte_range(flat: FlatColumns, mapped: MappedColumns, name: str, *paths: str) -> None:
    """Add the byte range of a payload's array in its file."""
    for path in paths:
        begin, size = flat.ticks(f"{path}.at"), flat.ticks(f"{path}.size")
        if begin is not None and size is not None:
            mapped.columns |= {f"{name}_byte": begin, f"{name}_size": size}
            return


def _frame(flat: FlatColumns, mapped: MappedColumns, order: QuaternionOrder | None) -> None:
    _add_byte_range(flat, mapped, "image", "data.data", "image")
    named = {
        "width": ("data.cols", "size.width"),
        "height": ("data.rows", "size.height"),
        "row_size": ("data.rowsize", "rowsize"),
        "channels": ("data.channels",),
        "data_depth": ("datadepth",),
        "pixel_size": ("pixelsize",),
    }
    for name, paths in named.items():
        numbers = flat.numbers(*paths)
        mapped.put(name, None if numbers is None else numbers.astype(np.int64))
    texts = {
        "depth": ("data.depth",),
        "mode": ("metadata.mode", "framemode"),
        "status": ("metadata.status", "framestatus"),
    }
    for name, paths in texts.items():
        mapped.put(name, flat.texts(*paths))
    _add_second_time(flat, mapped, "received_ns", "metadata.receivedtime", "receivedtime")
    require_columns(mapped.columns, "image_byte", "width", "height")


def _cloud(flat: FlatColumns, mapped: MappedColumns, order: QuaternionOrder | None) -> None:
    _add_byte_range(flat, mapped, "points", "data.points", "points")
    _add_byte_range(flat, mapped, "colors", "data.colors", "colors")
    _add_byte_range(flat, mapped, "intensity", "data.intensity")
    require_columns(mapped.columns, "points_byte")


_MAPPERS: dict[type, TypeMapping] = {
    Imu: TypeMapping(Imu, _imu),
    RigidBodyState: TypeMapping(RigidBodyState, _state, "estimate"),
    Pose: TypeMapping(Pose, _pose, "estimate"),
    Transform: TypeMapping(Transform, _transform, "estimate"),
    JointState: TypeMapping(JointState, _joints),
    LaserScan: TypeMapping(LaserScan, _scan),
    Wrench: TypeMapping(Wrench, _wrench),
    NavFix: TypeMapping(NavFix, _fix),
    Image: TypeMapping(Image, _frame),
    PointCloud: TypeMapping(PointCloud, _cloud),
}
RECORD = TypeMapping(Record, _record)
_MORE_ALIASES = {"JointState": JointState, "Solution": NavFix}
_BY_FIELDS: Sequence[tuple[type, tuple[str, ...]]] = (
    (Imu, ("acc", "gyro")),
    (RigidBodyState, ("pos", "orient", "velocity")),
    (RigidBodyState, ("position", "velocity", "sourceframe")),
    (LaserScan, ("ranges", "startangle")),
    (JointState, ("elements.position", "names")),
    (Image, ("data.rows", "data.cols")),
    (PointCloud, ("data.points.at",)),
)


def find_mapping(type_name: str, flat: FlatColumns) -> TypeMapping:
    """Return the mapping of a stream by the name of its type, or by its fields if that is unknown.

    Parameters
    ----------
    type_name : str
        `RigidBodyState`, `asn1SccFrame`, `/base/samples/IMUSensors`, ...; `TRANSECT_PREFIX` with a transect
        type for its canonical columns; "" if unknown.
    flat : Flat
        Some samples.
    """
    own = (
        getattr(types, type_name.removeprefix(TRANSECT_PREFIX), None)
        if type_name.startswith(TRANSECT_PREFIX)
        else None
    )
    if isinstance(own, type):
        return TypeMapping(own, _record)
    wanted = type_from_alias(type_name) or _MORE_ALIASES.get(type_name.rsplit("/", 1)[-1])
    if wanted is None and not type_name:
        wanted = next((kind for kind, names in _BY_FIELDS if all(flat.has(n) for n in names)), None)
    kind = _MAPPERS.get(wanted, RECORD) if wanted is not None else RECORD
    try:
        kind.columns_of(FlatColumns(flat.table))
    except StreamError:
        return RECORD
    return kind
