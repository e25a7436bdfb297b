"""Fields of MRPT's objects by class and version, as serialised by `mrpt::obs` (BSD)."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from transect.base.arrays import Floats
from transect.geometry import rotations
from transect.types import Imu, LaserScan, Odometry
from transect.types.returns import TOO_FAR

END_BYTE = 0x88
_NAME_BYTE = 0x80
_MATRICES = {"CMatrix": "<f4", "CMatrixF": "<f4", "CMatrixD": "<f8"}
_CLASS = re.compile(rb"(?:\w+::)*C[A-Z0-9]\w*", re.ASCII)
MAX_TEXT_BYTES = 1 << 16
MAX_QUATERNION_NORM_ERROR = 0.01
"""Largest difference of the norm of a quaternion from 1."""


class DamagedObjectError(Exception):
    """Truncated data, or an object of unknown class or version; internal to the reader."""


class ByteCursor:
    """Reads fields from a buffer one after another; raises DamagedObjectError if that is impossible."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def number(self, kind: str) -> Any:
        """Return a number of a kind of `struct`."""
        size = struct.calcsize(kind)
        self._require(size)
        [value] = struct.unpack_from(f"<{kind}", self.data, self.at)
        self.at += size
        return value

    def numbers(self, dtype: DTypeLike, count: int) -> NDArray[Any]:
        """Return (count,) numbers of one type."""
        size = np.dtype(dtype).itemsize * count
        self._require(size)
        values = np.frombuffer(self.data, dtype, count, self.at)
        self.at += size
        return values

    def array(self, dtype: DTypeLike) -> NDArray[Any]:
        """Return numbers of one type that have their count before them."""
        return self.numbers(dtype, self.number("I"))

    def text(self) -> str:
        """Return a text."""
        length = self.number("I")
        if length > MAX_TEXT_BYTES:
            raise DamagedObjectError("a text that is too long")
        return self.numbers(np.uint8, length).tobytes().decode("utf-8", "replace")

    def begin(self) -> tuple[str, int]:
        """Enter an object; return the name of its class, without its namespace, and its version."""
        length = self.number("B")
        if not length & _NAME_BYTE:
            raise DamagedObjectError("no object begins here")
        name = self.numbers(np.uint8, length & ~_NAME_BYTE).tobytes()
        if not _CLASS.fullmatch(name):
            raise DamagedObjectError("no object begins here")
        return name.decode().rpartition("::")[2], self.number("B")

    def begin_one_of(self, *names: str) -> tuple[str, int]:
        """Enter an object of some classes."""
        name, version = self.begin()
        if name not in names:
            raise DamagedObjectError(f"a {name} instead of a {names[0]}")
        return name, version

    def end(self) -> None:
        """Leave an object."""
        if self.number("B") != END_BYTE:
            raise DamagedObjectError("an object does not end where it should")

    def matrix(self) -> Floats:
        """Return a matrix, an object of its own."""
        name, _ = self.begin_one_of(*_MATRICES)
        rows, columns = self.number("I"), self.number("I")
        values = self.numbers(_MATRICES[name], rows * columns).astype(np.float64)
        self.end()
        return values.reshape(rows, columns)

    def planar_pose(self) -> Floats:
        """Return x, y (m) and heading (rad) of a `CPose2D` (3,)."""
        _, version = self.begin_one_of("CPose2D")
        values = self.numbers("<f8" if version else "<f4", 3).astype(np.float64)
        self.end()
        return values

    def pose(self) -> Floats:
        """Return position (m) and quaternion x, y, z, w of a `CPose3D` (7,)."""
        _, version = self.begin_one_of("CPose3D")
        if version == 2:
            x, y, z, qw, qx, qy, qz = self.numbers("<f8", 7)
            found = _pose_of((qx, qy, qz, qw), (x, y, z))
        elif version == 3:
            values = self.numbers("<f8", 12)
            found = _pose_of(_quaternion_of(values[3:].reshape(3, 3)), values[:3])
        else:
            T = self.matrix()
            if T.shape != (4, 4):
                raise DamagedObjectError("a pose that is no matrix of 4 x 4")
            found = _pose_of(_quaternion_of(T[:3, :3]), T[:3, 3])
        self.end()
        return found

    def _require(self, size: int) -> None:
        if size > len(self.data) - self.at:
            raise DamagedObjectError("the file ends within an object")


