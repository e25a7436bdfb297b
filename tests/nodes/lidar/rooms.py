"""Scans of a spinning lidar in rooms made of boxes, by intersecting rays with their faces."""

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
    """Poses (n, 4, 4) at seconds (n,) of a steady twist (6,), from the identity on."""
    return lambda seconds: se3.exp(np.asarray(seconds)[:, None] * twist)


def scan(
    poses: Callable[[Floats], Floats],
    begin: float,
    *,
    room: tuple[Floats, Floats] = ROOM,
    furniture: tuple[tuple[Floats, Floats], ...] = FURNITURE,
    way: int = -1,
    noise: float = 0.0,
    timed: bool = True,
) -> PointCloud:
    """One revolution as the device gives it: each shot from where the lidar is at that time."""
    azimuth, elevation = np.meshgrid(np.arange(360) * np.pi / 180, np.linspace(-0.4, 0.4, 16), indexing="ij")
    turned, up = azimuth.ravel(), elevation.ravel()
    offset_ns = np.rint(turned / (2 * np.pi) * PERIOD_NS).astype(np.int64)
    rays = np.stack([np.cos(up) * np.cos(way * turned), np.cos(up) * np.sin(way * turned), np.sin(up)], 1)
    T = poses(begin + offset_ns / 1e9)
    directions = np.einsum("nij,nj->ni", T[:, :3, :3], rays)
    reach = distances(T[:, :3, 3], directions, room, furniture)
    reach = reach + noise * np.random.default_rng(round(begin * 1e6)).standard_normal(len(reach))
    fields = {"t_offset_ns": offset_ns} if timed else {}
    return PointCloud(reach[:, None] * rays, fields, 1_000_000_000 + round(begin * 1e9), "lidar")


def distances(
    origins: Floats, directions: Floats, room: tuple[Floats, Floats], boxes: tuple[tuple[Floats, Floats], ...]
) -> Floats:
    """Metres (n,) along rays to the walls of a room around them, or to boxes in it (slab method)."""
    with np.errstate(divide="ignore"):
        inverse = 1.0 / directions
    reach = np.maximum((room[0] - origins) * inverse, (room[1] - origins) * inverse).min(axis=1)
    for low, high in boxes:
        a, b = (low - origins) * inverse, (high - origins) * inverse
        enter, leave = np.minimum(a, b).max(axis=1), np.maximum(a, b).min(axis=1)
        reach = np.where((enter < leave) & (enter > 0), np.minimum(reach, enter), reach)
    return reach


def off_the_walls(points: Floats, room: tuple[Floats, Floats] = ROOM) -> Floats:
    """Metres (n,) from points (n, 3) to the nearest face of the room or its furniture."""
    faces = [room, *FURNITURE]
    gaps = []
    for low, high in faces:
        outside = np.maximum(np.maximum(low - points, points - high), 0.0)
        inside = np.minimum(points - low, high - points).min(axis=1)
        gaps.append(np.where(inside > 0, inside, np.linalg.norm(outside, axis=1)))
    return np.min(gaps, axis=0)
