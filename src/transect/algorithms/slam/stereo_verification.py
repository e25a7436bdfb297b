"""The motion between two places by their points: matched, sampled, then fitted in both cameras."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.geometry import se3
from transect.types.places import Observation

from ..odometry.stereo_motion import Located, refine
from .place_recognition import Loop
from .stereo_consensus import find_motion
from .stereo_keyframes import pixels_of, stereo_camera

ALIKE, CLEAR = 80, 0.9
"""Bits by which two descriptors of one point may differ; and how much nearer it must be than the second."""
DRAWS = 4000
"""Triangles that are drawn for each old view."""
NEAR = 6.0
"""Pixels by which a point may miss in the motion that three points told."""
CHANCE, LEAST = 6, 12
"""Corners that agreed on a motion by chance, at most, of 860 pairs of places; and that must agree."""
UNSURE = 0.03
"""Of the depth: a motion whose sigma is larger is not verified, as of points that are all far away."""
VIEWS = 2.0
"""Times the variance of pixels: the points of the old view are as noisy as the pixels of the new one."""
FLOOR_SHIFT, FLOOR_TURN = 0.002, 0.001
"""What no number of points makes better, as calibration leaves it: of the depth, and rad."""


class View(NamedTuple):
    """What was seen from somewhere near an old place: T_old_view (4, 4)."""

    T_old_view: Floats
    seen: Observation

    @property
    def points(self) -> Floats:
        """Points (n, 3) in the left camera of the old place, m."""
        return se3.apply(self.T_old_view, self.seen["points"].astype(np.float64))


def verify_motion(old: Sequence[View], new: Observation) -> Loop | None:
    """Return the motion of the left camera from an old place to a new view; None if no points bear it out.

    Parameters
    ----------
    old : sequence of View
        What was seen at the old place. In other light, or from aside, few corners look as they did in any one
        view; true ones agree over all of them, chance matches do not.
    """
    pairs = [match(new["descriptors"], view.seen["descriptors"]) for view in old]
    mine = np.concatenate([mine for mine, _ in pairs])
    if len(mine) < LEAST:
        return None
    points = np.concatenate([view.points[theirs] for view, (_, theirs) in zip(old, pairs, strict=True)])
    located = _locate(points, new, mine, DRAWS * len(old))
    if located is None:
        return None
    agree = len(np.unique(mine[located.inliers]))
    depth = float(np.median(points[located.inliers, 2])) if agree else np.inf
    unsure = np.sqrt(np.linalg.eigvalsh(located.covariance[:3, :3])[-1])
    if agree < LEAST or unsure > UNSURE * depth:
        return None
    times = np.count_nonzero(located.inliers) / agree  # one corner, seen from several places, is one
    spread = _spread(times * located.covariance, agree, depth)
    return Loop(se3.invert(located.T_camera_world), spread, agree / len(np.unique(mine)))


def _locate(points: Floats, new: Observation, mine: Ints, draws: int) -> Located | None:
    """Return where the camera is among points (n, 3) that it may have seen in its corners `mine` (n,)."""
    rig, seen = stereo_camera(new), pixels_of(new)[mine]
    start = find_motion(points, new["points"][mine].astype(np.float64), rig, draws)
    first = None if start is None else refine(points, seen, rig, start, NEAR)
    return None if first is None else refine(points, seen, rig, first.T_camera_world)


def match(one: NDArray[Any], other: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return rows of descriptors (n, 32) and (m, 32) that are each other's best, and clearly so."""
    if len(one) < 2 or len(other) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    apart = count_bits(one, other)
    best, back = apart.argmin(axis=1), apart.argmin(axis=0)
    two = np.partition(apart, 1, axis=1)[:, :2]
    good = (back[best] == np.arange(len(one))) & (two[:, 0] <= ALIKE) & (two[:, 0] <= CLEAR * two[:, 1])
    rows = np.flatnonzero(good)
    return rows, best[rows]


def count_bits(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.uint16]:
    """Return by how many bits (n, m) descriptors (n, 32) and (m, 32) differ."""
    a, b = (np.ascontiguousarray(each).view(np.uint64) for each in (one, other))
    apart = np.zeros((len(a), len(b)), np.uint16)
    for word in range(a.shape[1]):
        apart += np.bitwise_count(a[:, word, None] ^ b[None, :, word])
    return apart


def _spread(covariance: Floats, agree: int, depth: float) -> Floats:
    """Return the covariance (6, 6) of a motion whose pixels tell one, if some of its corners may be wrong."""
    floor = np.repeat([FLOOR_SHIFT * depth, FLOOR_TURN], 3) ** 2
    return VIEWS * (agree / (agree - CHANCE)) ** 2 * covariance + np.diag(floor)