def _quaternion_of(rotation: Floats) -> Floats:
    if not (np.abs(rotation) < 1 + MAX_QUATERNION_NORM_ERROR).all():
        raise DamagedObjectError("an invalid attitude")
    return rotations.quaternion_from_matrix(rotation)


def _pose_of(quaternion: ArrayLike, place: ArrayLike) -> Floats:
    found = np.concatenate([np.asarray(place, np.float64), np.asarray(quaternion, np.float64)])
    sound = np.isfinite(found).all() and (np.abs(found[3:]) < 1 + MAX_QUATERNION_NORM_ERROR).all()
    if not sound or abs(np.linalg.norm(found[3:]) - 1) > MAX_QUATERNION_NORM_ERROR:
        raise DamagedObjectError("an invalid attitude")
    return found


UNIX_EPOCH_TICKS = 116_444_736_000_000_000
"""1970 in ticks of MRPT: 100 ns since 1601."""
_TESLA_PER_GAUSS = 1e-4
_ODOMETRY_METHOD = 0
"""Estimation method of a `CActionRobotMovement2D`: odometry, not scan matching."""
_IMU_FIELD_COUNT = 31
STEP = "step"
"""Motion of the robot since the last such object, x, y (m) and heading (rad), instead of columns."""


@dataclass(frozen=True, eq=False)
class Observation:
    """Content of one object."""

    kind: type  # `LaserScan`, `Odometry` or `Imu`
    label: str  # Of the sensor; empty where it has none
    t_ns: int | None  # UTC; None where the object has no time
    columns: Mapping[str, Any]  # A row of its table; of a motion `STEP` (3,) alone
    pose: Floats | None = None  # (7,), of the sensor on the robot: position, quaternion x, y, z, w


def _time(cursor: ByteCursor) -> int | None:
    ticks = cursor.number("Q")
    t_ns = (ticks - UNIX_EPOCH_TICKS) * 100
    return t_ns if ticks and abs(t_ns) < 2**62 else None


def read_scan(cursor: ByteCursor, version: int) -> Observation:
    """Read a `CObservation2DRangeScan`."""
    _refuse(version, 7)
    aperture, leftwards, range_max = cursor.number("f"), cursor.number("?"), cursor.number("f")
    pose = cursor.pose()
    if version < 6:
        cursor.matrix()  # covariance of that pose, which was always 0
    count = cursor.number("I")
    ranges = cursor.numbers("<f4", count).astype(np.float64)
    valid = cursor.numbers(np.uint8, count) > 0 if version >= 1 else ranges < range_max
    told: dict[str, Any] = {"std_error": cursor.number("f")} if version >= 2 else {}
    t_ns = _time(cursor) if version >= 3 else None
    told |= {"beam_aperture": cursor.number("f")} if version >= 4 else {}
    label = cursor.text() if version >= 5 else ""
    told |= {"delta_pitch": cursor.number("d")} if version >= 5 else {}
    if version >= 7 and cursor.number("?"):
        told["remission"] = cursor.numbers("<i4", count).astype(np.float64)
    far = ranges >= range_max
    half = aperture / 2 if leftwards else -aperture / 2
    columns = {
        "ranges": np.where(valid & ~far & (ranges > 0), ranges, np.nan),
        "start_angle": -half,
        "angle_increment": 2 * half / max(count - 1, 1),
        "range_max": range_max,
        "range_error": np.where(far, TOO_FAR, 0).astype(np.uint16),
        **told,
    }
    return Observation(LaserScan, label, t_ns, columns, pose)


def read_odometry(cursor: ByteCursor, version: int) -> Observation:
    """Read a `CObservationOdometry`."""
    _refuse(version, 2)
    x, y, theta = cursor.planar_pose()
    label, t_ns = cursor.text(), _time(cursor)
    told: dict[str, Any] = {}
    if version >= 1:
        has_ticks = cursor.number("?")
        if has_ticks or version == 1:
            ticks = cursor.number("i"), cursor.number("i")
            told |= dict(zip(("ticks_left", "ticks_right"), ticks, strict=True)) if has_ticks else {}
        has_speed = cursor.number("?")
        if version == 1:
            vx, vy, wz = cursor.number("f"), 0.0, cursor.number("f")
        else:
            vx, vy, wz = cursor.numbers("<f8", 3).tolist() if has_speed else (np.nan,) * 3
        told |= {"vx": vx, "vy": vy, "vz": 0.0, "wx": 0.0, "wy": 0.0, "wz": wz} if has_speed else {}
    return Observation(Odometry, label, t_ns, {**lay_in_plane(x, y, theta), **told})


