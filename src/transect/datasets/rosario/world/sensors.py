"""The weeding robot on a simulated day: chassis, calibration, cameras of any size, and its way.

It drives along a lane of rows, makes a three-point turn on the headland, and comes back. Document 001, 4.3:
"180 degree turns require maneuvering and short backwards motions". The robot stands over a row of plants with
its wheels in furrows; a lane is three rows further than the one before. Or it drives rounds of a small plot,
always to the left, and so comes to the same places again in the same direction.
"""

from __future__ import annotations

from dataclasses import replace

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
from transect.simulation.wheels import SoilSlip, WheelMotion
from transect.types import CameraModel, Imu, NavFix, Pose, Twist, WheelState

BASE, IMU, ANTENNA = "base_link", "imu", "gps"
SIDES = ("left", "right")
IMU_PLACE = (1.96, -0.017, 1.02)
"""m in base_link: what the authors added to the published tracks of the real robot."""
CAMERA_DOWN = np.radians(10.0)
"""How far the left camera looks down; 7 to 18 degrees in the real sequences."""
CAMERA_LEFT = np.radians(-2.0)
"""How far it looks to the left of the way; it looks a little to the right."""
GYRO_OFFSET, ACC_OFFSET = (0.8, -1.9, 6.4), (12.5, -21.0, 8.25)
"""deg/s and milli-g that the imu's log is off by, as the calibration file says: invented."""


def load_weeder() -> Robot:
    """Return the robot."""
    return robots.load("weeder")


def make_chassis(robot: Robot) -> Chassis:
    """Return what carries base_link, which is taken to be on the ground below the rear axle.

    Table 1 does not say how high the frame is. In real pictures rows, if 0.52 m apart, are seen from about a
    metre; Table 1 with the imu's place has the camera 0.98 m over base_link.
    """
    ahead, side = float(robot.constants["wheelbase"]), LANE / 2
    contacts = np.array([[0.0, side], [0.0, -side], [ahead, side], [ahead, -side]])
    return Chassis(contacts, height=0.0, suspension=0.25, shaking=0.001)


def calibrate_frames(robot: Robot) -> FrameTree:
    """Return Table 1's frames with base_link <- imu, invented, and a right camera exactly one baseline away.

    Table 1 is rounded to millimetres: its two cameras are 119.2 mm apart, the calibration says 118.7.
    """
    frames, source = robot.frames.copy(), "simulated calibration"
    left, right = (frames.lookup(IMU, f"{side}_camera") for side in SIDES)
    across = right[:3, 3] - left[:3, 3]
    across *= robot.constants["stereo_baseline"] / np.linalg.norm(across)
    moved = se3.from_matrix(right[:3, :3], left[:3, 3] + across)
    frames.add_static(IMU, "right_camera", moved, source=source, replace=True)
    turn = _turn_camera() @ left[:3, :3].T
    frames.add_static(BASE, IMU, se3.from_matrix(turn, np.array(IMU_PLACE)), source=source)
    return frames


def _turn_camera() -> Floats:
    """Return the rotation (3, 3) that takes vectors of the left camera to base_link."""
    level = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    return rotations.matrix_from_euler("rpy", np.array([0.0, CAMERA_DOWN, CAMERA_LEFT])) @ level


def scale_camera(camera: CameraModel, scale: float) -> CameraModel:
    """Return the camera of pictures `scale` times as large, to whole pixels."""
    width, height = max(round(camera.width * scale), 1), max(round(camera.height * scale), 1)
    k = lens.scale_intrinsics(camera.K, width / camera.width, height / camera.height)
    return replace(camera, width=width, height=height, K=k)


