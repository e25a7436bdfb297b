"""Triangulation of points from several calibrated cameras, and the covariances of points and poses.

Normalised coordinates are ``(x / z, y / z)`` of a point in a camera, without lens distortion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.errors import TransectError
from transect.geometry import camera as lenses
from transect.geometry import rotations, se3
from transect.types import CameraModel

MIN_EIGENVALUE_RATIO = 1e-12
"""Rays with a smaller ratio of eigenvalues are treated as parallel."""


def require_camera(camera: CameraModel | None, what: str) -> CameraModel:
    """Return a camera, or raise if its calibration is missing; `what` names the image in the error."""
    if camera is not None:
        return camera
    raise TransectError(
        f"{what} came without a calibration",
        why="the recording has no camera model for the stream of images",
        hint="put its file beside the images: calib.txt (KITTI), sensor.yaml (EuRoC), camera_info.yaml (ROS)",
    )


def normalise_pixels(pixels: ArrayLike, camera: CameraModel) -> Floats:
    """Return the normalised coordinates (n, 2) of pixels (n, 2); NaN outside the lens model."""
    model: Literal["pinhole", "fisheye"] = "fisheye" if camera.distortion == "equidistant" else "pinhole"
    lens = camera.coefficients if camera.distortion != "none" else ()
    rays = lenses.unproject(np.asarray(pixels, np.float64), camera.K, lens, model)
    return rays[:, :2] / np.where(rays[:, 2:] > 0, rays[:, 2:], np.nan)


def undistort_points(pixels: ArrayLike, camera: CameraModel | None) -> Floats:
    """Return the pixels (n, 2) without lens distortion."""
    flat = np.asarray(pixels, np.float64)
    if camera is None or camera.distortion == "none":
        return flat
    return normalise_pixels(flat, camera) @ camera.K[:2, :2].T + camera.K[:2, 2]


def focal_length(camera: CameraModel) -> float:
    """Return the mean focal length in pixels."""
    return float(np.sqrt(camera.K[0, 0] * camera.K[1, 1]))


def homogeneous(normalised: ArrayLike) -> Floats:
    """Append a 1 to points (n, 2)."""
    flat = np.asarray(normalised, np.float64)
    return np.concatenate([flat, np.ones((*flat.shape[:-1], 1))], axis=-1)


def projection_jacobian(points: Floats) -> Floats:
    """Return the derivative (..., 2, 3) of normalised coordinates by the point (..., 3)."""
    x, y, z = np.moveaxis(points, -1, 0)
    jacobian = np.zeros((*points.shape[:-1], 2, 3))
    jacobian[..., 0, 0] = jacobian[..., 1, 1] = 1 / z
    jacobian[..., 0, 2], jacobian[..., 1, 2] = -x / z**2, -y / z**2
    return jacobian


# Triangulation


@dataclass(frozen=True)
class TriangulatedPoints:
    """Points with the uncertainty that follows from their rays."""

    points: Floats  # (n, 3) m, in the world; NaN where rays are parallel or too few
    covariances: Floats  # (n, 3, 3) m^2
    parallax: Floats  # (n,) rad, largest angle between two rays
    error: Floats  # (n,), RMS distance between rays and point in standard deviations of a pixel
    in_front: Mask  # (n,), whether it is in front of every camera that observed it


def triangulate(T_camera_world: ArrayLike, normalised: ArrayLike, sigma: ArrayLike) -> TriangulatedPoints:
    """Return the maximum likelihood points of observations.

    Parameters
    ----------
    T_camera_world : (m, 4, 4)
        Poses of at least two cameras.
    normalised : (n, m, 2)
        Normalised coordinates; NaN where a camera did not observe a point.
    sigma : (m,)
        Their standard deviation: pixels divided by the focal length.
    """
    views, observed = np.asarray(T_camera_world, np.float64), np.asarray(normalised, np.float64)
    weight = np.where(np.isnan(observed).any(axis=2), 0.0, 1 / np.asarray(sigma, np.float64))
    observed = np.nan_to_num(observed)
    points = _solve_linear(views, observed, weight)
    for _ in range(5):  # Gauss-Newton steps from the linear solution; three are usually enough
        jacobian, residual, _ = _linearise(views, points, observed, weight)
        information, gradient = _normal_equations(jacobian, residual)
        points = points + _solve(information, gradient)
    jacobian, residual, depth = _linearise(views, points, observed, weight)
    covariances = _inverse(_normal_equations(jacobian, residual)[0])
    points = np.where(_is_finite(covariances)[:, None], points, np.nan)
    error = np.sqrt(np.sum(residual**2, axis=1) / np.maximum(2 * np.count_nonzero(weight, axis=1), 1))
    in_front = np.asarray(((depth > 0) | (weight == 0)).all(axis=1)) & _is_finite(points)
    return TriangulatedPoints(points, covariances, _parallax(views, observed, weight), error, in_front)


def _solve_linear(views: Floats, observed: Floats, weight: Floats) -> Floats:
    """Return the least-squares solution (n, 3) of ``x p3 - p1 = 0, y p3 - p2 = 0`` for all rays."""
    rows = observed[..., None] * views[:, 2][:, None] - views[:, :2]
    rows = (rows * (weight > 0)[..., None, None]).reshape(len(observed), -1, 4)
    return _solve(*_normal_equations(rows[..., :3], -rows[..., 3]))


def _linearise(
    views: Floats, points: Floats, observed: Floats, weight: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return Jacobian (n, 2 m, 3) and residuals (n, 2 m) in standard deviations, and depths (n, m)."""
    in_camera = se3.apply(views[None], points[:, None])
    depth = in_camera[..., 2]
    in_camera = np.concatenate(
        [in_camera[..., :2], np.where(np.abs(depth) > 0, depth, 1e-12)[..., None]], axis=-1
    )
    jacobian = projection_jacobian(in_camera) @ views[:, :3, :3] * weight[..., None, None]
    residual = (observed - in_camera[..., :2] / in_camera[..., 2:]) * weight[..., None]
    return jacobian.reshape(len(points), -1, 3), residual.reshape(len(points), -1), depth


