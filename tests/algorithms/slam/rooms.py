"""Simulated planar laser scans in corridors around a block, by ray casting."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from transect.recording import Recording, arrow, stream_of_values
from transect.types import LaserScan, Odometry

PERIOD_NS = 200_000_000
SCAN_BEAMS = 180


def box(x0: float, y0: float, x1: float, y1: float) -> list[tuple[float, float, float, float]]:
    """Return the four walls of a box."""
    return [(x0, y0, x1, y0), (x1, y0, x1, y1), (x1, y1, x0, y1), (x0, y1, x0, y0)]


def block(seed: int = 0, niches: int = 14) -> np.ndarray:
    """Return the walls (n, 4) of a corridor 2.4 m wide around a block of 12 by 8 m, with uneven niches."""
    random = np.random.default_rng(seed)
    walls = [*box(-1.2, -1.2, 13.2, 9.2), *box(1.2, 1.2, 10.8, 6.8)]
    for _ in range(niches):
        along, size = random.uniform(0.5, 11.0), random.uniform(0.2, 0.5)
        x, y = ((along, -1.2), (along, 9.2), (-1.2, along * 0.7), (13.2, along * 0.7))[random.integers(4)]
        walls += box(x - size, y - size, x + size, y + size)
    return np.array(walls)


def row(houses: int = 5, spacing: float = 6.0) -> np.ndarray:
    """Return the walls (n, 4) of equal houses at equal distances on both sides of a street along x."""
    middles = itertools.product(spacing * np.arange(houses), (-6.0, 6.0))
    return np.array([wall for x, y in middles for wall in box(x - 2.0, y - 2.0, x + 2.0, y + 2.0)])


def cast(walls: np.ndarray, pose: Sequence[float], farthest: float = 20.0) -> np.ndarray:
    """Return the ranges of 180 beams, from right to left, at a pose x, y, heading; NaN for nothing."""
    angles = pose[2] + np.linspace(-np.pi / 2, np.pi / 2, SCAN_BEAMS, endpoint=False)
    d = np.stack([np.cos(angles), np.sin(angles)], axis=-1)[:, None]
    a, b = walls[None, :, :2] - np.asarray(pose[:2]), walls[None, :, 2:] - walls[None, :, :2]
    cross = d[..., 0] * b[..., 1] - d[..., 1] * b[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        away = (a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]) / cross
        along = (a[..., 0] * d[..., 1] - a[..., 1] * d[..., 0]) / cross
    hit = (away > 0) & (along >= 0) & (along <= 1)
    nearest = np.where(hit, away, np.inf).min(axis=1)
    return np.where(nearest < farthest, nearest, np.nan)


def walk(corners: Sequence[Sequence[float]], step: float = 0.1, turn: float = 0.1) -> np.ndarray:
    """Return poses (n, 3) from corner to corner, turning on the spot."""
    poses = [np.array([*corners[0], 0.0])]
    for corner in corners[1:]:
        way = np.asarray(corner, float) - poses[-1][:2]
        missing = (np.arctan2(way[1], way[0]) - poses[-1][2] + np.pi) % (2 * np.pi) - np.pi
        for motion, count in (
            (np.array([0.0, 0.0, missing]), int(np.ceil(abs(missing) / turn))),
            (np.array([*way, 0.0]), int(np.ceil(np.linalg.norm(way) / step))),
        ):
            start = poses[-1]
            poses += [start + motion * (n + 1) / count for n in range(count)]
    return np.array(poses)


ROUND = ((0.0, 0.0), (12.0, 0.0), (12.0, 8.0), (0.0, 8.0), (0.0, 0.0))


def odometry_of(poses: np.ndarray, seed: int = 1) -> np.ndarray:
    """Return poses (n, 3) of wheels that go 3 % too far and turn 4 % too far, and noisily."""
    random = np.random.default_rng(seed)
    found = [np.zeros(3)]
    for before, after in itertools.pairwise(poses):
        c, s = np.cos(before[2]), np.sin(before[2])
        x, y, turn = after - before
        ahead = 1.03 * (c * x + s * y) + random.normal(0, 0.003)
        heading = found[-1][2] + 1.04 * turn + random.normal(0, 0.004)
        x, y = found[-1][:2] + ahead * np.array([np.cos(heading), np.sin(heading)])
        found.append(np.array([x, y, heading]))
    return np.array(found)


def record(
    walls: np.ndarray, poses: np.ndarray, *, odometry: bool = True, start_ns: int = 10**9, seed: int = 1
) -> Recording:
    """Return a drive as a recording: scans with 1 cm of noise, and wheel odometry."""
    random = np.random.default_rng(seed)
    times = start_ns + PERIOD_NS * np.arange(len(poses))
    ranges = [cast(walls, pose) + random.normal(0, 0.01, SCAN_BEAMS) for pose in poses]
    beams = {
        "ranges": arrow.ragged(ranges),
        "start_angle": np.full(len(poses), -np.pi / 2),
        "angle_increment": np.full(len(poses), np.pi / SCAN_BEAMS),
    }
    laser = {"type": LaserScan, "clock": "device", "frame": "laser"}
    streams = [stream_of_values("scan", times, beams, **laser)]
    if odometry:
        x, y, a = odometry_of(poses, seed).T
        nothing = np.zeros_like(x)
        pose = {
            "x": x,
            "y": y,
            "z": nothing,
            "qx": nothing,
            "qy": nothing,
            "qz": np.sin(a / 2),
            "qw": np.cos(a / 2),
        }
        about = {"type": Odometry, "clock": "device", "frame": "odom", "child": "robot"}
        streams.append(stream_of_values("wheels", times, pose, **about))
    return Recording("rooms", tuple(streams))
