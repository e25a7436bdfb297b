"""Scan to map: where a lidar is, from one scan to the next.

A scan is straightened to its *middle*: a wrong velocity then bends its two halves against each other, which
moves the whole hardly at all. Straightened to its end by the motion since the scan before, an error of a pose
comes back in the next with the other sign and never fades; to its first point, it grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import se3

from ..clouds.deskewing import deskew
from ..registration.gicp import Aligned, Limits, Prepared, align, prepare, thin
from .lidar_sweep import Before, Fitted, Slice, Sweep, cut, fit, rigid
from .lidar_uncertainty import Unsteadiness

COARSER = 2.0
"""Voxels of scans are so much larger where nothing is known of the motion."""
LEAST_STEP_NS = 10_000_000
"""Between the middles of scans, which may overlap where one has no times: velocities stay finite."""
NOISE = 0.02
"""Metres: of a lidar's ranges; nothing that is smaller can be seen in a scan."""
AGAIN = 0.7
"""Of the last scan's share of partners that one must have of which nothing tells where it is."""
FORESEEN = 0.5
"""Of the least share that a scan must have which is where it should be: over a crest most ground is new."""
REACHES = (6.0, 2.0)
"""Such voxels to the farthest partner: first far, then near."""


class LocalMap(Protocol):
    """What scans are aligned to and added to."""

    def align(self, scan: Prepared, guess: ArrayLike, limits: Limits | None = None) -> Aligned: ...

    def insert(self, parts: Sequence[Prepared], poses: Floats) -> None: ...


@dataclass(frozen=True, eq=False)
class LidarScan:
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

    @property
    def seconds(self) -> Floats | None:
        """(n,) from its middle to when each point was measured."""
        return None if self.offset_ns is None else (self.offset_ns - self.half_ns) / NS

    def straight(self, velocity: Floats) -> Floats:
        """Points (n, 3) as at its middle, for a steady velocity (6,) of the sensor in its own frame."""
        return self.points if self.seconds is None else deskew(self.points, self.seconds, velocity)


@dataclass(frozen=True, eq=False)
class ScanToMapSettings:
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
class ScanPose:
    """What a scan came to.

    Attributes
    ----------
    pose : (4, 4)
        ``T_map_sensor`` at the scan's time.
    fitted : Fitted
        The scan on the map: the share of points that had a partner, how well it is held.
    sweep : Sweep
        Where the sensor was during the scan.
    points : (n, 3)
        The thinned scan in the map's frame, straightened.
    believed : bool
        Whether partners are enough and the alignment came to rest; if not, nothing else changed.
    covariance : (6, 6) or None
        Of the motion since the last scan, in the sensor's axes; None as long as nothing tells.
    """

    pose: Floats
    fitted: Fitted
    sweep: Sweep
    points: Floats
    believed: bool
    covariance: Floats | None


