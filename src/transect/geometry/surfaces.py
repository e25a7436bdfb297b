"""Surfaces behind clouds of points (n, 3) in metres: normals, keypoints, descriptors; neighbours by KD-trees.

All of it holds under rigid motion: move the cloud (and the viewpoint), and normals turn with it, keypoints
are the same rows, descriptors the same numbers. Points must be finite; thin dense clouds to voxels first,
because the work grows with the number of neighbours. One thread is used, so that bits repeat.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError
from transect.geometry._arrays import floats, measured_rows, same_length

MOST_PAIRS = 40_000_000
"""Pairs of neighbours beyond which a radius is refused: they would take gigabytes."""
LEVELS = 16
"""Halvings of a cloud's extent among which `voxel_for` looks."""
_PACKED = np.array([1, 1 << 21, 1 << 42])
"""Makes one number of three."""
LEAST_NEIGHBOURS = 5
"""Fewer do not tell a surface from chance."""
TIED = 1e-9
"""Cosines that differ by less are equal but for rounding."""
BINS = 11
"""Of each of the three histograms of a descriptor (Rusu 2009)."""


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

    cloud = _finite(points)
    if len(cloud) < 2:
        raise GeometryError(f"expected at least 2 points to tell their spacing, got {len(cloud)}")
    return float(np.median(np.asarray(KDTree(cloud).query(cloud, k=2)[0])[:, 1]))


