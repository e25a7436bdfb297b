"""Stereo odometry on ray-traced drives, and its parts on simulated points."""

import copy
import dataclasses
from functools import partial

import numpy as np
import pytest
from tests.nodes.stereo.drives import (
    BASELINE_M,
    CAMERA_HEIGHT_M,
    FOCAL_PX,
    HEIGHT_PX,
    LEFT,
    RIGHT,
    WALL_DISTANCE_M,
    WIDTH_PX,
    drive_pairs,
    drive_poses,
    render_pair,
    run_pairs,
)

from transect.algorithms.odometry.stereo_motion import locate_camera, pixel_jacobian
from transect.algorithms.odometry.stereo_rig import StereoRig, stereo_rig_of
from transect.algorithms.odometry.stereo_tracking import find_corners, track_points, track_points_parallel
from transect.engine.context import Context
from transect.errors import TransectError
from transect.geometry import rotations, se3
from transect.nodes.stereo.stereo_odometry import DescriptorTracks, KltFrameToFrame, KltKeyframes
from transect.types import Image

RIG = StereoRig(FOCAL_PX, FOCAL_PX, WIDTH_PX / 2, HEIGHT_PX / 2, BASELINE_M, WIDTH_PX, HEIGHT_PX)
IMPLEMENTATIONS = [KltFrameToFrame, KltKeyframes, partial(DescriptorTracks, features=200)]
STEP_COUNT = 6


def T_first_camera_of(results):
    """Return ``T_first_camera`` of poses in odom, whose x, y, z are forward, left and up."""
    axes = np.array([[0, 0, 1], [-1, 0, 0], [0, -1, 0]])
    T_odom_first = se3.from_matrix(axes, np.zeros(3))
    poses = [se3.from_quaternion(m.pose.orientation, m.pose.position) for m in results]
    return [se3.invert(T_odom_first) @ T for T in poses]


def skip_reasons(node):
    return dict(node.ctx._count.skipped)


def surface_distances(cloud):
    """Return the distances (n,) of points in odom from the nearest surface, ground or wall."""
    return np.minimum(
        np.abs(cloud.points[:, 2] + CAMERA_HEIGHT_M), np.abs(cloud.points[:, 0] - WALL_DISTANCE_M)
    )


@pytest.mark.parametrize("make", IMPLEMENTATIONS)
def test_the_path_is_within_two_percent_and_landmarks_lie_on_ground_and_wall(make):
    node = make()
    results = run_pairs(node, drive_pairs(STEP_COUNT))
    assert [m.success for m in results] == [True] * STEP_COUNT
    off = se3.invert(drive_poses(STEP_COUNT)[-1]) @ T_first_camera_of(results)[-1]
    assert np.linalg.norm(off[:3, 3]) < 0.02 * 0.06 * (STEP_COUNT - 1)
    assert np.linalg.norm(rotations.rotation_vector_from_matrix(off[:3, :3])) < 0.003
    landmarks = node.finish().landmarks
    assert (landmarks.frame, len(landmarks) >= 40, landmarks.fields["count"].min()) == ("odom", True, 2)
    off = surface_distances(landmarks)
    assert np.median(off) < 0.05
    assert np.mean(off < 3 * landmarks.fields["sigma"]) > 0.95
    assert landmarks.fields["intensity"].std() > 20  # the paint's is 45


@pytest.mark.parametrize("count", [0, 1, 40])
def test_tracking_on_two_threads_gives_the_same_points(count):
    before, now = (left.data for left, _ in drive_pairs(2))
    pixels = find_corners(before, np.zeros((0, 2)), 16)[:count]
    assert len(pixels) == count
    one, two = (
        track_points(before, now, pixels, pixels + 1),
        track_points_parallel(before, now, pixels, pixels + 1),
    )
    np.testing.assert_array_equal(two[0], one[0])
    np.testing.assert_array_equal(two[1], one[1])


def test_between_keyframes_the_left_camera_suffices():
    dark = np.zeros((HEIGHT_PX, WIDTH_PX), np.uint8)
    pairs = [
        (left, right if k % 3 == 0 else dataclasses.replace(right, data=dark))
        for k, (left, right) in enumerate(drive_pairs(STEP_COUNT))
    ]
    results = run_pairs(KltKeyframes(keyframe_ratio=0.3), pairs)
    assert [m.success for m in results] == [True] * STEP_COUNT
    off = se3.invert(drive_poses(STEP_COUNT)[-1]) @ T_first_camera_of(results)[-1]
    assert np.linalg.norm(off[:3, 3]) < 0.02 * 0.06 * (STEP_COUNT - 1)


