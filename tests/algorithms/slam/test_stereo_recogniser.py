"""What is kept of a pair, and the motion between two, in scenes whose every pixel is known."""

import cv2
import numpy as np
import pytest
from tests.nodes.stereo import drives

from transect.algorithms.odometry.stereo_rig import stereo_rig_of
from transect.algorithms.odometry.stereo_tracking_methods import GrayPair
from transect.algorithms.slam.stereo_consensus import find_motion
from transect.algorithms.slam.stereo_keyframes import median_depth, pixels_of, see
from transect.algorithms.slam.stereo_recogniser import StereoRecogniser
from transect.algorithms.slam.stereo_verification import View, count_bits, match, verify_motion
from transect.geometry import rotations, se3


def view_from(T_world_camera, seed=0, features=300):
    left, right = drives.pair(np.ascontiguousarray(T_world_camera).tobytes(), seed=seed)
    return see(GrayPair(left.data, right.data), stereo_rig_of(left, right), features)


def moved(ahead=0.0, aside=0.0, turn=0.0):
    return se3.from_matrix(rotations.matrix_from_rotation_vector([0, turn, 0]), [aside, 0, ahead])


def test_points_of_a_view_lie_on_the_ground_and_the_wall():
    points = view_from(np.eye(4))["points"]
    off = np.minimum(np.abs(points[:, 1] - drives.DOWN), np.abs(points[:, 2] - drives.AHEAD))
    assert len(points) > 100
    assert np.median(off) < 0.02 * drives.AHEAD


def test_the_pixels_of_points_are_those_in_which_both_cameras_saw_them():
    view = view_from(moved(ahead=2.0))
    left, row, right = pixels_of(view).T
    np.testing.assert_allclose(left, np.rint(left), atol=1e-3)  # corners are found at whole pixels
    np.testing.assert_allclose(row, np.rint(row), atol=1e-3)
    on_wall = np.abs(view["points"][:, 2] - 4.0) < 0.2
    assert np.median((left - right)[on_wall]) == pytest.approx(drives.FOCAL * drives.BASELINE / 4.0, rel=0.01)


def test_the_depth_of_a_wall_is_the_median_depth():
    assert median_depth(view_from(moved(ahead=3.0))) == pytest.approx(drives.AHEAD - 3.0, rel=0.2)


@pytest.mark.parametrize("motion", [moved(0.5), moved(-0.3, 0.2), moved(0.3, -0.1, 0.1), moved(0.0, 5.0)])
def test_the_motion_between_two_views_is_found_within_its_covariance(motion):
    loop = verify_motion([View(np.eye(4), view_from(np.eye(4)))], view_from(motion))
    assert loop is not None
    error = se3.log(se3.invert(motion) @ loop.T_old_new)
    assert np.linalg.norm(error[:3]) < 0.03
    assert error @ np.linalg.solve(loop.covariance, error) < 22.5  # chi-squared of 6 at 0.999


def view_of(points, words):
    return {
        "points": points.astype(np.float32),
        "descriptors": words,
        "camera": np.array([[300, 300, 160, 100, 0.2]]),
    }


def strange_light(rng, known=8, views=5):
    """Views 0.4 m apart, and one beside them in which few corners of each look as they did."""
    T_world_new = moved(ahead=0.9, aside=0.5, turn=0.1)
    seen, words, old = [], [], []
    for k in range(views):
        points = rng.uniform([-3, -1, 3], [3, 1, 9], (300, 3))
        looks = rng.integers(0, 256, (300, 32), np.uint8)
        old.append(View(moved(ahead=0.4 * k), view_of(points, looks)))
        seen.append(se3.apply(se3.invert(T_world_new) @ old[-1].T_old_view, points[:known]))
        words.append(looks[:known])
    seen.append(rng.uniform([-3, -1, 3], [3, 1, 9], (300, 3)))
    words.append(rng.integers(0, 256, (300, 32), np.uint8))
    return old, view_of(np.concatenate(seen), np.concatenate(words)), T_world_new


def test_views_that_alone_have_too_few_corners_in_common_verify_a_place_together():
    old, new, motion = strange_light(np.random.default_rng(8))
    assert all(verify_motion([view._replace(T_old_view=np.eye(4))], new) is None for view in old)
    loop = verify_motion(old, new)
    assert loop is not None
    np.testing.assert_allclose(loop.T_old_new, motion, atol=1e-3)


