"""Lidar odometry on the few real scans that come with truth, or without."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import transect
from transect.geometry import se3
from transect.geometry.ground import forward_axis, ground_axes
from transect.nodes.lidar.channel_calibration import ChannelCalibration


def test_five_scans_of_newer_college_end_where_they_should(real_data: Path):
    recording = transect.open(real_data / "lidar_gtsam_points")
    run = transect.run("LidarOdometry", recording, wire={"cloud": "newer_01/planes"})
    graph = recording["newer_01/graph"]
    true = se3.from_quaternion(graph.array("qx", "qy", "qz", "qw"), graph.array("x", "y", "z"))
    expected = (se3.invert(true[0]) @ true[-1])[:3, 3]
    assert all(run["success"].values)
    # 4.3 m; the dump's own poses come from an odometry with an IMU.
    np.testing.assert_allclose(run["pose"].values[-1].position, expected, atol=0.1)


def test_a_car_in_fog_drives_steadily(real_data: Path):
    run = transect.run("LidarOdometry", real_data / "radiate_fog")
    assert all(run["success"].values)
    steps = np.linalg.norm(np.diff([p.position for p in run["pose"].values], axis=0), axis=1)
    # No truth, but a car does not change its speed by a tenth within 0.1 s.
    assert steps.min() > 0.9 * np.median(steps)
    assert steps.max() < 1.1 * np.median(steps)
    # The lidar's y is the car's forward; 0.12 m aside is less than 0.35 m of height: no side view for that.
    positions, attitudes = (
        np.array([getattr(p, n) for p in run["pose"].values]) for n in ("position", "orientation")
    )
    assert ground_axes(positions, attitudes) == (0, 1)
    assert forward_axis(positions, attitudes) == 1


def test_two_halves_of_a_real_drive_tell_channels_alike(real_data: Path):
    clouds = [sample.payload for sample in transect.open(real_data / "radiate_fog")["velo_lidar"]]
    halves = []
    for part in (clouds[:7], clouds[7:]):
        node = ChannelCalibration(min_views=5)
        for cloud in part:
            node(cloud)
        node.finish()
        assert node.faults is not None
        halves.append(node.faults)
    # No truth, but they saw different parts of the street. What channels have in common takes more scans.
    known = np.all([np.sqrt(half.covariance.diagonal()[:32]) < 0.01 for half in halves], axis=0)
    assert known.sum() > 10
    one, two = (half.ranges[known] - half.ranges[known].mean() for half in halves)
    assert np.corrcoef(one, two)[0, 1] > 0.6
    assert np.std(one - two) < 0.006


def test_fourteen_scans_are_too_few_to_estimate_what_channels_have_in_common(real_data: Path):
    run = transect.run("LidarOdometry", real_data / "radiate_fog")
    assert not [each for each in run.conclusions if "channels" in each.text]
