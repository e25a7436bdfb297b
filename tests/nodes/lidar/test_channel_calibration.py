"""Lidars with channels that measure too far and too high, in a room whose walls are known exactly."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.nodes.lidar.rooms import motion, off_the_walls, scan

from transect.algorithms.calibration.lidar_channels import ChannelErrors, estimate_channel_errors, sample_scan
from transect.nodes.lidar import channel_calibration
from transect.nodes.lidar.channel_calibration import ChannelCalibration, describe, pick
from transect.types import PointCloud

CHANNELS = 16
OTHER_ROOM = (np.array([-4.0, -9.0, -1.2]), np.array([15.0, 3.0, 3.0]))
TWIST = np.array([1.2, 0.3, 0.0, 0.0, 0.0, 0.3])
NOISE = 0.01
RNG = np.random.default_rng(7)
TOO_FAR = 0.02 * RNG.standard_normal(CHANNELS)
TOO_HIGH = 0.0005 * RNG.standard_normal(CHANNELS)
TOO_FAR, TOO_HIGH = TOO_FAR - TOO_FAR.mean(), TOO_HIGH - TOO_HIGH.mean()


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_calibration, "LEAST_LOOKS", 5)


def misread(cloud: PointCloud, too_far: np.ndarray, too_high: np.ndarray) -> PointCloud:
    """The cloud of a lidar whose channels are off: by angles and ranges, beam by beam."""
    x, y, z = np.asarray(cloud.points).T
    ring = np.tile(np.arange(CHANNELS), len(x) // CHANNELS)
    azimuth, elevation = np.arctan2(y, x), np.arctan2(z, np.hypot(x, y)) + too_high[ring]
    away = np.sqrt(x**2 + y**2 + z**2) + too_far[ring]
    level = away * np.cos(elevation)
    points = np.stack([level * np.cos(azimuth), level * np.sin(azimuth), away * np.sin(elevation)], axis=1)
    return replace(cloud, points=points, fields={**cloud.fields, "ring": ring.astype(np.uint16)})


@cache
def exact_scans(count: int, period: float = 0.1) -> list[PointCloud]:
    return [scan(motion(TWIST), period * k, noise=NOISE) for k in range(count)]


def wrong_scans(count: int) -> list[PointCloud]:
    return [misread(cloud, TOO_FAR, TOO_HIGH) for cloud in exact_scans(count)]


def find_by_true_poses(clouds: list[PointCloud]) -> ChannelErrors:
    looks = []
    for cloud in clouds:
        seconds = (cloud.t_ns - 1_000_000_000 + np.asarray(cloud.fields["t_offset_ns"])) / 1e9
        looks.append(
            sample_scan(cloud.points, np.asarray(cloud.fields["ring"], np.int64), motion(TWIST)(seconds))
        )
    found = estimate_channel_errors(looks)
    assert found is not None
    return found


def play(node: ChannelCalibration, clouds: list[PointCloud]) -> list[PointCloud]:
    """Both passes over some clouds."""
    for cloud in clouds:
        assert node(cloud) is None
    node.finish()
    node.ctx.pass_index = 1
    return [node(cloud).calibrated for cloud in clouds]


def thickness(clouds: list[PointCloud]) -> float:
    """Metres (rms) by which points are off the walls, placed by the true motion."""
    off = []
    for cloud in clouds:
        seconds = (cloud.t_ns - 1_000_000_000 + np.asarray(cloud.fields["t_offset_ns"])) / 1e9
        T = motion(TWIST)(seconds)
        off.append(off_the_walls(np.einsum("nij,nj->ni", T[:, :3, :3], cloud.points) + T[:, :3, 3]))
    return float(np.sqrt(np.mean(np.concatenate(off) ** 2)))


def test_offsets_of_ranges_are_found():
    found = find_by_true_poses(wrong_scans(60)[::3])
    assert np.abs(found.ranges - TOO_FAR).max() < 0.006


@pytest.mark.parametrize("more", [0.0, 0.05, -0.03])
def test_what_all_channels_have_in_common_is_found(more: float):
    clouds = [misread(cloud, TOO_FAR + more, TOO_HIGH) for cloud in exact_scans(120)[::3]]
    found = find_by_true_poses(clouds)
    weight = found.counts / found.counts.sum()
    assert weight @ (found.ranges - TOO_FAR) == pytest.approx(more, abs=0.003)
    np.testing.assert_allclose(found.ranges - TOO_FAR, more, atol=0.006)


@pytest.mark.parametrize("scale", [1.01, 0.99])
def test_what_all_channels_have_in_common_is_found_by_a_way_of_wrong_length(scale: float):
    more = 0.05
    looks = []
    for cloud in (misread(each, TOO_FAR + more, TOO_HIGH) for each in exact_scans(120)[::3]):
        poses = motion(TWIST)((cloud.t_ns - 1_000_000_000 + np.asarray(cloud.fields["t_offset_ns"])) / 1e9)
        poses[:, :3, 3] *= scale
        looks.append(sample_scan(cloud.points, np.asarray(cloud.fields["ring"], np.int64), poses))
    found = estimate_channel_errors(looks)
    weight = found.counts / found.counts.sum()
    assert weight @ (found.ranges - TOO_FAR) == pytest.approx(more, abs=0.005)


def test_offsets_are_as_far_off_as_their_covariance_says():
    found = find_by_true_poses(wrong_scans(60)[::3])
    error = np.concatenate([found.ranges - TOO_FAR, found.elevations - TOO_HIGH])
    assert error @ np.linalg.solve(found.covariance, error) < 2 * len(error)


def test_a_lidar_without_faults_is_left_nearly_as_it_is():
    right = [misread(cloud, np.zeros(CHANNELS), np.zeros(CHANNELS)) for cloud in exact_scans(60)[::3]]
    found = find_by_true_poses(right)
    assert np.abs(found.ranges).max() < 0.004
    assert np.abs(found.elevations).max() < 3e-4


def test_walls_get_thinner_by_what_the_scans_alone_tell():
    wrong = wrong_scans(60)
    node = ChannelCalibration()
    mended = play(node, wrong)
    noise, before, after = thickness(exact_scans(60)), thickness(wrong), thickness(mended)
    assert before > 1.5 * noise
    assert after - noise < 0.25 * (before - noise)
    assert {*mended[0].fields} == {*wrong[0].fields}
    given = node.finish()
    assert given.ranges.shape == given.elevations.shape == (CHANNELS,)


def test_each_round_sees_clouds_without_what_those_before_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(channel_calibration, "LOOKS", 6)
    node = ChannelCalibration()
    rounds = []
    for cloud in wrong_scans(90):
        node(cloud)
        if node.faults is not None and (not rounds or rounds[-1] is not node.faults):
            rounds.append(node.faults)
    assert len(rounds) == channel_calibration.ROUNDS
    assert node.is_satisfied()
    first, *_, last = (np.std(each.ranges - TOO_FAR) for each in rounds)
    assert last < max(first, 0.004)


@pytest.mark.parametrize("node", [ChannelCalibration(enabled=False), ChannelCalibration()])
def test_clouds_pass_as_they_are_if_nothing_tells_their_channels_or_nobody_asks(node: ChannelCalibration):
    clouds = exact_scans(3)
    assert [a is b for a, b in zip(play(node, clouds), clouds, strict=True)] == [True] * 3
    assert node.is_satisfied()
    assert node.finish() is None


def test_a_lidar_that_stands_still_tells_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(channel_calibration, "MOST_SCANS", 6)
    still = [scan(motion(np.zeros(6)), 0.1 * k, noise=NOISE) for k in range(14)]
    clouds = [misread(cloud, TOO_FAR, TOO_HIGH) for cloud in still]
    node = ChannelCalibration()
    mended = play(node, clouds)
    assert node.is_satisfied()
    np.testing.assert_array_equal(mended[0].points, clouds[0].points)


def test_a_lidar_that_was_carried_elsewhere_does_not_lay_two_places_on_each_other():
    before = wrong_scans(30)
    elsewhere = [scan(motion(TWIST), 0.1 * k, room=OTHER_ROOM, furniture=(), noise=NOISE) for k in range(30)]
    moved = [replace(cloud, t_ns=cloud.t_ns + 60_000_000_000) for cloud in elsewhere]
    node = ChannelCalibration()
    play(node, [*before, *(misread(cloud, TOO_FAR, TOO_HIGH) for cloud in moved)])
    assert np.abs(node.faults.ranges - TOO_FAR)[node.faults.counts > 500].max() < 0.008


@pytest.mark.parametrize("first", [-1.0, float("nan"), 1000.0])
def test_rings_that_are_not_channels_are_left_alone(first: float):
    ring = np.r_[first, np.zeros(len(exact_scans(3)[0]) - 1)]
    strange = [replace(cloud, fields={**cloud.fields, "ring": ring}) for cloud in exact_scans(3)]
    node = ChannelCalibration()
    assert play(node, strange)[0] is strange[0]


def test_a_channel_that_was_never_seen_before_is_left_alone():
    found = ChannelErrors(np.array([0.5]), np.array([0.0]), np.eye(2), np.array([10]))
    cloud = PointCloud(np.array([[3.0, 0, 0], [4.0, 0, 0], [5.0, 0, 0]]), {"ring": np.array([0, 9, np.nan])})
    np.testing.assert_allclose(found.correct(cloud), [[2.5, 0, 0], [4.0, 0, 0], [5.0, 0, 0]])


def test_what_two_rounds_found_is_added_channel_by_channel():
    one = ChannelErrors(np.array([0.01]), np.array([0.001]), np.eye(2), np.array([5]))
    two = ChannelErrors(np.array([0.02, 0.03]), np.array([0.0, 0.002]), np.eye(4), np.array([5, 5]))
    for both in (one.add(two), two.add(one)):
        np.testing.assert_allclose(both.ranges, [0.03, 0.03])
        np.testing.assert_allclose(both.elevations, [0.001, 0.002])
        assert both.covariance.shape == (4, 4)


def test_points_are_picked_from_all_channels_alike():
    picked = pick(np.arange(32 * 2000))
    assert len(picked) == pytest.approx(channel_calibration.POINTS, rel=0.01)
    share = np.bincount(picked % 32, minlength=32) / len(picked)
    assert np.abs(share * 32 - 1).max() < 0.05


def test_a_run_says_how_large_the_offsets_were():
    faults = ChannelErrors(
        np.full(4, 0.02), np.full(4, 0.001), np.diag([4e-6] * 4 + [1e-8] * 4), np.full(4, 9)
    )
    assert describe(faults) == (
        "channels: ranges were off by 20 mm (known to 2), elevations by 0.057 deg (known to 0.006), "
        "root mean squares of 4 channels; taken off"
    )
