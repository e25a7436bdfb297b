"""Columns of each type that are signals."""

from __future__ import annotations

from typing import Any

from transect.integrity.windows import Window
from transect.types import Imu, JointState, NavFix, Odometry, RigidBodyState, Twist, WheelState, Wrench

Signals = Imu | NavFix | Odometry | Twist | WheelState | RigidBodyState | JointState | Wrench
NAMES: dict[type, tuple[str, ...]] = {
    Imu: ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z"),
    NavFix: ("lat", "lon", "alt"),
    Odometry: ("vx", "vy", "wz"),
    Twist: ("vx", "vy", "vz"),
    WheelState: ("wheel_velocity",),
    RigidBodyState: ("x", "y", "z"),
    JointState: ("position",),
    Wrench: ("fx", "fy", "fz"),
}


def names_in(window: Window[Any]) -> tuple[str, ...]:
    """Return the columns of a window that are signals."""
    names = next((names for kind, names in NAMES.items() if issubclass(window.stream.type, kind)), ())
    return tuple(name for name in names if window.has(name))
