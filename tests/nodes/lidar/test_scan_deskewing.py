"""Deskewing of scans: by constant velocity, by a gyroscope, by known poses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nodes.lidar.rooms import PERIOD_NS, motion, scan, wall_distances

from transect.algorithms.clouds.deskewing import deskew, estimate_revolutions, point_offsets
from transect.geometry import rotations, se3
from transect.nodes.lidar.scan_deskewing import ConstantVelocity, Gyroscope, KnownPoses
from transect.nodes.lidar.scan_placement import ScanPlacement
from transect.types import Imu, PointCloud, Pose

TWIST = np.array([1.0, -0.3, 0.1, 0.1, 0.05, 0.8])
SPIN = np.array([0.0, 0.0, 0.0, 0.1, 0.05, 0.8])
FIRST_NS = 1_000_000_000
numbers = st.floats(-3, 3)


def pose(twist: np.ndarray, seconds: float) -> Pose:
    orientation, position = se3.to_quaternion(motion(twist)(np.array([seconds]))[0])
    return Pose(position, orientation, FIRST_NS + round(seconds * 1e9), "odom", "lidar")


def errors_before_and_after(
    cloud: PointCloud, deskewed: PointCloud, seconds: float, twist=TWIST
) -> tuple[float, float]:
    """Return the 95th percentile of the distances from the walls, before and after, by one pose."""
    T = motion(twist)(np.array([seconds]))[0]
    distances = [wall_distances(se3.apply(T, c.points)) for c in (cloud, deskewed)]
    return float(np.percentile(distances[0], 95)), float(np.percentile(distances[1], 95))


@given(st.lists(numbers, min_size=6, max_size=6), st.floats(-0.5, 0.5))
def test_points_move_by_the_exponential_of_the_twist(twist: list[float], seconds: float):
    points = np.array([[10.0, -4.0, 1.0], [0.5, 20.0, -2.0]])
    found = deskew(points, np.array([seconds, -seconds]), np.array(twist))
    for sign, point, transformed in zip((1, -1), points, found, strict=True):
        expected = se3.apply(se3.exp(sign * seconds * np.array(twist)), point)
        np.testing.assert_allclose(transformed, expected, atol=1e-6)


@pytest.mark.parametrize("direction", [1, -1])
def test_point_times_are_estimated_from_the_revolution(direction: int):
    timed = scan(motion(TWIST), 0.0, direction=direction)
    found = point_offsets(PointCloud(timed.points), PERIOD_NS)
    assert np.abs(found - timed.fields["t_offset_ns"]).max() < 0.01 * PERIOD_NS


def test_a_cloud_in_another_order_has_no_times():
    cloud = scan(motion(TWIST), 0.0).points
    shuffled = np.random.default_rng(0).permutation(cloud)
    by_ring = cloud.reshape(360, 16, 3).swapaxes(0, 1).reshape(-1, 3)
    assert estimate_revolutions(cloud) is not None
    assert estimate_revolutions(shuffled) is None
    assert estimate_revolutions(by_ring) is None
    assert estimate_revolutions(cloud[:100]) is None


def test_a_scan_is_deskewed_by_the_velocity_of_the_last_poses():
    node, cloud = ConstantVelocity(), scan(motion(TWIST), 0.2)
    deskewed = node(cloud, pose=[pose(TWIST, 0.1), pose(TWIST, 0.2)])
    before, after = errors_before_and_after(cloud, deskewed, 0.2)
    assert before > 0.1
    assert after < 1e-6
    assert not deskewed.fields["t_offset_ns"].any()


def test_rotation_is_deskewed_by_a_gyroscope():
    node = Gyroscope()
    clouds = [scan(motion(SPIN), 0.1 * i) for i in range(2)]
    rates = [Imu(np.array([0, 0, 9.81]), SPIN[3:], t_ns=FIRST_NS + i * 10_000_000) for i in range(12)]
    assert node(clouds[0], imu=rates[:1]) is None
    deskewed = node(clouds[1], imu=rates[1:11])
    before, after = errors_before_and_after(clouds[0], deskewed, 0.0, SPIN)
    assert deskewed.t_ns == clouds[0].t_ns
    assert before > 0.1
    assert after < 1e-6


def test_a_scan_is_deskewed_and_placed_by_known_poses():
    clouds = [scan(motion(TWIST), 0.1 * i) for i in range(2)]
    poses = [pose(TWIST, 0.01 * i) for i in range(12)]
    for node, at in ((KnownPoses(), 0.0), (ScanPlacement(), None)):
        assert node(clouds[0], poses[:1]) is None
        deskewed = node(clouds[1], poses[1:11])
        deskewed = deskewed if at is not None else deskewed.cloud
        points = (
            deskewed.points if at is None else se3.apply(motion(TWIST)(np.array([at]))[0], deskewed.points)
        )
        assert np.percentile(wall_distances(points), 99) < 1e-3
        assert len(deskewed) == len(clouds[0])


def test_beams_without_a_return_are_dropped():
    clouds = [scan(motion(TWIST), 0.1 * i) for i in range(2)]
    points = clouds[0].points.copy()
    points[::3] = 0.0  # as drivers of Velodyne and Ouster do
    node = ScanPlacement()
    assert node(replace(clouds[0], points=points), [pose(TWIST, 0.0)]) is None
    deskewed = node(clouds[1], [pose(TWIST, 0.01 * i) for i in range(1, 12)]).cloud
    assert len(deskewed) == points.any(axis=1).sum()
    assert np.percentile(wall_distances(deskewed.points), 99) < 1e-3


def test_without_poses_nothing_is_placed():
    node = ScanPlacement()
    clouds = [scan(motion(TWIST), 0.1 * i) for i in range(2)]
    assert node(clouds[0], []) is None
    assert node(clouds[1], []) is None
    assert node.finish() is None


def test_placed_scans_are_levelled_by_an_imu():
    tilted = se3.exp(np.array([0.0, 0.0, 0.0, 0.2, -0.1, 0.0]))
    node = ScanPlacement()
    clouds = [scan(lambda s: np.tile(tilted, (len(s), 1, 1)), 0.1 * i) for i in range(2)]
    imu = Imu(tilted[:3, :3].T @ np.array([0.0, 0.0, 9.81]), np.zeros(3), frame="lidar")
    start = [pose(np.zeros(6), 0.1 * i) for i in range(2)]
    assert node(clouds[0], start[:1], [imu]) is None
    assert node(clouds[1], start[1:], []) is None  # not settled yet
    placed = node.finish()
    deskewed = placed.cloud
    assert deskewed.frame == "level"
    assert (placed.levelling.frame, placed.levelling.child) == ("level", "odom")
    lidar_up = tilted[:3, :3].T @ [0.0, 0.0, 1.0]
    np.testing.assert_allclose(rotations.rotate(placed.levelling.orientation, lidar_up), [0, 0, 1], atol=1e-9)
    assert deskewed.t_ns == clouds[1].t_ns
    # Floor and ceiling are level, 4 m apart.
    np.testing.assert_allclose(
        [deskewed.points[:, 2].min(), deskewed.points[:, 2].max()], [-1.5, 2.5], atol=0.01
    )
