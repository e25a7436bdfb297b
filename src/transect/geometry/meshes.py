"""Triangle meshes of boxes, cylinders and spheres."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats

from .array_checks import floats


def box(size: ArrayLike) -> Floats:
    """Return the triangles (12, 3, 3) of a box centred at the origin, counter-clockwise seen from outside.

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


def cylinder(radius: float, length: float, *, segments: int = 24) -> Floats:
    """Return the triangles (n, 3, 3) of a cylinder along z, centred at the origin, m."""
    ring = _ring(radius, segments)
    after = np.roll(ring, -1, axis=0)
    half = np.array([0.0, 0.0, length / 2])
    centre = np.zeros_like(ring)
    wall = _quads(ring - half, after - half, after + half, ring + half)
    caps = [np.stack([centre + half, ring + half, after + half], axis=1)]
    caps += [np.stack([centre - half, after - half, ring - half], axis=1)]
    return np.concatenate([wall, *caps])


def sphere(radius: float, *, segments: int = 24) -> Floats:
    """Return the triangles (n, 3, 3) of a sphere centred at the origin, m."""
    latitudes = np.linspace(-np.pi / 2, np.pi / 2, segments // 2 + 1)
    rings = [_ring(radius * np.cos(each), segments, radius * np.sin(each)) for each in latitudes]
    bands = [
        _quads(low, np.roll(low, -1, axis=0), np.roll(high, -1, axis=0), high)
        for low, high in pairwise(rings)
    ]
    return np.concatenate(bands)


def _ring(radius: float, segments: int, height: float = 0.0) -> Floats:
    angles = np.linspace(0, 2 * np.pi, segments, endpoint=False)
    return np.column_stack([radius * np.cos(angles), radius * np.sin(angles), np.full(segments, height)])


def _quads(a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    """Return two triangles for each of n quadrilaterals with corners (n, 3)."""
    return np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
