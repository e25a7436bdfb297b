"""A day of the weeding robot: what it wrote opens again and agrees with what was true, to its noise."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

import transect
from transect.base.clocks import decimal_from_ns
from transect.datasets.rosario import world as rosario
from transect.datasets.rosario.world import sensors
from transect.errors import UsageError
from transect.geometry import camera as lens
from transect.geometry import geodesy
from transect.recording import Recording
from transect.simulation.day import Day, WorldOptions, simulate, write_day
from transect.simulation.textures import tile

SEED = 3
SMALL = WorldOptions(seconds=1.2, seed=SEED, scale=0.2)
NO_IMAGES = ("Imu", "Gps/*", "Odometry", "GroundTruth")
NS = 10**9
RIM_M_S_PER_RPM = np.pi * 0.57 / 60
"""m/s per turn a minute (4.6)."""
WHEELBASE, STEERING_LIMIT = 1.6, np.radians(19)
"""4.6."""
IMU_SAMPLE_COUNT = 426
"""Samples of the imu, 3 s."""
ANTENNA = np.array([1.8, -0.030, 1.593])
"""Table 1."""


@pytest.fixture(scope="module")
def small() -> Day:
    return simulate("rosario", SMALL)


@pytest.fixture(scope="module")
def written(small: Day, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rosario") / "day"
    said = write_day(small, folder)
    assert said == ()
    return folder


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Three minutes without pictures, two turns among them, as they were written."""
    day = simulate("rosario", WorldOptions(seconds=180.0, seed=SEED, streams=NO_IMAGES))
    folder = tmp_path_factory.mktemp("rosario") / "long"
    write_day(day, folder)
    return transect.open(folder)


@pytest.fixture(scope="module")
def full() -> Day:
    return simulate("rosario", WorldOptions(seconds=1.5, seed=SEED, conditions={"depth": "true"}))


def likely(squares: float, freedom: int) -> bool:
    """Whether a sum of squares of normal deviates is one that happens (but for 1 in 5000)."""
    low, high = chi2.ppf([1e-4, 1 - 1e-4], freedom)
    return bool(low < squares < high)


def seconds_of(stream: transect.Stream, first_ns: int = rosario.START_NS) -> np.ndarray:
    return (stream.t_ns - first_ns) / NS


def truth_at(recording: Recording, t_ns: np.ndarray) -> tuple[np.ndarray, Rotation]:
    """Place (n, 3) and attitude of base_link."""
    truth = recording["truth/trajectory"].interpolate(t_ns)
    place = np.column_stack([truth[axis] for axis in "xyz"])
    return place, Rotation.from_quat(np.column_stack([truth[q] for q in ("qx", "qy", "qz", "qw")]))


# What was written


def test_the_written_folder_opens_and_holds_the_same(small: Day, written: Path) -> None:
    again = transect.open(written)
    assert again.format == "rosario"
    assert not again.losses
    for stream in small.recording:
        read = again[stream.name]
        assert (read.type, read.role, read.frame, read.tag) == (
            stream.type, stream.role, stream.frame, stream.tag,
        )  # fmt: skip
        np.testing.assert_array_equal(read.t_ns, stream.t_ns)
        for name in set(stream.columns) - {"fix", "vz"}:
            np.testing.assert_allclose(
                read[name], stream[name], rtol=1e-12, atol=6e-5, err_msg=f"{stream.name} {name}"
            )
    assert again["Gps/Fix"]["fix"] == ["rtk fixed"] * len(again["Gps/Fix"])


def test_the_calibration_file_carries_frames_cameras_and_offsets(small: Day, written: Path) -> None:
    again = transect.open(written)
    for child in ("imu", "gps", "left_camera", "right_camera"):
        read, made = (r.frames.lookup("base_link", child) for r in (again, small.recording))
        np.testing.assert_allclose(read, made, atol=1e-12)
    for side in ("left", "right"):
        assert again.cameras[side].same_as(small.recording.cameras[side], 1e-12)
    assert again["Imu"].meta["gyro_offset"] == pytest.approx(list(rosario.sensors.GYRO_OFFSET))
    across = again.frames.lookup("left_camera", "right_camera")[:3, 3]
    assert np.linalg.norm(across) == pytest.approx(0.1187)


