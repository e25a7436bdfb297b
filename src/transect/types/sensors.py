"""What inertial, satellite, joint, wheel and force sensors deliver."""

from __future__ import annotations

from dataclasses import dataclass

from transect.base.arrays import Floats

from ._fields import NOWHERE, FromColumns, columns


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
class JointState(FromColumns):
    """Joints of an arm or leg.

    Attributes
    ----------
    names : tuple of str or None
        Of the joints.
    position : (n,) array
        rad; m of a joint that slides.
    velocity : (n,) array or None
        rad/s, or m/s.
    effort : (n,) array or None
        N m, or N.
    """

    position: Floats = columns("position", unit="rad", form="numbers")
    velocity: Floats | None = columns("velocity", unit="rad/s", optional=True, form="numbers")
    effort: Floats | None = columns("effort", unit="N m", optional=True, form="numbers")
    names: tuple[str, ...] | None = columns("names", optional=True, form="texts")
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class WheelState(FromColumns):
    """Wheels and steering as the encoders saw them.

    Attributes
    ----------
    velocity : (n,) array or None
        Rim speed in m/s, per wheel.
    commanded : (n,) array or None
        Rim speed that was asked for in m/s, per wheel.
    drive_ticks, steer_ticks : (n,) array or None
        Encoder counts.
    steering : float or (n,) array or None
        Steering angle in rad, positive to the left.
    """

    velocity: Floats | None = columns("wheel_velocity", unit="m/s", optional=True, form="numbers")
    commanded: Floats | None = columns("wheel_velocity_cmd", unit="m/s", optional=True, form="numbers")
    drive_ticks: Floats | None = columns("drive_ticks", optional=True, form="numbers")
    steer_ticks: Floats | None = columns("steer_ticks", optional=True, form="numbers")
    steering: Floats | None = columns("steering", unit="rad", optional=True, form="numbers")
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class Wrench(FromColumns):
    """Force and torque acting at `frame`, expressed in it.

    Attributes
    ----------
    force : (3,) array
        Newton.
    torque : (3,) array or None
        Newton metres.
    """

    force: Floats = columns("fx", "fy", "fz", unit="N")
    torque: Floats | None = columns("tx", "ty", "tz", unit="N m", optional=True)
    t_ns: int = 0
    frame: str = NOWHERE
