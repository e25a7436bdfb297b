"""Skid-steer odometry, against closed-form motion."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect import robots
from transect.datasets.marulan.robot import derived_streams
from transect.datasets.marulan.robot.odometry import SkidSteerDrive, fit_drive, motion_from_wheels
from transect.errors import GeometryError, TransectError
from transect.geometry import planar
from transect.recording import Recording, Robot, stream_of_values
from transect.types import Odometry, RigidBodyState

DRIVE = SkidSteerDrive(wheel_radius=0.3, track_width=2.0)
T0_NS = 1_224_199_788_000_000_000
RATES = st.floats(-5, 5)


def wheels_from_motion(
    speed: object, turn_rate: object, drive: SkidSteerDrive = DRIVE
) -> tuple[np.ndarray, ...]:
    """Return the angular velocities of the left and the right wheels, rad/s."""
    v, difference = np.asarray(speed, np.float64), np.asarray(turn_rate, np.float64) * drive.track_width / 2
    return (v + difference) / drive.wheel_radius, (v - difference) / drive.wheel_radius


def path_of(t_ns: np.ndarray, speed: object, turn_rate: object, start: object = (0, 0, 0)) -> np.ndarray:
    """Return the path that a speed and a turn rate make."""
    rates = np.column_stack([speed, np.zeros(len(t_ns)), turn_rate])
    return planar.integrate(planar.motions_from_rates(t_ns, rates), start)[: len(t_ns)]


def test_wheels_alike_drive_straight_and_opposite_ones_turn_on_the_spot():
    speed, turn_rate = motion_from_wheels([2.0, 2.0], [2.0, -2.0], DRIVE)
    np.testing.assert_allclose(speed, [0.6, 0.0])
    # The left side forward at 0.6 m/s, the right one back: (0.6 + 0.6) / 2 m, to starboard.
    np.testing.assert_allclose(turn_rate, [0.0, 0.6])


@given(RATES, RATES, st.floats(0.1, 1), st.floats(0.5, 4))
def test_motion_of_the_wheels_of_a_motion_is_that_motion(v: float, w: float, radius: float, track: float):
    drive = SkidSteerDrive(radius, track)
    again = motion_from_wheels(*wheels_from_motion(v, w, drive), drive)
    np.testing.assert_allclose(again, (v, w), atol=1e-12)


@given(st.floats(-2, 2), st.floats(-1, 1), st.lists(st.integers(1, 3_000), min_size=1, max_size=8))
def test_steady_motion_stays_on_its_circle_however_long_the_steps(v: float, w: float, steps: list[int]):
    t_ms = np.concatenate([[0], np.cumsum(steps)])
    path = path_of(T0_NS + t_ms * 1_000_000, np.full(len(t_ms), v), np.full(len(t_ms), w), (1.0, 2.0, 0.5))
    t = t_ms / 1e3
    if abs(w) < 1e-6:
        x, y = 1 + v * t * np.cos(0.5), 2 + v * t * np.sin(0.5)
    else:  # the circle through the start, tangent to the heading
        x = 1 + v / w * (np.sin(0.5 + w * t) - np.sin(0.5))
        y = 2 - v / w * (np.cos(0.5 + w * t) - np.cos(0.5))
    np.testing.assert_allclose(
        path, np.column_stack([x, y, 0.5 + w * t]), atol=1e-4 if abs(w) < 1e-6 else 1e-8
    )


def test_a_quarter_circle_to_starboard_by_hand():
    # 2 m radius, 90 degrees in one second, z down: from north to east, ending 2 m ahead and 2 m to starboard.
    path = path_of(np.array([0, 10**9]), [np.pi, np.pi], [np.pi / 2, np.pi / 2])
    np.testing.assert_allclose(path[1], [2, 2, np.pi / 2], atol=1e-12)


def wandering(n: int = 2000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, speeds and turn rates of a vehicle that turns to either side."""
    t = np.arange(n) * 0.1
    return t, 1.0 + 0.5 * np.sin(0.05 * t), 0.3 * np.sin(0.11 * t)


def test_radius_and_track_are_found_in_spite_of_slip_and_noise():
    rng = np.random.default_rng(2008)
    _, v, w = wandering()
    left, right = (v + w * 1.05) / 0.28, (v - w * 1.05) / 0.28  # radius 0.28 m, track 2.1 m, by hand
    left, right = (side + rng.normal(scale=0.05, size=len(v)) for side in (left, right))
    slips = rng.random(len(v)) < 0.15
    left[slips] *= 3.0
    fit = fit_drive(left, right, v, w)
    assert fit.drive.wheel_radius == pytest.approx(0.28, rel=0.05)
    assert fit.drive.track_width == pytest.approx(2.1, rel=0.05)
    clean = fit_drive(left[~slips], right[~slips], v[~slips], w[~slips])
    assert clean.drive.wheel_radius == pytest.approx(0.28, rel=0.005)
    assert clean.drive.track_width == pytest.approx(2.1, rel=0.01)
    # Wheels of 0.05 rad/s noise: 0.28 * 0.05 / sqrt(2) m/s of the mean, 0.28 * 0.05 * sqrt(2) / 2.1 rad/s.
    assert clean.speed_error == pytest.approx(0.0099, rel=0.15)
    assert clean.turn_error == pytest.approx(0.0094, rel=0.15)


