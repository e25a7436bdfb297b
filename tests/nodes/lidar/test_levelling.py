"""Levelling with an IMU on a body that accelerates and turns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect.geometry import rotations
from transect.nodes.lidar.scan_placement import ScanPlacement, gravity_reaction, levelling_rotation
from transect.recording import FrameTree
from transect.types import Imu, PointCloud, Pose

GRAVITY_MPS2 = 9.81
NS = 1_000_000_000


def drive(tilt: np.ndarray, speed_change: float, seconds: float = 5.0) -> tuple[list[Imu], list[Pose]]:
    """Return samples of a body that accelerates for a second while it turns, in a tilted (3, 3) frame."""
    t = np.arange(0.0, seconds, 0.01)
    acceleration = np.where(t < 1.0, speed_change, 0.0)
    distance = np.where(t < 1.0, 0.5 * speed_change * t**2, speed_change * (t - 0.5))
    orientations = rotations.quaternion_from_rotation_vector(np.column_stack([0 * t, 0 * t, 0.3 * t]))
    force = np.column_stack([acceleration, 0 * t, 0 * t]) + tilt.T @ [0.0, 0.0, GRAVITY_MPS2]
    measured = rotations.rotate(rotations.conjugate(orientations), force)
    stamps = (1_000 * NS + np.round(t * NS)).astype(np.int64)
    imu = [Imu(f, np.zeros(3), t_ns=int(s)) for f, s in zip(measured, stamps, strict=True)]
    poses = [
        Pose(np.array([distance[i], 0, 0]), orientations[i], int(stamps[i]), "odom", "body")
        for i in range(0, len(t), 20)
    ]
    return imu, poses


def tilt_error_deg(rotation: np.ndarray, truth: np.ndarray) -> float:
    """Return the angle between the vertical of a levelled frame and the true one, deg."""
    up = rotation @ truth.T @ [0.0, 0.0, 1.0]
    return float(np.degrees(np.arccos(np.clip(up[2], -1, 1))))


def test_acceleration_does_not_tilt_the_vertical():
    tilt = rotations.matrix_from_rotation_vector([0.2, -0.1, 0.0])
    imu, poses = drive(tilt, speed_change=0.4)
    mean = np.mean([i.acceleration for i in imu[:100]], axis=0)
    conclusions = rotations.rotation_between(mean, [0, 0, 1])  # by the mean of a second
    assert tilt_error_deg(conclusions, tilt) > 2.0
    assert tilt_error_deg(levelling_rotation(imu, poses, FrameTree()), tilt) < 0.02


def test_noisy_positions_level_to_a_tenth_of_a_degree():
    tilt = rotations.matrix_from_rotation_vector([0.0, 0.15, 0.0])
    imu, poses = drive(tilt, speed_change=0.4)
    noise = np.random.default_rng(4).normal(0, 0.01, (len(poses), 3))
    noisy = [
        Pose(p.position + n, p.orientation, p.t_ns, p.frame, p.child)
        for p, n in zip(poses, noise, strict=True)
    ]
    assert tilt_error_deg(levelling_rotation(imu, noisy, FrameTree()), tilt) < 0.1


def test_with_two_poses_the_mean_force_is_used():
    tilt = rotations.matrix_from_rotation_vector([0.2, -0.1, 0.0])
    imu, poses = drive(tilt, speed_change=0.0)
    assert tilt_error_deg(levelling_rotation(imu[:21], poses[:2], FrameTree()), tilt) < 1e-6


def test_an_unconnected_imu_is_not_used_and_reported():
    imu, poses = drive(rotations.matrix_from_rotation_vector([0.2, -0.1, 0.0]), speed_change=0.0)
    node, conclusions = ScanPlacement(settling=0.0), list[str]()
    node.ctx._concluded = lambda text, bad: conclusions.append(text)
    scan = PointCloud(np.array([[1.0, 2.0, 3.0]]), t_ns=poses[0].t_ns, frame="body")
    assert node(scan, poses, [replace(each, frame="imu_link") for each in imu]) is None
    placed = node.finish().cloud
    assert placed.frame == "odom"
    np.testing.assert_allclose(placed.points, [[1.0, 2.0, 3.0]], atol=1e-3)
    assert conclusions[0].startswith(
        "imu_link is not used: no frames connect it with body. Up is the z axis of body"
    )


def test_gravity_is_estimated_in_free_fall():
    t = np.arange(0, NS, NS // 100)
    fall = -0.5 * GRAVITY_MPS2 * (t[:, None] / NS) ** 2 * [0.0, 0.0, 1.0]
    np.testing.assert_allclose(
        gravity_reaction(t, np.zeros((100, 3)), t, fall), [0, 0, GRAVITY_MPS2], atol=1e-9
    )
