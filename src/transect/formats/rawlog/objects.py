"""What MRPT's objects hold, by class and version, as its own classes write them (`mrpt::obs`, BSD)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.types import Imu, LaserScan, Odometry
from transect.types.returns import TOO_FAR

from .cursor import Broken, Cursor

EPOCH = 116_444_736_000_000_000
"""1970 in MRPT's time: tenths of a microsecond since 1601."""
_GAUSS = 1e-4
_BY_ODOMETRY = 0
"""How a `CActionRobotMovement2D` came to know its motion: by odometry, not by matched scans."""
_IMU_FIELDS = 31
STEP = "step"
"""In place of columns: how far the robot moved since the last such object, x, y (m) and heading (rad)."""


@dataclass(frozen=True, eq=False)
class Observation:
    """What one object tells.

    Attributes
    ----------
    kind : type
        `LaserScan`, `Odometry` or `Imu`.
    label : str
        Of the sensor; empty where it has none.
    t_ns : int or None
        UTC; None where the object has no time.
    columns : mapping
        A row of its table; of a motion `STEP` (3,) alone.
    pose : (7,) array or None
        Of the sensor on the robot: position, quaternion x, y, z, w.
    """

    kind: type
    label: str
    t_ns: int | None
    columns: Mapping[str, Any]
    pose: Floats | None = None


def _time(cursor: Cursor) -> int | None:
    ticks = cursor.number("Q")
    t_ns = (ticks - EPOCH) * 100
    return t_ns if ticks and abs(t_ns) < 2**62 else None


def read_scan(cursor: Cursor, version: int) -> Observation:
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


def read_odometry(cursor: Cursor, version: int) -> Observation:
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


def read_imu(cursor: Cursor, version: int) -> Observation:
    """Read a `CObservationIMU`; angles that the device worked out itself are left, its quaternion is read."""
    _refuse(version, 4)
    pose = cursor.pose()
    fixed = version >= 4
    there = cursor.numbers(np.uint8, _IMU_FIELDS) if fixed else cursor.array(np.uint8)
    t_ns = _time(cursor)
    if fixed:
        values = cursor.numbers("<f8", _IMU_FIELDS)
    else:
        values = cursor.array("<f8" if version else "<f4").astype(np.float64)
    label = cursor.text()
    known = np.full(_IMU_FIELDS, np.nan)
    size = min(len(there), len(values), _IMU_FIELDS)
    known[:size] = np.where(there[:size], values[:size], np.nan)
    wz, wy, wx = known[3:6] if version >= 2 else known[3:6][::-1]
    columns = dict(zip(("acc_x", "acc_y", "acc_z"), known[:3], strict=True))
    columns |= {"gyro_x": wx, "gyro_y": wy, "gyro_z": wz, "temperature": known[20]}
    columns |= dict(zip(("mag_x", "mag_y", "mag_z"), known[15:18] * _GAUSS, strict=True))
    columns |= dict(zip(("qx", "qy", "qz", "qw"), known[21:25], strict=True))
    return Observation(Imu, label, t_ns, {k: float(v) for k, v in columns.items()}, pose)


def read_motion(cursor: Cursor, version: int) -> Observation:
    """Read a `CActionRobotMovement2D` by odometry: how far the robot moved since the one before."""
    _refuse(version, 7, first=4)
    if cursor.number("I") != _BY_ODOMETRY:
        raise Broken("a motion that is not by odometry")
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


def enter_frame(cursor: Cursor, version: int) -> None:
    """Enter a `CSensoryFrame`: observations of one moment follow."""
    _refuse(version, 2)
    if version < 2:
        cursor.number("I")
    if version == 0:
        cursor.number("Q")
    cursor.number("I")


def enter_actions(cursor: Cursor, version: int) -> None:
    """Enter a `CActionCollection`: motions follow."""
    _refuse(version, 0)
    cursor.number("I")


def _refuse(version: int, last: int, first: int = 0) -> None:
    if not first <= version <= last:
        raise Broken(f"version {version} is not known")


READERS: Mapping[str, Callable[[Cursor, int], Observation]] = {
    "CObservation2DRangeScan": read_scan,
    "CObservationOdometry": read_odometry,
    "CObservationIMU": read_imu,
    "CActionRobotMovement2D": read_motion,
}
CONTAINERS: Mapping[str, Callable[[Cursor, int], None]] = {
    "CSensoryFrame": enter_frame,
    "CActionCollection": enter_actions,
}
