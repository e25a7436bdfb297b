"""Scan to map: where a lidar is, from one scan to the next.

A scan is straightened to its *middle*: a wrong velocity then bends its two halves against each other, which
moves the whole hardly at all. Straightened to its end by the motion since the scan before, an error of a pose
comes back in the next with the other sign and never fades; to its first point, it grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import rotations, se3
from transect.nodes.registration._small_gicp import Aligned, Limits, Prepared, align, prepare, thin

from .._deskewing import straighten
from .unsteadiness import Unsteadiness

COARSER = 2.0
"""Voxels of scans are so much larger where nothing is known of the motion."""
LEAST_STEP_NS = 10_000_000
"""Between the middles of scans, which may overlap where one has no times: velocities stay finite."""
NOISE = 0.02
"""Metres: of a lidar's ranges; nothing that is smaller can be seen in a scan."""
REACHES = (6.0, 2.0)
"""Such voxels to the farthest partner: first far, then near."""


class LocalMap(Protocol):
    """What scans are aligned to and added to."""

    def align(self, scan: Prepared, guess: ArrayLike, limits: Limits | None = None) -> Aligned: ...

    def insert(self, scan: Prepared, pose: ArrayLike) -> None: ...


@dataclass(frozen=True, eq=False)
class Scan:
    """Points (n, 3) of one scan in the sensor's frame, measured so many ns (n,) after the scan's time."""

    points: Floats
    offset_ns: Ints | None
    t_ns: int

    @property
    def half_ns(self) -> int:
        """From its time to its middle."""
        return 0 if self.offset_ns is None else int(self.offset_ns.max(initial=0)) // 2

    @property
    def middle_ns(self) -> int:
        """When half of its points had been measured."""
        return self.t_ns + self.half_ns

    def straight(self, velocity: Floats) -> Floats:
        """Points (n, 3) as at its middle, for a steady velocity (6,) of the sensor in its own frame."""
        if self.offset_ns is None:
            return self.points
        return straighten(self.points, (self.offset_ns - self.half_ns) / NS, velocity)


@dataclass(frozen=True, eq=False)
class Settings:
    """How scans are thinned and what is believed.

    Attributes
    ----------
    voxel : float
        Edge in metres to which scans are thinned.
    least_share : float
        Of the points, that must have a partner in the map.
    limits : Limits
        Of an alignment.
    """

    voxel: float
    least_share: float
    limits: Limits


@dataclass(frozen=True, eq=False)
class Step:
    """What a scan came to.

    Attributes
    ----------
    pose : (4, 4)
        ``T_map_sensor`` at the scan's time.
    aligned : Aligned
        To the map, at the scan's middle.
    points : (n, 3)
        The thinned scan in the map's frame, straightened.
    share : float
        Of the points, that had a partner.
    believed : bool
        Whether these are enough and the alignment came to rest; if not, nothing else changed.
    covariance : (6, 6) or None
        Of the motion since the last scan, in the sensor's axes; None as long as nothing tells.
    """

    pose: Floats
    aligned: Aligned
    points: Floats
    share: float
    believed: bool
    covariance: Floats | None


