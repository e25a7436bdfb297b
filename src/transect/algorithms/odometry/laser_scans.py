"""Returns of a planar scan as points of the body, and the walls between them."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.types import LaserScan

GAP, GAP_BEAMS = 0.1, 3.0
"""Two returns are on one wall if they are nearer than 0.1 m and three times the way between beams there."""
STRAIGHT, BESIDE = 0.99, 0.02
"""Steps go on along one wall: cosine between them, and metres by which three returns may be off a line."""

THINNED = 0.1
"""Metres: one point of a scan per square of this size is matched."""
NEIGHBOURS = 7
"""Points from which the direction of a wall is told."""


def points_of(scan: LaserScan, T_body_laser: Floats, farthest: float) -> Floats:
    """Return the returns (n, 2) of a scan in the body's plane, in the order of the beams."""
    returned = scan.returned(farthest=farthest)
    ranges, angles = scan.ranges[returned], scan.angles[returned]
    flat = np.stack([ranges * np.cos(angles), ranges * np.sin(angles)], axis=-1)
    return flat @ T_body_laser[:2, :2].T + T_body_laser[:2, 3]


def walls_of(points: Floats, beam: float, spacing: float) -> Floats:
    """Return points (m, 2) along the walls between neighbouring returns, not further apart than `spacing`.

    Beams fall thinly on walls that are far away; without what is between them a scan is drawn to the very
    places where another one's beams fell.

    Parameters
    ----------
    points : (n, 2)
        Returns in the order of their beams, about a body near the laser.
    beam : float
        Angle between neighbouring beams, rad.
    """
    if len(points) < 2:
        return points
    steps = np.diff(points, axis=0)
    length = np.linalg.norm(steps, axis=1)
    joined = _are_joined(points, steps, length, beam)
    count = np.where(joined, np.maximum(np.ceil(length / spacing), 1), 1).astype(np.int64)
    first = np.repeat(np.arange(len(steps)), count)
    share = (np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)) / count[first]
    return np.concatenate([points[first] + share[:, None] * steps[first] * joined[first, None], points[-1:]])


def _are_joined(points: Floats, steps: Floats, length: Floats, beam: float) -> Mask:
    """Tell which neighbouring returns are on one wall: near ones, and further ones of a wall seen aslant."""
    away = np.linalg.norm(points[:-1], axis=1)
    across = GAP_BEAMS * beam * away
    ahead = steps / np.maximum(length, 1e-9)[:, None]
    over = np.linalg.norm(points[2:] - points[:-2], axis=1)
    beside = np.abs(steps[:-1, 0] * steps[1:, 1] - steps[:-1, 1] * steps[1:, 0]) / np.maximum(over, 1e-9)
    straight = (np.sum(ahead[1:] * ahead[:-1], axis=1) > STRAIGHT) & (beside < BESIDE)
    goes_on = np.concatenate([[False], straight]) | np.concatenate([straight, [False]])
    aslant = np.abs(points[:-1, 0] * ahead[:, 1] - points[:-1, 1] * ahead[:, 0]) / np.maximum(away, 1e-9)
    longest = GAP + across / np.maximum(aslant, 1e-2)
    return (length <= GAP + across) | (goes_on & (length <= longest))


def thin(points: Floats, size: float) -> Floats:
    """Return at most one point (m, 2) per square: near walls, which many beams meet, count as others do."""
    cells = np.floor(points / size).astype(np.int64)
    _, first = np.unique(cells, axis=0, return_index=True)
    return points[np.sort(first)]


def count_across(points: Floats) -> float:
    """Return how many of the points (n, 2) hold a scan along the direction in which fewest do.

    A point holds it across its wall: the information of all is the sum of the walls' normals, n n^T, each
    as far as its neighbourhood is a line; this is the weaker eigenvalue.
    """
    from scipy.spatial import KDTree

    if len(points) <= NEIGHBOURS:
        return 0.0
    near = points[KDTree(points).query(points, NEIGHBOURS)[1]]
    x, y = np.moveaxis(near - near.mean(axis=1, keepdims=True), -1, 0)
    spread = np.maximum(np.sum(x**2 + y**2, axis=1), 1e-12)
    along = (np.sum(x**2 - y**2, axis=1) + 2j * np.sum(x * y, axis=1)) / spread  # twice the angle of the wall
    return float(np.abs(along).sum() - np.abs(along.sum())) / 2
