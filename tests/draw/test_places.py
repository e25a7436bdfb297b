"""Maps of places from above."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import to_rgb

from transect.draw.place_maps import (
    MAX_CELLS_PER_SIDE,
    OCCUPIED_GRAY,
    UNKNOWN_GRAY,
    MapDrawing,
    draw_places,
    shrink_grid,
)

FREE_GRAY = 254


def test_a_thin_wall_of_a_large_grid_is_still_drawn():
    image = np.full((3 * MAX_CELLS_PER_SIDE, 100), FREE_GRAY, np.uint8)
    image[:, 50] = OCCUPIED_GRAY
    small, extent = shrink_grid(image, (0.0, 5.0, 0.0, 180.0))
    assert small.shape == (MAX_CELLS_PER_SIDE, 34)
    assert (small == OCCUPIED_GRAY).sum(axis=1).tolist() == [1] * MAX_CELLS_PER_SIDE
    column = int(np.flatnonzero(small[0] == OCCUPIED_GRAY)[0])
    width = (extent[1] - extent[0]) / 34
    assert extent[0] + column * width <= 50.5 * 0.05 <= extent[0] + (column + 1) * width


def test_a_small_grid_is_drawn_as_it_is():
    image = np.array([[OCCUPIED_GRAY, FREE_GRAY], [UNKNOWN_GRAY, FREE_GRAY]], np.uint8)
    small, extent = shrink_grid(image, (1.0, 2.0, 3.0, 4.0))
    np.testing.assert_array_equal(small, image)
    assert extent == (1.0, 2.0, 3.0, 4.0)


def test_what_nobody_saw_is_gray_beyond_the_grid_too():
    pairs = np.zeros((0, 2), np.int64)
    way = np.array([[0.0, 0.0], [9.0, 0.0]])
    image = np.full((4, 4), UNKNOWN_GRAY, np.uint8)
    drawn = MapDrawing(way, np.zeros(2, np.int64), pairs, pairs, np.zeros((0, 2)), image)
    [axes] = draw_places([("a map", drawn)]).axes
    assert to_rgb(axes.get_facecolor()) == (UNKNOWN_GRAY / 255,) * 3
