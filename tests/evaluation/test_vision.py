"""Vision quality: ratios by hand, and a covariance that predicts the errors that are made."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.errors import GeometryError
from transect.evaluation import consistency
from transect.evaluation.nodes.vision import Matchability, MatchRatio, PnpInliers, TriangulationCovariance
from transect.evaluation.vision import (
    FeatureTracks,
    match_quality,
    pose_quality,
    track_histogram,
    triangulate,
)
from transect.geometry import se3
from transect.types import CameraModel, Correspondences2D, Features2D, Pose

K = np.array([[700.0, 0, 320], [0, 700, 240], [0, 0, 1]])


def camera(x: float, yaw: float = 0.0) -> np.ndarray:
    """A camera x metres to the right, turned about its vertical."""
    T_world_camera = se3.exp([0, 0, 0, 0, yaw, 0])
    T_world_camera[0, 3] = x
    return K @ se3.invert(T_world_camera)[:3]


def seen(P: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Pixels (n, m, 2) of points in cameras."""
    p = np.einsum("mij,nj->nmi", P, np.column_stack([points, np.ones(len(points))]))
    return p[..., :2] / p[..., 2:]


def test_both_readings_of_the_match_ratio_by_hand():
    quality = match_quality([10, 20, 30, 60, np.nan], [True, True, False, False, True])
    assert quality.q_sum == pytest.approx((10 + 20) / 30)
    assert quality.q_mean == pytest.approx(15 / 30)
    assert (quality.accepted, quality.count) == (2, 4)
    assert math.isnan(match_quality([1.0, 2.0], [False, False]).q_mean)


def test_the_literal_reading_grows_with_the_set_and_the_other_does_not():
    once = match_quality([10, 20, 30, 60], [True, True, False, False])
    twice = match_quality([10, 20, 30, 60] * 2, [True, True, False, False] * 2)
    assert twice.q_sum == pytest.approx(2 * once.q_sum)
    assert twice.q_mean == pytest.approx(once.q_mean)


@given(st.floats(-2, 2), st.floats(-1, 1), st.floats(2, 30), st.integers(2, 4))
def test_pixels_without_noise_give_the_point_back(x: float, y: float, z: float, cameras: int):
    P = np.stack([camera(0.3 * k) for k in range(cameras)])
    found = triangulate(P, seen(P, np.array([[x, y, z]])))
    np.testing.assert_allclose(found.points[0], [x, y, z], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "covariance", [0.25, np.array([[0.3, 0.1], [0.1, 0.5]])], ids=["a variance", "an ellipse"]
)
def test_errors_are_as_large_as_the_covariance_says(covariance: float | np.ndarray):
    """Monte Carlo: normalised errors of 4,000 points lie inside the bounds of chi square, 3 degrees."""
    rng = np.random.default_rng(4)
    P = np.stack([camera(0.0), camera(0.5), camera(1.0, -0.1)])
    points = rng.uniform([-1, -1, 4], [1, 1, 8], (4000, 3))
    full = np.asarray(covariance * np.eye(2) if np.ndim(covariance) == 0 else covariance)
    noise = rng.normal(size=(4000, 3, 2)) @ np.linalg.cholesky(full).T
    found = triangulate(P, seen(P, points) + noise, covariance)
    judged = consistency(found.points - points, found.covariances)
    assert judged.normalised_mean == pytest.approx(1, abs=0.04)
    assert judged.inside == pytest.approx(0.95, abs=0.012)


def test_uncertain_cameras_widen_the_covariance_as_much_as_they_move_the_point():
    rng = np.random.default_rng(5)
    P, point = np.stack([camera(0.0), camera(0.8)]), np.array([[0.3, -0.2, 5.0]])
    deviation = np.zeros((2, 12))
    deviation[:, 3] = 2.0  # the first row's last entry: pixels times metres
    spread = np.stack([np.diag(each**2) for each in deviation])
    predicted = triangulate(P, seen(P, point), 0.1, spread).covariances[0]
    moved = P + (deviation * rng.normal(size=(3000, 2, 12))).reshape(3000, 2, 3, 4)
    pixels = np.concatenate([seen(each, point) for each in moved])
    pixels += rng.normal(scale=np.sqrt(0.1), size=pixels.shape)
    errors = triangulate(P, pixels, 0.1).points - point
    np.testing.assert_allclose(np.var(errors[:, 2]), predicted[2, 2], rtol=0.1)


def test_roundness_falls_with_distance_and_rises_with_the_base():
    point = np.array([[0.0, 0, 5], [0.0, 0, 50]])
    short, long = (np.stack([camera(0.0), camera(base)]) for base in (0.1, 2.0))
    near, far = triangulate(short, seen(short, point)).roundness
    assert far < near < triangulate(long, seen(long, point)).roundness[0] < 1
    # Parallel cameras, z much larger than b: sigma_z = sqrt(2) z^2 / (f b), sigma_y = z / (sqrt(2) f).
    assert far == pytest.approx(0.1 / (2 * 50), rel=0.01)


