"""Initial poses of keyframes: dead reckoning, rotated piecewise and shifted to pass through the positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError, TransectError
from transect.geometry import align, rotations, se3

from .odometry_paths import PlanarPath, PosePath
from .position_factors import KeyframePositions


@dataclass(frozen=True)
class HeadingFitSettings:
    """Windows in which the heading of dead reckoning is fitted to positions."""

    # Half of the window; the first in which the heading is observable is used. A receiver whose fixes scatter
    # by metres needs a longer path.
    half_windows_s: tuple[float, ...] = (5.0, 10.0, 20.0, 40.0)
    min_extent_m: float = 1.0  # of the positions
    min_extent_sigmas: float = 10.0  # of the positions, in the shortest window
    # Largest RMS residual relative to the extent, in the shortest window and in longer ones.
    max_residual_ratio: float = 0.1
    max_scatter_ratio: float = 0.3
    max_heading_sigma_rad: float = 0.15  # in longer windows


HEADING_FIT = HeadingFitSettings()


class HeadingUnobservableError(TransectError):
    """Positions do not determine the heading of the body."""


def initial_poses(
    path: PlanarPath | PosePath, times: Ints, positions: KeyframePositions, start: Floats | None = None
) -> Floats:
    """Return poses (n, 4, 4) of keyframes at `times` (n,) near the positions.

    `start` (4, 4) is the start of the path in the frame of the positions, if it is known.
    """
    reckoned = path_poses(path, times)
    if not len(positions):
        return se3.invert(reckoned[0]) @ reckoned
    seconds = (times - times[0]) * 1e-9
    if start is not None:
        return _shift_to_positions(start @ reckoned, seconds, positions)
    at, angles = _fit_headings(reckoned, times, positions)
    rotated = _rotate_path(reckoned, np.interp(seconds, at, angles))
    return _shift_to_positions(rotated, seconds, positions)


def path_poses(path: PlanarPath | PosePath, times: Ints) -> Floats:
    """Return poses (n, 4, 4) by dead reckoning alone, in the path's own frame."""
    if isinstance(path, PosePath):
        return path.poses(times)
    x, y, heading = path.poses(times).T
    return se3.from_quaternion(_yaw_quaternion(heading), np.column_stack([x, y, np.zeros_like(x)]))


def _fit_headings(reckoned: Floats, times: Ints, positions: KeyframePositions) -> tuple[Floats, Floats]:
    """Return times (k,) in s, and the angles (k,) in rad by which the path must be rotated there."""
    seconds = (times - times[0]) * 1e-9
    points = se3.apply(reckoned[positions.keyframe], positions.lever_arm)
    when = seconds[positions.keyframe]
    at, angles, max_extent = list[float](), list[float](), 0.0
    half_windows = HEADING_FIT.half_windows_s
    for half in half_windows:
        middles = when[0] + half / 2 * np.unique((when - when[0]) // (half / 2) + np.arange(-2, 3)[:, None])
        for middle in middles[(middles >= when[0]) & (middles < when[-1] + half)]:
            near = np.abs(when - middle) <= half
            # In the shortest window each position must fit, in longer ones the mean of all.
            sigma = positions.sigma[near] if half == half_windows[0] else None
            angle, extent = _fit_heading(points[near], positions.position[near], sigma)
            max_extent = max(max_extent, extent)
            if angle is not None:
                at.append(float(np.clip(middle, when[near][0], when[near][-1])))
                angles.append(angle)
        if at:
            order = np.argsort(at, kind="stable")
            return np.array(at)[order], np.unwrap(np.array(angles)[order])
    raise HeadingUnobservableError(
        "the positions do not determine the heading of the body",
        why=f"{len(positions)} of them, which extend over {max_extent:.2f} m within "
        f"{2 * half_windows[-1]:g} s and must follow the dead reckoning",
        hint="a section is needed in which the robot drives a few metres while its position is measured",
    )


def _fit_heading(points: Floats, measured: Floats, sigma: Floats | None) -> tuple[float | None, float]:
    """Return the angle from points (m, 3) to positions (m, 3), and the extent of the positions, m.

    With `sigma` (m, 3) the extent must be large compared with it; without, residuals must leave the heading
    certain.
    """
    settings = HEADING_FIT
    if len(points) < 3:
        return None, 0.0
    flat, flat_measured = points * [1, 1, 0], measured * [1, 1, 0]
    extents = [float(np.linalg.norm(np.ptp(each, axis=0))) for each in (flat, flat_measured)]
    min_sigmas = 0.0 if sigma is None else settings.min_extent_sigmas * float(np.median(sigma[:, :2]))
    if min(extents) < max(settings.min_extent_m, min_sigmas):
        return None, extents[1]
    try:
        fit = align.yaw(flat, flat_measured)
    except GeometryError:
        return None, extents[1]
    max_ratio = settings.max_residual_ratio if sigma is not None else settings.max_scatter_ratio
    if fit.rmse > max_ratio * max(extents):
        return None, extents[1]
    spread = float(np.sqrt(np.sum((flat - flat.mean(axis=0)) ** 2)))
    if sigma is None and fit.rmse > settings.max_heading_sigma_rad * spread:
        return None, extents[1]
    return float(np.arctan2(fit.rotation[1, 0], fit.rotation[0, 0])), extents[1]


def _rotate_path(reckoned: Floats, angles: Floats) -> Floats:
    """Return the path (n, 4, 4) with each step rotated about the vertical by its angle (n,)."""
    R = rotations.matrix_from_quaternion(_yaw_quaternion(angles))
    poses = reckoned.copy()
    poses[:, :3, :3] = R @ reckoned[:, :3, :3]
    steps = np.einsum("nij,nj->ni", R[:-1], np.diff(reckoned[:, :3, 3], axis=0))
    poses[1:, :3, 3] = reckoned[0, :3, 3] + np.cumsum(steps, axis=0)
    return poses


def _shift_to_positions(poses: Floats, seconds: Floats, positions: KeyframePositions) -> Floats:
    """Return poses that pass through the positions, with linearly interpolated shifts between them."""
    residual = positions.position - se3.apply(poses[positions.keyframe], positions.lever_arm)
    shift = [np.interp(seconds, seconds[positions.keyframe], each) for each in residual.T]
    poses[:, :3, 3] += np.column_stack(shift)
    return poses


def _yaw_quaternion(angle: Floats) -> Floats:
    return rotations.quaternion_from_euler("z", angle[:, None])
