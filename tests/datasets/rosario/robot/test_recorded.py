"""The models on a recording's streams."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.datasets.rosario.robot.drives import antenna, base, turned

from transect import robots
from transect.datasets.rosario.robot.comparison import antenna_track, compare
from transect.errors import StreamError
from transect.recording import Recording, Stream, stream_of_values
from transect.robots.ackermann import wheel_odometry
from transect.types import NavFix, Odometry, Pose, WheelState

WEEDER = robots.load("weeder")
START_NS = 1_514_301_955_465_000_000


def recording(*streams: Stream) -> Recording:
    return Recording("sequence01", streams, frames=WEEDER.frames, robot=WEEDER)


def wheels(speed: np.ndarray, steering: np.ndarray, **more: object) -> Stream:
    t_ns = START_NS + 10**8 * np.arange(len(speed))
    columns = {"wheel_velocity": np.column_stack([speed, speed]), "steering": steering, **more}
    name = "Odometry/Raw" if "telegram" in more else "Odometry"
    return stream_of_values(name, t_ns, columns, type=WheelState, frame="base_link")


def test_the_integrated_odometry_is_an_estimate_of_base_link() -> None:
    # 1 m/s for 10 s at 10 degrees to the left: a circle of 1.6 / tan(10 deg) = 9.0741 m, 1.10204 rad of it
    stream = wheel_odometry(recording(wheels(np.ones(101), np.full(101, math.radians(10)))), "paper")
    assert (stream.role, stream.type, stream.frame, stream.child) == (
        "estimate",
        Odometry,
        "odom",
        "base_link",
    )
    assert (stream.clock, stream.units["x"], stream.units["wz"]) == ("utc", "m", "rad/s")
    expected = [9.0741 * math.sin(1.10204), 9.0741 * (1 - math.cos(1.10204)), 0]
    np.testing.assert_allclose(stream[-1].value.position, expected, atol=1e-3)
    np.testing.assert_allclose(
        stream[-1].value.orientation, [0, 0, math.sin(0.55102), math.cos(0.55102)], atol=1e-4
    )
    np.testing.assert_allclose(stream[0].value.velocity, [1, 0, 0])


def test_the_two_forms_differ_in_how_they_take_the_steering() -> None:
    rec = recording(wheels(np.ones(2), np.full(2, 0.2)))
    rates = [wheel_odometry(rec, form)["wz"][0] for form in ("paper", "scripts")]
    np.testing.assert_allclose(rates, [math.tan(0.2) / 1.6, math.tan(0.19) / 1.6])


def test_the_raw_log_drives_straight_at_its_own_zero() -> None:
    # weeder.yaml: -5.67 units of -0.20 degrees, 1.134 degrees to the left
    raw = wheels(np.ones(3), np.full(3, math.radians(1.134)), telegram=["MOT 0"] * 3)
    assert wheel_odometry(recording(raw))["y"] == pytest.approx(0, abs=1e-12)


def test_the_cleaned_log_is_taken_where_both_are_there() -> None:
    raw = wheels(np.zeros(3), np.zeros(3), telegram=["MOT 0"] * 3)
    assert wheel_odometry(recording(raw, wheels(np.ones(3), np.zeros(3))))["x"][-1] == pytest.approx(0.2)


def test_samples_without_a_speed_are_left_out_and_counted() -> None:
    speed = np.ones(5)
    speed[2] = np.nan
    stream = wheel_odometry(recording(wheels(speed, np.zeros(5))))
    assert len(stream) == 4
    assert stream["x"][-1] == pytest.approx(0.4)
    assert stream.parsed.notes == ("Odometry: 1 samples without speed or steering are not integrated",)


def test_what_cannot_be_integrated_is_refused() -> None:
    with pytest.raises(StreamError, match="no wheels"):
        wheel_odometry(recording())
    joined = wheels(np.ones(4), np.zeros(4)).replace(seams=(2,))
    with pytest.raises(StreamError, match="joined"):
        wheel_odometry(recording(joined))


def test_a_robot_that_is_not_known_has_no_wheelbase() -> None:
    with pytest.raises(StreamError, match="which robot"):
        wheel_odometry(Recording("r", (wheels(np.ones(3), np.zeros(3)),)))


def fixes(separation: bool) -> Stream:
    columns = {"lat": np.radians([-32.952, -32.951]), "lon": np.radians([-60.663, -60.663])}
    columns |= {"alt": np.array([25.0, 26.0])} | (
        {"geoid_separation": np.full(2, 16.2)} if separation else {}
    )
    return stream_of_values("Gps/Fix", START_NS + 10**9 * np.arange(2), columns, type=NavFix, frame="gps")


def test_fixes_become_a_track_of_the_antenna_in_metres() -> None:
    track = antenna_track(fixes(separation=False))
    assert (track.type, track.role, track.frame, track.child) == (Pose, "derived", "enu", "gps")
    # One thousandth of a degree of latitude: 110.9 m (a degree at 33 degrees is 110.9 km).
    np.testing.assert_allclose(track.array("x", "y", "z"), [[0, 0, 0], [0, 110.91, 1]], atol=0.01)


def test_rosario_is_in_zone_20_south_and_heights_are_above_the_ellipsoid() -> None:
    track = antenna_track(fixes(separation=True), utm=True)
    assert track.frame == "utm 20S"
    # Zone 20 has its middle at 63 degrees west, 500 km east; 2.337 degrees of 93.5 km each are 218.5 km more.
    assert track["x"][0] == pytest.approx(718_500, abs=300)
    assert track["z"].tolist() == pytest.approx([41.2, 42.2])


def drive(clock: str, with_attitude: bool) -> Recording:
    """The drive in closed form as a recording: RTK of the antenna, and the odometry of base_link."""
    t = np.arange(450) * 0.2
    xyz = turned(antenna(t), 2.0, (7.0, -3.0, 100.0))
    truth = stream_of_values(
        "GroundTruth",
        START_NS + np.round(t * 1e9).astype(np.int64),
        dict(zip("xyz", xyz.T, strict=True)),
        type=Pose,
        role="truth",
        child="gps",
    )
    t = np.arange(950) * 0.1
    positions, heading = base(t)
    columns = dict(zip("xyz", positions.T, strict=True))
    if with_attitude:
        columns |= {"qx": 0 * t, "qy": 0 * t, "qz": np.sin(heading / 2), "qw": np.cos(heading / 2)}
    t_ns = 10**9 * np.arange(950) if clock == "index" else START_NS + np.round(t * 1e9).astype(np.int64)
    odometry = stream_of_values("Odometry", t_ns, columns, type=Odometry, clock=clock, child="base_link")
    return recording(truth, odometry)


@pytest.mark.parametrize("clock", ["index", "utc"])
@pytest.mark.parametrize("with_attitude", [True, False])
def test_a_comparison_shows_the_lever_arm_for_any_odometry(clock: str, with_attitude: bool) -> None:
    found = compare(drive(clock, with_attitude))
    # Times by correlation are good to hundredths of a second, at about 1 m/s.
    assert found.whole.rmse < 0.1
    assert found.turning.rmse < 0.1
    assert found.whole_at_base.rmse > 1.0
    assert found.turning_at_base.rmse > 0.5
    assert found.point == "gps"
    assert any("10 Hz" in note for note in found.notes) == (clock == "index")
    assert any("headings" in note for note in found.notes) == (not with_attitude)


def test_a_comparison_can_start_from_wheels_and_fixes() -> None:
    t_ns = START_NS + 10**8 * np.arange(100)
    columns = {
        "lat": np.radians(-32.952) + np.arange(100) * 0.1 / 6.355e6,  # 1 m/s to the north
        "lon": np.full(100, np.radians(-60.663)),
        "alt": np.full(100, 25.0),
    }
    gps = stream_of_values("Gps/Fix", t_ns, columns, type=NavFix, frame="gps")
    found = compare(recording(gps, wheels(np.ones(100), np.zeros(100))), "paper")
    assert found.odometry_m == pytest.approx(9.9)
    assert found.rtk_2d_m == pytest.approx(9.9, rel=0.01)
    assert "paper's form" in found.notes[0]


@pytest.mark.parametrize("missing", ["GroundTruth", "Odometry"])
def test_a_recording_without_one_of_the_two_is_refused(missing: str) -> None:
    whole = drive("utc", with_attitude=True)
    with pytest.raises(StreamError, match="RTK track" if missing == "GroundTruth" else "no wheels"):
        compare(whole.replace(streams=tuple(s for s in whole if s.name != missing)))


def test_clocks_that_differ_are_not_paired() -> None:
    whole = drive("utc", with_attitude=True)
    odometry = whole["Odometry"].replace(clock="device")
    with pytest.raises(StreamError, match="device clock"):
        compare(whole.replace(streams=(whole["GroundTruth"], odometry)))
