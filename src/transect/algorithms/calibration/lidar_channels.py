"""Range and elevation errors of each channel of a lidar, estimated from its own scans.

A lidar has tens of lasers (channels). Each has a constant range error of up to some centimetres, and a small
error of its elevation angle. Where several channels measure one surface, or one channel measures it from
several positions, these errors displace points from the plane of a small patch of ground. The estimate
minimises the distances of points from their planes, with height and tilt of each patch as nuisance
parameters.

Differences between channels are estimated with fixed poses of an odometry. A range error common to all
channels is absorbed by these poses as a scale of the path; so it is estimated jointly with the poses, from
surfaces at normal versus grazing incidence: it displaces the latter by little. On open ground this estimate
depends on the mean elevation: an error of 0.6 mrad of all elevations has the effect of 7 mm in all ranges.
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

from ..odometry.lidar_sweep import MIN_INCIDENCE_SINE

RING = "ring"


@dataclass(frozen=True)
class ChannelSettings:
    """Limits of the estimation of channel errors."""

    # Prior standard deviations of an unknown lidar, as in data sheets
    range_sigma_m: float = 0.02
    elevation_sigma_rad: float = 0.0005

    # Patches of ground
    patch_size_m: float = 0.4
    min_points: int = 20
    max_thickness_m: float = 0.08  # standard deviation along the normal
    min_flatness: float = 2.0  # ratio of width to thickness
    min_noise_m: float = 0.01  # lower limit of the noise of a patch

    # Points of one scan share its pose error, so their errors are correlated.
    variance_factor: float = 100.0
    # Relative eigenvalue below which a direction is unobservable: all scans may move together.
    singular_ratio: float = 1e-10

    @property
    def sigmas(self) -> tuple[float, float]:
        """Prior standard deviations of a range and an elevation, m and rad."""
        return self.range_sigma_m, self.elevation_sigma_rad


DEFAULT_SETTINGS = ChannelSettings()


@dataclass(frozen=True, eq=False)
class ScanSample:
    """Some points of a scan in the map, with their derivatives by the errors of their channel."""

    points: Floats  # (n, 3)
    by_range: Floats  # (n, 3)
    by_elevation: Floats  # (n, 3)
    ring: Ints  # (n,), channels from 0


@dataclass(frozen=True, eq=False)
class ChannelErrors:
    """Errors that the channels of a lidar add to their measurements."""

    ranges: Floats  # (k,) m, by channel
    elevations: Floats  # (k,) rad
    covariance: Floats  # (2 k, 2 k): ranges, then elevations
    counts: Ints  # (k,), points that were used

    def correct(self, cloud: PointCloud) -> NDArray[np.float32]:
        """Return the points (n, 3) of a cloud with the field `ring` without these errors."""
        points = np.asarray(cloud.points, np.float64)
        by_range, by_elevation = error_jacobians(points)
        ring = rings_of(cloud)
        known = (ring >= 0) & (ring < len(self.ranges))
        index = np.where(known, ring, 0)
        error = self.ranges[index, None] * by_range + self.elevations[index, None] * by_elevation
        return np.where(known[:, None], points - error, points).astype(np.float32)

    def add(self, rest: ChannelErrors) -> ChannelErrors:
        """Return the sum with the errors that remained after these had been corrected."""
        size = max(len(self.ranges), len(rest.ranges))
        ranges, elevations = (
            np.pad(before, (0, size - len(before))) + np.pad(remaining, (0, size - len(remaining)))
            for before, remaining in ((self.ranges, rest.ranges), (self.elevations, rest.elevations))
        )
        newer = rest if len(rest.ranges) == size else self
        return ChannelErrors(ranges, elevations, newer.covariance, newer.counts)

    def rms(self) -> tuple[Floats, Floats]:
        """Return the RMS over points (2,) of range and elevation errors, and that of their sigmas."""
        weight = self.counts / max(self.counts.sum(), 1)
        variance = self.covariance.diagonal().reshape(2, -1)  # of ranges, of elevations
        squares = np.stack([self.ranges, self.elevations]) ** 2
        return np.sqrt(squares @ weight), np.sqrt(variance @ weight)


def rings_of(cloud: PointCloud) -> Ints:
    """Return the channels (n,) of a cloud's points; negative where they are NaN."""
    with np.errstate(invalid="ignore"):
        return np.asarray(cloud.fields[RING]).astype(np.int64)


def error_jacobians(points: Floats) -> tuple[Floats, Floats]:
    """Return the derivatives of points (n, 3) in the lidar frame by range and by elevation; both (n, 3)."""
    range_m = np.maximum(np.linalg.norm(points, axis=1), 1e-9)
    horizontal_m = np.maximum(np.hypot(points[:, 0], points[:, 1]), 1e-9)
    by_elevation = np.column_stack([-points[:, :2] * (points[:, 2] / horizontal_m)[:, None], horizontal_m])
    return points / range_m[:, None], by_elevation


