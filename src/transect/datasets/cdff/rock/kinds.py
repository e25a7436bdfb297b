"""Rock and CDFF types as transect types: which fields become which canonical columns.

Field names follow the ESROCOS types that CDFF uses and the Rock types `/base/samples/*` they were made after;
`Flat` evens out their spelling. What has no canonical column keeps the name it has in the log.
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

from .columns import LOGICAL, Flat, require_columns, split
from .times import Ticks

Order = Literal["xyzw", "wxyz"]
FEW = 10
"""Below this many attitudes nothing is concluded."""
_ZERO, _UNIT, _TURNED, _STILL = 1e-9, 1e-3, 1e-3, 1e-6
_HINT = "--option quaternion=wxyz, or xyzw, decides it"


def order_of(numbers: Floats, positions: Floats | None) -> tuple[Order, str]:
    """Return the order of some quaternions, and a note where it is not the usual one or may not be.

    CDFF's four numbers are x, y, z, w; some logs have w first, and nothing says so. A joint that turns about
    one axis gives it away: read in the wrong order its scalar part is zero throughout, as if the body were
    always turned by exactly half a turn, about an axis that wanders.

    Parameters
    ----------
    numbers : (n, 4) array
        As recorded.
    positions : (n, 3) array or None
        A body that also moves may well be turned by half a turn all the time (a z axis that points down), so
        only that of a joint, whose position is constant, is read as w, x, y, z.
    """
    q = numbers[np.isfinite(numbers).all(axis=1)]
    if len(q) < FEW or (np.abs(np.linalg.norm(q, axis=1) - 1.0) > _UNIT).any():
        return "xyzw", ""
    if (np.abs(q[:, 3]) > _ZERO).any() or np.median(np.abs(q[:, 0])) < 0.5:
        return "xyzw", ""
    turned = np.ptp(q, axis=0).max() > _TURNED
    if turned and _one_axis(q[:, 1:]) and _still(positions):
        return "wxyz", (
            "orientations are written scalar first (read as x, y, z, w the body would always be turned by "
            f"exactly 180 degrees, about a wandering axis): read as w, x, y, z; {_HINT}"
        )
    return "xyzw", (
        "orientations have no scalar part throughout: half a turn all the time, or written scalar first; "
        f"read as x, y, z, w; {_HINT}"
    )


def _one_axis(vectors: Floats) -> bool:
    """Tell whether all vectors lie along one line."""
    values = np.linalg.svd(vectors, compute_uv=False)
    return bool(values[1] <= _TURNED * values[0])


def _still(positions: Floats | None) -> bool:
    if positions is None:
        return True
    known = positions[np.isfinite(positions).all(axis=1)]
    return not len(known) or bool(np.ptp(known, axis=0).max() <= _STILL)


OWN = "/transect/"
"""Before the name of a transect type for which CDFF has none."""
XYZ, QUATERNION = ("x", "y", "z"), ("qx", "qy", "qz", "qw")
COVARIANCES = ("cov_position", "cov_orientation", "cov_velocity", "cov_angular_velocity")
TIMES = tuple(
    f"{name}{unit}"
    for name in ("timestamp", "reftime", "time", "metadata.timestamp", "metadata.childtime")
    for unit in (".microseconds", "")
)
"""Where samples keep their own time."""
DEPTHS = {"|u1": "8U", "|i1": "8S", "<u2": "16U", "<i2": "16S", "<i4": "32S", "<f4": "32F", "<f8": "64F"}
"""Numbers of an image's pixels, and what CDFF calls them."""
RANGE_ERRORS = 6
"""Ranges below this are Rock's codes for too far, too near, measurement error, ... and no millimetres."""
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
class Mapped:
    """Canonical columns of a stream while they are found, and what was noticed."""

    columns: dict[str, Any] = field(default_factory=dict[str, Any])
    units: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])

    def add(self, rows: NDArray[Any] | None, *names: str) -> None:
        """Add the columns of (n, k) rows, if there are any."""
        self.columns.update(split(rows, names))

    def put(self, name: str, column: Any) -> None:
        """Add a column, if it is there."""
        if column is not None:
            self.columns[name] = column


