"""Measurements of inertial, joint, wheel and force sensors."""

from __future__ import annotations

from dataclasses import dataclass

from transect.base.arrays import Floats

from ._fields import NOWHERE, FromColumns, columns


@dataclass(frozen=True, eq=False)
class Imu(FromColumns):
    """Inertial measurement in the sensor's own frame."""

    # (3,) specific force (an IMU at rest measures +9.81 upwards)
    acceleration: Floats = columns("acc_x", "acc_y", "acc_z", unit="m/s2")
    angular_velocity: Floats = columns("gyro_x", "gyro_y", "gyro_z", unit="rad/s")  # (3,)
    magnetic_field: Floats | None = columns("mag_x", "mag_y", "mag_z", unit="T", optional=True)  # (3,)
    # (4,) attitude estimated by the device itself, quaternion x, y, z, w
    orientation: Floats | None = columns("qx", "qy", "qz", "qw", optional=True)
    temperature: float | None = columns("temperature", unit="degC", optional=True)  # Of the device
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class JointState(FromColumns):
    """Joints of an arm or leg; (n,) each."""

    position: Floats = columns("position", unit="rad", form="numbers")  # m for a prismatic joint
    velocity: Floats | None = columns("velocity", unit="rad/s", optional=True, form="numbers")  # Or m/s
    effort: Floats | None = columns("effort", unit="N m", optional=True, form="numbers")  # Or N
    names: tuple[str, ...] | None = columns("names", optional=True, form="texts")  # Names of the joints
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class WheelState(FromColumns):
    """Wheel speeds and steering angles measured by encoders; (n,) each, one value per wheel."""

    velocity: Floats | None = columns(
        "wheel_velocity", unit="m/s", optional=True, form="numbers"
    )  # Rim speed
    # Commanded rim speed
    commanded: Floats | None = columns("wheel_velocity_cmd", unit="m/s", optional=True, form="numbers")
    drive_ticks: Floats | None = columns("drive_ticks", optional=True, form="numbers")  # Encoder counts
    steer_ticks: Floats | None = columns("steer_ticks", optional=True, form="numbers")  # Encoder counts
    # Steering angle, positive to the left; one or (n,)
    steering: Floats | None = columns("steering", unit="rad", optional=True, form="numbers")
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class Wrench(FromColumns):
    """Force and torque acting at `frame`, expressed in it."""

    force: Floats = columns("fx", "fy", "fz", unit="N")  # (3,)
    torque: Floats | None = columns("tx", "ty", "tz", unit="N m", optional=True)  # (3,)
    t_ns: int = 0
    frame: str = NOWHERE
