"""Registration of a simulated room with known transforms, and rejection of failures."""

from __future__ import annotations

import copy
import sys

import numpy as np
import pytest
from tests.oracles import pcl_cloud

from transect.algorithms.registration.cloud_alignment import CloudAlignment, RegistrationQuality
from transect.algorithms.registration.feature_matching import ransac_consensus
from transect.algorithms.registration.gicp import VoxelMap, downsample_cloud
from transect.algorithms.registration.icp import (
    AlternativePose,
    point_to_plane,
    point_to_point,
    run_icp,
    sample_surface,
    select_near_pairs,
    select_nearest_pairs,
)
from transect.errors import MissingExtraError
from transect.geometry import rotations, se3
from transect.nodes.cloud.features_3d import Fpfh, Uniform
from transect.nodes.cloud.point_cloud_filtering import VoxelGrid
from transect.nodes.registration import (
    FeaturesMatching3D,
    Gicp,
    Icp3D,
    IcpCC,
    IcpMatcher,
    KissMatcher,
    PointToPlane,
    PointToPoint,
    Ransac3D,
    Registration3D,
)
from transect.types import Features3D, PointCloud, Pose

LARGE_MOTION = se3.exp(np.array([0.6, -0.7, 0.38, 0.2, 0.15, 0.25]))
"""1 m and 20 degrees."""


def faces(rng: np.random.Generator, low: np.ndarray, high: np.ndarray, n: int) -> np.ndarray:
    """Return points on the faces of a box, equally many on each."""
    points = rng.uniform(low, high, (6, n, 3))
    for axis in range(3):
        points[2 * axis, :, axis], points[2 * axis + 1, :, axis] = low[axis], high[axis]
    return points.reshape(-1, 3)


def room(seed: int) -> np.ndarray:
    """Return a room of 8 by 6 by 3 m with four boxes and 5 mm of noise; every seed samples it differently."""
    rng = np.random.default_rng(seed)
    parts = [faces(rng, np.array([-3.0, -2, -1.2]), np.array([5.0, 4, 1.8]), 600)]
    for x, y, a, b, h in (
        (1, 2, 1, 0.6, 1),
        (3, -1, 0.5, 1.4, 1.5),
        (-2, 1, 0.7, 0.7, 0.5),
        (4, 3, 0.8, 0.4, 2),
    ):
        low = np.array([x, y, -1.2])
        parts.append(faces(rng, low, low + np.array([a, b, h]), 120))
    points = np.vstack(parts)
    return points + rng.normal(0, 0.005, points.shape)


