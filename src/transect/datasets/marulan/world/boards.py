"""A chessboard shown to the Argo, as for the calibration of the visual camera to the lasers (4.4.1).

The board is held still at one place after the other, with various orientations and distances. The size of its
squares is the report's; their number, the border and the places are invented.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.geometry import camera as lenses
from transect.geometry import rotations, se3
from transect.recording import arrow
from transect.simulation.randomness import generator
from transect.simulation.solids import Look, Solid, Solids, turned_box
from transect.types import CameraModel

COLUMNS, ROWS = 9, 6
"""Inner corners along a row and a column; not in the report."""
SQUARE = np.array([0.0749, 0.0747])
"""m: width and height of a square (4.4.1)."""
BORDER, THICK, PRINT = 0.04, 0.01, 1e-4
"""m: white around the squares, and thickness of the board and of its black squares."""
HOLD = 0.4
"""Seconds for which the board is held still."""
EARLY = 1 / 30
"""Seconds by which it has changed before a picture is taken: half of what is between two."""
WHITE = Look((0.8, 0.8, 0.8), 0.8, 0.1, 295.0)
BLACK = Look((0.03, 0.03, 0.03), 0.4, 0.1, 297.0)
REACHES, ASIDE, TILTS = (2.5, 4.5), 0.25, np.array([0.7, 0.8, 0.4])
"""m and rad from the laser to the middle of the board, and rad about the camera's axes."""
MARGIN = 10.0
"""Pixels between the board and the edge of the picture."""


@dataclass(frozen=True, eq=False)
class Shown(Solids):
    """All solids of the boards and of what stands around, of which only one board is there at a time.

    Attributes
    ----------
    parts : tuple of (Solids, (k,) int32 array)
        What is there while a board is held, and which numbers these solids have among all.
    """

    parts: tuple[tuple[Solids, NDArray[np.int32]], ...]

    @classmethod
    def among(cls, around: Sequence[Solid], boards: Sequence[Sequence[Solid]]) -> Shown:
        """Return boards that are held one after the other among things that stay."""
        whole = Solids.of([*around, *(part for board in boards for part in board)])
        stay = np.arange(1, len(around) + 1)
        parts: list[tuple[Solids, NDArray[np.int32]]] = []
        first = len(around) + 1
        for board in boards:
            numbers = np.concatenate([[0], stay, np.arange(first, first + len(board))])
            parts.append((Solids.of([*around, *board]), numbers.astype(np.int32)))
            first += len(board)
        return cls(**{f.name: getattr(whole, f.name) for f in dataclasses.fields(whole)}, parts=tuple(parts))

    def nearest(
        self, origins: Floats, directions: Floats, limit: Floats, t: float | Floats = 0.0
    ) -> tuple[Floats, NDArray[np.int32], Floats]:
        """Return the first solid that each ray meets; `raycast.Obstacles.nearest` says how."""
        count = len(directions)
        ranges, number, normals = (
            np.full(count, np.inf),
            np.zeros(count, np.int32),
            np.full((count, 3), np.nan),
        )
        held = np.broadcast_to(find_held(np.asarray(t, np.float64), len(self.parts)), count)
        for board in np.unique(held):
            rows = np.flatnonzero(held == board)
            solids, numbers = self.parts[board]
            start = origins[rows] if len(origins) > 1 else origins
            ranges[rows], found, normals[rows] = solids.nearest(start, directions[rows], limit[rows])
            number[rows] = numbers[found]
        return ranges, number, normals


def find_held(t: Floats, count: int) -> Ints:
    """Return which board of `count` is held at seconds t since the day began; the last one stays."""
    return np.clip(np.floor((t + EARLY) / HOLD), 0, count - 1).astype(np.int64)


def count_boards(seconds: float) -> int:
    """Return how many boards are shown on a day."""
    return int(find_held(np.array(seconds), 10**9)) + 1


def place_boards(
    T_world_camera: Floats, T_world_laser: Floats, camera: CameraModel, count: int, seed: int
) -> Floats:
    """Return ``T_world_board`` (count, 4, 4): x along rows of the board, y down, z away from the camera.

    The middle of each board is in the laser's plane, and the camera sees the whole of it.
    """
    rng = generator(seed, "marulan", "boards")
    T_camera_laser = se3.invert(T_world_camera) @ T_world_laser
    x, y = (COLUMNS - 1) / 2 * SQUARE[0], (ROWS - 1) / 2 * SQUARE[1]
    half = np.array([x, y]) + SQUARE + BORDER
    edge = np.array([[u, v, 0.0] for u in (-half[0], half[0]) for v in (-half[1], half[1])])
    size = np.array([camera.width, camera.height])
    found: list[Floats] = []
    while len(found) < count:
        reach, aside = rng.uniform(*REACHES), rng.uniform(-ASIDE, ASIDE)
        turn = rotations.matrix_from_rotation_vector(rng.uniform(-TILTS, TILTS))
        middle = se3.apply(T_camera_laser, reach * np.array([np.cos(aside), np.sin(aside), 0.0]))
        pixels = lenses.project(edge @ turn.T + middle, camera.K, camera.coefficients)
        if ((pixels > MARGIN) & (pixels < size - MARGIN)).all():
            found.append(T_world_camera @ se3.from_matrix(turn, middle - turn @ np.array([x, y, 0.0])))
    return np.array(found)


def build_board(T_world_board: Floats) -> list[Solid]:
    """Return a white board with its black squares; the origin is the first inner corner."""
    turn = T_world_board[:3, :3]

    def put(kind: str, middle: Floats, lengths: Floats, depth: tuple[float, float], look: Look) -> Solid:
        place = se3.apply(T_world_board, np.array([*middle, (depth[0] + depth[1]) / 2]))
        return turned_box(kind, place, [*lengths, depth[1] - depth[0]], turn, look)

    whole = np.array([COLUMNS + 1, ROWS + 1]) * SQUARE + 2 * BORDER
    centre = np.array([COLUMNS - 1, ROWS - 1]) / 2 * SQUARE
    black = [(i, j) for j in range(ROWS + 1) for i in range(COLUMNS + 1) if (i + j) % 2 == 0]
    return [
        put("board", centre, whole, (0.0, THICK), WHITE),
        *(put("board", (np.array(at) - 0.5) * SQUARE, SQUARE, (-PRINT, 0.0), BLACK) for at in black),
    ]


def list_boards(start_ns: int, T_world_board: Floats) -> pa.Table:
    """Return where boards are held from which time on: the first inner corner, x along rows, y down."""
    begin = np.maximum(np.rint((np.arange(len(T_world_board)) * HOLD - EARLY) * 1e9), 0).astype(np.int64)
    quaternions, places = se3.to_quaternion(T_world_board)
    columns: dict[str, Floats] = dict(
        zip(("x", "y", "z", "qx", "qy", "qz", "qw"), np.column_stack([places, quaternions]).T, strict=True)
    )
    return arrow.table(start_ns + begin, columns, units=dict.fromkeys("xyz", "m"))
