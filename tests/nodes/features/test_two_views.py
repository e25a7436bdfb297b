"""Fundamental matrices, camera motions and triangulated points of scenes that are known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from transect.errors import TransectError
from transect.nodes.features.two_views import (
    CameraMotion,
    EssentialMatrixDecomposition,
    FundamentalMatrixComputation,
    FundamentalMatrixMagsac,
    FundamentalMatrixRansac,
    Triangulation,
)
from transect.types import Pose

from .scenes import FOCAL_PX, LENS, TwoViews, pose_error, project, spread_points, two_views, within_chi_square

SIGMA_PX = 0.5
COMPUTATIONS = [FundamentalMatrixRansac(), FundamentalMatrixMagsac()]


def named(node: object) -> str:
    return type(node).__name__


def true_pose(views: TwoViews) -> Pose:
    return Pose(views.p, Rotation.from_matrix(views.R).as_quat())


def distances(F: np.ndarray, views: TwoViews) -> np.ndarray:
    """Pixels between the true projections into the second image and their epipolar lines."""
    source, sink = project(views.points, np.eye(3), np.zeros(3)), project(views.points, views.R, views.p)
    lines = np.column_stack([source, np.ones(len(source))]) @ F.T
    return np.abs(np.sum(np.column_stack([sink, np.ones(len(sink))]) * lines, axis=1)) / np.hypot(
        *lines[:, :2].T
    )


def found_motion(views: TwoViews, **parameters: float) -> CameraMotion:
    return EssentialMatrixDecomposition(**parameters)(views.fundamental, views.matches)


@pytest.mark.parametrize("computation", COMPUTATIONS, ids=named)
def test_the_matrix_is_found_among_outliers_and_again_to_the_byte(computation: FundamentalMatrixComputation):
    views = two_views(n=200, sigma=0.3, outliers=60)
    found = computation(views.matches)
    again = computation(views.matches)
    computation.reset()
    third = computation(views.matches)
    assert found.success is True
    assert found.fundamentalMatrix.tobytes() == again.fundamentalMatrix.tobytes()
    assert found.fundamentalMatrix.tobytes() == third.fundamentalMatrix.tobytes()
    assert np.median(distances(found.fundamentalMatrix, views)) < 0.3
    assert 130 <= len(found.inlierMatches) <= 150  # the true ones, and outliers that hit their line by chance
    assert found.inlierRatio == len(found.inlierMatches) / 200
    assert 0.2 < found.error < 0.5
    assert found.offPlane > 0.3


@pytest.mark.parametrize("computation", COMPUTATIONS, ids=named)
def test_the_matrix_is_that_of_pixels_without_lens(computation: FundamentalMatrixComputation):
    views = two_views(sigma=0.1, lens=LENS)
    found = computation(views.matches)
    assert np.median(distances(found.fundamentalMatrix, views)) < 0.3


def plane(seed: int = 0, n: int = 150) -> np.ndarray:
    points = spread_points(np.random.default_rng(seed), n)
    depth = 8 / (1 + 0.3 * points[:, 0] / points[:, 2])
    return points * (depth / points[:, 2])[:, None]


@pytest.mark.parametrize("computation", COMPUTATIONS, ids=named)
@pytest.mark.parametrize(
    "views",
    [
        two_views(p=(0, 0, 0), sigma=0.3),
        two_views(points=plane(), sigma=0.3),
        two_views(n=10, sigma=0.3),
        two_views(outliers=130, sigma=0.3),
    ],
    ids=["turned", "plane", "few", "outliers"],
)
def test_what_does_not_determine_the_matrix_is_refused(
    computation: FundamentalMatrixComputation, views: TwoViews
):
    found = computation(views.matches)
    assert found.success is False
    assert found.fundamentalMatrix is None
    assert found.inlierMatches is None


def test_the_motion_is_found_and_its_covariance_holds():
    """Of 10 scenes the normalised squared errors are chi-square: 5 degrees of freedom each."""
    squares = []
    for seed in range(10):
        views = two_views(seed, sigma=SIGMA_PX)
        found = found_motion(views, sigma=SIGMA_PX, threshold=3.0)
        length = np.linalg.norm(views.p)
        error = pose_error(found.transform.position, found.transform.orientation, views.R, views.p / length)
        squares.append(float(error @ np.linalg.pinv(found.covariance, rcond=1e-9) @ error))
        assert np.linalg.norm(found.transform.position) == pytest.approx(1)
    assert within_chi_square(squares, freedom=5)


def test_the_motion_has_the_length_that_was_given_and_names_its_frames():
    views = two_views(sigma=0.1)
    found = found_motion(views, baseline=0.25)
    assert np.linalg.norm(found.transform.position) == pytest.approx(0.25)
    assert (found.transform.frame, found.transform.child, found.transform.t_ns) == ("left", "right", 5)
    assert found.inliers > 140
    depth = np.linalg.norm(views.points, axis=1)
    assert found.parallax == pytest.approx(np.median(0.6 / depth), rel=0.3)
    unit = found_motion(views)
    np.testing.assert_allclose(found.covariance[:3, :3], unit.covariance[:3, :3] * 0.25**2)


def test_the_motion_of_bent_images_is_found():
    views = two_views(sigma=0.05, lens=LENS)
    found = found_motion(views)
    error = pose_error(
        found.transform.position, found.transform.orientation, views.R, views.p / np.linalg.norm(views.p)
    )
    assert np.abs(error).max() < 0.01


def test_the_motion_is_the_same_to_the_byte():
    node, views = EssentialMatrixDecomposition(), two_views()
    first = node(views.fundamental, views.matches)
    node.reset()
    again = node(views.fundamental, views.matches)
    assert first.transform.position.tobytes() == again.transform.position.tobytes()
    assert first.covariance.tobytes() == again.covariance.tobytes()


def refused(views: TwoViews, F: np.ndarray) -> str:
    node = EssentialMatrixDecomposition()
    found = node(F, views.matches)
    assert found.success is False
    assert found.transform is None
    (reason,) = node.ctx._count.skipped
    return reason


def test_a_camera_that_only_turned_has_no_motion():
    turned = two_views(p=(0, 0, 0))
    sideways = dataclasses.replace(turned, p=np.array([1.0, 0, 0]))  # a matrix that all pairs agree with
    assert "rotated" in refused(turned, sideways.fundamental)


def test_a_flat_scene_has_no_motion():
    views = two_views(points=plane())
    assert "flat" in refused(views, views.fundamental)


def test_a_matrix_of_other_cameras_has_no_motion():
    views = two_views()
    other = dataclasses.replace(views, p=np.array([0.0, 0.7, 0.1]))
    assert "few" in refused(views, other.fundamental)


def test_without_calibration_the_error_says_what_is_missing():
    views = two_views()
    bare = dataclasses.replace(views.matches, sink_camera=None)
    with pytest.raises(TransectError, match="second image of the matches came without a calibration"):
        EssentialMatrixDecomposition()(views.fundamental, bare)
    with pytest.raises(TransectError, match="without a calibration"):
        Triangulation()(bare, true_pose(views))


def test_points_are_where_they_are_and_their_covariances_hold():
    views = two_views(n=300, sigma=SIGMA_PX)
    cloud = Triangulation(sigma=SIGMA_PX, gate=5.0)(views.matches, true_pose(views)).pointcloud
    error = cloud.points - views.points[cloud.fields["index"]]
    inverse = np.linalg.inv(cloud.fields["covariance"].reshape(-1, 3, 3).astype(np.float64))
    assert within_chi_square(np.einsum("ni,nij,nj->n", error, inverse, error).tolist(), freedom=3)
    assert cloud.frame == "left"
    assert np.median(np.linalg.norm(error, axis=1)) < 0.15


def test_parallax_is_the_angle_between_the_rays_and_the_gate_goes_by_it():
    views = two_views(sigma=0.0)
    pose = true_pose(views)
    everything = Triangulation(parallax=0.0)(views.matches, pose)
    a, b = views.points, views.points - views.p
    angle = np.arccos(np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))
    np.testing.assert_allclose(everything.pointcloud.fields["parallax"], angle, atol=1e-5)
    limit = float(np.median(angle))
    half = Triangulation(parallax=limit)(views.matches, pose)
    assert half.kept == 0.5
    assert set(half.pointcloud.fields["index"]) == set(np.flatnonzero(angle > limit))


def test_false_matches_and_points_behind_become_no_points():
    views = two_views(n=150, sigma=0.2, outliers=50)
    found = Triangulation(sigma=0.2)(views.matches, true_pose(views))
    assert np.count_nonzero(found.pointcloud.fields["index"] >= 100) <= 5
    turned_round = Pose(-views.p, Rotation.from_matrix(views.R).as_quat())
    assert Triangulation()(two_views(sigma=0.2).matches, turned_round) is None


def test_rays_that_do_not_cross_give_no_point():
    views = two_views(p=(0, 0, 0), sigma=0.0)
    assert Triangulation(parallax=0.0)(views.matches, Pose(np.zeros(3), true_pose(views).orientation)) is None
    assert 0.005 * FOCAL_PX == 3.5  # pixels of disparity that the default asks for


def test_points_are_the_same_to_the_byte():
    views, node = two_views(), Triangulation()
    first = node(views.matches, true_pose(views)).pointcloud
    node.reset()
    again = node(views.matches, true_pose(views)).pointcloud
    assert first.points.tobytes() == again.points.tobytes()
    assert first.fields["covariance"].tobytes() == again.fields["covariance"].tobytes()
