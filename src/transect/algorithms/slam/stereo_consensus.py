"""The motion that most pairs of points agree on, though nine of ten are wrong.

Both cameras saw each point at both places, so that three pairs tell a motion, and wrong ones mostly give
themselves away before: the sides of their triangles differ.
"""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats

from ..odometry.stereo_rig import StereoRig

MOST_TRIED = 400
"""Motions that are held against all points: of the triangles whose sides are most alike."""
NOISE = 1.0
"""Pixels by which disparities may be off."""
FLOOR, SHORTEST = 0.005, 0.1
"""Of the median depth: what points may be off besides, and the side of a triangle that tells a turn."""
THIN = 0.1
"""Sine of the angle of a triangle below which it tells no turn."""
LOOSE, ENOUGH = 6.0, 0.5
"""Pixels by which a point may miss in a motion that three others tell; share that ends the search."""


def find_motion(old: Floats, new: Floats, rig: StereoRig, draws: int) -> Floats | None:
    """Return T_new_old (4, 4) that most pairs of points agree on; None if no three do.

    Parameters
    ----------
    old, new : (n, 3) array
        The same points, seen from two places: metres in the left camera of each.
    draws : int
        Triangles that are looked at.
    """
    there, best, most = rig.pixels(new), None, 0
    for T in _motions_of(*_draw_triangles(old, new, rig, draws)):
        missed = rig.pixels(old @ T[:3, :3].T + T[:3, 3]) - there
        close = np.count_nonzero(np.abs(missed).max(axis=1) < LOOSE)
        if close > most:
            best, most = T, close
        if most > ENOUGH * len(old):
            break
    return best


def _draw_triangles(old: Floats, new: Floats, rig: StereoRig, draws: int) -> tuple[Floats, Floats]:
    """Return triangles (m, 3, 3) of old points and of new ones, the most alike first."""
    rows = np.random.default_rng(0).integers(0, len(old), (draws, 3))
    depth, unlike = float(np.median(old[:, 2])), np.zeros(draws)
    sigma = np.hypot(rig.depth_sigma(old, NOISE), rig.depth_sigma(new, NOISE)) + FLOOR * depth
    for a, b in ((0, 1), (1, 2), (2, 0)):
        one, other = (
            np.linalg.norm(points[rows[:, a]] - points[rows[:, b]], axis=1) for points in (old, new)
        )
        apart = np.abs(one - other) / np.hypot(sigma[rows[:, a]], sigma[rows[:, b]])
        kept = (apart < 1.0) & (np.minimum(one, other) > SHORTEST * depth)
        rows, unlike = rows[kept], (unlike + apart**2)[kept]
    best = rows[np.argsort(unlike, kind="stable")[:MOST_TRIED]]
    return old[best], new[best]


def _motions_of(old: Floats, new: Floats) -> Floats:
    """Return the motions (m, 4, 4) that bring triangles (m, 3, 3) onto others of about the same sides."""
    axes, others = _axes_of(old), _axes_of(new)
    motions = np.tile(np.eye(4), (len(old), 1, 1))
    motions[:, :3, :3] = others @ axes.transpose(0, 2, 1)
    motions[:, :3, 3] = new.mean(axis=1) - np.einsum("mij,mj->mi", motions[:, :3, :3], old.mean(axis=1))
    return motions[np.isfinite(motions).all(axis=(1, 2))]


def _axes_of(triangles: Floats) -> Floats:
    """Return axes (m, 3, 3) in triangles (m, 3, 3): along a side, across it, upright; NaN of thin ones."""
    along, side = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    upright = np.cross(along, side)
    longs, across, high = (np.linalg.norm(each, axis=1, keepdims=True) for each in (along, side, upright))
    z = upright / np.where(high > THIN * longs * across, high, np.nan)
    x = along / longs
    return np.asarray(np.stack([x, np.cross(z, x), z], axis=-1), np.float64)
