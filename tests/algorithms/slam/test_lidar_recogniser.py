import numpy as np
import pytest
from tests.algorithms.slam.hills import look, stand, view

from transect.algorithms.slam.lidar_keyframes import Passing
from transect.algorithms.slam.lidar_recogniser import LidarRecogniser
from transect.algorithms.slam.lidar_relief import find_in, find_level, see_relief
from transect.algorithms.slam.place_recognition import Guess
from transect.geometry import rotations, se3
from transect.types import PointCloud

EDGE = 0.5
HERE, AGAIN = stand(0.0, 0.0, 0.0), stand(1.5, -1.0, np.pi, 0.08)


@pytest.fixture(scope="module")
def recogniser():
    known = LidarRecogniser(EDGE)
    known.add(0, view(look(HERE, draw=1)))
    return known


@pytest.mark.parametrize("guessed", [True, False])
def test_a_place_is_known_again_the_opposite_way(recogniser, guessed):
    truth = se3.invert(HERE) @ AGAIN
    off = se3.exp(np.array([0.3, -0.2, 0.1, 0.0, 0.02, 0.03]))
    guess = Guess(truth @ off, np.diag([0.2**2] * 3 + [0.03**2] * 3)) if guessed else None
    loop = recogniser.verify(0, view(look(AGAIN, draw=2)), guess)
    assert loop is not None
    error = se3.log(se3.invert(truth) @ loop.T_old_new)
    assert np.linalg.norm(error[:3]) < 0.1
    assert np.degrees(np.linalg.norm(error[3:])) < 0.5
    assert error @ np.linalg.solve(loop.covariance, error) < 22.5  # chi-squared of six degrees at 99.9 %


def test_another_place_is_not_taken_for_this_one(recogniser):
    assert recogniser.verify(0, view(look(AGAIN, seed=7)), None) is None


def test_flat_ground_is_no_place():
    flat = look(HERE)
    flat[:, 2] = -2.0 + np.random.default_rng(1).normal(0, 0.02, len(flat))
    known = LidarRecogniser(EDGE)
    known.add(0, view(flat))
    assert known.verify(0, view(flat[::2]), None) is None


def test_places_that_look_alike_are_candidates_before_others():
    known = LidarRecogniser(EDGE)
    for k in range(5):
        known.add(k, view(look(HERE, seed=k + 1)))
    first = list(known.candidates(view(look(AGAIN, seed=4, draw=9)), np.arange(5)))[:2]
    assert 3 in first


@pytest.mark.parametrize("hanging", [False, True])
def test_the_ground_is_levelled_however_the_lidar_hangs(hanging):
    over = rotations.matrix_from_euler("x", [np.pi if hanging else 0.0])
    body = stand(0.0, 0.0, 0.4, 0.15) @ se3.from_matrix(over, np.zeros(3))
    ground = np.random.default_rng(3).uniform((-15, -15, -0.1), (15, 15, 0.1), (3000, 3))
    wall = np.random.default_rng(4).uniform((8, -15, 0), (8.1, 15, 6), (1000, 3))
    seen = se3.apply(se3.invert(body), np.vstack([ground, wall]))
    up = (find_level(seen) @ se3.invert(body))[:3, :3] @ np.array([0.0, 0.0, 1.0])
    assert np.degrees(np.arccos(up[2])) < 0.5


def test_reliefs_are_found_in_each_other_whatever_the_body_leans():
    old, new = (see_relief(look(pose, draw=k), EDGE) for k, pose in enumerate((HERE, AGAIN)))
    found = find_in(old, new, 4.0)
    assert found is not None
    assert found[:3, 3] == pytest.approx((se3.invert(HERE) @ AGAIN)[:3, 3], abs=0.3)


def test_a_keyframe_is_made_of_the_scans_of_the_last_metre():
    passing = Passing(0.2, 0.5, 30.0, 1.0)
    for k in range(6):
        pose = stand(0.4 * k, 0.0, 0.0)
        passing.add(
            PointCloud(se3.apply(se3.invert(pose), np.array([[5.0, 1.0, 0.0]])), t_ns=k * 10**8 + 1), pose
        )
    assert len(passing.scans) == 3
    seen = passing.observe()["points"]
    assert seen == pytest.approx(np.array([[3.0, 1.0, -2.0]]), abs=1e-5)


def test_scans_before_a_gap_do_not_count():
    passing = Passing(0.2, 0.5, 30.0, 1.0)
    for t_ns in (1, 10**10):
        passing.add(PointCloud(np.array([[5.0, 0.0, 0.0]]), t_ns=t_ns), np.eye(4))
    assert len(passing.scans) == 1
