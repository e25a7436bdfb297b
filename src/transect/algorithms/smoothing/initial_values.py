"""A first guess: dead reckoning, turned and moved piece by piece until it goes through the positions."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError, TransectError
from transect.geometry import align, rotations, se3

from .odometry_paths import PlanarPath, PosePath
from .position_factors import Hung

HALF_WINDOWS = 5.0, 10.0, 20.0, 40.0
"""Seconds to both sides within which a heading is fitted: the first that tells one, for a receiver that
scatters by metres needs a longer way."""
SURE = 0.15
"""rad: one sigma of a heading by a longer way."""
LEAST_WAY = 1.0
"""Metres that positions must reach across, or ten of their sigmas, to tell a heading."""
STRAY = 0.1
"""Part of the way by which they may miss the dead reckoning, if that is to be believed."""


SCATTER = 0.3
"""The same of a longer way, whose positions may scatter."""


class HeadingUnknownError(TransectError):
    """Positions that do not tell where the body looks."""


def guess(path: PlanarPath | PosePath, times: Ints, hung: Hung, start: Floats | None = None) -> Floats:
    """Return poses (n, 4, 4) of keyframes at `times` (n,) near the positions hung on them.

    `start` (4, 4) is where the path begins in the frame of the positions, if that is known.
    """
    reckoned = path_poses(path, times)
    if not len(hung):
        return se3.invert(reckoned[0]) @ reckoned
    if start is not None:
        return _draw_to_places(start @ reckoned, (times - times[0]) * 1e-9, hung)
    at, turns = _headings(reckoned, times, hung)
    seconds = (times - times[0]) * 1e-9
    turn = np.interp(seconds, at, turns)
    return _draw_to_places(_turn_path(reckoned, turn), seconds, hung)


def path_poses(path: PlanarPath | PosePath, times: Ints) -> Floats:
    """Return poses (n, 4, 4) by dead reckoning alone, in the path's own frame."""
    if isinstance(path, PosePath):
        return path.poses(times)
    x, y, heading = path.poses(times).T
    return se3.from_quaternion(_yaw(heading), np.column_stack([x, y, np.zeros_like(x)]))


def _headings(reckoned: Floats, times: Ints, hung: Hung) -> tuple[Floats, Floats]:
    """Return at which times (k,) in s, and by what angles (k,) in rad, the path must be turned there."""
    seconds = (times - times[0]) * 1e-9
    points = se3.apply(reckoned[hung.keyframe], hung.arm)
    when = seconds[hung.keyframe]
    at, turns, longest = list[float](), list[float](), 0.0
    for half in HALF_WINDOWS:
        middles = when[0] + half / 2 * np.unique((when - when[0]) // (half / 2) + np.arange(-2, 3)[:, None])
        for middle in middles[(middles >= when[0]) & (middles < when[-1] + half)]:
            near = np.abs(when - middle) <= half
            # A short way must be told by each position, a longer one by all of them.
            sigma = hung.sigma[near] if half == HALF_WINDOWS[0] else None
            fitted, way = _fit_heading(points[near], hung.position[near], sigma)
            longest = max(longest, way)
            if fitted is not None:
                at.append(float(np.clip(middle, when[near][0], when[near][-1])))
                turns.append(fitted)
        if at:
            order = np.argsort(at, kind="stable")
            return np.array(at)[order], np.unwrap(np.array(turns)[order])
    raise HeadingUnknownError(
        "the positions do not tell the heading of the body",
        why=f"{len(hung)} of them, which reach across {longest:.2f} m within {2 * HALF_WINDOWS[-1]:g} s and "
        "must follow the dead reckoning",
        hint="a stretch is needed in which the robot drives a few metres while its position is measured",
    )


def _fit_heading(points: Floats, places: Floats, sigma: Floats | None) -> tuple[float | None, float]:
    """Return by what angle points (m, 3) are turned from places (m, 3), and how far these reach, m.

    The way must be longer than ten sigmas (m, 3); without these, what is missed must leave the heading sure.
    """
    if len(points) < 3:
        return None, 0.0
    flat, there = points * [1, 1, 0], places * [1, 1, 0]
    ways = [float(np.linalg.norm(np.ptp(each, axis=0))) for each in (flat, there)]
    if min(ways) < max(LEAST_WAY, 0.0 if sigma is None else 10 * float(np.median(sigma[:, :2]))):
        return None, ways[1]
    try:
        found = align.yaw(flat, there)
    except GeometryError:
        return None, ways[1]
    if found.rmse > (STRAY if sigma is not None else SCATTER) * max(ways):
        return None, ways[1]
    if sigma is None and found.rmse > SURE * float(np.sqrt(np.sum((flat - flat.mean(axis=0)) ** 2))):
        return None, ways[1]
    return float(np.arctan2(found.rotation[1, 0], found.rotation[0, 0])), ways[1]


def _turn_path(reckoned: Floats, turn: Floats) -> Floats:
    """Return the path (n, 4, 4) with each step turned about the vertical by its angle (n,)."""
    R = rotations.matrix_from_quaternion(_yaw(turn))
    poses = reckoned.copy()
    poses[:, :3, :3] = R @ reckoned[:, :3, :3]
    steps = np.einsum("nij,nj->ni", R[:-1], np.diff(reckoned[:, :3, 3], axis=0))
    poses[1:, :3, 3] = reckoned[0, :3, 3] + np.cumsum(steps, axis=0)
    return poses


def _draw_to_places(poses: Floats, seconds: Floats, hung: Hung) -> Floats:
    """Return poses moved so that they pass through the positions, and evenly between them."""
    missed = hung.position - se3.apply(poses[hung.keyframe], hung.arm)
    shift = [np.interp(seconds, seconds[hung.keyframe], each) for each in missed.T]
    poses[:, :3, 3] += np.column_stack(shift)
    return poses


def _yaw(angle: Floats) -> Floats:
    return rotations.quaternion_from_euler("z", angle[:, None])
