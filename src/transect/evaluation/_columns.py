"""Pose arithmetic column by column: quaternions (4, n) and vectors (3, n), each component contiguous.

What `transect.geometry` does for (n, 4) and (n, 3), ten times as fast for long trajectories: numpy reduces
and stacks short last axes slowly, and fresh memory costs more than arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from transect.base.arrays import Floats

BLOCK = 8192
"""Poses at a time: what is computed on the way stays in the processor's cache."""


def blocks(count: int) -> Iterator[slice]:
    """Yield pieces of an axis."""
    for at in range(0, count, BLOCK):
        yield slice(at, min(at + BLOCK, count))


def columns(rows: Floats) -> Floats:
    """Return (k, n) contiguous columns of (n, k) rows."""
    return np.ascontiguousarray(rows.T, np.float64)


def lengths(vectors: Floats) -> Floats:
    """Return Euclidean lengths (n,) of (k, n)."""
    total = vectors[0] * vectors[0]
    for each in vectors[1:]:
        total += each * each
    return np.sqrt(total, out=total)


def unit(quaternions: Floats) -> Floats:
    """Return (4, n) unit quaternions of (n, 4) rows that are nearly so."""
    q = columns(quaternions)
    return q / lengths(q)


def cross(a: Floats, b: Floats) -> Floats:
    """Return the cross products of (3, n) and (3, n)."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        np.subtract(a[j] * b[k], a[k] * b[j], out=out[i])
    return out


def product(p: Floats, q: Floats) -> Floats:
    """Return Hamilton products (4, n) of unit quaternions: `q` turns first."""
    out = np.empty(np.broadcast_shapes(p.shape, q.shape))
    out[:3] = cross(p[:3], q[:3])
    out[:3] += p[3] * q[:3]
    out[:3] += q[3] * p[:3]
    out[3] = p[3] * q[3] - p[0] * q[0] - p[1] * q[1] - p[2] * q[2]
    return out


def inverse(q: Floats) -> Floats:
    """Return the inverse rotations (4, n) of unit quaternions."""
    return np.concatenate([-q[:3], q[3:]])


def rotated(q: Floats, vectors: Floats) -> Floats:
    """Return vectors (3, n) turned by unit quaternions (4, n)."""
    twice = cross(q[:3], vectors)
    twice *= 2
    return vectors + q[3] * twice + cross(q[:3], twice)


def angles(p: Floats, q: Floats) -> Floats:
    """Return the angles (n,) in [0, pi] between attitudes (4, n): by arctan, exact for small ones."""
    near, far = lengths(p - q), lengths(p + q)
    return 4 * np.arctan2(np.minimum(near, far), np.maximum(near, far))