def test_nan_samples_do_not_count():
    _, v, w = wandering()
    left, right = wheels_from_motion(v, w, DRIVE)
    left[::7], v[::11] = np.nan, np.nan
    fit = fit_drive(left, right, v, w)
    assert (fit.drive.wheel_radius, fit.drive.track_width) == pytest.approx((0.3, 2.0))


@pytest.mark.parametrize(
    ("v", "w", "swap", "message"),
    [
        (0.0, 0.3, False, "does not drive enough"),
        (1.0, 0.0, False, "does not turn enough"),
        (1.0, 0.3, True, "do not turn as"),
    ],
)
def test_a_drive_that_cannot_be_fitted_is_refused(v: float, w: float, swap: bool, message: str):
    speed, turn_rate = np.full(50, v), np.full(50, w)
    left, right = wheels_from_motion(speed, turn_rate, DRIVE)
    if swap:
        left, right = right, left
    with pytest.raises(GeometryError, match=message):
        fit_drive(left, right, speed, turn_rate)


def test_the_report_does_not_print_the_drive_and_a_users_copy_may():
    with pytest.raises(TransectError, match="wheel_radius and no track_width") as missing:
        SkidSteerDrive.of(robots.load("argo"))
    assert "fit_drive" in missing.value.hint
    robot = Robot("mine", constants={"drive": {"wheel_radius": 0.29, "track_width": 2.2}})
    assert SkidSteerDrive.of(robot) == SkidSteerDrive(0.29, 2.2)


def test_the_wheels_stand_as_far_apart_as_table_1_says():
    # Table 1: port front wheel at X = 112 cm, starboard front wheel at 269 cm.
    assert robots.load("argo").constants["drive"]["wheel_separation"] == pytest.approx(2.69 - 1.12)


@pytest.fixture
def circling() -> Recording:
    """A minute to starboard on a circle of 4 m, at 1 m/s, starting northwards; the wheels are DRIVE's."""
    w = 0.25
    t = np.arange(0, 60.001, 0.05)
    unknown = np.zeros(len(t))
    nav = {
        "x": 4 * np.sin(w * t),
        "y": 4 - 4 * np.cos(w * t),
        "z": unknown,
        "qx": unknown,
        "qy": unknown,
        "qz": np.sin(w * t / 2),
        "qw": np.cos(w * t / 2),
        "vx": np.cos(w * t),
        "vy": np.sin(w * t),
        "vz": unknown,
        "wx": unknown,
        "wy": unknown,
        "wz": np.full(len(t), w),
    }
    wheel = np.arange(1, 59, 0.1)
    left = {"angular_velocity": np.full(len(wheel), (1 + 0.25) / 0.3)}
    right = {"angular_velocity": np.full(len(wheel), (1 - 0.25) / 0.3)}
    stamps = T0_NS + np.rint(wheel * 1e9).astype(np.int64)
    streams = (
        stream_of_values("Nav", T0_NS + np.rint(t * 1e9).astype(np.int64), nav, type=RigidBodyState),
        stream_of_values("Payload/WheelLeft", stamps, left),
        stream_of_values("Payload/WheelRight", stamps + 1_000_000, right),
    )
    return Recording("circle", streams, robot=robots.load("argo"))


def test_a_recordings_drive_is_fitted_to_its_localisation(circling: Recording):
    drive = derived_streams.fit_drive(circling).drive
    assert (drive.wheel_radius, drive.track_width) == pytest.approx((0.3, 2.0), rel=1e-6)


def test_a_recordings_odometry_stays_on_its_circle(circling: Recording):
    path = derived_streams.odometry(circling, DRIVE)
    assert (path.type, path.role, path.frame, path.child) == (Odometry, "estimate", "Odometry", "Body")
    t = (path.t_ns - path.t_ns[0]) / 1e9
    np.testing.assert_allclose(path["x"], 4 * np.sin(0.25 * t), atol=1e-9)
    np.testing.assert_allclose(path["y"], 4 - 4 * np.cos(0.25 * t), atol=1e-9)
    np.testing.assert_allclose(path["qz"], np.sin(0.125 * t), atol=1e-9)
    np.testing.assert_allclose(path["vx"], 1)
    assert path.units["wz"] == "rad/s"
    assert path.parsed.notes == ()
    # The first sample of the right side comes after that of the left, which is left out.
    assert path.t_ns[0] == T0_NS + 1_100_000_000


def test_odometry_without_a_known_drive_says_what_to_do(circling: Recording):
    with pytest.raises(TransectError, match="wheel_radius"):
        derived_streams.odometry(circling)


def test_gaps_in_the_wheels_are_counted(circling: Recording):
    def late(name: str) -> np.ndarray:
        t = circling[name].t_ns
        return (t < T0_NS + 20 * 10**9) | (t >= T0_NS + 23 * 10**9)

    streams = tuple(s.take(late(s.name)) if s.name != "Nav" else s for s in circling.streams)
    path = derived_streams.odometry(circling.replace(streams=streams), DRIVE)
    assert path.parsed.notes == ("1 steps of the wheels are longer than 1 s",)
