"""The way of the weeding robot: along a lane of rows, a three-point turn on the headland, and back.

Document 001, 4.3: "180 degree turns require maneuvering and short backwards motions". The robot stands over a
row of plants with its wheels in furrows; a lane is three rows further than the one before.
"""

from __future__ import annotations

import numpy as np

from ...driving import Course, Leg, course, straight, turn
from ...randomness import generator

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


def drive_lanes(seed: int, seconds: float, start_ns: int, at_turn: bool = False) -> Course:
    """Return the course of base_link, for as long as asked: lane after lane, there and back again.

    Parameters
    ----------
    seed : int
        Of speeds and of the sway.
    seconds : float
    start_ns : int
    at_turn : bool
        Whether to begin at the end of the first lane, just before its turn.
    """
    x = END - BEFORE_TURN if at_turn else BEGIN
    legs: list[Leg] = []
    for lap in range(int(seconds / LEAST_LAP) + 2):
        legs += _along_lane(seed, lap, (END - x) if lap == 0 else END - WEST)
        north = lap // (LANES - 1) % 2 == 0
        legs += three_point_turn(1.0 if north == (lap % 2 == 0) else -1.0, LANE, TURN_RADIUS, TURN_SPEED)
    return course(legs, seconds, start_ns, (x, FIRST_LANE, 0.0))


def three_point_turn(side: float, apart: float, radius: float, speed: float) -> list[Leg]:
    """Legs that turn by 180 degrees, to the left (side 1) or right (-1), onto a lane `apart` m away.

    Forwards, backwards with the wheels the other way, and forwards, on circles of one radius. Forwards the
    heading turns by a, and the three circles end on the lane where ``apart = 2 r - 4 r cos a``.
    """
    first = float(np.arccos((2 * radius - apart) / (4 * radius)))
    middle = np.pi - 2 * first
    forwards, backwards = turn(side * first, radius, speed), turn(side * middle, radius, -speed)
    return [forwards, backwards, forwards]


def _along_lane(seed: int, lap: int, metres: float) -> list[Leg]:
    """Stretches at speeds of their own, swaying a few centimetres about the lane; the rest is straight."""
    rng = generator(seed, "rosario", "lane", lap)
    legs: list[Leg] = []
    stretches = int(metres / STRETCH)
    for _ in range(stretches):
        speed, bend = float(rng.uniform(SLOWEST, FASTEST)), float(rng.uniform(-SWAY, SWAY))
        quarter = STRETCH / 4 / speed
        legs += [Leg(quarter, speed, bend), Leg(2 * quarter, speed, -bend), Leg(quarter, speed, bend)]
    rest = metres - stretches * STRETCH
    return [*legs, straight(rest, SLOWEST)] if rest > 0 else legs
