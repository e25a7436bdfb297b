"""Points seen by several calibrated cameras: rays, triangulation, and what the pixels' noise does to both.

A point on the plane z = 1 of a camera, without its lens, is called a place: ``(x / z, y / z)``.
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

ROUNDS = 5
"""Of Gauss and Newton after the linear solution; the third already changes nothing visible."""
SINGULAR = 1e-12
"""Ratio of eigenvalues below which rays are taken for parallel."""


def require_camera(camera: CameraModel | None, what: str) -> CameraModel:
    """Return a camera, or say that its calibration is missing; `what` it took stands in the error."""
    if camera is not None:
        return camera
    raise TransectError(
        f"{what} came without a calibration",
        why="the recording has no camera model for the stream of images",
        hint="put its file beside the images: calib.txt (KITTI), sensor.yaml (EuRoC), camera_info.yaml (ROS)",
    )


def places_of(pixels: ArrayLike, camera: CameraModel) -> Floats:
    """Return the places (n, 2) of pixels (n, 2); NaN where no ray of the lens leads to one."""
    model: Literal["pinhole", "fisheye"] = "fisheye" if camera.distortion == "equidistant" else "pinhole"
    lens = camera.coefficients if camera.distortion != "none" else ()
    rays = lenses.unproject(np.asarray(pixels, np.float64), camera.K, lens, model)
    return rays[:, :2] / np.where(rays[:, 2:] > 0, rays[:, 2:], np.nan)


def straighten(pixels: ArrayLike, camera: CameraModel | None) -> Floats:
    """Return the pixels (n, 2) where a camera without lens distortion would have seen the same."""
    flat = np.asarray(pixels, np.float64)
    if camera is None or camera.distortion == "none":
        return flat
    return places_of(flat, camera) @ camera.K[:2, :2].T + camera.K[:2, 2]


def focal_length(camera: CameraModel) -> float:
    """Return the mean focal length in pixels."""
    return float(np.sqrt(camera.K[0, 0] * camera.K[1, 1]))


def homogeneous(places: ArrayLike) -> Floats:
    """Return (n, 2) as (n, 3), with a 1."""
    flat = np.asarray(places, np.float64)
    return np.concatenate([flat, np.ones((*flat.shape[:-1], 1))], axis=-1)


def place_slopes(points: Floats) -> Floats:
    """Return the derivative (..., 2, 3) of the place of a point (..., 3) by the point."""
    x, y, z = np.moveaxis(points, -1, 0)
    slopes = np.zeros((*points.shape[:-1], 2, 3))
    slopes[..., 0, 0] = slopes[..., 1, 1] = 1 / z
    slopes[..., 0, 2], slopes[..., 1, 2] = -x / z**2, -y / z**2
    return slopes


# Triangulation


@dataclass(frozen=True)
class Triangulated:
    """Points, and how well the rays determine them.

    Attributes
    ----------
    points : (n, 3)
        Metres, in the world's frame; NaN where the rays are parallel or too few.
    covariances : (n, 3, 3)
        Square metres.
    parallax : (n,)
        Largest angle in rad between two of a point's rays.
    error : (n,)
        Root mean square distance between rays and point, in deviations of a pixel.
    in_front : (n,) bool
        Of every camera that saw it.
    """

    points: Floats
    covariances: Floats
    parallax: Floats
    error: Floats
    in_front: Mask


def triangulate(T_camera_world: ArrayLike, places: ArrayLike, sigma: ArrayLike) -> Triangulated:
    """Return the most likely points for what cameras saw.

    Parameters
    ----------
    T_camera_world : (m, 4, 4)
        Where the cameras were, at least two.
    places : (n, m, 2)
        On the plane z = 1 of each; NaN where a camera did not see a point.
    sigma : (m,)
        Standard deviation of a place: pixels divided by focal length.
    """
    views, seen = np.asarray(T_camera_world, np.float64), np.asarray(places, np.float64)
    weight = np.where(np.isnan(seen).any(axis=2), 0.0, 1 / np.asarray(sigma, np.float64))
    seen = np.nan_to_num(seen)
    points = _linear(views, seen, weight)
    for _ in range(ROUNDS):
        slopes, left, _ = _linearise(views, points, seen, weight)
        information, gain = _normal(slopes, left)
        points = points + _solve(information, gain)
    slopes, left, depth = _linearise(views, points, seen, weight)
    covariances = _inverse(_normal(slopes, left)[0])
    points = np.where(_measure(covariances)[:, None], points, np.nan)
    error = np.sqrt(np.sum(left**2, axis=1) / np.maximum(2 * np.count_nonzero(weight, axis=1), 1))
    in_front = np.asarray(((depth > 0) | (weight == 0)).all(axis=1)) & _measure(points)
    return Triangulated(points, covariances, _parallax(views, seen, weight), error, in_front)


def _linear(views: Floats, seen: Floats, weight: Floats) -> Floats:
    """Return the points (n, 3) that solve ``x p3 - p1 = 0, y p3 - p2 = 0`` of all rays best."""
    rows = seen[..., None] * views[:, 2][:, None] - views[:, :2]
    rows = (rows * (weight > 0)[..., None, None]).reshape(len(seen), -1, 4)
    return _solve(*_normal(rows[..., :3], -rows[..., 3]))


def _linearise(views: Floats, points: Floats, seen: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return slopes (n, 2 m, 3) and residuals (n, 2 m) in deviations, and depths (n, m)."""
    there = se3.apply(views[None], points[:, None])
    depth = there[..., 2]
    there = np.concatenate([there[..., :2], np.where(np.abs(depth) > 0, depth, 1e-12)[..., None]], axis=-1)
    slopes = place_slopes(there) @ views[:, :3, :3] * weight[..., None, None]
    left = (seen - there[..., :2] / there[..., 2:]) * weight[..., None]
    return slopes.reshape(len(points), -1, 3), left.reshape(len(points), -1), depth


