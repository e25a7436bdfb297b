"""Point clouds of a window, each loaded once for all checks, and returns from nothing solid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.geometry.neighbours import dynamic_radius_inliers
from transect.integrity.windows import Track, Window
from transect.recording.stream import values_between
from transect.types import PointCloud

NEAREST = 0.3
"""Metres; nearer points are of the robot itself, or mean that nothing came back."""
AROUND, NEARER = 8, 0.9
"""Points beside one in direction that tell what is behind it, and the part of their range that is before."""


@dataclass(frozen=True, eq=False)
class View:
    """A cloud as its sensor saw it.

    Attributes
    ----------
    row : int
        Of the stream.
    count : int
        Points of the cloud, with those that are none.
    used : (count,) bool array
        Which of them are measured, and not too near.
    points : (n, 3) array
        These, m, in the frame of the cloud.
    ranges : (n,) array
        m, from the origin of that frame.
    """

    row: int
    count: int
    used: Mask
    points: Floats
    ranges: Floats


_VIEWS: WeakKeyDictionary[Track[Any], dict[int, View]] = WeakKeyDictionary()


def views_of(window: Window[PointCloud], most: int) -> list[View]:
    """Return at most so many clouds of a window, evenly spaced; each is loaded once for all checks."""
    rows = np.unique(np.linspace(window.start, window.stop - 1, min(most, len(window))).astype(int)).tolist()
    kept = _VIEWS.setdefault(window.track, {})
    for row in [row for row in kept if row < window.start]:
        del kept[row]
    for row in rows:
        if row not in kept:
            [cloud] = values_between(window.stream, row, row + 1)
            kept[row] = _view(row, cloud)
    return [kept[row] for row in rows]


def _view(row: int, cloud: PointCloud) -> View:
    points = np.asarray(cloud.points, dtype=np.float64)
    ranges = np.linalg.norm(points, axis=1)
    used: Mask = np.isfinite(ranges) & (ranges > NEAREST)
    return View(row, len(points), used, points[used], ranges[used])


def find_alone(view: View, spacing: float) -> Mask:
    """Return which points (n,) have too few neighbours for their range (DROR); `spacing` in rad."""
    return ~dynamic_radius_inliers(view.points, spacing)


def find_hanging(view: View, alone: Mask) -> tuple[Mask, Mask]:
    """Return which of the points (n,) that are alone hang in the air for sure, and which may.

    Surfaces that are far, or seen at a flat angle, leave points alone, too. These have points beside them
    that are as near. For sure: all but one of eight points beside it are farther away; that one may hang as
    well. It may: half of them are.
    """
    from scipy.spatial import KDTree

    sure: Mask = np.zeros(len(alone), np.bool_)
    likely = sure.copy()
    which = np.flatnonzero(alone)
    if not len(which) or len(view.points) <= AROUND:
        return sure, likely
    towards = view.points / view.ranges[:, None]
    beside = np.asarray(KDTree(towards).query(towards[which], k=AROUND + 1)[1])[:, 1:]
    behind = np.sort(view.ranges[beside], axis=1)
    sure[which] = view.ranges[which] < NEARER * behind[:, 1]
    likely[which] = view.ranges[which] < NEARER * behind[:, AROUND // 2]
    return sure, likely
