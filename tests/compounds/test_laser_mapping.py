"""LaserMapping of a vehicle that drives past a wall: a recording in memory, of one laser and a radar."""

from __future__ import annotations

import numpy as np
import pytest
from tests.nodes.lidar.test_laser_assembly import FIRST_NS, LEVEL, WALL, moving_frames, place, spectrum, sweep

import transect
from transect.recording import Recording, Stream, stream_of_values
from transect.types import LaserScan, RadarSpectrum, RigidBodyState

TIMES = FIRST_NS + np.arange(60) * 20_000_000


@pytest.fixture(scope="module")
def drive() -> Recording:
    return Recording(name="drive", streams=(laser(), radar(), nav()), frames=moving_frames())


def laser() -> Stream:
    scans = [sweep(t) for t in TIMES.tolist()]
    columns = {
        "ranges": np.stack([scan.ranges for scan in scans]),
        "start_angle": np.zeros(len(TIMES)),
        "angle_increment": np.full(len(TIMES), scans[0].angle_increment),
    }
    return stream_of_values("LaserPort", TIMES, columns, type=LaserScan, tag="port", frame="Laser")


def radar() -> Stream:
    lines = [spectrum(t) for t in TIMES.tolist()]
    columns = {
        "reflectivity": np.stack([line.reflectivity for line in lines]),
        "angle": np.array([line.angle for line in lines]),
        "bin_width": np.full(len(TIMES), 0.25),
        "range_offset": np.zeros(len(TIMES)),
    }
    return stream_of_values("RadarSpectrum", TIMES, columns, type=RadarSpectrum, frame="Laser")


def nav() -> Stream:
    values = np.column_stack([[place(t) for t in TIMES.tolist()], np.tile(LEVEL, (len(TIMES), 1))])
    columns = dict(zip(("x", "y", "z", "qx", "qy", "qz", "qw"), values.T, strict=True))
    attributes = {"role": "truth", "frame": "Navigation", "child": "Body"}
    return stream_of_values("Nav", TIMES, columns, type=RigidBodyState, **attributes)


@pytest.mark.parametrize(("name", "wire"), [("RecordedFrames", {}), ("NavStates", {"nav": "Nav"})])
def test_what_was_passed_is_where_it_stands(drive: Recording, name: str, wire: dict[str, str]):
    run = transect.run(f"LaserMapping/{name}", drive, wire=wire)
    cloud, echoes = run["map"].values[0], run["radar"].values[0]
    np.testing.assert_allclose(cloud.points[:, 1], WALL, atol=1e-6)
    np.testing.assert_allclose(echoes.points[:, 1], 41 * 0.25, atol=1e-9)
    assert cloud.frame == echoes.frame == "Navigation"
