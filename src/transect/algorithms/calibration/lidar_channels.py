"""What each channel of a lidar measures wrongly, told by its own scans.

A lidar has tens of lasers. Each measures all ranges too long or too short by its own, by up to some
centimetres, and looks a little too high or too low. Where one surface is seen by several channels, or by one
from several places, they contradict each other: points of a small piece of ground do not lie on one plane. So
the faults are those with which they do. Height and tilt of each piece are free.

How channels differ is found with the poses of an odometry. What they have in common is in these poses: it
makes a scale of the way. It is found with the poses free, by how a surface moves that is met squarely, and
hardly one that is met aslant. It can be told by open ground only if the mean of the elevations is right:
0.6 mrad there pass for 7 mm in all ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints, Mask
from transect.geometry.neighbours import voxel_numbers
from transect.types import PointCloud

from ..odometry.lidar_sweep import ASLANT

RING = "ring"
EXPECTED = (0.02, 0.0005)
"""Sigma, m and rad, of ranges and elevations of a lidar of which nothing is known: makers promise such."""
EDGE = 0.4
"""Metres: pieces of ground so large are taken for planes."""
LEAST, THICKEST, FLATTEST = 20, 0.08, 2.0
"""Points of a piece; its thickness, m (sigma); and how many times as wide as thick it must be."""
NOISE = 0.01
"""Metres: no piece is flatter."""
SHARED = 100.0
"""Variances are so much larger than if the errors of points were independent: they share poses."""
KINDS = len(EXPECTED)
NOTHING = 1e-10
"""Share of the largest curvature below which nothing tells: all scans may move together."""


@dataclass(frozen=True, eq=False)
class Look:
    """Some points of a scan, placed.

    Attributes
    ----------
    points : (n, 3)
        In the map.
    beams, rises : (n, 3)
        How each moves in the map with its range, and with the elevation of its channel.
    ring : (n,)
        Channels, from 0.
    """

    points: Floats
    beams: Floats
    rises: Floats
    ring: Ints


@dataclass(frozen=True, eq=False)
class ChannelFaults:
    """What channels measure too much.

    Attributes
    ----------
    ranges, elevations : (k,)
        m and rad, by channel.
    covariance : (2 k, 2 k)
        Of both in turn.
    counts : (k,)
        Points that told it.
    """

    ranges: Floats
    elevations: Floats
    covariance: Floats
    counts: Ints

    def take_off(self, cloud: PointCloud) -> NDArray[np.float32]:
        """Return the points (n, 3) of a cloud with `ring` as a lidar without these faults measures them."""
        points = np.asarray(cloud.points, np.float64)
        beams, rises = derive(points)
        ring = rings_of(cloud)
        known = (ring >= 0) & (ring < len(self.ranges))
        at = np.where(known, ring, 0)
        wrong = self.ranges[at, None] * beams + self.elevations[at, None] * rises
        return np.where(known[:, None], points - wrong, points).astype(np.float32)

    def add(self, rest: ChannelFaults) -> ChannelFaults:
        """Return these together with what was found when they had been taken off."""
        size = max(len(self.ranges), len(rest.ranges))
        ranges, elevations = (
            np.pad(one, (0, size - len(one))) + np.pad(two, (0, size - len(two)))
            for one, two in ((self.ranges, rest.ranges), (self.elevations, rest.elevations))
        )
        newer = rest if len(rest.ranges) == size else self
        return ChannelFaults(ranges, elevations, newer.covariance, newer.counts)

    def spread(self) -> tuple[Floats, Floats]:
        """Return root mean squares over points (2,) of ranges and elevations, and how well they are known."""
        weight = self.counts / max(self.counts.sum(), 1)
        sigma = self.covariance.diagonal().reshape(KINDS, -1)
        size = np.stack([self.ranges, self.elevations]) ** 2
        return np.sqrt(size @ weight), np.sqrt(sigma @ weight)


def rings_of(cloud: PointCloud) -> Ints:
    """Return the channels (n,) of a cloud's points; where they are NaN, below 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(cloud.fields[RING]).astype(np.int64)


