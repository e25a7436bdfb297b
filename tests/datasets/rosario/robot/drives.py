"""A drive whose every position is known in closed form: a furrow, half a circle to the left, and back."""

from __future__ import annotations

import numpy as np

FURROW_LENGTH_M, RADIUS_M = 40.0, 5.0
LEVER = np.array([1.8, -0.030, 1.593])
"""Rosario, Table 1: the antenna in base_link."""
MAX_DURATION_S = 95.0
"""Longest time to ask for."""


def way(t: np.ndarray) -> np.ndarray:
    """Metres driven after t seconds, at 1 m/s with some swing that a correlation can hold on to."""
    return t + 0.4 * np.sin(t / 3) + 0.3 * np.sin(t * t / 90)


def base(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n, 3) of base_link and headings (n,) after t seconds."""
    s = way(t)
    angle = np.clip((s - FURROW_LENGTH_M) / RADIUS_M, 0, np.pi)
    before, after = np.minimum(s, FURROW_LENGTH_M), np.maximum(s - FURROW_LENGTH_M - np.pi * RADIUS_M, 0)
    x = before + RADIUS_M * np.sin(angle) - after
    y = RADIUS_M * (1 - np.cos(angle))
    return np.column_stack([x, y, np.zeros(len(t))]), angle


def antenna(t: np.ndarray) -> np.ndarray:
    """Positions (n, 3) of the antenna after t seconds."""
    positions, heading = base(t)
    c, s = np.cos(heading), np.sin(heading)
    swung = np.column_stack([LEVER[0] * c - LEVER[1] * s, LEVER[0] * s + LEVER[1] * c, 0 * c + LEVER[2]])
    return positions + swung


def turned(points: np.ndarray, yaw: float, shift: tuple[float, float, float]) -> np.ndarray:
    """Points as another frame has them, turned about z and moved."""
    c, s = np.cos(yaw), np.sin(yaw)
    return points @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + shift