def test_pictures_have_the_size_that_was_asked_for_and_read_back_as_rendered(
    small: Day, written: Path
) -> None:
    sample = small.recording["Zed/Right"][7]
    image = transect.open(written)["Zed/Right"][7].value
    assert image.data.shape == (75, 134, 3)
    rendered = sample.value.data
    shown = image.data if image.mode == "rgb" else image.data[..., ::-1]
    np.testing.assert_array_equal(shown, rendered)


def test_truth_is_attached_with_slip_biases_and_the_field(small: Day, written: Path) -> None:
    again = transect.open(written)
    assert again["truth/trajectory"].timing.rate == pytest.approx(100.0)
    assert again["truth/slip"].t_ns.tolist() == again["truth/trajectory"].t_ns.tolist()
    assert len(again["truth/imu_bias"]) == len(again["Imu"])
    dem = again["truth/dem"][0].value.layers["elevation"]
    assert dem.shape == small.truth.maps["dem"].layers["elevation"].shape
    place, _ = truth_at(again, again["Gps/Fix"].t_ns)
    assert np.abs(place[:, 2]).max() < 0.5


def test_the_true_motion_is_not_in_the_world_of_the_ground_truth(written: Path) -> None:
    """One begins where the antenna began, the other where the field is (4.7): their names must differ."""
    day = transect.open(written)
    assert (day["truth/trajectory"].frame, day["GroundTruth"].frame) == ("SimulatedWorld", "world")
    assert day["truth/dem"].frame == "SimulatedWorld"


def test_another_seed_gives_another_day(small: Day) -> None:
    other = simulate("rosario", WorldOptions(seconds=1.2, seed=SEED + 1, streams=NO_IMAGES))
    assert not np.allclose(other.recording["Imu"]["acc_x"], small.recording["Imu"]["acc_x"])
    assert not np.allclose(other.recording["Odometry"]["steering"], small.recording["Odometry"]["steering"])


# What a user may ask for


def test_streams_are_limited_to_what_was_asked_for() -> None:
    day = simulate("rosario", WorldOptions(seconds=1.0, seed=SEED, streams=("Gps/*",)))
    assert [s.name for s in day.recording] == ["Gps/Fix", "Gps/Velocity"]


