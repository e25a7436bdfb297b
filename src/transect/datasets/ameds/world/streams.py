"""Simulated streams of AMEDS, Table 7."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS, decimal_from_ns
from transect.formats.shared.file_groups import file_table
from transect.formats.shared.images import encode_image
from transect.geometry import geodesy, planar, rotations, se3
from transect.recording import Parsed, Stream
from transect.simulation import driving, instruments, wheels
from transect.simulation.instruments import ImuErrorModel
from transect.simulation.lidar import Shots, draw_bias, revolution, scan
from transect.simulation.motion import Motion
from transect.simulation.randomness import generator
from transect.simulation.render import RenderedFrame, lens_covers, render
from transect.types import FIX_TYPES, CameraModel, Image, PointCloud

from ..folders.columns import DEVICE
from ..folders.files import PAYLOADS, PayloadFiles
from ..folders.parse import make_stream
from ..folders.reading import resize_camera
from ..robot.arms import ATTITUDE
from .state import COVERAGES, START_NS, EtnaState


@dataclass(frozen=True)
class StreamRates:
    """Rates of Table 7."""

    arms_hz: float = 1.0
    motors_hz: float = 50.0
    fast_hz: float = 100.0  # receiver and estimates
    cameras_hz: float = 30.0  # Table 1 has 15 for MainCam (errata)


RATES = StreamRates()


@dataclass(frozen=True)
class NoiseSettings:
    """Errors of the sensors; not in AMEDS unless stated."""

    velocity_sigma_m_s: float = 0.007  # Spatial Dual (Table 1).
    attitude_time_s: float = 30.0  # Correlation time of the attitude error.
    # Resolution of the joint encoders behind a gear of 1 to 160.
    joint_step_rad: float = 2 * np.pi / (4096 * 160)
    joint_sigma_steps: float = 0.3  # Noise of a joint encoder at rest.
    rim_sigma_m_s: float = 0.003
    magnetic_sigma_t: float = 1e-7
    odometry_sigma_ratio: float = 0.05  # Declared sigma of the dead reckoning per distance.


NOISE = NoiseSettings()
ATTITUDE_SIGMAS_RAD = np.radians([0.03, 0.03, 0.06])
"""Spatial Dual (Table 1)."""
SPATIAL_DUAL = ImuErrorModel(
    acc_density=1e-3,
    gyro_density=7e-5,
    acc_walk=2e-5,
    gyro_walk=1e-6,
    acc_bias=0.01,
    gyro_bias=3e-5,
)
MAGNETIC_FIELD_T = np.array([1.8e-6, 26.9e-6, -36.2e-6])
"""East, north and up: 45 uT, 53 degrees down, 4 degrees east."""
LATENCY_NS = (1_000_000, 4_000_000)
"""Range of the delay of the middleware's stamp after the receiver's."""


def make_tables(state: EtnaState) -> Iterator[Stream]:
    """Return the streams of tables, in the order of Table 7."""
    yield from _make_arms(state)
    yield from _make_gnss(state)
    yield from _make_platform(state)


def _name_axes(names: str, values: Floats) -> dict[str, Floats]:
    return dict(zip(names.split(), values.T, strict=True))


def _split(name: str, values: Floats) -> dict[str, Floats]:
    return {name.format(i): column for i, column in enumerate(values.T, 1)}


def _draw_noise(state: EtnaState, name: str, std: float, shape: tuple[int, ...]) -> Floats:
    return std * generator(state.seed, name, "noise").standard_normal(shape)


def count_seconds(t_ns: Ints) -> Floats:
    """Return the seconds since the start of the day."""
    return (t_ns - START_NS).astype(np.float64) / NS


# Arms


def _make_arms(state: EtnaState) -> Iterator[Stream]:
    t_ns = state.times(RATES.arms_hz)
    measured = {side: _read_encoders(state, side, t_ns) for side in ("Aux", "Main")}
    for side, angles in measured.items():
        yield make_stream(f"{side}Arm/JointAngles", t_ns, _split("joint_{}", angles))
    for side, angles in measured.items():
        pose = state.rover.camera_in_origin(side, angles)
        turns = rotations.euler_from_matrix(ATTITUDE, pose[:, :3, :3])
        columns = _name_axes("x y z", pose[:, :3, 3]) | _name_axes("roll pitch yaw", turns)
        yield make_stream(f"{side}Cam/PoseEstimate", t_ns, columns)


def _read_encoders(state: EtnaState, side: str, t_ns: Ints) -> Floats:
    """Return the angles (n, 7) of the encoders of an arm, rad, in whole steps."""
    true = state.joints(side, count_seconds(t_ns)) / NOISE.joint_step_rad
    noise = _draw_noise(state, f"{side}Arm/JointAngles", NOISE.joint_sigma_steps, (len(t_ns), 7))
    return np.rint(true + noise) * NOISE.joint_step_rad


# Receiver


def _make_gnss(state: EtnaState) -> Iterator[Stream]:
    t_ns = state.times(RATES.fast_hz)
    truth = state.spatial_dual.at(t_ns)
    shape = (len(t_ns), 3)
    acceleration = instruments.in_sensor(truth, truth.acceleration)
    yield make_stream(
        "Gnss/BodyAcceleration",
        t_ns,
        _name_axes("ax ay az", acceleration + _draw_noise(state, "Gnss/BodyAcceleration", 0.01, shape)),
    )
    rate = truth.angular_velocity + _draw_noise(state, "Gnss/BodyAngularVelocity", 7e-4, shape)
    yield make_stream("Gnss/BodyAngularVelocity", t_ns, _name_axes("wx wy wz", rate))
    velocity = truth.velocity + _draw_noise(state, "Gnss/Velocity", NOISE.velocity_sigma_m_s, shape)
    std = dict.fromkeys(("std_vx", "std_vy", "std_vz"), NOISE.velocity_sigma_m_s)
    yield make_stream(
        "Gnss/BodyVelocity", t_ns, _name_axes("vx vy vz", instruments.in_sensor(truth, velocity)) | std
    )
    yield make_stream("Gnss/Imu", t_ns, _make_imu(state, truth))
    ned = geodesy.change_axes(velocity, "ENU", "NED")
    yield make_stream("Gnss/NedVelocity", t_ns, _name_axes("vx vy vz", ned) | std)
    delay = generator(state.seed, "Gnss/Pose", "latency").integers(*LATENCY_NS, len(t_ns))
    yield make_stream("Gnss/Pose", t_ns, _make_fix(state, truth), t_ns + delay)


def sample_imu(state: EtnaState, truth: Motion) -> instruments.ImuSamples:
    """Return the samples of the Spatial Dual's IMU for a motion, with its biases."""
    return instruments.measure(truth, SPATIAL_DUAL, state.gravity, state.seed, "Gnss/Imu")


