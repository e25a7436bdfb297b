"""Neighbourhood filters for point clouds (n, 3) in metres.

The filters return a mask (n,), True for the points to keep. A point with NaN is never kept and is nobody's
neighbour; a point is not its own neighbour. One thread is used, so that the same cloud gives the same mask.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError
from transect.geometry.array_checks import floats, measured_rows


def statistical_inliers(points: ArrayLike, neighbours: int = 20, deviations: float = 2.0) -> Mask:
    """Points about as near to their neighbours as points usually are (statistical outlier removal).

    Parameters
    ----------
    points : (n, 3)
    neighbours : int
        How many nearest neighbours the mean distance is taken to (all others, if there are fewer).
    deviations : float
        Keep mean distances up to the mean over the cloud plus this many standard deviations.

    Notes
    -----
    Rusu et al., Towards 3D point cloud based object maps, 2008.
    """
    cloud, measured = _cloud(points)
    count = min(_at_least_one(neighbours), len(cloud) - 1)
    if count < 1:
        return np.zeros(len(measured), dtype=np.bool_)
    distance = _distances(cloud, count).mean(axis=1)
    return _spread(distance <= distance.mean() + deviations * distance.std(), measured)


def radius_inliers(points: ArrayLike, radius: float, neighbours: int = 2) -> Mask:
    """Points (n, 3) with at least so many `neighbours` within `radius` metres."""
    cloud, measured = _cloud(points)
    return _spread(_find_crowded(cloud, np.full(len(cloud), radius), neighbours), measured)


def dynamic_radius_inliers(
    points: ArrayLike,
    resolution: float,
    neighbours: int = 3,
    multiplier: float = 3.0,
    least_radius: float = 0.04,
    sensor: ArrayLike = (0.0, 0.0, 0.0),
) -> Mask:
    """Points with enough neighbours for their range: lidar returns thin out with distance (DROR).

    Parameters
    ----------
    points : (n, 3)
    resolution : float
        Angle between neighbouring beams in radians.
    neighbours : int
        Keep points with at least so many neighbours within the radius.
    multiplier, least_radius : float
        The radius is ``multiplier * resolution * range``, at least `least_radius` metres.
    sensor : (3,)
        Where the lidar stood, in the frame of the points; ranges are from there.

    Notes
    -----
    Charron, Phillips, Waslander, De-noising of lidar point clouds corrupted by snowfall, CRV 2018.
    """
    cloud, measured = _cloud(points)
    reach = np.linalg.norm(cloud - floats("sensor", sensor, (3,)), axis=1)
    return _spread(
        _find_crowded(cloud, np.maximum(least_radius, multiplier * resolution * reach), neighbours), measured
    )


def beam_spacing(points: ArrayLike, sensor: ArrayLike = (0.0, 0.0, 0.0), most: int = 4000) -> float:
    """Angle in radians under which a lidar sees a point and its nearest neighbour: the median over a cloud.

    It is the `resolution` that `dynamic_radius_inliers` needs, for a sensor of which nothing is known. Where
    rings are far apart it is the spacing along a ring. NaN for fewer than two points.

    Parameters
    ----------
    points : (n, 3)
    sensor : (3,)
        Where the lidar stood, in the frame of the points.
    most : int
        Points that are looked at, evenly over the cloud.
    """
    from scipy.spatial import KDTree

    cloud, _ = _cloud(points)
    if len(cloud) < 2:
        return float("nan")
    some = cloud[:: max(1, len(cloud) // most)]
    reach = np.linalg.norm(some - floats("sensor", sensor, (3,)), axis=1)
    # The second distance is 0 for points that are there twice, as those of two echoes may be.
    distance = np.asarray(KDTree(cloud).query(some, k=min(4, len(cloud)))[0])[:, 1:]
    apart = np.where(distance > 0, distance, np.inf).min(axis=1)
    known = np.isfinite(apart) & (reach > 0)
    return float(np.median(apart[known] / reach[known])) if known.any() else float("nan")


def voxel_indices(points: ArrayLike, size: float) -> Ints:
    """Index of the first point in every occupied voxel, ascending.

    Parameters
    ----------
    points : (n, 3)
    size : float
        Edge of a voxel in metres; one corner of the grid is the origin, whatever the cloud.
    """
    cloud, measured = _cloud(points)
    _, first = np.unique(voxel_numbers(cloud, size), return_index=True)
    return np.flatnonzero(measured)[np.sort(first)]


def voxel_means(points: ArrayLike, size: float) -> Floats:
    """Mean (m, 3) of the points in every occupied voxel, in the order of `voxel_indices`."""
    cloud, _ = _cloud(points)
    _, first, voxel, count = np.unique(
        voxel_numbers(cloud, size), return_index=True, return_inverse=True, return_counts=True
    )
    sums = [np.bincount(voxel, weights=column, minlength=len(count)) for column in cloud.T]
    return (np.stack(sums, axis=-1) / count[:, None])[np.argsort(first)]


def voxel_numbers(cloud: Floats, size: float) -> Ints:
    """One number (n,) for the voxel of each point (n, 3), all measured; edges are `size` metres."""
    if not size > 0:
        raise GeometryError(f"expected a voxel size greater than 0, got {size}")
    if not len(cloud):
        return np.zeros(0, dtype=np.int64)
    cell = np.floor(cloud / size)
    cell -= cell.min(axis=0)
    extent = cell.max(axis=0) + 1
    if not np.prod(extent) < 2**62:
        raise GeometryError(
            f"voxels of {size} m are too small for this cloud",
            why="it would have " + " x ".join(f"{n:.3g}" for n in extent) + " of them",
            hint="take a larger voxel, or remove far outliers first",
        )
    i, j, k = cell.astype(np.int64).T
    return (i * int(extent[1]) + j) * int(extent[2]) + k


def _cloud(points: ArrayLike) -> tuple[Floats, Mask]:
    """The measured points, and which of the rows they are."""
    cloud = floats("points", points, ("n", 3))
    measured = measured_rows(cloud)
    return cloud[measured], measured


def _spread(keep: Mask, measured: Mask) -> Mask:
    mask = np.zeros(len(measured), dtype=np.bool_)
    mask[measured] = keep
    return mask


def _at_least_one(neighbours: int) -> int:
    if neighbours < 1:
        raise GeometryError(f"expected at least 1 neighbour, got {neighbours}")
    return neighbours


def _distances(cloud: Floats, count: int) -> Floats:
    """Distances (n, count) to the nearest other points, nearest first; inf where there are no more."""
    from scipy.spatial import KDTree

    # The very nearest that a tree finds is the point itself, or its double at the same distance 0.
    return np.asarray(KDTree(cloud).query(cloud, k=count + 1)[0])[:, 1:]


def _find_crowded(cloud: Floats, radius: Floats, neighbours: int) -> Mask:
    # Enough are near when the last one needed is: cheaper than counting all of them.
    needed = _at_least_one(neighbours)
    if not len(cloud):
        return np.zeros(0, dtype=np.bool_)
    return _distances(cloud, needed)[:, -1] <= radius
