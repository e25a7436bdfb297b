"""Filters, transformation, octrees and scans: numbers that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from transect.errors import TransectError, UsageError
from transect.geometry import rotations, se3
from transect.nodes.cloud.point_cloud_conversion import (
    CartesianSystemTransform,
    LaserScanToPointCloud,
    Octree,
    PointCloudVoxelization,
)
from transect.nodes.cloud.point_cloud_filtering import (
    DynamicRadius,
    PointCloudFiltering,
    RangeFilter,
    SelfFilter,
    StatisticalOutlierRemoval,
    VoxelGrid,
)
from transect.recording import FrameTree
from transect.types import CameraModel, Image, LaserScan, PointCloud, Pose

SQUARE = np.stack(np.meshgrid(np.arange(10) * 0.1, np.arange(10) * 0.1, [1.0]), axis=-1).reshape(-1, 3)


def numbered(points: np.ndarray) -> PointCloud:
    return PointCloud(points, {"row": np.arange(len(points))}, t_ns=7, frame="lidar")


@pytest.mark.parametrize("implementation", [StatisticalOutlierRemoval, DynamicRadius])
def test_a_point_far_from_all_others_is_left_out_and_fields_stay_with_their_points(
    implementation: type[PointCloudFiltering],
):
    points = np.vstack([SQUARE, [[0.5, 0.5, 9.0]], [[np.nan, 0, 0]]])
    node = implementation() if implementation is StatisticalOutlierRemoval else DynamicRadius(resolution=0.05)
    kept = node(numbered(points))
    np.testing.assert_array_equal(kept.fields["row"], np.arange(100))
    np.testing.assert_array_equal(kept.points, SQUARE)
    assert (kept.t_ns, kept.frame) == (7, "lidar")


def test_voxels_leave_the_mean_of_their_points():
    kept = VoxelGrid(size=1.0)(numbered(np.array([[0.1, 0, 0], [0.3, 0, 0], [5.0, 0, 0]])))
    np.testing.assert_allclose(kept.points, [[0.2, 0, 0], [5, 0, 0]])
    np.testing.assert_array_equal(kept.fields["row"], [0, 2])


def test_voxels_choose_their_size_by_the_number_of_points():
    flat = np.random.default_rng(0).uniform(0, [50, 50, 0.001], (20_000, 3))
    assert 350 < len(VoxelGrid(points=500)(PointCloud(flat))) < 700


def test_range_counts_from_the_viewpoint():
    cloud = PointCloud(
        np.array([[1.0, 0, 0], [4, 0, 0], [9, 0, 0]]), viewpoint=np.array([3.0, 0, 0, 0, 0, 0, 1])
    )
    kept = RangeFilter(min_range=1.5, max_range=5.0)(cloud)
    np.testing.assert_array_equal(kept.points[:, 0], [1.0])


def test_the_robot_itself_is_left_out():
    points = np.array([[0.2, 0.1, 0.0], [2.0, 0, 0], [0.9, 0.0, 0.9], [np.nan, 0, 0]])
    node = SelfFilter(boxes=[[-0.5, -0.5, -0.5, 0.5, 0.5, 0.5], [0.8, -0.1, 0.8, 1.0, 0.1, 1.0]])
    np.testing.assert_array_equal(node(PointCloud(points)).points, [[2.0, 0, 0]])


def test_boxes_may_be_given_in_the_frame_of_the_robot():
    node = SelfFilter(boxes=[[-0.1, -0.1, -0.1, 0.1, 0.1, 0.1]], frame="base")
    node.ctx.frames = FrameTree()
    node.ctx.frames.add_static("base", "lidar", se3.from_matrix(np.eye(3), [0.0, 0, 1]))
    kept = node(PointCloud(np.array([[0.0, 0, -1], [0, 0, 0]]), frame="lidar"))
    np.testing.assert_array_equal(kept.points, [[0, 0, 0]])


def test_an_invalid_box_is_refused():
    with pytest.raises(UsageError, match="boxes"):
        SelfFilter(boxes=[[1, 0, 0, -1, 0, 0]])(PointCloud(SQUARE))


def test_a_cloud_is_turned_with_its_normals_its_covariances_and_its_viewpoint():
    quarter = rotations.quaternion_from_euler("Z", [np.pi / 2])
    cloud = PointCloud(
        np.array([[1.0, 0, 0]]),
        {"normal": np.array([[1.0, 0, 0]]), "covariance": np.diag([4.0, 1, 1]).reshape(1, 9)},
        frame="lidar",
    )
    seen = CartesianSystemTransform()(
        cloud, Pose(np.array([10.0, 0, 0]), quarter, frame="map", child="lidar")
    )
    np.testing.assert_allclose(seen.points, [[10, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(seen.fields["normal"], [[0, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(seen.fields["covariance"].reshape(3, 3), np.diag([1.0, 4, 1]), atol=1e-12)
    np.testing.assert_allclose(seen.viewpoint, [10, 0, 0, *quarter])
    assert seen.frame == "map"


def test_a_pose_that_is_not_known_moves_nothing():
    unknown = Pose(np.full(3, np.nan), np.array([0.0, 0, 0, 1]))
    assert CartesianSystemTransform()(PointCloud(SQUARE), unknown) is None


def test_leaves_of_an_octree_are_the_cubes_that_have_points():
    points = np.array([[0.05, 0.05, 0.05], [0.06, 0.05, 0.05], [0.75, 0.05, 0.05], [0.05, 0.35, 0.05]])
    tree = PointCloudVoxelization(resolution=0.1)(PointCloud(points))
    assert (tree.depth, tree.size) == (3, pytest.approx(0.8))
    np.testing.assert_array_equal(tree.leaves, [[0, 0, 0], [0, 3, 0], [7, 0, 0]])  # by Morton code
    np.testing.assert_array_equal(tree.counts, [2, 1, 1])
    np.testing.assert_allclose(tree.centres[0], [0.05, 0.05, 0.05])


def test_a_depth_image_of_a_wall_fills_one_layer():
    model = CameraModel("depth", 64, 48, np.array([[50.0, 0, 31.5], [0, 50.0, 23.5], [0, 0, 1]]))
    wall = np.full((48, 64), 2025, np.uint16)  # millimetres
    wall[:, :32] = 0
    tree = Octree(resolution=0.05)(Image(wall, "depth", camera=model))
    assert set(tree.centres[:, 2].round(3)) == {2.025}
    assert tree.centres[:, 0].min() > 0
    assert tree.counts.sum() == 48 * 32
    assert Octree()(Image(np.zeros((4, 4), np.float32), "depth", camera=model)) is None


def test_a_depth_image_without_calibration_is_refused():
    with pytest.raises(TransectError, match="no camera"):
        Octree()(Image(np.ones((4, 4), np.float32), "depth"))


def test_a_sweep_becomes_points_with_their_beams():
    scan = LaserScan(
        np.array([1.0, np.nan, 2.0, 90.0]), 0.0, np.pi / 2, np.arange(4.0), 0.1, 80.0, frame="laser"
    )
    cloud = LaserScanToPointCloud()(scan)
    np.testing.assert_allclose(cloud.points, [[1, 0, 0], [-2, 0, 0]], atol=1e-12)
    np.testing.assert_array_equal(cloud.fields["beam"], [0, 2])
    np.testing.assert_array_equal(cloud.fields["intensity"], [0, 2])
    assert LaserScanToPointCloud()(LaserScan(np.full(3, np.nan), 0.0, 0.1)) is None
