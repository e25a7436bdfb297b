"""A day on Etna: what is recorded agrees with what was true, to the noise of each sensor."""

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.ameds.robot.wheel_poses import wheel_pose_estimate

import transect
from transect import robots
from transect.datasets.ameds.folders.columns import BY_STREAM
from transect.datasets.ameds.robot import derived_poses, locomotion
from transect.datasets.ameds.world import streams
from transect.datasets.ameds.world.state import ROUTES, EtnaState
from transect.errors import StreamError, UsageError
from transect.geometry import geodesy, rotations, se3
from transect.recording import Recording, arrow
from transect.robots import four_wheel_steering as wheels
from transect.robots.four_wheel_steering import FourWheelGeometry
from transect.simulation import instruments
from transect.simulation.day import Day, WorldOptions, simulate, write_day
from transect.simulation.motion import Motion

DURATION_S = 10.0
WORLD_SEEDS = (0, 1)


@cache
def table_day(seed: int = 0, soil: str = "firm", rtk: str = "yes", seconds: float = DURATION_S) -> Day:
    """Without images and clouds."""
    conditions = {"soil": soil, "rtk": rtk}
    return simulate("etna", WorldOptions(seconds, seed, 0.05, ("Gnss*", "*Arm*", "*/*"), conditions))


def near(squares: np.ndarray) -> bool:
    """Whether a sum of squares of deviation 1 is one: chi-square within four deviations of its mean."""
    return bool(abs(squares.sum() - squares.size) < 4 * np.sqrt(2 * squares.size))


def origin_of(day: Day) -> Motion:
    """The true motion of Platform, which `Truth` has at 100 Hz."""
    assert day.truth.motion is not None
    return day.truth.motion


def origin_poses(day: Day, t_ns: np.ndarray) -> np.ndarray:
    robot = day.recording.robot
    assert robot is not None
    return origin_of(day).at(t_ns).transforms @ robot.frames.lookup("Platform", "Origin")


def test_every_stream_of_table_7_is_there_at_its_rate() -> None:
    day = simulate("etna", WorldOptions(2.0, 0, 0.05))
    names = {stream.name for stream in day.recording}
    assert names == {*BY_STREAM, "AuxCam", "MainCam", "Lidar"}
    for name in ("Gnss/Imu", "Gnss/Pose", "Platform/2DPoseEstimate", "Platform/WheelPoseEstimate"):
        assert day.recording[name].timing.rate == pytest.approx(100.0)
    for name, rate in {
        "MainArm/JointAngles": 1,
        "Platform/MotorEncoders": 50,
        "MainCam": 30,
        "Lidar": 5,
    }.items():
        assert day.recording[name].timing.rate == pytest.approx(rate), name
    assert day.recording.conditions["simulated"] is True


@pytest.mark.parametrize("seed", WORLD_SEEDS)
def test_rtk_fixes_are_off_by_what_table_1_says(seed: int) -> None:
    day = table_day(seed)
    fix = day.recording["Gnss/Pose"]
    found = geodesy.local_from_geodetic(fix.array("lat", "lon", "alt"), day.truth.origin, "NED")
    true = geodesy.change_axes(origin_poses(day, fix.t_ns)[:, :3, 3], "ENU", "NED")
    assert near(((found - true) / [0.008, 0.008, 0.015]) ** 2)
    assert set(fix.column("fix")) == {"rtk fixed"}


@pytest.mark.parametrize("seed", WORLD_SEEDS)
def test_attitude_and_velocity_are_off_by_what_table_1_says(seed: int) -> None:
    day = table_day(seed)
    fix, speed = day.recording["Gnss/Pose"], day.recording["Gnss/NedVelocity"]
    R_enu = rotations.matrix_from_euler("rpy", fix.array("roll", "pitch", "yaw"))
    R_enu = geodesy.change_axes(np.eye(3), "NED", "ENU").T @ R_enu
    off = rotations.rotation_vector_from_matrix(
        np.swapaxes(origin_poses(day, fix.t_ns)[:, :3, :3], 1, 2) @ R_enu
    )
    # It wanders within 30 s: ten seconds are about one independent error for each angle.
    assert np.degrees(np.abs(off)).max(axis=0) == pytest.approx([0, 0, 0], abs=4 * 0.06)
    assert np.degrees(np.abs(off)).max() > 0.005
    sensor = state(seed).spatial_dual.at(speed.t_ns)
    error = speed.array("vx", "vy", "vz") - geodesy.change_axes(sensor.velocity, "ENU", "NED")
    assert near((error / 0.007) ** 2)


