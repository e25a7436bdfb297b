"""What the weeding robot's imu, receiver and wheels say, as streams of a Rosario sequence (001, 4.4)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import rotations
from transect.recording import Robot, Stream, arrow
from transect.recording.stream import stream_of_values
from transect.simulation import gnss, inertial, wheels
from transect.simulation.driving import RATE, Course
from transect.simulation.gnss import Coverage
from transect.simulation.inertial import ImuNoise, ImuSamples
from transect.simulation.motion import Motion
from transect.simulation.randomness import generator
from transect.simulation.wheels import Rolling, Soil
from transect.types import Imu, NavFix, Pose, Twist, WheelState

from .robot import ACC_OFFSET, ANTENNA, BASE, GYRO_OFFSET, IMU, LANE

ORIGIN = np.array([np.radians(-33.0308), np.radians(-60.8885), 65.0])
"""Latitude, longitude (rad) and ellipsoidal height (m) of the world's origin: near Rosario, invented."""
GEOID = 16.2
"""m of the geoid over the ellipsoid there; NMEA gives heights over the geoid."""
IMU_NOISE = ImuNoise(2.0e-3, 1.7e-4, acc_walk=3.0e-4, gyro_walk=2.0e-5, acc_bias=0.02, gyro_bias=0.001)
"""Invented, as fits a LSM6DS0: Table 2 lost its exponents (see errata)."""
SPEED_NOISE = 0.02
"""m/s of the receiver's velocities."""
GAPS = ((4.0, 6.0, "rtk float"), (8.0, 12.0, "none"), (12.0, 14.0, "rtk float"))
"""Seconds in which RTK fails on a day with gaps; four seconds are the longest gap of the real sequence 04."""
SOIL = Soil(slip=0.012, slip_per_slope=0.3, patches=0.015, patch_length=1.5, slide=0.08)
"""Of a field, invented: the real odometry of sequence 01 is 2.3 % off (see errata)."""
RPM_NOISE, STEPPER_NOISE = 1.5, 1.0
"""Deviation of a wheel's turns per minute, as the real odometry shows, and of the stepper's units."""
WHEEL_RATE = 10
"""Hz (4.4.1)."""
FULL_NOISE = 5.0
"""Turns per minute from which on the speed is as noisy as ever; wheels at rest say 0."""


# imu


def measure_imu(imu: Motion, seed: int) -> ImuSamples:
    """Return what the imu says along its own motion."""
    return inertial.measure(imu, IMU_NOISE, find_gravity(), seed, "Imu")


def find_gravity() -> float:
    """Gravity in the field, m/s2."""
    return inertial.normal_gravity(float(ORIGIN[0]), float(ORIGIN[2]))


def make_imu_stream(t_ns: Ints, said: ImuSamples) -> Stream:
    """Return the imu's stream; `meta` has the offsets that its log is off by."""
    columns = {f"acc_{axis}": said.acc[:, i] for i, axis in enumerate("xyz")}
    columns |= {f"gyro_{axis}": said.gyro[:, i] for i, axis in enumerate("xyz")}
    offsets = {"gyro_offset": list(GYRO_OFFSET), "acc_offset": list(ACC_OFFSET)}
    return stream_of_values("Imu", t_ns, columns, type=Imu, frame=IMU, meta=offsets)


def make_bias_table(t_ns: Ints, said: ImuSamples) -> pa.Table:
    """Return what the offsets of the calibration leave: the imu's true biases, m/s2 and rad/s."""
    columns = {f"acc_bias_{axis}": said.acc_bias[:, i] for i, axis in enumerate("xyz")}
    columns |= {f"gyro_bias_{axis}": said.gyro_bias[:, i] for i, axis in enumerate("xyz")}
    units = {name: "m/s2" if name.startswith("acc") else "rad/s" for name in columns}
    return arrow.table(t_ns, columns, units=units)


# Receiver


def make_gps_streams(antenna: Motion, gaps: bool, seed: int) -> list[Stream]:
    """Return positions and velocities of the antenna, as NMEA carries them."""
    coverage = Coverage(except_in=GAPS if gaps else ())
    fixes = gnss.fixes(antenna, ORIGIN, coverage, seed, "Gps/Fix")
    fixes |= {"alt": fixes["alt"] - GEOID, "geoid_separation": np.full(len(antenna), GEOID)}
    lost = np.array([fix == "none" for fix in fixes["fix"]])
    noise = SPEED_NOISE * generator(seed, "Gps/Velocity", "noise").standard_normal((len(antenna), 2))
    east, north = np.where(lost, np.nan, (antenna.velocity[:, :2] + noise).T)
    moving = {"vx": north, "vy": east, "vz": np.full(len(antenna), np.nan)}
    metres = {"geoid_separation": "m"}
    return [
        stream_of_values("Gps/Fix", antenna.t_ns, fixes, type=NavFix, frame=ANTENNA, units=metres),
        stream_of_values("Gps/Velocity", antenna.t_ns, moving, type=Twist, frame="NED"),
    ]


