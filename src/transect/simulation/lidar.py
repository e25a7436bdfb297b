"""A spinning lidar, whose beams are cast from the sensor's pose at the time of each shot.

The points of a scan are in the sensor's frame at their own times, as the device outputs them: a scan of a
moving sensor is distorted, and its true motion deskews it exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.geometry import rotations, se3
from transect.types import PointCloud

from .motion import Motion
from .randomness import generator
from .raycast import Hits, Scene, cast

Reflectance = Callable[[Floats, Hits], Floats]
"""Reflectance (n,) at the laser's wavelength, 0 to 1, of the hits of rays at points (n, 3) of the world."""

WHITE_INTENSITY = 100.0
"""Intensity of a white diffuse surface; 101 to 255 are reserved for retro-reflectors (Velodyne)."""

# Velodyne, VLP-32C user manual: elevation and azimuth offset of the lasers in the order of firing, degrees.
_ELEVATIONS_DEG = (
    -25.0, -1.0, -1.667, -15.639, -11.31, 0.0, -0.667, -8.843, -7.254, 0.333, -0.333, -6.148, -5.333, 1.333,
    0.667, -4.0, -4.667, 1.667, 1.0, -3.667, -3.333, 3.333, 2.333, -2.667, -3.0, 7.0, 4.667, -2.333, -2.0,
    15.0, 10.333, -1.333,
)  # fmt: skip
_AZIMUTHS_DEG = (
    1.4, -4.2, 1.4, -1.4, 1.4, -1.4, 4.2, -1.4, 1.4, -4.2, 1.4, -1.4, 4.2, -1.4, 4.2, -1.4, 1.4, -4.2, 1.4,
    -4.2, 4.2, -1.4, 1.4, -1.4, 1.4, -1.4, 1.4, -4.2, 4.2, -1.4, 1.4, -1.4,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class SpinningLidar:
    """Model of a spinning lidar."""

    # (beams,) rad: elevation above the plane of rotation, azimuth ahead of the head's (clockwise).
    elevations: Floats
    azimuths: Floats
    firing_seconds: float  # between two firings of the same beam
    shot_seconds: Floats  # (beams,), time of each beam within a firing
    rate: float  # revolutions per second
    range: tuple[float, float] = (1.0, 200.0)  # smallest and largest range, m
    range_std: float = 0.03  # m
    max_incidence: float = 1.54  # rad, angle above which there is no return
    # Smallest signal of a return: reflectance times the cosine of the incidence over the squared range in m.
    min_signal: float = 0.0
    bias_std: float = 0.0  # standard deviation of the constant range bias of each beam, m

    @property
    def firings(self) -> int:
        """Number of firings in a revolution."""
        return int(1 / self.rate / self.firing_seconds)


VLP_32C = SpinningLidar(
    elevations=np.array(_ELEVATIONS_DEG) * (np.pi / 180),
    azimuths=np.array(_AZIMUTHS_DEG) * (np.pi / 180),
    firing_seconds=55.296e-6,
    shot_seconds=np.repeat(np.arange(16.0), 2) * 2.304e-6,
    rate=5.0,
)
"""Interact's lidar: 32 channels, 200 m, 3 cm, 40 degrees, 300 rpm (AMEDS, Table 1)."""

MEASURED_VLP_32C = replace(VLP_32C, min_signal=1 / 200**2, range_std=0.022, bias_std=0.02)
"""The same with a limited signal and channel biases: the range of 200 m is that of a white wall, and the 3 cm
are the sum of noise and a constant bias per channel.

Dark ground at grazing incidence then has a range of 25 m. How the 3 cm divide is not documented: invented.
"""


@dataclass(frozen=True, eq=False)
class Shots:
    """The shots of a revolution (n,): time after its start, unit vector in the sensor, and beam."""

    offset_ns: Ints
    directions: Floats
    ring: NDArray[np.uint16]


def revolution(lidar: SpinningLidar, every: int = 1) -> Shots:
    """Return the shots of one revolution, clockwise from the sensor's x axis (z is the axis of rotation).

    Parameters
    ----------
    every : int
        Use only every n-th firing, for a sparser scan.
    """
    firing = np.arange(0, lidar.firings, every)[:, None]
    seconds = firing * lidar.firing_seconds + lidar.shot_seconds
    clockwise = 2 * np.pi * lidar.rate * seconds + lidar.azimuths
    level = np.cos(lidar.elevations)
    up = np.broadcast_to(np.sin(lidar.elevations), clockwise.shape)
    directions = np.stack([level * np.cos(clockwise), -level * np.sin(clockwise), up], axis=-1)
    # Ring 0 is the lowest beam, as in the drivers.
    order = np.argsort(np.argsort(lidar.elevations)).astype(np.uint16)
    ring = np.broadcast_to(order, clockwise.shape)
    return Shots(np.rint(seconds * 1e9).astype(np.int64).ravel(), directions.reshape(-1, 3), ring.ravel())


def scan(
    scene: Scene,
    body: Motion,
    T_body_sensor: Floats,
    begin_ns: int,
    lidar: SpinningLidar,
    shots: Shots,
    reflectance: Reflectance,
    noise: np.random.Generator,
    day_ns: int = 0,
    bias: Floats | None = None,
) -> PointCloud:
    """Return the returns of a revolution, in the sensor's frame at the time of each shot.

    Parameters
    ----------
    body : Motion
        Must last until the end of the revolution.
    T_body_sensor : (4, 4)
    begin_ns : int
        Start of the revolution, and time of the cloud.
    noise : Generator
        Generator of the range noise.
    day_ns : int
        Start of the day, for moving solids.
    bias : (beams,) array, optional
        Range biases by ring, m (`draw_bias`).

    Returns
    -------
    PointCloud
        With `intensity` (0-255), `ring` and `t_offset_ns`.
    """
    origins, directions = _rays(body, T_body_sensor, begin_ns + shots.offset_ns, shots.directions)
    when = (begin_ns - day_ns + shots.offset_ns).astype(np.float64) * 1e-9
    hits = cast(scene, origins, directions, lidar.range[1], when)
    incidence = np.abs(np.einsum("ij,ij->i", hits.normal, directions))
    measured = hits.range + lidar.range_std * noise.standard_normal(len(hits.range))
    measured += 0.0 if bias is None else bias[shots.ring]
    is_return = (
        np.isfinite(hits.range) & (hits.range >= lidar.range[0]) & (incidence > np.cos(lidar.max_incidence))
    )
    kept = np.flatnonzero(is_return)
    returns = Hits(hits.range[kept], hits.kind[kept], hits.normal[kept])
    points = origins[kept] + returns.range[:, None] * directions[kept]
    light = reflectance(points, returns) * incidence[kept]
    detected = light >= lidar.min_signal * returns.range**2
    kept, light = kept[detected], light[detected]
    return PointCloud(
        (measured[kept, None] * shots.directions[kept]).astype(np.float32),
        {
            "intensity": np.rint(np.clip(WHITE_INTENSITY * light, 0, 255)).astype(np.float32),
            "ring": shots.ring[kept],
            "t_offset_ns": shots.offset_ns[kept],
        },
        t_ns=begin_ns,
    )


def draw_bias(lidar: SpinningLidar, seed: int) -> Floats:
    """Return the constant range biases (beams,) by ring, m."""
    return lidar.bias_std * generator(seed, "lidar", "bias").standard_normal(len(lidar.elevations))


def _rays(body: Motion, T_body_sensor: Floats, t_ns: Ints, directions: Floats) -> tuple[Floats, Floats]:
    """Origins and unit vectors (n, 3) in the world, of shots at times (n,) along the sensor's vectors."""
    # Simultaneous beams share a pose, because interpolating attitudes is slow.
    times, row = np.unique(t_ns, return_inverse=True)
    poses = body.at(times)
    rotation, lever = se3.to_quaternion(T_body_sensor)
    positions = poses.position + rotations.rotate(poses.quaternion, lever)
    attitude = rotations.matrix_from_quaternion(rotations.multiply(poses.quaternion, rotation))
    return positions[row], np.einsum("nij,nj->ni", attitude[row], directions)