@cache
def state(seed: int) -> EtnaState:
    """The world of `table_day`."""
    return EtnaState(WorldOptions(DURATION_S, seed, 0.05, (), {"soil": "firm"}))


def test_integrating_the_imu_for_10_s_is_off_by_what_its_noise_predicts() -> None:
    scaled = []
    for seed in WORLD_SEEDS:
        imu, world = table_day(seed).recording["Gnss/Imu"], state(seed)
        truth = world.spatial_dual.at(imu.t_ns)
        said = streams.sample_imu(world, truth)
        assert imu.array("acc_x", "acc_y", "acc_z") == pytest.approx(said.acc)
        assert imu.array("gyro_x", "gyro_y", "gyro_z") == pytest.approx(said.gyro)
        others = [instruments.measure(truth, streams.SPATIAL_DUAL, world.gravity, k) for k in range(100, 104)]
        scaled += [drift(truth, samples, world.gravity) for samples in (said, *others)]
    # Chi-square with 10 x 3 degrees: 99.9 % within.
    assert 10.2 < (np.array(scaled) ** 2).sum() < 62.2


def drift(truth: Motion, samples: instruments.ImuSamples, gravity: float) -> np.ndarray:
    """Error (3,) of the position after 10 s from samples without their bias, over its predicted deviation."""
    end = integrate(truth, samples.acc - samples.acc_bias, samples.gyro - samples.gyro_bias, gravity)
    # White noise integrated twice grows with t3/3; that of the gyroscope tilts gravity: g2 t5/20.
    t, a, g = DURATION_S, streams.SPATIAL_DUAL.acc_density, streams.SPATIAL_DUAL.gyro_density
    up = a * np.sqrt(t**3 / 3)
    level = np.hypot(up, gravity * g * np.sqrt(t**5 / 20))
    return (end - truth.position[-1]) / [level, level, up]


def integrate(start: Motion, acc: np.ndarray, gyro: np.ndarray, gravity: float) -> np.ndarray:
    """Strap-down by trapezia from the true first state; the last position."""
    h = float(start.t_ns[1] - start.t_ns[0]) * 1e-9
    turns = rotations.quaternion_from_rotation_vector((gyro[1:] + gyro[:-1]) * (h / 2))
    attitude = [start.quaternion[0]]
    for each in turns:
        attitude.append(rotations.multiply(attitude[-1], each))
    pull = rotations.rotate(np.array(attitude), acc) - np.array([0, 0, gravity])
    steps = (pull[1:] + pull[:-1]) * (h / 2)
    speed = start.velocity[0] + np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
    return start.position[0] + ((speed[1:] + speed[:-1]) * (h / 2)).sum(axis=0)


@pytest.mark.parametrize("seed", WORLD_SEEDS)
def test_without_slip_the_rims_give_speed_and_turn_rate_to_their_noise(seed: int) -> None:
    day = table_day(seed)
    motors, geometry = day.recording["Platform/MotorEncoders"], FourWheelGeometry.of(robots.load("interact"))
    steering = wheels.steer_angles(motors["steer_ticks"], geometry)
    steered = np.gradient(steering, 0.02, axis=0)
    # On uneven ground the wheels scrub a little, so the rows without scrubbing have almost no weight.
    found = wheels.body_motion(motors["wheel_velocity"], steering, geometry, steered, across_weight=1e-4)
    true = under_platform(day, motors.t_ns)
    # Straight ahead, the mean of four rims 0.539 m (W + d) left and right of the middle.
    std = streams.NOISE.rim_sigma_m_s / 2
    assert near(((found.motion[:, 0] - true[:, 0]) / std) ** 2)
    assert near(((found.motion[:, 2] - true[:, 2]) / (std / 0.539)) ** 2)


