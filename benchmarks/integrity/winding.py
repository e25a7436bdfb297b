"""A small drive for mistakes of descriptions: a robot that winds its way over knolls, and knows its mounts.

Its body is moved along a way; what sensors measure follows from that. No world of ours turns as sharply with
an antenna off the centre.
"""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import rotations
from transect.recording import FrameTree, Recording, Stream, stream_of_values
from transect.simulation.randomness import generator
from transect.types import Imu, NavFix, Odometry

START_NS = 1_700_000_000 * NS
IMU_RATE_HZ, DURATION_S = 100, 60
SPEED_M_S, MAX_TURN_RAD_S, MAX_TILT_RAD = 1.0, 0.6, 0.1
LATITUDE_RAD, LONGITUDE_RAD, EARTH_RADIUS_M = 0.6, 0.4, 6_371_000.0
FIX_SIGMA_M, FORCE_SIGMA_M_S2, GYRO_SIGMA_RAD_S, WHEEL_SIGMA = 0.01, 0.05, 0.002, 0.01
"""Standard deviations; that of wheels is relative to their speed."""


def make_winding(seed: int) -> Recording:
    """Return an inertial sensor (100 Hz), wheel odometry (20 Hz) and RTK fixes (5 Hz) of a minute."""
    draw = generator(seed, "winding")
    t = np.arange(IMU_RATE_HZ * DURATION_S) / IMU_RATE_HZ
    yaw_rate = _waves(draw, t, MAX_TURN_RAD_S, (7.0, 13.0))
    yaw = np.cumsum(yaw_rate) / IMU_RATE_HZ
    pitch, roll = (_waves(draw, t, MAX_TILT_RAD, (9.0, 15.0)) for _ in range(2))
    attitude = rotations.quaternion_from_euler("ZYX", np.column_stack([yaw, pitch, roll]))
    place = np.cumsum(SPEED_M_S * np.column_stack([np.cos(yaw), np.sin(yaw), 0 * yaw]), axis=0) / IMU_RATE_HZ
    arm = np.array([draw.uniform(-0.3, 0.3), draw.uniform(-0.3, 0.3), 0.5])
    t_ns = START_NS + np.rint(t * NS).astype(np.int64)
    every = slice(None, None, IMU_RATE_HZ // 20)
    streams = (
        _imu(draw, t_ns, attitude, place),
        _wheels(draw, t_ns[every], yaw_rate[every]),
        _fixes(
            draw, t_ns[:: IMU_RATE_HZ // 5], (place + rotations.rotate(attitude, arm))[:: IMU_RATE_HZ // 5]
        ),
    )
    frames = FrameTree()
    mount = np.eye(4)
    mount[:3, 3] = arm
    frames.add_static("base_link", "antenna", mount)
    return Recording("winding", streams, frames=frames)


def _waves(draw: np.random.Generator, t: Floats, size: float, periods: tuple[float, ...]) -> Floats:
    """Return (n,) a sum of waves with these periods, s, at most so large."""
    phases = draw.uniform(0, 2 * np.pi, len(periods))
    waves = [np.sin(2 * np.pi * t / p + a) for p, a in zip(periods, phases, strict=True)]
    return size * np.mean(waves, axis=0)


def _imu(draw: np.random.Generator, t_ns: Ints, attitude: Floats, place: Floats) -> Stream:
    inverse = rotations.conjugate(attitude)
    velocity = np.gradient(place, axis=0) * IMU_RATE_HZ
    force = np.gradient(velocity, axis=0) * IMU_RATE_HZ + np.array([0.0, 0.0, 9.81])
    step = rotations.multiply(inverse[:-1], attitude[1:])
    rate = rotations.rotation_vector_from_quaternion(np.concatenate([step, step[-1:]])) * IMU_RATE_HZ
    felt = rotations.rotate(inverse, force) + FORCE_SIGMA_M_S2 * draw.normal(size=force.shape)
    turned = rate + GYRO_SIGMA_RAD_S * draw.normal(size=rate.shape)
    columns = {f"acc_{axis}": felt[:, k] for k, axis in enumerate("xyz")}
    columns |= {f"gyro_{axis}": turned[:, k] for k, axis in enumerate("xyz")}
    return stream_of_values("Imu", t_ns, columns, type=Imu, frame="base_link")


def _wheels(draw: np.random.Generator, t_ns: Ints, yaw_rate: Floats) -> Stream:
    rolled = SPEED_M_S * (1.0 + WHEEL_SIGMA * draw.normal(size=len(t_ns)))
    still = {name: np.zeros(len(t_ns)) for name in ("vy", "vz", "wx", "wy")}
    columns = {"vx": rolled, "wz": yaw_rate, **still}
    return stream_of_values("Wheels", t_ns, columns, type=Odometry, frame="odom")


def _fixes(draw: np.random.Generator, t_ns: Ints, place: Floats) -> Stream:
    east, north, up = (place + FIX_SIGMA_M * draw.normal(size=place.shape)).T
    columns = {
        "lat": LATITUDE_RAD + north / EARTH_RADIUS_M,
        "lon": LONGITUDE_RAD + east / EARTH_RADIUS_M / np.cos(LATITUDE_RAD),
        "alt": 50 + up,
        **{f"std_{name}": np.full(len(t_ns), FIX_SIGMA_M) for name in ("north", "east", "down")},
        "fix": ["rtk fixed"] * len(t_ns),
    }  # fmt: skip
    return stream_of_values("Fixes", t_ns, columns, type=NavFix, frame="antenna")