def _normal_equations(jacobian: Floats, residual: Floats) -> tuple[Floats, Floats]:
    return np.einsum("nki,nkj->nij", jacobian, jacobian), np.einsum("nki,nk->ni", jacobian, residual)


def _solve(information: Floats, gradient: Floats) -> Floats:
    """Solve (n, 3, 3) for (n, 3); a ridge makes singular systems solvable, their covariance is NaN."""
    ridge = MIN_EIGENVALUE_RATIO * np.trace(information, axis1=1, axis2=2) + np.finfo(np.float64).tiny
    return np.linalg.solve(information + ridge[:, None, None] * np.eye(3), gradient[..., None])[..., 0]


def _inverse(information: Floats) -> Floats:
    """Return the inverses of (n, k, k); NaN where singular."""
    known = np.where(_is_finite(information)[:, None, None], information, 0.0)
    values, axes = np.linalg.eigh(known)
    good = values[:, :1] > MIN_EIGENVALUE_RATIO * values[:, -1:]
    return (axes / np.where(good, values, np.nan)[:, None]) @ np.swapaxes(axes, 1, 2)


def _is_finite(arrays: Floats) -> Mask:
    """Return which of the arrays (n, ...) are finite."""
    return np.asarray(np.isfinite(arrays).reshape(len(arrays), -1).all(axis=1))


def _parallax(views: Floats, observed: Floats, weight: Floats) -> Floats:
    rays = np.einsum("nmi,mij->nmj", homogeneous(observed), views[:, :3, :3])  # R' ray: in the world
    rays = rays / np.linalg.norm(rays, axis=-1, keepdims=True)
    widest = np.zeros(len(observed))
    for one in range(len(views)):
        for other in range(one):
            both = (weight[:, one] > 0) & (weight[:, other] > 0)
            sine = np.linalg.norm(np.cross(rays[:, one], rays[:, other]), axis=1)
            angle = np.arctan2(sine, np.sum(rays[:, one] * rays[:, other], axis=1))
            widest = np.where(both, np.maximum(widest, angle), widest)
    return widest


# Poses


def pose_covariance(T_world_camera: ArrayLike, points: ArrayLike, sigma: float) -> Floats | None:
    """Return the covariance (6, 6) of a camera's pose that was estimated from known points.

    Parameters
    ----------
    T_world_camera : (4, 4)
    points : (n, 3)
        Metres, in the world.
    sigma : float
        Standard deviation of a normalised coordinate: pixels divided by the focal length.

    Returns
    -------
    Translation (m), then rotation vector (rad), both in the world; None if the points do not determine it.
    """
    T, known = np.asarray(T_world_camera, np.float64), np.asarray(points, np.float64)
    offsets = known - T[:3, 3]
    by_point = projection_jacobian(offsets @ T[:3, :3]) @ T[:3, :3].T
    # Derivatives of the point R' (X - p): -R' by p, R' [X - p]x by a rotation exp(phi) R of the camera.
    jacobian = np.concatenate([-by_point, by_point @ rotations.skew(offsets)], axis=2).reshape(-1, 6) / sigma
    scale = np.repeat(
        [float(np.median(np.linalg.norm(offsets, axis=1))), 1.0], 3
    )  # metres and radians of similar size
    jacobian = jacobian * scale
    inverse = _inverse((jacobian.T @ jacobian)[None])[0] * np.outer(scale, scale)
    return inverse if np.isfinite(inverse).all() else None
