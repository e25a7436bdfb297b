"""The weeding robot on a simulated day: chassis, calibration, course, and sensors.

It drives along a lane of rows, makes a three-point turn on the headland, and returns. Rosario, 4.3: "180
degree turns require maneuvering and short backwards motions". The robot is over a row of plants with its
wheels in furrows; lanes are three rows apart. Or it drives laps of a small plot to the left, so that it
revisits the same positions in the same direction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from transect import robots
from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import camera as lens
from transect.geometry import rotations, se3
from transect.recording import FrameTree, Robot, Stream, arrow
from transect.recording.stream import stream_of_values
from transect.simulation import instruments, wheels
from transect.simulation.driving import RATE_HZ, Chassis, Course, Leg, course, straight, turn
from transect.simulation.instruments import FixSchedule, ImuErrorModel, ImuSamples
from transect.simulation.motion import Motion
from transect.simulation.randomness import generator
from transect.simulation.wheels import RollingWheels, SoilSlip
from transect.types import CameraModel, Imu, NavFix, Pose, Twist, WheelState

BASE, IMU, ANTENNA = "base_link", "imu", "gps"
SIDES = ("left", "right")
IMU_POSITION_M = (1.96, -0.017, 1.02)
"""Position in base_link: the offset that the authors added to the published tracks of the real robot."""
CAMERA_PITCH_RAD = np.radians(10.0)
"""Pitch of the left camera, positive down; 7 to 18 degrees in the real sequences."""
CAMERA_YAW_RAD = np.radians(-2.0)
"""Yaw of the left camera, positive to the left."""
GYRO_OFFSET, ACC_OFFSET = (0.8, -1.9, 6.4), (12.5, -21.0, 8.25)
"""Offsets of the IMU's log in the calibration file, deg/s and milli-g: invented."""


def load_weeder() -> Robot:
    """Return the robot."""
    return robots.load("weeder")


def make_chassis(robot: Robot) -> Chassis:
    """Return the chassis of base_link, which is assumed on the ground below the rear axle.

    Table 1 does not state the height of the frame. In real images, rows with a spacing of 0.52 m are seen
    from about a metre; by Table 1 and the position of the IMU, the camera is 0.98 m over base_link.
    """
    ahead, side = float(robot.constants["wheelbase"]), FIELD.lane_m / 2
    contacts = np.array([[0.0, side], [0.0, -side], [ahead, side], [ahead, -side]])
    return Chassis(contacts, height=0.0, suspension=0.25, shaking=0.001)


def calibrate_frames(robot: Robot) -> FrameTree:
    """Return the frames of Table 1 with an invented base_link <- imu, and the exact stereo baseline.

    Table 1 is rounded to millimetres: its baseline is 119.2 mm, that of the calibration 118.7 mm.
    """
    frames, source = robot.frames.copy(), "simulated calibration"
    left, right = (frames.lookup(IMU, f"{side}_camera") for side in SIDES)
    across = right[:3, 3] - left[:3, 3]
    across *= robot.constants["stereo_baseline"] / np.linalg.norm(across)
    moved = se3.from_matrix(right[:3, :3], left[:3, 3] + across)
    frames.add_static(IMU, "right_camera", moved, source=source, replace=True)
    R_base_imu = _camera_rotation() @ left[:3, :3].T
    frames.add_static(BASE, IMU, se3.from_matrix(R_base_imu, np.array(IMU_POSITION_M)), source=source)
    return frames


def _camera_rotation() -> Floats:
    """Return ``R_base_camera`` (3, 3) of the left camera."""
    level = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    return rotations.matrix_from_euler("rpy", np.array([0.0, CAMERA_PITCH_RAD, CAMERA_YAW_RAD])) @ level


def scale_camera(camera: CameraModel, scale: float) -> CameraModel:
    """Return the camera model of images scaled by a factor, with whole pixels."""
    width, height = max(round(camera.width * scale), 1), max(round(camera.height * scale), 1)
    k = lens.scale_intrinsics(camera.K, width / camera.width, height / camera.height)
    return replace(camera, width=width, height=height, K=k)


