"""Compiled counts of all pairs in a neighbourhood, for point feature histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

from transect.base.arrays import Floats, Ints

BINS_PER_ANGLE = 5


def joint_histogram(
    points: Floats, normal: Floats, neighbours: Ints, count: Ints, cosine_tolerance: float
) -> Floats:
    """Return joint histograms (k, 125) of the angles of all pairs of neighbours; NaN without a pair.

    Parameters
    ----------
    points, normal : (n, 3)
        Finite; unit normals.
    neighbours : (m,)
        Row indices of the neighbours, concatenated over the keypoints.
    count : (k,)
        Number of neighbours of each keypoint.
    cosine_tolerance : float
        Cosines that differ by less are treated as equal.
    """
    return _joint_histogram(points, normal, neighbours, count, cosine_tolerance)


@njit(cache=True, nogil=True, error_model="numpy")
def _joint_histogram(points: Any, normal: Any, neighbours: Any, count: Any, cosine_tolerance: float) -> Any:
    histogram = np.zeros((len(count), BINS_PER_ANGLE**3))
    begin = 0
    for keypoint in range(len(count)):
        end = begin + count[keypoint]
        for i in range(begin + 1, end):
            for j in range(begin, i):
                cell = _pair_bin(points, normal, neighbours[i], neighbours[j], cosine_tolerance)
                histogram[keypoint, cell] += 1.0
        pairs = count[keypoint] * (count[keypoint] - 1) / 2
        histogram[keypoint] /= pairs if pairs > 0 else np.nan
        begin = end
    return histogram


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _angle_bin(fraction: float) -> int:
    """Return the bin of an angle given as a fraction (0 to 1) of its range."""
    return min(max(int(fraction * BINS_PER_ANGLE), 0), BINS_PER_ANGLE - 1)


@njit(cache=True, nogil=True, error_model="numpy")
def _pair_bin(points: Any, normal: Any, i: int, j: int, cosine_tolerance: float) -> int:
    """Return the bin of the three angles of a pair (Rusu 2008, eq. 1); symmetric in i and j."""
    x, y, z = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1], points[j, 2] - points[i, 2]
    length = np.sqrt(x * x + y * y + z * z)
    theta = alpha = phi = 0.0
    if length > 0:
        x, y, z = x / length, y / length, z / length
        first = normal[i, 0] * x + normal[i, 1] * y + normal[i, 2] * z
        second = normal[j, 0] * x + normal[j, 1] * y + normal[j, 2] * z
        # The Darboux frame is placed at the point whose normal makes the smaller angle with the line.
        difference = abs(first) - abs(second)
        swap = first < 0 if abs(difference) < cosine_tolerance else difference < 0
        if swap:
            i, j, x, y, z, first = j, i, -x, -y, -z, -second
        ux, uy, uz = normal[i, 0], normal[i, 1], normal[i, 2]
        vx, vy, vz = y * uz - z * uy, z * ux - x * uz, x * uy - y * ux
        sine = np.sqrt(vx * vx + vy * vy + vz * vz)
        if sine > 0:
            vx, vy, vz = vx / sine, vy / sine, vz / sine
            wx, wy, wz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
            nx, ny, nz = normal[j, 0], normal[j, 1], normal[j, 2]
            alpha = vx * nx + vy * ny + vz * nz
            phi = first
            theta = np.arctan2(wx * nx + wy * ny + wz * nz, ux * nx + uy * ny + uz * nz)
    theta_bin = _angle_bin((theta + np.pi) / (2 * np.pi))
    alpha_bin, phi_bin = _angle_bin((alpha + 1) / 2), _angle_bin((phi + 1) / 2)
    return theta_bin + BINS_PER_ANGLE * (alpha_bin + BINS_PER_ANGLE * phi_bin)
