"""Table 6 of document 000 for tracks whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect import robots
from transect.errors import GeometryError, StreamError
from transect.evaluation.positions.streams import position_stream
from transect.evaluation.traverse import measure, total, traverse_of
from transect.recording import Recording, Stream, join, stream_of_values
from transect.types import NavFix, Odometry, Pose, Twist

NS = 10**9
T0_NS = 1_657_013_071 * NS
LANDER = np.array([np.radians(37.72351), np.radians(15.00668), 2639.838])
EARTH_RADIUS_M = 6378137.0


def seconds(n: int, rate: float = 10.0, start: int = T0_NS) -> np.ndarray:
    return start + (np.arange(n) * (NS / rate)).astype(np.int64)


def line(n: int, step: float, rise: float = 0.0) -> np.ndarray:
    return np.column_stack([np.arange(n) * step, np.zeros(n), np.arange(n) * rise])


def fixes(
    t_ns: np.ndarray, geodetic: np.ndarray, fix: list[str] | None = None, **columns: np.ndarray
) -> Stream:
    parts = dict(zip(("lat", "lon", "alt"), geodetic.T, strict=True)) | columns
    return stream_of_values("Gnss/Pose", t_ns, parts | ({"fix": fix} if fix else {}), type=NavFix)


def north(n: int, metres: float, rise: float = 0.0) -> np.ndarray:
    """Positions on the meridian of the lander, `metres` apart; radius of curvature worked out from WGS84."""
    e2 = 0.00669437999014
    radius = EARTH_RADIUS_M * (1 - e2) / (1 - e2 * np.sin(LANDER[0]) ** 2) ** 1.5 + LANDER[2]
    steps = np.arange(n)[:, None]
    return LANDER + steps * np.array([metres / radius, 0.0, rise])


# Arrays


def test_a_straight_line_at_constant_speed():
    # 100 steps of 3 cm at 10 Hz, and 4 cm up each: 5 cm in 3-D.
    found = measure(seconds(101), line(101, 0.03, 0.04))
    assert found.length_m == pytest.approx(5.0)
    assert (found.duration_s, found.moving_s) == (10.0, 10.0)
    assert found.moving_m == pytest.approx(5.0)


def test_a_stop_counts_in_the_duration_alone():
    # 10 s at 0.3 m/s, 20 s of rest, 10 s at 0.3 m/s.
    x = np.concatenate([np.arange(101) * 0.03, np.full(199, 3.0), 3.0 + np.arange(101) * 0.03])
    found = measure(seconds(401), np.column_stack([x, np.zeros((401, 2))]))
    assert (found.length_m, found.duration_s) == (pytest.approx(6.0, rel=1e-4), 40.0)
    assert found.moving_s == pytest.approx(20, abs=1.0)
    assert found.moving_m == pytest.approx(6.0, rel=1e-4)


def test_noise_while_standing_is_no_way():
    rng = np.random.default_rng(6)
    noise = rng.normal(0, 0.008, (3000, 3))  # Table 1: 8 mm; here white, at 100 Hz
    found = measure(seconds(3000, 100), noise)
    assert (found.length_m, found.moving_m, found.moving_s) == (0.0, 0.0, 0.0)
    assert found.steps_m > 30  # what a plain sum of steps makes of it


def test_a_seam_is_not_driven():
    t_ns = np.concatenate([seconds(11), seconds(11, start=T0_NS + 60 * NS)])
    places = np.concatenate([line(11, 0.1), np.array([1000.0, 0, 0]) + line(11, 0.1)])
    found = measure(t_ns, places, seams=(11,))
    assert (found.length_m, found.duration_s) == (pytest.approx(2.0), pytest.approx(2.0))
    bridged = measure(t_ns, places)
    assert bridged.length_m == pytest.approx(1001.0, abs=0.1)


def test_unmeasured_positions_are_bridged_by_a_straight_line():
    places = line(101, 0.03)
    places[40:60] = np.nan
    assert measure(seconds(101), places).length_m == pytest.approx(3.0)


def test_slow_sampling_is_judged_sample_by_sample():
    # Every 10 s: 2 m, nothing, 2 m.
    found = measure(seconds(4, 0.1), np.array([[0, 0, 0], [2, 0, 0], [2, 0, 0], [4, 0, 0.0]]))
    assert (found.moving_m, found.moving_s) == (4.0, 20.0)


@given(st.integers(2, 300), st.floats(0.1, 2.0), st.floats(0.06, 3.0))
def test_moving_never_exceeds_the_whole(n: int, rate_hz: float, speed: float):
    found = measure(seconds(n, rate_hz * 10), line(n, speed / (rate_hz * 10)))
    assert found.moving_m <= found.length_m + 1e-9
    assert found.moving_s <= found.duration_s + 1e-9
    assert found.moving_m == pytest.approx(found.length_m, rel=1e-6)


def test_nothing_and_one_sample_are_no_way():
    assert measure(np.zeros(0, np.int64), np.zeros((0, 3))).length_m == 0
    assert measure([T0_NS], [[1.0, 2, 3]]).duration_s == 0
    with pytest.raises(GeometryError, match="equally many"):
        measure([T0_NS], np.zeros((2, 3)))


# Recordings


def test_geodetic_positions_on_a_meridian():
    # 100 steps of 0.3 m north and 4 cm up: sqrt(0.3^2 + 0.04^2) each.
    rec = Recording("r", (fixes(seconds(101, 1.0), north(101, 0.3, 0.04)),))
    found = traverse_of(rec)
    assert found.length_m == pytest.approx(100 * np.hypot(0.3, 0.04), abs=1e-3)
    assert found.height_m == pytest.approx(4.0)
    assert found.duration_s == 100.0
    assert found.mean_speed == pytest.approx(np.hypot(0.3, 0.04), abs=1e-5)
    assert found.rtk is None


@pytest.mark.parametrize(("rtk", "covered"), [(75, True), (50, True), (25, False)])
def test_coverage_is_the_fraction_of_rtk_fixes(rtk: int, covered: bool):
    fix = ["rtk fixed", "rtk float"] * (rtk // 2) + ["rtk fixed"] * (rtk % 2) + ["3d"] * (100 - rtk)
    found = traverse_of(Recording("r", (fixes(seconds(100), north(100, 0.1), fix),)))
    assert (found.rtk, found.covered) == (rtk / 100, covered)


def test_a_nav_sat_fix_does_not_know_rtk():
    kind = np.ones(10, np.int64)
    rec = Recording("r", (fixes(seconds(10), north(10, 0.1), ["3d"] * 10, position_covariance_type=kind),))
    assert traverse_of(rec).rtk is None


def test_positions_without_a_fix_are_left_out():
    geodetic = north(101, 0.3)
    geodetic[50] = 0.0
    geodetic[60, 0] = 37.7  # degrees
    found = traverse_of(Recording("r", (fixes(seconds(101), geodetic),)))
    assert found.length_m == pytest.approx(30.0, abs=1e-3)
    assert found.samples == 99


def test_joined_traverses_add_up_without_the_way_between():
    first = Recording("a", (fixes(seconds(101), north(101, 0.3)),))
    second = Recording(
        "b", (fixes(seconds(101, start=T0_NS + 90 * NS), north(101, 0.3) + np.array([0, 0, 50])),)
    )
    found = traverse_of(join([first, second]))
    assert (found.parts, found.duration_s) == (2, 20.0)
    assert found.length_m == pytest.approx(60.0, abs=1e-2)
    assert found.height_m == pytest.approx(50.0)


def pose(name: str, role: str, frame: str, n: int = 11, z: float = 0.0, start: int = T0_NS) -> Stream:
    places = line(n, 0.1)
    columns = {"x": places[:, 0], "y": places[:, 1], "z": np.full(n, z)}
    return stream_of_values(name, seconds(n, start=start), columns, type=Pose, role=role, frame=frame)


def test_the_receiver_goes_before_odometry_and_truth_is_never_taken():
    truth, gps = pose("gt", "truth", "map"), fixes(seconds(50), north(50, 0.1))
    wheels = stream_of_values("odo", seconds(90), {"x": np.zeros(90), "y": np.zeros(90)}, type=Odometry)
    assert position_stream(Recording("r", (wheels, gps, truth))).name == "Gnss/Pose"
    assert position_stream(Recording("r", (wheels, truth))).name == "odo"
    with pytest.raises(StreamError, match="no measured positions") as error:
        position_stream(Recording("r", (truth,)))
    assert "--stream gt" in str(error.value)
    assert traverse_of(Recording("r", (truth,)), stream="gt").role == "truth"


def test_a_receiver_without_rtk_and_velocities_comes_after_odometry():
    gps = fixes(seconds(50), north(50, 0.1), ["3d"] * 50)
    wheels = stream_of_values("odo", seconds(90), {"x": np.zeros(90), "y": np.zeros(90)}, type=Odometry)
    assert position_stream(Recording("r", (wheels, gps))).name == "odo"
    columns = {"vx": np.full(50, 1.0), "vy": np.zeros(50), "vz": np.zeros(50)}
    ned = stream_of_values("Gnss/NedVelocity", seconds(50), columns, type=Twist, frame="NED")
    found = traverse_of(Recording("r", (wheels, gps, ned)))
    assert (found.stream, found.velocities) == ("Gnss/Pose", "Gnss/NedVelocity")
    assert found.length_m == pytest.approx(4.9, rel=1e-3)


def test_speeds_and_turn_rates_alone_are_integrated():
    # A quarter of a circle of 4 m in 20 s.
    n = 201
    rates = {"vx": np.full(n, np.pi / 10), "vy": np.zeros(n), "wz": np.full(n, np.pi / 40)}
    found = traverse_of(Recording("r", (stream_of_values("odo", seconds(n), rates, type=Odometry),)))
    assert (found.length_m, found.dimensions) == (pytest.approx(2 * np.pi, rel=1e-3), 2)


def test_a_camera_s_pose_in_the_rover_is_no_position():
    robot = robots.load("interact")
    rec = Recording("r", (pose("MainCam/PoseEstimate", "derived", "Origin"),), robot=robot)
    with pytest.raises(StreamError, match="no measured positions"):
        traverse_of(rec)
    planar = pose("Platform/2DPoseEstimate", "derived", "NWU", z=np.nan)
    found = traverse_of(rec.replace(streams=(*rec.streams, planar)))
    assert (found.stream, found.dimensions) == ("Platform/2DPoseEstimate", 2)
    assert found.length_m == pytest.approx(1.0)
    assert np.isnan(found.height_m)


def test_without_times_there_is_a_length_and_no_speed():
    untimed = pose("odo", "measurement", "map").replace(clock="index")
    found = traverse_of(Recording("r", (untimed,)))
    assert found.length_m == pytest.approx(1.0)
    assert np.isnan([found.duration_s, found.mean_speed, found.moving_speed]).all()


def test_heights_of_joined_local_tracks_are_not_compared():
    first, second = (
        pose("p", "derived", "map", z=z, start=T0_NS + s * NS) for z, s in ((0.0, 0), (100.0, 60))
    )
    assert traverse_of(join([Recording("a", (first,)), Recording("b", (second,))])).height_m == 0.0


def test_a_stream_without_positions_is_refused_by_name():
    bare = stream_of_values("v", seconds(3), {"vx": np.zeros(3)}, type=Odometry)
    with pytest.raises(StreamError, match="v has no positions"):
        traverse_of(Recording("r", (bare,)), stream="v")
    with pytest.raises(StreamError, match="no measured position"):
        traverse_of(Recording("r", (fixes(seconds(3), np.full((3, 3), np.nan)),)))


def test_the_total_of_table_6_sums_lengths_and_durations():
    # Document 000, Table 6: lengths sum to 2054.8 m and durations to 99:09.
    metres = [329.8, 195.6, 202.8, 239.1, 210.9, 134.1, 191.7, 304.2, 246.6]
    minutes = ["25:02", "08:55", "08:46", "14:44", "07:26", "09:31", "09:39", "08:26", "06:40"]
    durations = [60 * int(text[:2]) + int(text[3:]) for text in minutes]
    row = traverse_of(Recording("r", (pose("p", "derived", "map"),)))
    rows = [replace(row, length_m=m, duration_s=s) for m, s in zip(metres, durations, strict=True)]
    found = total(rows)
    assert found.length_m == pytest.approx(2054.8)
    assert found.duration_s == 99 * 60 + 9
    assert np.isnan(found.height_m)
    with pytest.raises(GeometryError, match="no traverses"):
        total([])


def test_the_total_weighs_coverage_by_samples():
    covered = traverse_of(Recording("a", (fixes(seconds(30), north(30, 0.1), ["rtk fixed"] * 30),)))
    not_covered = traverse_of(Recording("b", (fixes(seconds(90), north(90, 0.1), ["3d"] * 90),)))
    assert total([covered, not_covered]).rtk == pytest.approx(0.25)


def test_a_clock_that_was_set_back_does_not_lengthen_the_way():
    t_ns = np.concatenate(
        [seconds(11), seconds(11) + NS // 2]
    )  # the second half starts before the first ends
    found = measure(t_ns, line(22, 0.1))
    assert found.length_m == pytest.approx(2.1)
