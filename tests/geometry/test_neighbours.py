import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.geometry.strategies import vectors

from transect.errors import GeometryError
from transect.geometry import neighbours

FILTERS = [
    lambda cloud: neighbours.statistical_inliers(cloud, 4, 1.0),
    lambda cloud: neighbours.dynamic_radius_inliers(cloud, 0.0, 2, min_radius=0.5),
    lambda cloud: neighbours.dynamic_radius_inliers(cloud, 0.01),
]


def wall(n=20, step=0.1):
    """A flat square grid, and one point far from it."""
    grid = np.stack(np.meshgrid(np.arange(n) * step, np.arange(n) * step), axis=-1).reshape(-1, 2)
    return np.vstack([np.column_stack([grid, np.full(len(grid), 5.0)]), [[0.5, 0.5, 2.0]]])


def counted(cloud, radius):
    """Neighbours within the radius, by trying all pairs."""
    distance = np.linalg.norm(cloud[:, None] - cloud, axis=-1)
    return np.sum(distance <= np.reshape(radius, (-1, 1)), axis=1) - 1


@pytest.mark.parametrize("keep", FILTERS)
def test_a_wall_is_kept_and_a_lone_point_before_it_is_not(keep):
    mask = keep(wall(step=0.04))
    assert mask[:-1].mean() > 0.9
    assert not mask[-1]


@pytest.mark.parametrize("keep", FILTERS)
def test_nan_points_are_not_kept_and_do_not_matter_to_the_others(keep):
    cloud = wall()
    holed = np.insert(cloud, [0, 7, 30], np.nan, axis=0)
    measured = np.isfinite(holed).all(axis=1)
    mask = keep(holed)
    assert not mask[~measured].any()
    np.testing.assert_array_equal(mask[measured], keep(cloud))


@pytest.mark.parametrize("keep", FILTERS)
def test_empty_clouds_and_single_points_have_nothing_to_keep(keep):
    assert keep(np.zeros((0, 3))).shape == (0,)
    assert keep(np.full((2, 3), np.nan)).tolist() == [False, False]
    assert keep([[1.0, 2, 3]]).tolist() == [False]


@pytest.mark.parametrize("keep", FILTERS)
def test_the_order_of_the_points_does_not_matter(keep):
    cloud = np.random.default_rng(2).normal(size=(200, 3))
    order = np.random.default_rng(3).permutation(200)
    np.testing.assert_array_equal(keep(cloud[order]), keep(cloud)[order])


@given(st.integers(0, 1000), st.floats(0.001, 0.2), st.integers(1, 6))
def test_the_dynamic_radius_grows_with_the_range_from_the_sensor(seed, resolution, least):
    cloud, sensor = np.random.default_rng(seed).normal(size=(40, 3)), np.array([1.0, 2, 3])
    radius = np.maximum(0.04, 3 * resolution * np.linalg.norm(cloud - sensor, axis=1))
    np.testing.assert_array_equal(
        neighbours.dynamic_radius_inliers(cloud, resolution, least, sensor=sensor),
        counted(cloud, radius) >= least,
    )


def test_a_distant_wall_is_kept_by_the_dynamic_radius_and_removed_by_a_fixed_one():
    """At 50 m beams 0.2 degree apart are 17 cm apart, at 1 m 3.5 mm."""
    angles = np.radians(0.2) * np.arange(-20, 20)
    rays = np.stack(np.meshgrid(np.tan(angles), np.tan(angles)), axis=-1).reshape(-1, 2)
    cloud = 50 * np.column_stack([rays, np.ones(len(rays))])
    assert neighbours.dynamic_radius_inliers(cloud, np.radians(0.2)).all()
    assert not neighbours.dynamic_radius_inliers(cloud, 0.0, min_radius=0.04).any()


