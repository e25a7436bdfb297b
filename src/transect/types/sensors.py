"""What inertial, satellite, joint, wheel and force sensors deliver."""

from __future__ import annotations

from dataclasses import dataclass

from transect.base.arrays import Floats

from ._fields import NOWHERE, FromColumns, columns

FIX_TYPES = ("none", "2d", "3d", "sbas", "differential", "ppp", "rtk float", "rtk fixed")
"""Fix types in the order of the Spatial Dual's codes 0-7 (document 000, Table 7)."""


@dataclass(frozen=True, eq=False)
class Imu(FromColumns):
    """Inertial measurement in the sensor's own frame.

    Attributes
    ----------
    acceleration : (3,) array
        Specific force, m/s2 (an IMU at rest reads +9.81 upwards).
    angular_velocity : (3,) array
        rad/s.
    magnetic_field : (3,) array or None
        Tesla.
    orientation : (4,) array or None
        Attitude the device itself estimated, quaternion x, y, z, w.
    temperature : float or None
        Degrees Celsius.
    """

    acceleration: Floats = columns("acc_x", "acc_y", "acc_z", unit="m/s2")
    angular_velocity: Floats = columns("gyro_x", "gyro_y", "gyro_z", unit="rad/s")
    magnetic_field: Floats | None = columns("mag_x", "mag_y", "mag_z", unit="T", optional=True)
    orientation: Floats | None = columns("qx", "qy", "qz", "qw", optional=True)
    temperature: float | None = columns("temperature", unit="degC", optional=True)
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class NavFix(FromColumns):
    """A satellite position, with the attitude where the receiver is also an inertial system.

    Attributes
    ----------
    latitude, longitude : float
        Radians, WGS84.
    altitude : float
        Metres above the ellipsoid (above mean sea level where the format says so, as NMEA does).
    std : (3,) array or None
        One sigma north, east, down in metres.
    attitude : (3,) array or None
        Roll, pitch, yaw in radians: ``R_ned_body = Rz(yaw) Ry(pitch) Rx(roll)``.
    fix : str or None
        One of `FIX_TYPES`.
    """

    latitude: float = columns("lat", unit="rad")
    longitude: float = columns("lon", unit="rad")
    altitude: float = columns("alt", unit="m")
    std: Floats | None = columns("std_north", "std_east", "std_down", unit="m", optional=True)
    attitude: Floats | None = columns("roll", "pitch", "yaw", unit="rad", optional=True)
    fix: str | None = columns("fix", optional=True)
    satellites: int | None = columns("satellites", optional=True)
    hdop: float | None = columns("hdop", optional=True)
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class JointState(FromColumns):
    """Joints of an arm or leg.

    Attributes
    ----------
    names : sequence of str or None
    position, velocity, effort : (n,) array or None
        rad (or m), rad/s, N m.
    """

    position: Floats = columns("position", unit="rad")
    velocity: Floats | None = columns("velocity", unit="rad/s", optional=True)
    effort: Floats | None = columns("effort", unit="N m", optional=True)
    names: tuple[str, ...] | None = columns("names", optional=True)
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class WheelState(FromColumns):
    """Wheels and steering as the encoders saw them.

    Attributes
    ----------
    velocity, commanded : (n,) array or None
        Rim speed in m/s, per wheel.
    drive_ticks, steer_ticks : (n,) array or None
        Encoder counts.
    steering : float or (n,) array or None
        Steering angle in rad, positive to the left.
    """

    velocity: Floats | None = columns("wheel_velocity", unit="m/s", optional=True)
    commanded: Floats | None = columns("wheel_velocity_cmd", unit="m/s", optional=True)
    drive_ticks: Floats | None = columns("drive_ticks", optional=True)
    steer_ticks: Floats | None = columns("steer_ticks", optional=True)
    steering: Floats | None = columns("steering", unit="rad", optional=True)
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class Wrench(FromColumns):
    """Force (N) and torque (N m) acting at `frame`, expressed in it."""

    force: Floats = columns("fx", "fy", "fz", unit="N")
    torque: Floats | None = columns("tx", "ty", "tz", unit="N m", optional=True)
    t_ns: int = 0
    frame: str = NOWHERE
