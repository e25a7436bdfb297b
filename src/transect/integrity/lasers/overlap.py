"""Points where the sweep of a laser intersects the plane of another one: both see the same surface."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.geometry import se3
from transect.integrity.model import CheckContext
from transect.integrity.windows import Window
from transect.types import LaserScan, PointCloud

from .point_clouds import points_of
from .sweeps import sweeps_of


@dataclass(frozen=True)
class OverlapSettings:
    """Numbers of the points that two lasers have in common."""

    max_bend_m: float = 0.05  # Distance of a beam on a surface from the line of two neighbours, ...
    max_bend_ratio: float = 0.01  # ... plus this ratio of the range.
    # Range difference of neighbours on one surface, as a ratio of the range.
    max_range_step_ratio: float = 0.2
    max_height_m: float = 0.05  # Distance of cloud points from the plane of a laser, ...
    max_height_ratio: float = 0.01  # ... plus this ratio of the range.
    max_hidden_m: float = 1.0  # A point is hidden from a laser that sees nearer by this.
    max_clouds: int = 2  # Clouds of a window that are compared.


SETTINGS = OverlapSettings()


class SurfacePoints(NamedTuple):
    """Points (m, 3) of a surface, m, one direction (m, 3) along it, and when each was seen (m,), ns."""

    points: Floats
    along: Floats
    t_ns: Ints


@dataclass(frozen=True, eq=False)
class ScanCurves:
    """Sweeps of a planar laser as curves."""

    t_ns: Ints  # (s,) begin of the sweeps
    ranges: Floats  # (s, d) m; NaN without a return
    angles: Floats  # (d,) rad, evenly spaced

    @cached_property
    def points(self) -> Floats:
        """(s, d, 3) in the frame of the laser, m."""
        flat = [self.ranges * np.cos(self.angles), self.ranges * np.sin(self.angles)]
        return np.stack([*flat, np.zeros_like(self.ranges)], axis=-1)

    @cached_property
    def smooth(self) -> Mask:
        """(s, d - 1) whether a beam and the next are on one surface, i.e. on a line with a third.

        On a line ``1 / r`` is a cosine of the angle, and its second difference nearly 0.
        """
        inverse = 1.0 / self.ranges
        straight = np.zeros((len(inverse), inverse.shape[1] + 1), np.bool_)
        bend = np.abs(np.diff(inverse, n=2, axis=1)) * self.ranges[:, 1:-1] ** 2
        straight[:, 2:-1] = bend < SETTINGS.max_bend_m + SETTINGS.max_bend_ratio * self.ranges[:, 1:-1]
        flat = np.abs(np.diff(inverse, axis=1)) < SETTINGS.max_range_step_ratio * np.fmax(
            inverse[:, 1:], inverse[:, :-1]
        )
        return flat & (straight[:, 1:-1] | straight[:, 2:])

    def crossings(self, T: Floats) -> SurfacePoints:
        """Return the intersections with the plane of another laser, in its frame; ``T`` is T_other_self.

        An intersection lies between two neighbouring beams on one surface.
        """
        height = self.points @ T[2, :3] + T[2, 3]
        low, high = height[:, :-1], height[:, 1:]
        sweep, beam = np.nonzero((low * high <= 0) & (low != high) & self.smooth)
        fraction = (low / (low - high))[sweep, beam, None]
        before, after = self.points[sweep, beam], self.points[sweep, beam + 1]
        crossed = (before * (1 - fraction) + after * fraction) @ T[:3, :3].T + T[:3, 3]
        return SurfacePoints(crossed, (after - before) @ T[:3, :3].T, self.t_ns[sweep])

    def range_at(self, sweep: Ints, angle: Floats) -> tuple[Floats, Floats]:
        """Return the range (m,) at angles (m,) of sweeps (m,), and the direction (m, 3) of the surface.

        The range is NaN if the two beams beside an angle are not on one surface.
        """
        step = float(self.angles[1] - self.angles[0])
        position = np.mod(angle - self.angles[0], 2 * np.pi * np.sign(step)) / step
        beam = np.floor(position).astype(np.int64)
        inside = (beam >= 0) & (beam < len(self.angles) - 1)
        beam = np.where(inside, beam, 0)
        fraction = position - beam
        inverse = (1 - fraction) / self.ranges[sweep, beam] + fraction / self.ranges[sweep, beam + 1]
        along = self.points[sweep, beam + 1] - self.points[sweep, beam]
        return np.where(inside & self.smooth[sweep, beam], 1.0 / inverse, np.nan), along


class _CurveCache:
    """Curves of a laser's newest window, for all checks and peers."""

    def __init__(self) -> None:
        self.index = -1
        self.curves: ScanCurves | None = None