ROW_SPACING, ROW_LENGTH, ROWS = 0.52, 34.0, 32
"""m, m and rows of plants. The document gives none; the spacing is that of the furrows in its pictures."""
LANE = 3 * ROW_SPACING
"""m from a lane to the next, and between left and right wheels."""
FIRST_LANE, LANES = 9.5 * ROW_SPACING, 5
"""Where the first lane lies (y, m), over a row, and how many there are."""
BEGIN, END = 1.0, ROW_LENGTH + 0.5
"""x of the rear axle where the robot begins, and where it begins and ends its turns in the east, m."""
WEST = -1.5
"""x of the turns in the west, m."""
TURN_RADIUS, TURN_SPEED = 5.2, 0.5
"""m, m/s; 17 of the 19 degrees that the wheels can be steered."""
STRETCH = 8.0
"""m that the robot drives at one speed."""
SLOWEST, FASTEST = 0.6, 1.1
"""m/s along a row."""
SWAY = 0.012
"""1/m: how much a driver bends the way along a row, at most."""
BEFORE_TURN = 2.5
"""m of row before the first turn, on a day that begins with one."""
LEAST_LAP = 60.0
"""s; no lane with its turn takes less."""
PLOT_LENGTH = 14.0
"""m: rows of the plot that is driven in rounds."""
ROUND_LANE, ROUND_SPEED = 5.5 * ROW_SPACING, 0.8
"""y of the southern lane of a round, over a row, m; and m/s in its half circles, each 20 rows wide."""
BESIDE = {"beside": 0.25, "row": ROW_SPACING, "rows": 2 * ROW_SPACING}
"""m to the left of its usual track, by name: with the wheels on the ridges, one row, two rows."""


def drive_lanes(seed: int, seconds: float, start_ns: int, at_turn: bool = False) -> Course:
    """Return the course of base_link, for as long as asked: lane after lane, there and back again.

    Parameters
    ----------
    seed : int
        Of speeds and of the sway.
    at_turn : bool
        Whether to begin at the end of the first lane, just before its turn.
    """
    x = END - BEFORE_TURN if at_turn else BEGIN
    legs: list[Leg] = []
    for lap in range(int(seconds / LEAST_LAP) + 2):
        legs += _drive_lane(seed, lap, (END - x) if lap == 0 else END - WEST)
        north = lap // (LANES - 1) % 2 == 0
        legs += turn_round(1.0 if north == (lap % 2 == 0) else -1.0, LANE, TURN_RADIUS, TURN_SPEED)
    return course(legs, seconds, start_ns, (x, FIRST_LANE, 0.0))


def drive_rounds(seed: int, seconds: float, start_ns: int, track: str) -> Course:
    """Return a course round the plot, for as long as asked; each round sways in its own way.

    Parameters
    ----------
    seed, seconds, start_ns
        As in `drive_lanes`.
    track : {"first", "again", "beside", "row", "rows"}
        Of the first drive, of another one, or of another one `BESIDE` the usual track.
    """
    begin, end = WEST, PLOT_LENGTH + 0.5
    purpose = "round" if track == "first" else f"round {track}"
    half = turn(np.pi, TURN_RADIUS, ROUND_SPEED)
    rounds = int(seconds / LEAST_LAP) + 1
    legs = [leg for lap in range(2 * rounds) for leg in (*_drive_lane(seed, lap, end - begin, purpose), half)]
    return course(legs, seconds, start_ns, (begin, ROUND_LANE + BESIDE.get(track, 0.0), 0.0))


def turn_round(side: float, apart: float, radius: float, speed: float) -> list[Leg]:
    """Legs that turn by 180 degrees, to the left (side 1) or right (-1), onto a lane `apart` m away.

    Forwards, backwards with the wheels the other way, and forwards, on circles of one radius. Forwards the
    heading turns by a, and the three circles end on the lane where ``apart = 2 r - 4 r cos a``.
    """
    first = float(np.arccos((2 * radius - apart) / (4 * radius)))
    middle = np.pi - 2 * first
    forwards, backwards = turn(side * first, radius, speed), turn(side * middle, radius, -speed)
    return [forwards, backwards, forwards]


