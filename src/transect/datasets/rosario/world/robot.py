"""The weeding robot on a simulated day: chassis, calibration, cameras of any size, and its way.

It drives along a lane of rows, makes a three-point turn on the headland, and comes back. Document 001, 4.3:
"180 degree turns require maneuvering and short backwards motions". The robot stands over a row of plants with
its wheels in furrows; a lane is three rows further than the one before. Or it drives rounds of a small plot,
always to the left, and so comes to the same places again in the same direction.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect import robots
from transect.base.arrays import Floats
from transect.geometry import camera as lens
from transect.geometry import rotations, se3
from transect.recording import FrameTree, Robot
from transect.simulation.driving import Chassis, Course, Leg, course, straight, turn
from transect.simulation.randomness import generator
from transect.types import CameraModel

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
