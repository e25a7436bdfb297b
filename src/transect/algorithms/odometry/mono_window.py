"""Bundle adjustment of one camera's last keyframes, with reference motions as factors (GTSAM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import se3

from .._gtsam import adjust_graph
from .._gtsam import gtsam as library
from .mono_geometry import MONO_GEOMETRY


@dataclass(frozen=True)
class MonoAdjustmentSettings:
    """Settings of the bundle adjustment."""

    iterations: int = 4
    noise_px: float = MONO_GEOMETRY.noise_px
    huber_sigmas: float = 2.0
    # Sigma of the length of a reference motion. It is loose, since wheel slip is correlated over metres:
    # the older keyframes determine the scale, and `scale_about_last` corrects it slowly.
    length_ratio: float = 1.0
    length_floor_m: float = 0.003
    # Sigma of the rotation of a reference motion; wheels in the plane do not measure roll and pitch.
    tilt_sigma_rad: float = 0.1
    heading_sigma_rad: float = 0.02


MONO_ADJUSTMENT = MonoAdjustmentSettings()


@dataclass(frozen=True, eq=False)
class MonoKeyframe:
    """An image whose pose is adjusted."""

    T_world_body: Floats  # (4, 4)
    T_body_camera: Floats  # (4, 4)
    T_reference_body: Floats  # (4, 4) by the reference odometry
    ids: Ints  # (n,) of the observed points
    pixels: Floats  # (n, 2)

    @property
    def T_world_camera(self) -> Floats:
        """(4, 4)."""
        return self.T_world_body @ self.T_body_camera


def adjust_views(
    views: Sequence[MonoKeyframe],
    ids: Ints,
    points: Floats,
    K: Floats,
    settings: MonoAdjustmentSettings = MONO_ADJUSTMENT,
) -> tuple[list[Floats], Floats]:
    """Adjust poses and points to the pixels and the reference motions; the older half of the poses is fixed.

    If only the oldest pose were fixed, the scale would depend on the reference alone, and slip in the last
    metre would scale the whole window.

    Parameters
    ----------
    ids, points : (n,), (n, 3)
        Points in the world, m; those with NaN or a single observation are not changed.

    Returns
    -------
    poses : list of (4, 4)
        ``T_world_body`` of the views.
    points : (n, 3)
    """
    count = np.array([np.isin(ids, view.ids) for view in views]).sum(axis=0)
    used = np.flatnonzero((count >= 2) & np.isfinite(points).all(axis=1)).tolist()
    graph = library().NonlinearFactorGraph()
    _add_projections(graph, views, {int(ids[row]): row for row in used}, K, settings)
    _add_reference_motions(graph, views, settings)
    return adjust_graph(graph, [view.T_world_body for view in views], points, used, settings.iterations)


def _add_projections(
    graph: Any,
    views: Sequence[MonoKeyframe],
    row_of: Mapping[int, int],
    K: Floats,
    settings: MonoAdjustmentSettings,
) -> None:
    """Add a projection factor for each observation of a point with a row."""
    gtsam = library()
    X, L = gtsam.symbol_shorthand.X, gtsam.symbol_shorthand.L
    noise = gtsam.noiseModel.Robust.Create(
        gtsam.noiseModel.mEstimator.Huber.Create(settings.huber_sigmas),
        gtsam.noiseModel.Isotropic.Sigma(2, settings.noise_px),
    )
    camera = gtsam.Cal3_S2(K[0, 0], K[1, 1], 0.0, K[0, 2], K[1, 2])
    for k, view in enumerate(views):
        mount = gtsam.Pose3(view.T_body_camera)
        for point_id, pixel in zip(view.ids.tolist(), view.pixels, strict=True):
            if point_id in row_of:
                key = L(row_of[point_id])
                graph.add(gtsam.GenericProjectionFactorCal3_S2(pixel, noise, X(k), key, camera, mount))


def _add_reference_motions(
    graph: Any, views: Sequence[MonoKeyframe], settings: MonoAdjustmentSettings
) -> None:
    """Add reference motions between consecutive views, and fix the older half of the poses."""
    gtsam = library()
    X, tilt = gtsam.symbol_shorthand.X, settings.tilt_sigma_rad
    for k in range(1, len(views)):
        motion = se3.invert(views[k - 1].T_reference_body) @ views[k].T_reference_body
        sigma_m = settings.length_ratio * float(np.linalg.norm(motion[:3, 3])) + settings.length_floor_m
        sigmas = np.array([tilt, tilt, settings.heading_sigma_rad, sigma_m, sigma_m, sigma_m])
        noise = gtsam.noiseModel.Diagonal.Sigmas(sigmas)
        graph.add(gtsam.BetweenFactorPose3(X(k - 1), X(k), gtsam.Pose3(motion), noise))
    for k in range(1, (len(views) + 1) // 2):
        graph.add(gtsam.NonlinearEqualityPose3(X(k), gtsam.Pose3(views[k].T_world_body)))


def reference_translation(first: MonoKeyframe, second: MonoKeyframe, R_first_second: Floats) -> Floats:
    """Return the translation (3,) of the camera by the reference, m, in the axes of the first body.

    The reference may be planar, with wrong rotations. Only its translation is used, and the lever arm of the
    camera is rotated by the visual rotation (3, 3) of the body; it determines the motion of a turn on the
    spot.
    """
    moved = (se3.invert(first.T_reference_body) @ second.T_reference_body)[:3, 3]
    return moved + R_first_second @ second.T_body_camera[:3, 3] - first.T_body_camera[:3, 3]


def scale_about_last(
    views: Sequence[MonoKeyframe], points: Floats, factor: float
) -> tuple[list[MonoKeyframe], Floats]:
    """Scale the positions of views and points (n, 3) about the last camera."""
    centre = views[-1].T_world_camera[:3, 3]

    def scale(view: MonoKeyframe) -> MonoKeyframe:
        T = view.T_world_camera.copy()
        T[:3, 3] = centre + factor * (T[:3, 3] - centre)
        return replace(view, T_world_body=T @ se3.invert(view.T_body_camera))

    return [scale(view) for view in views], centre + factor * (points - centre)
