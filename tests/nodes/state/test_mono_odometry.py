"""Odometry of one camera on drives whose every pixel is known; a reference tells lengths, right or wrong."""

import dataclasses

import numpy as np
import pytest
from tests.nodes.stereo.drives import AHEAD, DOWN, LEFT, SECOND, K, drive, picture

from transect.algorithms.odometry.mono_geometry import estimate_two_view_motion, project, triangulate_tracks
from transect.errors import TransectError
from transect.geometry import rotations, se3
from transect.nodes.state.local_pose import LocalPose
from transect.nodes.state.mono_odometry import MonoKeyframes
from transect.recording import FrameTree
from transect.types import Image, NavFix, Pose

MOUNT = se3.from_matrix([[0, 0, 1], [-1, 0, 0], [0, -1, 0]], [0.3, 0.1, 0.5])
"""``T_Platform_left_camera``: x forward, y left, z up on the body."""
STEPS = 12


def frames():
    tree = FrameTree()
    tree.add_static("Platform", "left_camera", MOUNT)
    return tree


def body_poses(steps):
    return [MOUNT @ T @ se3.invert(MOUNT) for T in drive(steps)]


def played(node, slips):
    """What a node says along a drive of which the reference counts each step's length `slips` times."""
    node.ctx.frames, said, true = frames(), [], body_poses(len(slips))
    steps = np.diff([T[:3, 3] for T in true], axis=0, prepend=np.zeros((1, 3)))
    counted = np.cumsum(np.asarray(slips)[:, None] * steps, axis=0)
    for k, (camera, body) in enumerate(zip(drive(len(slips)), true, strict=True)):
        node.ctx.time = k * SECOND // 10
        image = Image(picture(camera), t_ns=node.ctx.time, frame="left_camera", camera=LEFT)
        turned = rotations.quaternion_from_matrix(body[:3, :3])
        said.append(node(image, Pose(counted[k], turned, child="Platform")))
    return said


@pytest.fixture(scope="module")
def node():
    return MonoKeyframes(parallax=5.0)


@pytest.fixture(scope="module")
def slipped(node):
    return played(node, [1.1] * STEPS)


def test_the_way_is_seen_and_its_length_is_the_references(slipped):
    found = [k for k, m in enumerate(slipped) if m.success]
    assert found == list(range(found[0], STEPS))
    first, last = (
        se3.from_quaternion(slipped[k].pose.orientation, slipped[k].pose.position)
        for k in (found[0], STEPS - 1)
    )
    true = body_poses(STEPS)
    moved, wanted = se3.invert(first) @ last, se3.invert(true[found[0]]) @ true[-1]
    assert np.linalg.norm(moved[:3, 3]) == pytest.approx(1.1 * np.linalg.norm(wanted[:3, 3]), rel=0.03)
    towards = moved[:3, 3] @ wanted[:3, 3] / np.linalg.norm(moved[:3, 3]) / np.linalg.norm(wanted[:3, 3])
    assert np.arccos(min(towards, 1.0)) < np.radians(1.5)
    assert (
        rotations.angle_between(*(rotations.quaternion_from_matrix(T[:3, :3]) for T in (moved, wanted)))
        < 0.005
    )


def test_a_pose_is_of_the_body_and_its_covariance_a_covariance(slipped):
    assert (slipped[-1].pose.frame, slipped[-1].pose.child) == ("odom", "Platform")
    assert np.all(np.linalg.eigvalsh(slipped[-1].covariance) > 0)
    assert slipped[-1].inliers >= 50


def test_landmarks_are_on_ground_and_wall_as_far_as_the_reference_says(slipped, node):
    landmarks = node.finish().landmarks
    forward, _, up = (landmarks.points - MOUNT[:3, 3]).T
    ground, wall = np.abs(up + 1.1 * DOWN), np.abs(forward - 1.1 * AHEAD)
    assert (landmarks.frame, len(landmarks) >= 40) == ("odom", True)
    assert np.median(up[ground < wall]) == pytest.approx(-1.1 * DOWN, abs=0.03)
    assert np.mean(np.minimum(ground, wall) < 2 * landmarks.fields["sigma"]) > 0.9


@pytest.fixture(scope="module")
def skidded():
    """As `slipped`, but the last four steps are counted half as long again."""
    return played(MonoKeyframes(parallax=5.0), [1.1] * (STEPS - 4) + [1.65] * 4)


def test_the_same_images_give_the_same_bytes(slipped, skidded):
    first, second = ([m.pose and m.pose.position.tobytes() for m in said[:-4]] for said in (slipped, skidded))
    assert first == second
    assert any(first)


