"""Pose of a stereo pair among known points: RANSAC, then robust least squares on all pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.geometry import robust, rotations, se3

from .stereo_rig import StereoRig


@dataclass(frozen=True)
class ResectionSettings:
    """Settings of the estimation of a camera pose from known points."""

    # RANSAC (AP3P): with half of the matches wrong, a sample of inliers only is found with 99.8 %.
    ransac_samples: int = 100
    ransac_confidence: float = 0.999
    inlier_gate_px: float = 2.0

    # Refinement by Gauss-Newton with Cauchy weights
    max_iterations: int = 10
    min_step: float = 3e-5  # norm of a step in m and rad; a smaller one ends the iteration
    cauchy_scale: float = 2.3849  # in sigmas; 95 % efficient for Gaussian noise
    min_noise_px: float = 0.3  # smallest sigma of a tracked point
    max_residual_sigmas: float = 4.0  # of an inlier


RESECTION = ResectionSettings()


@dataclass(frozen=True, eq=False)
class CameraResection:
    """Pose of a camera among known points."""

    T_camera_world: Floats  # (4, 4)
    covariance: Floats  # (6, 6) of a left perturbation exp(xi) T: m, then rad, in the axes of the camera
    inliers: Mask  # (n,)


def locate_camera(
    points: Floats, pixels: Floats, rig: StereoRig, guess: Floats, settings: ResectionSettings = RESECTION
) -> CameraResection | None:
    """Return the pose of a pair that observes points (n, 3) at pixels (n, 3); None without consensus.

    Parameters
    ----------
    points : (n, 3)
        In the world, m.
    pixels : (n, 3)
        Left column, left row, right column; the right column may be NaN.
    guess : (4, 4)
        Predicted ``T_camera_world``, used if it has more inliers than the pose by RANSAC.
    """
    sampled = _ransac_pose(points, pixels, rig, settings)
    if sampled is None:
        return None
    gate_px = settings.inlier_gate_px
    start = max(
        (sampled, guess), key=lambda pose: np.count_nonzero(_within(points, pixels, rig, pose, gate_px))
    )
    return refine_pose(points, pixels, rig, start, settings=settings)


def refine_pose(
    points: Floats,
    pixels: Floats,
    rig: StereoRig,
    start: Floats,
    gate_px: float | None = None,
    settings: ResectionSettings = RESECTION,
) -> CameraResection | None:
    """Refine a pose (4, 4) with the points whose residual there is within a gate; None if degenerate."""
    gate_px = settings.inlier_gate_px if gate_px is None else gate_px
    used = _within(points, pixels, rig, start, gate_px)
    return None if np.count_nonzero(used) < 4 else _gauss_newton(points, pixels, rig, start, used, settings)


def _ransac_pose(
    points: Floats, pixels: Floats, rig: StereoRig, settings: ResectionSettings
) -> Floats | None:
    import cv2

    if len(points) < 4:
        return None
    cv2.setRNGSeed(0)
    found, rotation, translation, _ = cv2.solvePnPRansac(
        np.ascontiguousarray(points), np.ascontiguousarray(pixels[:, :2]), rig.K, None,
        flags=cv2.SOLVEPNP_AP3P, reprojectionError=settings.inlier_gate_px,
        iterationsCount=settings.ransac_samples, confidence=settings.ransac_confidence,
    )  # fmt: skip
    if not found:
        return None
    return se3.from_matrix(rotations.matrix_from_rotation_vector(rotation.ravel()), translation.ravel())


def _within(points: Floats, pixels: Floats, rig: StereoRig, pose: Floats, gate_px: float) -> Mask:
    return _squared_norms(_residuals(points, pixels, rig, pose)) < 2 * gate_px**2


def _residuals(points: Floats, pixels: Floats, rig: StereoRig, pose: Floats) -> Floats:
    """Return reprojection residuals (n, 3) in px; 0 if the right column was not measured."""
    residual = rig.pixels(se3.apply(pose, points)) - pixels
    residual[np.isnan(pixels[:, 2]), 2] = 0.0
    return residual


def _squared_norms(residual: Floats) -> Floats:
    """Return squared norms (n,) of residuals (n, 3); infinite for points behind the camera."""
    squares = np.einsum("nk,nk->n", residual, residual)
    return np.where(np.isnan(squares), np.inf, squares)


def _gauss_newton(
    points: Floats, pixels: Floats, rig: StereoRig, start: Floats, used: Mask, settings: ResectionSettings
) -> CameraResection | None:
    """Minimise all three pixel residuals with Cauchy weights, scaled by the spread of the residuals."""
    p, z = points[used], pixels[used]
    unmatched = np.isnan(z[:, 2])
    sigma = max(float(robust.nmad(_residuals(p, z, rig, start))), settings.min_noise_px)
    pose, hessian = start, np.zeros((6, 6))
    for _ in range(settings.max_iterations):
        moved = p @ pose[:3, :3].T + pose[:3, 3]
        residual = rig.pixels(moved) - z
        residual[unmatched, 2] = 0.0
        weight = 1.0 / (1.0 + _squared_norms(residual) / (settings.cauchy_scale * sigma) ** 2)
        jacobian = pixel_jacobian(moved, unmatched, rig)
        weighted = (weight[:, None, None] * jacobian).reshape(-1, 6)
        hessian = weighted.T @ jacobian.reshape(-1, 6)
        residual[np.isnan(residual)] = 0.0
        step = -np.linalg.lstsq(hessian, weighted.T @ residual.ravel())[0].astype(np.float64)
        pose = perturb_pose(pose, step)
        if np.linalg.norm(step) < settings.min_step:
            break
    if not np.isfinite(pose).all() or np.linalg.matrix_rank(hessian) < 6:
        return None
    gate = (settings.max_residual_sigmas * sigma) ** 2
    inliers = _squared_norms(_residuals(points, pixels, rig, pose)) < gate
    return CameraResection(pose, np.asarray(sigma**2 * np.linalg.inv(hessian), np.float64), inliers)


def perturb_pose(pose: Floats, step: Floats) -> Floats:
    """Return a pose after a small motion (6,) in the axes of the camera: rotation, then translation."""
    import cv2

    motion = np.eye(4)
    motion[:3, :3], motion[:3, 3] = cv2.Rodrigues(step[3:])[0], step[:3]
    return motion @ pose


def pixel_jacobian(points: Floats, unmatched: Mask, rig: StereoRig) -> Floats:
    """Return derivatives (n, 3, 6) of pixels by a motion ``exp(xi)`` of points (n, 3) in the camera."""
    x, y, z = points.T
    u, v, inverse_depth = x / z, y / z, 1.0 / z
    jacobian = np.zeros((len(points), 3, 6))
    jacobian[:, 0, 0] = inverse_depth
    jacobian[:, 0, 2], jacobian[:, 0, 3] = -u * inverse_depth, -u * v
    jacobian[:, 0, 4], jacobian[:, 0, 5] = 1 + u * u, -v
    jacobian[:, 2] = jacobian[:, 0]
    # The right column is the left one minus the disparity, which depends on the depth only.
    jacobian[:, 2, 2] += rig.baseline * inverse_depth**2
    jacobian[:, 2, 3] += rig.baseline * inverse_depth * v
    jacobian[:, 2, 4] -= rig.baseline * inverse_depth * u
    jacobian[:, 1, 1] = inverse_depth
    jacobian[:, 1, 2], jacobian[:, 1, 3] = -v * inverse_depth, -(1 + v * v)
    jacobian[:, 1, 4], jacobian[:, 1, 5] = u * v, u
    jacobian *= np.array([rig.fx, rig.fy, rig.fx])[:, None]
    jacobian[unmatched, 2] = 0.0
    return jacobian
