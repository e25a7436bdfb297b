"""Neighbourhood filters and voxel grids for point clouds (n, 3) in metres.

The filters return a mask (n,), True for the points to keep. Points with NaN are never kept and are not
neighbours of other points; a point is not its own neighbour. One thread is used, so that results are
reproducible.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError
from transect.geometry.array_checks import floats, measured_rows


def statistical_inliers(points: ArrayLike, neighbours: int = 20, deviations: float = 2.0) -> Mask:
    """Points whose mean distance to their neighbours is not an outlier (statistical outlier removal).

    Parameters
    ----------
    points : (n, 3)
    neighbours : int
        Number of nearest neighbours over which the distance is averaged (all others, if there are fewer).
    deviations : float
        Points are kept up to the mean over the cloud plus this many standard deviations.

    Notes
    -----
    Rusu et al., Towards 3D point cloud based object maps, 2008.
    """
    cloud, measured = _cloud(points)
    count = min(_at_least_one(neighbours), len(cloud) - 1)
    if count < 1:
        return np.zeros(len(measured), dtype=np.bool_)
    distance = _distances(cloud, count).mean(axis=1)
    return _expand_mask(distance <= distance.mean() + deviations * distance.std(), measured)


def dynamic_radius_inliers(
    points: ArrayLike,
    resolution: float,
    neighbours: int = 3,
    multiplier: float = 3.0,
    min_radius: float = 0.04,
    sensor: ArrayLike = (0.0, 0.0, 0.0),
) -> Mask:
    """Points with enough neighbours in a radius proportional to range (dynamic radius outlier removal, DROR).

    Parameters
    ----------
    points : (n, 3)
    resolution : float
        Angle between neighbouring beams in radians.
    neighbours : int
        Minimum number of neighbours within the radius.
    multiplier, min_radius : float
        The radius is ``multiplier * resolution * range``, at least `min_radius` metres.
    sensor : (3,)
        Position of the lidar in the frame of the points.

    Notes
    -----
    Charron, Phillips, Waslander, De-noising of lidar point clouds corrupted by snowfall, CRV 2018.
    """
    cloud, measured = _cloud(points)
    ranges = np.linalg.norm(cloud - floats("sensor", sensor, (3,)), axis=1)
    radius = np.maximum(min_radius, multiplier * resolution * ranges)
    return _expand_mask(_has_neighbours(cloud, radius, neighbours), measured)


def beam_spacing(points: ArrayLike, sensor: ArrayLike = (0.0, 0.0, 0.0), max_points: int = 4000) -> float:
    """Median angle in radians from a point of a lidar cloud to its nearest neighbour, seen by the sensor.

    It is the `resolution` for `dynamic_radius_inliers` if the sensor's is not known. For widely spaced rings
    it is the spacing along a ring. NaN for fewer than two points.

    Parameters
    ----------
    points : (n, 3)
    sensor : (3,)
        Position of the lidar in the frame of the points.
    max_points : int
        Points sampled evenly from the cloud.
    """
    from scipy.spatial import KDTree

    cloud, _ = _cloud(points)
    if len(cloud) < 2:
        return float("nan")
    sample = cloud[:: max(1, len(cloud) // max_points)]
    ranges = np.linalg.norm(sample - floats("sensor", sensor, (3,)), axis=1)
    # The distance to the nearest neighbour is 0 for duplicates, which two echoes of a beam may be.
    distance = np.asarray(KDTree(cloud).query(sample, k=min(4, len(cloud)))[0])[:, 1:]
    distance = np.where(distance > 0, distance, np.inf).min(axis=1)
    known = np.isfinite(distance) & (ranges > 0)
    return float(np.median(distance[known] / ranges[known])) if known.any() else float("nan")


def voxel_indices(points: ArrayLike, size: float) -> Ints:
    """Index of the first point in every occupied voxel, ascending.

    Parameters
    ----------
    points : (n, 3)
    size : float
        Edge of a voxel in metres; the grid has a corner at the origin.
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
            hint="use larger voxels, or remove distant outliers first",
        )
    i, j, k = cell.astype(np.int64).T
    return (i * int(extent[1]) + j) * int(extent[2]) + k


def _cloud(points: ArrayLike) -> tuple[Floats, Mask]:
    """The measured points, and the mask of their rows."""
    cloud = floats("points", points, ("n", 3))
    measured = measured_rows(cloud)
    return cloud[measured], measured


def _expand_mask(keep: Mask, measured: Mask) -> Mask:
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

    # The first neighbour found is the point itself, or a duplicate at the same distance 0.
    return np.asarray(KDTree(cloud).query(cloud, k=count + 1)[0])[:, 1:]


def _has_neighbours(cloud: Floats, radius: Floats, neighbours: int) -> Mask:
    # Compares the distance of the k-th neighbour, which is cheaper than counting all within the radius.
    needed = _at_least_one(neighbours)
    if not len(cloud):
        return np.zeros(0, dtype=np.bool_)
    return _distances(cloud, needed)[:, -1] <= radius