def own_time(flat: Flat) -> Ticks | None:
    """Return the time that samples have themselves, in ticks."""
    ticks = flat.ticks(*TIMES)
    return None if ticks is None else Ticks(ticks, "the samples' own time")


Mapper = Callable[[Flat, Mapped, Order | None], None]


@dataclass(frozen=True)
class Kind:
    """A transect type and how its columns are found."""

    type: type
    mapper: Mapper
    role: Role = "measurement"

    def columns_of(self, flat: Flat, order: Order | None = None) -> Mapped:
        """Return all columns; raise StreamError if a required one is missing."""
        mapped = Mapped(units=dict(getattr(self.type, "units", dict)()))
        self.mapper(flat, mapped, order)
        for name, column in flat.rest().items():
            mapped.columns[_free(name, mapped.columns)] = column
        return mapped


def _free(name: str, taken: Collection[str]) -> str:
    """Return a name that neither another column has nor a stream's own columns."""
    while name in taken or name in (T_NS, LOG_NS, PAYLOAD, LOGICAL):
        name += "_"
    return name


def _record(flat: Flat, mapped: Mapped, order: Order | None) -> None:
    """Take everything as it is called."""


def _orientation(flat: Flat, positions: Floats | None, order: Order | None, mapped: Mapped) -> Floats | None:
    """Return (n, 4) quaternions x, y, z, w; Rock names their parts, CDFF does not."""
    imaginary, real = flat.vector(3, "orientation.im"), flat.numbers("orientation.re")
    if imaginary is not None and real is not None:
        return np.column_stack([imaginary, real])
    numbers = flat.vector(4, "orient", "orientation", "data.orientation")
    if numbers is None:
        return None
    if order is None:
        order, note = order_of(numbers, positions)
        mapped.notes += [note] if note else []
    return np.roll(numbers, -1, axis=1) if order == "wxyz" else numbers


def _pose(flat: Flat, mapped: Mapped, order: Order | None) -> None:
    positions = flat.vector(3, "pos", "position", "data.translation")
    mapped.add(positions, *XYZ)
    mapped.add(_orientation(flat, positions, order, mapped), *QUATERNION)
    require_columns(mapped.columns, "x", "qw")


def _state(flat: Flat, mapped: Mapped, order: Order | None) -> None:
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


def _transform(flat: Flat, mapped: Mapped, order: Order | None) -> None:
    _pose(flat, mapped, order)
    mapped.put("covariance", flat.vector(36, "data.cov"))
    for name, path in (("target_frame", "parentframeid"), ("source_frame", "childframeid")):
        mapped.put(name, flat.texts(f"metadata.{path}"))
    estimated = flat.vector(7, "metadata.dataestimated")
    mapped.put("estimated", None if estimated is None else estimated.astype(bool).astype(np.uint8))
    mapped.put("producer", flat.texts("metadata.producerid"))
    _also_time(flat, mapped, "target_t_ns", "metadata.parenttime")


def _also_time(flat: Flat, mapped: Mapped, name: str, *paths: str) -> None:
    """Take a second time of the samples."""
    ticks = flat.ticks(*(f"{path}.microseconds" for path in paths))
    if ticks is not None:
        mapped.columns[name] = Ticks(ticks, name).to_ns()[0]
        mapped.units[name] = "ns"


def _imu(flat: Flat, mapped: Mapped, order: Order | None) -> None:
    mapped.add(flat.vector(3, "acc"), "acc_x", "acc_y", "acc_z")
    mapped.add(flat.vector(3, "gyro"), "gyro_x", "gyro_y", "gyro_z")
    # The types give the magnetometer no unit: Xsens writes it relative to the field where it was calibrated.
    mapped.add(flat.vector(3, "mag"), "mag_raw_x", "mag_raw_y", "mag_raw_z")
    require_columns(mapped.columns, "acc_x", "gyro_x")


