"""Straightening scans: by a steady velocity, by what a gyroscope felt, by known poses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nodes.lidar.rooms import PERIOD_NS, motion, off_the_walls, scan

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
    turned, place = se3.to_quaternion(motion(twist)(np.array([seconds]))[0])
    return Pose(place, turned, FIRST_NS + round(seconds * 1e9), "odom", "lidar")


def bent_and_straight(
    cloud: PointCloud, made: PointCloud, seconds: float, twist=TWIST
) -> tuple[float, float]:
    """How far points are from the walls (95 %), taken to the world by one pose: before and after."""
    T = motion(twist)(np.array([seconds]))[0]
    far = [off_the_walls(se3.apply(T, c.points)) for c in (cloud, made)]
    return float(np.percentile(far[0], 95)), float(np.percentile(far[1], 95))


@given(st.lists(numbers, min_size=6, max_size=6), st.floats(-0.5, 0.5))
def test_a_point_goes_where_the_exponential_of_the_twist_takes_it(twist: list[float], seconds: float):
    points = np.array([[10.0, -4.0, 1.0], [0.5, 20.0, -2.0]])
    found = deskew(points, np.array([seconds, -seconds]), np.array(twist))
    for sign, point, moved in zip((1, -1), points, found, strict=True):
        expected = se3.apply(se3.exp(sign * seconds * np.array(twist)), point)
        np.testing.assert_allclose(moved, expected, atol=1e-6)


@pytest.mark.parametrize("way", [1, -1])
def test_times_are_those_of_the_revolution(way: int):
    timed = scan(motion(TWIST), 0.0, way=way)
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


def test_the_velocity_of_the_last_poses_deskews_a_scan():
    node, cloud = ConstantVelocity(), scan(motion(TWIST), 0.2)
    made = node(cloud, pose=[pose(TWIST, 0.1), pose(TWIST, 0.2)])
    bent, straight = bent_and_straight(cloud, made, 0.2)
    assert bent > 0.1
    assert straight < 1e-6
    assert not made.fields["t_offset_ns"].any()


def test_a_gyroscope_compensates_rotation():
    node = Gyroscope()
    clouds = [scan(motion(SPIN), 0.1 * i) for i in range(2)]
    rates = [Imu(np.array([0, 0, 9.81]), SPIN[3:], t_ns=FIRST_NS + i * 10_000_000) for i in range(12)]
    assert node(clouds[0], imu=rates[:1]) is None
    made = node(clouds[1], imu=rates[1:11])
    bent, straight = bent_and_straight(clouds[0], made, 0.0, SPIN)
    assert made.t_ns == clouds[0].t_ns
    assert bent > 0.1
    assert straight < 1e-6


def test_known_poses_deskew_a_scan_and_place_it():
    clouds = [scan(motion(TWIST), 0.1 * i) for i in range(2)]
    poses = [pose(TWIST, 0.01 * i) for i in range(12)]
    for node, at in ((KnownPoses(), 0.0), (ScanPlacement(), None)):
        assert node(clouds[0], poses[:1]) is None
        made = node(clouds[1], poses[1:11])
        made = made if at is not None else made.cloud
        seen = made.points if at is None else se3.apply(motion(TWIST)(np.array([at]))[0], made.points)
        assert np.percentile(off_the_walls(seen), 99) < 1e-3
        assert len(made) == len(clouds[0])


def test_beams_that_did_not_come_back_are_no_points_of_the_track():
    clouds = [scan(motion(TWIST), 0.1 * i) for i in range(2)]
    points = clouds[0].points.copy()
    points[::3] = 0.0  # as Velodyne's and Ouster's drivers write them
    node = ScanPlacement()
    assert node(replace(clouds[0], points=points), [pose(TWIST, 0.0)]) is None
    made = node(clouds[1], [pose(TWIST, 0.01 * i) for i in range(1, 12)]).cloud
    assert len(made) == points.any(axis=1).sum()
    assert np.percentile(off_the_walls(made.points), 99) < 1e-3


def test_without_poses_nothing_is_placed():
    node = ScanPlacement()
    clouds = [scan(motion(TWIST), 0.1 * i) for i in range(2)]
    assert node(clouds[0], []) is None
    assert node(clouds[1], []) is None
    assert node.finish() is None


def test_an_imu_turns_placed_scans_upright():
    tilted = se3.exp(np.array([0.0, 0.0, 0.0, 0.2, -0.1, 0.0]))
    node = ScanPlacement()
    clouds = [scan(lambda s: np.tile(tilted, (len(s), 1, 1)), 0.1 * i) for i in range(2)]
    felt = Imu(tilted[:3, :3].T @ np.array([0.0, 0.0, 9.81]), np.zeros(3), frame="lidar")
    start = [pose(np.zeros(6), 0.1 * i) for i in range(2)]
    assert node(clouds[0], start[:1], [felt]) is None
    assert node(clouds[1], start[1:], []) is None  # not settled yet
    placed = node.finish()
    made = placed.cloud
    assert made.frame == "level"
    assert (placed.levelling.frame, placed.levelling.child) == ("level", "odom")
    lidar_up = tilted[:3, :3].T @ [0.0, 0.0, 1.0]
    np.testing.assert_allclose(rotations.rotate(placed.levelling.orientation, lidar_up), [0, 0, 1], atol=1e-9)
    assert made.t_ns == clouds[1].t_ns
    # Floor and ceiling are level again, 4 m apart.
    np.testing.assert_allclose([made.points[:, 2].min(), made.points[:, 2].max()], [-1.5, 2.5], atol=0.01)
