"""The rigid transform between matched points: weighted, truncated, and how well they determine it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.errors import GeometryError
from transect.geometry import align, rotations, se3

STEPS = 100
GROWTH = 1.4
"""By how much the surrogate nears the truncated cost in each step (Yang et al. 2020, V-A)."""


class Found(NamedTuple):
    """T_sink_source (4, 4) and the matches (n,) that agree with it."""

    T: Floats
    good: Mask


class Judged(NamedTuple):
    """A transform, its covariance (6, 6), the sum of squares (m2) that it leaves, and of how many pairs."""

    T: Floats
    covariance: Floats
    squares: float
    pairs: int


def least_squares(source: Floats, sink: Floats) -> Found | None:
    """Return the transform of least squares of points (n, 3) onto points (n, 3); None if undetermined."""
    T = weighted_horn(source, sink, np.ones(len(source)))
    return None if T is None else Found(T, np.ones(len(source), np.bool_))


def truncated_squares(source: Floats, sink: Floats, threshold: float) -> Found | None:
    """Return the transform of least truncated squares (Yang, Antonante, Tzoumas, Carlone, RA-L 5(2), 2020).

    The cost begins nearly convex and nears the truncated one in steps; each step solves weighted least
    squares in closed form. Matches (n, 3) further apart than `threshold` (m) after that count as outliers.
    """
    found = least_squares(source, sink)
    if found is None:
        return None
    squares, limit = _squares(found.T, source, sink), threshold**2
    if squares.max() <= limit:
        return found
    mu, weight = limit / max(2 * squares.max() - limit, limit), np.ones(len(source))
    for _ in range(STEPS):
        before, weight = weight, _truncating_weights(squares, limit, mu)
        solved = weighted_horn(source, sink, weight)
        if solved is None:
            return None
        squares, mu = _squares(solved, source, sink), mu * GROWTH
        if np.allclose(before, weight, atol=1e-6) and np.all(np.minimum(weight, 1 - weight) < 1e-3):
            break
    good = squares <= limit
    final = weighted_horn(source, sink, good.astype(np.float64))
    return None if final is None else Found(final, good)


def _truncating_weights(squares: Floats, limit: float, mu: float) -> Floats:
    """Return the weights (n,) of eq. 14: 1 up to the limit, 0 beyond, a slope between them."""
    with np.errstate(divide="ignore"):
        return np.clip(np.sqrt(limit * mu * (mu + 1) / squares) - mu, 0.0, 1.0)


def weighted_horn(source: Floats, sink: Floats, weight: Floats) -> Floats | None:
    """Return ``T_sink_source`` (4, 4) of least weighted squares; None if the points do not determine it."""
    if np.count_nonzero(weight) < 3:
        return None
    part = (weight / weight.sum())[:, None]
    a, b = source - np.sum(part * source, axis=0), sink - np.sum(part * sink, axis=0)
    a, b = np.sqrt(part) * a, np.sqrt(part) * b
    try:  # with both signs the rows stand about the origin, so that Horn does not move them again
        R = align.horn(np.concatenate([a, -a]), np.concatenate([b, -b])).rotation
    except GeometryError:
        return None
    return se3.from_matrix(R, np.sum(part * (sink - source @ R.T), axis=0))


def judged(T: Floats, source: Floats, sink: Floats) -> Judged:
    """Return a least-squares transform and the covariance by its residuals: m, then rad, in the sink."""
    moved = se3.apply(T, source)
    squares = float(np.sum((sink - moved) ** 2))
    slopes = np.concatenate([np.broadcast_to(np.eye(3), (len(moved), 3, 3)), -rotations.skew(moved)], axis=2)
    slopes = slopes.reshape(-1, 6)
    variance = squares / max(len(slopes) - 6, 1)
    # The turn moves the points about the sink's origin; here it is wanted about the pose.
    about = np.eye(6)
    about[:3, 3:] = -rotations.skew(T[:3, 3])
    return Judged(T, variance * about @ np.linalg.pinv(slopes.T @ slopes) @ about.T, squares, len(source))


def _squares(T: Floats, source: Floats, sink: Floats) -> Floats:
    return np.sum((sink - se3.apply(T, source)) ** 2, axis=1)
