"""Rays: exact on planes, patches and spheres, and never through the ground."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.errors import TransectError
from transect.simulation import _threads, solids, terrain
from transect.simulation.raycast import NO_HIT, TERRAIN_HIT, Scene, cast
from transect.simulation.terrain import Terrain


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def scene_of(height: np.ndarray, cell: float = 1.0) -> Scene:
    rock = np.zeros(height.shape, np.int16)
    return Scene(Terrain(height.astype(np.float32), cell, (0.0, 0.0), rock))


def downward_rays(rng: np.random.Generator, n: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    origins = np.column_stack([rng.uniform(low, high, (n, 2)), rng.uniform(3, 6, n)])
    return origins, unit(np.column_stack([rng.normal(0, 1, (n, 2)), -rng.uniform(0.05, 1, n)]))


@pytest.fixture(scope="module")
def lava() -> Scene:
    return Scene(terrain.rough(7, size_m=25.6, cell=0.1, rocks=4000))


def test_ranges_and_normals_on_a_slope_are_those_of_the_plane() -> None:
    rows, columns = np.mgrid[0:40, 0:50] * 0.5
    scene = scene_of(0.25 * columns - 0.5 * rows, cell=0.5)  # exact in float32
    origins, along = downward_rays(np.random.default_rng(1), 500, 5, 15)
    hits = cast(scene, origins, along)
    slope = np.array([-0.25, 0.5, 1.0])
    expected = -(origins @ slope) / (along @ slope)
    on = (hits.kind == TERRAIN_HIT) & (origins @ slope > 0)
    assert on.sum() > 200
    np.testing.assert_allclose(hits.range[on], expected[on], rtol=1e-9)
    np.testing.assert_allclose(hits.normal[on], np.broadcast_to(unit(slope), (on.sum(), 3)), atol=1e-6)


def test_a_saddle_is_met_where_its_quadratic_equation_says() -> None:
    scene = scene_of(np.array([[0.0, 1.0], [1.0, 0.0]]))  # z = x + y - 2xy
    hits = cast(scene, [[0.0, 0.0, 0.48]], unit(np.array([[1.0, 1.0, 0.0]])))
    s = (2 - np.sqrt(4 - 8 * 0.48)) / 4  # along the diagonal z = 2s - 2s²
    assert hits.range[0] == pytest.approx(s * np.sqrt(2), abs=1e-6)


def test_a_ray_grazes_a_saddle_twice_and_meets_the_first() -> None:
    scene = scene_of(np.array([[0.0, 1.0], [1.0, 0.0]]))
    over = cast(scene, [[0.0, 0.0, 0.52]], unit(np.array([[1.0, 1.0, 0.0]])))
    assert over.kind[0] == NO_HIT
    assert over.range[0] == np.inf


def test_hits_lie_on_the_ground_and_nothing_is_skipped_before(lava: Scene) -> None:
    rng = np.random.default_rng(2)
    origins, along = downward_rays(rng, 400, -8, 8)
    hits = cast(lava, origins, along, max_range=60.0)
    met = hits.kind == TERRAIN_HIT
    assert met.sum() > 200
    points = origins[met] + hits.range[met, None] * along[met]
    np.testing.assert_allclose(points[:, 2], lava.terrain.at(points[:, :2]), atol=1e-6)
    before = np.linspace(0.0, 0.9999, 4000)[:, None] * hits.range[met]
    march = origins[met] + before[..., None] * along[met]
    assert (march[..., 2] - lava.terrain.at(march[..., :2])).min() > -1e-6


def test_rays_that_meet_nothing_stay_above_the_ground(lava: Scene) -> None:
    rng = np.random.default_rng(3)
    origins = np.column_stack([rng.uniform(-10, 10, (400, 2)), rng.uniform(0.5, 2.5, 400)])
    along = unit(np.column_stack([rng.normal(0, 1, (400, 2)), rng.normal(0, 0.08, 400)]))
    hits = cast(lava, origins, along, max_range=10.0)
    free = hits.kind == NO_HIT
    assert 50 < free.sum() < 400
    march = origins[free] + np.linspace(0, 10.0, 4000)[:, None, None] * along[free]
    inside = (np.abs(march[..., :2]) < 12.8).all(axis=-1)
    assert (march[..., 2] - lava.terrain.at(march[..., :2]))[inside].min() > -1e-6
    assert np.isinf(hits.range[free]).all()
    assert np.isnan(hits.normal[free]).all()


@given(st.integers(0, 10**6), st.sampled_from([(2, 2), (3, 9), (17, 6), (33, 33)]))
def test_any_small_terrain_is_watertight_from_above(seed: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    scene = scene_of(rng.normal(0, 0.5, shape))
    inside = rng.uniform(0.0, 1.0, (20, 2)) * (np.array(shape[::-1]) - 1.0)
    origins = np.column_stack([inside, np.full(20, 5.0)])
    targets = np.column_stack([rng.permuted(inside, axis=0), np.full(20, -5.0)])
    hits = cast(scene, origins, unit(targets - origins))
    assert (hits.kind == TERRAIN_HIT).all()
    points = origins + hits.range[:, None] * unit(targets - origins)
    np.testing.assert_allclose(points[:, 2], scene.terrain.at(points[:, :2]), atol=1e-6)


def test_rays_straight_down_along_the_axes_and_from_outside_are_exact() -> None:
    scene = scene_of(np.full((9, 9), 1.0))
    origins = np.array([[4.0, 4.0, 3.0], [3.3, 8.0, 2.5], [-2.0, 4.5, 3.0], [4.0, 12.0, 2.0]])
    along = unit(np.array([[0, 0, -1.0], [0, 0, -1.0], [1.0, 0, -0.5], [0, -1.0, -0.2]]))
    np.testing.assert_allclose(cast(scene, origins, along).range, [2.0, 1.5, 2 * 5**0.5, 26**0.5], rtol=1e-12)


def test_a_ray_along_an_axis_and_a_line_of_the_grid_meets_what_stands_in_its_way() -> None:
    height = np.zeros((9, 9))
    height[:, 6] = 2.0
    origins = np.array([[1.0, 4.0, 1.0], [1.0, 0.0, 1.0], [1.0, 8.0, 1.0], [1.5, 3.3, 1.0]])
    hits = cast(scene_of(height), origins, np.tile([1.0, 0.0, 0.0], (4, 1)))
    np.testing.assert_allclose(hits.range, [4.5, 4.5, 4.5, 4.0], rtol=1e-12)  # the ramp from x = 5 to 6


def test_beyond_the_edge_and_beyond_the_greatest_range_there_is_nothing() -> None:
    scene = scene_of(np.zeros((9, 9)))
    origins = np.array([[4.0, 4.0, 1.0]] * 3)
    along = unit(np.array([[1.0, 0.0, 0.1], [1.0, 0.0, -0.1], [0.3, 0.0, -1.0]]))
    assert cast(scene, origins, along, 50.0).kind.tolist() == [NO_HIT, NO_HIT, TERRAIN_HIT]
    assert cast(scene, origins, along, 1.0).kind.tolist() == [NO_HIT] * 3


def test_a_ray_that_begins_underground_ends_there() -> None:
    hits = cast(scene_of(np.ones((5, 5))), [[2.0, 2.0, 0.5]], [[0.0, 0.0, 1.0]])
    assert hits.range.tolist() == [0.0]


def test_a_ray_that_is_not_a_number_meets_nothing() -> None:
    hits = cast(scene_of(np.zeros((5, 5))), [2.0, 2.0, 1.0], [[np.nan, 0.0, -1.0], [0.0, 0.0, -1.0]])
    assert hits.kind.tolist() == [NO_HIT, TERRAIN_HIT]


def test_the_nearest_of_solids_and_terrain_counts() -> None:
    ball = solids.sphere("ball", [4.0, 0.0, 1.0], 0.5)
    buried = solids.sphere("ball", [0.0, 4.0, -3.0], 0.5)
    scene = Scene(terrain.flat(20.0), solids.Solids.of([ball, buried]))
    along = unit(np.array([[1.0, 0, 0], [1.0, 0, -0.5], [0, 1.0, -1.0], [-1.0, 0, 0]]))
    hits = cast(scene, [0.0, 0.0, 1.0], along)
    assert hits.kind.tolist() == [1, TERRAIN_HIT, TERRAIN_HIT, NO_HIT]
    np.testing.assert_allclose(hits.range[:3], [3.5, 5**0.5, 2**0.5])
    np.testing.assert_allclose(hits.normal[0], [-1.0, 0.0, 0.0], atol=1e-12)


def test_all_cores_give_the_same_bits_as_one(lava: Scene) -> None:
    both = Scene(lava.terrain, solids.Solids.of([solids.sphere("ball", [2.0, 2.0, 1.0], 1.0)]))
    origins, along = downward_rays(np.random.default_rng(4), _threads.RAYS_PER_BATCH + 1, -9, 9)
    at_once = cast(both, origins, along)
    pieces = [cast(both, origins[k : k + 5000], along[k : k + 5000]) for k in range(0, len(along), 5000)]
    assert at_once.range.tobytes() == np.concatenate([p.range for p in pieces]).tobytes()
    assert at_once.normal.tobytes() == np.concatenate([p.normal for p in pieces]).tobytes()
    assert at_once.kind.tolist() == np.concatenate([p.kind for p in pieces]).tolist()
    assert (at_once.kind == 1).any()


def test_origins_and_directions_must_match() -> None:
    with pytest.raises(TransectError, match="rows"):
        cast(scene_of(np.zeros((5, 5))), np.zeros((2, 3)), np.zeros((3, 3)))


def test_rays_from_one_place_meet_what_each_of_them_meets_alone(lava: Scene) -> None:
    """Rays of an image are looked at in bundles; rays of many places are not. Some pixels have no ray."""
    across, down = np.meshgrid(np.linspace(-0.6, 0.6, 80), np.linspace(-0.2, 0.6, 40))
    rays = unit(np.stack([across, np.ones_like(across), -down], axis=-1).reshape(-1, 3))
    rays[::37] = np.nan
    rays[5], rays[100:116] = [0.0, 0.0, -1.0], unit(np.random.default_rng(3).standard_normal((16, 3)))
    for height in (0.2, 1.5, 30.0):
        place = np.array([1.0, -3.0, lava.terrain.at([1.0, -3.0]) + height])
        bundled, alone = cast(lava, place, rays), cast(lava, np.tile(place, (len(rays), 1)), rays)
        np.testing.assert_array_equal(bundled.kind, alone.kind)
        np.testing.assert_allclose(bundled.range, alone.range, rtol=0, atol=1e-12)
        np.testing.assert_allclose(bundled.normal, alone.normal, rtol=0, atol=1e-11)
        assert {NO_HIT, TERRAIN_HIT} == set(bundled.kind.tolist())
