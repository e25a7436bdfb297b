"""Point clouds of a window, loaded once for all checks, and points that are in the air."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.geometry.neighbours import dynamic_radius_inliers
from transect.integrity.windows import Window, WindowedStream
from transect.recording.stream import values_between
from transect.types import PointCloud


@dataclass(frozen=True)
class PointSettings:
    """Numbers of the search for airborne points."""

    min_range_m: float = 0.3  # Nearer points are on the robot, or mean no return.
    neighbours: int = 8  # Neighbours in direction, and ...
    max_range_ratio: float = 0.9  # ... the ratio of their range below which a point is in front of them.


SETTINGS = PointSettings()


@dataclass(frozen=True, eq=False)
class CloudPoints:
    """Measured points of a cloud, in the frame of its sensor."""

    row: int  # of the stream
    count: int  # points of the cloud, including invalid ones
    used: Mask  # (count,) valid points that are not too near
    points: Floats  # (n, 3) m, the used points
    ranges: Floats  # (n,) m


_CACHE: WeakKeyDictionary[WindowedStream[Any], dict[int, CloudPoints]] = WeakKeyDictionary()


def points_of(window: Window[PointCloud], most: int) -> list[CloudPoints]:
    """Return the points of at most `most` clouds of a window, evenly spaced; each is loaded once."""
    rows = np.unique(np.linspace(window.start, window.stop - 1, min(most, len(window))).astype(int)).tolist()
    kept = _CACHE.setdefault(window.windowed, {})
    for row in [row for row in kept if row < window.start]:
        del kept[row]
    for row in rows:
        if row not in kept:
            [cloud] = values_between(window.stream, row, row + 1)
            kept[row] = _view(row, cloud)
    return [kept[row] for row in rows]


def _view(row: int, cloud: PointCloud) -> CloudPoints:
    points = np.asarray(cloud.points, dtype=np.float64)
    ranges = np.linalg.norm(points, axis=1)
    used: Mask = np.isfinite(ranges) & (ranges > SETTINGS.min_range_m)
    return CloudPoints(row, len(points), used, points[used], ranges[used])


def find_isolated(view: CloudPoints, spacing: float) -> Mask:
    """Return which points (n,) have too few neighbours for their range (DROR); `spacing` in rad."""
    return ~dynamic_radius_inliers(view.points, spacing)


def find_airborne(view: CloudPoints, isolated: Mask) -> tuple[Mask, Mask]:
    """Return which of the isolated points (n,) are certainly in the air, and which may be.

    Far surfaces, and those at grazing incidence, have isolated points, too, but with points of similar
    range next to them. Certain: all but one of eight neighbours in direction are farther away; that one
    may be airborne as well. Possible: half of them are.
    """
    from scipy.spatial import KDTree

    certain: Mask = np.zeros(len(isolated), np.bool_)
    possible = certain.copy()
    which = np.flatnonzero(isolated)
    if not len(which) or len(view.points) <= SETTINGS.neighbours:
        return certain, possible
    directions = view.points / view.ranges[:, None]
    neighbours = np.asarray(KDTree(directions).query(directions[which], k=SETTINGS.neighbours + 1)[1])[:, 1:]
    behind = np.sort(view.ranges[neighbours], axis=1)
    certain[which] = view.ranges[which] < SETTINGS.max_range_ratio * behind[:, 1]
    possible[which] = view.ranges[which] < SETTINGS.max_range_ratio * behind[:, SETTINGS.neighbours // 2]
    return certain, possible