@dataclass(frozen=True)
class FieldSettings:
    """Dimensions of the field, and the course; invented unless stated."""

    row_spacing_m: float = 0.52  # Spacing of the furrows in the images of the paper.
    row_length_m: float = 34.0
    rows: int = 32
    lane_m: float = 3 * 0.52  # Distance of lanes, and of left and right wheels.
    first_lane_m: float = 9.5 * 0.52  # y of the first lane, over a row.
    lanes: int = 5
    start_m: float = 1.0  # Initial x of the rear axle.
    east_m: float = 34.0 + 0.5  # x of the turns in the east, ...
    west_m: float = -1.5  # ... and in the west.
    turn_radius_m: float = 5.2  # 17 of the 19 degrees of possible steering.
    turn_speed_m_s: float = 0.5
    constant_speed_m: float = 8.0  # Distance with constant speed along a row.
    min_speed_m_s: float = 0.6
    max_speed_m_s: float = 1.1
    max_curvature_1_m: float = 0.012  # Largest curvature along a row.
    before_turn_m: float = 2.5  # Distance before the first turn on a day that starts with one.
    min_lap_s: float = 60.0  # Shortest time of a lane with its turn.
    plot_length_m: float = 14.0  # Rows of the plot with laps.
    lap_lane_m: float = 5.5 * 0.52  # y of the southern lane of a lap, over a row.
    lap_turn_speed_m_s: float = 0.8  # In the half circles, each 20 rows wide.


FIELD = FieldSettings()
TRACK_OFFSETS_M = {"beside": 0.25, "row": FIELD.row_spacing_m, "rows": 2 * FIELD.row_spacing_m}
"""Offsets to the left of the usual track: with the wheels on the ridges, one row, two rows."""


def drive_lanes(seed: int, seconds: float, start_ns: int, at_turn: bool = False) -> Course:
    """Return the course of base_link for a time: lane after lane, there and back.

    Parameters
    ----------
    seed : int
        Seed of speeds and curvatures.
    at_turn : bool
        Whether to start at the end of the first lane, just before its turn.
    """
    x = FIELD.east_m - FIELD.before_turn_m if at_turn else FIELD.start_m
    legs: list[Leg] = []
    for lap in range(int(seconds / FIELD.min_lap_s) + 2):
        legs += _drive_lane(seed, lap, (FIELD.east_m - x) if lap == 0 else FIELD.east_m - FIELD.west_m)
        north = lap // (FIELD.lanes - 1) % 2 == 0
        side = 1.0 if north == (lap % 2 == 0) else -1.0
        legs += three_point_turn(side, FIELD.lane_m, FIELD.turn_radius_m, FIELD.turn_speed_m_s)
    return course(legs, seconds, start_ns, (x, FIELD.first_lane_m, 0.0))


def drive_laps(seed: int, seconds: float, start_ns: int, track: str) -> Course:
    """Return a course of laps around the plot for a time, each with different curvatures.

    Parameters
    ----------
    seed, seconds, start_ns
        As in `drive_lanes`.
    track : {"first", "again", "beside", "row", "rows"}
        The first drive, another one, or another one with an offset of `TRACK_OFFSETS_M`.
    """
    begin, end = FIELD.west_m, FIELD.plot_length_m + 0.5
    purpose = "round" if track == "first" else f"round {track}"
    half = turn(np.pi, FIELD.turn_radius_m, FIELD.lap_turn_speed_m_s)
    laps = int(seconds / FIELD.min_lap_s) + 1
    legs = [leg for lap in range(2 * laps) for leg in (*_drive_lane(seed, lap, end - begin, purpose), half)]
    start = (begin, FIELD.lap_lane_m + TRACK_OFFSETS_M.get(track, 0.0), 0.0)
    return course(legs, seconds, start_ns, start)


def three_point_turn(side: float, distance: float, radius: float, speed: float) -> list[Leg]:
    """Return legs of a 180 degree turn to the left (side 1) or right (-1), onto a lane at a distance, m.

    Forwards, backwards with opposite steering, and forwards, on circles of the same radius. The heading
    change a of the forward legs satisfies ``distance = 2 r - 4 r cos a``.
    """
    first = float(np.arccos((2 * radius - distance) / (4 * radius)))
    middle = np.pi - 2 * first
    forwards, backwards = turn(side * first, radius, speed), turn(side * middle, radius, -speed)
    return [forwards, backwards, forwards]


