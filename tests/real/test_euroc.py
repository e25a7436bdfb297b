"""EuRoC V1_01: ten stereo pairs, the whole inertial log, and the first half of the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.formats.recordings import assert_same, rewritten

import transect
from transect.recording import Recording


@pytest.fixture(scope="module")
def flight(real_data: Path) -> Recording:
    return transect.open(real_data / "euroc_v101")


def test_it_holds_what_its_source_says(flight: Recording) -> None:
    assert flight.format == "euroc"
    assert {s.name: len(s) for s in flight} == {"cam0": 10, "cam1": 10, "imu0": 29120, "GroundTruth": 1447}
    assert flight.truth is flight["GroundTruth"]


def test_the_images_that_are_listed_but_not_there_are_known_losses(flight: Recording) -> None:
    """The lists have 95 and 99 lines, the folders ten images each."""
    assert [(loss.file.rpartition("/")[0], loss.count) for loss in flight.losses] == [
        ("mav0/cam0/data", 85),
        ("mav0/cam1/data", 89),
    ]
    assert flight.notes == ("state_groundtruth_estimate0 has a sensor.yaml but no data.csv",)


def test_the_inertial_unit_ran_at_200_hz_for_145_6_s(flight: Recording) -> None:
    timing = flight["imu0"].timing
    assert timing.rate == pytest.approx(200, abs=0.01)
    assert (flight["imu0"].t_ns[-1] - flight["imu0"].t_ns[0]) / 1e9 == pytest.approx(145.6, abs=0.01)
    assert (timing.backwards, timing.repeated) == (0, 0)


def test_inertial_data_are_those_that_numpy_reads(real_data: Path, flight: Recording) -> None:
    file = real_data / "euroc_v101/mav0/imu0/data.csv"
    np.testing.assert_array_equal(flight["imu0"].t_ns, np.loadtxt(file, np.int64, delimiter=",", usecols=0))
    rows = np.loadtxt(file, delimiter=",", usecols=range(1, 7))
    names = ("gyro_x", "gyro_y", "gyro_z", "acc_x", "acc_y", "acc_z")
    np.testing.assert_array_equal(flight["imu0"].array(*names), rows)


def test_at_rest_it_feels_gravity(flight: Recording) -> None:
    at_rest = flight["imu0"].array("acc_x", "acc_y", "acc_z")[:400].mean(axis=0)
    assert np.linalg.norm(at_rest) == pytest.approx(9.8, abs=0.05)


def test_the_pairs_were_taken_together(flight: Recording) -> None:
    np.testing.assert_array_equal(flight["cam0"].t_ns, flight["cam1"].t_ns)
    for name, tag in (("cam0", "left"), ("cam1", "right")):
        image = flight[name][9].value
        assert (image.width, image.height, image.mode) == (752, 480, "gray")
        assert flight[name].tag == tag


def test_the_truth_is_the_first_half_and_that_alone(flight: Recording) -> None:
    """SOURCE.txt: 144.7 s and 58.4 m are the whole; half the time is here, and less than half of the way."""
    truth = flight["GroundTruth"]
    assert (truth.t_ns[-1] - truth.t_ns[0]) / 1e9 == pytest.approx(144.7 / 2, abs=0.1)
    length = np.linalg.norm(np.diff(truth.array("x", "y", "z"), axis=0), axis=1).sum()
    assert 0 < length < 58.4 / 2
    at_rest = truth.between(truth.t_ns[0], truth.t_ns[0] + 4_700_000_000).array("x", "y", "z")
    assert np.linalg.norm(at_rest - at_rest[0], axis=1).max() < 0.02  # stationary: 1.6 cm in 4.7 s


def test_the_truth_is_what_numpy_reads(real_data: Path, flight: Recording) -> None:
    rows = np.loadtxt(real_data / "euroc_v101/V1_01_easy_gt_20hz_corrected_first_half.csv", delimiter=",")
    truth = flight["GroundTruth"]
    np.testing.assert_array_equal(truth.array("x", "y", "z", "qw", "qx", "qy", "qz"), rows[:, 1:8])
    np.testing.assert_array_equal(truth.array("vx", "vy", "vz"), rows[:, 8:11])
    np.testing.assert_array_equal(truth.array("gyro_bias_x", "acc_bias_z"), rows[:, [11, 16]])


def test_calibration_is_that_of_the_sensor_files(flight: Recording) -> None:
    right = flight.cameras["cam1"]
    np.testing.assert_array_equal(right.K, [[457.587, 0, 379.999], [0, 456.134, 255.238], [0, 0, 1]])
    np.testing.assert_array_equal(right.coefficients, [-0.28368365, 0.07451284, -0.00010473, -3.55590700e-05])
    baseline = np.linalg.norm(flight.frames.lookup("cam0", "cam1")[:3, 3])
    assert baseline == pytest.approx(0.110, abs=0.001)  # the VI-Sensor's 11 cm


def test_what_is_written_of_it_opens_the_same(tmp_path: Path, flight: Recording) -> None:
    part = flight.slice(None, "+0.5s")
    assert len(part["cam0"]) == 10
    assert_same(part, rewritten(part, tmp_path / "part", "euroc"))
