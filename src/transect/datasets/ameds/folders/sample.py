"""A small synthetic AMEDS recording for tests and examples.

The rover drives a wide circle near the lander. The numbers are plausible and mostly consistent, but not a
simulation. Images are smaller than those of Table 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from transect import robots
from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.base.units import to_si
from transect.formats.shared.file_groups import file_table
from transect.geometry import geodesy
from transect.recording import Parsed, Recording, Robot, Stream
from transect.types import FIX_TYPES, Image, PointCloud

from ..robot.arms import frame_tree
from .columns import DEVICE
from .files import PAYLOADS, PayloadFiles
from .parse import make_stream

START_NS = 1_656_936_000 * NS
"""2022-07-04 12:00 UTC."""
SPEED_M_S, YAW_RATE_RAD_S = 0.3, 0.05
"""Forward, and to the right."""
WHEEL_RADIUS_M, STEERING_RAD = 0.2, 0.05
WHEELS = range(1, 5)
IMAGE_SIZE = (48, 64)
_RATES = {"AuxCam": 30.0, "MainCam": 30.0, "MainAuxCam/Projected": 15.0, "Lidar": 5.0}
"""Rates of Table 7, Hz."""


def sample_recording(seconds: float = 5.0, start_ns: int = START_NS, name: str = "sample") -> Recording:
    """Return a recording with all streams of Table 7 at their documented rates, and synthetic numbers.

    Parameters
    ----------
    seconds : float
        Duration.
    start_ns : int
        Unix time of the first sample.
    """
    robot = robots.load("interact")
    slow, medium, fast = (_times(start_ns, seconds, rate) for rate in (1.0, 50.0, 100.0))
    streams = (*_arms(slow), *_cameras_in_origin(slow), *_gnss(fast, robot), *_platform(medium, fast))
    pictures = (_payload(kind, _times(start_ns, seconds, _RATES[kind.stream]), robot) for kind in PAYLOADS)
    every = (*streams, *pictures)
    return Recording(
        name=name,
        streams=every,
        frames=frame_tree(robot, every),
        cameras=robot.cameras,
        robot=robot,
        conditions={"made_up": True},
        format="ameds",
    )


def _times(start_ns: int, seconds: float, rate: float) -> Ints:
    count = max(int(seconds * rate), 2)
    return start_ns + np.arange(count, dtype=np.int64) * NS // round(rate)


def _count_seconds(t_ns: Ints) -> Floats:
    return (t_ns - t_ns[0]) / NS


def _arms(t_ns: Ints) -> list[Stream]:
    """Return the streams of both arms at rest, as on the traverses."""
    poses = {"Aux": (0.4, -1.2, 0.1, 1.5, -0.3, 0.8, 0.2), "Main": (0.0, 0.5, 0.0, -1.0, 0.0, 0.6, 0.0)}
    return [
        make_stream(f"{side}Arm/JointAngles", t_ns, {f"joint_{i}": q for i, q in enumerate(joints, 1)})
        for side, joints in poses.items()
    ]


def _cameras_in_origin(t_ns: Ints) -> list[Stream]:
    """Return the poses of cameras that look forward and down; Origin is x forward, y right, z down."""
    poses = {"Aux": (1.0, 0.3, -0.4, 1.0, 0.1, 1.5), "Main": (0.3, 0.0, -1.3, 1.2, 0.0, 1.57)}
    names = ("x", "y", "z", "roll", "pitch", "yaw")
    return [
        make_stream(f"{side}Cam/PoseEstimate", t_ns, dict(zip(names, pose, strict=True)))
        for side, pose in poses.items()
    ]


def _track(t_ns: Ints) -> tuple[Floats, Floats]:
    """Return positions (n, 3) in NED and the yaw (n,) of a circle near the lander, climbing a little."""
    elapsed = _count_seconds(t_ns)
    yaw = 0.5 + YAW_RATE_RAD_S * elapsed
    radius = SPEED_M_S / YAW_RATE_RAD_S
    north = 20.0 + radius * (np.sin(yaw) - np.sin(0.5))
    east = -10.0 - radius * (np.cos(yaw) - np.cos(0.5))
    return np.stack([north, east, -5.0 - 0.01 * elapsed], axis=1), yaw


def _vector(prefix: str, values: Any) -> dict[str, Any]:
    return {f"{prefix}{axis}": value for axis, value in zip("xyz", values, strict=True)}


def _gnss(t_ns: Ints, robot: Robot) -> list[Stream]:
    """Return the streams of the receiver; the middleware stamps samples 1 to 4 ms after the device."""
    rng = np.random.default_rng(7)
    logged = t_ns + rng.integers(1_000_000, 4_000_000, len(t_ns))
    yaw = _track(t_ns)[1]
    std = _vector("std_v", (0.007, 0.007, 0.007))
    imu = _imu(rng, yaw)
    return [
        make_stream("Gnss/BodyAcceleration", logged, _vector("a", (0.0, SPEED_M_S * YAW_RATE_RAD_S, 0.0))),
        make_stream(
            "Gnss/BodyAngularVelocity", logged, _vector("w", (imu[f"gyro_{axis}"] for axis in "xyz"))
        ),
        make_stream("Gnss/BodyVelocity", logged, _vector("v", (SPEED_M_S, 0.0, 0.0)) | std),
        make_stream("Gnss/Imu", logged, imu),
        make_stream(
            "Gnss/NedVelocity",
            logged,
            _vector("v", (SPEED_M_S * np.cos(yaw), SPEED_M_S * np.sin(yaw), -0.01)) | std,
        ),
        make_stream("Gnss/Pose", t_ns, _fix(t_ns, robot), logged),
    ]


def _imu(rng: np.random.Generator, yaw: Floats) -> dict[str, Any]:
    """Return values of a file, in deg/s and gauss, converted as by the reader."""
    n = len(yaw)
    acc = rng.normal((0.0, SPEED_M_S * YAW_RATE_RAD_S, -9.81), 0.02, (n, 3))
    gyro = rng.normal((0.0, 0.0, np.degrees(YAW_RATE_RAD_S)), 0.05, (n, 3)).round(6)
    mag = np.stack([0.27 * np.cos(yaw), -0.27 * np.sin(yaw), np.full(n, 0.36)], axis=1).round(6)
    return {
        **_vector("acc_", acc.T),
        **_vector("gyro_", to_si(gyro.T, "deg/s")),
        **_vector("mag_", to_si(mag.T, "G")),
        "temperature": 45.0,
        "pressure": 73_500.0,
        "outside_temperature": 18.5,
    }


def _fix(t_ns: Ints, robot: Robot) -> dict[str, Any]:
    positions, yaw = _track(t_ns)
    lander = robot.constants["world_origin"]
    origin = (lander["latitude"], lander["longitude"], lander["altitude"])
    lat, lon, alt = geodesy.geodetic_from_local(positions, origin, "NED").T
    return {
        DEVICE: t_ns,
        "lat": lat,
        "lon": lon,
        "alt": alt,
        "std_north": 0.008,
        "std_east": 0.008,
        "std_down": 0.015,
        "roll": 0.02 * np.sin(_count_seconds(t_ns)),
        "pitch": 0.03 * np.cos(_count_seconds(t_ns)),
        "yaw": yaw,
        "fix": float(FIX_TYPES.index("rtk fixed")),
    }


def _platform(medium: Ints, fast: Ints) -> list[Stream]:
    positions, yaw = _track(fast)
    twist = {"vx": SPEED_M_S, "vy": 0.0, "wz": -YAW_RATE_RAD_S, "std_wz": 0.01}
    planar = {"x": positions[:, 0], "y": -positions[:, 1], "yaw": -yaw}
    return [
        make_stream("Platform/MotorEncoders", medium, _encoders(_count_seconds(medium))),
        make_stream("Platform/2DVelocity", medium, twist),
        make_stream(
            "Platform/2DPoseEstimate", fast, {**planar, "std_x": 0.02, "std_y": 0.02, "std_yaw": 0.005}
        ),
        make_stream("Platform/2DTwistEstimate", fast, twist),
        make_stream("Platform/WheelPoseEstimate", fast, _wheels(_count_seconds(fast))),
    ]


def _encoders(elapsed: Floats) -> dict[str, Any]:
    turns = SPEED_M_S * elapsed / (2 * np.pi * WHEEL_RADIUS_M)
    # Inverse of eq. 5: 806.3 ticks/mm and 1.125 mm/degree, with the opposite sign at the front wheels.
    steer = round(806.3 * 1.125 * np.degrees(STEERING_RAD))
    return {
        **{f"drive_velocity_{i}": SPEED_M_S for i in WHEELS},
        **{f"drive_cmd_{i}": SPEED_M_S for i in WHEELS},
        **{f"drive_ticks_{i}": np.floor(30_000 * turns) for i in WHEELS},
        **{f"steer_ticks_{i}": float(-steer if i in (1, 4) else steer) for i in WHEELS},
    }


def _wheels(elapsed: Floats) -> dict[str, Any]:
    return {
        **{f"wheel_{i}_{angle}": 0.0 for i in WHEELS for angle in ("roll", "pitch")},
        **{f"wheel_{i}_yaw": STEERING_RAD + (np.pi / 2 if i < 3 else -np.pi / 2) for i in WHEELS},
        **{f"drive_angle_{i}": SPEED_M_S * elapsed / WHEEL_RADIUS_M for i in WHEELS},
        **{f"steer_angle_{i}": STEERING_RAD for i in WHEELS},
    }


def _payload(kind: PayloadFiles, t_ns: Ints, robot: Robot) -> Stream:
    names = [f"{kind.stream}/{i}" for i in range(len(t_ns))]
    first = int(t_ns[0])

    def load(row: Mapping[str, Any]) -> Image | PointCloud:
        elapsed = (row["t_ns"] - first) / NS
        if kind.type is PointCloud:
            return _cloud(elapsed, t_ns=row["t_ns"], frame=kind.frame)
        return _picture(elapsed, t_ns=row["t_ns"], frame=kind.frame, camera=robot.cameras.get(kind.frame))

    return Stream(
        kind.stream,
        kind.type,
        Parsed(file_table(t_ns, names)),
        role=kind.role,
        tag=kind.tag,
        frame=kind.frame,
        camera=kind.frame if kind.frame in robot.cameras else "",
        loader=load,
    )


def _picture(elapsed: float, **attributes: Any) -> Image:
    """Return grey ground under a sky, with approaching stripes."""
    rows, columns = np.mgrid[: IMAGE_SIZE[0], : IMAGE_SIZE[1]]
    below = rows - IMAGE_SIZE[0] // 3
    stripes = 20 * np.sin(200.0 / np.maximum(below, 1) + 2.0 * elapsed)
    pixels = np.where(below > 0, 90 + stripes + columns / 8, 190 - rows).astype(np.uint8)
    return Image(np.repeat(pixels[..., None], 3, axis=2), "rgb", **attributes)


def _cloud(elapsed: float, **attributes: Any) -> PointCloud:
    """Return rings on level ground 1.5 m below the lidar, with z up and a rotating bump."""
    count = 500
    ring = np.arange(count) % 5
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    radius = 3.0 + 4.0 * ring
    bump = 0.3 * np.exp(-(((angle - np.pi + YAW_RATE_RAD_S * elapsed) / 0.3) ** 2))
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), bump - 1.5], axis=1)
    return PointCloud(
        points.astype(np.float32), {"intensity": (20 + 10 * ring).astype(np.float32)}, **attributes
    )
