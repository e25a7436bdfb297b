"""KITTI raw 2011_09_30 drive 0020, which is odometry sequence 06: 56 images, 600 packets, 600 poses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.formats.recordings import assert_same, rewritten

import transect
from transect.evaluation.inputs import load_trajectory
from transect.evaluation.runs.reference import reference_of
from transect.geometry import geodesy
from transect.geometry.ground import map_view
from transect.recording import Recording


@pytest.fixture(scope="module")
def drive(real_data: Path) -> Recording:
    return transect.open(real_data / "kitti_raw_06")


def lines(real_data: Path, name: str) -> list[str]:
    return (real_data / "kitti_raw_06" / name).read_text().splitlines()


def test_it_holds_what_its_source_says(drive: Recording) -> None:
    """SOURCE.txt: image frames 0-55, oxts and ground truth 0-599."""
    assert drive.format == "kitti"
    assert {s.name: len(s) for s in drive} == {
        "image_00": 56,
        "image_01": 56,
        "oxts/fix": 600,
        "oxts/imu": 600,
        "oxts/velocity": 600,
        "poses/gt_poses_06_frames0-599": 600,
    }
    assert drive.losses == ()
    assert drive.truth is drive["poses"]


def test_times_are_those_of_the_lists_to_the_nanosecond(real_data: Path, drive: Recording) -> None:
    for stream, file in (("image_00", "image_00"), ("image_01", "image_01"), ("oxts/imu", "oxts")):
        stamps = lines(real_data, f"{file}/timestamps.txt")[: len(drive[stream])]
        expected = np.array([s.replace(" ", "T") for s in stamps], dtype="datetime64[ns]").astype(np.int64)
        np.testing.assert_array_equal(drive[stream].t_ns, expected)


def test_packets_that_were_interpolated_over_a_hole_are_told(real_data: Path, drive: Recording) -> None:
    """Here by latitude alone, as text: its second differences are 0 for eleven packets and never again."""
    told = [float(f.read_text().split()[0]) for f in sorted((real_data / "kitti_raw_06/oxts/data").iterdir())]
    bends = np.abs(np.diff(told, 2)) > 1e-12
    assert list(np.flatnonzero(~bends)) == list(range(11))
    assert len(drive["oxts/imu"]) == 600
    notes = [note for note in drive.all_notes if "interpolated" in note]
    assert [note[:38] for note in notes] == ["oxts: 11 packets from number 1 on lie "]


def test_the_packets_jitter_as_described(drive: Recording) -> None:
    """data/README.md: stamps with 0.080-0.130 s jitter."""
    steps = np.diff(drive["oxts/imu"].t_ns) / 1e9
    assert steps.min() == pytest.approx(0.080, abs=0.001)
    assert steps.max() == pytest.approx(0.130, abs=0.001)


def test_the_straight_start_of_the_drive_is_seen_from_above_and_not_from_the_side(drive: Recording) -> None:
    """In the axes of the first camera: 47 m along z, 0.8 m aside, and 1.0 m down."""
    first = load_trajectory(drive["poses"].take(np.arange(600) < 40))
    assert np.ptp(first.positions, axis=0).argmin() == 0
    view = map_view(first.positions, first.orientations, first.frame)
    assert (view.right, view.up) == (0, 2)
    assert view.names == ("x, right", "z, forward")


def test_the_stereo_baseline_is_that_of_the_calibration(drive: Recording) -> None:
    """calib_cam_to_cam.txt: T_01 is -5.370000e-01 along x, and P_rect_01 says 379.8145 / 707.0912."""
    right = drive.cameras["image_01"]
    assert right.baseline == pytest.approx(0.537, abs=2e-4)
    T = drive.frames.lookup("image_00", "image_01")
    np.testing.assert_allclose(T[:3, 3], [right.baseline, 0, 0])


def test_images_are_as_large_as_the_calibration_says(drive: Recording) -> None:
    for name in ("image_00", "image_01"):
        image, camera = drive[name][55].value, drive.cameras[name]
        assert (image.width, image.height) == (camera.width, camera.height) == (1226, 370)
        assert image.mode == "gray"


def test_packets_hold_what_numpy_reads(real_data: Path, drive: Recording) -> None:
    rows = np.array(
        [np.loadtxt(real_data / f"kitti_raw_06/oxts/data/{i:010d}.txt") for i in range(0, 600, 50)]
    )
    fix, imu, velocity = (drive[f"oxts/{name}"] for name in ("fix", "imu", "velocity"))
    np.testing.assert_array_equal(fix["lat"][::50], np.radians(rows[:, 0]))
    np.testing.assert_array_equal(fix["roll"][::50], rows[:, 3])
    np.testing.assert_array_equal(imu.array("acc_x", "acc_y", "acc_z")[::50], rows[:, 11:14])
    np.testing.assert_array_equal(imu.array("gyro_x", "gyro_y", "gyro_z")[::50], rows[:, 17:20])
    np.testing.assert_array_equal(velocity.array("vn", "ve", "vx", "vy", "vz")[::50], rows[:, 6:11])


def test_the_heading_is_the_direction_of_travel(drive: Recording) -> None:
    yaw, velocity = drive["oxts/fix"]["yaw"], drive["oxts/velocity"].array("vn", "ve")
    along = np.cos(yaw) * velocity[:, 0] + np.sin(yaw) * velocity[:, 1]
    assert (along / np.linalg.norm(velocity, axis=1)).min() > 0.99


def test_satellites_and_truth_give_the_same_distance(drive: Recording) -> None:
    fix, truth = drive["oxts/fix"], drive["poses"]
    enu = geodesy.local_from_geodetic(fix.array("lat", "lon", "alt"), fix.array("lat", "lon", "alt")[0])
    by_satellites, by_truth = (
        np.linalg.norm(np.diff(points, axis=0), axis=1).sum() for points in (enu, truth.array("x", "y", "z"))
    )
    assert by_satellites == pytest.approx(by_truth, rel=0.01)


def test_the_first_56_poses_are_65_9_metres(drive: Recording) -> None:
    """spec/techniques.md, H: 56 pairs, 65.9 m."""
    steps = np.diff(drive["poses"].array("x", "y", "z")[:56], axis=0)
    assert np.linalg.norm(steps, axis=1).sum() == pytest.approx(65.9, abs=0.05)


def test_a_part_of_it_written_opens_the_same(tmp_path: Path, drive: Recording) -> None:
    part = drive.slice("+1s", "+1.5s")
    assert {len(s) for s in part} == {5}
    assert_same(part, rewritten(part, tmp_path / "part", "kitti"), attitude=1e-15)


def test_a_fusion_of_the_sensor_that_made_the_truth_is_not_called_independent(drive: Recording):
    run: Any = SimpleNamespace(
        config={"wiring": {"fix": {"stream": "oxts/fix"}, "imu": {"stream": "oxts/imu"}}}
    )
    assert drive.truth is not None
    made, fed = reference_of(run, drive, drive.truth)
    assert fed == "not"
    assert "was made from oxts, and the run used oxts/fix and oxts/imu" in made.notes[0]