def _make_imu(state: EtnaState, truth: Motion) -> dict[str, Any]:
    samples, seconds = sample_imu(state, truth), count_seconds(truth.t_ns)
    magnetic = instruments.magnetometer(
        truth, MAGNETIC_FIELD_T, NOISE.magnetic_sigma_t, state.seed, "Gnss/Imu"
    )
    heights = truth.position[:, 2] + state.rover.origin[2]
    return {
        **_name_axes("acc_x acc_y acc_z", samples.acc),
        **_name_axes("gyro_x gyro_y gyro_z", samples.gyro),
        **_name_axes("mag_x mag_y mag_z", magnetic),
        "temperature": 45.0 - 4.0 * np.exp(-seconds / 300.0),
        "pressure": instruments.air_pressure(heights) + _draw_noise(state, "pressure", 3.0, heights.shape),
        "outside_temperature": 18.5 + 0.3 * np.sin(seconds / 90.0),
    }


def _make_fix(state: EtnaState, truth: Motion) -> dict[str, Any]:
    coverage = COVERAGES[state.conditions["rtk"]]
    columns = instruments.fixes(truth, state.rover.origin, coverage, state.seed, "Gnss/Pose")
    rng = generator(state.seed, "Gnss/Pose", "attitude")
    error = instruments.gauss_markov(rng, truth.t_ns, 3, NOISE.attitude_time_s) * ATTITUDE_SIGMAS_RAD
    kept = ("lat", "lon", "alt", "std_north", "std_east", "std_down")
    codes = np.array([FIX_TYPES.index(fix) for fix in columns["fix"]], dtype=np.float64)
    angles = _name_axes("roll pitch yaw", find_ned_angles(truth) + error)
    return {DEVICE: truth.t_ns} | {name: columns[name] for name in kept} | angles | {"fix": codes}


def find_ned_angles(motion: Motion) -> Floats:
    """Return roll, pitch, yaw (n, 3), rad, relative to north, east, down."""
    matrices = rotations.matrix_from_quaternion(motion.quaternion)
    r_ned_enu = geodesy.change_axes(np.eye(3), "ENU", "NED").T
    return rotations.euler_from_matrix("rpy", r_ned_enu @ matrices)


# Platform


