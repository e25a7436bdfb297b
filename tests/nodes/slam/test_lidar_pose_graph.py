"""LidarPoseGraph: noisy odometry without drift, and maps in the opposite direction."""

from __future__ import annotations

import numpy as np
from tests.algorithms.slam.hills import body_pose, measure

from transect.geometry import se3
from transect.nodes.slam.lidar_pose_graph import LidarPoseGraph, is_omnidirectional
from transect.types import PointCloud, Pose

STEP_M, STEP_COUNT, POSE_NOISE_M = 0.5, 14, 0.05


def drive() -> np.ndarray:
    """Return poses (n, 4, 4) forwards, and backwards over the same ground."""
    steps_out = [*range(STEP_COUNT), *range(STEP_COUNT - 2, -1, -1)]
    return np.array([body_pose(STEP_M * k, 0.0, 0.0) for k in steps_out])


def add_noise(poses: np.ndarray, draw: int) -> np.ndarray:
    """Return poses with independent noise: there is no drift."""
    rng = np.random.default_rng(draw)
    noise = rng.normal(0, POSE_NOISE_M, (len(poses), 6)) * (1, 1, 1, 0.05, 0.05, 0.05)
    return poses @ se3.exp(noise)


def run_node(true: np.ndarray, odometry: np.ndarray):
    node = LidarPoseGraph(voxel=0.8, min_loop_path=3.0)
    covariance = 2 * np.diag(np.square([POSE_NOISE_M] * 3 + [0.05 * POSE_NOISE_M] * 3))
    for k, (pose, true_pose) in enumerate(zip(odometry, true, strict=True)):
        orientation, position = se3.to_quaternion(pose)
        t_ns = (k + 1) * 10**9
        cloud = PointCloud(measure(true_pose, draw=k).astype(np.float32), t_ns=t_ns)
        node.process(Pose(position, orientation, t_ns, "odom", "lidar"), cloud, covariance)
    return node.finish()


def rmse(poses: np.ndarray, true: np.ndarray) -> float:
    noise = poses[:, :3, 3] - true[:, :3, 3]
    return float(np.sqrt(np.mean(np.sum((noise - noise.mean(axis=0)) ** 2, axis=1))))


def test_loops_do_not_degrade_a_noisy_odometry_without_drift():
    true = drive()
    odometry = add_noise(true, draw=1)
    result = run_node(true, odometry)
    assert result.loops >= 5
    path = result.trajectory
    after = se3.from_quaternion(path.orientations, path.positions)
    assert rmse(after, true) < 1.02 * rmse(odometry, true)
    edges = result.map.edges
    steps = [k for k, what in enumerate(edges.what) if what == "odometry"]
    # The whole path is as uncertain as one step: only its ends are noisy.
    total_sigma = np.sqrt(edges.covariance[steps].sum(axis=0).diagonal()[:3])
    assert total_sigma.max() < np.sqrt(2) * POSE_NOISE_M


def test_a_forward_looking_lidar_is_not_omnidirectional():
    points = measure(body_pose(0.0, 0.0, 0.0)).astype(np.float32)
    assert is_omnidirectional(PointCloud(points))
    assert not is_omnidirectional(PointCloud(points[points[:, 0] > 0]))
