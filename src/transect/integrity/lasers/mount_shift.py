"""Rotation and translation of a range sensor on a robot at rest, by its scans or clouds.

Later windows are registered to the first ones by iterative closest points. If all range sensors observe a
motion, the robot has moved; if only one of them does, its mount has moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from transect.algorithms.registration.icp import SmallImprovement, point_to_plane, run_icp, select_near_pairs
from transect.base.arrays import Floats
from transect.geometry import rotations, se3, surfaces
from transect.geometry.neighbours import voxel_means
from transect.geometry.planar import points_from_polar
from transect.integrity.model import CheckContext
from transect.integrity.windows import Window
from transect.types import LaserScan, Odometry

from .background import find_cloud
from .overlap import curves_of
from .point_clouds import points_of
from .sweeps import sweeps_of


@dataclass(frozen=True)
class MountShiftSettings:
    """Numbers of the registration to the first windows."""

    reference_windows: int = 2  # Windows of the reference.
    # Windows without the reference after which it is replaced; a cloud or people hide it for less.
    max_lost_windows: int = 60
    max_distance_m: float = 0.03  # Distance of a point on a surface, ...
    max_distance_ratio: float = 0.005  # ... plus this ratio of the range.
    small_rad: float = float(np.radians(0.2))  # The sensor has not moved if the first iteration is smaller.
    small_m: float = 0.01
    # Radii of the correspondences, stage by stage; the first iteration uses the second one.
    search_radii_m: tuple[float, ...] = (1.5, 0.4, 0.15)
    max_iterations: int = 15
    min_gain_m: float = 1e-4
    min_fit_ratio: float = 0.8  # Ratio of the usual fit to the reference if nothing else has changed.
    # Ratio of surfaces perpendicular to a translation that is observable, unlike that along a corridor.
    min_perpendicular_ratio: float = 0.1
    # Improvement of the fit by a rotation and translation that explain the change.
    min_fit_gain: float = 0.05
    # Initial rotations of a planar laser: start, stop, step.
    initial_turns_deg: tuple[float, ...] = (-6.0, 6.01, 0.5)
    max_rolled_m: float = 0.005  # Change of the dead reckoning of a robot that stands.
    max_rolled_rad: float = float(np.radians(0.1))
    voxel_m: float = 0.3
    max_points: int = 1500
    min_points: int = 30
    min_sweeps: int = 3  # Sweeps of a window that show which returns are unstable.


SETTINGS = MountShiftSettings()


@dataclass(frozen=True)
class MountShift:
    """Rotation, rad, and translation, m, of a sensor; or the reason why they are unknown."""

    angle: float = np.nan
    metres: float = np.nan
    reason: str = ""


NO_SHIFT = MountShift(0.0, 0.0)
OTHER_SCENE, TOO_FEW_POINTS = MountShift(reason="CHANGED"), MountShift(reason="TOO_FEW")
OBSCURED = MountShift(reason="OBSCURED")


@dataclass(frozen=True, eq=False)
class ReferenceSurface:
    """Points (n, 3) of the reference, m, and their normals (n, 3)."""

    points: Floats
    normals: Floats

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self.points)

    def relative_distances(self, points: Floats) -> Floats:
        """Return distances (n,) of points from the surface over the allowed one; infinite if far off."""
        distance, match = (
            np.asarray(e) for e in self._tree.query(points, distance_upper_bound=SETTINGS.search_radii_m[0])
        )
        found = np.isfinite(distance)
        match = np.where(found, match, 0)
        matched = self.points[match]
        away = np.abs(np.einsum("ni,ni->n", self.normals[match], points - matched))
        return np.where(
            found,
            away / (SETTINGS.max_distance_m + SETTINGS.max_distance_ratio * np.linalg.norm(matched, axis=1)),
            np.inf,
        )

    def fit(self, points: Floats) -> float:
        """Return the ratio of the points (n, 3) that are on the surface."""
        return (
            float(np.mean(self.relative_distances(points) < 1.0)) if len(self.points) and len(points) else 0.0
        )


class ReferenceView:
    """First view of a range sensor since the robot came to rest, and the sensor's motion since then."""

    def __init__(self) -> None:
        self.forget()
        self.index = -1

    def forget(self) -> None:
        """Restart with the next window."""
        self.first, self.shift, self.usual = None, None, 0.0
        self.parts: list[Floats] = []
        self.again, self.lost = False, 0

    def update(self, window: Window[Any], context: CheckContext) -> MountShift | None:
        """Return the motion of the sensor; None while learning. Windows come in order."""
        if self.index == window.index:
            return self.shift
        if self.again or window.index > self.index + 1:
            self.forget()
        self.index = window.index
        self.shift = self._compare(window, context) if len(window) else None
        self.lost = self.lost + 1 if self.shift == OTHER_SCENE else 0
        self.again = self.lost >= SETTINGS.max_lost_windows
        return self.shift

    def _compare(self, window: Window[Any], context: CheckContext) -> MountShift | None:
        planar = issubclass(window.stream.type, LaserScan)
        if planar and _is_obscured(window, context):
            return OBSCURED
        points = _profile(window, context) if planar else _cloud(window)
        if self.first is None:
            self.parts.append(points)
            if len(self.parts) == SETTINGS.reference_windows:
                self.first = _planar_surface(self.parts[0]) if planar else _surface(np.vstack(self.parts))
                self.usual = self.first.fit(points)
            return None
        if len(self.first.points) < SETTINGS.min_points or len(points) < SETTINGS.min_points:
            return TOO_FEW_POINTS
        return register_to_reference(self.first, points, self.usual, planar)


