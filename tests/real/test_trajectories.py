"""Every trajectory of trajectories_evo opens by itself, with as many poses as numpy counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import transect
from transect.recording import Stream

# file: format, clock, role
FILES = {
    "KITTI_00_ORB.txt": ("kitti", "index", "estimate"),
    "KITTI_00_SPTAM.txt": ("kitti", "index", "estimate"),
    "KITTI_00_gt.txt": ("kitti", "device", "truth"),
    "V102.txt": ("tum", "utc", "estimate"),
    "V102_groundtruth.csv": ("euroc", "utc", "truth"),
    "fr2_desk_ORB.txt": ("tum", "utc", "estimate"),
    "fr2_desk_ORB_kf_mono.txt": ("tum", "utc", "estimate"),
    "fr2_desk_groundtruth.txt": ("tum", "utc", "truth"),
    "freiburg1_xyz-ORB_kf_mono.txt": ("tum", "utc", "estimate"),
    "freiburg1_xyz-groundtruth.txt": ("tum", "utc", "truth"),
    "freiburg1_xyz-rgbdslam.txt": ("tum", "utc", "estimate"),
    "freiburg1_xyz-rgbdslam_drift.txt": ("tum", "utc", "estimate"),
    "freiburg1_xyz-rgbdslam_drift_short.txt": ("tum", "utc", "estimate"),
    "georeferenced.tum": ("tum", "utc", "estimate"),
}
NOT_TRAJECTORIES = {"SOURCE.txt", "KITTI_00_gt_times.txt"}


def opened(real_data: Path, name: str, **options: str) -> Stream:
    recording = transect.open(real_data / "trajectories_evo" / name, **options)
    assert recording.losses == ()
    (stream,) = recording.streams
    return stream


def by_numpy(real_data: Path, name: str) -> np.ndarray:
    delimiter = "," if name.endswith(".csv") else None
    return np.loadtxt(real_data / "trajectories_evo" / name, delimiter=delimiter)


def path_length(stream: Stream) -> float:
    return float(np.linalg.norm(np.diff(stream.array("x", "y", "z"), axis=0), axis=1).sum())


def test_no_trajectory_is_forgotten(real_data: Path) -> None:
    names = {path.name for path in (real_data / "trajectories_evo").iterdir()}
    assert names == set(FILES) | NOT_TRAJECTORIES


@pytest.mark.parametrize("name", FILES)
def test_a_trajectory_opens_with_the_right_format_by_itself(real_data: Path, name: str) -> None:
    recording = transect.open(real_data / "trajectories_evo" / name)
    (stream,) = recording.streams
    assert (recording.format, stream.clock, stream.role) == FILES[name]


@pytest.mark.parametrize("name", FILES)
def test_every_position_is_the_one_that_numpy_reads(real_data: Path, name: str) -> None:
    stream, rows = opened(real_data, name), by_numpy(real_data, name)
    columns = [3, 7, 11] if FILES[name][0] == "kitti" else [1, 2, 3]
    np.testing.assert_array_equal(stream.array("x", "y", "z"), rows[:, columns])


@pytest.mark.parametrize("name", [n for n, (format, *_) in FILES.items() if format != "kitti"])
def test_every_time_and_attitude_is_the_one_that_numpy_reads(real_data: Path, name: str) -> None:
    stream, rows = opened(real_data, name), by_numpy(real_data, name)
    unit, order = (1, [5, 6, 7, 4]) if name.endswith(".csv") else (10**9, [4, 5, 6, 7])
    np.testing.assert_allclose(stream.t_ns / unit, rows[:, 0], rtol=1e-15)
    np.testing.assert_array_equal(stream.array("qx", "qy", "qz", "qw"), rows[:, order])


def test_times_are_exact_where_floats_are_not(real_data: Path) -> None:
    """First line of V102.txt: 1.403715529112143517e+09; a float would say ...143516."""
    assert opened(real_data, "V102.txt").t_ns[0] == 1403715529112143517


def test_kitti_matrices_are_recovered_from_the_quaternions(real_data: Path) -> None:
    from transect.geometry import rotations

    stream, rows = opened(real_data, "KITTI_00_gt.txt"), by_numpy(real_data, "KITTI_00_gt.txt")
    R = rotations.matrix_from_quaternion(stream.array("qx", "qy", "qz", "qw"))
    printed = rows.reshape(-1, 3, 4)[:, :, :3]  # to seven digits
    np.testing.assert_allclose(R, printed, atol=2e-6)


def test_the_times_beside_a_kitti_file_are_its_times(real_data: Path) -> None:
    seconds = by_numpy(real_data, "KITTI_00_gt_times.txt")
    np.testing.assert_allclose(opened(real_data, "KITTI_00_gt.txt").t_ns / 1e9, seconds, atol=1e-9)
    times = real_data / "trajectories_evo" / "KITTI_00_gt_times.txt"
    estimate = opened(real_data, "KITTI_00_ORB.txt", times=str(times))
    assert estimate.clock == "device"
    np.testing.assert_allclose(estimate.t_ns / 1e9, seconds, atol=1e-9)


# KITTI: odometry sequence 00 is 3724 m. EuRoC: V1_02_medium is 75.89 m in 83.5 s (its data-set page).
# TUM: the recordings fr1/xyz and fr2/desk last 30.09 s and 99.36 s (their data-set page).
@pytest.mark.parametrize(("name", "length"), [
    ("KITTI_00_gt.txt", 3724.187),
    ("V102_groundtruth.csv", 75.891),
])  # fmt: skip
def test_a_truth_is_as_long_as_it_is_published(real_data: Path, name: str, length: float) -> None:
    assert path_length(opened(real_data, name)) == pytest.approx(length, abs=1e-3)


@pytest.mark.parametrize(("name", "seconds"), [
    ("V102_groundtruth.csv", 83.5),
    ("freiburg1_xyz-groundtruth.txt", 30.09),
    ("fr2_desk_groundtruth.txt", 99.36),
])  # fmt: skip
def test_a_truth_lasts_as_long_as_it_is_published(real_data: Path, name: str, seconds: float) -> None:
    t_ns = opened(real_data, name).t_ns
    assert (t_ns[-1] - t_ns[0]) / 1e9 == pytest.approx(seconds, abs=0.01)