_CACHE: WeakKeyDictionary[CheckContext, dict[str, _CurveCache]] = WeakKeyDictionary()


def curves_of(laser: Window[LaserScan], context: CheckContext) -> ScanCurves:
    """Return the sweeps of a window as curves, computed once for all checks of a session."""
    cached = _CACHE.setdefault(context, {}).setdefault(laser.stream.name, _CurveCache())
    if cached.index != laser.index or cached.curves is None:
        sweeps = sweeps_of(laser, context)
        first = np.searchsorted(sweeps.sweep, np.arange(len(sweeps.ranges)))
        cached.curves = ScanCurves(laser.t_ns[sweeps.scan[first]], sweeps.ranges, sweeps.angles)
        cached.index = laser.index
    return cached.curves


def surface_distances(laser: Window[Any], peer: Window[Any], T: Floats, context: CheckContext) -> Floats:
    """Return (m,) the distance from a surface as a peer sees it to that of a laser, along its normal, m.

    `laser` is a window of LaserScan, `peer` one of LaserScan or PointCloud, `T` is T_laser_peer (4, 4).
    """
    own = curves_of(laser, context)
    if issubclass(peer.stream.type, PointCloud):
        parts = [_distances(own, points_seen) for points_seen in _points_of_clouds(peer, T)]
        return np.concatenate(parts) if parts else np.zeros(0)
    other = curves_of(peer, context)
    forth, back = _distances(own, other.crossings(T)), _distances(other, own.crossings(se3.invert(T)))
    return np.concatenate([forth, -back])


def _distances(laser: ScanCurves, points_seen: SurfacePoints) -> Floats:
    """Return (m,) how far a laser sees beyond points in its plane, along the normal of their surface."""
    points = points_seen.points
    if not len(points) or not len(laser.t_ns):
        return np.zeros(0)
    nearest = np.abs(laser.t_ns[None] - points_seen.t_ns[:, None]).argmin(axis=1)
    found, along = laser.range_at(nearest, np.arctan2(points[:, 1], points[:, 0]))
    distance = np.hypot(points[:, 0], points[:, 1])
    normal = np.cross(along, points_seen.along)
    size = np.linalg.norm(normal, axis=1) * distance
    flat = np.abs(np.einsum("ni,ni->n", normal[:, :2], points[:, :2])) / np.where(size > 0, size, np.nan)
    known = np.isfinite(found) & np.isfinite(flat) & (found - distance > -SETTINGS.max_hidden_m)
    return ((found - distance) * flat)[known]


def _points_of_clouds(peer: Window[PointCloud], T: Floats) -> Iterator[SurfacePoints]:
    """Yield the cloud points in the plane of a laser; their surfaces are assumed perpendicular to it."""
    for cloud in points_of(peer, SETTINGS.max_clouds):
        points = cloud.points @ T[:3, :3].T + T[:3, 3]
        points = points[
            np.abs(points[:, 2]) < np.maximum(SETTINGS.max_height_m, SETTINGS.max_height_ratio * cloud.ranges)
        ]
        upright = np.broadcast_to(np.array([0.0, 0.0, 1.0]), points.shape)
        yield SurfacePoints(points, upright, np.full(len(points), peer.stream.t_ns[cloud.row]))