_VIEWS: WeakKeyDictionary[CheckContext, dict[str, ReferenceView]] = WeakKeyDictionary()


def find_mount_shift(window: Window[Any], context: CheckContext) -> MountShift | None:
    """Return the motion of a range sensor, computed once per session; None while learning."""
    return (
        _VIEWS.setdefault(context, {}).setdefault(window.stream.name, ReferenceView()).update(window, context)
    )


def forget(window: Window[Any], context: CheckContext) -> None:
    """Restart the reference of a range sensor with the next window."""
    _VIEWS.setdefault(context, {}).setdefault(window.stream.name, ReferenceView()).again = True


class DeadReckoningRest:
    """Poses of dead reckonings when the robot came to rest, to detect slow creeping."""

    def __init__(self) -> None:
        self._first: dict[str, Floats] = {}

    def forget(self) -> None:
        """Restart with the next window."""
        self._first = {}

    def has_moved(self, windows: Sequence[Window[Any]]) -> bool:
        """Return whether any pose has changed by more than the noise of wheels at rest."""
        odometries = [each for each in windows if issubclass(each.stream.type, Odometry) and len(each)]
        return any(self._has_changed(each) for each in odometries)

    def _has_changed(self, window: Window[Any]) -> bool:
        if not window.has("x", "y", "qz", "qw"):
            return False
        poses = window.array("x", "y", "qz", "qw")
        change = np.abs(poses - self._first.setdefault(window.stream.name, poses[0])).max(axis=0)
        return bool(
            np.max(change[:2]) > SETTINGS.max_rolled_m or 2 * np.max(change[2:]) > SETTINGS.max_rolled_rad
        )


def _is_obscured(laser: Window[LaserScan], context: CheckContext) -> bool:
    """Return whether a laser has too many unstable returns, as in dust, for a registration."""
    sweeps = sweeps_of(laser, context)
    return len(sweeps.ranges) >= SETTINGS.min_sweeps and find_cloud(sweeps) is not None


def _profile(laser: Window[LaserScan], context: CheckContext) -> Floats:
    """Return points (n, 3): the median range of each direction with a return in most sweeps."""
    curves = curves_of(laser, context)
    is_frequent = np.isfinite(curves.ranges).sum(axis=0) * 2 > len(curves.ranges)
    middle = np.nanmedian(curves.ranges[:, is_frequent], axis=0)
    return points_from_polar(middle, curves.angles[is_frequent])