def derive(points: Floats) -> tuple[Floats, Floats]:
    """Return how points (n, 3) in the lidar's axes move with range, and with elevation; both (n, 3)."""
    away = np.maximum(np.linalg.norm(points, axis=1), 1e-9)
    level = np.maximum(np.hypot(points[:, 0], points[:, 1]), 1e-9)
    rises = np.column_stack([-points[:, :2] * (points[:, 2] / level)[:, None], level])
    return points / away[:, None], rises


def look(points: Floats, ring: Ints, poses: Floats) -> Look:
    """Place points (n, 3) by the poses ``T_map_lidar`` (n, 4, 4) that the lidar had when it measured each."""
    turns, places = poses[:, :3, :3], poses[:, :3, 3]
    moved = [np.einsum("nij,nj->ni", turns, each) for each in (points, *derive(points))]
    return Look(moved[0] + places, moved[1], moved[2], ring)


def find_channel_faults(looks: Sequence[Look]) -> ChannelFaults | None:
    """Return the faults with which points lie most nearly on planes; None if no piece of ground tells.

    They are believed as far as they stand out of their uncertainty: what a lidar is expected to be like
    counts as well (`EXPECTED`).
    """
    points, beams, rises, ring = (
        np.concatenate([getattr(each, field.name) for each in looks]) for field in fields(Look)
    )
    scan = np.repeat(np.arange(len(looks)), [len(each.ring) for each in looks])
    channels = int(ring.max(initial=-1)) + 1
    pieces = _find_pieces(points)
    meets = np.abs(np.einsum("ij,ij->i", beams, pieces.normals[pieces.number]))
    used = pieces.flat[pieces.number] & (meets > ASLANT)
    if not used.any():
        return None
    pieces, ring, scan = pieces.take(used), ring[used], scan[used]
    farther, higher = (
        _spread_out(pieces.along_normal(each[used])[:, None], ring, channels) for each in (beams, rises)
    )
    counts = np.bincount(ring, minlength=channels)
    weight = counts / counts.sum()
    ranges, elevations, covariance = _find_differences(pieces, farther, higher)
    common = _find_common(pieces, farther, _move_scans(points[used], scan, pieces), weight)
    return ChannelFaults(ranges - weight @ ranges + common, elevations, covariance, counts)


def _find_differences(pieces: _Pieces, farther: Any, higher: Any) -> tuple[Floats, Floats, Floats]:
    """Return ranges and elevations (k,) without what all have in common, and the covariance of both."""
    hessian, slope = _sum_up(pieces, farther, higher)
    channels = len(slope) // KINDS
    alike = np.repeat(np.eye(KINDS), channels, axis=0)
    hessian, slope = _leave_out(hessian, slope, alike)
    expected = np.repeat(np.power(EXPECTED, -2.0), channels)
    covariance = np.asarray(np.linalg.inv(hessian / SHARED + np.diag(expected)), np.float64)
    ranges, elevations = (covariance @ slope / SHARED).reshape(KINDS, channels)
    return ranges, elevations, covariance


def _find_common(pieces: _Pieces, farther: Any, elsewhere: Any, weight: Floats) -> float:
    """Return the mean range, weighted (k,), m; poses of scans are free as well."""
    channels = len(weight)
    hessian, slope = _sum_up(pieces, farther, elsewhere)
    hessian, slope = _leave_out(hessian, slope, np.eye(len(slope))[:, channels:])
    same = np.full((channels, channels), 1 / channels)
    expected = (np.eye(channels) - same + same / channels) / EXPECTED[0] ** 2
    ranges = np.linalg.solve(hessian[:channels, :channels] / SHARED + expected, slope[:channels] / SHARED)
    return float(weight @ ranges)