def _drive_lane(seed: int, lap: int, metres: float, purpose: str = "lane") -> list[Leg]:
    """Return sections of constant speed, with deviations of a few centimetres from the lane."""
    rng = generator(seed, "rosario", purpose, lap)
    legs: list[Leg] = []
    length, curvature = FIELD.constant_speed_m, FIELD.max_curvature_1_m
    sections = int(metres / length)
    for _ in range(sections):
        speed = float(rng.uniform(FIELD.min_speed_m_s, FIELD.max_speed_m_s))
        bend = float(rng.uniform(-curvature, curvature))
        quarter = length / 4 / speed
        legs += [Leg(quarter, speed, bend), Leg(2 * quarter, speed, -bend), Leg(quarter, speed, bend)]
    rest = metres - sections * length
    return [*legs, straight(rest, FIELD.min_speed_m_s)] if rest > 0 else legs


ORIGIN = np.array([np.radians(-33.0308), np.radians(-60.8885), 65.0])
"""Latitude, longitude (rad) and ellipsoidal height (m) of the world's origin: near Rosario, invented."""
IMU_NOISE = ImuErrorModel(2.0e-3, 1.7e-4, acc_walk=3.0e-4, gyro_walk=2.0e-5, acc_bias=0.02, gyro_bias=0.001)
"""Invented, plausible for a LSM6DS0: Table 2 lost its exponents (errata)."""
GAPS = ((4.0, 6.0, "rtk float"), (8.0, 12.0, "none"), (12.0, 14.0, "rtk float"))
"""Times, s, without a fixed solution on a day with gaps; the longest gap of the real sequence 04 is 4 s."""
SOIL = SoilSlip(slip=0.012, slip_per_slope=0.3, patches=0.015, patch_length=1.5, slide=0.08)
"""Invented: the error of the real odometry of sequence 01 is 2.3 % (errata)."""


@dataclass(frozen=True)
class NoiseSettings:
    """Errors of receiver and wheels."""

    geoid_m: float = 16.2  # Geoid over the ellipsoid; NMEA has heights over the geoid.
    velocity_sigma_m_s: float = 0.02  # Velocities of the receiver.
    wheel_rate_hz: int = 10  # Rosario, 4.4.1.
    rpm_sigma: float = 1.5  # Wheel speeds, as in the real odometry.
    min_noisy_rpm: float = 5.0  # Slower wheels have proportionally less noise, at rest none.
    stepper_sigma: float = 1.0  # Units of the steering.


NOISE = NoiseSettings()


# IMU


def measure_imu(imu: Motion, seed: int) -> ImuSamples:
    """Return the samples of the IMU for its motion."""
    return instruments.measure(imu, IMU_NOISE, field_gravity(), seed, "Imu")


def field_gravity() -> float:
    """Return the gravity in the field, m/s2."""
    return instruments.normal_gravity(float(ORIGIN[0]), float(ORIGIN[2]))


def make_imu_stream(t_ns: Ints, samples: ImuSamples) -> Stream:
    """Return the stream of the IMU; `meta` has the offsets of its log."""
    columns = {f"acc_{axis}": samples.acc[:, i] for i, axis in enumerate("xyz")}
    columns |= {f"gyro_{axis}": samples.gyro[:, i] for i, axis in enumerate("xyz")}
    offsets = {"gyro_offset": list(GYRO_OFFSET), "acc_offset": list(ACC_OFFSET)}
    return stream_of_values("Imu", t_ns, columns, type=Imu, frame=IMU, meta=offsets)


def make_bias_table(t_ns: Ints, samples: ImuSamples) -> pa.Table:
    """Return the true biases of the IMU after subtraction of the offsets, m/s2 and rad/s."""
    columns = {f"acc_bias_{axis}": samples.acc_bias[:, i] for i, axis in enumerate("xyz")}
    columns |= {f"gyro_bias_{axis}": samples.gyro_bias[:, i] for i, axis in enumerate("xyz")}
    units = {name: "m/s2" if name.startswith("acc") else "rad/s" for name in columns}
    return arrow.table(t_ns, columns, units=units)


# Receiver


