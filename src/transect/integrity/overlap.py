"""Where the sweep of a laser goes through the plane of another one, both see the same surface."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.geometry import se3
from transect.types import LaserScan, PointCloud

from .clouds import views_of
from .lasers import Layout
from .model import Surroundings
from .windows import Window

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

    def crossings(self, T: Floats) -> tuple[Floats, Ints]:
        """Return points (m, 3) in another laser's frame where sweeps go through its plane, and which sweep.

        ``T`` is T_other_self (4, 4). A crossing lies between two neighbouring beams on one surface.
        """
        height = self.points @ T[2, :3] + T[2, 3]
        low, high = height[:, :-1], height[:, 1:]
        sweep, beam = np.nonzero((low * high <= 0) & (low != high) & self.smooth)
        part = (low / (low - high))[sweep, beam, None]
        crossed = self.points[sweep, beam] * (1 - part) + self.points[sweep, beam + 1] * part
        return crossed @ T[:3, :3].T + T[:3, 3], sweep

    def range_at(self, sweep: Ints, angle: Floats) -> Floats:
        """Return (m,) the range at angles (m,) of sweeps (m,), between two beams on one surface; else NaN."""
        step = float(self.angles[1] - self.angles[0])
        place = np.mod(angle - self.angles[0], 2 * np.pi * np.sign(step)) / step
        beam = np.floor(place).astype(np.int64)
        inside = (beam >= 0) & (beam < len(self.angles) - 1)
        beam = np.where(inside, beam, 0)
        part = place - beam
        near = (1 - part) / self.ranges[sweep, beam] + part / self.ranges[sweep, beam + 1]
        return np.where(inside & self.smooth[sweep, beam], 1.0 / near, np.nan)


class _Kept:
    """What was made of a laser's newest window, for all checks and peers that ask for it."""

    def __init__(self) -> None:
        self.layout = Layout()
        self.index = -1
        self.curves: Curves | None = None


_KEPT: WeakKeyDictionary[Surroundings, dict[str, _Kept]] = WeakKeyDictionary()


def curves_of(laser: Window[LaserScan], about: Surroundings) -> Curves:
    """Return the sweeps of a window; they are laid out once for all checks of a session that ask."""
    kept = _KEPT.setdefault(about, {}).setdefault(laser.stream.name, _Kept())
    if kept.index != laser.index or kept.curves is None:
        sweeps = kept.layout.lay_out(laser)
        first = np.searchsorted(sweeps.sweep, np.arange(len(sweeps.ranges)))
        kept.curves = Curves(laser.t_ns[sweeps.scan[first]], sweeps.ranges, sweeps.angles)
        kept.index = laser.index
    return kept.curves


def differences(laser: Window[Any], peer: Window[Any], T: Floats, about: Surroundings) -> Floats:
    """Return (m,) by how much farther a laser sees than a peer where both see the same surface, m.

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
        return _against_clouds(own, peer, T)
    other = curves_of(peer, about)
    forth = _excess(own, *other.crossings(T), other.t_ns)
    back = _excess(other, *own.crossings(se3.invert(T)), own.t_ns)
    return np.concatenate([forth, -back])


def _excess(laser: Curves, points: Floats, which: Ints, t_ns: Ints) -> Floats:
    """Return (m,) the range less that of points (m, 3) in a laser's plane, of sweeps `which` at t_ns (s,)."""
    if not len(points) or not len(laser.t_ns):
        return np.zeros(0)
    nearest = np.abs(laser.t_ns[None] - t_ns[:, None]).argmin(axis=1)
    reach = np.hypot(points[:, 0], points[:, 1])
    excess = laser.range_at(nearest[which], np.arctan2(points[:, 1], points[:, 0])) - reach
    return excess[np.isfinite(excess) & (excess > -HIDDEN_M)]


def _against_clouds(laser: Curves, peer: Window[PointCloud], T: Floats) -> Floats:
    parts: list[Floats] = []
    for view in views_of(peer, CLOUDS):
        points = view.points @ T[:3, :3].T + T[:3, 3]
        points = points[np.abs(points[:, 2]) < np.maximum(BESIDE_M, BESIDE * view.ranges)]
        which = np.zeros(len(points), np.int64)
        parts.append(_excess(laser, points, which, peer.stream.t_ns[[view.row]]))
    return np.concatenate(parts) if parts else np.zeros(0)