def _drive_lane(seed: int, lap: int, metres: float, purpose: str = "lane") -> list[Leg]:
    """Stretches at speeds of their own, swaying a few centimetres about the lane; the rest is straight."""
    rng = generator(seed, "rosario", purpose, lap)
    legs: list[Leg] = []
    stretches = int(metres / STRETCH)
    for _ in range(stretches):
        speed, bend = float(rng.uniform(SLOWEST, FASTEST)), float(rng.uniform(-SWAY, SWAY))
        quarter = STRETCH / 4 / speed
        legs += [Leg(quarter, speed, bend), Leg(2 * quarter, speed, -bend), Leg(quarter, speed, bend)]
    rest = metres - stretches * STRETCH
    return [*legs, straight(rest, SLOWEST)] if rest > 0 else legs


ORIGIN = np.array([np.radians(-33.0308), np.radians(-60.8885), 65.0])
"""Latitude, longitude (rad) and ellipsoidal height (m) of the world's origin: near Rosario, invented."""
GEOID = 16.2
"""m of the geoid over the ellipsoid there; NMEA gives heights over the geoid."""
IMU_NOISE = ImuErrorModel(2.0e-3, 1.7e-4, acc_walk=3.0e-4, gyro_walk=2.0e-5, acc_bias=0.02, gyro_bias=0.001)
"""Invented, as fits a LSM6DS0: Table 2 lost its exponents (see errata)."""
SPEED_NOISE = 0.02
"""m/s of the receiver's velocities."""
GAPS = ((4.0, 6.0, "rtk float"), (8.0, 12.0, "none"), (12.0, 14.0, "rtk float"))
"""Seconds in which RTK fails on a day with gaps; four seconds are the longest gap of the real sequence 04."""
SOIL = SoilSlip(slip=0.012, slip_per_slope=0.3, patches=0.015, patch_length=1.5, slide=0.08)
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
    return instruments.measure(imu, IMU_NOISE, find_gravity(), seed, "Imu")


def find_gravity() -> float:
    """Gravity in the field, m/s2."""
    return instruments.normal_gravity(float(ORIGIN[0]), float(ORIGIN[2]))


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
    coverage = FixSchedule(except_in=GAPS if gaps else ())
    fixes = instruments.fixes(antenna, ORIGIN, coverage, seed, "Gps/Fix")
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


def measure_rear_wheels(motion: Motion, seed: int) -> WheelMotion:
    """Return what the left and the right rear wheel do; the front ones are steered and not in the log."""
    contacts = np.array([[0.0, LANE / 2, 0.0], [0.0, -LANE / 2, 0.0]])
    velocities = wheels.ground_velocities(motion, contacts)
    ahead = rotations.rotate(motion.quaternion, [1.0, 0.0, 0.0])
    slopes = ahead[:, 2] / np.hypot(ahead[:, 0], ahead[:, 1])
    return wheels.roll(velocities, np.zeros((len(motion), 2)), slopes, SOIL, seed, 1 / RATE_HZ)


def make_slip_table(motion: Motion, rolling: WheelMotion, every: int) -> pa.Table:
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


def make_wheel_stream(t_ns: Ints, way: Course, rolling: WheelMotion, robot: Robot, seed: int) -> Stream:
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


def _average_speeds(rolling: WheelMotion, elapsed: Floats) -> Floats:
    """Mean rim speeds (n, 2) in m/s over the time since the last telegram."""
    metres, step = wheels.measure_travel(rolling.rim, 1 / RATE_HZ), 1 / WHEEL_RATE
    at = np.arange(len(metres)) / RATE_HZ
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
    true = np.interp(elapsed, np.arange(len(angle)) / RATE_HZ, angle)
    noise = STEPPER_NOISE * generator(seed, "Odometry", "stepper").standard_normal(len(true))
    unit, zero = robot.constants["steering_unit"], robot.constants["steering_zero_raw"]
    return wheels.stepper_units(true + noise * abs(unit), unit, zero) - zero
