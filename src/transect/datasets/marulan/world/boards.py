"""A chessboard in front of the Argo, for the calibration of the visual camera to the lasers (4.4.1).

The board is held still in one pose after the other. The size of its squares is that of SDI; their number, the
border and the poses are invented.
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
from transect.simulation.solids import Solid, Solids, SurfaceMaterial, turned_box
from transect.types import CameraModel


@dataclass(frozen=True)
class BoardSettings:
    """Dimensions of the chessboard, and its poses."""

    columns: int = 9  # Inner corners along a row, ...
    rows: int = 6  # ... and a column.
    square_m: tuple[float, float] = (0.0749, 0.0747)  # Width and height of a square (4.4.1).
    border_m: float = 0.04  # White border around the squares.
    thickness_m: float = 0.01
    print_thickness_m: float = 1e-4  # Thickness of the black squares.
    hold_s: float = 0.4  # Time for which the board is held still.
    lead_s: float = 1 / 30  # The board changes half an image interval before an image.
    distance_m: tuple[float, float] = (2.5, 4.5)  # From the laser to the middle of the board.
    max_bearing_rad: float = 0.25  # In the plane of the laser.
    max_tilt_rad: tuple[float, float, float] = (0.7, 0.8, 0.4)  # Rotation vector about the camera's axes.
    margin_px: float = 10.0  # Between the board and the edge of the image.


SETTINGS = BoardSettings()
SQUARE = np.array(SETTINGS.square_m)
WHITE = SurfaceMaterial((0.8, 0.8, 0.8), 0.8, 0.1, 295.0)
BLACK = SurfaceMaterial((0.03, 0.03, 0.03), 0.4, 0.1, 297.0)


@dataclass(frozen=True, eq=False)
class BoardSequence(Solids):
    """Solids of a scene and of all boards; one board is present at a time."""

    # for each board: the solids that are present with it, and their numbers (k,) among all
    parts: tuple[tuple[Solids, NDArray[np.int32]], ...]

    @classmethod
    def among(cls, around: Sequence[Solid], boards: Sequence[Sequence[Solid]]) -> BoardSequence:
        """Return boards that are shown one after the other in a scene."""
        whole = Solids.of([*around, *(part for board in boards for part in board)])
        scene = np.arange(1, len(around) + 1)
        parts: list[tuple[Solids, NDArray[np.int32]]] = []
        first = len(around) + 1
        for board in boards:
            numbers = np.concatenate([[0], scene, np.arange(first, first + len(board))])
            parts.append((Solids.of([*around, *board]), numbers.astype(np.int32)))
            first += len(board)
        return cls(**{f.name: getattr(whole, f.name) for f in dataclasses.fields(whole)}, parts=tuple(parts))

    def nearest(
        self, origins: Floats, directions: Floats, limit: Floats, t: float | Floats = 0.0
    ) -> tuple[Floats, NDArray[np.int32], Floats]:
        """Return the first solid that each ray meets, as `raycast.Obstacles.nearest`."""
        count = len(directions)
        ranges, number, normals = (
            np.full(count, np.inf),
            np.zeros(count, np.int32),
            np.full((count, 3), np.nan),
        )
        board_of_ray = np.broadcast_to(find_board(np.asarray(t, np.float64), len(self.parts)), count)
        for board in np.unique(board_of_ray):
            rows = np.flatnonzero(board_of_ray == board)
            solids, numbers = self.parts[board]
            start = origins[rows] if len(origins) > 1 else origins
            ranges[rows], found, normals[rows] = solids.nearest(start, directions[rows], limit[rows])
            number[rows] = numbers[found]
        return ranges, number, normals


def find_board(t: Floats, count: int) -> Ints:
    """Return the number of the board, of `count`, at seconds t since the start of the day."""
    return np.clip(np.floor((t + SETTINGS.lead_s) / SETTINGS.hold_s), 0, count - 1).astype(np.int64)


def count_boards(seconds: float) -> int:
    """Return the number of boards that are shown on a day."""
    return int(find_board(np.array(seconds), 10**9)) + 1


def place_boards(
    T_world_camera: Floats, T_world_laser: Floats, camera: CameraModel, count: int, seed: int
) -> Floats:
    """Return ``T_world_board`` (count, 4, 4): x along rows of the board, y down, z away from the camera.

    The middle of each board is in the laser's plane, and the camera sees the whole of it.
    """
    rng = generator(seed, "marulan", "boards")
    T_camera_laser = se3.invert(T_world_camera) @ T_world_laser
    x, y = (SETTINGS.columns - 1) / 2 * SQUARE[0], (SETTINGS.rows - 1) / 2 * SQUARE[1]
    half = np.array([x, y]) + SQUARE + SETTINGS.border_m
    edge = np.array([[u, v, 0.0] for u in (-half[0], half[0]) for v in (-half[1], half[1])])
    size, margin = np.array([camera.width, camera.height]), SETTINGS.margin_px
    max_bearing, max_tilt = SETTINGS.max_bearing_rad, np.array(SETTINGS.max_tilt_rad)
    found: list[Floats] = []
    while len(found) < count:
        distance, bearing = rng.uniform(*SETTINGS.distance_m), rng.uniform(-max_bearing, max_bearing)
        R = rotations.matrix_from_rotation_vector(rng.uniform(-max_tilt, max_tilt))
        middle = se3.apply(T_camera_laser, distance * np.array([np.cos(bearing), np.sin(bearing), 0.0]))
        pixels = lenses.project(edge @ R.T + middle, camera.K, camera.coefficients)
        if ((pixels > margin) & (pixels < size - margin)).all():
            found.append(T_world_camera @ se3.from_matrix(R, middle - R @ np.array([x, y, 0.0])))
    return np.array(found)


def build_board(T_world_board: Floats) -> list[Solid]:
    """Return a white board with its black squares; the origin is the first inner corner."""
    turn = T_world_board[:3, :3]

    def slab(middle: Floats, lengths: Floats, depth: tuple[float, float], look: SurfaceMaterial) -> Solid:
        centre = se3.apply(T_world_board, np.array([*middle, (depth[0] + depth[1]) / 2]))
        return turned_box("board", centre, [*lengths, depth[1] - depth[0]], turn, look)

    columns, rows = SETTINGS.columns, SETTINGS.rows
    board = np.array([columns + 1, rows + 1]) * SQUARE + 2 * SETTINGS.border_m
    centre = np.array([columns - 1, rows - 1]) / 2 * SQUARE
    black = [(i, j) for j in range(rows + 1) for i in range(columns + 1) if (i + j) % 2 == 0]
    printed = (-SETTINGS.print_thickness_m, 0.0)
    return [
        slab(centre, board, (0.0, SETTINGS.thickness_m), WHITE),
        *(slab((np.array(at) - 0.5) * SQUARE, SQUARE, printed, BLACK) for at in black),
    ]


def list_boards(start_ns: int, T_world_board: Floats) -> pa.Table:
    """Return poses of boards by start time: the origin is the first inner corner, x along rows, y down."""
    begin_s = np.arange(len(T_world_board)) * SETTINGS.hold_s - SETTINGS.lead_s
    begin = np.maximum(np.rint(begin_s * 1e9), 0).astype(np.int64)
    quaternions, positions = se3.to_quaternion(T_world_board)
    columns: dict[str, Floats] = dict(
        zip(("x", "y", "z", "qx", "qy", "qz", "qw"), np.column_stack([positions, quaternions]).T, strict=True)
    )
    return arrow.table(start_ns + begin, columns, units=dict.fromkeys("xyz", "m"))
