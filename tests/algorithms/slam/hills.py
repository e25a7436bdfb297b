"""Simulated lidar scans of hills and rocks."""

from __future__ import annotations

import numpy as np

from transect.geometry import rotations, se3

MAX_RANGE_M = 22.0


def height(xy: np.ndarray, seed: int) -> np.ndarray:
    """Return the height of the ground, m, at positions (n, 2): a sum of random bumps."""
    rng = np.random.default_rng(seed)
    centres, sizes = rng.uniform(-40, 40, (160, 2)), rng.uniform(1.0, 4.0, 160)
    distance = np.linalg.norm(xy[:, None] - centres, axis=-1)
    return (0.5 * sizes * np.exp(-((distance / sizes) ** 2) / 2) * rng.choice([-1, 1], 160)).sum(axis=1)


def measure(pose: np.ndarray, seed: int = 1, draw: int = 0) -> np.ndarray:
    """Return points (n, 3) in the axes of a body at a pose (4, 4), with 1 cm of noise."""
    rng = np.random.default_rng([seed, draw])
    xy = pose[:2, 3] + MAX_RANGE_M * np.sqrt(rng.uniform(0, 1, 6000))[:, None] * _directions(rng, 6000)
    points = np.column_stack([xy, height(xy, seed)]) + rng.normal(0, 0.01, (6000, 3))
    return se3.apply(se3.invert(pose), points)


def _directions(rng: np.random.Generator, count: int) -> np.ndarray:
    angle = rng.uniform(0, 2 * np.pi, count)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def body_pose(x: float, y: float, heading: float, pitch: float = 0.0) -> np.ndarray:
    """Return T_world_body (4, 4) of a body two metres above the mean ground."""
    turn = rotations.matrix_from_euler("zyx", [heading, pitch, 0.0])
    return se3.from_matrix(turn, np.array([x, y, 2.0]))


def observation(points: np.ndarray) -> dict[str, np.ndarray]:
    return {"points": points.astype(np.float32)}
