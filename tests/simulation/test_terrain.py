"""Terrain: a height map that is the same surface for wheels, rays and maps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.errors import TransectError
from transect.simulation import terrain
from transect.simulation.terrain import Terrain


def sheet(height: np.ndarray, cell: float = 0.5, origin: tuple[float, float] = (-1.0, 2.0)) -> Terrain:
    return Terrain(height.astype(np.float32), cell, origin, np.zeros(height.shape, np.int16))


@pytest.fixture(scope="module")
def lava() -> Terrain:
    return terrain.rough(3, size_m=12.8, cell=0.1, rocks=3000)


def test_the_height_at_a_corner_is_the_grids(lava: Terrain) -> None:
    west, south, _, _ = lava.extent
    corners = [[west + 7 * lava.cell, south + 3 * lava.cell]]
    assert lava.at(corners) == pytest.approx(lava.height[3, 7], abs=1e-6)


def test_beyond_the_edge_the_ground_goes_on_as_at_the_edge() -> None:
    land = sheet(np.array([[0.0, 1.0], [2.0, 3.0]]))
    assert land.at([[-9.0, -9.0], [9.0, 9.0]]).tolist() == [0.0, 3.0]


@given(st.floats(-1, 0.99), st.floats(2, 3.99), st.floats(-2, 2), st.floats(-2, 2))
def test_a_plane_has_its_own_height_and_normal_everywhere(x: float, y: float, a: float, b: float) -> None:
    rows, columns = np.mgrid[0:5, 0:5] * 0.5
    land = sheet(a * (columns - 1.0) + b * (rows + 2.0))
    assert land.at([x, y]) == pytest.approx(a * x + b * y, abs=1e-5)
    normal = np.array([-a, -b, 1.0]) / np.sqrt(a * a + b * b + 1)
    np.testing.assert_allclose(land.normal([x, y]), normal, atol=1e-5)


def test_the_normal_is_the_gradient_of_the_height(lava: Terrain) -> None:
    xy = np.random.default_rng(1).uniform(-6, 6, (200, 2))
    normal, step = lava.normal(xy), 1e-5
    slope = np.stack([(lava.at(xy + e) - lava.at(xy - e)) / (2 * step) for e in np.eye(2) * step], axis=-1)
    np.testing.assert_allclose(-normal[:, :2] / normal[:, 2:], slope, atol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0)


def test_what_a_wheel_feels_is_smoother_than_the_ground(lava: Terrain) -> None:
    felt = lava.smooth(0.25)
    rough, smooth = (np.diff(each.height, 2, axis=0).std() for each in (lava, felt))
    assert smooth < 0.5 * rough
    assert felt.height.mean() == pytest.approx(lava.height.mean(), abs=0.01)


def test_the_map_has_each_height_where_the_terrain_has_it(lava: Terrain) -> None:
    grid = lava.as_grid()
    a, b, c, d, e, f = grid.transform
    row, column = 17, 40
    centre = a * (column + 0.5) + b * (row + 0.5) + c, d * (column + 0.5) + e * (row + 0.5) + f
    assert lava.at(centre) == pytest.approx(grid.layers["elevation"][row, column], abs=1e-6)
    assert e < 0, "north is up"


def test_rocks_are_numbered_and_stand_out_of_the_ground(lava: Terrain) -> None:
    bare = terrain.rough(3, size_m=12.8, cell=0.1, rocks=0)
    assert set(np.unique(lava.rock)) > {0, 1}
    assert (lava.height >= bare.height - 1e-6).all()
    np.testing.assert_array_equal(lava.height[lava.rock == 0], bare.height[lava.rock == 0])
    assert (lava.height - bare.height).max() > 0.1


def test_a_slope_rises_as_asked() -> None:
    land = terrain.rough(1, size_m=12.8, cell=0.1, rocks=0, slope=(0.2, -0.1))
    level = terrain.rough(1, size_m=12.8, cell=0.1, rocks=0)
    rise = land.at([[3.0, 0.0], [0.0, 3.0]]) - level.at([[3.0, 0.0], [0.0, 3.0]])
    np.testing.assert_allclose(rise, [0.6, -0.3], atol=1e-4)


def test_furrows_and_plants_are_where_the_field_says() -> None:
    spacing = 0.6
    field = terrain.field(1, row_length=6, rows=6, row_spacing=spacing, headland=2, plant_height=0.0)
    x = np.linspace(0.5, 5.5, 200)
    bottoms, ridges = (
        np.mean([field.at(np.stack([x, np.full_like(x, (k + shift) * spacing)], -1)) for k in range(1, 5)])
        for shift in (0.0, 0.5)
    )
    assert ridges - bottoms == pytest.approx(0.09, abs=0.02)
    grown = terrain.field(1, row_length=6, rows=6, row_spacing=spacing, headland=2)
    rows = np.flatnonzero((grown.rock < 0).any(axis=1)) * grown.cell + grown.origin[1]
    off_ridge = np.abs((rows / spacing) % 1.0 - 0.5) * spacing
    assert np.median(off_ridge) < 0.15
    assert grown.rock.max() == 0


def test_the_headland_is_without_plants() -> None:
    field = terrain.field(1, row_length=6, rows=4, headland=3)
    columns = np.flatnonzero((field.rock < 0).any(axis=0)) * field.cell + field.origin[0]
    assert columns.min() > -0.4
    assert columns.max() < 6.4


def test_open_ground_is_gentle() -> None:
    pasture = terrain.open_ground(1, size_m=40)
    xy = np.random.default_rng(1).uniform(-18, 18, (500, 2))
    assert np.median(pasture.smooth(0.5).normal(xy)[:, 2]) > np.cos(np.radians(8))


def test_the_same_seed_gives_the_same_ground_and_another_does_not() -> None:
    once, again, other = (terrain.rough(seed, size_m=6.4, cell=0.1).height for seed in (5, 5, 6))
    assert once.tobytes() == again.tobytes()
    assert once.tobytes() != other.tobytes()


def test_flat_ground_is_flat_and_centred() -> None:
    land = terrain.flat(10.0, z=1.5)
    assert land.extent == (-5.0, -5.0, 5.0, 5.0)
    assert land.at([[0.3, -4.9]]).tolist() == [1.5]


def test_rocks_must_fit_the_ground() -> None:
    with pytest.raises(TransectError, match="corners"):
        Terrain(np.zeros((4, 4), np.float32), 1.0, (0.0, 0.0), np.zeros((3, 4), np.int16))