def voxel_for(points: ArrayLike, count: int) -> float:
    """Edge in metres of voxels of which about `count` are occupied, at most four fifths of the points.

    By this a cloud tells its own scale: a lidar's spacing from point to point differs tenfold along and
    across its rings, and with range, but so many voxels see it everywhere at about the same detail.
    """
    cloud = _finite(points)
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

    cloud = _finite(points)
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

    cloud, seen_from = _finite(points), floats("viewpoint", viewpoint, (3,))
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
    cloud = _finite(points)
    pairs = pairs_within(cloud, radius)
    count = _count(pairs, len(cloud))
    values = np.linalg.eigvalsh(_scatter(cloud, pairs, np.reciprocal(1.0 + count)))[:, ::-1]
    enough = count >= LEAST_NEIGHBOURS
    salient = enough & (values[:, 1] < ratio * values[:, 0]) & (values[:, 2] < ratio * values[:, 1])
    return _strongest(cloud, np.where(salient, values[:, 2], 0.0), suppression or radius * 2 / 3)


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
        Responses from this on count.
    suppression : float, optional
        Metres: only the strongest within is kept; the radius by default.

    Notes
    -----
    The response ``det C - k (trace C)^2 + k`` is the determinant of C, the mean of ``n n^T``, because unit
    normals make its trace 1: 0 on planes and edges, 1/27 where three planes meet.
    """
    cloud, directions = _finite(points), floats("normals", normal, ("n", 3))
    same_length(points=cloud, normals=directions)
    known = measured_rows(directions)
    outer = np.einsum("ni,nj->nij", directions, directions).reshape(-1, 9)
    terms = np.where(known[:, None], np.column_stack([outer, np.ones(len(cloud))]), 0.0)
    sums = terms + _neighbour_sums(terms, pairs_within(cloud, radius))
    count = sums[:, 9]
    response = np.linalg.det((sums[:, :9] / np.maximum(count, 1.0)[:, None]).reshape(-1, 3, 3))
    counts = known & (count > LEAST_NEIGHBOURS) & (response >= least)
    return _strongest(cloud, np.where(counts, response, 0.0), suppression or radius)


def fpfh(points: ArrayLike, normal: ArrayLike, radius: float, index: ArrayLike | None = None) -> Floats:
    """Fast point feature histograms (k, 33): how the normals around points stand to each other.

    Parameters
    ----------
    points, normal : (n, 3)
        Unit normals, all turned to the same side of the surface; NaN where not known.
    radius : float
        Metres: how far a neighbourhood reaches; about five times the spacing of the points.
    index : (k,) optional
        Rows to describe; all by default. The others serve as their neighbours.

    Returns
    -------
    (k, 33) three histograms of 11 bins, each of sum 1; NaN rows for points without normal or neighbours.

    Notes
    -----
    Rusu, Blodow, Beetz, Fast point feature histograms for 3D registration, ICRA 2009, eq. 1-3.
    """
    from scipy.sparse import csr_matrix

    cloud, directions = _finite(points), floats("normals", normal, ("n", 3))
    same_length(points=cloud, normals=directions)
    pairs = _known(pairs_within(cloud, radius), measured_rows(directions))
    count, n = _count(pairs, len(cloud)), len(cloud)
    rows = np.arange(n) if index is None else np.asarray(index, dtype=np.int64)
    simple = _simple_histograms(cloud, directions, pairs)
    weight = 1.0 / pairs.distance
    near = csr_matrix(
        (np.concatenate([weight, weight]), (np.concatenate(pairs[:2]), np.concatenate(pairs[1::-1]))), (n, n)
    )
    mixed = simple[rows] + (near[rows] @ simple) / np.maximum(count[rows], 1)[:, None]
    histograms = mixed.reshape(-1, 3, BINS)
    total = histograms.sum(axis=2, keepdims=True)
    described = np.divide(histograms, total, out=np.full_like(histograms, np.nan), where=total > 0)
    return described.reshape(-1, 3 * BINS)


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


def _simple_histograms(cloud: Floats, normal: Floats, pairs: Pairs) -> Floats:
    """Histograms (n, 33) of each point and its own neighbours (SPFH), each of the three of sum 1."""
    bins = _pair_bins(cloud, normal, pairs)
    cells = (np.concatenate(pairs[:2])[:, None] * 3 + np.arange(3)) * BINS + np.concatenate([bins, bins])
    filled = np.bincount(cells.ravel(), minlength=len(cloud) * 3 * BINS).reshape(-1, 3, BINS)
    return (filled / np.maximum(filled.sum(axis=2, keepdims=True), 1)).reshape(-1, 3 * BINS)


def _pair_bins(cloud: Floats, normal: Floats, pairs: Pairs) -> Ints:
    """Bins (m, 3) of the three angles of each pair; they do not depend on which point comes first."""
    first, second, distance = pairs
    line = (cloud[second] - cloud[first]) / distance[:, None]
    a, b = normal[first], normal[second]
    to_a, to_b = np.einsum("ni,ni->n", a, line), np.einsum("ni,ni->n", b, line)
    # The frame stands on the point whose normal is nearer to the line (Rusu 2009, section II). Points with
    # the same neighbours have the same normal: then on the one that looks along the line, not by rounding.
    tied = np.abs(np.abs(to_a) - np.abs(to_b)) < TIED
    swap = np.where(tied, to_a < 0, np.abs(to_a) < np.abs(to_b))
    u, other = np.where(swap[:, None], b, a), np.where(swap[:, None], a, b)
    line = np.where(swap[:, None], -line, line)
    v = np.cross(line, u)
    length = np.linalg.norm(v, axis=1, keepdims=True)
    v = np.divide(v, length, out=np.zeros_like(v), where=length > 0)
    alpha = np.einsum("ni,ni->n", v, other)
    phi = np.where(swap, -to_b, to_a)
    theta = np.arctan2(np.einsum("ni,ni->n", np.cross(u, v), other), np.einsum("ni,ni->n", u, other))
    share = np.column_stack([(alpha + 1) / 2, (phi + 1) / 2, (theta + np.pi) / (2 * np.pi)])
    return np.clip((share * BINS).astype(np.int64), 0, BINS - 1)


def _known(pairs: Pairs, known: Mask) -> Pairs:
    """Pairs of two known points, not at the same place."""
    kept = known[pairs.first] & known[pairs.second] & (pairs.distance > 0)
    return Pairs(pairs.first[kept], pairs.second[kept], pairs.distance[kept])


def _count(pairs: Pairs, n: int) -> Ints:
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


def _finite(points: ArrayLike) -> Floats:
    cloud = floats("points", points, ("n", 3))
    if not np.isfinite(cloud).all():
        raise GeometryError("expected points without NaN", hint="leave out the rows that were not measured")
    return cloud
