"""What is kept of a pair, and the motion between two, in scenes whose every pixel is known."""

import cv2
import numpy as np
import pytest
from tests.nodes.stereo import drives

from transect.geometry import rotations, se3
from transect.nodes.slam.stereo import StereoRecogniser, median_depth, see
from transect.nodes.slam.stereo.verification import count_bits, match, verify_motion
from transect.nodes.slam.stereo.views import pixels_of
from transect.nodes.stereo.vo import Pair, rig_of


def view_from(T_world_camera, seed=0, features=300):
    left, right = drives.pair(np.ascontiguousarray(T_world_camera).tobytes(), seed=seed)
    return see(Pair(left.data, right.data), rig_of(left, right), features)


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
    loop = verify_motion(view_from(np.eye(4)), view_from(motion))
    assert loop is not None
    error = se3.log(se3.invert(motion) @ loop.T_old_new)
    assert np.linalg.norm(error[:3]) < 0.03
    assert error @ np.linalg.solve(loop.covariance, error) < 22.5  # chi-squared of 6 at 0.999


def test_another_place_is_not_verified():
    assert verify_motion(view_from(np.eye(4)), view_from(np.eye(4), seed=1)) is None


def test_a_pattern_that_repeats_verifies_no_place():
    one = cv2.GaussianBlur(np.random.default_rng(3).normal(size=(40, 40)), (0, 0), 1.5)
    walls = np.tile(np.clip(128 + 200 * one, 0, 255).astype(np.uint8), (6, 10))
    first, second = (
        see(Pair(walls[:200, a : a + 320], walls[:200, a + 4 : a + 324]), RIG, 300) for a in (8, 28)
    )
    assert len(first["points"]) > 100
    assert verify_motion(first, second) is None


def test_the_recogniser_names_the_nearest_of_many_places_first():
    places = StereoRecogniser()
    for k in range(4):
        places.add(k, view_from(np.eye(4), seed=k))
    seen = view_from(moved(0.2), seed=2)
    assert places.candidates(seen, np.arange(4))[0] == 2
    assert 2 not in places.candidates(seen, np.array([0, 1, 3]))
    assert places.verify(2, seen, None) is not None


def test_nothing_is_recognised_in_a_view_without_corners():
    blank = see(Pair(np.full((200, 320), 90, np.uint8), np.full((200, 320), 90, np.uint8)), RIG, 300)
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
    one, other = np.array([[0b1011, 0]], np.uint8), np.array([[0b0001, 0], [0b1011, 255]], np.uint8)
    np.testing.assert_array_equal(count_bits(one, other), [[2, 8]])


RIG = rig_of(*drives.pair(np.eye(4).tobytes()))