def _leave_out(hessian: Floats, slope: Floats, free: Floats) -> tuple[Floats, Floats]:
    """Take what moves along directions (n, m) do out of a curvature (n, n) and a slope (n,)."""
    tells = hessian @ free
    weight = np.linalg.pinv(free.T @ tells, rcond=NOTHING, hermitian=True)
    return hessian - tells @ weight @ tells.T, slope - tells @ weight @ (free.T @ slope)


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Pieces of ground.

    Attributes
    ----------
    number : (n,)
        Of the piece that each point is of.
    offset : (n, 3)
        Of each point from the middle of its piece.
    axes : (m, 3, 3)
        Columns: the normal, and two directions along each piece.
    flat : (m,)
        Whether it is one.
    """

    number: Ints
    offset: Floats
    axes: Floats
    flat: Mask

    @property
    def normals(self) -> Floats:
        return self.axes[:, :, 0]

    def take(self, used: Mask) -> _Pieces:
        """Return what is left with some points (n,) only."""
        kept, number = np.unique(self.number[used], return_inverse=True)
        return _Pieces(number, self.offset[used], self.axes[kept], self.flat[kept])

    def along_normal(self, vectors: Floats) -> Floats:
        """Return the components (n,) of vectors (n, 3) of the points along the normals of their pieces."""
        return np.einsum("ij,ij->i", vectors, self.normals[self.number])


def _find_pieces(points: Floats) -> _Pieces:
    """Cut points (n, 3) into pieces, and fit a plane to each."""
    _, number, count = np.unique(voxel_numbers(points, EDGE), return_inverse=True, return_counts=True)
    offset = points - _sums(number, points)[number] / count[number, None]
    rows, columns = np.triu_indices(3)
    upper = _sums(number, offset[:, rows] * offset[:, columns]) / count[:, None]
    spread = np.empty((len(count), 3, 3))
    spread[:, rows, columns] = spread[:, columns, rows] = upper
    values, axes = np.linalg.eigh(spread)
    thin = (values[:, 0] < THICKEST**2) & (values[:, 1] > FLATTEST**2 * values[:, 0])
    return _Pieces(number, offset, axes, (count >= LEAST) & thin)


def _spread_out(effect: Floats, number: Ints, count: int) -> Any:
    """Return a sparse matrix (n, count m) of effects (n, m) on points, of one of so many things each."""
    from scipy import sparse

    rows, size = np.indices(effect.shape)[0], effect.shape[1]
    columns = number[:, None] * size + np.arange(size)
    return sparse.csr_array((effect.ravel(), (rows.ravel(), columns.ravel())), (len(effect), count * size))


def _move_scans(points: Floats, scan: Ints, pieces: _Pieces) -> Any:
    """Return how far points (n, 3) leave their planes with shifts and turns of their scans; (n, 6 scans)."""
    normals = pieces.normals[pieces.number]
    middle = _sums(scan, points) / np.maximum(np.bincount(scan), 1)[:, None]
    turns = np.cross(points - middle[scan], normals)
    return _spread_out(np.column_stack([normals, turns]), scan, len(middle))


def _sum_up(pieces: _Pieces, *effects: Any) -> tuple[Floats, Floats]:
    """Return curvature (k, k) and slope (k,) of half the sum of squared distances from the planes.

    Parameters
    ----------
    effects : (n, some of k), sparse
        How far each point leaves its plane with each unknown.
    """
    from scipy import sparse

    number = pieces.number
    along = np.einsum("ij,ijk->ik", pieces.offset, pieces.axes[number])
    off, basis = along[:, 0], np.column_stack([np.ones(len(along)), along[:, 1:]])
    # Height and tilt of each piece, in axes in which they are independent, to be taken out of everything.
    gram = _sums(number, (basis[:, :, None] * basis[:, None, :]).reshape(-1, 9)).reshape(-1, 3, 3)
    whiten = np.linalg.inv(np.linalg.cholesky(gram + 1e-9 * np.eye(3)))
    basis = np.einsum("nij,nj->ni", whiten[number], basis)
    off = off - np.einsum("ij,ij->i", basis, _sums(number, basis * off[:, None])[number])
    freedom = np.maximum(np.bincount(number) - 3, 1)
    weight = 1 / np.maximum(_sums(number, off[:, None] ** 2)[:, 0] / freedom, NOISE**2)
    each, pieces_root = weight[number], np.sqrt(weight)
    moves = sparse.hstack(effects, format="csr")
    hessian: Any = moves.T @ (moves * each[:, None])
    for row in basis.T:
        whole = sparse.csr_array((row, (number, np.arange(len(row)))), (len(weight), len(row))) @ moves
        whole = whole * pieces_root[:, None]
        hessian = hessian - whole.T @ whole
    return np.asarray(hessian.todense(), np.float64), np.asarray(moves.T @ (each * off), np.float64)


def _sums(number: Ints, values: Floats) -> Floats:
    """Return sums (m, k) of values (n, k) by their numbers (n,)."""
    return np.stack([np.bincount(number, column).astype(np.float64) for column in values.T], axis=1)