class ScanToMap:
    """Poses of scans against a map that grows with them.

    Parameters
    ----------
    local_map : LocalMap
        Empty.
    settings : ScanToMapSettings

    Attributes
    ----------
    begun : (n, 3)
        The thinned first scan in the map's frame, straightened, from the second scan on.
    """

    def __init__(self, local_map: LocalMap, settings: ScanToMapSettings) -> None:
        self.map, self.settings = local_map, settings
        self.pose, self.velocity, self.middle_ns = np.eye(4), np.zeros(6), 0
        self.unsteadiness = Unsteadiness()
        self.first: LidarScan | None = None
        self.before: Floats | None = None
        self.share = 0.0
        self.missed = True
        self.begun = np.zeros((0, 3))

    def begin(self, first: LidarScan) -> None:
        """Take the first scan, whose pose is the identity; its own motion is known with the second."""
        self.first = first

    def step(self, scan: LidarScan, *, lost: bool = False) -> ScanPose:
        """Align the next scan; `lost` if it may be anywhere."""
        if self.first is not None:
            self._start(self.first, scan)
            self.first = None
        seconds = max(scan.middle_ns - self.middle_ns, LEAST_STEP_NS) / NS
        found = self._fit(scan, seconds, lost=lost)
        pose, points = found.aligned.T_target_source, found.points
        believed = found.fits(self._least_share(found, scan, seconds, lost=lost))
        self.missed = not believed
        if believed:
            self.share = found.share
            self.unsteadiness.add(Before(self.pose, seconds).velocity_to(pose), seconds)
            self.map.insert(found.clouds, pose @ found.bends)
            self.pose, self.velocity, self.middle_ns = pose, found.velocity, scan.middle_ns
            self.before = points
        sweep = found.sweep(scan.half_ns)
        [begin] = sweep.poses_at(np.zeros(1, np.int64))
        covariance = self.unsteadiness.covariance(found.aligned) if believed else None
        return ScanPose(begin, found, sweep, se3.apply(pose, points), believed, covariance)

    def forecast(self, scan: LidarScan) -> Floats:
        """Return ``T_map_sensor`` (4, 4) at a scan's time, had the last velocity gone on."""
        return self.pose @ se3.exp(self.velocity * ((scan.t_ns - self.middle_ns) / NS))

    def _least_share(self, found: Fitted, scan: LidarScan, seconds: float, *, lost: bool) -> float:
        """Return the share of partners by which a fit is believed: the less, the better it was foreseen.

        Over a crest 36 % of the points of a scan had a partner within centimetres of where it should be. On
        rough ground 42 % had one 48 m away; of those that are where they should be, 95 %.
        """
        least = self.settings.least_share
        expected = self.pose @ se3.exp(self.velocity * seconds)
        moved = se3.log(se3.invert(expected) @ found.aligned.T_target_source)
        foreseen = self._move(moved, scan) < self.settings.voxel
        if foreseen and not lost:
            return least if self.missed else FORESEEN * least
        return max(least, AGAIN * self.share) if lost or self.missed else least

    def _fit(self, scan: LidarScan, seconds: float, *, lost: bool) -> Fitted:
        """Lay a scan on the map by the last velocity; else from farther away; again if it was bent."""
        before, limits = Before(self.pose, seconds), self.settings.limits
        motion = se3.exp(self.velocity * seconds)
        slices = self._cut(scan, self.velocity)
        found = fit(self.map, slices, self.pose @ motion, self.velocity, before, limits)
        enough = self._least_share(found, scan, seconds, lost=lost)
        if not found.fits(enough) and self.before is not None:
            points = np.concatenate([each.cloud.points for each in slices])
            guess = self.pose @ self._coarse(self.before, points, motion)
            again = fit(self.map, slices, guess, self.velocity, before, limits)
            found = max(found, again, key=lambda each: (each.aligned.converged, each.share))
        if self._bend(found.velocity - self.velocity, scan) > self.settings.voxel / 2:
            slices, guess = self._cut(scan, found.velocity), found.aligned.T_target_source
            found = fit(self.map, slices, guess, found.velocity, before, limits)
        return found

    def _cut(self, scan: LidarScan, velocity: Floats) -> list[Slice]:
        """Return the slices of a scan, straightened."""
        return cut(scan.straight(velocity), scan.seconds, self.settings.voxel)

    def _start(self, first: LidarScan, second: LidarScan) -> None:
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
        begun = thin(first.straight(velocity), self.settings.voxel)
        self.pose = se3.exp(velocity * (first.half_ns / NS))
        self.velocity, self.middle_ns, self.before = velocity, first.middle_ns, begun.points
        self.map.insert([begun], self.pose[None])
        self.begun = se3.apply(self.pose, begun.points)

    def _coarse(self, old: Floats, new: Floats, guess: Floats) -> Floats:
        """Motion (4, 4) from points (n, 3) to points (m, 3), whose partners may be far away."""
        voxel = COARSER * self.settings.voxel
        target, source = prepare(old, voxel), thin(new, voxel)
        for reach in REACHES:
            limits = Limits(reach * voxel, 50, 1e-3, 1e-3)
            guess = rigid(align(target, source, guess, "GICP", limits).T_target_source)
        return guess

    def _bend(self, change: Floats, scan: LidarScan) -> float:
        """Return how far (m) a change of velocity (6,) moves the last point, at the median range."""
        return self._move(change, scan) * scan.half_ns / NS

    @staticmethod
    def _move(twist: Floats, scan: LidarScan) -> float:
        """Return how far (m) a small motion (6,) moves points at the median range."""
        middle = float(np.median(np.linalg.norm(scan.points[::16], axis=1)))
        return float(np.linalg.norm(twist[:3]) + np.linalg.norm(twist[3:]) * middle)