def test_parallel_rays_and_points_behind_are_not_determined_and_counted_as_flat():
    P = np.stack([camera(0.0), camera(1.0)])
    pixels = seen(P, np.array([[0.0, 0, 6], [0.0, 0, -6]]))
    pixels = np.concatenate([pixels, [[[320.0, 240], [320, 240]]]])
    found = triangulate(P, pixels)
    assert np.isfinite(found.points[0]).all()
    assert np.isnan(found.roundness[1:]).all()
    assert found.poor_ratio == pytest.approx(2 / 3)
    assert found.median_roundness == found.roundness[0]
    assert found.traces[0] == pytest.approx(np.trace(found.covariances[0]))
    with pytest.raises(GeometryError, match="at least 2 cameras"):
        triangulate(P[:1], pixels[:, :1])


@pytest.mark.parametrize(
    ("inliers", "matches", "level"),
    [
        (90, 100, "ok"),
        (30, 100, "ok"),
        (29, 100, "warn"),
        (10, 100, "warn"),
        (9, 100, "fail"),
        (0, 0, "fail"),
    ],
)
def test_the_inlier_ratio_warns_below_three_tenths_and_fails_below_one(
    inliers: int, matches: int, level: str
):
    quality = pose_quality(inliers, matches)
    assert quality.level == level
    assert math.isnan(quality.ratio) if not matches else quality.ratio == inliers / matches


def test_more_inliers_than_matches_cannot_be():
    with pytest.raises(GeometryError, match="not possible"):
        pose_quality(3, 2)


def tracks() -> FeatureTracks:
    """Feature 7 in images 0 to 3, feature 2 in 2 and 3, feature 9 in 1 alone."""
    track = np.array([7, 7, 9, 7, 2, 7, 2])
    frame = np.array([0, 1, 1, 2, 2, 3, 3])
    return FeatureTracks(track, frame, np.column_stack([10.0 * frame, 1.0 * track]))


def test_track_lengths_are_counted():
    histogram = track_histogram(tracks())
    np.testing.assert_array_equal(histogram.length, [1, 2, 3, 4])
    np.testing.assert_array_equal(histogram.count, [1, 1, 0, 1])
    assert histogram.mean == pytest.approx(7 / 3)
    with pytest.raises(GeometryError, match="no tracks"):
        track_histogram(FeatureTracks(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 2))))


def image_features(descriptors: np.ndarray, response: list[float] | None = None) -> Features2D:
    strength = None if response is None else np.array(response, np.float32)
    return Features2D(np.zeros((len(descriptors), 2), np.float32), strength, descriptors=descriptors)


def test_matchability_counts_matched_features_and_asks_whether_the_response_told_them():
    features = image_features(np.zeros((4, 1), np.uint8), [1.0, 2.0, 3.0, 4.0])
    matches = Correspondences2D(*np.zeros((2, 2, 2), np.float32), source_index=np.array([1, 3]))
    found = Matchability()(features, matches)
    # Of the four pairs of a matched and another feature, 2 > 1, 4 > 1 and 4 > 3, but not 2 > 3.
    assert (found.matchability, found.auc) == (0.5, 0.75)


def test_the_match_ratio_is_of_the_distances_between_descriptors():
    source = image_features(np.array([[0b0], [0b111], [0b11110000]], np.uint8))
    sink = image_features(np.array([[0b1], [0b11111111]], np.uint8))
    matches = Correspondences2D(*np.zeros((2, 2, 2), np.float32), source_index=np.array([0, 1]))
    found = MatchRatio()(source, sink, matches)
    # Nearest by Hamming: 1, 2 and 4 bits, mean 7/3; 1 and 2 were accepted.
    np.testing.assert_allclose((found.sum, found.mean, found.accepted), (9 / 7, 9 / 14, 2 / 3))


def test_the_covariance_of_a_point_far_ahead_is_that_of_its_disparity():
    f, base, depth, sigma = 700.0, 0.5, 20.0, 0.5
    lens = CameraModel("cam", 1242, 375, np.array([[f, 0, 600], [0, f, 180], [0, 0, 1.0]]))
    left = np.array([[600.0, 180.0]], np.float32)
    matches = Correspondences2D(left, left - [[f * base / depth, 0]], source_camera=lens, sink_camera=lens)
    right = Pose(np.array([base, 0, 0]), np.array([0, 0, 0, 1.0]))
    found = TriangulationCovariance(sigma=sigma)(matches, right)
    # z = f b / d, and the disparity d has the deviation of two pixels.
    expected = depth**2 / (f * base) * sigma * np.sqrt(2)
    np.testing.assert_allclose(np.sqrt(found.covariance[0, 2, 2]), expected, rtol=1e-3)
    np.testing.assert_allclose(found.roundness, base / (2 * depth), rtol=0.02)


def test_inliers_decide_whether_a_pose_is_trusted():
    def judged(inliers: int):
        found = PnpInliers()(True, [np.arange(10) < inliers])
        return found.share, found.trusted, found.usable

    assert [judged(n) for n in (3, 2, 0)] == [(0.3, True, True), (0.2, False, True), (0.0, False, False)]
    assert PnpInliers()(False).share == 0.0