def lay_in_plane(x: float, y: float, theta: float) -> dict[str, float]:
    """Return the columns of a pose by position (m) and heading (rad)."""
    with np.errstate(invalid="ignore"):
        turn = {"qx": 0.0, "qy": 0.0, "qz": float(np.sin(theta / 2)), "qw": float(np.cos(theta / 2))}
    return {"x": float(x), "y": float(y), "z": 0.0, "theta": float(theta), **turn}


def read_imu(cursor: ByteCursor, version: int) -> Observation:
    """Read a `CObservationIMU`; angles that the device worked out itself are left, its quaternion is read."""
    _refuse(version, 4)
    pose = cursor.pose()
    fixed = version >= 4
    there = cursor.numbers(np.uint8, _IMU_FIELD_COUNT) if fixed else cursor.array(np.uint8)
    t_ns = _time(cursor)
    if fixed:
        values = cursor.numbers("<f8", _IMU_FIELD_COUNT)
    else:
        values = cursor.array("<f8" if version else "<f4").astype(np.float64)
    label = cursor.text()
    known = np.full(_IMU_FIELD_COUNT, np.nan)
    size = min(len(there), len(values), _IMU_FIELD_COUNT)
    known[:size] = np.where(there[:size], values[:size], np.nan)
    wz, wy, wx = known[3:6] if version >= 2 else known[3:6][::-1]
    columns = dict(zip(("acc_x", "acc_y", "acc_z"), known[:3], strict=True))
    columns |= {"gyro_x": wx, "gyro_y": wy, "gyro_z": wz, "temperature": known[20]}
    columns |= dict(zip(("mag_x", "mag_y", "mag_z"), known[15:18] * _TESLA_PER_GAUSS, strict=True))
    columns |= dict(zip(("qx", "qy", "qz", "qw"), known[21:25], strict=True))
    return Observation(Imu, label, t_ns, {k: float(v) for k, v in columns.items()}, pose)


def read_motion(cursor: ByteCursor, version: int) -> Observation:
    """Read a `CActionRobotMovement2D` by odometry: how far the robot moved since the one before."""
    _refuse(version, 7, first=4)
    if cursor.number("I") != _ODOMETRY_METHOD:
        raise DamagedObjectError("a motion that is not by odometry")
    step = cursor.planar_pose()
    cursor.number("I")
    cursor.numbers("<f4", 6)  # parameters of MRPT's two models of odometry's noise
    cursor.number("I")
    cursor.numbers("<f4", 6 if version >= 5 else 4)
    has_speed = cursor.number("?")
    if version < 7:
        cursor.numbers("<f4", 2)
    elif has_speed:
        cursor.numbers("<f8", 3)
    has_ticks = cursor.number("?")
    if version < 7 or has_ticks:
        cursor.numbers("<i4", 2)
    return Observation(Odometry, "", _time(cursor) if version >= 6 else None, {STEP: step})


def enter_frame(cursor: ByteCursor, version: int) -> None:
    """Enter a `CSensoryFrame`: observations of one moment follow."""
    _refuse(version, 2)
    if version < 2:
        cursor.number("I")
    if version == 0:
        cursor.number("Q")
    cursor.number("I")


def enter_actions(cursor: ByteCursor, version: int) -> None:
    """Enter a `CActionCollection`: motions follow."""
    _refuse(version, 0)
    cursor.number("I")


def _refuse(version: int, last: int, first: int = 0) -> None:
    if not first <= version <= last:
        raise DamagedObjectError(f"version {version} is not known")


READERS: Mapping[str, Callable[[ByteCursor, int], Observation]] = {
    "CObservation2DRangeScan": read_scan,
    "CObservationOdometry": read_odometry,
    "CObservationIMU": read_imu,
    "CActionRobotMovement2D": read_motion,
}
CONTAINERS: Mapping[str, Callable[[ByteCursor, int], None]] = {
    "CSensoryFrame": enter_frame,
    "CActionCollection": enter_actions,
}
