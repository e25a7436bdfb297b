"""Odometry, wheel speeds, slip and manoeuvres of recordings in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from tests.datasets.ameds.robot.circle import circle_wheels
from tests.datasets.ameds.robot.recordings import (
    METRES_PER_TICK,
    NS,
    START_NS,
    circle,
    encoders,
    planar,
    times,
)

from transect import robots
from transect.datasets.ameds.robot import locomotion
from transect.errors import StreamError
from transect.recording import Recording, join, stream_of_values
from transect.types import Twist

ROBOT = robots.load("interact")


@pytest.mark.parametrize("by", ["velocity", "ticks"])
def test_odometry_of_a_circle_returns_to_its_start(by: locomotion.By):
    # Radius 5 m at 0.25 rad/s: after 2 pi / 0.25 s once round.
    rec = circle(2 * np.pi / 0.25, radius=5.0, omega=0.25)
    found = locomotion.wheel_odometry(rec, by=by)
    elapsed = (found.t_ns - START_NS) / NS
    expected = 5.0 * np.column_stack([np.sin(0.25 * elapsed), 1 - np.cos(0.25 * elapsed)])
    np.testing.assert_allclose(found.array("x", "y"), expected, atol=5e-3)  # over 31 m, in whole ticks
    assert (found.role, found.frame, found.child) == ("estimate", "odom", "Platform")
    half = len(found) // 2
    yaw = 2 * np.arctan2(found["qz"][half], found["qw"][half])
    assert yaw == pytest.approx(0.25 * elapsed[half], abs=2e-3)


def test_its_twist_is_that_of_the_platform():
    rec = circle(5.0)
    found = locomotion.wheel_odometry(rec)
    recorded = locomotion.planar_twist(rec["Platform/2DVelocity"], found.t_ns)
    assert recorded.shape == (251, 3)
    np.testing.assert_allclose(found.array("vx", "vy", "wz"), recorded, rtol=0, atol=1e-9)


def test_nothing_is_driven_across_a_seam():
    first, second = circle(2.0), circle(2.0, start_ns=START_NS + 60 * NS)
    both = locomotion.wheel_odometry(join([first, second]))
    alone = locomotion.wheel_odometry(first)
    seam = both.seams[0]
    assert both["x"][seam] == both["x"][seam - 1] == alone["x"][-1]
    assert np.isnan(both["vx"][seam])
    # The second goes on from there as it went by itself.
    assert np.hypot(*(both.array("x", "y")[-1] - both.array("x", "y")[seam])) == pytest.approx(
        np.hypot(*alone.array("x", "y")[-1])
    )


def test_the_length_of_a_tick_is_that_of_the_made_up_wheel():
    assert locomotion.tick_length(circle(5.0)).metres == pytest.approx(METRES_PER_TICK, rel=2e-3)


def test_without_slip_the_ratio_is_zero_and_a_slow_platform_has_half():
    rec = circle(2.0)
    np.testing.assert_allclose(locomotion.wheel_slip(rec)["slip_ratio"], 0, atol=1e-9)
    slow = planar("Platform/2DTwistEstimate", times(2.0, 100), (0.25, 0, 0.05))
    halved = rec.replace(streams=(*[s for s in rec if s.name != slow.name], slow))
    np.testing.assert_allclose(locomotion.wheel_slip(halved)["slip_ratio"], 0.5, atol=1e-9)


def ins(rec: Recording, velocity: tuple[float, ...], rate: tuple[float, ...]) -> Recording:
    """The recording, and what a navigation unit says in its own axes: x forward, y right, z down."""
    t_ns = rec["Platform/2DTwistEstimate"].t_ns
    kinds = (("Gnss/BodyVelocity", ("vx", "vy", "vz"), velocity),
             ("Gnss/BodyAngularVelocity", ("wx", "wy", "wz"), rate))  # fmt: skip
    streams = [
        stream_of_values(
            name, t_ns, {k: np.full(len(t_ns), v) for k, v in zip(keys, values, strict=True)}, type=Twist
        )
        for name, keys, values in kinds
    ]
    return rec.replace(streams=(*rec.streams, *streams))


def test_slip_is_told_by_the_navigation_unit_and_not_by_the_wheels():
    # The wheels turn for 0.5 m/s on a circle of 5 m, and their twist says so; the unit goes half as fast.
    rec = ins(circle(2.0), (0.25, 0.0, 0.0), (0.0, 0.0, -0.05))
    np.testing.assert_allclose(locomotion.wheel_slip(rec)["slip_ratio"], 0.5, atol=1e-9)
    by_wheels = locomotion.wheel_slip(rec, twist="Platform/2DVelocity")
    np.testing.assert_allclose(by_wheels["slip_ratio"], 0.0, atol=1e-9)
    report = locomotion.slip_report(rec)
    assert report.source == "Gnss/BodyVelocity and Gnss/BodyAngularVelocity"
    assert [row.wheel for row in report.wheels] == [1, 2, 3, 4, 0]
    assert [row.lost for row in report.wheels] == pytest.approx([0.5] * 5)


def test_where_the_rover_pitches_the_ground_moves_under_it():
    # Nose up by 0.1 rad/s about an axis through the unit: 81 mm + 135 mm + 200 mm below it, 4 cm/s.
    rec = ins(circle(2.0, 1e6, 0.5e-6), (0.5, 0.0, 0.0), (0.0, 0.1, 0.0))
    found = locomotion.wheel_slip(rec)["ground"]
    np.testing.assert_allclose(found, 0.5 + 0.1 * (0.081 + 0.135 + 0.2), atol=1e-4)


def test_a_recording_without_a_motion_over_the_ground_says_what_it_needs():
    rec = circle(1.0)
    with pytest.raises(StreamError, match="over the ground") as error:
        locomotion.wheel_slip(rec.replace(streams=(rec["MotorEncoders"],)))
    assert "--twist" in str(error.value)
    with pytest.raises(StreamError, match="no wheel encoders of Interact"):
        locomotion.slip_report(rec.replace(streams=(rec["2DVelocity"],)))


def test_beyond_the_twist_slip_is_unknown():
    rec = circle(2.0)
    short = planar("Platform/2DTwistEstimate", times(1.0, 100), (0.5, 0, 0.1))
    found = locomotion.wheel_slip(rec.replace(streams=(rec["MotorEncoders"], short)))
    assert np.isfinite(found["slip_ratio"][:50]).all()
    assert np.isnan(found["slip_ratio"][52:]).all()


def test_both_tracks_of_figure_8_agree_without_slip():
    t_ns, tracks = locomotion.wheel_tracks(circle(10.0))
    assert tracks.odometry.shape == (len(t_ns), 4, 2)
    np.testing.assert_allclose(tracks.odometry, tracks.inverse, atol=1e-4)


def test_manoeuvres_are_named_with_their_times():
    steering, speeds = circle_wheels(5.0, 0.1)
    t_ns = times(2.0, 50)
    straight = encoders(t_ns, np.zeros(4), np.full(4, 0.3))
    left = encoders(t_ns + 3 * NS, steering, speeds)
    rec = join([Recording("a", (straight,), robot=ROBOT), Recording("b", (left,), robot=ROBOT)])
    found = locomotion.steered_manoeuvres(rec)
    assert [(i.name, i.seconds) for i in found] == [("straight", 2), ("left turn", 2)]
    assert found[1].start_ns == START_NS + 3 * NS


def test_a_wheel_without_readings_does_not_stop_the_odometry():
    stream = circle(2.0)["Platform/MotorEncoders"]
    speeds = stream["wheel_velocity"].copy()
    speeds[10:, 1] = np.nan
    columns = {name: stream[name] for name in stream.columns} | {"wheel_velocity": speeds}
    damaged = stream_of_values(stream.name, stream.t_ns, columns, type=stream.type)
    found = locomotion.wheel_odometry(Recording("r", (damaged,)))
    np.testing.assert_allclose(found["vx"], 0.5, atol=1e-9)


def test_an_empty_stream_of_encoders_is_an_empty_odometry():
    empty = circle(1.0)["Platform/MotorEncoders"].between(0, 1)
    assert len(locomotion.wheel_odometry(Recording("r", (empty,)))) == 0
