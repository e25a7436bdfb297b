"""Real recordings: no correct unit is suspect, and each wrong one is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import transect
from transect.recording import Recording, Stream
from transect.recording.plausibility import ACCELERATION, RATE, find_implausible
from transect.recording.stream import stream_of_values
from transect.types import Imu

IMUS = {
    "bags/robot_localization/test2.bag": "/imu/data",
    "kitti_raw_06": "oxts/imu",
    "lidar_gtsam_points/continuous": "imu",
    "rock_logs/msgpack": "/xsens_imu.calibrated_sensors",
}


def checks_of(*streams: Stream) -> list[str]:
    return [found.check for found in find_implausible(Recording("real", streams))]


def scaled(stream: Stream, force: float, rate: float) -> Stream:
    columns = {name: force * stream.array(name)[:, 0] for name in ACCELERATION}
    columns |= {name: rate * stream.array(name)[:, 0] for name in RATE}
    return stream_of_values(stream.name, stream.t_ns, columns, type=Imu, clock=stream.clock)


@pytest.mark.parametrize("path", IMUS)
def test_an_imu_is_found_in_other_units_only(real_data: Path, path: str) -> None:
    recording = transect.open(real_data / path)
    assert not list(find_implausible(recording))
    imu = recording[IMUS[path]]
    assert "acceleration unit" in checks_of(scaled(imu, 1 / 9.80665, 1.0))
    in_degrees = checks_of(scaled(imu, 1.0, 180 / np.pi))
    # Three seconds of a standing Xsens, whose biases are small, cannot tell.
    assert in_degrees == ([] if "rock_logs" in path else ["rate unit"])


def test_a_radar_drive_whose_gravity_was_taken_off_is_no_finding(real_data: Path) -> None:
    assert not list(find_implausible(transect.open(real_data / "radiate_fog")))
