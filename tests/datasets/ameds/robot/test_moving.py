"""Joints, motors and receiver drive the frames of Figure 4."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.datasets.ameds.robot.recordings import START_NS, arms, circle, encoders, times
from tests.datasets.ameds.sample import T_NS, sample_files, write_sample

import transect
from transect import robots
from transect.datasets.ameds.robot.arms import frame_tree
from transect.errors import FrameError
from transect.recording import join, stream_of_values

ROBOT = robots.load("interact")


def test_motor_encoders_turn_and_steer_the_wheels():
    # Straight ahead at 0.2 m/s on wheels of 0.2 m: 1 rad/s. After 0.5 s the top of a wheel is 0.5 rad ahead.
    rec_streams = [encoders(times(1, 50), np.zeros(4), np.full(4, 0.2))]
    tree = frame_tree(ROBOT, rec_streams)
    for wheel, place in enumerate([[0.402, 0.539], [-0.402, 0.539], [-0.402, -0.539], [0.402, -0.539]], 1):
        T = tree.lookup("Platform", f"Wheel{wheel}", START_NS + 500_000_000)
        np.testing.assert_allclose(T[:3, 3], [*place, -0.135], atol=1e-9)
        np.testing.assert_allclose(T[:3, :3] @ [0, 0, 1], [np.sin(0.5), 0, np.cos(0.5)], atol=3e-4)


def test_in_origin_a_left_wheel_is_on_the_negative_side_and_below():
    # Platform -> Origin: 81 mm below it, z turned down: wheel 1 at (402, -539, 81 + 135) mm.
    tree = frame_tree(ROBOT, [encoders(times(1, 50), np.zeros(4), np.zeros(4))])
    T = tree.lookup("Origin", "Wheel1", START_NS)
    np.testing.assert_allclose(T[:3, 3], [0.402, -0.539, 0.216], atol=1e-9)


def test_joint_angles_drive_the_arms_where_no_estimate_is():
    rec = arms(np.zeros((3, 7)), np.zeros((3, 7)))
    T = frame_tree(ROBOT, rec.streams).lookup("Origin", "MainCam", START_NS + 1_500_000_000)
    np.testing.assert_allclose(T[:3, 3], [-0.128, 0, -1.933], atol=1e-12)


def test_an_angle_that_was_not_measured_is_no_pose():
    angles = np.zeros((3, 7))
    angles[2, 4] = np.nan
    tree = frame_tree(ROBOT, arms(angles, angles).streams)
    assert np.isfinite(tree.lookup("MainArm (base)", "MainArm (end)", START_NS + 10**9)).all()
    with pytest.raises(FrameError, match="not known"):
        tree.lookup("MainArm (base)", "MainArm (end)", START_NS + 2 * 10**9)


def test_a_recording_s_estimate_goes_first_and_raw_is_a_choice(tmp_path: Path):
    rec = transect.open(write_sample(tmp_path / "t"))
    t_ns = T_NS + 500_000_000
    # The sample's estimate and its joint angles are made up, and not of one arm.
    np.testing.assert_allclose(
        rec.frames.lookup("Origin", "MainCam", t_ns)[:3, 3], [0.5, 0, -1.25], atol=1e-9
    )
    q = np.array([1, 2, 3, -1, -2, -3, 0.0])
    raw = frame_tree(ROBOT, rec.streams, raw=True).lookup("MainArm (base)", "MainArm (end)", t_ns)
    assert np.linalg.norm(raw[:3, 3] - [0, 0, 0.31]) == pytest.approx(
        np.sqrt(0.40**2 + 0.39**2 + 2 * 0.40 * 0.39 * np.cos(q[3]))
    )


def test_opened_from_files_nothing_is_read_before_a_lookup(tmp_path: Path):
    files = {n: d for n, d in sample_files().items() if "Pose" not in n or "Gnss" in n}
    rec = transect.open(write_sample(tmp_path / "t", files))
    assert {"Wheel1", "Wheel4", "NWU", "MainArm (end)"} <= set(rec.frames.frames)
    assert rec.provenance.sources == ()
    rec.frames.lookup("Platform", "Wheel3", T_NS + 20_000_000)
    assert [file.path for file in rec.provenance.sources] == ["PlatformMotorEncoders.csv"]


def test_nwu_stands_beside_ned(tmp_path: Path):
    rec = transect.open(write_sample(tmp_path / "t"))
    second = int(rec["Gnss/Pose"].t_ns[1])
    # 10 m below the lander in the sample.
    assert rec.frames.lookup("NWU", "Origin", second)[:3, 3] == pytest.approx([0, 0, -10], abs=1e-6)


def test_wheels_follow_the_estimated_angles_where_there_are_no_encoders(tmp_path: Path):
    rec = transect.open(
        write_sample(tmp_path / "t", {k: v for k, v in sample_files().items() if "WheelPose" in k})
    )
    T = rec.frames.lookup("Platform", "Wheel2", T_NS + 20_000_000)
    # Steering 0.02 rad: x = -L - sin(phi) d.
    assert T[0, 3] == pytest.approx(-0.402 - 0.143 * np.sin(0.02))


def test_joined_recordings_keep_the_seam_of_their_wheels():
    first = circle(1.0)
    second = circle(1.0, start_ns=START_NS + 10 * 10**9)
    driven = [r.replace(frames=frame_tree(ROBOT, r.streams)) for r in (first, second)]
    both = join(driven)
    assert np.isfinite(both.frames.lookup("Platform", "Wheel1", START_NS + 10 * 10**9)).all()
    with pytest.raises(FrameError, match="seam"):
        both.frames.lookup("Platform", "Wheel1", START_NS + 5 * 10**9)


def test_a_motor_that_was_not_read_is_no_pose():
    stream = encoders(times(1, 50), np.zeros(4), np.full(4, 0.2))
    ticks = stream["steer_ticks"].copy()
    ticks[10:, 0] = np.nan
    columns = {name: stream[name] for name in stream.columns} | {"steer_ticks": ticks}
    tree = frame_tree(ROBOT, [stream_of_values(stream.name, stream.t_ns, columns, type=stream.type)])
    late = START_NS + 500_000_000
    assert np.isnan(tree.lookup("Platform", "Wheel1", late, missing="nan")).all()
    assert np.isfinite(tree.lookup("Platform", "Wheel2", late)).all()
