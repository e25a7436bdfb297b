"""Surfaces behind clouds of points (n, 3) in metres: normals, keypoints; neighbours by KD-trees.

All of it holds under rigid motion: move the cloud (and the viewpoint), and normals turn with it, keypoints
are the same rows. Points must be finite; thin dense clouds to voxels first, because the work grows with the
number of neighbours. One thread is used, so that bits repeat.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError
from transect.geometry.array_checks import finite_points, floats, measured_rows, same_length

MOST_PAIRS = 40_000_000
"""Pairs of neighbours beyond which a radius is refused: they would take gigabytes."""
LEVELS = 16
"""Halvings of a cloud's extent among which `voxel_for` looks."""
_PACKED = np.array([1, 1 << 21, 1 << 42])
"""Makes one number of three."""
LEAST_NEIGHBOURS = 5
"""Fewer do not tell a surface from chance."""


class Pairs(NamedTuple):
    """Points near each other, every pair once: rows (m,) and (m,), and distances (m,) in metres."""

    first: Ints
    second: Ints
    distance: Floats


class Surface(NamedTuple):
    """Unit normals (n, 3) and curvatures (n,); NaN where there were too few neighbours.

    The curvature is the least eigenvalue's share of the neighbourhood's variance: 0 on a plane, at most 1/3.
    """

    normals: Floats
    curvature: Floats


class Keypoints(NamedTuple):
    """Rows (k,) of a cloud, ascending, and how strong each is (k,)."""

    rows: Ints
    response: Floats


class Information(NamedTuple):
    """How well points and normals hold a cloud in place.

    Attributes
    ----------
    ratio : float
        Least by greatest eigenvalue: 1 where every motion is held alike, 0 where one is free.
    weakest : (6,)
        Unit vector of the motion held least: translation, then rotation about the cloud's middle, both as
        how far they move the points.
    """

    ratio: float
    weakest: Floats


def spacing(points: ArrayLike) -> float:
    """Median distance in metres from a point to the nearest other one; the cloud's own resolution."""
    from scipy.spatial import KDTree

    cloud = finite_points(points)
    if len(cloud) < 2:
        raise GeometryError(f"expected at least 2 points to tell their spacing, got {len(cloud)}")
    return float(np.median(np.asarray(KDTree(cloud).query(cloud, k=2)[0])[:, 1]))


def voxel_for(points: ArrayLike, count: int) -> float:
    """Edge in metres of voxels of which about `count` are occupied, at most four fifths of the points.

    By this a cloud tells its own scale: a lidar's spacing from point to point differs tenfold along and
    across its rings, and with range, but so many voxels see it everywhere at about the same detail.
    """
    cloud = finite_points(points)
    extent = float(np.max(np.ptp(cloud, axis=0), initial=0.0))
    if not extent > 0:
        raise GeometryError(f"expected points at different places, got {len(cloud)} at one")
    cells = np.minimum((cloud - cloud.min(axis=0)) / extent * 2.0**LEVELS, 2.0**LEVELS - 1).astype(np.int64)
    occupied = np.empty(LEVELS + 1)
    for level in range(LEVELS + 1):  # each level halves the cells of the one before, so few are left soon
        cells = cells[np.unique(cells @ _PACKED, return_index=True)[1]]
        occupied[level] = len(cells)
        cells >>= 1
    wanted = np.log(min(count, 0.8 * len(cloud)))
    level = np.interp(wanted, np.log(occupied[::-1]), np.arange(LEVELS, -1.0, -1.0))
    return extent * 2.0 ** (float(level) - LEVELS)


def pairs_within(points: ArrayLike, radius: float) -> Pairs:
    """All pairs of points (n, 3) at most `radius` metres apart."""
    from scipy.spatial import KDTree

    cloud = finite_points(points)
    tree = KDTree(cloud)
    near = int(np.sum(tree.query_ball_point(cloud, radius, return_length=True))) - len(cloud)
    if near > 2 * MOST_PAIRS:
        raise GeometryError(
            f"a radius of {radius:g} m is too large for this cloud",
            why=f"its {len(cloud)} points have {near // 2} pairs of neighbours",
            hint="thin it to voxels first, or take a smaller radius",
        )
    found = np.asarray(tree.query_pairs(radius, output_type="ndarray"), dtype=np.int64).reshape(-1, 2)
    first, second = found[:, 0], found[:, 1]
    return Pairs(first, second, np.linalg.norm(cloud[second] - cloud[first], axis=1))


