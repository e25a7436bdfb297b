"""Inertial sensors: what a motion does to an accelerometer and a gyroscope, and what they make of it.

The Earth does not turn here: 15 degrees an hour are not in the rates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry import rotations, se3

from .motion import Motion, derivatives
from .randomness import generator


@dataclass(frozen=True)
class ImuNoise:
    """How an IMU errs; every axis alike."""

    # acc_density, gyro_density: white noise, m/s2/sqrt(Hz) and rad/s/sqrt(Hz)
    acc_density: float
    gyro_density: float
    # acc_walk, gyro_walk: random walk of the biases, m/s2/sqrt(s) and rad/s/sqrt(s)
    acc_walk: float = 0.0
    gyro_walk: float = 0.0
    # acc_bias, gyro_bias: deviation of the biases at switching on, m/s2 and rad/s
    acc_bias: float = 0.0
    gyro_bias: float = 0.0
    # acc_scale, gyro_scale: deviation of the scale factors from 1
    acc_scale: float = 0.0
    gyro_scale: float = 0.0


QUIET = ImuNoise(0.0, 0.0)
"""An IMU without errors."""


@dataclass(frozen=True, eq=False)
class ImuSamples:
    """Readings (n, 3) in the sensor's axes, m/s2 and rad/s, and the biases and scales (3,) in them."""

    acc: Floats
    gyro: Floats
    acc_bias: Floats
    gyro_bias: Floats
    acc_scale: Floats
    gyro_scale: Floats


def mount(motion: Motion, T_body_sensor: ArrayLike) -> Motion:
    """Return the motion of a sensor that is fixed to a moving body.

    Parameters
    ----------
    motion : Motion
        Of the body, sampled evenly and closely: the angular acceleration is taken from it.
    T_body_sensor : (4, 4)
    """
    turn, lever = se3.to_quaternion(T_body_sensor)
    step = float(motion.t_ns[1] - motion.t_ns[0]) * 1e-9
    rate = motion.angular_velocity
    angular_acceleration, _ = derivatives(rate, step)
    swing = np.cross(rate, lever)
    pull = np.cross(angular_acceleration, lever) + np.cross(rate, swing)
    return Motion(
        motion.t_ns,
        motion.position + rotations.rotate(motion.quaternion, lever),
        rotations.multiply(motion.quaternion, turn),
        motion.velocity + rotations.rotate(motion.quaternion, swing),
        motion.acceleration + rotations.rotate(motion.quaternion, pull),
        rotations.rotate(rotations.conjugate(turn), rate),
    )


def in_sensor(motion: Motion, vectors: ArrayLike) -> Floats:
    """Vectors (n, 3) or (3,) of the world in the axes of a moving body (n, 3)."""
    return rotations.rotate(rotations.conjugate(motion.quaternion), vectors)


def specific_force(motion: Motion, gravity: float) -> Floats:
    """What an ideal accelerometer (n, 3) feels, m/s2: at rest, `gravity` upwards."""
    return in_sensor(motion, motion.acceleration + np.array([0.0, 0.0, gravity]))


def measure(motion: Motion, noise: ImuNoise, gravity: float, seed: int, name: str = "imu") -> ImuSamples:
    """Return what an IMU says at the samples of its own motion, evenly spaced.

    Parameters
    ----------
    motion : Motion
        Of the sensor, see `mount`; at the times of the samples, see `Motion.at`.
    gravity : float
        m/s2.
    seed, name
        Of the random numbers.
    """
    step = float(motion.t_ns[1] - motion.t_ns[0]) * 1e-9

    def erring(ideal: Floats, kind: str, density: float, walk: float, bias: float, scale: float):
        rng = generator(seed, name, kind)
        start, gain = bias * rng.standard_normal(3), 1 + scale * rng.standard_normal(3)
        drift = start + random_walk(rng, len(ideal), walk, step)
        return gain * ideal + drift + density / np.sqrt(step) * rng.standard_normal(ideal.shape), drift, gain

    force, rate = specific_force(motion, gravity), motion.angular_velocity
    acc = erring(force, "acc", noise.acc_density, noise.acc_walk, noise.acc_bias, noise.acc_scale)
    gyro = erring(rate, "gyro", noise.gyro_density, noise.gyro_walk, noise.gyro_bias, noise.gyro_scale)
    return ImuSamples(acc[0], gyro[0], acc[1], gyro[1], acc[2], gyro[2])


def random_walk(rng: np.random.Generator, count: int, density: float, step: float) -> Floats:
    """Random walks (n, 3) that start at 0; their variance grows by ``density**2`` every second."""
    steps = density * np.sqrt(step) * rng.standard_normal((count, 3))
    return np.cumsum(steps, axis=0) - steps[:1]


# The air and the fields around


def normal_gravity(latitude: float, height: float) -> float:
    """Gravity of the WGS84 ellipsoid, m/s2, at a latitude in rad and a height in m (Somigliana)."""
    s = np.sin(latitude) ** 2
    level = 9.7803253359 * (1 + 0.00193185265241 * s) / np.sqrt(1 - 0.00669437999013 * s)
    return float(level - 3.086e-6 * height)


def air_pressure(height: ArrayLike) -> Floats:
    """Pressure in Pa of the standard atmosphere at heights in m."""
    return 101_325.0 * (1 - 2.25577e-5 * np.asarray(height, dtype=np.float64)) ** 5.25588


def magnetometer(motion: Motion, field: ArrayLike, noise: float, seed: int, name: str = "imu") -> Floats:
    """Readings (n, 3) in the sensor's axes, T, of a field (3,) in the world (east, north, up)."""
    ideal = in_sensor(motion, np.asarray(field, dtype=np.float64))
    return ideal + noise * generator(seed, name, "magnetometer").standard_normal(ideal.shape)