def test_slip_for_a_short_way_is_evened_out(skidded):
    """What is seen holds the lengths in between: it is a twentieth that comes through, not a half."""
    true = body_poses(STEPS)
    moved = np.linalg.norm(skidded[-1].pose.position - skidded[-5].pose.position)
    wanted = 1.1 * np.linalg.norm(true[-1][:3, 3] - true[-5][:3, 3])
    assert moved == pytest.approx(wanted, rel=0.15)


def test_a_camera_that_stands_sees_no_depth():
    node = MonoKeyframes()
    node.ctx.frames = frames()
    image = Image(picture(np.eye(4)), frame="left_camera", camera=LEFT)
    here = Pose(np.zeros(3), np.array([0, 0, 0, 1.0]), child="Platform")
    assert not any(node(image, here).success for _ in range(3))
    assert dict(node.ctx._count.skipped) == {"needs motion to see depth": 3}


@pytest.mark.parametrize(("gray", "reason"), [(3, "too dark"), (90, "too few features")])
def test_pictures_that_show_nothing_are_refused(gray, reason):
    node = MonoKeyframes()
    node.ctx.frames = frames()
    image = Image(np.full((LEFT.height, LEFT.width), gray, np.uint8), frame="left_camera", camera=LEFT)
    assert not node(image, Pose(np.zeros(3), np.array([0, 0, 0, 1.0]), child="Platform")).success
    assert dict(node.ctx._count.skipped) == {reason: 1}


def test_a_lens_is_refused():
    bent = dataclasses.replace(LEFT, distortion="radtan", coefficients=np.array([-0.2, 0.0, 0.0, 0.0]))
    image = Image(picture(np.eye(4)), frame="left_camera", camera=bent)
    with pytest.raises(TransectError, match="not undistorted"):
        MonoKeyframes()(image, Pose(np.zeros(3), np.array([0, 0, 0, 1.0]), child="Platform"))


def test_a_camera_whose_place_on_the_body_is_not_known_names_the_files_that_have_it():
    node = MonoKeyframes()
    node.ctx.frames = FrameTree()
    image = Image(picture(np.eye(4)), frame="left_camera", camera=LEFT)
    with pytest.raises(TransectError, match="the mounting of the camera left_camera on imu") as error:
        node(image, Pose(np.zeros(3), np.array([0, 0, 0, 1.0]), child="imu"))
    assert "calib_imu_to_velo.txt" in error.value.hint


def test_an_inertial_unit_with_a_frame_of_its_own_has_its_z_up():
    pose = LocalPose()(NavFix(0.5, 0.2, 100.0, attitude=np.zeros(3), frame="imu"))
    assert pose.child == "imu"
    assert rotations.rotate(pose.orientation, np.eye(3)) == pytest.approx(
        np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]])  # it looks north: forward, left, up in east, north, up
    )


# Parts


def seen_from(poses, points):
    return np.array([project(se3.apply(se3.invert(T), points), K) for T in poses])


def test_points_are_where_their_rays_meet():
    points = np.random.default_rng(1).uniform([-2, -1, 3], [2, 1, 6], (40, 3))
    poses = np.array(drive(6, ahead=0.3))
    pixels = seen_from(poses, points)
    pixels[0, :5] = np.nan  # one view missed them
    found = triangulate_tracks(poses, pixels, K).points
    known = np.isfinite(found[:, 0])
    assert known.sum() > 30
    assert np.allclose(found[known], points[known], atol=1e-9)


def test_points_seen_once_or_elsewhere_have_no_depth():
    points = np.random.default_rng(2).uniform([-2, -1, 3], [2, 1, 6], (10, 3))
    poses = np.array(drive(4, ahead=0.3))
    pixels = seen_from(poses, points)
    pixels[1:, :5] = np.nan
    pixels[2, 5:] += 30.0
    assert np.isnan(triangulate_tracks(poses, pixels, K).points).all()


def test_the_first_motion_is_found_up_to_its_length():
    points = np.random.default_rng(3).uniform([-2, -1, 3], [2, 1, 6], (80, 3))
    before, now = drive(2, ahead=0.4, turn=0.05)
    found = estimate_two_view_motion(*seen_from([before, now], points), K)
    assert np.allclose(found.rotation, now[:3, :3], atol=1e-6)
    assert np.allclose(found.direction, now[:3, 3] / np.linalg.norm(now[:3, 3]), atol=1e-5)
    assert estimate_two_view_motion(np.zeros((3, 2)), np.zeros((3, 2)), K) is None
