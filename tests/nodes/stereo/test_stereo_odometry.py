"""Stereo odometry on drives whose every pixel is known, and its parts on points that are."""

import copy
import dataclasses
from functools import partial

import numpy as np
import pytest
from tests.nodes.stereo.drives import (
    AHEAD,
    BASELINE,
    DOWN,
    FOCAL,
    HEIGHT,
    LEFT,
    RIGHT,
    WIDTH,
    drive,
    drive_pairs,
    pair,
    played,
)

from transect.algorithms.odometry.stereo_motion import locate_camera, pixel_jacobian
from transect.algorithms.odometry.stereo_rig import StereoRig, stereo_rig_of
from transect.algorithms.odometry.stereo_tracking import find_corners, track_points, track_points_parallel
from transect.engine.context import Context
from transect.errors import TransectError
from transect.geometry import rotations, se3
from transect.nodes.stereo.stereo_odometry import DescriptorTracks, KltFrameToFrame, KltKeyframes
from transect.types import Image

RIG = StereoRig(FOCAL, FOCAL, WIDTH / 2, HEIGHT / 2, BASELINE, WIDTH, HEIGHT)
IMPLEMENTATIONS = [KltFrameToFrame, KltKeyframes, partial(DescriptorTracks, features=200)]
STEPS = 6


def camera_poses(said):
    """``T_first_camera`` of poses in odom, whose x, y, z are forward, left and up."""
    axes = np.array([[0, 0, 1], [-1, 0, 0], [0, -1, 0]])
    T_odom_first = se3.from_matrix(axes, np.zeros(3))
    poses = [se3.from_quaternion(m.pose.orientation, m.pose.position) for m in said]
    return [se3.invert(T_odom_first) @ T for T in poses]


def reasons(node):
    return dict(node.ctx._count.skipped)


def off_the_surfaces(cloud):
    """Metres (n,) from points in odom to the ground or the wall, whichever is nearer."""
    return np.minimum(np.abs(cloud.points[:, 2] + DOWN), np.abs(cloud.points[:, 0] - AHEAD))


@pytest.mark.parametrize("make", IMPLEMENTATIONS)
def test_a_drive_is_found_to_two_hundredths_of_its_length_and_its_landmarks_on_ground_and_wall(make):
    node = make()
    said = played(node, drive_pairs(STEPS))
    assert [m.success for m in said] == [True] * STEPS
    off = se3.invert(drive(STEPS)[-1]) @ camera_poses(said)[-1]
    assert np.linalg.norm(off[:3, 3]) < 0.02 * 0.06 * (STEPS - 1)
    assert np.linalg.norm(rotations.rotation_vector_from_matrix(off[:3, :3])) < 0.003
    landmarks = node.finish().landmarks
    assert (landmarks.frame, len(landmarks) >= 40, landmarks.fields["count"].min()) == ("odom", True, 2)
    off = off_the_surfaces(landmarks)
    assert np.median(off) < 0.05
    assert np.mean(off < 3 * landmarks.fields["sigma"]) > 0.95
    assert landmarks.fields["intensity"].std() > 20  # the paint's is 45


@pytest.mark.parametrize("count", [0, 1, 40])
def test_points_followed_on_two_threads_are_those_followed_on_one(count):
    before, now = (left.data for left, _ in drive_pairs(2))
    pixels = find_corners(before, np.zeros((0, 2)), 16)[:count]
    assert len(pixels) == count
    one, two = (
        track_points(before, now, pixels, pixels + 1),
        track_points_parallel(before, now, pixels, pixels + 1),
    )
    np.testing.assert_array_equal(two[0], one[0])
    np.testing.assert_array_equal(two[1], one[1])


def test_between_keyframes_the_left_camera_alone_tells_the_motion():
    dark = np.zeros((HEIGHT, WIDTH), np.uint8)
    pairs = [
        (left, right if k % 3 == 0 else dataclasses.replace(right, data=dark))
        for k, (left, right) in enumerate(drive_pairs(STEPS))
    ]
    said = played(KltKeyframes(keyframe_ratio=0.3), pairs)
    assert [m.success for m in said] == [True] * STEPS
    off = se3.invert(drive(STEPS)[-1]) @ camera_poses(said)[-1]
    assert np.linalg.norm(off[:3, 3]) < 0.02 * 0.06 * (STEPS - 1)