def test_statistical_inliers_by_hand():
    """Nearest distances are 1, 1, 1, 7: mean 2.5, deviation 2.6; 7 is 1.7 deviations above."""
    cloud = [[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [9, 0, 0]]
    assert neighbours.statistical_inliers(cloud, 1, 1.0).tolist() == [True, True, True, False]
    assert neighbours.statistical_inliers(cloud, 1, 2.0).all()


def test_doubled_points_are_neighbours_of_each_other():
    kept = neighbours.dynamic_radius_inliers([[1.0, 1, 1], [1, 1, 1], [5, 5, 5]], 0.0, 1, min_radius=0.1)
    assert kept.tolist() == [True, True, False]


def test_the_spacing_of_beams_is_that_along_a_ring_and_doubles_do_not_matter():
    azimuth = np.radians(np.arange(0, 360, 0.5))
    flat = np.column_stack([np.cos(azimuth), np.sin(azimuth), 0 * azimuth])
    cloud = np.vstack([flat, flat * np.cos(0.1) + [0.0, 0.0, np.sin(0.1)]]) * np.linspace(3, 6, 1440)[:, None]
    spacing = neighbours.beam_spacing(cloud + np.array([1, 2, 3]), sensor=(1, 2, 3))
    assert spacing == pytest.approx(np.radians(0.5), rel=0.1)
    assert neighbours.beam_spacing(np.repeat(cloud, 2, axis=0)) == pytest.approx(spacing, rel=0.05)
    assert np.isnan(neighbours.beam_spacing([[1.0, 0.0, 0.0]]))


def test_no_neighbours_at_all_is_no_question():
    with pytest.raises(GeometryError, match="at least 1 neighbour, got 0"):
        neighbours.dynamic_radius_inliers(np.zeros((3, 3)), 1.0, 0)
    with pytest.raises(GeometryError, match=r"points: expected shape \(n, 3\), got \(3, 2\)"):
        neighbours.statistical_inliers(np.zeros((3, 2)))


# Voxels


def test_voxels_by_hand():
    cloud = [[0.1, 0.1, 0.1], [np.nan, 0, 0], [5, 5, 5], [0.3, 0.3, 0.9], [-0.1, 0.1, 0.1]]
    assert neighbours.voxel_indices(cloud, 1.0).tolist() == [0, 2, 4]
    means = [[0.2, 0.2, 0.5], [5, 5, 5], [-0.1, 0.1, 0.1]]
    np.testing.assert_allclose(neighbours.voxel_means(cloud, 1.0), means)


@given(vectors(100), st.floats(0.1, 50))
def test_every_point_has_one_voxel_and_every_voxel_its_first_point(cloud, size):
    cells = [tuple(cell) for cell in np.floor(cloud / size).tolist()]
    first = [k for k, cell in enumerate(cells) if cell not in cells[:k]]
    assert neighbours.voxel_indices(cloud, size).tolist() == first
    means = [np.mean([p for p, c in zip(cloud, cells, strict=True) if c == cells[k]], axis=0) for k in first]
    np.testing.assert_allclose(neighbours.voxel_means(cloud, size), np.reshape(means, (-1, 3)), atol=1e-9)


def test_the_grid_does_not_move_with_the_cloud():
    cloud = np.random.default_rng(6).uniform(0, 10, (500, 3))
    left, both = neighbours.voxel_indices(cloud[:250], 2.0), neighbours.voxel_indices(cloud, 2.0)
    assert set(left) <= set(both)


def test_empty_clouds_have_no_voxels():
    assert neighbours.voxel_indices(np.zeros((0, 3)), 1.0).shape == (0,)
    assert neighbours.voxel_means(np.zeros((0, 3)), 1.0).shape == (0, 3)
    assert neighbours.voxel_means(np.full((1, 3), np.nan), 1.0).shape == (0, 3)


def test_impossible_voxels_are_refused():
    with pytest.raises(GeometryError, match="voxel size greater than 0, got 0"):
        neighbours.voxel_indices([[0, 0, 0]], 0)
    with pytest.raises(GeometryError, match="too small for this cloud"):
        neighbours.voxel_indices([[0, 0, 0], [1e9, 1e9, 1e9]], 0.001)
