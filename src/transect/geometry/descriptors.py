"""Local surface descriptors of point clouds: FPFH, PFH and SHOT_LENGTH.

The functions take clouds (n, 3) in metres with unit normals (n, 3) and return histograms of 33 (`fpfh`), 125
(`pfh`) or 352 bins (`shot`), which are invariant to rigid motion of the cloud. Points must be finite; normals
may be NaN where they are not known. One thread is used, so that results are reproducible to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.base.cache_folder import load_compiled
from transect.errors import GeometryError
from transect.geometry.array_checks import finite_points, floats, measured_rows, same_length
from transect.geometry.surfaces import (
    MAX_NEIGHBOUR_PAIRS,
    MIN_NEIGHBOURS,
    NeighbourPairs,
    count_neighbours,
    pairs_within,
)

COSINE_TOLERANCE = 1e-9
"""Cosines that differ by less are equal but for rounding."""
FPFH_BINS = 11
"""Bins of each of the three histograms of an FPFH (Rusu 2009)."""
SHOT_SECTORS, SHOT_COSINES = 8, 11
"""Sectors of azimuth, and bins of the cosine between normals and the local z axis (Tombari 2010)."""
SHOT_LENGTH = SHOT_SECTORS * 2 * 2 * SHOT_COSINES
MAX_BATCH_NEIGHBOURS = 400_000
"""Neighbours per batch of keypoints; limits the memory."""


def fpfh(points: ArrayLike, normal: ArrayLike, radius: float, index: ArrayLike | None = None) -> Floats:
    """Fast point feature histograms (k, 33) of the angles between the normals around points.

    Parameters
    ----------
    points, normal : (n, 3)
        Unit normals, all oriented to the same side of the surface; NaN where not known.
    radius : float
        Radius of the neighbourhood, m; about five times the spacing of the points.
    index : (k,) optional
        Rows to describe; all by default. The others are used as neighbours only.

    Returns
    -------
    (k, 33) three histograms of 11 bins, each of sum 1; NaN rows for points without normal or neighbours.

    Notes
    -----
    Rusu, Blodow, Beetz, Fast point feature histograms for 3D registration, ICRA 2009, eq. 1-3.
    """
    from scipy.sparse import csr_matrix

    cloud, directions, rows = _check_arguments(points, normal, index)
    pairs = _known_pairs(pairs_within(cloud, radius), measured_rows(directions))
    count, n = count_neighbours(pairs, len(cloud)), len(cloud)
    simple = _simplified_histograms(cloud, directions, pairs)
    weight = 1.0 / pairs.distance
    near = csr_matrix(
        (np.concatenate([weight, weight]), (np.concatenate(pairs[:2]), np.concatenate(pairs[1::-1]))), (n, n)
    )
    mixed = simple[rows] + (near[rows] @ simple) / np.maximum(count[rows], 1)[:, None]
    histograms = mixed.reshape(-1, 3, FPFH_BINS)
    total = histograms.sum(axis=2, keepdims=True)
    described = np.divide(histograms, total, out=np.full_like(histograms, np.nan), where=total > 0)
    return described.reshape(-1, 3 * FPFH_BINS)


def pfh(points: ArrayLike, normal: ArrayLike, radius: float, index: ArrayLike | None = None) -> Floats:
    """Point feature histograms (k, 125) of the angles between the normals of all pairs of neighbours.

    Parameters
    ----------
    points, normal : (n, 3)
        Unit normals, all oriented to the same side of the surface; NaN where not known.
    radius : float
        Radius of the neighbourhood, m. The run time is quadratic in the number of neighbours.
    index : (k,) optional
        Rows to describe; all by default.

    Returns
    -------
    (k, 125) joint histograms of three angles in 5 x 5 x 5 bins, of sum 1; the index of the angle between the
    normals (theta) changes fastest, then alpha, then phi. NaN rows for points with fewer than two known
    neighbours, themselves included.

    Notes
    -----
    Rusu, Blodow, Marton, Beetz, Aligning point cloud views using persistent feature histograms, IROS 2008.
    Pairs with undefined angles (equal points, a normal along the line) are counted in the middle bin, as in
    PCL.
    """
    joint_histogram = load_compiled(__name__, "descriptors").joint_histogram

    cloud, directions, rows = _check_arguments(points, normal, index)
    known = np.flatnonzero(measured_rows(directions))
    around = _neighbourhoods(cloud[known], cloud[rows], radius)
    described = [
        joint_histogram(cloud[known], directions[known], each.row, each.count, COSINE_TOLERANCE)
        for each in around
    ]
    return np.concatenate([*described, np.zeros((0, 125))])


def shot(points: ArrayLike, normal: ArrayLike, radius: float, index: ArrayLike | None = None) -> Floats:
    """Signatures of histograms of orientations (k, 352), each of Euclidean length 1.

    Parameters
    ----------
    points, normal : (n, 3)
        Unit normals, all oriented to the same side of the surface; NaN where not known.
    radius : float
        Radius of the neighbourhood, m.
    index : (k,) optional
        Rows to describe; all by default.

    Returns
    -------
    (k, 352) for 8 sectors of azimuth, 2 shells (inner first), 2 halves (lower first): a histogram of 11 bins
    of the cosine between the neighbours' normals and the local z axis. NaN rows for points with fewer than 5
    neighbours.

    Notes
    -----
    Tombari, Salti, Di Stefano, Unique signatures of histograms for local surface description, ECCV 2010;
    Salti, Tombari, Di Stefano, SHOT_LENGTH: unique signatures of histograms for surface and texture
    description, CVIU 2014. As in the authors' code and in PCL, a neighbour's four weights (cosine, azimuth,
    inclination, distance) are added, not multiplied, and the tenth bin of cosines is interpolated with the
    first instead of the eleventh, so that the descriptors are comparable with theirs.
    """
    cloud, directions, rows = _check_arguments(points, normal, index)
    described = [_describe(each, directions, radius) for each in _neighbourhoods(cloud, cloud[rows], radius)]
    return np.concatenate([*described, np.zeros((0, SHOT_LENGTH))])


def _check_arguments(
    points: ArrayLike, normal: ArrayLike, index: ArrayLike | None
) -> tuple[Floats, Floats, Ints]:
    cloud, directions = finite_points(points), floats("normals", normal, ("n", 3))
    same_length(points=cloud, normals=directions)
    return cloud, directions, np.arange(len(cloud)) if index is None else np.asarray(index, dtype=np.int64)


@dataclass(frozen=True)
class _Neighbourhoods:
    """The neighbours of k keypoints, concatenated over the keypoints, nearest first."""

    count: Ints  # (k,) number of neighbours, including the keypoint itself if it is a point of the cloud
    owner: Ints  # (m,) index of the keypoint
    row: Ints  # (m,) row of the neighbour in the cloud
    offset: Floats  # (m, 3) from the keypoint to the neighbour, m
    distance: Floats  # (m,), m


def _neighbourhoods(cloud: Floats, keypoints: Floats, radius: float) -> Iterator[_Neighbourhoods]:
    """Yield the neighbours of the keypoints (k, 3), in batches of keypoints."""
    from scipy.spatial import KDTree

    if not len(keypoints):
        return
    if not len(cloud):
        none = np.zeros(0, np.int64)
        yield _Neighbourhoods(np.zeros(len(keypoints), np.int64), none, none, np.zeros((0, 3)), np.zeros(0))
        return
    tree = KDTree(cloud)
    counts = np.asarray(tree.query_ball_point(keypoints, radius, return_length=True), np.int64)
    if counts.sum() > 2 * MAX_NEIGHBOUR_PAIRS:
        raise GeometryError(
            f"a radius of {radius:g} m is too large for this cloud",
            why=f"{len(keypoints)} keypoints have {counts.sum()} neighbours",
            hint="downsample the cloud to voxels first, or use a smaller radius",
        )
    batch = np.cumsum(counts) // MAX_BATCH_NEIGHBOURS
    for chosen in np.split(np.arange(len(keypoints)), np.flatnonzero(np.diff(batch)) + 1):
        near = KDTree(keypoints[chosen]).sparse_distance_matrix(tree, radius, output_type="ndarray")
        near = near[np.lexsort((near["j"], near["v"], near["i"]))]
        owner, row = near["i"].astype(np.int64), near["j"].astype(np.int64)
        offset = cloud[row] - keypoints[chosen][owner]
        yield _Neighbourhoods(
            np.bincount(owner, minlength=len(chosen)), owner, row, offset, near["v"].astype(np.float64)
        )


def _describe(around: _Neighbourhoods, normal: Floats, radius: float) -> Floats:
    """Return the SHOT_LENGTH descriptors (k, 352) of a batch of keypoints."""
    distinct = around.distance > 0
    owner = around.owner[distinct]
    around = _Neighbourhoods(
        np.bincount(owner, minlength=len(around.count)),
        owner,
        around.row[distinct],
        around.offset[distinct],
        around.distance[distinct],
    )
    frames = _local_frames(around, radius)
    position = np.einsum("mij,mj->mi", frames[around.owner], around.offset)
    cosine = np.clip(np.einsum("mi,mi->m", frames[around.owner, 2], normal[around.row]), -1.0, 1.0)
    known = np.isfinite(cosine)  # neighbours without a normal are not counted
    cells, weights = _interpolate_votes(position[known], around.distance[known] / radius, cosine[known])
    histogram = np.bincount(
        (around.owner[known] * SHOT_LENGTH + cells).ravel(),
        weights.ravel(),
        minlength=len(around.count) * SHOT_LENGTH,
    ).reshape(-1, SHOT_LENGTH)
    length = np.linalg.norm(histogram, axis=1, keepdims=True)
    enough = (around.count >= MIN_NEIGHBOURS)[:, None] & (length > 0)
    return np.divide(histogram, length, out=np.full_like(histogram, np.nan), where=enough)


def _local_frames(around: _Neighbourhoods, radius: float) -> Floats:
    """Return rotations (k, 3, 3) whose rows are the axes of each neighbourhood (Tombari 2010, section 3).

    The axes are eigenvectors of the scatter about the keypoint, weighted by radius minus distance; x and z
    point to the side with most neighbours.
    """
    k, weight = len(around.count), radius - around.distance
    products = np.einsum("mi,mj->mij", around.offset * weight[:, None], around.offset).reshape(-1, 9)
    scatter = np.column_stack([np.bincount(around.owner, column, k) for column in products.T]).reshape(
        -1, 3, 3
    )
    axes = np.linalg.eigh(scatter / np.maximum(np.bincount(around.owner, weight, k), 1e-300)[:, None, None])[
        1
    ]
    x, z = _orient(axes[:, :, 2], around), _orient(axes[:, :, 0], around)
    return np.stack([x, np.cross(z, x), z], axis=1)


def _orient(axis: Floats, around: _Neighbourhoods) -> Floats:
    """Return axes (k, 3) with the sign that makes most projections of neighbours positive.

    A tie is broken by the five neighbours of median distance.
    """
    ahead = np.einsum("mi,mi->m", axis[around.owner], around.offset)
    balance = 2 * np.bincount(around.owner, ahead >= 0, len(axis)) - around.count
    tied = np.flatnonzero((balance == 0) & (around.count >= MIN_NEIGHBOURS))
    first = np.cumsum(around.count) - around.count
    median = (first + around.count // 2)[tied, None] + np.arange(-2, 3)
    balance[tied] = 2 * np.count_nonzero(ahead[median] > 0, axis=1) - 5
    return np.where((balance < 0)[:, None], -axis, axis)


def _interpolate_votes(position: Floats, distance: Floats, cosine: Floats) -> tuple[Ints, Floats]:
    """Return the cells (5, m) of 352 that each neighbour is counted in, and the weights (5, m).

    The cells are its own and the adjacent one along each of the four coordinates. The weight of an adjacent
    cell is the offset from the centre of the own cell, in cells; the remainder is the weight of the own cell.

    Parameters
    ----------
    position : (m, 3)
        In the local frame.
    distance : (m,)
        Fraction of the radius.
    cosine : (m,)
        Between normal and z axis.
    """
    azimuth = (np.arctan2(position[:, 1], position[:, 0]) + np.pi) / (2 * np.pi) * SHOT_SECTORS
    sector = np.minimum(azimuth.astype(np.int64), SHOT_SECTORS - 1)
    outer, upper = (distance > 0.5).astype(np.int64), (position[:, 2] > 0).astype(np.int64)
    step = np.floor(cosine * (SHOT_COSINES - 1) / 2 + SHOT_COSINES / 2).astype(np.int64)
    azimuth_offset = azimuth - sector - 0.5
    radial_offset = 2 * distance - outer - 0.5
    unit_z = np.clip(position[:, 2] / np.linalg.norm(position, axis=1), -1.0, 1.0)
    polar_offset = np.arccos(unit_z) / (np.pi / 2) - np.where(upper > 0, 0.5, 1.5)
    cosine_offset = (1 + cosine) * (SHOT_COSINES - 1) / 2 - step

    def cell(sector: Ints, outer: Ints, upper: Ints, step: Ints) -> Ints:
        return ((sector * 2 + outer) * 2 + upper) * SHOT_COSINES + step

    cells = [
        cell(sector, outer, upper, step),
        cell(sector, outer, upper, (step + np.where(cosine_offset > 0, 1, -1)) % (SHOT_COSINES - 1)),
        cell((sector + np.where(azimuth_offset > 0, 1, -1)) % SHOT_SECTORS, outer, upper, step),
        cell(sector, outer, 1 - upper, step),
        cell(sector, 1 - outer, upper, step),
    ]
    # There are no cells outside the outer shell, inside the inner one, or beyond the poles.
    weights = [
        np.abs(cosine_offset),
        np.abs(azimuth_offset),
        np.where((polar_offset > 0) == (upper > 0), np.abs(polar_offset), 0.0),
        np.where((radial_offset > 0) == (outer == 0), np.abs(radial_offset), 0.0),
    ]
    own = 4 - sum(np.abs(each) for each in (cosine_offset, azimuth_offset, polar_offset, radial_offset))
    return np.stack(cells), np.stack([own, *weights])


def _simplified_histograms(cloud: Floats, normal: Floats, pairs: NeighbourPairs) -> Floats:
    """Simplified point feature histograms (n, 33) of each point and its neighbours, each of sum 1."""
    bins = _pair_bins(cloud, normal, pairs)
    cells = (np.concatenate(pairs[:2])[:, None] * 3 + np.arange(3)) * FPFH_BINS + np.concatenate([bins, bins])
    counts = np.bincount(cells.ravel(), minlength=len(cloud) * 3 * FPFH_BINS).reshape(-1, 3, FPFH_BINS)
    return (counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)).reshape(-1, 3 * FPFH_BINS)


def _pair_bins(cloud: Floats, normal: Floats, pairs: NeighbourPairs) -> Ints:
    """Bins (m, 3) of the three angles of each pair; symmetric in the two points."""
    first, second, distance = pairs
    line = (cloud[second] - cloud[first]) / distance[:, None]
    a, b = normal[first], normal[second]
    to_a, to_b = np.einsum("ni,ni->n", a, line), np.einsum("ni,ni->n", b, line)
    # The frame is at the point whose normal makes the smaller angle with the line (Rusu 2009, section II).
    # Points with the same neighbours have the same normal: the sign decides then, instead of rounding.
    tied = np.abs(np.abs(to_a) - np.abs(to_b)) < COSINE_TOLERANCE
    swap = np.where(tied, to_a < 0, np.abs(to_a) < np.abs(to_b))
    u, other = np.where(swap[:, None], b, a), np.where(swap[:, None], a, b)
    line = np.where(swap[:, None], -line, line)
    v = np.cross(line, u)
    length = np.linalg.norm(v, axis=1, keepdims=True)
    v = np.divide(v, length, out=np.zeros_like(v), where=length > 0)
    alpha = np.einsum("ni,ni->n", v, other)
    phi = np.where(swap, -to_b, to_a)
    theta = np.arctan2(np.einsum("ni,ni->n", np.cross(u, v), other), np.einsum("ni,ni->n", u, other))
    fraction = np.column_stack([(alpha + 1) / 2, (phi + 1) / 2, (theta + np.pi) / (2 * np.pi)])
    return np.clip((fraction * FPFH_BINS).astype(np.int64), 0, FPFH_BINS - 1)


def _known_pairs(pairs: NeighbourPairs, known: Mask) -> NeighbourPairs:
    """Pairs of two points with normals and different positions."""
    kept = known[pairs.first] & known[pairs.second] & (pairs.distance > 0)
    return NeighbourPairs(pairs.first[kept], pairs.second[kept], pairs.distance[kept])
