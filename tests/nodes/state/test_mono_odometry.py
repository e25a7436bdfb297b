"""Odometry of one camera on drives whose every pixel is known; a reference tells lengths, right or wrong."""

import dataclasses

import numpy as np
import pytest
from tests.nodes.stereo.drives import LEFT, SECOND, K, drive, picture

from transect.errors import TransectError
from transect.geometry import rotations, se3
from transect.nodes.state._mono_geometry import first_motion, project, triangulate
from transect.nodes.state.mono_odometry import MonoKeyframes
from transect.recording import FrameTree
from transect.types import Image, Pose

MOUNT = se3.from_matrix([[0, 0, 1], [-1, 0, 0], [0, -1, 0]], [0.3, 0.1, 0.5])
"""``T_Platform_left_camera``: x forward, y left, z up on the body."""
STEPS = 12


def frames():
    tree = FrameTree()
    tree.add_static("Platform", "left_camera", MOUNT)
    return tree


def body_poses(steps):
    return [MOUNT @ T @ se3.invert(MOUNT) for T in drive(steps)]


def played(node, steps=STEPS, slip=1.0, seed=0):
    """What a node says along a drive of which the reference counts every length `slip` times."""
    node.ctx.frames, said = frames(), []
    for k, (camera, body) in enumerate(zip(drive(steps), body_poses(steps), strict=True)):
        node.ctx.time = k * SECOND // 10
        image = Image(picture(camera, seed), t_ns=node.ctx.time, frame="left_camera", camera=LEFT)
        reference = Pose(slip * body[:3, 3], rotations.quaternion_from_matrix(body[:3, :3]), child="Platform")
        said.append(node(image, reference))
    return said


@pytest.fixture(scope="module")
def slipped():
    return played(MonoKeyframes(parallax=4.0), slip=1.1)


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


def test_the_same_images_give_the_same_bytes(slipped):
    again = played(MonoKeyframes(parallax=4.0), slip=1.1)
    assert [m.pose and m.pose.position.tobytes() for m in again] == [
        m.pose and m.pose.position.tobytes() for m in slipped
    ]


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


# Parts


def seen_from(poses, points):
    return np.array([project(se3.apply(se3.invert(T), points), K) for T in poses])


def test_points_are_where_their_rays_meet():
    points = np.random.default_rng(1).uniform([-2, -1, 3], [2, 1, 6], (40, 3))
    poses = np.array(drive(6, ahead=0.3))
    pixels = seen_from(poses, points)
    pixels[0, :5] = np.nan  # one view missed them
    found = triangulate(poses, pixels, K)
    known = np.isfinite(found[:, 0])
    assert known.sum() > 30
    assert np.allclose(found[known], points[known], atol=1e-9)


def test_points_seen_once_or_elsewhere_have_no_depth():
    points = np.random.default_rng(2).uniform([-2, -1, 3], [2, 1, 6], (10, 3))
    poses = np.array(drive(4, ahead=0.3))
    pixels = seen_from(poses, points)
    pixels[1:, :5] = np.nan
    pixels[2, 5:] += 30.0
    assert np.isnan(triangulate(poses, pixels, K)).all()


def test_the_first_motion_is_found_up_to_its_length():
    points = np.random.default_rng(3).uniform([-2, -1, 3], [2, 1, 6], (80, 3))
    before, now = drive(2, ahead=0.4, turn=0.05)
    found = first_motion(*seen_from([before, now], points), K)
    assert np.allclose(found.rotation, now[:3, :3], atol=1e-6)
    assert np.allclose(found.direction, now[:3, 3] / np.linalg.norm(now[:3, 3]), atol=1e-5)
    assert first_motion(np.zeros((3, 2)), np.zeros((3, 2)), K) is None