def _make_platform(state: EtnaState) -> Iterator[Stream]:
    rover, t_ns = state.rover, state.times(RATES.motors_hz)
    motors = _make_motors(state, t_ns)
    steering = rover.steering(motors["steer"])
    twist = rover.platform_twist(motors["velocity"], steering)
    columns = _split("drive_velocity_{}", motors["velocity"]) | _split("drive_cmd_{}", motors["cmd"])
    columns |= _split("drive_ticks_{}", motors["ticks"]) | _split("steer_ticks_{}", motors["steer"])
    yield make_stream("Platform/MotorEncoders", t_ns, columns)
    # Sigma of a turn rate from four rim speeds at about 0.65 m from the centre.
    std = {"std_wz": NOISE.rim_sigma_m_s / 1.3}
    yield make_stream("Platform/2DVelocity", t_ns, _name_axes("vx vy wz", twist) | std)
    fast = state.times(RATES.fast_hz)
    turn = -sample_imu(state, state.spatial_dual.at(fast)).gyro[:, 2]
    speeds = [np.interp(fast, t_ns, column) for column in twist[:, :2].T]
    # Dead reckoning uses the wheels and the gyroscope; the twist is that of the inertial system.
    pose = _dead_reckon(state, fast, np.column_stack([*speeds, turn]))
    yield make_stream("Platform/2DPoseEstimate", fast, pose)
    estimate = np.column_stack([_measure_velocity(state, fast)[:, :2], turn])
    yield make_stream("Platform/2DTwistEstimate", fast, _name_axes("vx vy wz", estimate) | {"std_wz": 1e-3})
    yield make_stream(
        "Platform/WheelPoseEstimate", fast, _make_wheel_poses(state, t_ns, motors["ticks"], steering, fast)
    )


def _make_motors(state: EtnaState, t_ns: Ints) -> dict[str, Floats]:
    """Return measured and commanded rim speeds, m/s, and ticks of both motors, (n, 4) each."""
    rover, rolling = state.rover, state.rolling
    rows = (t_ns - START_NS) // (NS // driving.RATE_HZ)
    metres = wheels.measure_travel(rolling.rim, 1 / driving.RATE_HZ)
    noise = _draw_noise(state, "Platform/MotorEncoders", NOISE.rim_sigma_m_s, (len(rows), 4))
    return {
        "velocity": rolling.rim[rows] + noise,
        "cmd": rover.commanded_speeds(state.course, rolling.steering)[rows],
        "ticks": wheels.drive_ticks(metres, rover.metres_per_tick)[rows],
        "steer": rover.steer_ticks(rolling.steering)[rows],
    }


def _measure_velocity(state: EtnaState, t_ns: Ints) -> Floats:
    """Return the velocity (n, 3) of Platform in its own axes, m/s, by an inertial system without wheels."""
    motion = state.motion.at(t_ns)
    noise = _draw_noise(state, "Platform/2DTwistEstimate", NOISE.velocity_sigma_m_s, (len(t_ns), 3))
    return instruments.in_sensor(motion, motion.velocity) + noise


def _dead_reckon(state: EtnaState, t_ns: Ints, twist: Floats) -> dict[str, Floats]:
    """Return x, y, yaw in NWU from the true start, with sigmas that grow with the distance."""
    first = state.motion.at(t_ns[:1])
    position = geodesy.change_axes(first.position, "ENU", "NWU")[0]
    ahead = geodesy.change_axes(first.transforms[0, :3, 0], "ENU", "NWU")
    start = (position[0], position[1], float(np.arctan2(ahead[1], ahead[0])))
    pose = planar.integrate(planar.motions_from_rates(t_ns, twist), start)
    distance = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(pose[:, :2], axis=0).T))])
    std_yaw = 0.001 + SPATIAL_DUAL.gyro_bias * count_seconds(t_ns)
    std = np.hypot(0.02, NOISE.odometry_sigma_ratio * distance)
    return _name_axes("x y yaw", pose) | {"std_x": std, "std_y": std, "std_yaw": std_yaw}


def _make_wheel_poses(
    state: EtnaState, t_ns: Ints, ticks: Floats, steering: Floats, fast: Ints
) -> dict[str, Floats]:
    """Return attitudes and angles of the wheels by the ticks, at other times."""
    rover = state.rover

    def at_fast(values: Floats) -> Floats:
        return np.column_stack([np.interp(fast, t_ns, column) for column in values.T])

    phi, psi = at_fast(steering), at_fast(ticks) * (rover.metres_per_tick / rover.wheel_radius)
    turns = rotations.euler_from_matrix(ATTITUDE, rover.wheel_rotations(phi, psi))
    angles = {
        f"wheel_{i}_{name}": turns[:, i - 1, k]
        for i in range(1, 5)
        for k, name in enumerate(("roll", "pitch", "yaw"))
    }
    return angles | _split("drive_angle_{}", psi) | _split("steer_angle_{}", phi)


# Truth


def make_slip_columns(state: EtnaState, t_ns: Ints) -> dict[str, Floats]:
    """Return the true slip and motion of the wheels at times (n,), (n, 4) each."""
    rows, rolling = (t_ns - START_NS) // (NS // driving.RATE_HZ), state.rolling
    names = ("slip", "slip_angle", "rim", "ground", "sliding", "steering")
    return {name: getattr(rolling, name)[rows] for name in names}


