"""Calibration of range and elevation offsets of lidar channels, in a room with exactly known walls."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.nodes.lidar.rooms import motion, scan, wall_distances

from transect.algorithms.calibration.lidar_channels import ChannelErrors, estimate_channel_errors, sample_scan
from transect.nodes.lidar.channel_calibration import ChannelCalibration, describe_faults, select_rows
from transect.types import PointCloud

CHANNEL_COUNT = 16
OTHER_ROOM = (np.array([-4.0, -9.0, -1.2]), np.array([15.0, 3.0, 3.0]))
TWIST = np.array([1.2, 0.3, 0.0, 0.0, 0.0, 0.3])
NOISE_M = 0.01
RNG = np.random.default_rng(7)
RANGE_OFFSETS = 0.02 * RNG.standard_normal(CHANNEL_COUNT)
ELEVATION_OFFSETS = 0.0005 * RNG.standard_normal(CHANNEL_COUNT)
RANGE_OFFSETS = RANGE_OFFSETS - RANGE_OFFSETS.mean()
ELEVATION_OFFSETS = ELEVATION_OFFSETS - ELEVATION_OFFSETS.mean()


def add_offsets(cloud: PointCloud, range_offsets: np.ndarray, elevation_offsets: np.ndarray) -> PointCloud:
    """Return the cloud of a lidar with range and elevation offsets of its channels."""
    x, y, z = np.asarray(cloud.points).T
    ring = np.tile(np.arange(CHANNEL_COUNT), len(x) // CHANNEL_COUNT)
    azimuth, elevation = np.arctan2(y, x), np.arctan2(z, np.hypot(x, y)) + elevation_offsets[ring]
    ranges = np.sqrt(x**2 + y**2 + z**2) + range_offsets[ring]
    horizontal = ranges * np.cos(elevation)
    points = np.stack(
        [horizontal * np.cos(azimuth), horizontal * np.sin(azimuth), ranges * np.sin(elevation)], axis=1
    )
    return replace(cloud, points=points, fields={**cloud.fields, "ring": ring.astype(np.uint16)})


@cache
def exact_scans(count: int, period: float = 0.1) -> list[PointCloud]:
    return [scan(motion(TWIST), period * k, noise=NOISE_M) for k in range(count)]


def distorted_scans(count: int) -> list[PointCloud]:
    return [add_offsets(cloud, RANGE_OFFSETS, ELEVATION_OFFSETS) for cloud in exact_scans(count)]


def estimate_with_true_poses(clouds: list[PointCloud]) -> ChannelErrors:
    views = []
    for cloud in clouds:
        seconds = (cloud.t_ns - 1_000_000_000 + np.asarray(cloud.fields["t_offset_ns"])) / 1e9
        views.append(
            sample_scan(cloud.points, np.asarray(cloud.fields["ring"], np.int64), motion(TWIST)(seconds))
        )
    found = estimate_channel_errors(views)
    assert found is not None
    return found


def play(node: ChannelCalibration, clouds: list[PointCloud]) -> list[PointCloud]:
    """Run both passes over some clouds."""
    for cloud in clouds:
        assert node(cloud) is None
    node.finish()
    node.ctx.pass_index = 1
    return [node(cloud).calibrated for cloud in clouds]


def wall_rms(clouds: list[PointCloud]) -> float:
    """Return the RMS distance of points from the walls, m, placed by the true motion."""
    distances = []
    for cloud in clouds:
        seconds = (cloud.t_ns - 1_000_000_000 + np.asarray(cloud.fields["t_offset_ns"])) / 1e9
        T = motion(TWIST)(seconds)
        distances.append(wall_distances(np.einsum("nij,nj->ni", T[:, :3, :3], cloud.points) + T[:, :3, 3]))
    return float(np.sqrt(np.mean(np.concatenate(distances) ** 2)))


def test_range_offsets_are_estimated():
    found = estimate_with_true_poses(distorted_scans(60)[::3])
    assert np.abs(found.ranges - RANGE_OFFSETS).max() < 0.006


@pytest.mark.parametrize("common", [0.0, 0.05, -0.03])
def test_a_common_offset_is_estimated(common: float):
    clouds = [
        add_offsets(cloud, RANGE_OFFSETS + common, ELEVATION_OFFSETS) for cloud in exact_scans(120)[::3]
    ]
    found = estimate_with_true_poses(clouds)
    weight = found.counts / found.counts.sum()
    assert weight @ (found.ranges - RANGE_OFFSETS) == pytest.approx(common, abs=0.003)
    np.testing.assert_allclose(found.ranges - RANGE_OFFSETS, common, atol=0.006)


@pytest.mark.parametrize("scale", [1.01, 0.99])
def test_a_common_offset_is_estimated_despite_a_scale_error(scale: float):
    common = 0.05
    views = []
    for cloud in (
        add_offsets(each, RANGE_OFFSETS + common, ELEVATION_OFFSETS) for each in exact_scans(120)[::3]
    ):
        poses = motion(TWIST)((cloud.t_ns - 1_000_000_000 + np.asarray(cloud.fields["t_offset_ns"])) / 1e9)
        poses[:, :3, 3] *= scale
        views.append(sample_scan(cloud.points, np.asarray(cloud.fields["ring"], np.int64), poses))
    found = estimate_channel_errors(views)
    weight = found.counts / found.counts.sum()
    assert weight @ (found.ranges - RANGE_OFFSETS) == pytest.approx(common, abs=0.005)


def test_errors_of_offsets_agree_with_their_covariance():
    found = estimate_with_true_poses(distorted_scans(60)[::3])
    error = np.concatenate([found.ranges - RANGE_OFFSETS, found.elevations - ELEVATION_OFFSETS])
    assert error @ np.linalg.solve(found.covariance, error) < 2 * len(error)


def test_a_lidar_without_offsets_is_barely_changed():
    undistorted = [
        add_offsets(cloud, np.zeros(CHANNEL_COUNT), np.zeros(CHANNEL_COUNT)) for cloud in exact_scans(60)[::3]
    ]
    found = estimate_with_true_poses(undistorted)
    assert np.abs(found.ranges).max() < 0.004
    assert np.abs(found.elevations).max() < 3e-4


def test_calibration_from_scans_alone_makes_walls_thinner():
    distorted = distorted_scans(60)
    node = ChannelCalibration(min_views=5)
    corrected = play(node, distorted)
    noise, before, after = wall_rms(exact_scans(60)), wall_rms(distorted), wall_rms(corrected)
    assert before > 1.5 * noise
    assert after - noise < 0.25 * (before - noise)
    assert {*corrected[0].fields} == {*distorted[0].fields}
    result = node.finish()
    assert result.ranges.shape == result.elevations.shape == (CHANNEL_COUNT,)


def test_each_round_estimates_the_residual_of_earlier_rounds():
    node = ChannelCalibration(min_views=5, views_per_round=6)
    rounds = []
    for cloud in distorted_scans(90):
        node(cloud)
        if node.faults is not None and (not rounds or rounds[-1] is not node.faults):
            rounds.append(node.faults)
    assert len(rounds) == node.rounds
    assert node.is_satisfied()
    first, *_, last = (np.std(each.ranges - RANGE_OFFSETS) for each in rounds)
    assert last < max(first, 0.004)


@pytest.mark.parametrize("node", [ChannelCalibration(enabled=False), ChannelCalibration(min_views=5)])
def test_clouds_without_channels_are_not_changed(node: ChannelCalibration):
    clouds = exact_scans(3)
    assert [a is b for a, b in zip(play(node, clouds), clouds, strict=True)] == [True] * 3
    assert node.is_satisfied()
    assert node.finish() is None


def test_a_stationary_lidar_gives_no_estimate():
    stationary = [scan(motion(np.zeros(6)), 0.1 * k, noise=NOISE_M) for k in range(14)]
    clouds = [add_offsets(cloud, RANGE_OFFSETS, ELEVATION_OFFSETS) for cloud in stationary]
    node = ChannelCalibration(min_views=5, max_round_scans=6)
    corrected = play(node, clouds)
    assert node.is_satisfied()
    np.testing.assert_array_equal(corrected[0].points, clouds[0].points)


def test_views_of_two_places_are_not_mixed():
    before = distorted_scans(30)
    second_room = [
        scan(motion(TWIST), 0.1 * k, room=OTHER_ROOM, furniture=(), noise=NOISE_M) for k in range(30)
    ]
    later = [replace(cloud, t_ns=cloud.t_ns + 60_000_000_000) for cloud in second_room]
    node = ChannelCalibration(min_views=5)
    play(node, [*before, *(add_offsets(cloud, RANGE_OFFSETS, ELEVATION_OFFSETS) for cloud in later)])
    assert np.abs(node.faults.ranges - RANGE_OFFSETS)[node.faults.counts > 500].max() < 0.008


@pytest.mark.parametrize("first", [-1.0, float("nan"), 1000.0])
def test_invalid_ring_numbers_are_ignored(first: float):
    ring = np.r_[first, np.zeros(len(exact_scans(3)[0]) - 1)]
    invalid = [replace(cloud, fields={**cloud.fields, "ring": ring}) for cloud in exact_scans(3)]
    node = ChannelCalibration(min_views=5)
    assert play(node, invalid)[0] is invalid[0]


def test_an_unknown_channel_is_not_corrected():
    found = ChannelErrors(np.array([0.5]), np.array([0.0]), np.eye(2), np.array([10]))
    cloud = PointCloud(np.array([[3.0, 0, 0], [4.0, 0, 0], [5.0, 0, 0]]), {"ring": np.array([0, 9, np.nan])})
    np.testing.assert_allclose(found.correct(cloud), [[2.5, 0, 0], [4.0, 0, 0], [5.0, 0, 0]])


def test_offsets_of_two_rounds_are_added_by_channel():
    first = ChannelErrors(np.array([0.01]), np.array([0.001]), np.eye(2), np.array([5]))
    second = ChannelErrors(np.array([0.02, 0.03]), np.array([0.0, 0.002]), np.eye(4), np.array([5, 5]))
    for total in (first.add(second), second.add(first)):
        np.testing.assert_allclose(total.ranges, [0.03, 0.03])
        np.testing.assert_allclose(total.elevations, [0.001, 0.002])
        assert total.covariance.shape == (4, 4)


def test_points_are_sampled_uniformly_from_all_channels():
    selected = select_rows(np.arange(32 * 2000), 10_000)
    assert len(selected) == pytest.approx(10_000, rel=0.01)
    fraction = np.bincount(selected % 32, minlength=32) / len(selected)
    assert np.abs(fraction * 32 - 1).max() < 0.05


def test_a_run_reports_the_size_of_the_offsets():
    faults = ChannelErrors(
        np.full(4, 0.02), np.full(4, 0.001), np.diag([4e-6] * 4 + [1e-8] * 4), np.full(4, 9)
    )
    assert describe_faults(faults) == (
        "channels: range offsets of 20 mm (sigma 2), elevation offsets of 0.057 deg (sigma 0.006), "
        "RMS of 4 channels; corrected"
    )