def make_antenna_track(antenna: Motion, heading: float) -> Stream:
    """Return the antenna's true track as `sequence0N_gt.txt` has it (4.7, see errata).

    Its axes are the robot's at the start (but z is up), its origin is where the antenna began.
    """
    back = rotations.quaternion_from_euler("z", np.array([-heading]))
    x, y, z = rotations.rotate(back, antenna.position - antenna.position[0]).T
    track = {"x": x, "y": y, "z": z}
    return stream_of_values(
        "GroundTruth", antenna.t_ns, track, type=Pose, role="truth", frame="world", child=ANTENNA
    )


# Wheels


def measure_rear_wheels(motion: Motion, seed: int) -> Rolling:
    """Return what the left and the right rear wheel do; the front ones are steered and not in the log."""
    contacts = np.array([[0.0, LANE / 2, 0.0], [0.0, -LANE / 2, 0.0]])
    velocities = wheels.ground_velocities(motion, contacts)
    ahead = rotations.rotate(motion.quaternion, [1.0, 0.0, 0.0])
    slopes = ahead[:, 2] / np.hypot(ahead[:, 0], ahead[:, 1])
    return wheels.roll(velocities, np.zeros((len(motion), 2)), slopes, SOIL, seed, 1 / RATE)


def make_slip_table(motion: Motion, rolling: Rolling, every: int) -> pa.Table:
    """Return each `every`-th sample of the rear wheels' true slip, slip angle (rad) and speeds (m/s)."""
    parts = {
        "slip": rolling.slip,
        "slip_angle": rolling.slip_angle,
        "rim": rolling.rim,
        "ground": rolling.ground,
    }
    units = {"slip": "1", "slip_angle": "rad", "rim": "m/s", "ground": "m/s"}
    columns = {
        f"{name}_{side}": v[::every, i]
        for name, v in parts.items()
        for i, side in enumerate(("left", "right"))
    }
    named = {name: units[name.rpartition("_")[0]] for name in columns}
    return arrow.table(motion.t_ns[::every], columns, units=named)  # fmt: skip


def make_wheel_stream(t_ns: Ints, way: Course, rolling: Rolling, robot: Robot, seed: int) -> Stream:
    """Return the cleaned log of the motors: turns per minute since the last telegram, and steering."""
    per_rpm = np.pi * robot.constants["wheel_diameter"] / 60.0
    elapsed = (t_ns - way.t_ns[0]) / NS
    true_rpm = _average_speeds(rolling, elapsed) / per_rpm
    backwards = true_rpm.sum(axis=1) < 0
    turns = _count(np.abs(true_rpm), seed)
    units = _step_steering(way, elapsed, robot, seed)
    sign = np.where(backwards, -1.0, 1.0)
    columns = {
        "wheel_velocity": turns * sign[:, None] * per_rpm,
        "steering": units * robot.constants["steering_unit"],
        "left_raw": turns[:, 0],
        "right_raw": turns[:, 1],
        "steering_raw": units,
        "direction_raw": sign,
    }
    raw = {"left_raw": "rpm", "right_raw": "rpm"}
    return stream_of_values("Odometry", t_ns, columns, type=WheelState, frame=BASE, units=raw)


def _average_speeds(rolling: Rolling, elapsed: Floats) -> Floats:
    """Mean rim speeds (n, 2) in m/s over the time since the last telegram."""
    metres, step = wheels.measure_travel(rolling.rim, 1 / RATE), 1 / WHEEL_RATE
    at = np.arange(len(metres)) / RATE
    return (
        np.column_stack([np.interp(elapsed, at, m) - np.interp(elapsed - step, at, m) for m in metres.T])
        / step
    )


def _count(rpm: Floats, seed: int) -> Floats:
    """Whole turns per minute (n, 2) that Hall sensors make of true ones."""
    noise = RPM_NOISE * generator(seed, "Odometry", "rpm").standard_normal(rpm.shape)
    return np.maximum(np.rint(rpm + noise * np.minimum(rpm / FULL_NOISE, 1.0)), 0.0)


def _step_steering(way: Course, elapsed: Floats, robot: Robot, seed: int) -> Floats:
    """Units (n,) of the stepper with those of straight ahead taken off, as in the cleaned log."""
    angle = wheels.ackermann_steering(way, robot.constants["wheelbase"])[:, 0]
    true = np.interp(elapsed, np.arange(len(angle)) / RATE, angle)
    noise = STEPPER_NOISE * generator(seed, "Odometry", "stepper").standard_normal(len(true))
    unit, zero = robot.constants["steering_unit"], robot.constants["steering_zero_raw"]
    return wheels.stepper_units(true + noise * abs(unit), unit, zero) - zero
