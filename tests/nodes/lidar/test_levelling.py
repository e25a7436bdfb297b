"""Up, felt on a body that speeds up and turns: what a mean of the felt forces gets wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect.geometry import rotations
from transect.nodes.lidar.scan_placement import ScanPlacement, gravity_reaction, upright
from transect.recording import FrameTree
from transect.types import Imu, PointCloud, Pose

GRAVITY = 9.81
NS = 1_000_000_000


def drive(tilt: np.ndarray, jolt: float, seconds: float = 5.0) -> tuple[list[Imu], list[Pose]]:
    """A body that speeds up within a second (by `jolt` m/s) while it turns; its frame is tilted (3, 3)."""
    t = np.arange(0.0, seconds, 0.01)
    speeding = np.where(t < 1.0, jolt, 0.0)
    way = np.where(t < 1.0, 0.5 * jolt * t**2, jolt * (t - 0.5))
    turns = rotations.quaternion_from_rotation_vector(np.column_stack([0 * t, 0 * t, 0.3 * t]))
    force = np.column_stack([speeding, 0 * t, 0 * t]) + tilt.T @ [0.0, 0.0, GRAVITY]
    felt = rotations.rotate(rotations.conjugate(turns), force)
    stamps = (1_000 * NS + np.round(t * NS)).astype(np.int64)
    imu = [Imu(f, np.zeros(3), t_ns=int(s)) for f, s in zip(felt, stamps, strict=True)]
    poses = [
        Pose(np.array([way[i], 0, 0]), turns[i], int(stamps[i]), "odom", "body") for i in range(0, len(t), 20)
    ]
    return imu, poses


def tilted(rotation: np.ndarray, truth: np.ndarray) -> float:
    """Degrees between up in a levelled frame, and up."""
    up = rotation @ truth.T @ [0.0, 0.0, 1.0]
    return float(np.degrees(np.arccos(np.clip(up[2], -1, 1))))


def test_speeding_up_does_not_tilt_what_is_up():
    tilt = rotations.matrix_from_rotation_vector([0.2, -0.1, 0.0])
    imu, poses = drive(tilt, jolt=0.4)
    mean = np.mean([i.acceleration for i in imu[:100]], axis=0)
    said = rotations.rotation_between(mean, [0, 0, 1])  # by the mean of a second
    assert tilted(said, tilt) > 2.0
    assert tilted(upright(imu, poses, FrameTree()), tilt) < 0.02


def test_noisy_places_tell_up_to_a_tenth_of_a_degree():
    tilt = rotations.matrix_from_rotation_vector([0.0, 0.15, 0.0])
    imu, poses = drive(tilt, jolt=0.4)
    noise = np.random.default_rng(4).normal(0, 0.01, (len(poses), 3))
    noisy = [
        Pose(p.position + n, p.orientation, p.t_ns, p.frame, p.child)
        for p, n in zip(poses, noise, strict=True)
    ]
    assert tilted(upright(imu, noisy, FrameTree()), tilt) < 0.1


def test_with_two_poses_the_mean_has_to_do():
    tilt = rotations.matrix_from_rotation_vector([0.2, -0.1, 0.0])
    imu, poses = drive(tilt, jolt=0.0)
    assert tilted(upright(imu[:21], poses[:2], FrameTree()), tilt) < 1e-6


def test_an_imu_that_no_frames_connect_is_not_used_and_that_is_said():
    imu, poses = drive(rotations.matrix_from_rotation_vector([0.2, -0.1, 0.0]), jolt=0.0)
    node, said = ScanPlacement(settling=0.0), list[str]()
    node.ctx._concluded = lambda text, bad: said.append(text)
    scan = PointCloud(np.array([[1.0, 2.0, 3.0]]), t_ns=poses[0].t_ns, frame="body")
    assert node(scan, poses, [replace(each, frame="imu_link") for each in imu]) is None
    placed = node.finish().cloud
    assert placed.frame == "odom"
    np.testing.assert_allclose(placed.points, [[1.0, 2.0, 3.0]], atol=1e-3)
    assert said[0].startswith(
        "imu_link is not used: no frames connect it with body. Up is the z axis of body"
    )


def test_a_free_fall_feels_nothing():
    t = np.arange(0, NS, NS // 100)
    fall = -0.5 * GRAVITY * (t[:, None] / NS) ** 2 * [0.0, 0.0, 1.0]
    np.testing.assert_allclose(gravity_reaction(t, np.zeros((100, 3)), t, fall), [0, 0, GRAVITY], atol=1e-9)