def test_poses_are_of_the_left_camera_with_x_forward_y_left_z_up():
    results = run_pairs(KltFrameToFrame(), drive_pairs(2, ahead=0.06, turn=0.0))
    assert np.allclose(results[0].pose.position, 0)
    assert results[0].covariance is None
    assert results[1].pose.position == pytest.approx([0.06, 0, 0], abs=1e-3)
    assert (results[1].pose.frame, results[1].pose.child, results[1].pose.t_ns) == (
        "odom",
        "left_camera",
        100_000_000,
    )
    assert results[1].inliers >= 50
    assert np.all(np.linalg.eigvalsh(results[1].covariance) > 0)


def test_a_suspect_camera_inflates_the_covariance(monkeypatch):
    usual = run_pairs(KltFrameToFrame(), drive_pairs(2))[1]
    monkeypatch.setattr(Context, "trust", lambda self, port: {"left": 1.0, "right": 0.1}[port])
    now = run_pairs(KltFrameToFrame(), drive_pairs(2))[1]
    assert now.covariance == pytest.approx(100 * usual.covariance)
    assert now.pose.position.tobytes() == usual.pose.position.tobytes()


@pytest.mark.parametrize("implementation", [KltFrameToFrame, KltKeyframes])
def test_odometry_is_deterministic(implementation):
    first, second = (run_pairs(implementation(), drive_pairs(5)) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert a.pose.position.tobytes() == b.pose.position.tobytes()
        assert a.pose.orientation.tobytes() == b.pose.orientation.tobytes()


def test_a_frozen_state_continues_identically():
    pairs = drive_pairs(6)
    node, other = KltKeyframes(), KltKeyframes()
    run_pairs(node, pairs[:4])
    other.thaw(copy.deepcopy(node.freeze()))
    a, b = run_pairs(node, pairs[4:])[-1], run_pairs(other, pairs[4:])[-1]
    assert np.array_equal(a.pose.position, b.pose.position)


# Rejected pairs


def test_a_dark_pair_is_skipped():
    pairs = drive_pairs(3)
    dark = tuple(dataclasses.replace(each, data=each.data // 32) for each in pairs[1])
    node = KltKeyframes()
    results = run_pairs(node, [pairs[0], dark, pairs[2]])
    assert [m.success for m in results] == [True, False, True]
    assert results[1].pose is None
    assert skip_reasons(node) == {"too dark": 1}
    assert results[2].pose.position == pytest.approx(drive_poses(3)[2][[2, 0, 1], 3] * [1, -1, -1], abs=2e-3)


def test_a_covered_right_camera_is_reported():
    left, right = drive_pairs(1)[0]
    node = KltKeyframes()
    assert not run_pairs(node, [(left, dataclasses.replace(right, data=right.data // 64))])[0].success
    assert skip_reasons(node) == {"the right camera is too dark": 1}
    assert node.finish() is None


def test_a_single_pair_has_neither_motion_nor_landmarks():
    node = KltKeyframes()
    assert run_pairs(node, drive_pairs(1))[0].success
    assert node.finish() is None
    assert skip_reasons(node) == {"no second keyframe: neither motion nor landmarks": 1}


def test_without_corners_there_is_no_pose():
    empty = tuple(
        dataclasses.replace(each, data=np.full((HEIGHT_PX, WIDTH_PX), 90, np.uint8))
        for each in drive_pairs(1)[0]
    )
    node = KltKeyframes()
    assert not run_pairs(node, [empty])[0].success
    assert skip_reasons(node) == {"too few features": 1}


def test_unrelated_right_images_have_no_stereo_overlap():
    (left, right), here = drive_pairs(1)[0], np.eye(4).tobytes()
    node = KltFrameToFrame()
    assert not run_pairs(node, [(left, dataclasses.replace(right, data=render_pair(here, 0, 3)[1].data))])[
        0
    ].success
    assert [reason.split(":")[0] for reason in skip_reasons(node)] == ["no stereo overlap"]


def test_after_a_jump_odometry_restarts():
    pairs = drive_pairs(4)
    elsewhere = [render_pair(T.tobytes(), (4 + k) * 100_000_000, 5) for k, T in enumerate(drive_poses(3))]
    node = KltKeyframes()
    results = run_pairs(node, [*pairs, *elsewhere])
    assert [m.success for m in results] == [True] * 4 + [False] + [True] * 2
    assert sum(skip_reasons(node).values()) == 1
    moved = se3.invert(T_first_camera_of(results[-2:])[0]) @ T_first_camera_of(results[-2:])[1]
    assert np.linalg.norm(moved[:3, 3]) == pytest.approx(0.06, rel=0.05)


def test_a_missing_baseline_names_the_files_that_provide_it():
    left, right = drive_pairs(1)[0]
    camera = dataclasses.replace(RIGHT, P=LEFT.P)
    with pytest.raises(TransectError, match="baseline") as error:
        KltKeyframes()(left, dataclasses.replace(right, camera=camera))
    assert "calib.txt" in error.value.hint
    with pytest.raises(TransectError, match="without calibration"):
        KltKeyframes()(left, dataclasses.replace(right, camera=None))


def test_distorted_images_are_refused():
    left, right = drive_pairs(1)[0]
    bent = dataclasses.replace(
        LEFT, distortion="radtan", coefficients=np.array([-0.2, 0.0, 0.0, 0.0]), P=None
    )
    with pytest.raises(TransectError, match="not rectified"):
        KltKeyframes()(dataclasses.replace(left, camera=bent), right)


# Parts


def test_a_shifted_right_principal_point_changes_the_depth():
    K = RIGHT.K.copy()
    K[0, 2] -= 0.5
    blank = np.zeros((HEIGHT_PX, WIDTH_PX), np.uint8)
    right = Image(blank, camera=dataclasses.replace(RIGHT, K=K, P=np.hstack([K, RIGHT.P[:, 3:]])))
    rig = stereo_rig_of(Image(blank, camera=LEFT), right)
    depth = rig.points(np.array([[150.0, 90.0, 140.0]]))[0, 2]
    assert depth == pytest.approx(FOCAL_PX * BASELINE_M / (10.0 - 0.5))
    assert rig.pixels(rig.points(np.array([[150.0, 90.0, 140.0]]))) == pytest.approx(
        np.array([[150.0, 90.0, 140.0]])
    )


def cloud(rng, n=200):
    return rng.uniform([-3, -1, 3], [3, 1, 12], size=(n, 3))


def test_a_pose_is_estimated_with_a_third_of_outliers():
    rng = np.random.default_rng(1)
    points, T = cloud(rng), se3.exp([0.2, -0.1, 0.4, 0.03, -0.05, 0.02])
    seen = RIG.pixels(se3.apply(T, points))
    seen[:66, :2] += rng.uniform(20, 60, size=(66, 2))
    found = locate_camera(points, seen, RIG, np.eye(4))
    assert np.allclose(found.T_camera_world, T, atol=1e-6)
    assert not found.inliers[:66].any()
    assert found.inliers[66:].all()


def test_errors_of_poses_agree_with_their_covariance():
    rng = np.random.default_rng(2)
    T, nees = np.eye(4), []
    for _ in range(40):
        points = cloud(rng)
        seen = RIG.pixels(points) + rng.normal(scale=0.5, size=(len(points), 3))
        found = locate_camera(points, seen, RIG, T)
        error = se3.log(found.T_camera_world)
        nees.append(error @ np.linalg.solve(found.covariance, error))
    assert 4.0 < np.mean(nees) < 9.0  # 6 for Gaussian noise; Cauchy weights change it slightly


def test_unmatched_points_constrain_by_their_left_column():
    rng = np.random.default_rng(3)
    points, T = cloud(rng), se3.exp([0.0, 0.0, 0.3, 0.0, 0.02, 0.0])
    seen = RIG.pixels(se3.apply(T, points))
    seen[::2, 2] = np.nan
    assert np.allclose(locate_camera(points, seen, RIG, np.eye(4)).T_camera_world, T, atol=1e-6)
    assert locate_camera(points[:3], seen[:3], RIG, np.eye(4)) is None


def test_the_jacobian_agrees_with_finite_differences():
    points, h = cloud(np.random.default_rng(4), 20), 1e-6
    numeric = [
        (RIG.pixels(se3.apply(se3.exp(h * e), points)) - RIG.pixels(se3.apply(se3.exp(-h * e), points)))
        / (2 * h)
        for e in np.eye(6)
    ]
    assert np.allclose(pixel_jacobian(points, np.zeros(20, bool), RIG), np.stack(numeric, axis=2), atol=1e-5)


def test_corners_lie_in_free_cells_and_measured_areas():
    picture = np.random.default_rng(5).integers(0, 255, (100, 100)).astype(np.uint8)
    every = find_corners(picture, np.zeros((0, 2)), 20)
    assert len(np.unique(every // 20, axis=0)) == len(every) == 25
    assert len(find_corners(picture, every[:10], 20)) == 15
    valid = np.ones((100, 100), bool)
    valid[:, :50] = False
    assert find_corners(picture, np.zeros((0, 2)), 20, valid)[:, 0].min() >= 50
