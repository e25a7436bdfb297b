"""Faults in real recordings, written and opened again: a SICK log, KITTI's pictures, EuRoC's IMU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.simulation.faults.scene import labelled_rows, touched_rows

import transect
from transect.recording import Recording, arrow
from transect.simulation.faults import LABELS
from transect.simulation.faults.written import write_injected


@pytest.fixture(scope="module")
def laser(real_data: Path) -> Recording:
    return transect.open(real_data / "carmen_2dlaser" / "fr079.clf.bz2").slice("+60s", "+90s")


@pytest.fixture(scope="module")
def flight(real_data: Path) -> Recording:
    return transect.open(real_data / "euroc_v101").slice("+0s", "+4s")


@pytest.fixture(scope="module")
def drive(real_data: Path) -> Recording:
    whole = transect.open(real_data / "kitti_raw_06")
    return whole.select("image_00", "image_01", "oxts/*").slice("+0s", "+2s")


def assert_labels_match(before: Recording, folder: Path) -> set[str]:
    """Compare a recording with what was written of it; return the streams that were touched."""
    after = transect.open(folder)
    assert after.format == before.format
    labels = after[LABELS].table
    for stream in before:
        if stream.role != "truth":
            found = touched_rows(stream, after[stream.name])
            assert found == labelled_rows(labels, stream.name), stream.name
    return set(arrow.texts(labels, "stream"))


@pytest.mark.parametrize(
    ("fault", "streams"),
    [
        ("dust", {"FLASER"}),
        ("rain", {"FLASER"}),
        ("occlusion", {"FLASER"}),
        ("extrinsic_bump", {"FLASER"}),
        ("stuck", {"FLASER", "ODOM"}),
        ("dropout", {"FLASER", "ODOM"}),
        ("wheel_slip", {"ODOM"}),
        ("noise", {"FLASER", "ODOM"}),
    ],
)
def test_a_real_laser_log_with_a_fault_differs_where_the_labels_say(
    fault: str, streams: set[str], laser: Recording, tmp_path: Path
) -> None:
    write_injected(laser, tmp_path / fault, fault, 0.8, 5)
    assert assert_labels_match(laser, tmp_path / fault) == streams


def test_dust_in_a_real_corridor_lies_before_its_walls(laser: Recording, tmp_path: Path) -> None:
    write_injected(laser, tmp_path / "dusty", "dust", 1.0, 1)
    old, new = laser["FLASER"]["ranges"], transect.open(tmp_path / "dusty")["FLASER"]["ranges"]
    other = (old != new) & ~(np.isnan(old) & np.isnan(new))
    assert other.mean() > 0.02
    returned = other & np.isfinite(new) & np.isfinite(old)
    assert (new[returned] < old[returned]).all()


@pytest.mark.parametrize("fault", ["noise", "bias_step", "bias_ramp", "stuck", "extrinsic_bump"])
def test_a_real_inertial_unit_with_a_fault_differs_where_the_labels_say(
    fault: str, flight: Recording, tmp_path: Path
) -> None:
    write_injected(flight, tmp_path / fault, fault, 0.6, 2, streams=("imu0",))
    assert assert_labels_match(flight, tmp_path / fault) == {"imu0"}


@pytest.mark.parametrize("fault", ["haze", "blur", "overexposure", "fog", "occlusion"])
def test_real_pictures_with_a_fault_differ_where_the_labels_say(
    fault: str, drive: Recording, tmp_path: Path
) -> None:
    second = drive.slice("+0s", "+1s")
    write_injected(second, tmp_path / fault, fault, 0.7, 3, streams=("image_00",))
    assert assert_labels_match(second, tmp_path / fault) == {"image_00"}


@pytest.mark.parametrize("fault", ["gnss_spike", "gnss_float"])
def test_real_positions_with_a_fault_differ_where_the_labels_say(
    fault: str, drive: Recording, tmp_path: Path
) -> None:
    write_injected(drive, tmp_path / fault, fault, 0.5, 4)
    assert assert_labels_match(drive, tmp_path / fault) == {"oxts/fix"}


def test_real_pictures_that_come_late_stay_the_same_pictures(flight: Recording, tmp_path: Path) -> None:
    write_injected(flight, tmp_path / "late", "latency", 1.0, streams=("cam0",), start="+0.2s")
    before, after = flight["cam0"], transect.open(tmp_path / "late")["cam0"]
    late = before.t_ns >= before.t_ns[0] + 200_000_000
    np.testing.assert_array_equal(after.t_ns - before.t_ns, np.where(late, 200_000_000, 0))
    np.testing.assert_array_equal(after[9].value.data, before[9].value.data)
