"""Real NMEA logs: one of an RTK receiver, and thirty dialects with their defects."""

from pathlib import Path

import numpy as np
import pynmea2
import pytest

import transect
from transect.base.clocks import ns_from_iso
from transect.errors import TransectError

OPENED = {
    # file: positions (GGA, else GNS, RMC or GLL), RMC, bad sentences, clock
    "pygpsdata-BADHDR.log": (1, 2, 1, "utc"),
    "pygpsdata-badeof.log": (1, 1, 1, "utc"),
    "pygpsdata-mixed.log": (2, 0, 0, "device"),
    "pygpsdata-nmea2.log": (1, 2, 0, "utc"),
    "pygpsdata-nmea4.log": (2, 1, 0, "utc"),
    "pygpsdata-nmea4lc.log": (1, 1, 0, "utc"),
    "pygpsdata-nmea4sm.log": (1, 1, 0, "utc"),
    "pygpsdata-nmeabadck.log": (1, 1, 2, "utc"),
    "pygpsdata-nmeabadck2.log": (1, 1, 1, "utc"),
    "pygpsdata-nmeafoo1.log": (1, 1, 0, "utc"),
    "pygpsdata-nmeafoo2.log": (1, 0, 1, "device"),
    "pygpsdata-um981.log": (2, 1, 0, "utc"),
}
"""Counted by hand in the files."""


def test_the_rtk_log_has_120_positions_and_velocities_all_fixed(real_data: Path):
    recording = transect.open(real_data / "nmea" / "nmea.log")
    fix, velocity = recording["Gps/Fix"], recording["Gps/Velocity"]
    assert (len(fix), len(velocity)) == (120, 120)  # SOURCE.txt
    assert set(fix.column("fix")) == {"rtk fixed"}
    assert fix.t_ns[0] == ns_from_iso("2020-04-20T09:25:42")
    assert np.diff(fix.t_ns).tolist() == [500_000_000] * 119
    assert recording.losses == ()


def test_positions_are_those_that_pynmea2_reads(real_data: Path):
    path = real_data / "nmea" / "nmea.log"
    oracle = [m for line in path.read_text().split() if isinstance(m := pynmea2.parse(line), pynmea2.GGA)]
    fix = transect.open(path)["Gps/Fix"]
    np.testing.assert_array_equal(fix["lat"], np.radians([m.latitude for m in oracle]))
    np.testing.assert_array_equal(fix["lon"], np.radians([m.longitude for m in oracle]))
    assert fix["alt"].tolist() == [m.altitude for m in oracle]


def test_the_receiver_stands_still(real_data: Path):
    velocity = transect.open(real_data / "nmea" / "nmea.log")["Gps/Velocity"]
    assert velocity["speed"].max() < 0.1


@pytest.mark.parametrize("name", OPENED)
def test_a_dialect_gives_what_it_holds(real_data: Path, name: str):
    positions, velocities, bad, clock = OPENED[name]
    recording = transect.open(real_data / "nmea" / "pynmeagps" / name)
    counts = [len(recording[stream]) if stream in recording else 0 for stream in ("Gps/Fix", "Gps/Velocity")]
    assert counts == [positions, velocities]
    assert sum(loss.count for loss in recording.losses) == bad
    assert {stream.clock for stream in recording} == {clock}


def test_every_other_dialect_is_refused_with_a_reason(real_data: Path):
    for path in sorted((real_data / "nmea" / "pynmeagps").iterdir()):
        if path.name not in OPENED:
            with pytest.raises(TransectError) as refused:
                transect.open(path)
            assert refused.value.why, path.name
            assert "GGA or RMC" in refused.value.what, path.name
