"""LidarSlam: out over hills, around, and back over the same ground."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.algorithms.slam.test_lidar_recogniser import look, stand
from tests.commands import transect as command

import transect
from transect.formats.shared.clouds import encode_cloud
from transect.geometry import se3
from transect.recording.place_maps import read_map
from transect.types import PointCloud

STEP, LENGTH = 0.6, 8
HOW = {"places.recent": 3.0, "places.voxel": 0.8, "places.spacing": 1.2}


def drive(offset: float = 0.0) -> list[np.ndarray]:
    """Poses of the lidar, T_world_lidar (4, 4)."""
    out = [stand(STEP * k, offset, 0.0) for k in range(LENGTH + 1)]
    around = [stand(STEP * LENGTH, offset, np.pi * k / 6) for k in range(1, 7)]
    return [*out, *around, *(stand(STEP * (LENGTH - k), offset, np.pi) for k in range(1, LENGTH + 1))]


def write_clouds(folder: Path, poses: list[np.ndarray], draw: int) -> Path:
    folder.mkdir()
    for k, pose in enumerate(poses):
        cloud = PointCloud(look(pose, draw=draw + k).astype(np.float32))
        (folder / f"{k:06d}.pcd").write_bytes(encode_cloud(cloud, ".pcd"))
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, transect.Run]:
    """Clouds and the run of them, in a folder."""
    folder = tmp_path_factory.mktemp("slam")
    clouds = write_clouds(folder / "clouds", drive(), 100)
    return folder, transect.run("LidarSlam", clouds, out=folder / "run", set=HOW)


def test_places_are_known_again_on_the_way_back_and_no_loop_is_wrong(made):
    places = read_map(made[0] / "run", "LidarSlam")
    true = np.array(drive())[np.rint((places.t_ns - places.t_ns[0]) / 1e9).astype(int)]
    loops = np.array([what == "loop" for what in places.edges.what])
    assert loops.sum() >= 3
    a, b = places.edges.a[loops], places.edges.b[loops]
    off = se3.log(se3.invert(places.edges.T_a_b[loops]) @ se3.invert(true[a]) @ true[b])
    assert np.linalg.norm(off[:, :3], axis=1).max() < 0.15
    assert np.degrees(np.linalg.norm(off[:, 3:], axis=1)).max() < 1.0


def test_ground_that_is_seen_from_the_other_side_is_not_kept_again(made):
    places = read_map(made[0] / "run", "LidarSlam")
    kept = np.array([len(seen["points"]) for seen in places.observations])
    assert kept[:4].min() > 0
    assert (kept[-2:] == 0).all()


def test_the_corrected_way_ends_where_it_began(made):
    found = transect.open(made[0] / "run" / "trajectory.tum").streams[0].array("x", "y", "z")
    true = se3.invert(drive()[0]) @ np.array(drive())
    assert len(found) == len(true)
    assert np.linalg.norm(found - true[:, :3, 3], axis=1).max() < 0.15


def test_the_digest_is_the_same_with_two_jobs(made):
    again = transect.run("LidarSlam", made[0] / "clouds", jobs=2, set=HOW)
    assert again.digest == made[1].digest


def test_another_day_is_found_in_the_map(made, tmp_path: Path):
    later = write_clouds(tmp_path / "later", drive(0.4)[1:7], 500)
    run = transect.run("LidarSlam", later, map=made[0] / "run", set=HOW)
    located = run["located"].values
    assert located[-1]
    assert sum(located) >= 2
    pose = run["pose"].values[-1]
    truth = (se3.invert(drive()[0]) @ drive(0.4)[6])[:3, 3]
    assert np.linalg.norm(pose.position - truth) < 0.15


def test_a_map_of_another_kind_is_refused(made):
    done = command("run", "LaserSlam/Scans", made[0] / "clouds", "--map", made[0] / "run")
    assert done.returncode in (1, 2)
