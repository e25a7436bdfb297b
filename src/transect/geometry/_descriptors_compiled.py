"""Compiled counts of all pairs in a neighbourhood, for point feature histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

from transect.base.arrays import Floats, Ints

PARTS = 5
"""Bins of each of the three angles."""


def joint_histogram(points: Floats, normal: Floats, neighbours: Ints, count: Ints, tied: float) -> Floats:
    """Count the angles of all pairs of neighbours, in histograms (k, 125) of sum 1; NaN without a pair.

    Parameters
    ----------
    points, normal : (n, 3)
        Finite; unit normals.
    neighbours : (m,)
        Rows of the points around the keypoints, one keypoint after the other.
    count : (k,)
        Neighbours of each.
    tied : float
        Cosines that differ by less count as equal.
    """
    return _count_all(points, normal, neighbours, count, tied)


@njit(cache=True, nogil=True, error_model="numpy")
def _count_all(points: Any, normal: Any, neighbours: Any, count: Any, tied: float) -> Any:
    filled = np.zeros((len(count), PARTS**3))
    begin = 0
    for keypoint in range(len(count)):
        end = begin + count[keypoint]
        for i in range(begin + 1, end):
            for j in range(begin, i):
                filled[keypoint, _bin(points, normal, neighbours[i], neighbours[j], tied)] += 1.0
        pairs = count[keypoint] * (count[keypoint] - 1) / 2
        filled[keypoint] /= pairs if pairs > 0 else np.nan
        begin = end
    return filled


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _part(share: float) -> int:
    """Return the bin of a share from 0 to 1."""
    return min(max(int(share * PARTS), 0), PARTS - 1)


@njit(cache=True, nogil=True, error_model="numpy")
def _bin(points: Any, normal: Any, i: int, j: int, tied: float) -> int:
    """Return the bin of the three angles of a pair (Rusu 2008, eq. 1), whichever of both comes first."""
    x, y, z = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1], points[j, 2] - points[i, 2]
    length = np.sqrt(x * x + y * y + z * z)
    theta = alpha = phi = 0.0
    if length > 0:
        x, y, z = x / length, y / length, z / length
        first = normal[i, 0] * x + normal[i, 1] * y + normal[i, 2] * z
        second = normal[j, 0] * x + normal[j, 1] * y + normal[j, 2] * z
        # The frame stands on the point whose normal is nearer to the line.
        apart = abs(first) - abs(second)
        swap = first < 0 if abs(apart) < tied else apart < 0
        if swap:
            i, j, x, y, z, first = j, i, -x, -y, -z, -second
        ux, uy, uz = normal[i, 0], normal[i, 1], normal[i, 2]
        vx, vy, vz = y * uz - z * uy, z * ux - x * uz, x * uy - y * ux
        across = np.sqrt(vx * vx + vy * vy + vz * vz)
        if across > 0:
            vx, vy, vz = vx / across, vy / across, vz / across
            wx, wy, wz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
            nx, ny, nz = normal[j, 0], normal[j, 1], normal[j, 2]
            alpha = vx * nx + vy * ny + vz * nz
            phi = first
            theta = np.arctan2(wx * nx + wy * ny + wz * nz, ux * nx + uy * ny + uz * nz)
    share = (theta + np.pi) / (2 * np.pi)
    return _part(share) + PARTS * (_part((alpha + 1) / 2) + PARTS * _part((phi + 1) / 2))
