"""What the surface around a point looks like, in histograms that do not depend on where it is seen from.

Three descriptors of clouds (n, 3) in metres with unit normals (n, 3): `fpfh` (33 numbers), `pfh` (125) and
`shot` (352). Points must be finite; normals may be NaN where they are not known. Move the cloud, and the
numbers stay. One thread is used, so that bits repeat.
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
from transect.geometry.surfaces import LEAST_NEIGHBOURS, MOST_PAIRS, Pairs, count_neighbours, pairs_within

TIED = 1e-9
"""Cosines that differ by less are equal but for rounding."""
BINS = 11
"""Of each of the three histograms of a fast point feature histogram (Rusu 2009)."""
SECTORS, COSINES = 8, 11
"""Of a SHOT descriptor: sectors of azimuth; bins of the cosine between normals and the local z axis."""
SHOT = SECTORS * 2 * 2 * COSINES
DECIDING = 5
"""Neighbours of median distance that choose a direction where the others are divided equally (SHOT)."""
AT_ONCE = 400_000
"""Pairs of keypoint and neighbour that are described at a time."""


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

    cloud, directions, rows = _given(points, normal, index)
    pairs = _known(pairs_within(cloud, radius), measured_rows(directions))
    count, n = count_neighbours(pairs, len(cloud)), len(cloud)
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


def pfh(points: ArrayLike, normal: ArrayLike, radius: float, index: ArrayLike | None = None) -> Floats:
    """Point feature histograms (k, 125): how all normals around a point stand to each other.

    Parameters
    ----------
    points, normal : (n, 3)
        Unit normals, all turned to the same side of the surface; NaN where not known.
    radius : float
        Metres: how far a neighbourhood reaches. The work grows with the square of the number of neighbours.
    index : (k,) optional
        Rows to describe; all by default.

    Returns
    -------
    (k, 125) a joint histogram of three angles in 5 x 5 x 5 bins, of sum 1; the bins of the angle between the
    normals (theta) change fastest, then those of alpha, then those of phi. NaN rows for points with fewer
    than two known neighbours, themselves included.

    Notes
    -----
    Rusu, Blodow, Marton, Beetz, Aligning point cloud views using persistent feature histograms, IROS 2008.
    Pairs of which the angles are not defined (equal places, a normal along the line) are in the middle bin,
    as in PCL.
    """
    joint_histogram = load_compiled(__name__, "descriptors").joint_histogram

    cloud, directions, rows = _given(points, normal, index)
    known = np.flatnonzero(measured_rows(directions))
    around = _neighbourhoods(cloud[known], cloud[rows], radius)
    described = [
        joint_histogram(cloud[known], directions[known], each.row, each.count, TIED) for each in around
    ]
    return np.concatenate([*described, np.zeros((0, 125))])


def shot(points: ArrayLike, normal: ArrayLike, radius: float, index: ArrayLike | None = None) -> Floats:
    """Signatures of histograms of orientations (k, 352), each of Euclidean length 1.

    Parameters
    ----------
    points, normal : (n, 3)
        Unit normals, all turned to the same side of the surface; NaN where not known.
    radius : float
        Metres: how far a neighbourhood reaches.
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
    Salti, Tombari, Di Stefano, SHOT: unique signatures of histograms for surface and texture description,
    CVIU 2014. As in the authors' code and in PCL, a neighbour's four weights (cosine, azimuth, inclination,
    distance) are added, not multiplied, and the tenth bin of cosines shares with the first instead of with
    the eleventh: descriptors of both can be compared.
    """
    cloud, directions, rows = _given(points, normal, index)
    described = [_shot_of(each, directions, radius) for each in _neighbourhoods(cloud, cloud[rows], radius)]
    return np.concatenate([*described, np.zeros((0, SHOT))])


def _given(points: ArrayLike, normal: ArrayLike, index: ArrayLike | None) -> tuple[Floats, Floats, Ints]:
    cloud, directions = finite_points(points), floats("normals", normal, ("n", 3))
    same_length(points=cloud, normals=directions)
    return cloud, directions, np.arange(len(cloud)) if index is None else np.asarray(index, dtype=np.int64)


@dataclass(frozen=True)
class _Around:
    """The neighbours of k keypoints, one keypoint after the other, nearest first.

    Attributes
    ----------
    count : (k,)
        How many neighbours each keypoint has, itself included if it is a point of the cloud.
    owner, row : (m,)
        Number of the keypoint, and row of the neighbour in the cloud.
    offset : (m, 3)
        Metres from the keypoint to the neighbour.
    distance : (m,)
        Metres.
    """

    count: Ints
    owner: Ints
    row: Ints
    offset: Floats
    distance: Floats


def _neighbourhoods(cloud: Floats, keypoints: Floats, radius: float) -> Iterator[_Around]:
    """Yield the neighbours of the keypoints (k, 3), some keypoints at a time."""
    from scipy.spatial import KDTree

    if not len(keypoints):
        return
    if not len(cloud):
        none = np.zeros(0, np.int64)
        yield _Around(np.zeros(len(keypoints), np.int64), none, none, np.zeros((0, 3)), np.zeros(0))
        return
    tree = KDTree(cloud)
    counts = np.asarray(tree.query_ball_point(keypoints, radius, return_length=True), np.int64)
    if counts.sum() > 2 * MOST_PAIRS:
        raise GeometryError(
            f"a radius of {radius:g} m is too large for this cloud",
            why=f"{len(keypoints)} keypoints have {counts.sum()} neighbours",
            hint="thin the cloud to voxels first, or take a smaller radius",
        )
    part = np.cumsum(counts) // AT_ONCE
    for chosen in np.split(np.arange(len(keypoints)), np.flatnonzero(np.diff(part)) + 1):
        near = KDTree(keypoints[chosen]).sparse_distance_matrix(tree, radius, output_type="ndarray")
        near = near[np.lexsort((near["j"], near["v"], near["i"]))]
        owner, row = near["i"].astype(np.int64), near["j"].astype(np.int64)
        offset = cloud[row] - keypoints[chosen][owner]
        yield _Around(
            np.bincount(owner, minlength=len(chosen)), owner, row, offset, near["v"].astype(np.float64)
        )


def _shot_of(around: _Around, normal: Floats, radius: float) -> Floats:
    """Return the descriptors (k, 352) of some keypoints."""
    apart = around.distance > 0
    owner = around.owner[apart]
    around = _Around(
        np.bincount(owner, minlength=len(around.count)),
        owner,
        around.row[apart],
        around.offset[apart],
        around.distance[apart],
    )
    frames = _local_frames(around, radius)
    place = np.einsum("mij,mj->mi", frames[around.owner], around.offset)
    cosine = np.clip(np.einsum("mi,mi->m", frames[around.owner, 2], normal[around.row]), -1.0, 1.0)
    known = np.isfinite(cosine)  # without a normal there is no vote
    cells, weights = _shot_votes(place[known], around.distance[known] / radius, cosine[known])
    filled = np.bincount(
        (around.owner[known] * SHOT + cells).ravel(), weights.ravel(), minlength=len(around.count) * SHOT
    ).reshape(-1, SHOT)
    length = np.linalg.norm(filled, axis=1, keepdims=True)
    enough = (around.count >= LEAST_NEIGHBOURS)[:, None] & (length > 0)
    return np.divide(filled, length, out=np.full_like(filled, np.nan), where=enough)


def _local_frames(around: _Around, radius: float) -> Floats:
    """Return rotations (k, 3, 3) whose rows are the axes of each neighbourhood (Tombari 2010, section 3).

    Axes of the scatter about the keypoint, nearer neighbours weighing more; x and z point to where most
    neighbours are.
    """
    k, weight = len(around.count), radius - around.distance
    products = np.einsum("mi,mj->mij", around.offset * weight[:, None], around.offset).reshape(-1, 9)
    scatter = np.column_stack([np.bincount(around.owner, column, k) for column in products.T]).reshape(
        -1, 3, 3
    )
    axes = np.linalg.eigh(scatter / np.maximum(np.bincount(around.owner, weight, k), 1e-300)[:, None, None])[
        1
    ]
    x, z = _direct(axes[:, :, 2], around), _direct(axes[:, :, 0], around)
    return np.stack([x, np.cross(z, x), z], axis=1)


def _direct(axis: Floats, around: _Around) -> Floats:
    """Return axes (k, 3) with the sign by which most neighbours are ahead."""
    ahead = np.einsum("mi,mi->m", axis[around.owner], around.offset)
    balance = 2 * np.bincount(around.owner, ahead >= 0, len(axis)) - around.count
    tied = np.flatnonzero((balance == 0) & (around.count >= LEAST_NEIGHBOURS))
    first = np.cumsum(around.count) - around.count
    middle = (first + around.count // 2)[tied, None] + np.arange(DECIDING) - DECIDING // 2
    balance[tied] = 2 * np.count_nonzero(ahead[middle] > 0, axis=1) - DECIDING
    return np.where((balance < 0)[:, None], -axis, axis)


def _shot_votes(place: Floats, distance: Floats, cosine: Floats) -> tuple[Ints, Floats]:
    """Return the cells (5, m) of 352 that each neighbour votes for, and the weights (5, m).

    Its own cell, then the nearest one in each of the four directions. An offset from the middle of a cell, in
    cells, is the weight that goes to the neighbouring cell; one less that stays.

    Parameters
    ----------
    place : (m, 3)
        In the local frame.
    distance : (m,)
        As a part of the radius.
    cosine : (m,)
        Between normal and z axis.
    """
    turn = (np.arctan2(place[:, 1], place[:, 0]) + np.pi) / (2 * np.pi) * SECTORS
    sector = np.minimum(turn.astype(np.int64), SECTORS - 1)
    outer, upper = (distance > 0.5).astype(np.int64), (place[:, 2] > 0).astype(np.int64)
    step = np.floor(cosine * (COSINES - 1) / 2 + COSINES / 2).astype(np.int64)
    around = turn - sector - 0.5
    outwards = 2 * distance - outer - 0.5
    height = np.arccos(np.clip(place[:, 2] / np.linalg.norm(place, axis=1), -1.0, 1.0)) / (np.pi / 2)
    downwards = height - np.where(upper > 0, 0.5, 1.5)
    leaning = (1 + cosine) * (COSINES - 1) / 2 - step

    def cell(sector: Ints, outer: Ints, upper: Ints, step: Ints) -> Ints:
        return ((sector * 2 + outer) * 2 + upper) * COSINES + step

    cells = [
        cell(sector, outer, upper, step),
        cell(sector, outer, upper, (step + np.where(leaning > 0, 1, -1)) % (COSINES - 1)),
        cell((sector + np.where(around > 0, 1, -1)) % SECTORS, outer, upper, step),
        cell(sector, outer, 1 - upper, step),
        cell(sector, 1 - outer, upper, step),
    ]
    # Nothing lies beyond the outer shell, below the inner one, nor past the poles.
    weights = [
        np.abs(leaning),
        np.abs(around),
        np.where((downwards > 0) == (upper > 0), np.abs(downwards), 0.0),
        np.where((outwards > 0) == (outer == 0), np.abs(outwards), 0.0),
    ]
    own = 4 - sum(np.abs(each) for each in (leaning, around, downwards, outwards))
    return np.stack(cells), np.stack([own, *weights])


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