def test_the_platform_reports_its_twist() -> None:
    day = table_day()
    stream = day.recording["Platform/2DVelocity"]
    error = stream.array("vx", "vy", "wz") - under_platform(day, stream.t_ns)
    assert np.abs(error.mean(axis=0)).max() < 1e-3
    assert error[:, 0].std() == pytest.approx(streams.NOISE.rim_sigma_m_s / 2, rel=0.15)


def under_platform(day: Day, t_ns: np.ndarray) -> np.ndarray:
    """vx, vy, wz (n, 3) in Platform of the point on the ground under it: there the wheels roll."""
    motion = origin_of(day).at(t_ns)
    body = rotations.rotate(rotations.conjugate(motion.quaternion), motion.velocity)
    swing = np.cross(motion.angular_velocity, [0.0, 0.0, -0.335])
    return np.column_stack([(body + swing)[:, :2], motion.angular_velocity[:, 2]])


def test_ticks_are_what_the_rims_have_gone() -> None:
    day = table_day(soil="loose")
    motors, slip = day.recording["Platform/MotorEncoders"], day.truth.tables["slip"]
    rim = arrow.numbers(slip, "rim")
    metres = np.cumsum((rim[1:] + rim[:-1]) / 2 * 0.02, axis=0)
    ticks = np.asarray(motors["drive_ticks"])[1:] * (2 * np.pi * 0.2 / 30_000)
    assert np.abs(metres - ticks).max() < 2e-4
    error = (np.asarray(motors["wheel_velocity"]) - rim) / streams.NOISE.rim_sigma_m_s
    assert near(error**2)


def test_wheels_slip_on_loose_soil_as_the_truth_says() -> None:
    slip = table_day(soil="loose").truth.tables["slip"]
    rim, ground, ratio = (arrow.numbers(slip, name) for name in ("rim", "ground", "slip"))
    moving = np.abs(ground) > 0.05
    larger = np.maximum(np.abs(rim), np.abs(ground))
    assert ((rim - ground)[moving] / larger[moving]) == pytest.approx(ratio[moving])
    assert 0.005 < np.abs(ratio[moving]).mean() < 0.3
    assert np.nanmax(np.abs(arrow.numbers(slip, "slip_angle")[moving])) > 0.005
    firm = table_day(soil="firm").truth.tables["slip"]
    assert not arrow.numbers(firm, "slip").any()


@pytest.mark.parametrize("soil", ["loose", "firm"])
def test_the_slip_of_a_recording_is_the_true_one(soil: str) -> None:
    day = table_day(soil=soil)
    report = locomotion.slip_report(day.recording)
    rim, ground = (arrow.numbers(day.truth.tables["slip"], name) for name in ("rim", "ground"))
    window = np.ones(51) / 51  # the report's second, at 50 Hz
    rim, ground = (np.column_stack([np.convolve(w, window, "valid") for w in v.T]) for v in (rim, ground))
    error = (report.stream.array("slip_ratio")[25:-25] - (1 - ground / rim))[np.abs(ground) > 0.1]
    assert np.abs(error).mean() < 0.005
    assert report.wheels[-1].lost == pytest.approx(1 - ground.sum() / rim.sum(), abs=0.003)
    # The rover's own estimate is no more made from the wheels than the navigation unit is.
    estimated = locomotion.slip_report(day.recording, "Platform/2DTwistEstimate").wheels[-1].lost
    assert estimated == pytest.approx(1 - ground.sum() / rim.sum(), abs=0.02)
    assert abs(locomotion.slip_report(day.recording, "Platform/2DVelocity").wheels[-1].lost) < 0.01


def test_loads_carry_the_rover() -> None:
    day = table_day()
    load = arrow.numbers(day.truth.tables["contact"], "load")
    assert load.sum(axis=1).mean() == pytest.approx(430 * 9.79, rel=0.02)
    assert (load > 0).all()
    place = np.stack([arrow.numbers(day.truth.tables["contact"], a) for a in "xyz"], axis=-1)
    under = origin_of(day).at(np.asarray(arrow.numbers(day.truth.tables["contact"], "t_ns"))).position
    assert np.abs(place.mean(axis=1)[:, 2] - (under[:, 2] - 0.335)).max() < 0.1


