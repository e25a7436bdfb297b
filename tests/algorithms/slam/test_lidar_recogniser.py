import numpy as np
import pytest
from tests.algorithms.slam.hills import body_pose, measure, observation

from transect.algorithms.slam.lidar_recogniser import (
    ElevationMapSettings,
    LidarRecogniser,
    ScanAccumulator,
    align_elevation_maps,
    build_elevation_map,
    find_ground_rotation,
)
from transect.algorithms.slam.place_recognition import PosePrior
from transect.geometry import rotations, se3
from transect.types import PointCloud

VOXEL_M = 0.5
FIRST_POSE, SECOND_POSE = body_pose(0.0, 0.0, 0.0), body_pose(1.5, -1.0, np.pi, 0.08)


@pytest.fixture(scope="module")
def recogniser():
    recogniser = LidarRecogniser(VOXEL_M)
    recogniser.add(0, observation(measure(FIRST_POSE, draw=1)))
    return recogniser


@pytest.mark.parametrize("has_prior", [True, False])
def test_a_place_is_recognised_in_the_opposite_direction(recogniser, has_prior):
    truth = se3.invert(FIRST_POSE) @ SECOND_POSE
    offset = se3.exp(np.array([0.3, -0.2, 0.1, 0.0, 0.02, 0.03]))
    prior = PosePrior(truth @ offset, np.diag([0.2**2] * 3 + [0.03**2] * 3)) if has_prior else None
    loop = recogniser.verify(0, observation(measure(SECOND_POSE, draw=2)), prior)
    assert loop is not None
    error = se3.log(se3.invert(truth) @ loop.T_old_new)
    assert np.linalg.norm(error[:3]) < 0.1
    assert np.degrees(np.linalg.norm(error[3:])) < 0.5
    assert error @ np.linalg.solve(loop.covariance, error) < 22.5  # chi-squared of six degrees at 99.9 %


def test_another_place_is_not_recognised(recogniser):
    assert recogniser.verify(0, observation(measure(SECOND_POSE, seed=7)), None) is None


def test_flat_ground_is_not_recognised():
    flat = measure(FIRST_POSE)
    flat[:, 2] = -2.0 + np.random.default_rng(1).normal(0, 0.02, len(flat))
    recogniser = LidarRecogniser(VOXEL_M)
    recogniser.add(0, observation(flat))
    assert recogniser.verify(0, observation(flat[::2]), None) is None


def test_similar_places_are_the_first_candidates():
    recogniser = LidarRecogniser(VOXEL_M)
    for k in range(5):
        recogniser.add(k, observation(measure(FIRST_POSE, seed=k + 1)))
    first = list(recogniser.candidates(observation(measure(SECOND_POSE, seed=4, draw=9)), np.arange(5)))[:2]
    assert 3 in first


@pytest.mark.parametrize("upside_down", [False, True])
def test_the_ground_is_levelled_for_any_mounting(upside_down):
    mounting = rotations.matrix_from_euler("x", [np.pi if upside_down else 0.0])
    body = body_pose(0.0, 0.0, 0.4, 0.15) @ se3.from_matrix(mounting, np.zeros(3))
    ground = np.random.default_rng(3).uniform((-15, -15, -0.1), (15, 15, 0.1), (3000, 3))
    wall = np.random.default_rng(4).uniform((8, -15, 0), (8.1, 15, 6), (1000, 3))
    points = se3.apply(se3.invert(body), np.vstack([ground, wall]))
    up = (find_ground_rotation(points) @ se3.invert(body))[:3, :3] @ np.array([0.0, 0.0, 1.0])
    assert np.degrees(np.arccos(up[2])) < 0.5


def test_elevation_maps_are_aligned_despite_pitch():
    old, new = (
        build_elevation_map(measure(pose, draw=k), VOXEL_M)
        for k, pose in enumerate((FIRST_POSE, SECOND_POSE))
    )
    found = align_elevation_maps(old, new, ElevationMapSettings(search_radius_m=4.0))
    assert found is not None
    assert found[:3, 3] == pytest.approx((se3.invert(FIRST_POSE) @ SECOND_POSE)[:3, 3], abs=0.3)


def test_a_keyframe_contains_the_scans_of_the_last_metre():
    accumulator = ScanAccumulator(0.2, 0.5, 30.0, 1.0)
    for k in range(6):
        pose = body_pose(0.4 * k, 0.0, 0.0)
        accumulator.add(
            PointCloud(se3.apply(se3.invert(pose), np.array([[5.0, 1.0, 0.0]])), t_ns=k * 10**8 + 1), pose
        )
    assert len(accumulator.scans) == 3
    points = accumulator.observe()["points"]
    assert points == pytest.approx(np.array([[3.0, 1.0, -2.0]]), abs=1e-5)


def test_scans_before_a_gap_are_dropped():
    accumulator = ScanAccumulator(0.2, 0.5, 30.0, 1.0)
    for t_ns in (1, 10**10):
        accumulator.add(PointCloud(np.array([[5.0, 0.0, 0.0]]), t_ns=t_ns), np.eye(4))
    assert len(accumulator.scans) == 1
