"""Mono odometry on ray-traced drives, with reference odometry that slips."""

import dataclasses

import numpy as np
import pytest
from tests.nodes.stereo.drives import CAMERA_HEIGHT_M, LEFT, NS, WALL_DISTANCE_M, K, drive_poses, render_image

from transect.algorithms.odometry.mono_geometry import estimate_two_view_motion, project, triangulate_tracks
from transect.errors import TransectError
from transect.geometry import rotations, se3
from transect.nodes.state.local_pose import LocalPose
from transect.nodes.state.mono_odometry import MonoKeyframes
from transect.recording import FrameTree
from transect.types import Image, NavFix, Pose

MOUNT = se3.from_matrix([[0, 0, 1], [-1, 0, 0], [0, -1, 0]], [0.3, 0.1, 0.5])
"""``T_Platform_left_camera``: x forward, y left, z up on the body."""
STEP_COUNT = 12


def frames():
    tree = FrameTree()
    tree.add_static("Platform", "left_camera", MOUNT)
    return tree


def body_poses(steps):
    return [MOUNT @ T @ se3.invert(MOUNT) for T in drive_poses(steps)]


def run_drive(node, slips):
    """Return the outputs of a node on a drive; the reference scales the length of step k by `slips[k]`."""
    node.ctx.frames, results, true = frames(), [], body_poses(len(slips))
    steps = np.diff([T[:3, 3] for T in true], axis=0, prepend=np.zeros((1, 3)))
    counted = np.cumsum(np.asarray(slips)[:, None] * steps, axis=0)
    for k, (camera, body) in enumerate(zip(drive_poses(len(slips)), true, strict=True)):
        node.ctx.time = k * NS // 10
        image = Image(render_image(camera), t_ns=node.ctx.time, frame="left_camera", camera=LEFT)
        turned = rotations.quaternion_from_matrix(body[:3, :3])
        results.append(node(image, Pose(counted[k], turned, child="Platform")))
    return results


@pytest.fixture(scope="module")
def node():
    return MonoKeyframes(parallax=5.0)


@pytest.fixture(scope="module")
def slipping_results(node):
    return run_drive(node, [1.1] * STEP_COUNT)


def test_direction_is_visual_and_length_is_that_of_the_reference(slipping_results):
    found = [k for k, m in enumerate(slipping_results) if m.success]
    assert found == list(range(found[0], STEP_COUNT))
    first, last = (
        se3.from_quaternion(slipping_results[k].pose.orientation, slipping_results[k].pose.position)
        for k in (found[0], STEP_COUNT - 1)
    )
    true = body_poses(STEP_COUNT)
    moved, wanted = se3.invert(first) @ last, se3.invert(true[found[0]]) @ true[-1]
    assert np.linalg.norm(moved[:3, 3]) == pytest.approx(1.1 * np.linalg.norm(wanted[:3, 3]), rel=0.03)
    towards = moved[:3, 3] @ wanted[:3, 3] / np.linalg.norm(moved[:3, 3]) / np.linalg.norm(wanted[:3, 3])
    assert np.arccos(min(towards, 1.0)) < np.radians(1.5)
    assert (
        rotations.angle_between(*(rotations.quaternion_from_matrix(T[:3, :3]) for T in (moved, wanted)))
        < 0.005
    )


def test_poses_are_of_the_body_with_positive_covariances(slipping_results):
    assert (slipping_results[-1].pose.frame, slipping_results[-1].pose.child) == ("odom", "Platform")
    assert np.all(np.linalg.eigvalsh(slipping_results[-1].covariance) > 0)
    assert slipping_results[-1].inliers >= 50


def test_landmarks_lie_on_ground_and_wall_at_the_scale_of_the_reference(slipping_results, node):
    landmarks = node.finish().landmarks
    forward, _, up = (landmarks.points - MOUNT[:3, 3]).T
    ground, wall = np.abs(up + 1.1 * CAMERA_HEIGHT_M), np.abs(forward - 1.1 * WALL_DISTANCE_M)
    assert (landmarks.frame, len(landmarks) >= 40) == ("odom", True)
    assert np.median(up[ground < wall]) == pytest.approx(-1.1 * CAMERA_HEIGHT_M, abs=0.03)
    assert np.mean(np.minimum(ground, wall) < 2 * landmarks.fields["sigma"]) > 0.9


@pytest.fixture(scope="module")
def skidding_results():
    """Return results with a scale of 1.65 in the last four steps."""
    return run_drive(MonoKeyframes(parallax=5.0), [1.1] * (STEP_COUNT - 4) + [1.65] * 4)


