"""Double walls: counted where beams went between the two, and not at the faces of one thin wall."""

from __future__ import annotations

import numpy as np
import pytest

from transect.evaluation.height_maps import count_double_walls
from transect.types import GridMap

CELL_SIZE_M = 0.05


def grid(walls: list[int], between: str = "free") -> GridMap:
    """Return a map with horizontal walls at some rows; what is between the first two is free or unknown."""
    chance, seen = np.full((60, 80), 0.05), np.full((60, 80), 20.0)
    if between == "unknown":
        chance[walls[0] : walls[1]], seen[walls[0] : walls[1]] = np.nan, 0.0
    for row in walls:
        chance[row], seen[row] = 0.95, 20.0
    hits = np.where(chance > 0.5, 10.0, 0.0)
    return GridMap(
        {"occupancy": chance, "seen": seen, "hits": hits},
        (CELL_SIZE_M, 0.0, 0.0, 0.0, -CELL_SIZE_M, 0.0),
        frame="map",
    )


def test_a_single_wall_is_single() -> None:
    found = count_double_walls(grid([20]))
    assert found.cells > 70
    assert found.doubled_ratio == 0.0


@pytest.mark.parametrize(("apart", "share"), [(3, 1.0), (5, 1.0), (9, 0.0), (20, 0.0)])
def test_two_walls_are_double_within_30_cm_and_not_beyond(apart: int, share: float) -> None:
    found = count_double_walls(grid([20, 20 + apart]))
    assert found.doubled_ratio == pytest.approx(share, abs=0.05)


def test_the_two_faces_of_a_thin_wall_are_no_double_wall() -> None:
    assert count_double_walls(grid([20, 24], between="unknown")).doubled_ratio == 0.0
    assert count_double_walls(grid([20, 24])).doubled_ratio > 0.9


def test_a_map_without_walls_has_no_share() -> None:
    assert count_double_walls(grid([])).doubled_ratio == 0.0