def sample_scan(points: Floats, ring: Ints, poses: Floats) -> ScanSample:
    """Transform points (n, 3) by the poses ``T_map_lidar`` (n, 4, 4) at their times of measurement."""
    rotations, positions = poses[:, :3, :3], poses[:, :3, 3]
    moved = [np.einsum("nij,nj->ni", rotations, each) for each in (points, *error_jacobians(points))]
    return ScanSample(moved[0] + positions, moved[1], moved[2], ring)


def estimate_channel_errors(
    samples: Sequence[ScanSample], settings: ChannelSettings = DEFAULT_SETTINGS
) -> ChannelErrors | None:
    """Return the maximum a posteriori errors of the channels; None if there is no flat patch of ground."""
    points, by_range, by_elevation, ring = (
        np.concatenate([getattr(each, field.name) for each in samples]) for field in fields(ScanSample)
    )
    scan = np.repeat(np.arange(len(samples)), [len(each.ring) for each in samples])
    channels = int(ring.max(initial=-1)) + 1
    patches = _fit_patches(points, settings)
    # The cosine of the angle between beam and normal is the sine of that between beam and surface.
    grazing_sine = np.abs(np.einsum("ij,ij->i", by_range, patches.normals[patches.number]))
    used = patches.flat[patches.number] & (grazing_sine > MIN_INCIDENCE_SINE)
    if not used.any():
        return None
    patches, ring, scan = patches.take(used), ring[used], scan[used]
    range_effect, elevation_effect = (
        _sparse_by_group(patches.along_normal(each[used])[:, None], ring, channels)
        for each in (by_range, by_elevation)
    )
    counts = np.bincount(ring, minlength=channels)
    weight = counts / counts.sum()
    ranges, elevations, covariance = _estimate_differences(patches, range_effect, elevation_effect, settings)
    common = _estimate_common_range(
        patches, range_effect, _scan_motion_effects(points[used], scan, patches), weight, settings
    )
    return ChannelErrors(ranges - weight @ ranges + common, elevations, covariance, counts)


def _estimate_differences(
    patches: _SurfacePatches, range_effect: Any, elevation_effect: Any, settings: ChannelSettings
) -> tuple[Floats, Floats, Floats]:
    """Return ranges and elevations (k,) without their common part, and the covariance of both."""
    hessian, gradient = _normal_equations(settings, patches, range_effect, elevation_effect)
    channels = len(gradient) // 2  # a range and an elevation for each
    common = np.repeat(np.eye(2), channels, axis=0)
    hessian, gradient = _marginalise(hessian, gradient, common, settings)
    prior = np.repeat(np.power(settings.sigmas, -2.0), channels)
    covariance = np.asarray(np.linalg.inv(hessian / settings.variance_factor + np.diag(prior)), np.float64)
    mean = covariance @ gradient / settings.variance_factor
    ranges, elevations = mean.reshape(2, channels)
    return ranges, elevations, covariance


def _estimate_common_range(
    patches: _SurfacePatches, range_effect: Any, scan_effects: Any, weight: Floats, settings: ChannelSettings
) -> float:
    """Return the mean range error (m), weighted (k,), with the poses of the scans as nuisance parameters."""
    channels, factor = len(weight), settings.variance_factor
    hessian, gradient = _normal_equations(settings, patches, range_effect, scan_effects)
    hessian, gradient = _marginalise(hessian, gradient, np.eye(len(gradient))[:, channels:], settings)
    mean = np.full((channels, channels), 1 / channels)
    prior = (np.eye(channels) - mean + mean / channels) / settings.range_sigma_m**2
    ranges = np.linalg.solve(hessian[:channels, :channels] / factor + prior, gradient[:channels] / factor)
    return float(weight @ ranges)


def _marginalise(
    hessian: Floats, gradient: Floats, free: Floats, settings: ChannelSettings
) -> tuple[Floats, Floats]:
    """Eliminate directions (n, m) from a Hessian (n, n) and a gradient (n,)."""
    coupling = hessian @ free
    weight = np.linalg.pinv(free.T @ coupling, rcond=settings.singular_ratio, hermitian=True)
    return hessian - coupling @ weight @ coupling.T, gradient - coupling @ weight @ (free.T @ gradient)


