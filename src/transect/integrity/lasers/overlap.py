"""Where the sweep of a laser goes through the plane of another one, both see the same surface."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.geometry import se3
from transect.integrity.model import Surroundings
from transect.integrity.windows import Window
from transect.types import LaserScan, PointCloud

from .point_clouds import views_of
from .sweeps import sweeps_of

BEND_M, BEND = 0.05, 0.01
"""Metres, and part of the range, by which a beam on a surface may differ from the line of two beside it."""
STEEP = 0.2
"""Part of the range by which neighbouring beams on one surface may differ."""
BESIDE_M, BESIDE = 0.05, 0.01
"""Metres, and part of the range, from the plane of a laser within which points of a cloud are in it."""
HIDDEN_M = 1.0
"""Metres by which a laser sees nearer than a point: then something hides that point from it."""
CLOUDS = 2
"""Of a window that are compared."""


class Places(NamedTuple):
    """Points (m, 3) of a surface, m, one direction (m, 3) along it, and when each was seen (m,), ns."""

    points: Floats
    along: Floats
    t_ns: Ints


@dataclass(frozen=True, eq=False)
class Curves:
    """What a planar laser saw in a window, sweep by sweep.

    Attributes
    ----------
    t_ns : (s,) int array
        When the sweeps began.
    ranges : (s, d) array
        m; NaN where nothing came back.
    angles : (d,) array
        rad, evenly spaced.
    """

    t_ns: Ints
    ranges: Floats
    angles: Floats

    @cached_property
    def points(self) -> Floats:
        """(s, d, 3) in the frame of the laser, m."""
        flat = [self.ranges * np.cos(self.angles), self.ranges * np.sin(self.angles)]
        return np.stack([*flat, np.zeros_like(self.ranges)], axis=-1)

    @cached_property
    def smooth(self) -> Mask:
        """(s, d - 1) whether a beam and the next are on one surface: with a third they are on a line.

        On a line ``1 / r`` is a cosine of the angle, and its second difference all but 0.
        """
        near = 1.0 / self.ranges
        straight = np.zeros((len(near), near.shape[1] + 1), np.bool_)
        bend = np.abs(np.diff(near, n=2, axis=1)) * self.ranges[:, 1:-1] ** 2
        straight[:, 2:-1] = bend < BEND_M + BEND * self.ranges[:, 1:-1]
        flat = np.abs(np.diff(near, axis=1)) < STEEP * np.fmax(near[:, 1:], near[:, :-1])
        return flat & (straight[:, 1:-1] | straight[:, 2:])

    def crossings(self, T: Floats) -> Places:
        """Return where sweeps go through the plane of another laser, in its frame; ``T`` is T_other_self.

        A crossing lies between two neighbouring beams on one surface.
        """
        height = self.points @ T[2, :3] + T[2, 3]
        low, high = height[:, :-1], height[:, 1:]
        sweep, beam = np.nonzero((low * high <= 0) & (low != high) & self.smooth)
        part = (low / (low - high))[sweep, beam, None]
        before, after = self.points[sweep, beam], self.points[sweep, beam + 1]
        crossed = (before * (1 - part) + after * part) @ T[:3, :3].T + T[:3, 3]
        return Places(crossed, (after - before) @ T[:3, :3].T, self.t_ns[sweep])

    def range_at(self, sweep: Ints, angle: Floats) -> tuple[Floats, Floats]:
        """Return (m,) the range at angles (m,) of sweeps (m,), and (m, 3) the direction of the surface there.

        The range is NaN where the two beams beside an angle are not on one surface.
        """
        step = float(self.angles[1] - self.angles[0])
        place = np.mod(angle - self.angles[0], 2 * np.pi * np.sign(step)) / step
        beam = np.floor(place).astype(np.int64)
        inside = (beam >= 0) & (beam < len(self.angles) - 1)
        beam = np.where(inside, beam, 0)
        part = place - beam
        near = (1 - part) / self.ranges[sweep, beam] + part / self.ranges[sweep, beam + 1]
        along = self.points[sweep, beam + 1] - self.points[sweep, beam]
        return np.where(inside & self.smooth[sweep, beam], 1.0 / near, np.nan), along


class _Kept:
    """What was made of a laser's newest window, for all checks and peers that ask for it."""

    def __init__(self) -> None:
        self.index = -1
        self.curves: Curves | None = None


_KEPT: WeakKeyDictionary[Surroundings, dict[str, _Kept]] = WeakKeyDictionary()


def curves_of(laser: Window[LaserScan], about: Surroundings) -> Curves:
    """Return the sweeps of a window as curves, made once for all checks of a session that ask."""
    kept = _KEPT.setdefault(about, {}).setdefault(laser.stream.name, _Kept())
    if kept.index != laser.index or kept.curves is None:
        sweeps = sweeps_of(laser, about)
        first = np.searchsorted(sweeps.sweep, np.arange(len(sweeps.ranges)))
        kept.curves = Curves(laser.t_ns[sweeps.scan[first]], sweeps.ranges, sweeps.angles)
        kept.index = laser.index
    return kept.curves


def differences(laser: Window[Any], peer: Window[Any], T: Floats, about: Surroundings) -> Floats:
    """Return (m,) how far a surface lies behind that which a peer sees, as a laser has it, across it; m.

    Parameters
    ----------
    laser : Window of LaserScan
    peer : Window of LaserScan or PointCloud
    T : (4, 4) array
        T_laser_peer.
    about : Surroundings
        Of the check that asks.
    """
    own = curves_of(laser, about)
    if issubclass(peer.stream.type, PointCloud):
        parts = [_excess(own, places) for places in _places_of_clouds(peer, T)]
        return np.concatenate(parts) if parts else np.zeros(0)
    other = curves_of(peer, about)
    forth, back = _excess(own, other.crossings(T)), _excess(other, own.crossings(se3.invert(T)))
    return np.concatenate([forth, -back])


def _excess(laser: Curves, places: Places) -> Floats:
    """Return (m,) how far a laser sees beyond places in its plane, across the surface that both are on."""
    points = places.points
    if not len(points) or not len(laser.t_ns):
        return np.zeros(0)
    nearest = np.abs(laser.t_ns[None] - places.t_ns[:, None]).argmin(axis=1)
    found, along = laser.range_at(nearest, np.arctan2(points[:, 1], points[:, 0]))
    reach = np.hypot(points[:, 0], points[:, 1])
    normal = np.cross(along, places.along)
    size = np.linalg.norm(normal, axis=1) * reach
    flat = np.abs(np.einsum("ni,ni->n", normal[:, :2], points[:, :2])) / np.where(size > 0, size, np.nan)
    known = np.isfinite(found) & np.isfinite(flat) & (found - reach > -HIDDEN_M)
    return ((found - reach) * flat)[known]


def _places_of_clouds(peer: Window[PointCloud], T: Floats) -> Iterator[Places]:
    """Yield the points of clouds in the plane of a laser; their surfaces are taken to stand upright on it."""
    for view in views_of(peer, CLOUDS):
        points = view.points @ T[:3, :3].T + T[:3, 3]
        points = points[np.abs(points[:, 2]) < np.maximum(BESIDE_M, BESIDE * view.ranges)]
        upright = np.broadcast_to(np.array([0.0, 0.0, 1.0]), points.shape)
        yield Places(points, upright, np.full(len(points), peer.stream.t_ns[view.row]))