def _wrench(flat: Flat, mapped: Mapped, order: Order | None) -> None:
    mapped.add(flat.vector(3, "force"), "fx", "fy", "fz")
    mapped.add(flat.vector(3, "torque"), "tx", "ty", "tz")
    require_columns(mapped.columns, "fx")


def _joints(flat: Flat, mapped: Mapped, order: Order | None) -> None:
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


def _scan(flat: Flat, mapped: Mapped, order: Order | None) -> None:
    ranges = flat.lists("ranges")
    if ranges is None:
        raise StreamError("it has no ranges")
    values, offsets = ranges
    bad = values < RANGE_ERRORS
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


def _floats(flat: Flat, name: str) -> Floats:
    numbers = flat.numbers(name)
    return np.full(len(flat), np.nan) if numbers is None else numbers.astype(np.float64)


def _fix(flat: Flat, mapped: Mapped, order: Order | None) -> None:
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


def _place(flat: Flat, mapped: Mapped, name: str, *paths: str) -> None:
    """Take the place of a payload's array in its file: first byte and size."""
    for path in paths:
        begin, size = flat.ticks(f"{path}.at"), flat.ticks(f"{path}.size")
        if begin is not None and size is not None:
            mapped.columns |= {f"{name}_byte": begin, f"{name}_size": size}
            return


def _frame(flat: Flat, mapped: Mapped, order: Order | None) -> None:
    _place(flat, mapped, "image", "data.data", "image")
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
    _also_time(flat, mapped, "received_ns", "metadata.receivedtime", "receivedtime")
    require_columns(mapped.columns, "image_byte", "width", "height")


def _cloud(flat: Flat, mapped: Mapped, order: Order | None) -> None:
    _place(flat, mapped, "points", "data.points", "points")
    _place(flat, mapped, "colors", "data.colors", "colors")
    _place(flat, mapped, "intensity", "data.intensity")
    require_columns(mapped.columns, "points_byte")


_MAPPERS: dict[type, Kind] = {
    Imu: Kind(Imu, _imu),
    RigidBodyState: Kind(RigidBodyState, _state, "estimate"),
    Pose: Kind(Pose, _pose, "estimate"),
    Transform: Kind(Transform, _transform, "estimate"),
    JointState: Kind(JointState, _joints),
    LaserScan: Kind(LaserScan, _scan),
    Wrench: Kind(Wrench, _wrench),
    NavFix: Kind(NavFix, _fix),
    Image: Kind(Image, _frame),
    PointCloud: Kind(PointCloud, _cloud),
}
RECORD = Kind(Record, _record)
_ALSO = {"JointState": JointState, "Solution": NavFix}
_BY_FIELDS: Sequence[tuple[type, tuple[str, ...]]] = (
    (Imu, ("acc", "gyro")),
    (RigidBodyState, ("pos", "orient", "velocity")),
    (RigidBodyState, ("position", "velocity", "sourceframe")),
    (LaserScan, ("ranges", "startangle")),
    (JointState, ("elements.position", "names")),
    (Image, ("data.rows", "data.cols")),
    (PointCloud, ("data.points.at",)),
)


def kind_of(type_name: str, flat: Flat) -> Kind:
    """Return what a stream is, by the name of its type, or by its fields where the name is not known.

    Parameters
    ----------
    type_name : str
        `RigidBodyState`, `asn1SccFrame`, `/base/samples/IMUSensors`, ...; `OWN` with a transect type stands
        for its canonical columns as they are; "" if the name was lost.
    flat : Flat
        Some samples.
    """
    own = getattr(types, type_name.removeprefix(OWN), None) if type_name.startswith(OWN) else None
    if isinstance(own, type):
        return Kind(own, _record)
    wanted = type_from_alias(type_name) or _ALSO.get(type_name.rsplit("/", 1)[-1])
    if wanted is None and not type_name:
        wanted = next((kind for kind, names in _BY_FIELDS if all(flat.has(n) for n in names)), None)
    kind = _MAPPERS.get(wanted, RECORD) if wanted is not None else RECORD
    try:
        kind.columns_of(Flat(flat.table))
    except StreamError:
        return RECORD
    return kind