def normals(points: ArrayLike, neighbours: int = 12, viewpoint: ArrayLike = (0.0, 0.0, 0.0)) -> Surface:
    """Normals by the planes through the nearest neighbours, turned towards the viewpoint.

    Parameters
    ----------
    points : (n, 3)
    neighbours : int
        How many, the point itself among them.
    viewpoint : (3,)
        Where the sensor stood, in the frame of the points.
    """
    from scipy.spatial import KDTree

    cloud, seen_from = finite_points(points), floats("viewpoint", viewpoint, (3,))
    if len(cloud) < LEAST_NEIGHBOURS:
        return Surface(np.full(cloud.shape, np.nan), np.full(len(cloud), np.nan))
    index = np.asarray(KDTree(cloud).query(cloud, k=min(neighbours, len(cloud)))[1])
    around = cloud[index]
    around = around - around.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(np.einsum("nki,nkj->nij", around, around))
    normal = vectors[:, :, 0]
    away = np.einsum("ni,ni->n", normal, seen_from - cloud) < 0
    total = values.sum(axis=1)
    curvature = np.divide(values[:, 0], total, out=np.full(len(cloud), np.nan), where=total > 0)
    return Surface(np.where(away[:, None], -normal, normal), np.maximum(curvature, 0.0))


def iss_keypoints(
    points: ArrayLike, radius: float, suppression: float | None = None, ratio: float = 0.975
) -> Keypoints:
    """Points whose neighbourhood is spread differently along all three axes (intrinsic shape signatures).

    Parameters
    ----------
    points : (n, 3)
    radius : float
        Metres: how far a neighbourhood reaches; about six times the spacing of the points.
    suppression : float, optional
        Metres: only the strongest within is kept; two thirds of the radius by default.
    ratio : float
        Each eigenvalue must be smaller than the one before by at least this factor.

    Notes
    -----
    Zhong, Intrinsic shape signatures, ICCV workshops 2009. The response is the least eigenvalue, in m^2.
    """
    cloud = finite_points(points)
    pairs = pairs_within(cloud, radius)
    count = count_neighbours(pairs, len(cloud))
    values = np.linalg.eigvalsh(_scatter(cloud, pairs, np.reciprocal(1.0 + count)))[:, ::-1]
    enough = count >= LEAST_NEIGHBOURS
    salient = enough & (values[:, 1] < ratio * values[:, 0]) & (values[:, 2] < ratio * values[:, 1])
    return _strongest(cloud, np.where(salient, values[:, 2], 0.0), suppression or radius * 2 / 3)


def harris_responses(points: ArrayLike, normal: ArrayLike, radius: float) -> Floats:
    """How much each point (n,) looks like a corner: how many ways the normals around it point.

    Parameters
    ----------
    points, normal : (n, 3)
        Unit normals; NaN where not known.
    radius : float
        Metres: how far a neighbourhood reaches.

    Returns
    -------
    (n,) from 0 on planes and edges to 1/27 where three planes meet; NaN without a normal or with fewer than
    five neighbours that have one.

    Notes
    -----
    The response ``det C - k (trace C)^2 + k`` is the determinant of C, the mean of ``n n^T``, because unit
    normals make its trace 1.
    """
    cloud, directions = finite_points(points), floats("normals", normal, ("n", 3))
    same_length(points=cloud, normals=directions)
    known = measured_rows(directions)
    outer = np.einsum("ni,nj->nij", directions, directions).reshape(-1, 9)
    terms = np.where(known[:, None], np.column_stack([outer, np.ones(len(cloud))]), 0.0)
    sums = terms + _neighbour_sums(terms, pairs_within(cloud, radius))
    count = sums[:, 9]
    response = np.linalg.det((sums[:, :9] / np.maximum(count, 1.0)[:, None]).reshape(-1, 3, 3))
    return np.where(known & (count > LEAST_NEIGHBOURS), response, np.nan)