@pytest.mark.parametrize(
    ("conditions", "hint"), [({"rain": "1"}, "no condition 'rain'"), ({"rtk": "none"}, "rtk cannot be")]
)
def test_unknown_conditions_are_refused(conditions: dict[str, str], hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        simulate("rosario", WorldOptions(conditions=conditions))


def test_rounds_return_to_the_same_places_in_the_same_direction() -> None:
    options = WorldOptions(seconds=170.0, seed=SEED, streams=("Gps/Fix",), conditions={"route": "round"})
    motion = simulate("rosario", options).truth.motion
    begin = motion.position[0]
    later = motion.t_ns - motion.t_ns[0] > 40 * NS
    back = int(np.argmin(np.where(later, np.linalg.norm(motion.position - begin, axis=1), np.inf)))
    assert np.linalg.norm(motion.position[back] - begin) < 0.4
    turned = Rotation.from_quat(motion.quaternion[0]).inv() * Rotation.from_quat(motion.quaternion[back])
    assert turned.magnitude() < np.radians(5)
    assert np.ptp(motion.position[:back, 1]) == pytest.approx(10.4, abs=0.3)


@pytest.mark.parametrize(("track", "aside"), [("again", 0.0), ("beside", 0.25), ("rows", 1.04)])
def test_another_day_drives_the_same_round_in_its_own_way(track: str, aside: float) -> None:
    first, other = (
        simulate(
            "rosario",
            WorldOptions(
                seconds=12.0, seed=SEED, streams=("Gps/Fix",), conditions={"route": "round", "track": each}
            ),
        ).truth.motion.position
        for each in ("first", track)
    )
    assert other[0, 1] - first[0, 1] == pytest.approx(aside, abs=0.01)
    assert np.abs(other - first).max() > 0.3


def test_another_plot_is_other_soil() -> None:
    lands = [
        rosario._make_world(WorldOptions(1.0, seed), {"route": "round", "track": "first"}).land
        for seed in (3, 4)
    ]
    first, second = (tile(land.ground, land.texture).texels.astype(float) for land in lands)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.1


def test_visitors_stand_in_the_plot() -> None:
    def look(visitors: str) -> np.ndarray:
        asked = {"route": "round", "visitors": visitors}
        day = simulate("rosario", WorldOptions(1.0, SEED, 0.25, ("Zed/Left",), asked))
        return np.asarray(day.recording["Zed/Left"].at("+0s").payload.data, float)

    changed = np.abs(look("none") - look("some")).max(axis=-1) > 20
    assert 0.002 < changed.mean() < 0.2


def test_a_day_of_no_length_is_refused() -> None:
    with pytest.raises(UsageError, match="too short"):
        simulate("rosario", WorldOptions(seconds=0.1))


def test_rtk_gaps_are_gaps_and_their_deviations_are_told() -> None:
    options = WorldOptions(seconds=16.0, seed=SEED, streams=("Gps/*",), conditions={"rtk": "gaps"})
    fixes = simulate("rosario", options).recording["Gps/Fix"]
    lost = np.isnan(fixes["lat"])
    # 4 s, as long as the gap in the real sequence 04
    assert lost.sum() == 20
    assert {"rtk fixed", "rtk float", "none"} == set(fixes["fix"])
    assert np.isnan(fixes["std_north"][lost]).all()


# What agrees with the truth


def test_fixes_agree_with_the_antenna_within_their_deviations(long: Recording) -> None:
    fixes = long["Gps/Fix"]
    place, turn = truth_at(long, fixes.t_ns)
    antenna = place + turn.apply(ANTENNA)
    points = np.column_stack([fixes["lat"], fixes["lon"], fixes["alt"] + fixes["geoid_separation"]])
    error = geodesy.local_from_geodetic(points, sensors.ORIGIN) - antenna
    deviation = np.column_stack([fixes["std_east"], fixes["std_north"], fixes["std_down"]])
    assert likely(((error / deviation) ** 2).sum(), error.size)


def test_the_ground_truth_file_is_the_antennas_track_from_where_it_began(long: Recording) -> None:
    track = long["GroundTruth"]
    place, turn = truth_at(long, track.t_ns)
    antenna = place + turn.apply(ANTENNA)
    heading = turn[0].as_euler("ZYX")[0]
    expected = Rotation.from_euler("z", -heading).apply(antenna - antenna[0])
    np.testing.assert_allclose(track.array("x", "y", "z"), expected, atol=2e-4)


def test_the_receivers_velocity_is_that_of_the_antenna(long: Recording) -> None:
    velocity = long["Gps/Velocity"].take(np.arange(len(long["Gps/Velocity"])) > 0)
    ends = [truth_at(long, velocity.t_ns + shift) for shift in (-10_000_000, 10_000_000)]
    before, after = (place + turn.apply(ANTENNA) for place, turn in ends)
    error = np.column_stack([velocity["vy"], velocity["vx"]]) - (after - before)[:, :2] / 0.02
    assert likely((error**2).sum() / sensors.NOISE.velocity_sigma_m_s**2, error.size)


def test_wheels_turn_as_fast_as_their_rims_do(long: Recording) -> None:
    wheels, slip = long["Odometry"], long["truth/slip"]
    at = seconds_of(wheels)
    true = np.column_stack([_mean_over_last_tenth(slip, f"rim_{side}", at) for side in ("left", "right")])
    moving = np.abs(true).min(axis=1) > 6 * RIM_M_S_PER_RPM
    error = (np.asarray(wheels["wheel_velocity"]) - true)[moving] / RIM_M_S_PER_RPM
    # noise of the Hall sensors, and rounding to whole turns per minute
    assert likely((error**2).sum() / (sensors.NOISE.rpm_sigma**2 + 1 / 12), error.size)
    assert np.array_equal(wheels["left_raw"], np.rint(wheels["left_raw"]))


def _mean_over_last_tenth(slip: transect.Stream, name: str, at: np.ndarray) -> np.ndarray:
    t, speed = seconds_of(slip), slip[name]
    gone = np.concatenate([[0], np.cumsum((speed[1:] + speed[:-1]) / 2 * np.diff(t))])
    return (np.interp(at, t, gone) - np.interp(at - 0.1, t, gone)) / 0.1


def test_odometry_agrees_with_the_way_within_its_noise(long: Recording) -> None:
    """Pieces of ten seconds, each from its true start: v and omega as in 4.6, by hand.

    Slip and sliding are not noise: they are taken off as the truth tells them.
    """
    wheels, slip = long["Odometry"], long["truth/slip"]
    at = seconds_of(wheels)
    lost, aside = _of_both_wheels(slip, "slip", at - 0.05), _of_both_wheels(slip, "slip_angle", at)
    speed = np.asarray(wheels["wheel_velocity"]).mean(axis=1)
    speed = np.where(lost > 0, speed * (1 - lost), speed / (1 + lost))
    place, turn = truth_at(long, wheels.t_ns)
    heading = np.unwrap(turn.as_euler("ZYX")[:, 0])
    bend = np.tan(wheels["steering"]) / WHEELBASE
    omega = np.concatenate([[0], speed[1:] * (bend[1:] + bend[:-1]) / 2])
    squares, begins = 0.0, range(0, len(at) - 100, 100)
    for begin in begins:
        piece = slice(begin + 1, begin + 101)
        start = heading[begin] + np.sign(speed[begin]) * aside[begin]
        along = start + np.cumsum(omega[piece]) * 0.1 - omega[piece] * 0.05
        steps = np.column_stack([np.cos(along), np.sin(along)]) * speed[piece, None] * 0.1
        error = steps.sum(axis=0) - (place[begin + 100] - place[begin])[:2]
        covariance = _odometry_covariance(along, steps, bend[piece])
        squares += float(error @ np.linalg.solve(covariance, error))
    assert likely(squares, 2 * len(begins))


def _of_both_wheels(slip: transect.Stream, name: str, at: np.ndarray) -> np.ndarray:
    mean = (np.nan_to_num(slip[f"{name}_left"]) + np.nan_to_num(slip[f"{name}_right"])) / 2
    return np.interp(at, seconds_of(slip), mean)


def _odometry_covariance(along: np.ndarray, steps: np.ndarray, bend: np.ndarray) -> np.ndarray:
    """Of the end (m2): noise of speeds moves it along the way, noise of headings around each place on it."""
    way = np.hypot(*steps.T)
    to_the_end = steps[::-1].cumsum(axis=0)[::-1]
    around = np.column_stack([-to_the_end[:, 1], to_the_end[:, 0]])
    ahead = np.column_stack([np.cos(along), np.sin(along)]) + around * bend[:, None]
    gone = 0.1 * RIM_M_S_PER_RPM * np.sqrt((sensors.NOISE.rpm_sigma**2 + 1 / 12) / 2) * (way > 0)
    unit = np.radians(0.2) * np.sqrt(sensors.NOISE.stepper_sigma**2 + 1 / 12)
    turned = way * unit * (1 + (WHEELBASE * bend) ** 2) / WHEELBASE
    parts = np.concatenate([ahead * gone[:, None], around * turned[:, None]])
    return parts.T @ parts


def test_the_turn_is_one_that_the_robot_can_drive(long: Recording) -> None:
    wheels = long["Odometry"]
    assert np.abs(wheels["steering"]).max() < STEERING_LIMIT
    assert set(wheels["direction_raw"].tolist()) == {1.0, -1.0}
    _, turn = truth_at(long, wheels.t_ns)
    heading = np.degrees(np.unwrap(turn.as_euler("ZYX")[:, 0]))
    assert heading[0] == pytest.approx(0, abs=3)
    assert np.abs(heading - 180).min() < 0.5
    speed = np.abs(long["truth/slip"]["ground_left"])
    assert 0.9 < speed.max() < 1.3


def test_imu_integrated_by_hand_agrees_with_the_way_within_its_noise(long: Recording) -> None:
    """Pieces of three seconds, each from its true start, with the true biases taken off."""
    imu, bias = long["Imu"], long["truth/imu_bias"]
    gyro = imu.array("gyro_x", "gyro_y", "gyro_z") - bias.array(*(f"gyro_bias_{a}" for a in "xyz"))
    acc = imu.array("acc_x", "acc_y", "acc_z") - bias.array(*(f"acc_bias_{a}" for a in "xyz"))
    mount = long.frames.lookup("base_link", "imu").copy()
    place, turn = truth_at(long, imu.t_ns)
    body = turn * Rotation.from_matrix(mount[:3, :3])
    place = place + turn.apply(mount[:3, 3])
    t = seconds_of(imu)
    begins = np.arange(142, len(t) - IMU_SAMPLE_COUNT - 2, 3 * IMU_SAMPLE_COUNT)
    # The true velocity at the start, from a parabola through places 7 ms apart.
    speed = np.diff(place, axis=0) / np.diff(t)[:, None]
    velocity = (speed[begins - 1] + speed[begins]) / 2
    end = _integrated(t, gyro, acc, body[begins], place[begins], velocity, begins)
    error = end - place[begins + IMU_SAMPLE_COUNT]
    assert likely((error**2).sum() / _imu_variance(IMU_SAMPLE_COUNT / 142), error.size)


def _integrated(t, gyro, acc, attitude, place, velocity, at) -> np.ndarray:
    """Places (k, 3) after turning and pushing from k starts, by the mean of two samples each step."""
    gravity = np.array([0, 0, -sensors.field_gravity()])
    for i in (at + k for k in range(IMU_SAMPLE_COUNT)):
        step = (t[i + 1] - t[i])[:, None]
        then = attitude * Rotation.from_rotvec((gyro[i] + gyro[i + 1]) / 2 * step)
        push = (attitude.apply(acc[i]) + then.apply(acc[i + 1])) / 2 + gravity
        place = place + velocity * step + push * step**2 / 2
        velocity, attitude = velocity + push * step, then
    return place


def _imu_variance(seconds: float) -> float:
    """Of a place (m2, one axis): the accelerometer's white noise, and gravity felt at a wrong attitude."""
    noise = sensors.IMU_NOISE
    pushed = noise.acc_density**2 * seconds**3 / 3
    # Of the three axes two are level and feel gravity's part; errors add up alike on average.
    tilted = (9.8 * noise.gyro_density) ** 2 * seconds**5 / 20 * 2 / 3
    return pushed + tilted


# What the pictures are good for


def _grey(image: np.ndarray) -> np.ndarray:
    return cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)