@pytest.mark.parametrize("side", ["Main", "Aux"])
def test_camera_poses_are_those_that_the_joints_give(side: str) -> None:
    recording = table_day().recording
    again = derived_poses.camera_pose_estimate(recording, side)
    names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    here, there = recording[f"{side}Cam/PoseEstimate"].array(*names), again.array(*names)
    assert here[:, :3] == pytest.approx(there[:, :3], abs=1e-9)
    assert rotations.angle_between(here[:, 3:], there[:, 3:]) == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("side", ["Main", "Aux"])
def test_the_arms_keep_still_on_a_traverse(side: str) -> None:
    """Section 2: both are stationary during the traverses. What is left is the encoder's last digit."""
    angles = np.asarray(table_day().recording[f"{side}Arm/JointAngles"]["position"])
    assert np.ptp(angles, axis=0).max() < 3e-5  # rad
    assert (
        np.abs(angles / streams.NOISE.joint_step_rad - np.rint(angles / streams.NOISE.joint_step_rad)).max()
        < 1e-6
    )


def test_a_rock_is_picked_up_and_put_into_the_container() -> None:
    """Section 5.2; the phases are told from the joint angles alone, the truth from the state of the world."""
    streams_ = ("Platform/*", "AuxArm/*", "AuxCam/PoseEstimate")
    day = simulate("etna", WorldOptions(60.0, 0, 0.05, streams_, {"task": "rock_picking"}))
    found = [each.name for each in derived_poses.picking_phases(day.recording, tip=(0.0, 0.0, 0.25))]
    order = ["approach", "grasp", "lift", "place", "return"]
    assert [name for name in found if name != "still"] == order
    assert np.ptp(origin_of(day).position, axis=0).max() < 1e-3  # the rover stands
    truth = day.truth.tables["picking"]
    rock = np.column_stack([arrow.numbers(truth, axis) for axis in "xyz"])
    held = np.array(truth.column("held").to_pylist())
    assert np.ptp(rock[: held.argmax()], axis=0).max() < 0.01  # it lies until it is held
    assert np.linalg.norm(np.diff(rock, axis=0), axis=1).max() < 0.01  # and never jumps
    into = se3.apply(se3.invert(origin_poses(day, origin_of(day).t_ns[-1:])[0]), rock[-1])
    assert 0.75 < into[0] < 0.95  # m: the container of interact.yaml
    assert -0.15 < into[1] < 0.15


def test_wheel_poses_are_those_that_the_ticks_give() -> None:
    recording = table_day().recording
    here = recording["Platform/WheelPoseEstimate"]
    again = wheel_pose_estimate(recording)
    rows = here.nearest(again.t_ns)
    for name in ("steering", "drive_angle", "roll", "pitch", "yaw"):
        difference = np.asarray(here[name])[rows] - np.asarray(again[name])
        assert np.abs((difference + np.pi) % (2 * np.pi) - np.pi).max() < 1e-9, name


def test_the_estimate_of_the_rover_is_within_its_standard_deviations() -> None:
    day = table_day(soil="loose")
    guess = day.recording["Platform/2DPoseEstimate"]
    true = geodesy.change_axes(origin_of(day).at(guess.t_ns).position, "ENU", "NWU")
    error = guess.array("x", "y") - true[:, :2]
    assert np.linalg.norm(error[0]) < 1e-6
    assert np.linalg.norm(error[-1]) > 0.01
    assert (np.abs(error[100:]) < 4 * guess.array("std_x", "std_y")[100:] + 0.05).all()


def test_fixes_change_in_the_gaps() -> None:
    fix = table_day(rtk="gaps", seconds=18.0).recording["Gnss/Pose"]
    kinds = np.array(fix.column("fix"))
    seconds = (fix.t_ns - fix.t_ns[0]) * 1e-9
    assert set(kinds[(seconds >= 8) & (seconds < 12)]) == {"rtk float"}
    assert set(kinds[(seconds >= 12) & (seconds < 15)]) == {"3d"}
    assert set(kinds[(seconds >= 15) & (seconds < 17)]) == {"none"}
    assert np.isnan(fix["lat"][kinds == "none"]).all()
    assert not np.isnan(fix["roll"]).any()


