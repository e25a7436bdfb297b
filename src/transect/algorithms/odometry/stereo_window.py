"""Bundle adjustment of the last keyframes and all points that at least two of them saw.

Also points that were lost since then count. In a turn most points leave the image after a few frames: of
those that are still followed, the oldest keyframes saw only what lay far ahead, and that alone would bind
them to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.geometry import robust, se3

from .stereo_motion import pixel_slopes, shift_pose
from .stereo_rig import StereoRig

FEWEST = 2
"""Keyframes that must have seen a point: one alone says nothing of the motion."""
SIGMA, ROBUST = 0.5, 2.0
"""Pixels of noise of one observation, and multiples of it from which on it loses weight (Huber)."""
DAMPING, RELAX, STIFFEN = 1e-5, 0.1, 10.0
"""Levenberg and Marquardt's first damping, and what a step that was good or bad multiplies it by."""
LEAST = 1e-9
"""1/m^2: information on a point that keeps its normal matrix regular."""


@dataclass(frozen=True, eq=False)
class Keyframe:
    """A pair of pictures whose pose is adjusted.

    Attributes
    ----------
    T_world_camera : (4, 4)
    ids : (n,) int64
        Of the points seen, sorted.
    pixels : (n, 3)
        Left column, left row, right column; the last NaN where the right camera did not see it.
    """

    T_world_camera: Floats
    ids: Ints
    pixels: Floats


def adjust(
    frames: Sequence[Keyframe], ids: Ints, points: Floats, rig: StereoRig, steps: int
) -> tuple[list[Floats], Floats]:
    """Adjust poses and points so that all pixels fit; the oldest pose stays.

    Parameters
    ----------
    ids, points : (n,), (n, 3)
        Points that are known, by sorted ids, metres in the world; those seen by one keyframe stay.
    steps : int
        Of Levenberg and Marquardt's method.

    Returns
    -------
    poses : list of (4, 4)
        ``T_world_camera`` of the keyframes.
    points : (n, 3)
    """
    seen = _gather(frames, ids)
    used = np.flatnonzero((~np.isnan(seen[:, :, 0])).sum(axis=0) >= FEWEST)
    poses = [se3.invert(frame.T_world_camera) for frame in frames]
    if len(used):
        poses, moved = _descend(poses, points[used], seen[:, used], rig, steps)
        points = points.copy()
        points[used] = moved
    return [frames[0].T_world_camera, *(se3.invert(pose) for pose in poses[1:])], points


def are_among(ids: Ints, known: Ints) -> Mask:
    """Tell which ids (n,) are among known ones (m,); both count points that were seen at about one time."""
    return np.isin(ids, known, kind="table")


def _gather(frames: Sequence[Keyframe], ids: Ints) -> Floats:
    """Return the pixels (k, n, 3) at which k keyframes saw n points; NaN where they did not."""
    seen = np.full((len(frames), len(ids), 3), np.nan)
    for k, frame in enumerate(frames):
        known = are_among(frame.ids, ids)
        seen[k, np.searchsorted(ids, frame.ids[known])] = frame.pixels[known]
    return seen


def _descend(
    poses: list[Floats], points: Floats, seen: Floats, rig: StereoRig, steps: int
) -> tuple[list[Floats], Floats]:
    """Levenberg and Marquardt's method on points and all ``T_camera_world`` but the first."""
    damping = DAMPING
    missed, size, cost = _misses(poses, points, seen, rig)
    for _ in range(steps):
        turns, shifts = _solve(poses, points, missed, size, rig, damping)
        tried = [poses[0], *(shift_pose(T, turn) for T, turn in zip(poses[1:], turns, strict=True))]
        new, new_size, new_cost = _misses(tried, points + shifts, seen, rig)
        if new_cost < cost:
            poses, points, damping = tried, points + shifts, damping * RELAX
            missed, size, cost = new, new_size, new_cost
        else:
            damping *= STIFFEN
    return poses, points


def _misses(
    poses: list[Floats], points: Floats, seen: Floats, rig: StereoRig
) -> tuple[Floats, Floats, float]:
    """Return by how many deviations (k, n, 3) points are seen elsewhere, how far (k, n), and Huber's cost."""
    moved = np.stack([points @ T[:3, :3].T + T[:3, 3] for T in poses])
    missed = (rig.pixels(moved.reshape(-1, 3)).reshape(seen.shape) - seen) / SIGMA
    size = np.sqrt(np.nansum(missed**2, axis=2))
    return missed, size, float(np.where(size < ROBUST, size**2 / 2, ROBUST * (size - ROBUST / 2)).sum())


def _solve(
    poses: list[Floats], points: Floats, missed: Floats, size: Floats, rig: StereoRig, damping: float
) -> tuple[Floats, Floats]:
    """Return small motions (k - 1, 6) of the poses and shifts (n, 3) of the points: a damped Newton step.

    The points are eliminated first (Schur's complement), so that only the poses are solved together.
    """
    by_pose, by_point, residual = _slopes(poses, points, missed, size, rig)
    n, free = len(points), 6 * (len(poses) - 1)
    of_point = by_point.transpose(1, 3, 0, 2).reshape(n, 3, -1)
    inner = of_point @ of_point.transpose(0, 2, 1)
    inner[:, range(3), range(3)] *= 1 + damping
    inverse = np.linalg.inv(inner + LEAST * np.eye(3))
    pull = (of_point @ residual.transpose(1, 0, 2).reshape(n, -1, 1))[..., 0]
    cross = (by_pose[1:].transpose(0, 1, 3, 2) @ by_point[1:]).transpose(1, 0, 2, 3).reshape(n, free, 3)
    left, right = np.zeros((free, free)), np.zeros(free)
    for k in range(len(poses) - 1):
        rows, part = by_pose[k + 1].reshape(-1, 6), slice(6 * k, 6 * k + 6)
        left[part, part] = rows.T @ rows
        right[part] = rows.T @ residual[k + 1].ravel()
    left[range(free), range(free)] *= 1 + damping
    bound = (cross @ inverse).transpose(1, 0, 2).reshape(free, -1)
    left -= bound @ cross.transpose(1, 0, 2).reshape(free, -1).T
    turns = -np.linalg.lstsq(left, right - bound @ pull.ravel())[0].astype(np.float64)
    shifts = -np.einsum("nxy,ny->nx", inverse, pull + np.einsum("nax,a->nx", cross, turns))
    return turns.reshape(-1, 6), shifts


def _slopes(
    poses: list[Floats], points: Floats, missed: Floats, size: Floats, rig: StereoRig
) -> tuple[Floats, Floats, Floats]:
    """Return weighted derivatives by poses (k, n, 3, 6) and points (k, n, 3, 3), and residuals (k, n, 3).

    All are 0 where a point was not seen.
    """
    count, n = missed.shape[:2]
    turns = np.stack([T[:3, :3] for T in poses])
    moved = points @ turns.transpose(0, 2, 1) + np.stack([T[:3, 3] for T in poses])[:, None]
    weight = np.sqrt(robust.huber_weights(size, ROBUST))
    slopes = pixel_slopes(moved.reshape(-1, 3), np.isnan(missed[..., 2].ravel()), rig).reshape(count, n, 3, 6)
    slopes *= (weight / SIGMA)[..., None, None]
    slopes[np.isnan(missed[..., 0])] = 0.0
    by_point = (slopes[..., :3].reshape(count, -1, 3) @ turns).reshape(count, n, 3, 3)
    return slopes, by_point, np.nan_to_num(missed * weight[..., None])
