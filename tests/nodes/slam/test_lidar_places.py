"""LidarPlaces: odometry that trembles, and what is kept of a place that is seen from the other side."""

from __future__ import annotations

import numpy as np
from tests.algorithms.slam.hills import look, stand

from transect.geometry import se3
from transect.nodes.slam.lidar_places import LidarPlaces, looks_around
from transect.types import PointCloud, Pose

STEP, LENGTH, TREMBLE = 0.5, 14, 0.05


def drive() -> np.ndarray:
    """Poses (n, 4, 4) out, and backwards over the same ground."""
    way = [*range(LENGTH), *range(LENGTH - 2, -1, -1)]
    return np.array([stand(STEP * k, 0.0, 0.0) for k in way])


def tremble(poses: np.ndarray, draw: int) -> np.ndarray:
    """The same, each off by a little of its own: there is no drift."""
    rng = np.random.default_rng(draw)
    off = rng.normal(0, TREMBLE, (len(poses), 6)) * (1, 1, 1, 0.05, 0.05, 0.05)
    return poses @ se3.exp(off)


def play(true: np.ndarray, odometry: np.ndarray):
    node = LidarPlaces(voxel=0.8, recent=3.0)
    told = 2 * np.diag(np.square([TREMBLE] * 3 + [0.05 * TREMBLE] * 3))
    for k, (pose, here) in enumerate(zip(odometry, true, strict=True)):
        turned, place = se3.to_quaternion(pose)
        t_ns = (k + 1) * 10**9
        cloud = PointCloud(look(here, draw=k).astype(np.float32), t_ns=t_ns)
        node.process(Pose(place, turned, t_ns, "odom", "lidar"), cloud, told)
    return node.finish()


def rmse(poses: np.ndarray, true: np.ndarray) -> float:
    off = poses[:, :3, 3] - true[:, :3, 3]
    return float(np.sqrt(np.mean(np.sum((off - off.mean(axis=0)) ** 2, axis=1))))


def test_loops_do_not_worsen_an_odometry_that_trembles_and_does_not_drift():
    true = drive()
    odometry = tremble(true, draw=1)
    ended = play(true, odometry)
    assert ended.loops >= 5
    path = ended.trajectory
    after = se3.from_quaternion(path.orientations, path.positions)
    assert rmse(after, true) < 1.02 * rmse(odometry, true)
    edges = ended.map.edges
    steps = [k for k, what in enumerate(edges.what) if what == "odometry"]
    # All of the way is as unsure as one step: only its two ends tremble.
    added_up = np.sqrt(edges.covariance[steps].sum(axis=0).diagonal()[:3])
    assert added_up.max() < np.sqrt(2) * TREMBLE


def test_a_lidar_that_looks_ahead_does_not_look_around():
    points = look(stand(0.0, 0.0, 0.0)).astype(np.float32)
    assert looks_around(PointCloud(points))
    assert not looks_around(PointCloud(points[points[:, 0] > 0]))
