"""Two-view and multi-view geometry of one moving camera: initial motion, and depth of tracked points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.geometry import se3

from ..vision.triangulation import homogeneous, triangulate


@dataclass(frozen=True)
class MonoGeometrySettings:
    """Settings of the initial motion and of triangulation."""

    noise_px: float = 0.7  # sigma of an observation
    # Smallest angle between rays; at a focal length of 400 px, an error of 1 px is a tenth of it.
    min_parallax_rad: float = float(np.radians(1.5))
    max_residual_sigmas: float = 2.0  # largest RMS reprojection error of a point
    ransac_confidence: float = 0.999  # of the essential matrix
    epipolar_gate_px: float = 1.0


MONO_GEOMETRY = MonoGeometrySettings()


def project(points: Floats, K: Floats) -> Floats:
    """Return pixels (n, 2) of points (n, 3) in the camera; NaN behind it."""
    depth = np.where(points[:, 2:] > 0, points[:, 2:], np.nan)
    return points[:, :2] / depth * np.diag(K)[:2] + K[:2, 2]


def median_parallax(previous: Floats, current: Floats, R_previous_current: Floats, K: Floats) -> float:
    """Return the median motion of points (n, 2) in px that is not caused by the rotation of the camera."""
    rotated = project(homogeneous((previous - K[:2, 2]) / np.diag(K)[:2]) @ R_previous_current, K)
    return float(np.nanmedian(np.linalg.norm(current - rotated, axis=1)))


class TrackTriangulation(NamedTuple):
    """Points (n, 3) in the world, m, and the root of the trace of their covariances (n,), m."""

    points: Floats
    sigma: Floats


def triangulate_tracks(
    poses: Floats, pixels: Floats, K: Floats, settings: MonoGeometrySettings = MONO_GEOMETRY
) -> TrackTriangulation:
    """Triangulate points from several views; NaN without enough parallax, or with too large residuals.

    Parameters
    ----------
    poses : (k, 4, 4)
        ``T_world_camera`` of at least two views.
    pixels : (k, n, 2)
        NaN if a view did not observe a point.
    """
    focal = np.diag(K)[:2]
    normalised = np.swapaxes((pixels - K[:2, 2]) / focal, 0, 1)
    sigma = np.full(len(poses), settings.noise_px / focal.mean())
    found = triangulate(se3.invert(poses), normalised, sigma)
    valid = (
        found.in_front
        & (found.parallax > settings.min_parallax_rad)
        & (found.error < settings.max_residual_sigmas)
    )
    point_sigma = np.sqrt(np.trace(found.covariances, axis1=1, axis2=2))
    return TrackTriangulation(
        np.where(valid[:, None], found.points, np.nan), np.where(valid, point_sigma, np.nan)
    )


class TwoViewMotion(NamedTuple):
    """Motion between two views, up to scale."""

    rotation: Floats  # R_previous_current (3, 3)
    direction: Floats  # (3,) of the translation, in the previous camera
    inliers: Mask  # (n,)


def estimate_two_view_motion(
    previous: Floats, current: Floats, K: Floats, settings: MonoGeometrySettings = MONO_GEOMETRY
) -> TwoViewMotion | None:
    """Return the motion between two views of points (n, 2) by the essential matrix; None if it fails."""
    import cv2

    if len(previous) < 8:
        return None
    cv2.setRNGSeed(0)
    found: Any = cv2.findEssentialMat(
        previous, current, K, cv2.RANSAC, settings.ransac_confidence, settings.epipolar_gate_px
    )
    essential, inliers = found
    if essential is None or essential.shape != (3, 3):
        return None
    _, R_current_previous, translation, inliers = cv2.recoverPose(
        essential, previous, current, K, mask=inliers
    )
    R = np.asarray(R_current_previous, np.float64).T
    return TwoViewMotion(R, -R @ translation.ravel(), np.asarray(inliers).ravel() > 0)