def _cloud(lidar: Window[Any]) -> Floats:
    [view] = points_of(lidar, 1)
    return voxel_means(view.points, SETTINGS.voxel_m) if len(view.points) else view.points


def _surface(points: Floats) -> ReferenceSurface:
    reduced = voxel_means(points, SETTINGS.voxel_m) if len(points) else points
    if len(reduced) < SETTINGS.min_points:
        return ReferenceSurface(reduced[:0], reduced[:0])
    found = surfaces.normals(reduced)
    flat = found.curvature < 0.1
    return ReferenceSurface(reduced[flat], found.normals[flat])


def _planar_surface(points: Floats) -> ReferenceSurface:
    """Return points with neighbours on one surface, and normals in the plane of the scan."""
    if len(points) < 3:
        return ReferenceSurface(points[:0], points[:0])
    ranges = np.linalg.norm(points, axis=1)
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    near = steps < 0.1 + 0.03 * np.minimum(ranges[1:], ranges[:-1])
    good = near[:-1] & near[1:]
    along = (points[2:] - points[:-2])[good]
    across = np.column_stack([-along[:, 1], along[:, 0], np.zeros(len(along))])
    return ReferenceSurface(points[1:-1][good], across / np.linalg.norm(across, axis=1)[:, None])


def register_to_reference(
    first: ReferenceSurface, points: Floats, usual: float, planar: bool = False
) -> MountShift:
    """Return the motion of a sensor between the reference and points (n, 3).

    `usual` is the ratio of points on the reference while nothing has moved.
    """
    source = points[:: max(1, len(points) // SETTINGS.max_points)]
    fit = point_to_plane(first.points, first.normals)
    first_step = run_icp(
        source,
        first.points,
        np.eye(4),
        select_near_pairs(SETTINGS.search_radii_m[1]),
        fit,
        SmallImprovement(SETTINGS.min_gain_m),
        1,
    )
    once, now = _shift(first_step.matrix, first), first.fit(source)
    if (
        once.angle < SETTINGS.small_rad
        and once.metres < SETTINGS.small_m
        and now >= SETTINGS.min_fit_ratio * usual
    ):
        return once
    pose = np.eye(4)
    if planar:
        pose = min(
            _turns(),
            key=lambda T: float(np.minimum(first.relative_distances(se3.apply(T, source)), 5.0).mean()),
        )
    for radius in SETTINGS.search_radii_m:
        found = run_icp(
            source,
            first.points,
            pose,
            select_near_pairs(radius),
            fit,
            SmallImprovement(SETTINGS.min_gain_m),
            SETTINGS.max_iterations,
        )
        pose = found.matrix
    fits = first.fit(se3.apply(pose, source))
    if fits >= SETTINGS.min_fit_ratio * usual and fits >= now + SETTINGS.min_fit_gain:
        return _shift(pose, first)
    return NO_SHIFT if now >= SETTINGS.min_fit_ratio * usual else OTHER_SCENE


def _shift(T: Floats, first: ReferenceSurface) -> MountShift:
    """Return the rotation, and the translation along axes with enough perpendicular surfaces."""
    angle = float(np.linalg.norm(rotations.rotation_vector_from_matrix(T[:3, :3])))
    ratios, axes = np.linalg.eigh(np.einsum("ni,nj->ij", first.normals, first.normals) / len(first.normals))
    return MountShift(
        angle, float(np.linalg.norm((axes.T @ T[:3, 3])[ratios > SETTINGS.min_perpendicular_ratio]))
    )


def _turns() -> list[Floats]:
    turns = (
        rotations.matrix_from_rotation_vector([0.0, 0.0, turn])
        for turn in np.radians(np.arange(*SETTINGS.initial_turns_deg))
    )
    return [se3.from_matrix(turn, np.zeros(3)) for turn in turns]