def _normal(slopes: Floats, left: Floats) -> tuple[Floats, Floats]:
    return np.einsum("nki,nkj->nij", slopes, slopes), np.einsum("nki,nk->ni", slopes, left)


def _solve(information: Floats, gain: Floats) -> Floats:
    """Solve (n, 3, 3) for (n, 3); where it is singular some solution is taken, the covariance tells later."""
    ridge = SINGULAR * np.trace(information, axis1=1, axis2=2) + np.finfo(np.float64).tiny
    return np.linalg.solve(information + ridge[:, None, None] * np.eye(3), gain[..., None])[..., 0]


def _inverse(information: Floats) -> Floats:
    """Return the inverses of (n, k, k); NaN where it is singular."""
    known = np.where(_measure(information)[:, None, None], information, 0.0)
    values, axes = np.linalg.eigh(known)
    good = values[:, :1] > SINGULAR * values[:, -1:]
    return (axes / np.where(good, values, np.nan)[:, None]) @ np.swapaxes(axes, 1, 2)


def _measure(arrays: Floats) -> Mask:
    """Return which of (n, ...) have no NaN."""
    return np.asarray(np.isfinite(arrays).reshape(len(arrays), -1).all(axis=1))


def _parallax(views: Floats, seen: Floats, weight: Floats) -> Floats:
    rays = np.einsum("nmi,mij->nmj", homogeneous(seen), views[:, :3, :3])  # R' ray: in the world
    rays = rays / np.linalg.norm(rays, axis=-1, keepdims=True)
    widest = np.zeros(len(seen))
    for one in range(len(views)):
        for other in range(one):
            both = (weight[:, one] > 0) & (weight[:, other] > 0)
            across = np.linalg.norm(np.cross(rays[:, one], rays[:, other]), axis=1)
            angle = np.arctan2(across, np.sum(rays[:, one] * rays[:, other], axis=1))
            widest = np.where(both, np.maximum(widest, angle), widest)
    return widest


# Poses


def pose_covariance(T_world_camera: ArrayLike, points: ArrayLike, sigma: float) -> Floats | None:
    """Return the covariance (6, 6) of a camera's pose found from known points that it saw.

    Parameters
    ----------
    T_world_camera : (4, 4)
    points : (n, 3)
        Metres, in the world.
    sigma : float
        Standard deviation of a place: pixels divided by focal length.

    Returns
    -------
    Translation (m), then rotation vector (rad), both in the world; None if the points do not determine it.
    """
    T, known = np.asarray(T_world_camera, np.float64), np.asarray(points, np.float64)
    away = known - T[:3, 3]
    to_place = place_slopes(away @ T[:3, :3]) @ T[:3, :3].T
    # A point at R' (X - p): p moves it by -R', a turn exp(phi) R of the camera by R' [X - p]x.
    slopes = np.concatenate([-to_place, to_place @ rotations.skew(away)], axis=2).reshape(-1, 6) / sigma
    scale = np.repeat([float(np.median(np.linalg.norm(away, axis=1))), 1.0], 3)  # metres beside radians
    slopes = slopes * scale
    inverse = _inverse((slopes.T @ slopes)[None])[0] * np.outer(scale, scale)
    return inverse if np.isfinite(inverse).all() else None
