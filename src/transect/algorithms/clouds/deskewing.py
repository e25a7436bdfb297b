"""When each point of a scan was measured, and the scan as if all of it had been measured at one time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.geometry import kernels, rotations
from transect.types import PointCloud

OFFSETS = "t_offset_ns"
BLOCKS = 256
"""Of consecutive points, whose mean direction stands for their beams: those of one shot differ by degrees."""
STEADY = 0.95
"""Share of blocks that must turn the same way; clouds in another order do not come near it."""
LEAST_TURN, MOST_TURN = 0.75, 1.1
"""Revolutions in a scan; a cloud ordered by rings has one for each ring."""
EXACT = 1e-9
"""Where the series ends, relative to the largest coordinate: nanometres in a scan of metres."""


def point_offsets(cloud: PointCloud, period_ns: int) -> Ints | None:
    """Return when each point (n,) was measured, in ns after the cloud's time; None where nothing tells.

    Parameters
    ----------
    cloud : PointCloud
        With `t_offset_ns`, or of one revolution in the order of firing.
    period_ns : int
        Of a revolution; only asked for where the cloud has no times.
    """
    if OFFSETS in cloud.fields:
        return np.asarray(cloud.fields[OFFSETS], dtype=np.int64)
    turned = revolutions(cloud.points)
    return None if turned is None else np.rint(turned * period_ns).astype(np.int64)


def revolutions(points: NDArray[np.floating]) -> Floats | None:
    """Return how far (n,) a spinning lidar had turned at each point, in revolutions from 0 at the first.

    The way in which it turns is found from the order of the points (n, 3). None for clouds that were not
    fired in this order: sorted, thinned, straightened already, or not of a spinning lidar.
    """
    if len(points) < 4 * BLOCKS:
        return None
    # A few points of each block will do.
    picked = np.arange(0, len(points), max(len(points) // (16 * BLOCKS), 1))
    flat = np.nan_to_num(np.asarray(points[picked, :2], dtype=np.float64))
    flat /= np.maximum(np.hypot(flat[:, 0], flat[:, 1]), 1e-9)[:, None]
    edges = np.linspace(0, len(picked), BLOCKS + 1).astype(np.int64)
    means = np.add.reduceat(flat, edges[:-1], axis=0)
    azimuth = np.unwrap(np.arctan2(means[:, 1], means[:, 0]))
    way = np.sign(azimuth[-1] - azimuth[0])
    turn = np.maximum.accumulate(way * (azimuth - azimuth[0])) / (2 * np.pi)
    steady = float(np.mean(way * np.diff(azimuth) > 0))
    if steady < STEADY or not LEAST_TURN <= turn[-1] <= MOST_TURN:
        return None
    middles = (picked[edges[:-1]] + picked[edges[1:] - 1]) / 2
    return np.interp(np.arange(len(points)), middles, turn)


def straighten(points: NDArray[np.floating], seconds: Floats, twist: Floats) -> Floats:
    """Return points (n, 3) of a sensor as it would have measured them at second 0.

    Parameters
    ----------
    points : (n, 3)
        In the sensor's frame, each at its own time.
    seconds : (n,)
        Those times.
    twist : (6,)
        Velocity of the sensor in its own frame, steady over the scan: m/s, then rad/s.
    """
    turning = rotations.skew(twist[3:])
    angle = float(np.linalg.norm(twist[3:]) * np.abs(seconds).max(initial=0.0))
    return _move(points, twist[:3, None] * seconds, lambda term: (turning @ term) * seconds, angle)


def move_each(points: NDArray[np.floating], twists: Floats) -> Floats:
    """Return points (n, 3), each moved by ``exp`` of its own twist (n, 6): m, then rad."""
    shift, turn = np.ascontiguousarray(twists[:, :3].T), np.ascontiguousarray(twists[:, 3:].T)
    angle = float(np.sqrt(np.max(np.einsum("ij,ij->j", turn, turn), initial=0.0)))
    return _move(points, shift, lambda term: np.array(kernels.cross(turn, term)), angle)


def _move(
    points: NDArray[np.floating], shift: Floats, turn: Callable[[Floats], Floats], angle: float
) -> Floats:
    """Return ``exp(xi) p`` of points (n, 3) by its series.

    A few products of all points at once, where Rodrigues' formula would need sine and cosine of each.

    Parameters
    ----------
    shift : (3, n)
        Translations of the twists.
    turn : callable
        Returns cross products (3, n) of their rotations with vectors (3, n).
    angle : float
        Of the largest rotation, rad.
    """
    result = np.array(points.T, dtype=np.float64, order="C")
    term = turn(result) + shift
    order, size = 1, 1.0
    while size > EXACT:
        result += term
        order += 1
        term = turn(term) / order
        size *= angle / order
    return result.T