class Odometer:
    """Poses of scans against a map that grows with them.

    Parameters
    ----------
    local_map : LocalMap
        Empty.
    settings : Settings

    Attributes
    ----------
    begun : (n, 3)
        The thinned first scan in the map's frame, straightened, from the second scan on.
    """

    def __init__(self, local_map: LocalMap, settings: Settings) -> None:
        self.map, self.settings = local_map, settings
        self.pose, self.velocity, self.middle_ns = np.eye(4), np.zeros(6), 0
        self.unsteadiness = Unsteadiness()
        self.first: Scan | None = None
        self.before: Floats | None = None
        self.begun = np.zeros((0, 3))

    def begin(self, first: Scan) -> None:
        """Take the first scan, whose pose is the identity; its own motion is known with the second."""
        self.first = first

    def step(self, scan: Scan) -> Step:
        """Align the next scan."""
        if self.first is not None:
            self._start(self.first, scan)
            self.first = None
        seconds = max(scan.middle_ns - self.middle_ns, LEAST_STEP_NS) / NS
        found, prepared, velocity = self._align(scan, seconds)
        pose, points = _rigid(found.T_target_source), prepared.points
        share = found.inliers / max(len(prepared), 1)
        believed = found.converged and share >= self.settings.least_share
        if believed:
            self.map.insert(prepared, pose)
            self.pose, self.velocity, self.middle_ns, self.before = pose, velocity, scan.middle_ns, points
            self.unsteadiness.add(velocity, seconds)
        begin = pose @ se3.exp(-velocity * (scan.half_ns / NS))
        covariance = self.unsteadiness.covariance(found)
        return Step(begin, found, se3.apply(pose, points), share, believed, covariance)

    def _align(self, scan: Scan, seconds: float) -> tuple[Aligned, Prepared, Floats]:
        """Align by the last velocity; if that does not fit, from farther away; again if the scan was bent.

        Return also the velocity (6,) since the last scan.
        """
        motion = se3.exp(self.velocity * seconds)
        prepared = self._prepare(scan, self.velocity)
        found = self.map.align(prepared, self.pose @ motion, self.settings.limits)
        fits = found.converged and found.inliers >= self.settings.least_share * len(prepared)
        if not fits and self.before is not None:
            guess = self.pose @ self._coarse(self.before, prepared.points, motion)
            again = self.map.align(prepared, guess, self.settings.limits)
            better = (again.converged, again.inliers) > (found.converged, found.inliers)
            found = again if better else found
        velocity = self._velocity(found, seconds)
        if self._bend(velocity - self.velocity, scan) > self.settings.voxel / 2:
            prepared = self._prepare(scan, velocity)
            found = self.map.align(prepared, found.T_target_source, self.settings.limits)
            velocity = self._velocity(found, seconds)
        return found, prepared, velocity

    def _velocity(self, found: Aligned, seconds: float) -> Floats:
        """Return the velocity (6,) since the last scan."""
        return se3.log(se3.invert(self.pose) @ _rigid(found.T_target_source)) / seconds

    def _start(self, first: Scan, second: Scan) -> None:
        """Find the motion between the first two scans, straighten the first by it, and begin the map.

        Both are bent alike, so the motion between them is right as they are, but for the share of a
        revolution that the sensor turned meanwhile: it sees the same point so much earlier or later. Where
        that matters, they are straightened and aligned again.
        """
        seconds = max(second.middle_ns - first.middle_ns, LEAST_STEP_NS) / NS
        velocity = se3.log(self._coarse(first.points, second.points, np.eye(4))) / seconds
        turned = float(np.linalg.norm(velocity[3:])) * seconds / (2 * np.pi)
        if self._bend(turned * velocity, first) > NOISE:
            old, new = first.straight(velocity), second.straight(velocity)
            velocity = se3.log(self._coarse(old, new, se3.exp(velocity * seconds))) / seconds
        begun = self._prepare(first, velocity)
        self.pose = se3.exp(velocity * (first.half_ns / NS))
        self.velocity, self.middle_ns, self.before = velocity, first.middle_ns, begun.points
        self.map.insert(begun, self.pose)
        self.begun = se3.apply(self.pose, begun.points)

    def _coarse(self, old: Floats, new: Floats, guess: Floats) -> Floats:
        """Motion (4, 4) from points (n, 3) to points (m, 3), whose partners may be far away."""
        voxel = COARSER * self.settings.voxel
        target, source = prepare(old, voxel), thin(new, voxel)
        for reach in REACHES:
            limits = Limits(reach * voxel, 50, 1e-3, 1e-3)
            guess = _rigid(align(target, source, guess, "GICP", limits).T_target_source)
        return guess

    def _prepare(self, scan: Scan, velocity: Floats) -> Prepared:
        return thin(scan.straight(velocity), self.settings.voxel)

    def _bend(self, change: Floats, scan: Scan) -> float:
        """Return how far (m) a change of velocity (6,) moves the last point, at the median range."""
        middle = float(np.median(np.linalg.norm(scan.points[::16], axis=1)))
        speed = np.linalg.norm(change[:3]) + np.linalg.norm(change[3:]) * middle
        return float(speed) * scan.half_ns / NS


def _rigid(transform: Floats) -> Floats:
    """Return a transform (4, 4) whose rotation is one again: errors of rounding double with each product."""
    return se3.from_matrix(rotations.nearest_rotation(transform[:3, :3]), transform[:3, 3])
