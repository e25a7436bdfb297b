"""Surfaces of simple bodies and of height maps, as triangles."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats

from .array_checks import floats

ROUND = 24
"""Sides of a cylinder, and meridians of a sphere."""


def box(size: ArrayLike) -> Floats:
    """Return the triangles (12, 3, 3) of a box about its centre, outside counter-clockwise.

    Parameters
    ----------
    size : (3,) array
        Edges along x, y, z, m.
    """
    edges = floats("edges of a box", size, (3,))
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, -1], [1, 1], [-1, 1]]) / 2
    sides: list[Floats] = []
    for axis in range(3):
        across, up = (axis + 1) % 3, (axis + 2) % 3
        for sign in (1.0, -1.0):
            side = np.zeros((6, 3))
            side[:, axis], side[:, across], side[:, up] = sign / 2, sign * square[:, 0], square[:, 1]
            sides.append(side)
    return np.concatenate(sides).reshape(-1, 3, 3) * edges


def cylinder(radius: float, length: float) -> Floats:
    """Return the triangles (n, 3, 3) of a cylinder about z, its centre in the middle; both in m."""
    ring = _ring(radius)
    after = np.roll(ring, -1, axis=0)
    half = np.array([0.0, 0.0, length / 2])
    centre = np.zeros_like(ring)
    wall = _quads(ring - half, after - half, after + half, ring + half)
    caps = [np.stack([centre + half, ring + half, after + half], axis=1)]
    caps += [np.stack([centre - half, after - half, ring - half], axis=1)]
    return np.concatenate([wall, *caps])


def sphere(radius: float) -> Floats:
    """Return the triangles (n, 3, 3) of a sphere about its centre, m."""
    tilts = np.linspace(-np.pi / 2, np.pi / 2, ROUND // 2 + 1)
    rings = [_ring(radius * np.cos(tilt), radius * np.sin(tilt)) for tilt in tilts]
    bands = pairwise(rings)
    turned = ((low, np.roll(low, -1, axis=0), np.roll(high, -1, axis=0), high) for low, high in bands)
    return np.concatenate([_quads(*band) for band in turned])


def _ring(radius: float, height: float = 0.0) -> Floats:
    angles = np.linspace(0, 2 * np.pi, ROUND, endpoint=False)
    return np.column_stack([radius * np.cos(angles), radius * np.sin(angles), np.full(ROUND, height)])


def _quads(a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    """Return two triangles for each of n quadrangles with corners (n, 3)."""
    return np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
