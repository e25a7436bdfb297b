"""LidarSlam: a drive over hills and back over the same ground."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.algorithms.slam.hills import body_pose, measure
from tests.commands import transect as command

import transect
from transect.formats.shared.clouds import encode_cloud
from transect.geometry import se3
from transect.recording.place_maps import read_map
from transect.types import PointCloud

STEP_M, STEP_COUNT = 0.6, 8
SETTINGS = {"places.min_loop_path": 3.0, "places.voxel": 0.8, "places.keyframe_distance": 1.2}


def drive(offset: float = 0.0) -> list[np.ndarray]:
    """Return poses of the lidar, T_world_lidar (4, 4)."""
    out = [body_pose(STEP_M * k, offset, 0.0) for k in range(STEP_COUNT + 1)]
    turn = [body_pose(STEP_M * STEP_COUNT, offset, np.pi * k / 6) for k in range(1, 7)]
    return [
        *out,
        *turn,
        *(body_pose(STEP_M * (STEP_COUNT - k), offset, np.pi) for k in range(1, STEP_COUNT + 1)),
    ]


def write_clouds(folder: Path, poses: list[np.ndarray], draw: int) -> Path:
    folder.mkdir()
    for k, pose in enumerate(poses):
        cloud = PointCloud(measure(pose, draw=draw + k).astype(np.float32))
        (folder / f"{k:06d}.pcd").write_bytes(encode_cloud(cloud, ".pcd"))
    return folder


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, transect.Run]:
    """Return a folder with clouds, and their run."""
    folder = tmp_path_factory.mktemp("slam")
    clouds = write_clouds(folder / "clouds", drive(), 100)
    return folder, transect.run("LidarSlam", clouds, out=folder / "run", set=SETTINGS)


def test_loops_are_closed_on_the_return_path_and_all_are_correct(mapped):
    places = read_map(mapped[0] / "run", "LidarSlam")
    truth = np.array(drive())[np.rint((places.t_ns - places.t_ns[0]) / 1e9).astype(int)]
    loops = np.array([what == "loop" for what in places.edges.what])
    assert loops.sum() >= 3
    a, b = places.edges.a[loops], places.edges.b[loops]
    error = se3.log(se3.invert(places.edges.T_a_b[loops]) @ se3.invert(truth[a]) @ truth[b])
    assert np.linalg.norm(error[:, :3], axis=1).max() < 0.15
    assert np.degrees(np.linalg.norm(error[:, 3:], axis=1)).max() < 1.0


def test_known_ground_is_not_stored_again_in_the_opposite_direction(mapped):
    places = read_map(mapped[0] / "run", "LidarSlam")
    sizes = np.array([len(seen["points"]) for seen in places.observations])
    assert sizes[:4].min() > 0
    assert (sizes[-2:] == 0).all()


def test_the_corrected_trajectory_ends_at_its_start(mapped):
    positions = transect.open(mapped[0] / "run" / "trajectory.tum").streams[0].array("x", "y", "z")
    truth = se3.invert(drive()[0]) @ np.array(drive())
    assert len(positions) == len(truth)
    assert np.linalg.norm(positions - truth[:, :3, 3], axis=1).max() < 0.15


def test_the_digest_is_the_same_with_two_jobs(mapped):
    parallel = transect.run("LidarSlam", mapped[0] / "clouds", jobs=2, set=SETTINGS)
    assert parallel.digest == mapped[1].digest


def test_another_day_is_localised_in_the_map(mapped, tmp_path: Path):
    second_day = write_clouds(tmp_path / "later", drive(0.4)[1:7], 500)
    run = transect.run("LidarSlam", second_day, map=mapped[0] / "run", set=SETTINGS)
    located = run["located"].values
    assert located[-1]
    assert sum(located) >= 2
    pose = run["pose"].values[-1]
    truth = (se3.invert(drive()[0]) @ drive(0.4)[6])[:3, 3]
    assert np.linalg.norm(pose.position - truth) < 0.15


def test_a_map_of_another_kind_is_refused(mapped):
    done = command("run", "LaserSlam/Scans", mapped[0] / "clouds", "--map", mapped[0] / "run")
    assert done.returncode in (1, 2)