def make_gps_streams(antenna: Motion, gaps: bool, seed: int) -> list[Stream]:
    """Return positions and velocities of the antenna, as in NMEA."""
    coverage = FixSchedule(except_in=GAPS if gaps else ())
    fixes = instruments.fixes(antenna, ORIGIN, coverage, seed, "Gps/Fix")
    fixes |= {"alt": fixes["alt"] - NOISE.geoid_m, "geoid_separation": np.full(len(antenna), NOISE.geoid_m)}
    lost = np.array([fix == "none" for fix in fixes["fix"]])
    noise = NOISE.velocity_sigma_m_s * generator(seed, "Gps/Velocity", "noise").standard_normal(
        (len(antenna), 2)
    )
    east, north = np.where(lost, np.nan, (antenna.velocity[:, :2] + noise).T)
    moving = {"vx": north, "vy": east, "vz": np.full(len(antenna), np.nan)}
    metres = {"geoid_separation": "m"}
    return [
        stream_of_values("Gps/Fix", antenna.t_ns, fixes, type=NavFix, frame=ANTENNA, units=metres),
        stream_of_values("Gps/Velocity", antenna.t_ns, moving, type=Twist, frame="NED"),
    ]


def make_antenna_track(antenna: Motion, heading: float) -> Stream:
    """Return the true track of the antenna as in `sequence0N_gt.txt` (4.7, see errata).

    Its axes are those of the robot at the start, with z up, its origin is the first position of the antenna.
    """
    back = rotations.quaternion_from_euler("z", np.array([-heading]))
    x, y, z = rotations.rotate(back, antenna.position - antenna.position[0]).T
    track = {"x": x, "y": y, "z": z}
    return stream_of_values(
        "GroundTruth", antenna.t_ns, track, type=Pose, role="truth", frame="world", child=ANTENNA
    )


# Wheels


def measure_rear_wheels(motion: Motion, seed: int) -> RollingWheels:
    """Return the motion of the rear wheels; the steered front wheels are not in the log."""
    contacts = np.array([[0.0, FIELD.lane_m / 2, 0.0], [0.0, -FIELD.lane_m / 2, 0.0]])
    velocities = wheels.ground_velocities(motion, contacts)
    ahead = rotations.rotate(motion.quaternion, [1.0, 0.0, 0.0])
    slopes = ahead[:, 2] / np.hypot(ahead[:, 0], ahead[:, 1])
    return wheels.roll(velocities, np.zeros((len(motion), 2)), slopes, SOIL, seed, 1 / RATE_HZ)


def make_slip_table(motion: Motion, rolling: RollingWheels, every: int) -> pa.Table:
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


def make_wheel_stream(t_ns: Ints, course: Course, rolling: RollingWheels, robot: Robot, seed: int) -> Stream:
    """Return the cleaned log of the motors: turns per minute since the last telegram, and steering."""
    per_rpm = np.pi * robot.constants["wheel_diameter"] / 60.0
    elapsed = (t_ns - course.t_ns[0]) / NS
    true_rpm = _average_speeds(rolling, elapsed) / per_rpm
    backwards = true_rpm.sum(axis=1) < 0
    turns = _measure_rpm(np.abs(true_rpm), seed)
    units = _measure_steering(course, elapsed, robot, seed)
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


def _average_speeds(rolling: RollingWheels, elapsed: Floats) -> Floats:
    """Return the mean rim speeds (n, 2), m/s, since the last telegram."""
    metres, step = wheels.measure_travel(rolling.rim, 1 / RATE_HZ), 1 / NOISE.wheel_rate_hz
    at = np.arange(len(metres)) / RATE_HZ
    return (
        np.column_stack([np.interp(elapsed, at, m) - np.interp(elapsed - step, at, m) for m in metres.T])
        / step
    )


def _measure_rpm(rpm: Floats, seed: int) -> Floats:
    """Return the turns per minute (n, 2) of the Hall sensors, whole numbers."""
    noise = NOISE.rpm_sigma * generator(seed, "Odometry", "rpm").standard_normal(rpm.shape)
    return np.maximum(np.rint(rpm + noise * np.minimum(rpm / NOISE.min_noisy_rpm, 1.0)), 0.0)


def _measure_steering(course: Course, elapsed: Floats, robot: Robot, seed: int) -> Floats:
    """Return the units (n,) of the stepper relative to straight ahead, as in the cleaned log."""
    angle = wheels.ackermann_steering(course, robot.constants["wheelbase"])[:, 0]
    true = np.interp(elapsed, np.arange(len(angle)) / RATE_HZ, angle)
    noise = NOISE.stepper_sigma * generator(seed, "Odometry", "stepper").standard_normal(len(true))
    unit, zero = robot.constants["steering_unit"], robot.constants["steering_zero_raw"]
    return wheels.stepper_units(true + noise * abs(unit), unit, zero) - zero