@dataclass(frozen=True, eq=False)
class _SurfacePatches:
    """Small patches of ground with a plane fitted to each."""

    number: Ints  # (n,), the patch of each point
    offset: Floats  # (n, 3), of each point from the centroid of its patch
    axes: Floats  # (m, 3, 3), columns: the normal, and two directions in the plane
    flat: Mask  # (m,), whether the plane is used

    @property
    def normals(self) -> Floats:
        return self.axes[:, :, 0]

    def take(self, used: Mask) -> _SurfacePatches:
        """Return the patches with a subset of their points (n,)."""
        remaining, number = np.unique(self.number[used], return_inverse=True)
        return _SurfacePatches(number, self.offset[used], self.axes[remaining], self.flat[remaining])

    def along_normal(self, vectors: Floats) -> Floats:
        """Return the components (n,) of vectors (n, 3) of the points along the normals of their patches."""
        return np.einsum("ij,ij->i", vectors, self.normals[self.number])


def _fit_patches(points: Floats, settings: ChannelSettings) -> _SurfacePatches:
    """Divide points (n, 3) into patches, and fit a plane to each."""
    _, number, count = np.unique(
        voxel_numbers(points, settings.patch_size_m), return_inverse=True, return_counts=True
    )
    offset = points - _sum_by_group(number, points)[number] / count[number, None]
    rows, columns = np.triu_indices(3)
    upper_triangle = _sum_by_group(number, offset[:, rows] * offset[:, columns]) / count[:, None]
    covariances = np.empty((len(count), 3, 3))
    covariances[:, rows, columns] = covariances[:, columns, rows] = upper_triangle
    variances, axes = np.linalg.eigh(covariances)
    thin = variances[:, 0] < settings.max_thickness_m**2
    flat = thin & (variances[:, 1] > settings.min_flatness**2 * variances[:, 0])
    return _SurfacePatches(number, offset, axes, (count >= settings.min_points) & flat)


def _sparse_by_group(effect: Floats, number: Ints, count: int) -> Any:
    """Return the sparse matrix (n, count m) of effects (n, m) on points, by the group of each point."""
    from scipy import sparse

    rows, size = np.indices(effect.shape)[0], effect.shape[1]
    columns = number[:, None] * size + np.arange(size)
    return sparse.csr_array((effect.ravel(), (rows.ravel(), columns.ravel())), (len(effect), count * size))


def _scan_motion_effects(points: Floats, scan: Ints, patches: _SurfacePatches) -> Any:
    """Return the derivatives (n, 6 scans) of distances from planes by shifts and rotations of the scans."""
    normals = patches.normals[patches.number]
    middle = _sum_by_group(scan, points) / np.maximum(np.bincount(scan), 1)[:, None]
    rotation_effects = np.cross(points - middle[scan], normals)
    return _sparse_by_group(np.column_stack([normals, rotation_effects]), scan, len(middle))


def _normal_equations(
    settings: ChannelSettings, patches: _SurfacePatches, *effects: Any
) -> tuple[Floats, Floats]:
    """Return Hessian (k, k) and gradient (k,) of half the sum of squared distances from the planes.

    Parameters
    ----------
    effects : (n, some of k), sparse
        Derivatives of the distances of points from their planes by the unknowns.
    """
    from scipy import sparse

    number = patches.number
    coordinates = np.einsum("ij,ijk->ik", patches.offset, patches.axes[number])
    distance, basis = coordinates[:, 0], np.column_stack([np.ones(len(coordinates)), coordinates[:, 1:]])
    # Height and tilt of each patch are eliminated, in axes in which they are independent.
    gram = _sum_by_group(number, (basis[:, :, None] * basis[:, None, :]).reshape(-1, 9)).reshape(-1, 3, 3)
    whiten = np.linalg.inv(np.linalg.cholesky(gram + 1e-9 * np.eye(3)))
    basis = np.einsum("nij,nj->ni", whiten[number], basis)
    distance = distance - np.einsum(
        "ij,ij->i", basis, _sum_by_group(number, basis * distance[:, None])[number]
    )
    freedom = np.maximum(np.bincount(number) - 3, 1)
    weight = 1 / np.maximum(
        _sum_by_group(number, distance[:, None] ** 2)[:, 0] / freedom, settings.min_noise_m**2
    )
    point_weight, root_weight = weight[number], np.sqrt(weight)
    jacobian = sparse.hstack(effects, format="csr")
    hessian: Any = jacobian.T @ (jacobian * point_weight[:, None])
    for row in basis.T:
        patch_sums = (
            sparse.csr_array((row, (number, np.arange(len(row)))), (len(weight), len(row))) @ jacobian
        )
        patch_sums = patch_sums * root_weight[:, None]
        hessian = hessian - patch_sums.T @ patch_sums
    return np.asarray(hessian.todense(), np.float64), np.asarray(
        jacobian.T @ (point_weight * distance), np.float64
    )


def _sum_by_group(number: Ints, values: Floats) -> Floats:
    """Return sums (m, k) of values (n, k) by group number (n,)."""
    return np.stack([np.bincount(number, column).astype(np.float64) for column in values.T], axis=1)
