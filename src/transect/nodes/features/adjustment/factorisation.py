"""Shape and motion by factorisation: Tomasi and Kanade (1992), made perspective by Christy and Horaud (1996).

Seen from afar, places are linear in the points, so the table of all places has rank three: its singular value
decomposition gives motion times shape, up to a linear map that the orthogonality of camera axes fixes. Places
multiplied by their relative depth obey this exactly; the depth comes from the solution before.
"""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import se3

ROUNDS = 30
SETTLED = 1e-9
FLAT = 1e-6
"""Ratio of the third to the first singular value below which points or motion have no third dimension."""


def factorise(places: Floats) -> tuple[Floats, Floats] | None:
    """Return cameras and points that explain places on the planes z = 1.

    Parameters
    ----------
    places : (n, m, 2)
        Of n points in m images, all of them seen.

    Returns
    -------
    ``T_first_camera`` (m, 4, 4) and points (n, 3) in the first camera, all in one unknown unit; None if the
    places do not determine them.
    """
    start = _affine(places)
    if start is None:
        return None
    best, least = None, np.inf
    for relief in (start[2][:, 2], -start[2][:, 2]):  # an affine camera cannot tell it from its hollow
        found = _perspective(places, relief)
        if found is not None and (left := _measure_error(places, *found)) < least:
            best, least = found, left
    if best is None:
        return None
    turns, shifts, shape = best
    T = se3.from_matrix(turns, shifts)
    return T[0] @ se3.invert(T), se3.apply(T[0], shape)


def _perspective(places: Floats, relief: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Return rotations (m, 3, 3), translations (m, 3) and points (n, 3) with ``camera = R point + t``.

    `relief` (n,) are the depths of the points in the first camera, roughly, from which to begin.
    """
    depth = np.ones(places.shape[:2])
    found = None
    for _ in range(ROUNDS):
        found = _affine(places * depth[..., None], relief)
        if found is None:
            return None
        turns, shifts, shape = found
        relief = shape[:, 2]
        before, depth = depth, 1 + shape @ turns[:, 2].T / shifts[:, 2]
        if np.abs(depth - before).max() < SETTLED:
            break
    return found


def _affine(places: Floats, relief: Floats | None = None) -> tuple[Floats, Floats, Floats] | None:
    """Return motion and shape for scaled orthographic cameras, in the axes of the first.

    Of shape and hollow it is the one that is more like `relief`.
    """
    n, m = places.shape[:2]
    middle = places.mean(axis=0)
    rows = (places - middle).transpose(1, 2, 0).reshape(2 * m, n)  # x, y of image 0, x, y of image 1, ...
    u, s, vt = np.linalg.svd(rows, full_matrices=False)
    motion, shape = (u[:, :3] * s[:3]).reshape(m, 2, 3), vt[:3]
    upgrade = _metric(motion) if s[2] > FLAT * s[0] else None
    if upgrade is None:
        return None
    motion, shape = motion @ upgrade, np.linalg.solve(upgrade, shape)
    first = _rotations(motion)[0]
    motion, shape = motion @ first.T, np.asarray((first @ shape).T, np.float64)
    if relief is not None and shape[:, 2] @ relief < 0:
        motion, shape = motion * [1, 1, -1], shape * [1, 1, -1]
    scale = np.linalg.norm(motion, axis=2).mean(axis=1)
    return _rotations(motion), np.column_stack([middle, np.ones(m)]) / scale[:, None], shape


def _metric(motion: Floats) -> Floats | None:
    """Return A (3, 3) so that the two axes of each image (m, 2, 3) times A are square and of equal length."""
    i, j = motion[:, 0], motion[:, 1]
    rows = np.concatenate([_products(i, i) - _products(j, j), _products(i, j)])
    a, b, c, d, e, f = np.linalg.svd(rows)[2][-1]
    Q = np.array([[a, b, c], [b, d, e], [c, e, f]])
    values, axes = np.linalg.eigh(Q if np.trace(Q) > 0 else -Q)
    return axes * np.sqrt(values) if values[0] > FLAT * values[2] else None


def _products(a: Floats, b: Floats) -> Floats:
    """Return the coefficients (m, 6) of the entries of a symmetric Q in ``a Q b'``."""
    return np.column_stack(
        [
            a[:, 0] * b[:, 0],
            a[:, 0] * b[:, 1] + a[:, 1] * b[:, 0],
            a[:, 0] * b[:, 2] + a[:, 2] * b[:, 0],
            a[:, 1] * b[:, 1],
            a[:, 1] * b[:, 2] + a[:, 2] * b[:, 1],
            a[:, 2] * b[:, 2],
        ]
    )


def _rotations(motion: Floats) -> Floats:
    """Return the rotations (m, 3, 3) whose first two rows are nearest to those of (m, 2, 3)."""
    u, _, vt = np.linalg.svd(motion, full_matrices=False)
    two = u @ vt
    return np.concatenate([two, np.cross(two[:, 0], two[:, 1])[:, None]], axis=1)


def _measure_error(places: Floats, turns: Floats, shifts: Floats, shape: Floats) -> float:
    """Return the mean square distance of places from where points are; infinite if one is behind."""
    there = np.einsum("mij,nj->nmi", turns, shape) + shifts
    if not (there[..., 2] > 0).all():
        return float("inf")
    return float(np.mean(np.sum((there[..., :2] / there[..., 2:] - places) ** 2, axis=2)))
