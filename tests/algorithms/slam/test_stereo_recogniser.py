"""Stereo loop closure in ray-traced scenes: observations, candidates, and verification."""

import cv2
import numpy as np
import pytest
from tests.nodes.stereo import drives

from transect.algorithms.odometry.stereo_rig import stereo_rig_of
from transect.algorithms.odometry.stereo_tracking_methods import GrayPair
from transect.algorithms.slam.stereo_recogniser import (
    StereoRecogniser,
    StereoView,
    find_motion,
    hamming_distances,
    match_descriptors,
    median_depth,
    observe_stereo,
    verify_motion,
    view_pixels,
)
from transect.geometry import rotations, se3


def view_from(T_world_camera, seed=0, features=300):
    left, right = drives.render_pair(np.ascontiguousarray(T_world_camera).tobytes(), seed=seed)
    return observe_stereo(GrayPair(left.data, right.data), stereo_rig_of(left, right), features)


def camera_pose(forward=0.0, right=0.0, turn=0.0):
    return se3.from_matrix(rotations.matrix_from_rotation_vector([0, turn, 0]), [right, 0, forward])


def test_points_of_a_view_lie_on_the_ground_and_the_wall():
    points = view_from(np.eye(4))["points"]
    off = np.minimum(
        np.abs(points[:, 1] - drives.CAMERA_HEIGHT_M), np.abs(points[:, 2] - drives.WALL_DISTANCE_M)
    )
    assert len(points) > 100
    assert np.median(off) < 0.02 * drives.WALL_DISTANCE_M


def test_view_pixels_are_the_measured_pixels():
    view = view_from(camera_pose(forward=2.0))
    left, row, right = view_pixels(view).T
    np.testing.assert_allclose(left, np.rint(left), atol=1e-3)  # corners are found at whole pixels
    np.testing.assert_allclose(row, np.rint(row), atol=1e-3)
    on_wall = np.abs(view["points"][:, 2] - 4.0) < 0.2
    assert np.median((left - right)[on_wall]) == pytest.approx(
        drives.FOCAL_PX * drives.BASELINE_M / 4.0, rel=0.01
    )


def test_the_depth_of_a_wall_is_the_median_depth():
    assert median_depth(view_from(camera_pose(forward=3.0))) == pytest.approx(
        drives.WALL_DISTANCE_M - 3.0, rel=0.2
    )


@pytest.mark.parametrize(
    "motion", [camera_pose(0.5), camera_pose(-0.3, 0.2), camera_pose(0.3, -0.1, 0.1), camera_pose(0.0, 5.0)]
)
def test_the_estimated_motion_agrees_with_its_covariance(motion):
    loop = verify_motion([StereoView(np.eye(4), view_from(np.eye(4)))], view_from(motion))
    assert loop is not None
    error = se3.log(se3.invert(motion) @ loop.T_old_new)
    assert np.linalg.norm(error[:3]) < 0.03
    assert error @ np.linalg.solve(loop.covariance, error) < 22.5  # chi-squared of 6 at 0.999


def view_of(points, descriptors):
    return {
        "points": points.astype(np.float32),
        "descriptors": descriptors,
        "camera": np.array([[300, 300, 160, 100, 0.2]]),
    }


def changed_light(rng, common=8, views=5):
    """Return views 0.4 m apart, and one beside them with few matches to each."""
    T_world_new = camera_pose(forward=0.9, right=0.5, turn=0.1)
    seen, descriptors, old = [], [], []
    for k in range(views):
        points = rng.uniform([-3, -1, 3], [3, 1, 9], (300, 3))
        described = rng.integers(0, 256, (300, 32), np.uint8)
        old.append(StereoView(camera_pose(forward=0.4 * k), view_of(points, described)))
        seen.append(se3.apply(se3.invert(T_world_new) @ old[-1].T_old_view, points[:common]))
        descriptors.append(described[:common])
    seen.append(rng.uniform([-3, -1, 3], [3, 1, 9], (300, 3)))
    descriptors.append(rng.integers(0, 256, (300, 32), np.uint8))
    return old, view_of(np.concatenate(seen), np.concatenate(descriptors)), T_world_new


def test_several_views_with_few_matches_each_verify_a_place_together():
    old, new, motion = changed_light(np.random.default_rng(8))
    assert all(verify_motion([view._replace(T_old_view=np.eye(4))], new) is None for view in old)
    loop = verify_motion(old, new)
    assert loop is not None
    np.testing.assert_allclose(loop.T_old_new, motion, atol=1e-3)