def test_a_pose_is_of_the_left_camera_forward_left_up_from_its_start():
    said = played(KltFrameToFrame(), drive_pairs(2, ahead=0.06, turn=0.0))
    assert np.allclose(said[0].pose.position, 0)
    assert said[0].covariance is None
    assert said[1].pose.position == pytest.approx([0.06, 0, 0], abs=1e-3)
    assert (said[1].pose.frame, said[1].pose.child, said[1].pose.t_ns) == ("odom", "left_camera", 100_000_000)
    assert said[1].inliers >= 50
    assert np.all(np.linalg.eigvalsh(said[1].covariance) > 0)


def test_a_camera_that_checks_doubt_tells_its_motion_with_a_larger_covariance(monkeypatch):
    usual = played(KltFrameToFrame(), drive_pairs(2))[1]
    monkeypatch.setattr(Context, "trust", lambda self, port: {"left": 1.0, "right": 0.1}[port])
    now = played(KltFrameToFrame(), drive_pairs(2))[1]
    assert now.covariance == pytest.approx(100 * usual.covariance)
    assert now.pose.position.tobytes() == usual.pose.position.tobytes()


@pytest.mark.parametrize("implementation", [KltFrameToFrame, KltKeyframes])
def test_the_same_pairs_give_the_same_bytes(implementation):
    first, second = (played(implementation(), drive_pairs(5)) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert a.pose.position.tobytes() == b.pose.position.tobytes()
        assert a.pose.orientation.tobytes() == b.pose.orientation.tobytes()


def test_a_state_that_was_frozen_goes_on_alike():
    pairs = drive_pairs(6)
    node, other = KltKeyframes(), KltKeyframes()
    played(node, pairs[:4])
    other.thaw(copy.deepcopy(node.freeze()))
    a, b = played(node, pairs[4:])[-1], played(other, pairs[4:])[-1]
    assert np.array_equal(a.pose.position, b.pose.position)


# Refusals


def test_a_dark_pair_is_passed_over():
    pairs = drive_pairs(3)
    dark = tuple(dataclasses.replace(each, data=each.data // 32) for each in pairs[1])
    node = KltKeyframes()
    said = played(node, [pairs[0], dark, pairs[2]])
    assert [m.success for m in said] == [True, False, True]
    assert said[1].pose is None
    assert reasons(node) == {"too dark": 1}
    assert said[2].pose.position == pytest.approx(drive(3)[2][[2, 0, 1], 3] * [1, -1, -1], abs=2e-3)


def test_a_covered_right_camera_is_named():
    left, right = drive_pairs(1)[0]
    node = KltKeyframes()
    assert not played(node, [(left, dataclasses.replace(right, data=right.data // 64))])[0].success
    assert reasons(node) == {"the right camera is too dark": 1}
    assert node.finish() is None


def test_one_pair_has_neither_motion_nor_landmarks():
    node = KltKeyframes()
    assert played(node, drive_pairs(1))[0].success
    assert node.finish() is None
    assert reasons(node) == {"no second keyframe: neither motion nor landmarks": 1}


def test_without_corners_there_is_no_pose():
    empty = tuple(
        dataclasses.replace(each, data=np.full((HEIGHT, WIDTH), 90, np.uint8)) for each in drive_pairs(1)[0]
    )
    node = KltKeyframes()
    assert not played(node, [empty])[0].success
    assert reasons(node) == {"too few features": 1}


def test_a_right_camera_that_looks_elsewhere_is_no_stereo_overlap():
    (left, right), here = drive_pairs(1)[0], np.eye(4).tobytes()
    node = KltFrameToFrame()
    assert not played(node, [(left, dataclasses.replace(right, data=pair(here, 0, 3)[1].data))])[0].success
    assert [reason.split(":")[0] for reason in reasons(node)] == ["no stereo overlap"]


def test_a_jump_elsewhere_is_lost_and_odometry_goes_on_from_there():
    pairs = drive_pairs(4)
    elsewhere = [pair(T.tobytes(), (4 + k) * 100_000_000, 5) for k, T in enumerate(drive(3))]
    node = KltKeyframes()
    said = played(node, [*pairs, *elsewhere])
    assert [m.success for m in said] == [True] * 4 + [False] + [True] * 2
    assert sum(reasons(node).values()) == 1
    moved = se3.invert(camera_poses(said[-2:])[0]) @ camera_poses(said[-2:])[1]
    assert np.linalg.norm(moved[:3, 3]) == pytest.approx(0.06, rel=0.05)


def test_a_missing_baseline_names_the_files_that_have_it():
    left, right = drive_pairs(1)[0]
    camera = dataclasses.replace(RIGHT, P=LEFT.P)
    with pytest.raises(TransectError, match="baseline") as error:
        KltKeyframes()(left, dataclasses.replace(right, camera=camera))
    assert "calib.txt" in error.value.hint
    with pytest.raises(TransectError, match="without calibration"):
        KltKeyframes()(left, dataclasses.replace(right, camera=None))


def test_images_with_a_lens_are_refused():
    left, right = drive_pairs(1)[0]
    bent = dataclasses.replace(
        LEFT, distortion="radtan", coefficients=np.array([-0.2, 0.0, 0.0, 0.0]), P=None
    )
    with pytest.raises(TransectError, match="not rectified"):
        KltKeyframes()(dataclasses.replace(left, camera=bent), right)


# Parts


def test_a_right_principal_point_that_was_moved_moves_the_points():
    K = RIGHT.K.copy()
    K[0, 2] -= 0.5
    blank = np.zeros((HEIGHT, WIDTH), np.uint8)
    right = Image(blank, camera=dataclasses.replace(RIGHT, K=K, P=np.hstack([K, RIGHT.P[:, 3:]])))
    rig = stereo_rig_of(Image(blank, camera=LEFT), right)
    depth = rig.points(np.array([[150.0, 90.0, 140.0]]))[0, 2]
    assert depth == pytest.approx(FOCAL * BASELINE / (10.0 - 0.5))
    assert rig.pixels(rig.points(np.array([[150.0, 90.0, 140.0]]))) == pytest.approx(
        np.array([[150.0, 90.0, 140.0]])
    )


def cloud(rng, n=200):
    return rng.uniform([-3, -1, 3], [3, 1, 12], size=(n, 3))


def test_a_pose_is_found_among_points_of_which_a_third_is_wrong():
    rng = np.random.default_rng(1)
    points, T = cloud(rng), se3.exp([0.2, -0.1, 0.4, 0.03, -0.05, 0.02])
    seen = RIG.pixels(se3.apply(T, points))
    seen[:66, :2] += rng.uniform(20, 60, size=(66, 2))
    found = locate_camera(points, seen, RIG, np.eye(4))
    assert np.allclose(found.T_camera_world, T, atol=1e-6)
    assert not found.inliers[:66].any()
    assert found.inliers[66:].all()


def test_the_covariance_tells_how_far_off_a_pose_is():
    rng = np.random.default_rng(2)
    T, nees = np.eye(4), []
    for _ in range(40):
        points = cloud(rng)
        seen = RIG.pixels(points) + rng.normal(scale=0.5, size=(len(points), 3))
        found = locate_camera(points, seen, RIG, T)
        error = se3.log(found.T_camera_world)
        nees.append(error @ np.linalg.solve(found.covariance, error))
    assert (
        4.0 < np.mean(nees) < 9.0
    )  # 6 where noise is normal; Cauchy's weights say a little too much or little


def test_points_without_a_right_column_count_by_their_left_one():
    rng = np.random.default_rng(3)
    points, T = cloud(rng), se3.exp([0.0, 0.0, 0.3, 0.0, 0.02, 0.0])
    seen = RIG.pixels(se3.apply(T, points))
    seen[::2, 2] = np.nan
    assert np.allclose(locate_camera(points, seen, RIG, np.eye(4)).T_camera_world, T, atol=1e-6)
    assert locate_camera(points[:3], seen[:3], RIG, np.eye(4)) is None


def test_derivatives_are_those_of_the_pixels():
    points, h = cloud(np.random.default_rng(4), 20), 1e-6
    numeric = [
        (RIG.pixels(se3.apply(se3.exp(h * e), points)) - RIG.pixels(se3.apply(se3.exp(-h * e), points)))
        / (2 * h)
        for e in np.eye(6)
    ]
    assert np.allclose(pixel_jacobian(points, np.zeros(20, bool), RIG), np.stack(numeric, axis=2), atol=1e-5)


def test_corners_keep_to_free_cells_and_to_what_was_measured():
    picture = np.random.default_rng(5).integers(0, 255, (100, 100)).astype(np.uint8)
    every = find_corners(picture, np.zeros((0, 2)), 20)
    assert len(np.unique(every // 20, axis=0)) == len(every) == 25
    assert len(find_corners(picture, every[:10], 20)) == 15
    valid = np.ones((100, 100), bool)
    valid[:, :50] = False
    assert find_corners(picture, np.zeros((0, 2)), 20, valid)[:, 0].min() >= 50