def test_odometry_is_deterministic(slipping_results, skidding_results):
    first, second = (
        [m.pose and m.pose.position.tobytes() for m in results[:-4]]
        for results in (slipping_results, skidding_results)
    )
    assert first == second
    assert any(first)


def test_short_slip_is_averaged(skidding_results):
    """The scale is kept by the images: 5 % of the slip remains, not 50 %."""
    true = body_poses(STEP_COUNT)
    moved = np.linalg.norm(skidding_results[-1].pose.position - skidding_results[-5].pose.position)
    wanted = 1.1 * np.linalg.norm(true[-1][:3, 3] - true[-5][:3, 3])
    assert moved == pytest.approx(wanted, rel=0.15)


def test_a_stationary_camera_observes_no_depth():
    node = MonoKeyframes()
    node.ctx.frames = frames()
    image = Image(render_image(np.eye(4)), frame="left_camera", camera=LEFT)
    here = Pose(np.zeros(3), np.array([0, 0, 0, 1.0]), child="Platform")
    assert not any(node(image, here).success for _ in range(3))
    assert dict(node.ctx._count.skipped) == {"needs motion to see depth": 3}


@pytest.mark.parametrize(("gray", "reason"), [(3, "too dark"), (90, "too few features")])
def test_images_without_features_are_rejected(gray, reason):
    node = MonoKeyframes()
    node.ctx.frames = frames()
    image = Image(np.full((LEFT.height, LEFT.width), gray, np.uint8), frame="left_camera", camera=LEFT)
    assert not node(image, Pose(np.zeros(3), np.array([0, 0, 0, 1.0]), child="Platform")).success
    assert dict(node.ctx._count.skipped) == {reason: 1}


def test_distorted_images_are_refused():
    bent = dataclasses.replace(LEFT, distortion="radtan", coefficients=np.array([-0.2, 0.0, 0.0, 0.0]))
    image = Image(render_image(np.eye(4)), frame="left_camera", camera=bent)
    with pytest.raises(TransectError, match="not undistorted"):
        MonoKeyframes()(image, Pose(np.zeros(3), np.array([0, 0, 0, 1.0]), child="Platform"))


def test_an_unknown_mounting_names_the_files_that_provide_it():
    node = MonoKeyframes()
    node.ctx.frames = FrameTree()
    image = Image(render_image(np.eye(4)), frame="left_camera", camera=LEFT)
    with pytest.raises(TransectError, match="the mounting of the camera left_camera on imu") as error:
        node(image, Pose(np.zeros(3), np.array([0, 0, 0, 1.0]), child="imu"))
    assert "calib_imu_to_velo.txt" in error.value.hint


def test_an_inertial_unit_with_its_own_frame_has_z_up():
    pose = LocalPose()(NavFix(0.5, 0.2, 100.0, attitude=np.zeros(3), frame="imu"))
    assert pose.child == "imu"
    assert rotations.rotate(pose.orientation, np.eye(3)) == pytest.approx(
        np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]])  # heading north: forward, left, up in east, north, up
    )


# Parts


def seen_from(poses, points):
    return np.array([project(se3.apply(se3.invert(T), points), K) for T in poses])


def test_points_are_triangulated():
    points = np.random.default_rng(1).uniform([-2, -1, 3], [2, 1, 6], (40, 3))
    poses = np.array(drive_poses(6, ahead=0.3))
    pixels = seen_from(poses, points)
    pixels[0, :5] = np.nan  # not observed by one view
    found = triangulate_tracks(poses, pixels, K).points
    known = np.isfinite(found[:, 0])
    assert known.sum() > 30
    assert np.allclose(found[known], points[known], atol=1e-9)


def test_points_with_one_view_or_large_residuals_have_no_depth():
    points = np.random.default_rng(2).uniform([-2, -1, 3], [2, 1, 6], (10, 3))
    poses = np.array(drive_poses(4, ahead=0.3))
    pixels = seen_from(poses, points)
    pixels[1:, :5] = np.nan
    pixels[2, 5:] += 30.0
    assert np.isnan(triangulate_tracks(poses, pixels, K).points).all()


def test_two_view_motion_is_estimated_up_to_scale():
    points = np.random.default_rng(3).uniform([-2, -1, 3], [2, 1, 6], (80, 3))
    before, now = drive_poses(2, ahead=0.4, turn=0.05)
    found = estimate_two_view_motion(*seen_from([before, now], points), K)
    assert np.allclose(found.rotation, now[:3, :3], atol=1e-6)
    assert np.allclose(found.direction, now[:3, 3] / np.linalg.norm(now[:3, 3]), atol=1e-5)
    assert estimate_two_view_motion(np.zeros((3, 2)), np.zeros((3, 2)), K) is None