def test_a_corner_in_several_views_counts_once():
    rng = np.random.default_rng(9)
    old, new, _ = changed_light(rng, common=10, views=1)
    assert verify_motion(old * 5, new) is None


@pytest.mark.parametrize("outliers", [0, 40, 360])
def test_a_motion_is_found_with_90_percent_outliers(outliers):
    rng, motion = np.random.default_rng(outliers), camera_pose(0.5, -0.3, 0.2)
    old = rng.uniform([-3, -1, 3], [3, 1, 9], (40 + outliers, 3))
    new = se3.apply(se3.invert(motion), old)
    new[40:] = rng.uniform([-3, -1, 3], [3, 1, 9], (outliers, 3))
    found = find_motion(old, new, RIG, 20_000)
    np.testing.assert_allclose(found, se3.invert(motion), atol=1e-9)


def test_collinear_points_determine_no_motion():
    line = np.arange(20.0)[:, None] * [0.1, 0.0, 0.1] + [0.0, 0.0, 3.0]
    assert find_motion(line, line, RIG, 100) is None


def test_another_place_is_not_verified():
    assert verify_motion([StereoView(np.eye(4), view_from(np.eye(4)))], view_from(np.eye(4), seed=1)) is None


def test_a_repetitive_pattern_is_not_verified():
    tile = cv2.GaussianBlur(np.random.default_rng(3).normal(size=(40, 40)), (0, 0), 1.5)
    walls = np.tile(np.clip(128 + 200 * tile, 0, 255).astype(np.uint8), (6, 10))
    first, second = (
        observe_stereo(GrayPair(walls[:200, a : a + 320], walls[:200, a + 4 : a + 324]), RIG, 300)
        for a in (8, 28)
    )
    assert len(first["points"]) > 100
    assert verify_motion([StereoView(np.eye(4), first)], second) is None


def test_the_most_similar_place_is_the_first_candidate():
    recogniser = StereoRecogniser()
    for k in range(4):
        recogniser.add(k, view_from(np.eye(4), seed=k))
    seen = view_from(camera_pose(0.2), seed=2)
    assert recogniser.candidates(seen, np.arange(4))[0] == 2
    assert 2 not in recogniser.candidates(seen, np.array([0, 1, 3]))
    assert recogniser.verify(2, seen, None) is not None


def test_neighbouring_keyframes_are_combined():
    poses = np.array([camera_pose(forward=0.3 * k, turn=1.5 * (k > 5)) for k in range(7)])
    recogniser = StereoRecogniser(poses)
    for k in range(7):
        recogniser.add(k, view_from(poses[k]))
    seen = view_from(camera_pose(0.4, 0.1))
    first, *others = recogniser.candidates(seen, np.arange(7))
    assert first < 6
    assert all(abs(k - first) > 2 for k in others)
    loop = recogniser.verify(first, seen, None)
    assert loop is not None
    np.testing.assert_allclose(poses[first] @ loop.T_old_new, camera_pose(0.4, 0.1), atol=0.03)


def test_nothing_is_recognised_in_a_view_without_corners():
    blank = observe_stereo(
        GrayPair(np.full((200, 320), 90, np.uint8), np.full((200, 320), 90, np.uint8)), RIG, 300
    )
    recogniser = StereoRecogniser()
    recogniser.add(0, view_from(np.eye(4)))
    assert len(blank["points"]) == 0
    assert np.isnan(median_depth(blank))
    assert recogniser.candidates(blank, np.array([0])) == []
    assert recogniser.verify(0, blank, None) is None


def test_matches_are_mutual_nearest_neighbours():
    rng = np.random.default_rng(5)
    descriptors = rng.integers(0, 256, (40, 32), np.uint8)
    shuffled = rng.permutation(40)
    new_rows, old_rows = match_descriptors(descriptors, descriptors[shuffled])
    np.testing.assert_array_equal(shuffled[old_rows], new_rows)
    assert len(new_rows) == 40


def test_hamming_distances():
    first, second = np.zeros((1, 32), np.uint8), np.zeros((2, 32), np.uint8)
    first[0, 0], second[0, 0] = 0b1011, 0b0001
    second[1, [0, 31]] = 0b1011, 255
    np.testing.assert_array_equal(hamming_distances(first, second), [[2, 8]])


RIG = stereo_rig_of(*drives.render_pair(np.eye(4).tobytes()))
