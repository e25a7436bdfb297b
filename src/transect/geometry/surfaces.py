"""Normals, curvature, keypoints and degeneracy of point clouds (n, 3) in metres.

The results are equivariant to rigid motion of the cloud and the viewpoint: normals rotate with it, keypoints
are the same rows. Points must be finite; downsample dense clouds to voxels first, because the run time grows
with the number of neighbours. One thread is used, so that results are reproducible to the bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError
from transect.geometry.array_checks import finite_points, floats, measured_rows, same_length

MAX_NEIGHBOUR_PAIRS = 40_000_000
"""A search radius with more pairs of neighbours is an error, as they would take gigabytes of memory."""
MIN_NEIGHBOURS = 5
"""Fewer neighbours do not determine a surface."""


class NeighbourPairs(NamedTuple):
    """Points near each other, every pair once: rows (m,) and (m,), and distances (m,) in metres."""

    first: Ints
    second: Ints
    distance: Floats


class Surface(NamedTuple):
    """Unit normals (n, 3) and curvatures (n,); NaN where there were too few neighbours.

    The curvature is the smallest eigenvalue of the neighbourhood's covariance over the sum of all three: 0 on
    a plane, at most 1/3.
    """

    normals: Floats
    curvature: Floats


class Keypoints(NamedTuple):
    """Rows (k,) of a cloud, ascending, and their responses (k,)."""

    rows: Ints
    response: Floats


class Information(NamedTuple):
    """How well points and normals constrain the pose of a cloud."""

    ratio: (
        float  # smallest over largest eigenvalue: 1 if all motions are constrained equally, 0 if one is free
    )
    # Unit vector (6,) of the least constrained motion: translation, then rotation about the centroid, in
    # displacement of the points.
    weakest: Floats


def spacing(points: ArrayLike) -> float:
    """Median distance in metres from a point to its nearest neighbour."""
    from scipy.spatial import KDTree

    cloud = finite_points(points)
    if len(cloud) < 2:
        raise GeometryError(f"expected at least 2 points to measure their spacing, got {len(cloud)}")
    return float(np.median(np.asarray(KDTree(cloud).query(cloud, k=2)[0])[:, 1]))


def voxel_for(points: ArrayLike, count: int) -> float:
    """Edge in metres of a voxel grid with about `count` occupied voxels, at most 0.8 times the points.

    It adapts the scale to the cloud: the point spacing of a lidar differs tenfold along and across its rings,
    and with range, but a given number of voxels resolves all clouds about equally well.
    """
    cloud = finite_points(points)
    extent = float(np.max(np.ptp(cloud, axis=0), initial=0.0))
    if not extent > 0:
        raise GeometryError(f"expected different points, got {len(cloud)} equal ones")
    levels = 16  # of an octree over the extent
    cells = np.minimum((cloud - cloud.min(axis=0)) / extent * 2.0**levels, 2.0**levels - 1).astype(np.int64)
    occupied = np.empty(levels + 1)
    packing = np.array([1, 1 << 21, 1 << 42])  # three indices in one integer
    for level in range(levels + 1):
        cells = cells[np.unique(cells @ packing, return_index=True)[1]]
        occupied[level] = len(cells)
        cells >>= 1
    target = np.log(min(count, 0.8 * len(cloud)))
    level = np.interp(target, np.log(occupied[::-1]), np.arange(levels, -1.0, -1.0))
    return extent * 2.0 ** (float(level) - levels)


def pairs_within(points: ArrayLike, radius: float) -> NeighbourPairs:
    """All pairs of points (n, 3) at most `radius` metres apart."""
    from scipy.spatial import KDTree

    cloud = finite_points(points)
    tree = KDTree(cloud)
    near = int(np.sum(tree.query_ball_point(cloud, radius, return_length=True))) - len(cloud)
    if near > 2 * MAX_NEIGHBOUR_PAIRS:
        raise GeometryError(
            f"a radius of {radius:g} m is too large for this cloud",
            why=f"its {len(cloud)} points have {near // 2} pairs of neighbours",
            hint="downsample it to voxels first, or use a smaller radius",
        )
    found = np.asarray(tree.query_pairs(radius, output_type="ndarray"), dtype=np.int64).reshape(-1, 2)
    first, second = found[:, 0], found[:, 1]
    return NeighbourPairs(first, second, np.linalg.norm(cloud[second] - cloud[first], axis=1))


def normals(points: ArrayLike, neighbours: int = 12, viewpoint: ArrayLike = (0.0, 0.0, 0.0)) -> Surface:
    """Normals of the planes fitted to the nearest neighbours, oriented towards the viewpoint.

    Parameters
    ----------
    points : (n, 3)
    neighbours : int
        Number of nearest neighbours, including the point itself.
    viewpoint : (3,)
        Position of the sensor in the frame of the points.
    """
    from scipy.spatial import KDTree

    cloud, sensor = finite_points(points), floats("viewpoint", viewpoint, (3,))
    if len(cloud) < MIN_NEIGHBOURS:
        return Surface(np.full(cloud.shape, np.nan), np.full(len(cloud), np.nan))
    index = np.asarray(KDTree(cloud).query(cloud, k=min(neighbours, len(cloud)))[1])
    around = cloud[index]
    around = around - around.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(np.einsum("nki,nkj->nij", around, around))
    normal = vectors[:, :, 0]
    away = np.einsum("ni,ni->n", normal, sensor - cloud) < 0
    total = values.sum(axis=1)
    curvature = np.divide(values[:, 0], total, out=np.full(len(cloud), np.nan), where=total > 0)
    return Surface(np.where(away[:, None], -normal, normal), np.maximum(curvature, 0.0))


def iss_keypoints(
    points: ArrayLike, radius: float, suppression: float | None = None, ratio: float = 0.975
) -> Keypoints:
    """Points whose neighbourhood has three different principal variances (intrinsic shape signatures).

    Parameters
    ----------
    points : (n, 3)
    radius : float
        Radius of the neighbourhood, m; about six times the spacing of the points.
    suppression : float, optional
        Radius of the non-maximum suppression, m; two thirds of `radius` by default.
    ratio : float
        Maximum ratio of each eigenvalue of the scatter matrix to the next larger one.

    Notes
    -----
    Zhong, Intrinsic shape signatures, ICCV workshops 2009. The response is the smallest eigenvalue, in m^2.
    """
    cloud = finite_points(points)
    pairs = pairs_within(cloud, radius)
    count = count_neighbours(pairs, len(cloud))
    values = np.linalg.eigvalsh(_scatter(cloud, pairs, np.reciprocal(1.0 + count)))[:, ::-1]
    enough = count >= MIN_NEIGHBOURS
    salient = enough & (values[:, 1] < ratio * values[:, 0]) & (values[:, 2] < ratio * values[:, 1])
    return _suppress_non_maxima(cloud, np.where(salient, values[:, 2], 0.0), suppression or radius * 2 / 3)


def harris_responses(points: ArrayLike, normal: ArrayLike, radius: float) -> Floats:
    """Harris corner response (n,) of the normals around each point.

    Parameters
    ----------
    points, normal : (n, 3)
        Unit normals; NaN where not known.
    radius : float
        Radius of the neighbourhood, m.

    Returns
    -------
    (n,) from 0 on planes and edges to 1/27 at the intersection of three orthogonal planes; NaN for points
    without a normal or with fewer than five neighbours with normals.

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
    return np.where(known & (count > MIN_NEIGHBOURS), response, np.nan)