def test_a_corner_that_several_views_have_counts_once():
    rng = np.random.default_rng(9)
    old, new, _ = strange_light(rng, known=10, views=1)
    assert verify_motion(old * 5, new) is None


@pytest.mark.parametrize("wrong", [0, 40, 360])
def test_the_motion_that_one_in_ten_pairs_agree_on_is_found(wrong):
    rng, motion = np.random.default_rng(wrong), moved(0.5, -0.3, 0.2)
    old = rng.uniform([-3, -1, 3], [3, 1, 9], (40 + wrong, 3))
    new = se3.apply(se3.invert(motion), old)
    new[40:] = rng.uniform([-3, -1, 3], [3, 1, 9], (wrong, 3))
    found = find_motion(old, new, RIG, 20_000)
    np.testing.assert_allclose(found, se3.invert(motion), atol=1e-9)


def test_points_on_a_line_agree_on_no_motion():
    line = np.arange(20.0)[:, None] * [0.1, 0.0, 0.1] + [0.0, 0.0, 3.0]
    assert find_motion(line, line, RIG, 100) is None


def test_another_place_is_not_verified():
    assert verify_motion([View(np.eye(4), view_from(np.eye(4)))], view_from(np.eye(4), seed=1)) is None


def test_a_pattern_that_repeats_verifies_no_place():
    one = cv2.GaussianBlur(np.random.default_rng(3).normal(size=(40, 40)), (0, 0), 1.5)
    walls = np.tile(np.clip(128 + 200 * one, 0, 255).astype(np.uint8), (6, 10))
    first, second = (
        see(GrayPair(walls[:200, a : a + 320], walls[:200, a + 4 : a + 324]), RIG, 300) for a in (8, 28)
    )
    assert len(first["points"]) > 100
    assert verify_motion([View(np.eye(4), first)], second) is None


def test_the_recogniser_names_the_nearest_of_many_places_first():
    places = StereoRecogniser()
    for k in range(4):
        places.add(k, view_from(np.eye(4), seed=k))
    seen = view_from(moved(0.2), seed=2)
    assert places.candidates(seen, np.arange(4))[0] == 2
    assert 2 not in places.candidates(seen, np.array([0, 1, 3]))
    assert places.verify(2, seen, None) is not None


def test_keyframes_that_stay_near_each_other_are_one_place():
    poses = np.array([moved(ahead=0.3 * k, turn=1.5 * (k > 5)) for k in range(7)])
    places = StereoRecogniser(poses)
    for k in range(7):
        places.add(k, view_from(poses[k]))
    seen = view_from(moved(0.4, 0.1))
    first, *others = places.candidates(seen, np.arange(7))
    assert first < 6
    assert all(abs(k - first) > 2 for k in others)
    loop = places.verify(first, seen, None)
    assert loop is not None
    np.testing.assert_allclose(poses[first] @ loop.T_old_new, moved(0.4, 0.1), atol=0.03)


def test_nothing_is_recognised_in_a_view_without_corners():
    blank = see(GrayPair(np.full((200, 320), 90, np.uint8), np.full((200, 320), 90, np.uint8)), RIG, 300)
    places = StereoRecogniser()
    places.add(0, view_from(np.eye(4)))
    assert len(blank["points"]) == 0
    assert np.isnan(median_depth(blank))
    assert places.candidates(blank, np.array([0])) == []
    assert places.verify(0, blank, None) is None


def test_matches_are_each_others_best():
    rng = np.random.default_rng(5)
    words = rng.integers(0, 256, (40, 32), np.uint8)
    shuffled = rng.permutation(40)
    mine, theirs = match(words, words[shuffled])
    np.testing.assert_array_equal(shuffled[theirs], mine)
    assert len(mine) == 40


def test_bits_are_counted_one_by_one():
    one, other = np.zeros((1, 32), np.uint8), np.zeros((2, 32), np.uint8)
    one[0, 0], other[0, 0] = 0b1011, 0b0001
    other[1, [0, 31]] = 0b1011, 255
    np.testing.assert_array_equal(count_bits(one, other), [[2, 8]])


RIG = stereo_rig_of(*drives.pair(np.eye(4).tobytes()))
