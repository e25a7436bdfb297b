"""What each channel of a lidar measures wrongly, found by its own scans and taken off."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.calibration.lidar_channels import (
    RING,
    ChannelErrors,
    ScanSample,
    estimate_channel_errors,
    rings_of,
    sample_scan,
)
from transect.algorithms.clouds.deskewing import point_offsets
from transect.algorithms.odometry.lidar_odometer import LidarOdometer
from transect.base.arrays import Floats, Ints
from transect.engine import Node, Shape, outputs, param
from transect.types import PointCloud

NEAREST, FARTHEST = 1.0, 40.0
"""Metres between which returns count."""
SPACING = 0.5
"""Metres of way between two scans that are looked at: nearer ones see the same from the same place."""
LOOKS, MOST_SCANS = 100, 500
"""Scans of a round that are looked at; and all of it, where the lidar hardly moves."""
LEAST_LOOKS = 20
"""That must have been: fewer tell of channels by what happens to stand at one place."""
ROUNDS = 3
"""The odometry of the first has the faults in its poses; the next ones only what was left of them."""
POINTS = 10_000
"""Of a scan, that are looked at."""
CHANNELS = 512
"""Of a lidar: a cloud with larger numbers does not count its channels from 0."""
GOLDEN = 0.6180339887498949


@outputs
class CalibratedScan:
    """A scan without what its channels measure wrongly.

    Attributes
    ----------
    calibrated : PointCloud
        With points where a lidar without these faults had measured them; as it was if none are known.
    ranges : (k,)
        Metres by which each channel measures too far; once, at the end.
    elevations : (k,)
        Radians by which the points of each are told too high; once, at the end.
    """

    calibrated: PointCloud | None = None
    ranges: Annotated[NDArray[np.float64], Shape("k")] | None = None
    elevations: Annotated[NDArray[np.float64], Shape("k")] | None = None


class ChannelCalibration(Node, passes=2):
    """Finds by how much each channel of a lidar measures too far and too high, and takes it off.

    Such offsets of centimetres are the same for ever, and thicken every map. They are those with which ground
    that was seen from several places lies flat: in a first pass, 50 m or so of the way are looked at
    (`estimate_channel_errors`). They are applied as far as they exceed their uncertainty. What remains is
    found by the next 50 m, and the next. Clouds without `ring` pass as they are.
    """

    enabled: bool = param(True, doc="whether offsets of channels are estimated and removed")

    def reset(self) -> None:
        self.rounds = 0 if self.enabled else ROUNDS
        self.faults: ChannelErrors | None = None
        self._begin_round()

    def _begin_round(self) -> None:
        self.scans = 0
        self._begin_stretch()

    def _begin_stretch(self) -> None:
        """Forget what was seen: a lidar that was carried elsewhere would lay two places on each other."""
        self.odometry = LidarOdometer()
        self.looks: list[ScanSample] = []
        self.place: Floats | None = None

    def is_satisfied(self) -> bool:
        return self.rounds >= ROUNDS

    def process(self, cloud: PointCloud) -> CalibratedScan | None:
        if self.ctx.pass_index > 0:
            return CalibratedScan(self._mend(cloud))
        if not self.is_satisfied():
            self._look_at(self._mend(replace(cloud, t_ns=cloud.t_ns or self.ctx.time)))
        return None

    def finish(self) -> CalibratedScan | None:
        """Say what was found, after the first pass; give it after the last."""
        if self.ctx.pass_index == 0:
            self._conclude()
        if self.faults is None:
            return None
        if self.ctx.pass_index == 0:
            self.ctx.conclude(describe(self.faults))
        return CalibratedScan(None, self.faults.ranges, self.faults.elevations)

    def _mend(self, cloud: PointCloud) -> PointCloud:
        if self.faults is None or RING not in cloud.fields:
            return cloud
        return replace(cloud, points=self.faults.correct(cloud))

    def _look_at(self, cloud: PointCloud) -> None:
        """Take a scan, as long as more is to be known."""
        if not has_channels(cloud):
            self.rounds = ROUNDS
            return
        if self.odometry.is_lost(cloud.t_ns):
            self._end_stretch()
        self.scans += 1
        found = self.odometry.register_cloud(cloud)
        if found.pose is not None:
            self._look(cloud, found.pose[:3, 3])
        if len(self.looks) >= LOOKS or self.scans >= MOST_SCANS:
            self._conclude()

    def _end_stretch(self) -> None:
        """Take what a stretch told, or begin another one if it was too short."""
        if len(self.looks) >= LEAST_LOOKS:
            self._conclude()
        else:
            self._begin_stretch()

    def _look(self, cloud: PointCloud, place: Floats) -> None:
        """Look at a scan, if the odometry has it far from the one before."""
        if self.place is None or np.linalg.norm(place - self.place) >= SPACING:
            seen = self._see(cloud)
            if seen is not None:
                self.looks.append(seen)
                self.place = place

    def _see(self, cloud: PointCloud) -> ScanSample | None:
        """Return what the last scan of the odometry saw, where it found its place; some points of it."""
        points = np.asarray(cloud.points, np.float64)
        away = np.einsum("ij,ij->i", points, points)
        rows = pick(np.flatnonzero((away > NEAREST**2) & (away < FARTHEST**2)))
        offset_ns = point_offsets(cloud, self.odometry.period_ns)
        when = np.zeros(len(rows), np.int64) if offset_ns is None else offset_ns[rows]
        poses = self.odometry.poses_at(when)
        return None if poses is None else sample_scan(points[rows], rings_of(cloud)[rows], poses)

    def _conclude(self) -> None:
        """Find the faults by what was seen in a round, beside those that were taken off before."""
        found = estimate_channel_errors(self.looks) if len(self.looks) >= LEAST_LOOKS else None
        if found is not None:
            self.faults = found if self.faults is None else self.faults.add(found)
        self.rounds += 1
        self._begin_round()


def has_channels(cloud: PointCloud) -> bool:
    """Tell whether a cloud says of which channel each point is."""
    if RING not in cloud.fields:
        return False
    ring = rings_of(cloud)
    return bool((ring >= 0).all() and (ring < CHANNELS).all())


def pick(rows: Ints) -> Ints:
    """Return at most about `POINTS` of rows (n,), spread evenly, in step with no channel."""
    share = POINTS / max(len(rows), 1)
    return rows[np.arange(len(rows)) * GOLDEN % 1.0 < share]


def describe(faults: ChannelErrors) -> str:
    """Say how large the faults were."""
    (far, up), (known, known_up) = faults.rms()
    return (
        f"channels: ranges were off by {1e3 * far:.0f} mm (known to {1e3 * known:.0f}), elevations by "
        f"{np.degrees(up):.3f} deg (known to {np.degrees(known_up):.3f}), root mean squares of "
        f"{int((faults.counts > 0).sum())} channels; taken off"
    )
