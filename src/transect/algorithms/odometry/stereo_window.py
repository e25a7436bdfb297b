"""Bundle adjustment of the last keyframes and all points that at least two of them observed.

Points whose track has ended are included. In a turn most points leave the image after a few frames; of those
that are still tracked, the oldest keyframes observed only distant ones, which alone would connect them poorly
with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.geometry import robust, se3

from .stereo_motion import perturb_pose, pixel_jacobian
from .stereo_rig import StereoRig


@dataclass(frozen=True)
class StereoAdjustmentSettings:
    """Settings of the bundle adjustment (Levenberg-Marquardt with a Huber loss)."""

    iterations: int = 2
    min_observations: int = 2  # keyframes per point: a single one does not constrain the motion
    noise_px: float = 0.5  # sigma of an observation
    huber_sigmas: float = 2.0
    initial_damping: float = 1e-5
    damping_decrease: float = 0.1  # factor after a step that lowers the cost
    damping_increase: float = 10.0  # factor after one that does not
    min_point_information: float = 1e-9  # 1/m^2, keeps the normal matrix of a point regular


ADJUSTMENT = StereoAdjustmentSettings()


@dataclass(frozen=True, eq=False)
class StereoKeyframe:
    """An image pair whose pose is adjusted."""

    T_world_camera: Floats  # (4, 4)
    ids: Ints  # (n,) of the observed points, sorted
    pixels: Floats  # (n, 3) left column, left row, right column; the last is NaN if unmatched


class _Residuals(NamedTuple):
    """Normalised residuals (k, n, 3) of n points in k images, their norms (k, n), and the Huber cost."""

    values: Floats
    norms: Floats
    cost: float


def adjust_keyframes(
    frames: Sequence[StereoKeyframe],
    ids: Ints,
    points: Floats,
    rig: StereoRig,
    settings: StereoAdjustmentSettings = ADJUSTMENT,
) -> tuple[list[Floats], Floats]:
    """Adjust poses and points to the pixels; the oldest pose is fixed.

    Parameters
    ----------
    ids, points : (n,), (n, 3)
        Known points in the world, m, by sorted ids; those with too few observations are not changed.

    Returns
    -------
    poses : list of (4, 4)
        ``T_world_camera`` of the keyframes.
    points : (n, 3)
    """
    pixels = _observations(frames, ids)
    used = np.flatnonzero((~np.isnan(pixels[:, :, 0])).sum(axis=0) >= settings.min_observations)
    poses = [se3.invert(frame.T_world_camera) for frame in frames]
    if len(used):
        poses, adjusted = _levenberg_marquardt(poses, points[used], pixels[:, used], rig, settings)
        points = points.copy()
        points[used] = adjusted
    return [frames[0].T_world_camera, *(se3.invert(pose) for pose in poses[1:])], points


def contains_ids(ids: Ints, known: Ints) -> Mask:
    """Return which ids (n,) are among known ones (m,); a table is fast, since ids are close together."""
    return np.isin(ids, known, kind="table")


def _observations(frames: Sequence[StereoKeyframe], ids: Ints) -> Floats:
    """Return the pixels (k, n, 3) of n points in k keyframes; NaN if not observed."""
    pixels = np.full((len(frames), len(ids), 3), np.nan)
    for k, frame in enumerate(frames):
        known = contains_ids(frame.ids, ids)
        pixels[k, np.searchsorted(ids, frame.ids[known])] = frame.pixels[known]
    return pixels


def _levenberg_marquardt(
    poses: list[Floats], points: Floats, pixels: Floats, rig: StereoRig, settings: StereoAdjustmentSettings
) -> tuple[list[Floats], Floats]:
    """Minimise the cost over the points and all ``T_camera_world`` except the first."""
    damping = settings.initial_damping
    residuals = _evaluate(poses, points, pixels, rig, settings)
    for _ in range(settings.iterations):
        motions, shifts = _solve(poses, points, residuals, rig, damping, settings)
        new_poses = [poses[0], *(perturb_pose(T, xi) for T, xi in zip(poses[1:], motions, strict=True))]
        new_residuals = _evaluate(new_poses, points + shifts, pixels, rig, settings)
        if new_residuals.cost < residuals.cost:
            poses, points, residuals = new_poses, points + shifts, new_residuals
            damping *= settings.damping_decrease
        else:
            damping *= settings.damping_increase
    return poses, points


def _evaluate(
    poses: list[Floats], points: Floats, pixels: Floats, rig: StereoRig, settings: StereoAdjustmentSettings
) -> _Residuals:
    moved = np.stack([points @ T[:3, :3].T + T[:3, 3] for T in poses])
    values = (rig.pixels(moved.reshape(-1, 3)).reshape(pixels.shape) - pixels) / settings.noise_px
    norms, k = np.sqrt(np.nansum(values**2, axis=2)), settings.huber_sigmas
    return _Residuals(values, norms, float(np.where(norms < k, norms**2 / 2, k * (norms - k / 2)).sum()))


def _solve(
    poses: list[Floats],
    points: Floats,
    residuals: _Residuals,
    rig: StereoRig,
    damping: float,
    settings: StereoAdjustmentSettings,
) -> tuple[Floats, Floats]:
    """Return the damped Newton step: motions (k - 1, 6) of the poses and shifts (n, 3) of the points.

    The points are eliminated first (Schur complement).
    """
    by_pose, by_point, residual = _weighted_jacobians(poses, points, residuals, rig, settings)
    n, free = len(points), 6 * (len(poses) - 1)
    point_rows = by_point.transpose(1, 3, 0, 2).reshape(n, 3, -1)
    point_hessian = point_rows @ point_rows.transpose(0, 2, 1)
    point_hessian[:, range(3), range(3)] *= 1 + damping
    inverse = np.linalg.inv(point_hessian + settings.min_point_information * np.eye(3))
    point_gradient = (point_rows @ residual.transpose(1, 0, 2).reshape(n, -1, 1))[..., 0]
    cross = (by_pose[1:].transpose(0, 1, 3, 2) @ by_point[1:]).transpose(1, 0, 2, 3).reshape(n, free, 3)
    pose_hessian, pose_gradient = np.zeros((free, free)), np.zeros(free)
    for k in range(len(poses) - 1):
        rows, block = by_pose[k + 1].reshape(-1, 6), slice(6 * k, 6 * k + 6)
        pose_hessian[block, block] = rows.T @ rows
        pose_gradient[block] = rows.T @ residual[k + 1].ravel()
    pose_hessian[range(free), range(free)] *= 1 + damping
    eliminated = (cross @ inverse).transpose(1, 0, 2).reshape(free, -1)
    pose_hessian -= eliminated @ cross.transpose(1, 0, 2).reshape(free, -1).T
    motions = -np.linalg.lstsq(pose_hessian, pose_gradient - eliminated @ point_gradient.ravel())[0].astype(
        np.float64
    )
    shifts = -np.einsum("nxy,ny->nx", inverse, point_gradient + np.einsum("nax,a->nx", cross, motions))
    return motions.reshape(-1, 6), shifts


def _weighted_jacobians(
    poses: list[Floats],
    points: Floats,
    residuals: _Residuals,
    rig: StereoRig,
    settings: StereoAdjustmentSettings,
) -> tuple[Floats, Floats, Floats]:
    """Return weighted derivatives by poses (k, n, 3, 6) and points (k, n, 3, 3), and residuals (k, n, 3).

    All are 0 if a point was not observed.
    """
    values = residuals.values
    count, n = values.shape[:2]
    rotation = np.stack([T[:3, :3] for T in poses])
    moved = points @ rotation.transpose(0, 2, 1) + np.stack([T[:3, 3] for T in poses])[:, None]
    weight = np.sqrt(robust.huber_weights(residuals.norms, settings.huber_sigmas))
    by_pose = pixel_jacobian(moved.reshape(-1, 3), np.isnan(values[..., 2].ravel()), rig)
    by_pose = by_pose.reshape(count, n, 3, 6)
    by_pose *= (weight / settings.noise_px)[..., None, None]
    by_pose[np.isnan(values[..., 0])] = 0.0
    by_point = (by_pose[..., :3].reshape(count, -1, 3) @ rotation).reshape(count, n, 3, 3)
    return by_pose, by_point, np.nan_to_num(values * weight[..., None])
