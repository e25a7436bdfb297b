"""Deskewing: times of the points of a scan, and compensation of the motion during the scan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.geometry import kernels, rotations
from transect.types import PointCloud

OFFSET_FIELD = "t_offset_ns"


@dataclass(frozen=True)
class FiringOrderSettings:
    """Settings of the test whether points are in the order of firing of a spinning lidar."""

    # Blocks of consecutive points, whose mean directions are used: beams of one shot differ by degrees
    blocks: int = 256
    block_samples: int = 16  # points of a block that are averaged
    min_steady_ratio: float = 0.95  # of blocks with the same sense of rotation; far less in another order
    # Rotation during a scan; a cloud ordered by rings has one revolution for each ring.
    min_revolutions: float = 0.75
    max_revolutions: float = 1.1


FIRING_ORDER = FiringOrderSettings()


def point_offsets(cloud: PointCloud, period_ns: int) -> Ints | None:
    """Return the time of each point (n,) in ns after the cloud's time; None if it is not known.

    Parameters
    ----------
    cloud : PointCloud
        With the field `t_offset_ns`, or one revolution in the order of firing.
    period_ns : int
        Of a revolution, used for a cloud without times.
    """
    if OFFSET_FIELD in cloud.fields:
        return np.asarray(cloud.fields[OFFSET_FIELD], dtype=np.int64)
    revolutions = estimate_revolutions(cloud.points)
    return None if revolutions is None else np.rint(revolutions * period_ns).astype(np.int64)


def estimate_revolutions(
    points: NDArray[np.floating], settings: FiringOrderSettings = FIRING_ORDER
) -> Floats | None:
    """Return the rotation (n,) of a spinning lidar at each point, in revolutions from 0 at the first.

    The sense of rotation follows from the order of the points (n, 3). None for clouds in another order:
    sorted, downsampled, deskewed already, or not of a spinning lidar.
    """
    blocks = settings.blocks
    if len(points) < 4 * blocks:
        return None
    picked = np.arange(0, len(points), max(len(points) // (settings.block_samples * blocks), 1))
    flat = np.nan_to_num(np.asarray(points[picked, :2], dtype=np.float64))
    flat /= np.maximum(np.hypot(flat[:, 0], flat[:, 1]), 1e-9)[:, None]
    edges = np.linspace(0, len(picked), blocks + 1).astype(np.int64)
    means = np.add.reduceat(flat, edges[:-1], axis=0)
    azimuth = np.unwrap(np.arctan2(means[:, 1], means[:, 0]))
    sense = np.sign(azimuth[-1] - azimuth[0])
    turn = np.maximum.accumulate(sense * (azimuth - azimuth[0])) / (2 * np.pi)
    steady_ratio = float(np.mean(sense * np.diff(azimuth) > 0))
    if steady_ratio < settings.min_steady_ratio:
        return None
    if not settings.min_revolutions <= turn[-1] <= settings.max_revolutions:
        return None
    middles = (picked[edges[:-1]] + picked[edges[1:] - 1]) / 2
    return np.interp(np.arange(len(points)), middles, turn)


def deskew(points: NDArray[np.floating], seconds: Floats, twist: Floats) -> Floats:
    """Return points (n, 3) of a sensor as measured at second 0.

    Parameters
    ----------
    points : (n, 3)
        In the sensor's frame, each at its own time.
    seconds : (n,)
        Times of the points.
    twist : (6,)
        Velocity of the sensor in its own frame, constant over the scan: m/s, then rad/s.
    """
    turning = rotations.skew(twist[3:])
    angle = float(np.linalg.norm(twist[3:]) * np.abs(seconds).max(initial=0.0))
    return _apply_exponential(
        points, twist[:3, None] * seconds, lambda term: (turning @ term) * seconds, angle
    )


def transform_each(points: NDArray[np.floating], twists: Floats) -> Floats:
    """Return points (n, 3), each transformed by ``exp`` of its own twist (n, 6): m, then rad."""
    shift, turn = np.ascontiguousarray(twists[:, :3].T), np.ascontiguousarray(twists[:, 3:].T)
    angle = float(np.sqrt(np.max(np.einsum("ij,ij->j", turn, turn), initial=0.0)))
    return _apply_exponential(points, shift, lambda term: np.array(kernels.cross(turn, term)), angle)


def _apply_exponential(
    points: NDArray[np.floating],
    shift: Floats,
    turn: Callable[[Floats], Floats],
    angle: float,
    tolerance: float = 1e-9,
) -> Floats:
    """Return ``exp(xi) p`` of points (n, 3) by its series.

    Faster than Rodrigues' formula, which needs sine and cosine for each point.

    Parameters
    ----------
    shift : (3, n)
        Translational parts of the twists.
    turn : callable
        Returns cross products (3, n) of their rotational parts with vectors (3, n).
    angle : float
        The largest rotation, rad.
    tolerance : float
        Truncation error relative to the largest coordinate: nanometres for a scan of metres.
    """
    result = np.array(points.T, dtype=np.float64, order="C")
    term = turn(result) + shift
    order, size = 1, 1.0
    while size > tolerance:
        result += term
        order += 1
        term = turn(term) / order
        size *= angle / order
    return result.T