def test_a_written_day_opens_again_with_its_truth(tmp_path: Path) -> None:
    day = shortened(simulate("etna", WorldOptions(2.0, 0, 0.05)))
    write_day(day, tmp_path / "etna")
    again = transect.open(tmp_path / "etna")
    assert not again.losses
    for stream in day.recording:
        assert np.array_equal(again[stream.name].t_ns, stream.t_ns), stream.name
    assert again.truth is not None
    assert len(again.truth) == 201
    for name in ("Gnss/Imu", "Gnss/Pose", "Platform/MotorEncoders"):
        assert_equal(again, day.recording, name)
    assert again["MainCam"][5].payload.data.shape == (54, 96, 3)
    assert_on_the_ground(again, day)


def shortened(day: Day) -> Day:
    """A day with the first six images and clouds only."""
    kept = (s if s.loader is None else s.take(np.arange(len(s)) < 6) for s in day.recording)
    return Day(day.recording.replace(streams=tuple(kept)), day.truth)


def assert_equal(again: Recording, first: Recording, name: str) -> None:
    for column in first[name].columns:
        here, there = again[name].column(column), first[name].column(column)
        assert np.allclose(here, there, rtol=1e-15) if isinstance(here, np.ndarray) else here == there, column


def assert_on_the_ground(again: Recording, day: Day) -> None:
    """Points of a scan that was read lie on the DEM of the truth, once deskewed."""
    cloud = again["Lidar"][4].payload
    robot = again.robot
    assert robot is not None
    times = cloud.t_ns + np.asarray(cloud.fields["t_offset_ns"]).astype(np.int64)
    poses = origin_of(day).at(times).transforms @ robot.frames.lookup("Platform", "Lidar")
    world = se3.apply(poses, cloud.points.astype(np.float64))
    land = EtnaState(WorldOptions(2.0, 0, 0.05)).land
    close = np.linalg.norm(cloud.points, axis=1) < 15
    off = world[close, 2] - land.at(world[close, :2])
    assert np.median(np.abs(off)) < 0.03


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    def written(name: str, seed: int) -> str:
        options = WorldOptions(2.0, seed, 0.03, ("Gnss/*", "Platform/*", "Lidar", "AuxCam"))
        write_day(shortened(simulate("etna", options)), tmp_path / name)
        files = sorted(p for p in (tmp_path / name).rglob("*") if p.is_file())
        content = b"".join(p.relative_to(tmp_path / name).as_posix().encode() + p.read_bytes() for p in files)
        return hashlib.sha256(content).hexdigest()

    one = written("one", 0)
    assert one == written("again", 0)
    assert one != written("other", 1)


def test_another_day_has_the_same_ground_and_another_track(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROUTES, "return", ROUTES["return"]._replace(ground=50.0, duration=4.0))

    def on(track: str) -> EtnaState:
        return EtnaState(WorldOptions(4.0, 0, 0.03, ("Lidar",), {"route": "return", "track": track}))

    first, again, beside = on("first"), on("again"), on("beside")
    assert (first.land.height == beside.land.height).all()
    apart = first.motion.position - beside.motion.position
    assert np.linalg.norm(apart[:, :2], axis=1) == pytest.approx(1.5, abs=0.1)
    shaken = first.motion.position[600] - again.motion.position[600]
    assert 0 < np.linalg.norm(shaken) < 0.05


def test_depth_comes_on_request() -> None:
    import cv2

    day = simulate("etna", WorldOptions(2.0, 0, 0.03, ("MainCam",), {"depth": "on"}))
    names = [name for name in day.truth.files if "MainCam" in name]
    assert len(names) == len(day.recording["MainCam"]) == 61
    depth = cv2.imdecode(np.frombuffer(day.truth.files[names[0]](), np.uint8), cv2.IMREAD_UNCHANGED)
    assert depth.shape == (32, 58)
    assert 1.0 < np.nanmedian(depth) < 30.0
    assert table_day().truth.files == {}


def test_what_etna_does_not_know_is_refused() -> None:
    with pytest.raises(UsageError, match="sol"):
        simulate("etna", WorldOptions(2.0, conditions={"sol": "firm"}))
    with pytest.raises(UsageError, match="hard"):
        simulate("etna", WorldOptions(2.0, conditions={"soil": "hard"}))
    with pytest.raises(UsageError, match="too short"):
        simulate("etna", WorldOptions(0.5))
    with pytest.raises(StreamError, match="Radar"):
        simulate("etna", WorldOptions(2.0, streams=("Radar",)))
