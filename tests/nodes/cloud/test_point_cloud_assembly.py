"""Assembly: means that can be worked out by hand, and two noisy views of one surface."""

from __future__ import annotations

import numpy as np
import pytest

from transect.errors import GeometryError
from transect.nodes.cloud.point_cloud_assembly import (
    NeighbourPointAverage,
    NeighbourSinglePointAverage,
    PointCloudAssembly,
    VoxelBinning,
    WeightedVoxel,
    fuse,
)
from transect.types import PointCloud, Pose


def cloud(*points: tuple[float, float, float], **fields: list[float]) -> PointCloud:
    return PointCloud(np.array(points, float), {name: np.array(values) for name, values in fields.items()})


def test_a_point_and_its_neighbours_become_their_mean_and_the_rest_moves_along():
    first = cloud((0, 0, 0), (5, 0, 0))
    second = cloud((0.1, 0, 0), (0.3, 0, 0), (9, 0, 0))
    joined = NeighbourPointAverage(max_distance=0.5)(second, first)
    # 0 and the mean 0.2 of its two neighbours meet at 0.1: the first cloud's other point moves by +0.1, the
    # second's as its nearest replaced one, from 0.3 to 0.1.
    np.testing.assert_allclose(joined.points, [[0.1, 0, 0], [5.1, 0, 0], [8.8, 0, 0]])


def test_only_the_nearest_neighbour_is_averaged():
    first = cloud((0, 0, 0), (5, 0, 0))
    second = cloud((0.1, 0, 0), (0.3, 0, 0), (9, 0, 0))
    joined = NeighbourSinglePointAverage(max_distance=0.5)(second, first)
    np.testing.assert_allclose(joined.points, [[0.05, 0, 0], [5.05, 0, 0], [0.25, 0, 0], [8.95, 0, 0]])


@pytest.mark.parametrize("implementation", [NeighbourPointAverage, NeighbourSinglePointAverage])
def test_clouds_that_do_not_overlap_are_put_side_by_side(implementation: type[PointCloudAssembly]):
    first, second = cloud((0, 0, 0), intensity=[3]), cloud((9, 0, 0), intensity=[4])
    joined = implementation()(second, first)
    np.testing.assert_array_equal(joined.points, [[0, 0, 0], [9, 0, 0]])
    np.testing.assert_array_equal(joined.fields["intensity"], [3, 4])


@pytest.mark.parametrize(
    "implementation", [NeighbourPointAverage, NeighbourSinglePointAverage, VoxelBinning, WeightedVoxel]
)
def test_the_first_cloud_need_not_be_there_and_what_is_not_measured_stays_out(
    implementation: type[PointCloudAssembly],
):
    joined = implementation()(cloud((0.001, 0, 0), (np.nan, 0, 0), (9, 0, 0)))
    np.testing.assert_allclose(joined.points, [[0.001, 0, 0], [9, 0, 0]])


def test_only_what_lies_within_the_view_is_given():
    centre = Pose(np.array([9.0, 0, 0]), np.array([0.0, 0, 0, 1]))
    joined = VoxelBinning()(cloud((0, 0, 0), (9, 1, 0)), None, centre, 2.0)
    np.testing.assert_allclose(joined.points, [[9, 1, 0]])


def test_averaging_neighbours_thins_the_noise_of_two_views_and_leaves_no_double_surface():
    rng = np.random.default_rng(0)
    xy = np.stack(np.meshgrid(np.arange(40), np.arange(40)), axis=-1).reshape(-1, 2) * 0.05
    views = [PointCloud(np.column_stack([xy, rng.normal(z, 0.002, len(xy))])) for z in (0.0, 0.02)]
    joined = NeighbourPointAverage(max_distance=0.05)(views[1], views[0])
    assert len(joined) < 1.2 * len(xy)
    assert joined.points[:, 2].mean() == pytest.approx(0.01, abs=1e-3)
    assert joined.points[:, 2].std() < 0.002


def test_voxels_hold_the_mean_of_all_that_ever_fell_into_them():
    node, model = VoxelBinning(size=1.0), None
    for x in (0.1, 0.4, 0.7):
        model = node(cloud((x, 0.5, 0.5), (10 + x, 0.5, 0.5)), model)
    np.testing.assert_allclose(model.points, [[0.4, 0.5, 0.5], [10.4, 0.5, 0.5]])
    np.testing.assert_array_equal(model.fields["count"], [3, 3])


def test_points_count_by_the_inverse_of_their_variance():
    first = cloud((0.2, 0, 0), sigma_along=[0.1], sigma_across=[0.0])
    second = cloud((0.7, 0, 0), sigma_along=[0.3], sigma_across=[0.0])
    joined = WeightedVoxel(size=1.0)(second, first)
    assert joined.points[0, 0] == pytest.approx((0.2 * 9 + 0.7) / 10)


def test_without_deviations_points_count_by_the_fourth_power_of_their_range():
    near = PointCloud(np.array([[2.2, 0, 0]]), viewpoint=np.array([1.2, 0, 0, 0, 0, 0, 1.0]))
    far = PointCloud(np.array([[2.8, 0, 0]]), viewpoint=np.array([0.8, 0, 0, 0, 0, 0, 1.0]))
    joined = WeightedVoxel(size=1.0)(far, near)
    assert joined.points[0, 0] == pytest.approx((2.2 * 16 + 2.8) / 17)


def test_fusing_is_what_a_dictionary_of_voxels_gives():
    rng = np.random.default_rng(0)
    points, weights = rng.uniform(-3, 3, (5000, 3)) + np.array([5e5, 5e6, 0]), rng.uniform(0.1, 1, 5000)
    voxels: dict[tuple[int, ...], list[int]] = {}
    for i, cell in enumerate(np.floor(points / 0.3).astype(int)):
        voxels.setdefault(tuple(cell), []).append(i)
    means = [np.average(points[rows], axis=0, weights=weights[rows]) for rows in voxels.values()]
    found = fuse(points, weights, 0.3)
    np.testing.assert_allclose(found.points, means, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(found.first, [rows[0] for rows in voxels.values()])
    np.testing.assert_array_equal(found.number, [len(rows) for rows in voxels.values()])


def test_voxels_too_small_for_the_cloud_are_refused():
    with pytest.raises(GeometryError, match="too small"):
        fuse(np.array([[0.0, 0, 0], [1e7, 0, 0]]), np.ones(2), 0.01)
