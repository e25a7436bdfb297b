"""LidarOdometry on a folder of numbered clouds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.nodes.lidar.rooms import motion, scan

import transect
from transect.engine.runs import silent_outputs
from transect.formats.shared.clouds import encode_cloud
from transect.types import PointCloud

TWIST = np.array([1.0, 0.2, 0.0, 0.0, 0.0, 0.5])
SCAN_COUNT = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write clouds without times, as drivers do: 000000.pcd, 000001.pcd, ..."""
    path = tmp_path_factory.mktemp("clouds")
    for i in range(SCAN_COUNT):
        cloud = scan(motion(TWIST), 0.1 * i, noise=0.01, timed=False)
        data = encode_cloud(PointCloud(cloud.points.astype(np.float32)), ".pcd")
        (path / f"{i:06d}.pcd").write_bytes(data)
    return path


def test_a_folder_of_clouds_gives_a_trajectory_and_a_map(folder: Path, tmp_path: Path):
    transect.run("LidarOdometry", folder, out=tmp_path / "run")
    poses = transect.open(tmp_path / "run" / "pose.tum").streams[0]
    true = motion(TWIST)(np.array([0.1 * (SCAN_COUNT - 1)]))[0]
    assert len(poses) == SCAN_COUNT
    np.testing.assert_allclose(poses.array("x", "y", "z")[-1], true[:3, 3], atol=0.04)
    cloud = transect.open(tmp_path / "run" / "map.ply").streams[0][0].payload
    assert len(cloud) > 1000


def test_the_same_clouds_give_the_same_digest(folder: Path):
    once, again = transect.run("LidarOdometry", folder), transect.run("LidarOdometry", folder, jobs=2)
    assert once.digest == again.digest


def test_the_implementations_agree(folder: Path):
    ends = [
        transect.run(f"LidarOdometry/{name}", folder)["pose"].values[-1].position
        for name in ("VoxelMap", "PointToPlane")
    ]
    np.testing.assert_allclose(ends[0], ends[1], atol=0.04)


def test_clouds_without_overlap_are_reported(tmp_path: Path):
    rng = np.random.default_rng(0)
    for i in range(3):
        cloud = PointCloud(rng.uniform(-30, 30, (3000, 3)).astype(np.float32))
        (tmp_path / f"{i:06d}.pcd").write_bytes(encode_cloud(cloud, ".pcd"))
    run = transect.run("LidarOdometry", tmp_path)
    assert run["success"].values == [True, False, False]
    assert len(run["pose"].values) == 1
    assert "no overlap with the map" in str(run.stats)


def test_five_scans_have_no_covariance_and_the_reason_is_reported(folder: Path):
    reasons = silent_outputs(transect.run("LidarOdometry", folder))
    assert reasons == {
        "covariance": "odometry gave others; "
        "odometry: fewer than six scans matched: no covariance (1 of 5 times)"
    }
