"""Scans of a spinning lidar in rooms of boxes, by ray casting."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from transect.geometry import se3
from transect.types import PointCloud

Floats = NDArray[np.float64]

PERIOD_NS = 100_000_000
ROOM = (np.array([-9.0, -6.0, -1.5]), np.array([11.0, 7.0, 2.5]))
"""Corners of the room that the lidar is in, m."""
FURNITURE = (
    (np.array([3.0, 2.0, -1.5]), np.array([5.0, 3.5, 0.5])),
    (np.array([-5.0, -4.0, -1.5]), np.array([-3.5, -2.0, 1.0])),
    (np.array([6.0, -4.5, -1.5]), np.array([7.0, -3.0, 2.0])),
)
CORRIDOR = (np.array([-500.0, -1.5, -1.0]), np.array([500.0, 1.5, 1.5]))


def motion(twist: Floats) -> Callable[[Floats], Floats]:
    """Return the function of poses (n, 4, 4) at times (n,), s, of a constant twist (6,)."""
    return lambda seconds: se3.exp(np.asarray(seconds)[:, None] * twist)


def scan(
    poses: Callable[[Floats], Floats],
    start_s: float,
    *,
    room: tuple[Floats, Floats] = ROOM,
    furniture: tuple[tuple[Floats, Floats], ...] = FURNITURE,
    direction: int = -1,
    noise: float = 0.0,
    timed: bool = True,
) -> PointCloud:
    """Return one revolution as the device gives it: each beam from the pose at its time."""
    azimuth, elevation = np.meshgrid(np.arange(360) * np.pi / 180, np.linspace(-0.4, 0.4, 16), indexing="ij")
    azimuth_rad, elevation_rad = azimuth.ravel(), elevation.ravel()
    offset_ns = np.rint(azimuth_rad / (2 * np.pi) * PERIOD_NS).astype(np.int64)
    rays = np.stack(
        [
            np.cos(elevation_rad) * np.cos(direction * azimuth_rad),
            np.cos(elevation_rad) * np.sin(direction * azimuth_rad),
            np.sin(elevation_rad),
        ],
        1,
    )
    T = poses(start_s + offset_ns / 1e9)
    directions = np.einsum("nij,nj->ni", T[:, :3, :3], rays)
    ranges = distances(T[:, :3, 3], directions, room, furniture)
    ranges = ranges + noise * np.random.default_rng(round(start_s * 1e6)).standard_normal(len(ranges))
    fields = {"t_offset_ns": offset_ns} if timed else {}
    return PointCloud(ranges[:, None] * rays, fields, 1_000_000_000 + round(start_s * 1e9), "lidar")


def distances(
    origins: Floats, directions: Floats, room: tuple[Floats, Floats], boxes: tuple[tuple[Floats, Floats], ...]
) -> Floats:
    """Return ranges (n,), m, to the walls of a room around the origins, or to boxes in it (slab method)."""
    with np.errstate(divide="ignore"):
        inverse = 1.0 / directions
    ranges = np.maximum((room[0] - origins) * inverse, (room[1] - origins) * inverse).min(axis=1)
    for low, high in boxes:
        a, b = (low - origins) * inverse, (high - origins) * inverse
        enter, leave = np.minimum(a, b).max(axis=1), np.maximum(a, b).min(axis=1)
        ranges = np.where((enter < leave) & (enter > 0), np.minimum(ranges, enter), ranges)
    return ranges


def wall_distances(points: Floats, room: tuple[Floats, Floats] = ROOM) -> Floats:
    """Return distances (n,) of points (n, 3) from the nearest face of the room or its furniture, m."""
    faces = [room, *FURNITURE]
    distances_to_faces = []
    for low, high in faces:
        outside = np.maximum(np.maximum(low - points, points - high), 0.0)
        inside = np.minimum(points - low, high - points).min(axis=1)
        distances_to_faces.append(np.where(inside > 0, inside, np.linalg.norm(outside, axis=1)))
    return np.min(distances_to_faces, axis=0)