def test_pictures_are_about_as_bright_as_real_ones(full: Day) -> None:
    """Real left pictures have means of 91 to 109 and deviations of 48 to 61."""
    grey = _grey(full.recording["Zed/Left"][0].value.data)
    assert grey.shape == (376, 672)
    assert 75 < grey.mean() < 125
    assert 35 < grey.std() < 75
    assert (grey > 250).mean() < 0.05


def test_two_hundred_features_can_be_followed_to_the_next_picture(full: Day) -> None:
    first, second = (_grey(full.recording["Zed/Left"][i].value.data) for i in (20, 21))
    corners = cv2.goodFeaturesToTrack(first, 1000, 0.01, 6)
    moved, found, _ = cv2.calcOpticalFlowPyrLK(first, second, corners, None)
    back, again, _ = cv2.calcOpticalFlowPyrLK(second, first, moved, None)
    good = (found & again).ravel().astype(bool) & (np.linalg.norm(back - corners, axis=2).ravel() < 0.5)
    _, inliers = cv2.findFundamentalMat(corners[good], moved[good], cv2.FM_RANSAC, 1.0, 0.999)
    assert inliers.sum() >= 200


def test_left_and_right_pictures_differ_as_the_true_depth_says(full: Day) -> None:
    a, b = (_grey(full.recording[f"Zed/{side}"][10].value.data) for side in ("Left", "Right"))
    corners = cv2.goodFeaturesToTrack(a, 800, 0.01, 8)
    moved, found, _ = cv2.calcOpticalFlowPyrLK(a, b, corners, None, winSize=(15, 15))
    pixels, seen = corners[found.ravel() == 1, 0], moved[found.ravel() == 1, 0]
    depth = _depth(full, 10)[tuple(np.rint(pixels).astype(int).T[::-1])]
    one, other = (full.recording.cameras[side] for side in ("left", "right"))
    rays = lens.unproject(pixels, one.K, one.coefficients)
    T = full.recording.frames.lookup("right_camera", "left_camera")
    points = (rays / rays[:, 2:] * depth[:, None]) @ T[:3, :3].T + T[:3, 3]
    error = np.linalg.norm(seen - lens.project(points, other.K, other.coefficients), axis=1)[depth < 15]
    assert len(error) > 100
    assert np.median(error) < 0.6


def _depth(day: Day, index: int) -> np.ndarray:
    name = f"depth/left_{decimal_from_ns(int(day.recording['Zed/Left'].t_ns[index]), 6)}.tiff"
    return cv2.imdecode(np.frombuffer(day.truth.files[name](), np.uint8), cv2.IMREAD_UNCHANGED)


def test_true_depths_are_made_on_request_and_show_ground_and_sky(small: Day, full: Day) -> None:
    assert not small.truth.files
    assert len(full.truth.files) == 2 * len(full.recording["Zed/Left"])
    depth = _depth(full, 0)
    assert (depth.dtype, depth.shape) == (np.float32, (376, 672))
    assert np.isnan(depth[0]).all()
    # A camera a metre high that looks down by 10 degrees sees ground 1 to 3 m away at its lower edge.
    assert 1.0 < np.median(depth[-1]) < 3.0
