"""Cameras among known points, and clouds matched point by point."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from transect.errors import TransectError, UsageError
from transect.nodes.features.pose_estimation import (
    Ap3pRansac,
    Epnp,
    EstimatedTransforms,
    IterativePnpSolver,
    LeastSquaresMinimization,
    PerspectiveNPointSolving,
    RobustEstimation,
    Sqpnp,
    Transform3DEstimation,
)
from transect.types import CorrespondenceMaps3D, Correspondences3D

from .scenes import LENS, pose_error, resection, within_chi_square

SIGMA_PX = 0.5
SOLVERS = [IterativePnpSolver, Ap3pRansac, Epnp, Sqpnp]
ESTIMATORS = [LeastSquaresMinimization(), RobustEstimation(threshold=0.2)]


def named(node: object) -> str:
    return node.__name__ if isinstance(node, type) else type(node).__name__


@pytest.mark.parametrize("solver", SOLVERS, ids=named)
def test_the_camera_is_found_and_its_covariance_holds(solver: type[PerspectiveNPointSolving]):
    """Of 10 scenes the normalised squared errors are chi-square: 6 degrees of freedom each."""
    squares = []
    for seed in range(10):
        points, pixels, R, p = resection(seed, sigma=SIGMA_PX)
        found = solver(sigma=SIGMA_PX, threshold=3.0)(points, pixels)
        error = pose_error(found.camera.position, found.camera.orientation, R, p)
        squares.append(float(error @ np.linalg.solve(found.covariance, error)))
        assert found.success is True
        assert found.error == pytest.approx(SIGMA_PX * np.sqrt(2), rel=0.3)
    assert within_chi_square(squares, freedom=6)


@pytest.mark.parametrize("solver", SOLVERS, ids=named)
def test_the_camera_is_the_same_to_the_byte(solver: type[PerspectiveNPointSolving]):
    points, pixels, _, _ = resection()
    node = solver()
    first, again = node(points, pixels), node(points, pixels)
    node.reset()
    third = node(points, pixels)
    for part in ("position", "orientation"):
        kept = {getattr(each.camera, part).tobytes() for each in (first, again, third)}
        assert len(kept) == 1
    assert (first.camera.frame, first.camera.child, first.camera.t_ns) == ("map", "left", 7)


def test_only_the_sampling_solver_stands_outliers():
    points, pixels, R, p = resection(n=100, outliers=40)
    found = Ap3pRansac()(points, pixels)
    assert np.abs(pose_error(found.camera.position, found.camera.orientation, R, p)).max() < 0.05
    assert found.inliers[:60].mean() > 0.95
    assert found.inliers[60:].mean() < 0.1
    for solver in (IterativePnpSolver, Epnp, Sqpnp):
        refused = solver()(points, pixels)
        assert refused.success is False
        assert refused.camera is None


def test_a_lens_is_taken_into_account():
    points, pixels, R, p = resection(sigma=0.05, lens=LENS)
    found = Sqpnp()(points, pixels)
    assert np.abs(pose_error(found.camera.position, found.camera.orientation, R, p)).max() < 0.01


def test_points_that_were_not_measured_are_left_out():
    points, pixels, R, p = resection(sigma=0.1)
    holes = points.points.copy()
    holes[::3] = np.nan
    found = Epnp()(dataclasses.replace(points, points=holes), pixels)
    assert np.abs(pose_error(found.camera.position, found.camera.orientation, R, p)).max() < 0.02
    assert not found.inliers[::3].any()


@pytest.mark.parametrize("solver", SOLVERS, ids=named)
def test_points_that_do_not_determine_a_pose_are_refused(solver: type[PerspectiveNPointSolving]):
    line = np.array([0.2, 0.1, 5.0]) + np.linspace(-1, 1, 30)[:, None] * [1.0, 0.4, 0.5]
    points, pixels, _, _ = resection(n=30, points=line)
    assert solver()(points, pixels).success is False
    points, pixels, _, _ = resection(n=5)
    assert solver()(points, pixels).success is False


def test_rows_must_belong_together_and_a_camera_must_be_known():
    points, pixels, _, _ = resection()
    with pytest.raises(UsageError, match="80 points cannot belong to 79 projections"):
        Sqpnp()(points, dataclasses.replace(pixels, points=pixels.points[1:]))
    with pytest.raises(TransectError, match="without a calibration"):
        Sqpnp()(points, dataclasses.replace(pixels, camera=None))


# Matched clouds


def clouds(seed: int = 0, n: int = 60, sigma: float = 0.05, outliers: int = 0):
    """Points of a frame A seen from a frame B: pairs, and R, t with ``b = R a + t``."""
    rng = np.random.default_rng(seed)
    R, t = Rotation.from_rotvec(rng.normal(0, 0.5, 3)).as_matrix(), rng.normal(0, 3, 3)
    a = rng.uniform([1, -4, -4], [9, 4, 4], (n, 3))
    b = a @ R.T + t + rng.normal(0, sigma, (n, 3))
    if outliers:
        b[-outliers:] = rng.uniform(-8, 8, (outliers, 3))
    return Correspondences3D(a, b), R, t


def error_of(found: EstimatedTransforms, row: int, R: np.ndarray, t: np.ndarray) -> np.ndarray:
    return pose_error(found.transforms.positions[row], found.transforms.orientations[row], R, t)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_transforms_are_found_and_their_covariances_hold(estimator: Transform3DEstimation):
    """Of 20 pairs, with the variance estimated from 3 * 60 - 6 residuals: nearly chi-square with 6."""
    scenes = [clouds(seed) for seed in range(20)]
    found = estimator(CorrespondenceMaps3D(tuple(pairs for pairs, _, _ in scenes), t_ns=4))
    assert found.success is True
    squares = []
    for row, (_, R, t) in enumerate(scenes):
        error = error_of(found, row, R, t)
        squares.append(float(error @ np.linalg.solve(found.transforms.covariances[row], error)))
    assert within_chi_square(squares, freedom=6)
    assert found.error == pytest.approx(3 * 0.05**2, rel=0.1)
    assert found.inliers > 0.98
    assert set(found.transforms.t_ns) == {4}


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(0, 40))
def test_the_robust_one_stands_up_to_40_of_100_outliers(seed: int, outliers: int):
    pairs, R, t = clouds(seed, n=100, sigma=0.02, outliers=outliers)
    found = RobustEstimation(threshold=0.1)(CorrespondenceMaps3D((pairs,)))
    assert found.success
    assert np.abs(error_of(found, 0, R, t)).max() < 0.05
    assert found.inliers == pytest.approx(1 - outliers / 100, abs=0.03)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_transforms_are_the_same_to_the_byte(estimator: Transform3DEstimation):
    maps = CorrespondenceMaps3D((clouds(outliers=20)[0],))
    first = estimator(maps)
    estimator.reset()
    assert first.transforms.positions.tobytes() == estimator(maps).transforms.positions.tobytes()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_pairs_that_determine_nothing_have_a_null_quaternion(estimator: Transform3DEstimation):
    good, R, t = clouds()
    along = np.linspace(0, 1, 20)[:, None] * [1.0, 2, 3]
    line = Correspondences3D(along, along)
    found = estimator(CorrespondenceMaps3D((line, good)))
    assert found.success is False
    assert not found.transforms.orientations[0].any()
    assert np.isnan(found.transforms.covariances[0]).all()
    assert np.abs(error_of(found, 1, R, t)).max() < 0.1
    alone = estimator(CorrespondenceMaps3D((line,)))
    assert (alone.success, alone.transforms) == (False, None)
    assert estimator(CorrespondenceMaps3D(())).success is False