def harris_keypoints(
    points: ArrayLike, normal: ArrayLike, radius: float, least: float = 1e-3, suppression: float | None = None
) -> Keypoints:
    """Points around which normals point in all directions: corners (Harris, on normals instead of gradients).

    Parameters
    ----------
    points, normal : (n, 3)
        Unit normals; NaN where not known.
    radius : float
        Metres: how far a neighbourhood reaches.
    least : float
        Responses from this on count (`harris_responses`).
    suppression : float, optional
        Metres: only the strongest within is kept; the radius by default.
    """
    response = harris_responses(points, normal, radius)
    return _strongest(
        finite_points(points), np.where(response >= least, response, 0.0), suppression or radius
    )


def information(points: ArrayLike, normal: ArrayLike) -> Information:
    """How well surfaces hold a cloud: what a small motion does to the distances along the normals.

    Parameters
    ----------
    points, normal : (n, 3)
        Rows with NaN, and zero normals, are left out.

    Notes
    -----
    Eigenvalues as Zhang, Kaess, Singh, On degeneracy of optimization-based state estimation problems, ICRA
    2016. A rotation is measured by how far it moves the points, root mean square, so that it compares with a
    translation, also in a cloud that is long and thin.
    """
    p, n = floats("points", points, ("n", 3)), floats("normals", normal, ("n", 3))
    same_length(points=p, normals=n)
    used = measured_rows(p) & measured_rows(n) & np.any(n != 0, axis=1)
    if np.count_nonzero(used) < 6:
        return Information(0.0, np.zeros(6))
    p = p[used] - p[used].mean(axis=0)
    rows = np.column_stack([n[used], np.cross(p, n[used]) @ _per_metre(p)])
    values, vectors = np.linalg.eigh(rows.T @ rows)
    return Information(float(max(values[0], 0.0) / values[-1]), vectors[:, 0])


def _per_metre(p: Floats) -> Floats:
    """Rotations (3, 3) of points (n, 3) that move them by 1 m, root mean square; zero about a line."""
    inertia = (np.einsum("ni,ni->", p, p) * np.eye(3) - p.T @ p) / len(p)
    values, axes = np.linalg.eigh(inertia)
    scale = np.divide(1.0, np.sqrt(np.abs(values)), out=np.zeros(3), where=values > 1e-12 * values[-1])
    return (axes * scale) @ axes.T


def count_neighbours(pairs: Pairs, n: int) -> Ints:
    """How many neighbours (n,) each point has."""
    return np.bincount(pairs.first, minlength=n) + np.bincount(pairs.second, minlength=n)


def _neighbour_sums(values: Floats, pairs: Pairs) -> Floats:
    """Sums (n, k) of the values (n, k) of all neighbours of each point."""
    sums = [
        np.bincount(pairs.first, column[pairs.second], len(values))
        + np.bincount(pairs.second, column[pairs.first], len(values))
        for column in values.T
    ]
    return np.column_stack(sums).astype(np.float64, copy=False)


def _scatter(cloud: Floats, pairs: Pairs, weight: Floats) -> Floats:
    """Weighted means (n, 3, 3) of ``d d^T`` over the neighbours of each point, d pointing to them."""
    d = cloud[pairs.second] - cloud[pairs.first]
    to_first, to_second = weight[pairs.second], weight[pairs.first]
    n = len(cloud)
    total = np.bincount(pairs.first, to_first, n) + np.bincount(pairs.second, to_second, n)
    scatter = np.empty((n, 3, 3))
    for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        term = d[:, i] * d[:, j]
        sums = np.bincount(pairs.first, to_first * term, n) + np.bincount(pairs.second, to_second * term, n)
        scatter[:, i, j] = scatter[:, j, i] = sums / np.where(total > 0, total, 1.0)
    return scatter


def _strongest(cloud: Floats, response: Floats, radius: float) -> Keypoints:
    """Rows with a response above 0 that no other within the radius exceeds; of equals the first."""
    candidates = np.flatnonzero(response > 0)
    strength = response[candidates]
    first, second, _ = pairs_within(cloud[candidates], radius)
    # In a pair the first row is the lower one, so that of equals the earlier one stays.
    weaker = np.where(strength[second] > strength[first], first, second)
    kept = np.ones(len(candidates), dtype=np.bool_)
    kept[weaker] = False
    return Keypoints(candidates[kept], strength[kept])
