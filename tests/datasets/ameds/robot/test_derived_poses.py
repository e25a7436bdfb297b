"""Processed poses from raw files, on recordings whose answer is known."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.datasets.ameds.robot.recordings import NS, START_NS, arms, encoders, times
from tests.datasets.ameds.robot.wheel_poses import wheel_pose_estimate

import transect
from transect import robots
from transect.datasets.ameds import folders as ameds
from transect.datasets.ameds.robot.arms import PickingThresholds
from transect.datasets.ameds.robot.derived_poses import (
    attitude_orders,
    camera_pose_estimate,
    picking_phases,
)
from transect.errors import StreamError
from transect.geometry.camera import project_points
from transect.recording import Recording, stream_of_values
from transect.types import Pose

ROBOT = robots.load("interact")


# Wheels


def test_wheel_poses_from_ticks_have_the_columns_of_table_7():
    found = wheel_pose_estimate(Recording("r", (encoders(times(1, 50), np.full(4, 0.1), np.full(4, 0.2)),)))
    assert found["steering"][0] == pytest.approx(np.full(4, 0.1))
    assert found["drive_angle"][-1] == pytest.approx(np.full(4, 1.0), abs=2e-4)
    swing = 0.143 * np.sin(0.1)
    assert found["x"][0] == pytest.approx([0.402 - swing, -0.402 - swing, -0.402 + swing, 0.402 + swing])
    assert (found.role, found.frame, found.units["roll"], found.units["x"]) == (
        "derived",
        "Platform",
        "rad",
        "m",
    )


def test_wheel_attitudes_are_table_5_written_in_the_order_of_equation_3():
    found = wheel_pose_estimate(Recording("r", (encoders(times(1, 50), np.full(4, 0.1), np.full(4, 0.2)),)))
    row, psi = 30, found["drive_angle"][30, 2]
    angles = [found[name][row, 2] for name in ("roll", "pitch", "yaw")]
    expected = Rotation.from_euler("ZX", [0.1 - np.pi / 2, -psi])
    np.testing.assert_allclose(
        Rotation.from_euler("XYZ", angles).as_matrix(), expected.as_matrix(), atol=1e-9
    )


def test_wheel_poses_at_other_times_are_between_and_unknown_in_gaps():
    t_ns = np.concatenate([times(1, 50), times(1, 50) + 3 * NS])
    rec = Recording("r", (encoders(t_ns, np.zeros(4), np.full(4, 0.2)),))
    wanted = np.array([START_NS + 10_000_000, START_NS + 2 * NS])
    found = wheel_pose_estimate(rec, wanted)
    assert found["drive_angle"][0] == pytest.approx(np.full(4, 0.01), abs=3e-4)
    assert np.isnan(found["x"][1]).all()
    assert np.isnan(found["drive_angle"][1]).all()


def test_a_recording_without_encoders_says_so():
    with pytest.raises(StreamError, match="Platform/MotorEncoders"):
        wheel_pose_estimate(Recording("empty", ()))


# Cameras


def test_camera_poses_from_joint_angles_are_in_origin():
    found = camera_pose_estimate(arms(np.zeros((2, 7)), np.zeros((2, 7))), "Main")
    assert (found.name, found.frame, found.child, found.role) == (
        "MainCam/PoseEstimate",
        "Origin",
        "MainCam",
        "derived",
    )
    # By hand, as in test_arms: over the rover, x to the right, y down, z forward.
    np.testing.assert_allclose(found.array("x", "y", "z")[0], [-0.128, 0, -1.933], atol=1e-12)
    R = Rotation.from_quat(found.array("qx", "qy", "qz", "qw")[0]).as_matrix()
    np.testing.assert_allclose(R, [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-12)


def test_a_joint_that_was_not_measured_gives_no_pose():
    angles = np.zeros((2, 7))
    angles[1, 3] = np.nan
    assert np.isnan(camera_pose_estimate(arms(angles, angles), "Aux")["x"]).tolist() == [False, True]


@pytest.mark.parametrize(("order", "scipy_order"), [("XYZ", "XYZ"), ("rpy", "xyz")])
def test_the_numbers_tell_in_which_order_the_angles_were_written(order: str, scipy_order: str):
    q = np.random.default_rng(3).uniform(-1, 1, (5, 7))
    rec = arms(q, q)
    ours = camera_pose_estimate(rec, "Aux")
    angles = Rotation.from_quat(ours.array("qx", "qy", "qz", "qw")).as_euler(scipy_order)
    columns = {**dict(zip("xyz", ours.array("x", "y", "z").T, strict=True))}
    columns |= dict(zip(("roll", "pitch", "yaw"), angles.T, strict=True))
    recorded = stream_of_values("AuxCam/PoseEstimate", ours.t_ns + 1_000_000, columns, type=Pose)
    found = attitude_orders(rec.replace(streams=(*rec.streams, recorded)), "Aux")
    assert (found.order, found.samples) == (order, 5)
    assert found.angle_rad[order] < 1e-6
    assert found.position_m < 1e-9


def test_recorded_angles_are_read_in_the_order_of_equation_3(tmp_path: Path):
    (tmp_path / "t").mkdir()
    text = "timestamp,x,y,z,roll-x,pitch-y,yaw-z\n1657013071.5,1,2,3,0.4,-0.5,0.6\n"
    (tmp_path / "t" / "AuxCamPoseEstimate.csv").write_text(text)
    pose = transect.open(tmp_path / "t")["AuxCam/PoseEstimate"]
    x, y, z = (Rotation.from_euler(axis, a) for axis, a in zip("xyz", (0.4, -0.5, 0.6), strict=True))
    R = Rotation.from_quat(pose.array("qx", "qy", "qz", "qw")[0])
    np.testing.assert_allclose(R.as_matrix(), (x * y * z).as_matrix(), atol=1e-12)


def test_recomputed_poses_written_as_ameds_are_read_back(tmp_path: Path):
    q = np.random.default_rng(4).uniform(-1, 1, (3, 7))
    rec = arms(q, q)
    ours = camera_pose_estimate(rec, "Aux")
    ameds.write(rec.replace(streams=(*rec.streams, ours)), tmp_path / "out")
    back = transect.open(tmp_path / "out")["AuxCam/PoseEstimate"]
    names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    np.testing.assert_allclose(back.array(*names), ours.array(*names), atol=1e-12)


# Projections


def test_points_fall_where_opencv_projects_them():
    camera = ROBOT.cameras["MainCam"]
    points = np.random.default_rng(5).uniform([-0.5, -0.3, 0.8], [0.5, 0.3, 2.0], (20, 3))
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_rotvec([0.1, -0.05, 0.2]).as_matrix(), [0.02, 0.01, 0.1]
    expected, _ = cv2.projectPoints(
        points, np.array([0.1, -0.05, 0.2]), T[:3, 3], camera.K, camera.coefficients
    )
    pixels, visible = project_points(points, T, camera)
    np.testing.assert_allclose(pixels, expected[:, 0], atol=1e-6)
    inside = ((expected[:, 0] > 0) & (expected[:, 0] < [1919, 1079])).all(axis=1)
    assert visible.tolist() == inside.tolist()


def test_what_is_behind_the_camera_is_not_visible():
    pixels, visible = project_points([[0, 0, -1.0], [0, 0, 1.0]], np.eye(4), ROBOT.cameras["AuxCam"])
    assert visible.tolist() == [False, True]
    assert np.isnan(pixels[0]).all()
    assert pixels[1] == pytest.approx([656.119, 356.394])  # Table 4: the principal point


# Picking


def test_phases_of_a_picking_from_joint_angles():
    # The elbow bends and stretches: the height of the wrist in Origin follows.
    bend = np.array([0, 0, 0.3, 0.6, 0.6, 0.6, 0.3, 0.1, 0.1, 0.1])
    aux = np.zeros((10, 7))
    aux[:, 3] = bend
    rec = arms(np.zeros((10, 7)), aux)
    found = picking_phases(rec)
    assert found[0].name == "still"
    assert "grasp" in [i.name for i in found]
    assert found[0].start_ns == START_NS
    assert found[-1].end_ns == START_NS + 9 * NS


def test_an_arm_that_holds_still_does_not_pick():
    found = picking_phases(
        arms(np.zeros((4, 7)), np.zeros((4, 7))), PickingThresholds(min_joint_rate_rad_s=0.02)
    )
    assert [i.name for i in found] == ["still"]
