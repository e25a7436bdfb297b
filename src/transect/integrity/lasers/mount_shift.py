"""How far a sensor that should stand still has turned and moved, by what it sees and feels.

The first windows tell what it saw; later ones are laid on that by iterative closest points. What all range
sensors of a robot see move is the robot; what one of them sees move is its mount.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from transect.algorithms.registration.icp import LittleGain, fit_planes, iterate, keep_near
from transect.base.arrays import Floats
from transect.geometry import rotations, se3, surfaces
from transect.geometry.neighbours import voxel_means
from transect.geometry.planar import points_from_polar
from transect.integrity.model import Surroundings
from transect.integrity.windows import Window
from transect.types import LaserScan, Odometry

from .background import find_cloud
from .overlap import curves_of
from .point_clouds import views_of
from .sweeps import sweeps_of

FIRST, LOST = 2, 60
"""Windows that tell what a sensor sees at first; and without a sight of that, after which it is learned anew.

A cloud that passes, or people, hide it for less.
"""
CHANGED_M, CHANGED = 0.03, 0.005
"""Metres, and part of the range, beyond which a point is not on a surface."""
SMALL_RAD, SMALL_M = np.radians(0.2), 0.01
"""If the first step comes out smaller, the sensor has not moved by more."""
REACHES = (1.5, 0.4, 0.15)
"""Metres within which points are partners, step by step; the second is that of the first step."""
MOST_STEPS, GAIN_M = 15, 1e-4
FITS = 0.8
"""Of what is usual: the part of what is seen that lies on what was seen at first, if nothing else changed."""
ACROSS = 0.1
"""Part of the surfaces that must stand across a way for it to be seen: along a corridor it is not."""
GAIN = 0.05
"""Part of what is seen that must fit better after a turn and a shift, for these to explain the change."""
TURNS = np.radians(np.arange(-6.0, 6.01, 0.5))
"""Of a planar laser that are tried first, rad."""
ROLLED_M, ROLLED_RAD = 0.005, np.radians(0.1)
"""Metres and rad by which the dead reckoning of a robot that stands may change."""
VOXEL_M, MOST_POINTS = 0.3, 1500
LEAST_POINTS = 30
LEAST_SWEEPS = 3
"""Sweeps of a window that show which returns are unstable."""


@dataclass(frozen=True)
class Shift:
    """How a sensor has turned, rad, and moved, m; or the reason why that cannot be told."""

    angle: float = np.nan
    metres: float = np.nan
    why: str = ""


STILL = Shift(0.0, 0.0)
OTHER_SCENE, SEES_LITTLE = Shift(why="CHANGED"), Shift(why="TOO_FEW")
OBSCURED = Shift(why="OBSCURED")


@dataclass(frozen=True, eq=False)
class Surface:
    """Points (n, 3) that were seen, m, and their normals (n, 3)."""

    points: Floats
    normals: Floats

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self.points)

    def find_off(self, points: Floats) -> Floats:
        """Return how far points (n, 3) are off the surface, over what is a change; infinite if far off."""
        distance, partner = (np.asarray(e) for e in self._tree.query(points, distance_upper_bound=REACHES[0]))
        found = np.isfinite(distance)
        partner = np.where(found, partner, 0)
        there = self.points[partner]
        away = np.abs(np.einsum("ni,ni->n", self.normals[partner], points - there))
        return np.where(found, away / (CHANGED_M + CHANGED * np.linalg.norm(there, axis=1)), np.inf)

    def fit(self, points: Floats) -> float:
        """Return which part of the points (n, 3) is on the surface."""
        return float(np.mean(self.find_off(points) < 1.0)) if len(self.points) and len(points) else 0.0


class Stand:
    """What a range sensor saw at first, since the robot stands, and how it has moved since."""

    def __init__(self) -> None:
        self.forget()
        self.index = -1

    def forget(self) -> None:
        """Learn anew from the next window on."""
        self.first, self.shift, self.usual = None, None, 0.0
        self.parts: list[Floats] = []
        self.again, self.lost = False, 0

    def see(self, window: Window[Any], about: Surroundings) -> Shift | None:
        """Return how the sensor has moved; None while it is learned what it sees. Windows come in order."""
        if self.index == window.index:
            return self.shift
        if self.again or window.index > self.index + 1:
            self.forget()
        self.index = window.index
        self.shift = self._compare(window, about) if len(window) else None
        self.lost = self.lost + 1 if self.shift == OTHER_SCENE else 0
        self.again = self.lost >= LOST
        return self.shift

    def _compare(self, window: Window[Any], about: Surroundings) -> Shift | None:
        planar = issubclass(window.stream.type, LaserScan)
        if planar and _is_obscured(window, about):
            return OBSCURED
        points = _profile(window, about) if planar else _cloud(window)
        if self.first is None:
            self.parts.append(points)
            if len(self.parts) == FIRST:
                self.first = _planar_surface(self.parts[0]) if planar else _surface(np.vstack(self.parts))
                self.usual = self.first.fit(points)
            return None
        if len(self.first.points) < LEAST_POINTS or len(points) < LEAST_POINTS:
            return SEES_LITTLE
        return find_shift(self.first, points, self.usual, planar)


_STANDS: WeakKeyDictionary[Surroundings, dict[str, Stand]] = WeakKeyDictionary()


def shift_of(window: Window[Any], about: Surroundings) -> Shift | None:
    """Return how a range sensor has moved, found once for all checks of a session; None while learning."""
    return _STANDS.setdefault(about, {}).setdefault(window.stream.name, Stand()).see(window, about)


def forget(window: Window[Any], about: Surroundings) -> None:
    """Learn anew from the next window on what a range sensor sees."""
    _STANDS.setdefault(about, {}).setdefault(window.stream.name, Stand()).again = True


class Wheels:
    """Where dead reckonings were when the robot came to stand: slow creeping is no knock."""

    def __init__(self) -> None:
        self._first: dict[str, Floats] = {}

    def forget(self) -> None:
        """Learn anew."""
        self._first = {}

    def have_turned(self, windows: Sequence[Window[Any]]) -> bool:
        """Tell whether any went on since then, by more than a wheel at rest can."""
        told = [each for each in windows if issubclass(each.stream.type, Odometry) and len(each)]
        return any(self._goes_on(each) for each in told)

    def _goes_on(self, window: Window[Any]) -> bool:
        if not window.has("x", "y", "qz", "qw"):
            return False
        poses = window.array("x", "y", "qz", "qw")
        change = np.abs(poses - self._first.setdefault(window.stream.name, poses[0])).max(axis=0)
        return bool(np.max(change[:2]) > ROLLED_M or 2 * np.max(change[2:]) > ROLLED_RAD)


def _is_obscured(laser: Window[LaserScan], about: Surroundings) -> bool:
    """Tell whether a laser sees too many unstable returns, as in dust, for its surfaces to be known."""
    sweeps = sweeps_of(laser, about)
    return len(sweeps.ranges) >= LEAST_SWEEPS and find_cloud(sweeps) is not None


def _profile(laser: Window[LaserScan], about: Surroundings) -> Floats:
    """Return points (n, 3): the median range in each direction in which most sweeps had a return."""
    curves = curves_of(laser, about)
    often = np.isfinite(curves.ranges).sum(axis=0) * 2 > len(curves.ranges)
    middle = np.nanmedian(curves.ranges[:, often], axis=0)
    return points_from_polar(middle, curves.angles[often])


def _cloud(lidar: Window[Any]) -> Floats:
    [view] = views_of(lidar, 1)
    return voxel_means(view.points, VOXEL_M) if len(view.points) else view.points


def _surface(points: Floats) -> Surface:
    thin = voxel_means(points, VOXEL_M) if len(points) else points
    if len(thin) < LEAST_POINTS:
        return Surface(thin[:0], thin[:0])
    found = surfaces.normals(thin)
    flat = found.curvature < 0.1
    return Surface(thin[flat], found.normals[flat])


def _planar_surface(points: Floats) -> Surface:
    """Return points with a neighbour to each side on one surface, and normals in the plane of the scan."""
    if len(points) < 3:
        return Surface(points[:0], points[:0])
    reach = np.linalg.norm(points, axis=1)
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    near = steps < 0.1 + 0.03 * np.minimum(reach[1:], reach[:-1])
    good = near[:-1] & near[1:]
    along = (points[2:] - points[:-2])[good]
    across = np.column_stack([-along[:, 1], along[:, 0], np.zeros(len(along))])
    return Surface(points[1:-1][good], across / np.linalg.norm(across, axis=1)[:, None])


def find_shift(first: Surface, points: Floats, usual: float, planar: bool = False) -> Shift:
    """Return how a sensor has turned and moved that sees points (n, 3) where it saw a surface at first.

    `usual` is the part of the points that is on the surface while nothing has moved.
    """
    source = points[:: max(1, len(points) // MOST_POINTS)]
    fit = fit_planes(first.points, first.normals)
    step = iterate(source, first.points, np.eye(4), keep_near(REACHES[1]), fit, LittleGain(GAIN_M), 1)
    once, now = _shift(step.matrix, first), first.fit(source)
    if once.angle < SMALL_RAD and once.metres < SMALL_M and now >= FITS * usual:
        return once
    place = np.eye(4)
    if planar:
        place = min(
            _turns(), key=lambda T: float(np.minimum(first.find_off(se3.apply(T, source)), 5.0).mean())
        )
    for reach in REACHES:
        found = iterate(source, first.points, place, keep_near(reach), fit, LittleGain(GAIN_M), MOST_STEPS)
        place = found.matrix
    fits = first.fit(se3.apply(place, source))
    if fits >= FITS * usual and fits >= now + GAIN:
        return _shift(place, first)
    return STILL if now >= FITS * usual else OTHER_SCENE


def _shift(T: Floats, first: Surface) -> Shift:
    """Return the turn, and the way along the axes across which enough surfaces stand."""
    angle = float(np.linalg.norm(rotations.rotation_vector_from_matrix(T[:3, :3])))
    share, axes = np.linalg.eigh(np.einsum("ni,nj->ij", first.normals, first.normals) / len(first.normals))
    return Shift(angle, float(np.linalg.norm((axes.T @ T[:3, 3])[share > ACROSS])))


def _turns() -> list[Floats]:
    turns = (rotations.matrix_from_rotation_vector([0.0, 0.0, turn]) for turn in TURNS)
    return [se3.from_matrix(turn, np.zeros(3)) for turn in turns]