def harris_keypoints(
    points: ArrayLike,
    normal: ArrayLike,
    radius: float,
    min_response: float = 1e-3,
    suppression: float | None = None,
) -> Keypoints:
    """Corners: local maxima of the Harris response of normals (instead of image gradients).

    Parameters
    ----------
    points, normal : (n, 3)
        Unit normals; NaN where not known.
    radius : float
        Radius of the neighbourhood, m.
    min_response : float
        Smallest response of a keypoint (`harris_responses`).
    suppression : float, optional
        Radius of the non-maximum suppression, m; `radius` by default.
    """
    response = harris_responses(points, normal, radius)
    corners = np.where(response >= min_response, response, 0.0)
    return _suppress_non_maxima(finite_points(points), corners, suppression or radius)


def information(points: ArrayLike, normal: ArrayLike) -> Information:
    """Information of point-to-plane distances about the pose of a cloud, to detect degenerate directions.

    Parameters
    ----------
    points, normal : (n, 3)
        Rows with NaN, and zero normals, are left out.

    Notes
    -----
    Eigenvalues as Zhang, Kaess, Singh, On degeneracy of optimization-based state estimation problems, ICRA
    2016. A rotation is scaled to the RMS displacement of the points, so that it is comparable with a
    translation, also in elongated clouds.
    """
    p, n = floats("points", points, ("n", 3)), floats("normals", normal, ("n", 3))
    same_length(points=p, normals=n)
    used = measured_rows(p) & measured_rows(n) & np.any(n != 0, axis=1)
    if np.count_nonzero(used) < 6:
        return Information(0.0, np.zeros(6))
    p = p[used] - p[used].mean(axis=0)
    rows = np.column_stack([n[used], np.cross(p, n[used]) @ _unit_rotations(p)])
    values, vectors = np.linalg.eigh(rows.T @ rows)
    return Information(float(max(values[0], 0.0) / values[-1]), vectors[:, 0])


def _unit_rotations(p: Floats) -> Floats:
    """Rotation vectors (3, 3) that displace points (n, 3) by 1 m RMS; zero about the axis of a line."""
    inertia = (np.einsum("ni,ni->", p, p) * np.eye(3) - p.T @ p) / len(p)
    values, axes = np.linalg.eigh(inertia)
    scale = np.divide(1.0, np.sqrt(np.abs(values)), out=np.zeros(3), where=values > 1e-12 * values[-1])
    return (axes * scale) @ axes.T


def count_neighbours(pairs: NeighbourPairs, n: int) -> Ints:
    """Number of neighbours (n,) of each point."""
    return np.bincount(pairs.first, minlength=n) + np.bincount(pairs.second, minlength=n)


def _neighbour_sums(values: Floats, pairs: NeighbourPairs) -> Floats:
    """Sums (n, k) of the values (n, k) of all neighbours of each point."""
    sums = [
        np.bincount(pairs.first, column[pairs.second], len(values))
        + np.bincount(pairs.second, column[pairs.first], len(values))
        for column in values.T
    ]
    return np.column_stack(sums).astype(np.float64, copy=False)


def _scatter(cloud: Floats, pairs: NeighbourPairs, weight: Floats) -> Floats:
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


def _suppress_non_maxima(cloud: Floats, response: Floats, radius: float) -> Keypoints:
    """Rows with positive response that is the maximum within the radius; the first of equal responses."""
    candidates = np.flatnonzero(response > 0)
    strength = response[candidates]
    first, second, _ = pairs_within(cloud[candidates], radius)
    # The first row of a pair has the smaller index, so that the earlier of equal responses is kept.
    weaker = np.where(strength[second] > strength[first], first, second)
    kept = np.ones(len(candidates), dtype=np.bool_)
    kept[weaker] = False
    return Keypoints(candidates[kept], strength[kept])