def make_contact_columns(state: EtnaState, t_ns: Ints) -> dict[str, Floats]:
    """Return the contact points of the wheels in the world, m, and their loads, N: (n, 4) each."""
    motion, rover = state.motion.at(t_ns), state.rover
    contacts = rover.contacts(make_slip_columns(state, t_ns)["steering"])
    world = se3.apply(motion.transforms[:, None], contacts)
    columns = {"x": world[..., 0], "y": world[..., 1], "z": state.land.at(world[..., :2])}
    return columns | {"load": rover.loads(instruments.specific_force(motion, state.gravity))}


NOT_SIMULATED = "MainAuxCam/Projected"
"""Other images with drawings in them (Figure 5)."""


def make_cameras(state: EtnaState) -> dict[str, CameraModel]:
    """Return the cameras at the scale of the images."""
    return {name: _scale(model, state.options.scale) for name, model in state.rover.robot.cameras.items()}


def make_payload_streams(state: EtnaState) -> Iterator[Stream]:
    """Return the streams of images and clouds."""
    models = make_cameras(state)
    for kind in PAYLOADS:
        if kind.type is Image and kind.stream != NOT_SIMULATED:
            yield _make_stream(kind, state, RATES.cameras_hz, partial(_take_image, state, models[kind.frame]))
        elif kind.type is PointCloud:
            yield _make_stream(
                kind, state, state.lidar.rate, partial(_take_cloud, state, _choose_shots(state))
            )


def make_depth_files(state: EtnaState) -> dict[str, Callable[[], bytes]]:
    """Return the depth of every image, along the optical axis in m, as float TIFF by name."""
    return {
        f"depth/{name}_{decimal_from_ns(t)}.tiff": partial(_encode_depth, state, model, t)
        for name, model in make_cameras(state).items()
        for t in state.times(RATES.cameras_hz).tolist()
    }


def take_frame(state: EtnaState, camera: CameraModel, t_ns: int) -> RenderedFrame:
    """Render the image and the depth of a camera at a time."""
    platform = state.motion.at([t_ns])
    seconds = count_seconds(np.array([t_ns]))
    side = camera.name.removesuffix("Cam")
    pose = state.rover.camera_in_world(side, platform, state.joints(side, seconds))[0]
    noise = generator(state.seed, camera.name, "noise", t_ns - START_NS)
    return render(state.scene, camera, pose, state.light, t=float(seconds[0]), noise=noise)


def _make_stream(kind: PayloadFiles, state: EtnaState, rate: float, make: Callable[[int], Any]) -> Stream:
    t_ns = state.times(rate)
    if kind.type is PointCloud:
        # A scan starts at its stamp, and needs the motion until its end.
        t_ns = t_ns[:-1]

    def load(row: Mapping[str, Any]) -> Any:
        return make(int(row["t_ns"]))

    return Stream(
        kind.stream,
        kind.type,
        Parsed(file_table(t_ns, [f"{kind.stream}/{i}" for i in range(len(t_ns))])),
        role=kind.role,
        tag=kind.tag,
        frame=kind.frame,
        camera=kind.frame if kind.type is Image else "",
        loader=load,
    )


def _take_image(state: EtnaState, camera: CameraModel, t_ns: int) -> Image:
    # The lens polynomial of MainCam in Table 4 is not monotonic in the corners, which stay black.
    valid = lens_covers(camera)
    pixels = take_frame(state, camera, t_ns).image
    return Image(pixels, "rgb", t_ns=t_ns, frame=camera.frame, camera=camera, valid=valid)


def _encode_depth(state: EtnaState, camera: CameraModel, t_ns: int) -> bytes:
    return encode_image(Image(take_frame(state, camera, t_ns).depth), ".tiff")


def _choose_shots(state: EtnaState) -> Shots:
    """Return the shots of a revolution, with the fraction of the firings that the image scale has."""
    return revolution(state.lidar, every=max(round(1 / state.options.scale), 1))


def _take_cloud(state: EtnaState, shots: Shots, t_ns: int) -> PointCloud:
    cloud = scan(
        state.scene,
        state.motion,
        state.rover.in_platform("Lidar"),
        t_ns,
        state.lidar,
        shots,
        state.reflectance,
        generator(state.seed, "Lidar", "noise", t_ns - START_NS),
        START_NS,
        draw_bias(state.lidar, state.options.seed),
    )
    return replace(cloud, frame="Lidar")


def _scale(camera: CameraModel, scale: float) -> CameraModel:
    return resize_camera(camera, round(camera.width * scale), round(camera.height * scale))