def corridor(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = faces(rng, np.array([-15.0, -1, -1]), np.array([15.0, 1, 1]), 900)[1800:]
    return points + rng.normal(0, 0.005, points.shape)


SINK = PointCloud(room(0), frame="map")
SOURCE = PointCloud(
    se3.apply(LARGE_MOTION, room(1)), frame="lidar", viewpoint=np.array([*LARGE_MOTION[:3, 3], 0, 0, 0, 1])
)
TRUTH = se3.invert(LARGE_MOTION)


def pose_guess(T: np.ndarray) -> Pose:
    q, p = se3.to_quaternion(T)
    return Pose(p, q)


def error(pose: Pose) -> tuple[float, float]:
    """Return the error in m and degrees."""
    difference = TRUTH @ se3.invert(se3.from_quaternion(pose.orientation, pose.position))
    angle = rotations.rotation_vector_from_matrix(difference[:3, :3])
    return float(np.linalg.norm(pose.position - TRUTH[:3, 3])), float(np.degrees(np.linalg.norm(angle)))


@pytest.mark.parametrize("method", [Gicp, PointToPlane, PointToPoint])
def test_a_room_is_registered_from_a_close_guess(method: type[Registration3D]):
    start = TRUTH @ se3.exp(np.array([0.1, -0.05, 0.1, 0.03, -0.04, 0.03]))
    found = method()(SOURCE, SINK, pose_guess(start))
    distance, angle = error(found.transform)
    assert found.success
    assert found.converged
    assert distance < (0.03 if method is PointToPoint else 0.01)
    assert angle < (0.4 if method is PointToPoint else 0.1)
    assert found.fitness > 0.8
    assert found.rmse < 0.2
    assert found.degeneracy > 0.05
    assert (found.transform.frame, found.transform.child) == ("map", "lidar")
    sigma = np.sqrt(np.diag(found.covariance))
    assert (sigma[:3] > 1e-4).all()
    assert (sigma[:3] < 0.02).all()


def test_registration_is_deterministic():
    first, second = (Gicp()(SOURCE, SINK, pose_guess(TRUTH)) for _ in range(2))
    np.testing.assert_array_equal(first.transform.position, second.transform.position)
    np.testing.assert_array_equal(first.covariance, second.covariance)


def test_a_disabled_guess_is_not_used():
    moved = PointCloud(se3.apply(se3.exp(np.array([0.05, 0.02, 0, 0, 0, 0.01])), room(1)))
    wrong_guess = pose_guess(se3.exp(np.array([40.0, 0, 0, 0, 0, 0])))
    assert Gicp()(moved, SINK, wrong_guess, False).success
    assert not Gicp()(moved, SINK, wrong_guess, True).success


def test_clouds_without_overlap_are_refused_and_no_pose_is_given():
    distant = PointCloud(SINK.points + np.array([100.0, 0, 0]))
    found = Gicp()(distant, SINK)
    assert found.success is False
    assert found.transform is None


def test_too_few_points_are_refused():
    found = PointToPlane()(PointCloud(SINK.points[:20]), SINK)
    assert found.success is False
    assert found.transform is None


def test_too_few_iterations_are_not_converged():
    found = PointToPoint(iterations=2)(SOURCE, SINK, pose_guess(TRUTH @ se3.exp(np.full(6, 0.08))))
    assert not found.converged
    assert not found.success


@pytest.mark.parametrize("method", [Gicp, PointToPoint])
def test_a_corridor_is_degenerate_along_its_axis(method: type[Registration3D]):
    found = method()(PointCloud(corridor(1)), PointCloud(corridor(0)))
    assert found.success is False
    assert found.degeneracy < 0.01
    assert abs(found.weakest[0]) > 0.95


@pytest.mark.parametrize(
    ("node", "limits"),
    [(Icp3D(), (0.03, 0.4)), (IcpCC(), (0.03, 0.4)), (IcpMatcher(), (0.01, 0.1))],
    ids=["pcl", "cloudcompare", "libpointmatcher"],
)
def test_the_methods_of_table_5_register_a_room_repeatably(node: Registration3D, limits: tuple[float, float]):
    start = pose_guess(TRUTH @ se3.exp(np.array([0.1, -0.05, 0.1, 0.03, -0.04, 0.03])))
    found, second_run = node(SOURCE, SINK, start), type(node)()(SOURCE, SINK, start)
    distance, angle = error(found.transform)
    assert found.success
    assert distance < limits[0]
    assert angle < limits[1]
    assert found.fitness > 0.8
    assert found.iterations < node.iterations
    np.testing.assert_array_equal(found.transform.position, second_run.transform.position)


@pytest.mark.parametrize("node", [Icp3D(), IcpCC(), IcpMatcher()])
def test_the_methods_of_table_5_reject_clouds_without_overlap(node: Registration3D):
    found = node(PointCloud(np.random.default_rng(0).uniform(-20, 20, (2000, 3))), SINK)
    assert found.success is False
    assert found.transform is None


class FixedResult(Registration3D):
    """Returns a given pose, with an alternative that fits `ratio` times worse."""

    def align(self, source: np.ndarray, sink: np.ndarray, initial: np.ndarray) -> CloudAlignment:
        return CloudAlignment(
            self.pose, True, 5, RegistrationQuality(0.8, 0.02, alternative=AlternativePose(self.ratio, 0.3))
        )


def test_on_an_ambiguous_sink_an_unmoved_result_is_rejected():
    """A rover that drives on gets further away, and its view fits best at the initial guess."""
    node, unmoved, moved_pose = FixedResult(), np.eye(4), se3.exp(np.array([1.6, 0, 0, 0, 0, 0]))
    other = PointCloud(SINK.points + np.float32(0.5))

    def succeeds(pose: np.ndarray, ratio: float, sink: PointCloud = SINK) -> bool | None:
        node.pose, node.ratio = pose, ratio
        return node(SOURCE, sink).success

    assert succeeds(unmoved, 1.3)  # no ambiguity yet
    assert not succeeds(unmoved, 0.8)
    assert not succeeds(unmoved, 1.3)
    assert not succeeds(unmoved, 1.3)
    assert succeeds(unmoved, 1.3, other)  # another sink
    assert not succeeds(unmoved, 0.8)
    assert succeeds(moved_pose, 1.3)
    assert succeeds(unmoved, 1.3)


def test_steps_of_icp_are_those_of_pcl():
    points = pcl_cloud.cloud()[0].astype(np.float64)
    source = se3.apply(pcl_cloud.moved(), points)
    for count, expected in zip(*pcl_cloud.answers("icp"), strict=True):
        found = run_icp(
            source,
            points,
            np.eye(4),
            select_near_pairs(pcl_cloud.SEARCH_RADIUS),
            point_to_point(points),
            lambda *_: False,
            count,
        )
        np.testing.assert_allclose(found.matrix[:3].ravel(), expected, atol=1e-4)


@pytest.mark.parametrize(("variant", "limits"), [("trimmed", (1e-4, 1e-4)), ("planes", (5e-4, 1e-4))])
def test_steps_of_the_nearest_pairs_are_those_of_pcl(variant: str, limits: tuple[float, float]):
    """The loops of `IcpCC` (points) and `IcpMatcher` (planes), with PCL's rejection of the most distant 15 %.

    PCL builds the rotation of a plane fit from Euler angles, this package by the exponential map: large steps
    differ, and both converge to the same pose.
    """
    points, normals = (each.astype(np.float64) for each in pcl_cloud.cloud())
    source = se3.apply(pcl_cloud.moved(), points)
    fit_motion = point_to_point(points) if variant == "trimmed" else point_to_plane(points, normals)
    for count, expected in zip(*pcl_cloud.answers(variant), strict=True):
        found = run_icp(
            source, points, np.eye(4), select_nearest_pairs(0.85), fit_motion, lambda *_: False, count
        )
        limit = limits[1] if count == 10 else limits[0]
        np.testing.assert_allclose(found.matrix[:3].ravel(), expected, atol=limit)


def test_a_sampled_surface_has_the_normals_of_its_boxes():
    faces = np.random.default_rng(0).uniform(0, 1, (2, 2000, 3))
    faces[0, :, 0], faces[1, :, 2] = 2, -1  # one face is normal to x, the other to z
    points, normals = sample_surface(faces.reshape(-1, 3), 7, 0.5, np.random.default_rng(0))
    assert 1900 < len(points) < 2100
    on_first = points[:, 0] == 2
    np.testing.assert_allclose(np.abs(normals[on_first]), np.tile([1, 0, 0], (on_first.sum(), 1)), atol=1e-6)
    np.testing.assert_allclose(
        np.abs(normals[~on_first]), np.tile([0, 0, 1], ((~on_first).sum(), 1)), atol=1e-6
    )


@pytest.fixture(scope="module")
def described() -> tuple[Features3D, Features3D]:
    """Return both clouds downsampled and described."""
    downsample_cloud, describe = VoxelGrid(points=1500), Fpfh()
    source, sink = (
        describe(cloud, Uniform()(cloud)) for cloud in (downsample_cloud(SOURCE), downsample_cloud(SINK))
    )
    return source, sink


@pytest.mark.parametrize("node", [Ransac3D(), KissMatcher()], ids=["ransac", "kiss"])
def test_features_register_a_room_without_a_guess(
    node: FeaturesMatching3D, described: tuple[Features3D, Features3D]
):
    found, second_run = node(*described), node(*described)
    distance, angle = error(found.transform)
    assert found.success
    assert distance < 0.15
    assert angle < 3
    assert 10 <= found.inliers <= found.matches
    np.testing.assert_array_equal(found.transform.position, second_run.transform.position)


@pytest.mark.parametrize("node", [Ransac3D(), KissMatcher()], ids=["ransac", "kiss"])
def test_unrelated_features_are_rejected(node: FeaturesMatching3D):
    rng = np.random.default_rng(0)
    a, b = (Features3D(rng.uniform(0, 9, (60, 3)), descriptors=rng.uniform(size=(60, 33))) for _ in range(2))
    found = node(a, b)
    assert found.success is False
    assert found.transform is None
    assert node(Features3D(a.points), b).success is False


def test_ransac_finds_30_percent_inliers():
    rng = np.random.default_rng(0)
    source = rng.uniform(-5, 5, (200, 3))
    sink = se3.apply(TRUTH, source) + rng.normal(0, 0.01, (200, 3))
    sink[60:] = rng.uniform(-5, 5, (140, 3))
    found = ransac_consensus(source, sink, 0.1, 20_000, np.random.default_rng(1))
    assert found is not None
    np.testing.assert_allclose(found.matrix, TRUTH, atol=0.02)
    assert found.inliers[:60].all()


def test_a_copy_of_a_map_with_dropped_scans_aligns_identically():
    voxels, scan = VoxelMap(0.5, history=10), downsample_cloud(SINK.points, 0.4)
    for i in range(60):  # a room every 0.7 m: only the last dozen overlap with the stored ones
        voxels.insert([scan], se3.exp(np.array([[0.7 * i, 0, 0, 0, 0, 0]])))
    other = copy.deepcopy(voxels)
    last = se3.exp(np.array([0.7 * 59, 0, 0, 0, 0, 0]))
    start = last @ se3.exp(np.array([0.1, 0, 0, 0, 0, 0.02]))
    first, second = voxels.align(scan, start), other.align(scan, start)
    assert len(voxels._scans) < 40
    assert len(voxels) == len(other)
    np.testing.assert_array_equal(first.T_target_source, second.T_target_source)
    np.testing.assert_allclose(first.T_target_source, last, atol=0.05)


@pytest.mark.parametrize("library", ["small_gicp", "kiss_matcher"])
def test_a_missing_library_is_reported_with_its_extra(
    library: str, monkeypatch: pytest.MonkeyPatch, described: tuple[Features3D, Features3D]
):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'transect\[fusion\]'"):
        Gicp()(SOURCE, SINK) if library == "small_gicp" else KissMatcher()(*described)


def bumpy_plain(shift: float) -> PointCloud:
    """Return bumps on a plain, seen from `shift` m along it within a fixed field of view."""
    rng = np.random.default_rng(7)
    centres, sizes = rng.uniform(-3, 4, (900, 2)), rng.uniform(0.02, 0.06, 900)
    points = np.random.default_rng(round(100 * shift)).uniform(-1.2, 1.2, (3000, 2))
    squared = np.sum((points[:, None] + np.array([shift, 0.0]) - centres) ** 2, axis=2)
    height = np.sum(sizes * np.exp(-squared / (2 * 0.08**2)), axis=1)
    return PointCloud(np.column_stack([points, height]))


@pytest.mark.parametrize(
    ("kind", "shift", "succeeds"), [(IcpCC, 0.01, True), (IcpCC, 0.4, False), (IcpMatcher, 0.4, True)]
)
def test_unmoved_results_on_repetitive_ground_are_rejected(
    kind: type[Registration3D], shift: float, succeeds: bool
) -> None:
    """Point-to-point ICP converges 0.4 m off with a high overlap, as the dense variants of the paper did."""
    found = kind()(sourceCloud=bumpy_plain(shift), sinkCloud=bumpy_plain(0.0))
    assert found.success == succeeds
    if succeeds:
        assert found.transform.position == pytest.approx([shift, 0, 0], abs=0.02)
