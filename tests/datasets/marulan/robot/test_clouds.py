"""Scans and radar ranges as points in the Navigation frame, against walls at known places."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.datasets.marulan import sample

import transect
from transect import robots
from transect.datasets.marulan.robot import derived_streams
from transect.errors import StreamError
from transect.geometry.planar import points_from_polar
from transect.recording import FrameTree, Recording, Stream, stream_of_values
from transect.robots.beams import Gate, assemble_sweeps, beams_from_scans
from transect.types import LaserScan, RadarRange, Record

ARGO = robots.load("argo")
T0_NS = 1_224_199_788_000_000_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
ANGLES = np.radians(np.arange(-60, 61.0))
TURN_S = 1 / 75


def scan(ranges: np.ndarray, t_ns: int = T0_NS, frame: str = "Level", angles: np.ndarray = ANGLES) -> Stream:
    columns = {
        "ranges": [np.asarray(ranges, dtype=float)],
        "start_angle": angles[:1],
        "angle_increment": np.diff(angles)[:1],
    }
    return stream_of_values("Laser", np.array([t_ns]), columns, type=LaserScan, frame=frame)


def standing(yaw: float, *streams: Stream) -> Recording:
    """A vehicle at (100, 200, -5) north, east, down; a level laser 1 m ahead of and 1 m above its body."""
    frames = ARGO.frames.copy()
    T = np.eye(4)
    T[:3, 3] = (1, 0, -1)
    frames.add_static("Body", "Level", T)
    q = [0, 0, np.sin(yaw / 2), np.cos(yaw / 2)]
    frames.add_moving(
        "Navigation", "Body", [T0_NS - NS_PER_S, T0_NS + NS_PER_S], [[100, 200, -5.0]] * 2, [q, q]
    )
    return Recording("standing", streams, frames=frames, robot=ARGO)


def test_a_wall_in_the_north_is_where_it_stands():
    cloud = derived_streams.cloud(standing(0.0, scan(9 / np.cos(ANGLES))))  # a wall at north = 110, 9 m ahead
    assert (cloud.frame, len(cloud)) == ("Navigation", 121)
    np.testing.assert_allclose(cloud.points[:, 0], 110)
    np.testing.assert_allclose(
        cloud.points[:, 1], 200 + 9 * np.tan(ANGLES)
    )  # positive angles: starboard, east
    np.testing.assert_allclose(cloud.points[:, 2], -6)


def test_a_wall_in_the_east_is_where_it_stands_when_the_vehicle_faces_it():
    cloud = derived_streams.cloud(standing(np.pi / 2, scan(9 / np.cos(ANGLES))))
    np.testing.assert_allclose(cloud.points[:, 1], 210)
    np.testing.assert_allclose(cloud.points[:, 0], 100 - 9 * np.tan(ANGLES), atol=1e-9)  # starboard is south
    np.testing.assert_allclose(cloud.points[:, 2], -6)


def test_the_horizontal_laser_meets_flat_ground_where_its_pitch_says():
    # 2.2.5: 0.919726 m above the body, pitched 8.586863 degrees down; r metres on it is as high as the body.
    r = 0.919726 / np.sin(np.radians(8.586863))
    cloud = derived_streams.cloud(
        standing(0.0, scan(np.array([r]), frame="LaserHorizontal", angles=np.array([0.0, 1]))), frame="Body"
    )
    ahead = 0.108987 + r * np.cos(np.radians(8.586863)) * np.cos(np.radians(1.631319))
    aside = 0.008302 - r * np.cos(np.radians(8.586863)) * np.sin(np.radians(1.631319))
    np.testing.assert_allclose(cloud.points, [[ahead, aside, 0]], atol=1e-9)


def test_positive_bearings_of_the_hanging_radar_are_to_port():
    columns = {
        "range": np.full(2, 10.0),
        "angle": np.radians([0.0, 20]),
        "reflectivity": np.array([50.0, 60]),
    }
    radar = stream_of_values("Radar", np.array([T0_NS, T0_NS]), columns, type=RadarRange, frame="Radar")
    cloud = derived_streams.cloud(standing(0.0, radar), ["Radar"], frame="Body")
    ahead, port = cloud.points
    bearing = np.degrees(np.arctan2(port[1], port[0]) - np.arctan2(ahead[1], ahead[0]))
    assert bearing == pytest.approx(-20, abs=0.5)  # errata: upside down, z up, y port
    np.testing.assert_array_equal(cloud.fields["intensity"], [50, 60])


def test_no_returns_and_codes_are_left_out():
    ranges = np.array([5.0, 0.0, np.nan, 81.91, 80.0, 81.83])
    cloud = derived_streams.cloud(standing(0.0, scan(ranges)), frame="Level")
    np.testing.assert_allclose(np.linalg.norm(cloud.points, axis=1), [5, 80])
    near = derived_streams.cloud(standing(0.0, scan(ranges)), frame="Level", gate=Gate(1.0, 8.0))
    assert len(near) == 1


def test_beams_follow_the_mirror():
    beams = beams_from_scans(
        np.array([T0_NS, T0_NS + 20 * NS_PER_MS]),
        np.ones(5),
        np.array([0, 3, 5]),
        np.array([0.0, 0.5]),
        np.array([np.pi / 2, np.pi]),
        mirror_rate=75.0,
    )
    np.testing.assert_allclose(beams.angle, [0, np.pi / 2, np.pi, 0.5, 0.5 + np.pi])
    quarter = TURN_S / 4 * 1e9
    np.testing.assert_allclose(
        beams.t_ns - T0_NS, [0, quarter, 2 * quarter, 20 * NS_PER_MS, 20 * NS_PER_MS + 2 * quarter], atol=1
    )


def test_the_scans_of_a_sweep_keep_their_times():
    # Four scans of 2 beams, 1 degree apart and 13 ms after each other; beam j of the sweep is of scan j % 4.
    beams = beams_from_scans(
        np.array([T0_NS]),
        np.ones(8),
        np.array([0, 8]),
        np.zeros(1),
        np.radians([0.25]),
        end_ns=np.array([T0_NS + 39 * NS_PER_MS]),
        scans=4,
        mirror_rate=75.0,
    )
    np.testing.assert_allclose(np.degrees(beams.angle), np.arange(8) * 0.25)
    degree = TURN_S / 360 * 1e9
    expected = [k * 13 * NS_PER_MS + j * degree for j in range(2) for k in range(4)]
    np.testing.assert_allclose(beams.t_ns - T0_NS, expected, atol=1)


def test_without_a_mirror_rate_a_scan_has_one_time():
    beams = beams_from_scans(np.array([T0_NS]), np.ones(3), np.array([0, 3]), np.zeros(1), np.ones(1))
    np.testing.assert_array_equal(beams.t_ns, T0_NS)


def driving(stream: Stream) -> Recording:
    """North at 3 m/s from the origin, with a level laser at the body."""
    frames = FrameTree()
    frames.add_static("Body", "Level", np.eye(4))
    q = [0.0, 0, 0, 1]
    frames.add_moving("Navigation", "Body", [T0_NS, T0_NS + NS_PER_S], [[0, 0, 0.0], [3, 0, 0]], [q, q])
    return Recording("driving", (stream,), frames=frames, robot=ARGO)


def test_each_beam_is_placed_at_its_own_time():
    # 180 degrees of a mirror at 75 Hz take 1/150 s, in which the vehicle drives 20 mm.
    angles = np.radians(np.arange(-90, 91.0))
    cloud = derived_streams.cloud(
        driving(scan(np.full(181, 10.0), t_ns=T0_NS + NS_PER_S // 2, angles=angles))
    )
    np.testing.assert_allclose(cloud.points[0], [1.5, -10, 0], atol=1e-6)
    np.testing.assert_allclose(cloud.points[-1], [1.52, 10, 0], atol=1e-6)
    assert cloud.t_ns == T0_NS + NS_PER_S // 2
    assert cloud.fields["t_offset_ns"][-1] == pytest.approx(NS_PER_S / 150, abs=1)


def test_points_without_a_pose_of_the_vehicle_are_skipped():
    two = [scan(np.full(121, 5.0), t_ns=t).table for t in (T0_NS + NS_PER_S // 2, T0_NS + 2 * NS_PER_S)]
    late = Stream("Laser", LaserScan, pa.concat_tables(two), frame="Level")
    assert len(derived_streams.cloud(driving(late))) == 121
    assert len(derived_streams.cloud(driving(late), tolerance=1.5)) == 242
    with pytest.raises(StreamError, match="can be transformed to Navigation"):
        derived_streams.cloud(driving(scan(np.full(121, 5.0), t_ns=T0_NS + 2 * NS_PER_S)))


def test_streams_without_ranges_are_refused():
    battery = stream_of_values("Battery", np.array([T0_NS]), {"voltage": np.ones(1)}, type=Record)
    with pytest.raises(StreamError, match="no ranges"):
        derived_streams.cloud(standing(0.0, battery), ["Battery"])


def test_polar_points_lie_in_the_scan_plane():
    points = points_from_polar(np.full((2, 3), 2.0), np.radians([0.0, 90, 180]))
    assert points.shape == (2, 3, 3)
    np.testing.assert_allclose(points[1], [[2, 0, 0], [0, 2, 0], [-2, 0, 0]], atol=1e-12)


# As `tests/datasets/marulan/sample.py`, a vehicle that stands level at a known place and faces east.
NAV_STATE = "6151234.125 226123.5 -650.25 0 0 0 0 0 1.5707963267948966 0 0 0"
NAV = "".join(f"*1224199788.{ms} NAV_DATA {NAV_STATE} {sample.COVARIANCE}\n" for ms in (100, 300))


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / sample.DYNAMIC
    sample.write_file(folder / "Nav/NavQAsciiData.txt", NAV)
    sample.write_file(folder / "LaserPort/RangeBearingQAsciiData.txt", sample.LASER)
    sample.write_file(folder / "RadarRangeBearing/RangeBearingQAsciiData.txt", sample.RADAR)
    return folder


def test_a_dataset_as_it_is_read_makes_a_cloud(dataset: Path):
    rec = transect.open(dataset)
    assert rec.frames.parent_of("Body") == "Navigation"
    cloud = derived_streams.cloud(rec)
    assert len(cloud) == 5 + 4 + 4 + 4 + 5 - 1  # sample.LASER has one code 8191
    # The laser's origin: dX ahead is north 0.190857 turned to the east, dY = -0.548777 (port) is north.
    origin = np.array([6151234.125 + 0.548777, 226123.5 + 0.190857, -650.25 - 0.763776])
    np.testing.assert_allclose(
        np.linalg.norm(cloud.points - origin, axis=1)[:4], [1.0, 1.01, 1.02, 1.04], atol=1e-6
    )
    assert (cloud.points[:, 1] > origin[1]).all()  # it looks east


def test_lasers_and_radar_together(dataset: Path):
    cloud = derived_streams.cloud(transect.open(dataset), ["LaserPort", "RadarRangeBearing"])
    np.testing.assert_array_equal(cloud.fields["sensor"], [0] * 21 + [1] * 2)
    assert np.isnan(cloud.fields["intensity"][:21]).all()
    assert cloud.fields["intensity"][21:].tolist() == [55.5, 54.25]


def test_a_sweep_makes_the_points_of_its_scans(dataset: Path):
    scans, sweeps = transect.open(dataset), transect.open(dataset, sweeps=True)
    first_four = scans.slice(end="+53ms")
    a, b = (np.sort(derived_streams.cloud(r, ["LaserPort"]).points, axis=0) for r in (first_four, sweeps))
    np.testing.assert_allclose(a, b, atol=2e-5)  # angles are printed with six decimals
    assembled = assemble_sweeps(scans["LaserPort"])
    np.testing.assert_array_equal(
        derived_streams.cloud(scans, [assembled]).points, derived_streams.cloud(sweeps).points
    )
