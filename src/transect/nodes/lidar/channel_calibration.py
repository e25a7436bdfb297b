"""Estimation and correction of range and elevation offsets of lidar channels."""

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


@outputs
class CalibratedScan:
    """A scan with corrected channels."""

    calibrated: PointCloud | None = None  # unchanged if no offsets are known
    ranges: Annotated[NDArray[np.float64], Shape("k")] | None = None  # m, of each channel; at the end
    elevations: Annotated[NDArray[np.float64], Shape("k")] | None = None  # rad, of each channel; at the end


class ChannelCalibration(Node, passes=2):
    """Estimates the range and elevation offset of each channel of a lidar, and corrects them.

    Constant offsets of centimetres add noise to all maps. They are estimated in a first pass, from about 50 m
    of the path per round, such that ground measured from several positions becomes flat
    (`estimate_channel_errors`). Estimates are shrunk by their uncertainty; further rounds estimate the
    residual. Clouds without `ring` are not changed.
    """

    enabled: bool = param(True, doc="whether offsets of channels are estimated and removed")
    views_per_round: int = param(100, ge=1, doc="number of scans of a round of the estimate")
    min_views: int = param(
        20, ge=1, doc="smallest number of scans of an estimate: fewer are biased by single objects"
    )
    max_round_scans: int = param(
        500, ge=1, doc="number of scans after which a round ends, for a lidar that moves little"
    )
    rounds: int = param(
        3,
        ge=1,
        doc="number of rounds; offsets distort the odometry of the first one, and less so that of later ones",
    )
    view_spacing: float = param(
        0.5, ge=0, unit="m", doc="smallest distance between two scans; closer ones are redundant"
    )
    max_view_points: int = param(10_000, ge=100, doc="largest number of points of a scan")
    min_range: float = param(1.0, ge=0, unit="m", doc="smallest range of the returns that are used")
    max_range: float = param(40.0, gt=0, unit="m", doc="largest range of the returns that are used")

    def reset(self) -> None:
        self.finished_rounds = 0 if self.enabled else self.rounds
        self.faults: ChannelErrors | None = None
        self._start_round()

    def _start_round(self) -> None:
        self.scans = 0
        self._start_segment()

    def _start_segment(self) -> None:
        """Drop all views, since those of a lidar that was carried elsewhere have no common frame."""
        self.odometry = LidarOdometer()
        self.views: list[ScanSample] = []
        self.last_position: Floats | None = None

    def is_satisfied(self) -> bool:
        return self.finished_rounds >= self.rounds

    def process(self, cloud: PointCloud) -> CalibratedScan | None:
        if self.ctx.pass_index > 0:
            return CalibratedScan(self._correct(cloud))
        if not self.is_satisfied():
            self._process_scan(self._correct(replace(cloud, t_ns=cloud.t_ns or self.ctx.time)))
        return None

    def finish(self) -> CalibratedScan | None:
        """Report the offsets after the first pass; return them after the last."""
        if self.ctx.pass_index == 0:
            self._conclude()
        if self.faults is None:
            return None
        if self.ctx.pass_index == 0:
            self.ctx.conclude(describe_faults(self.faults))
        return CalibratedScan(None, self.faults.ranges, self.faults.elevations)

    def _correct(self, cloud: PointCloud) -> PointCloud:
        if self.faults is None or RING not in cloud.fields:
            return cloud
        return replace(cloud, points=self.faults.correct(cloud))

    def _process_scan(self, cloud: PointCloud) -> None:
        """Process a scan, as long as more views are needed."""
        if not has_channels(cloud):
            self.finished_rounds = self.rounds
            return
        if self.odometry.is_lost(cloud.t_ns):
            self._end_segment()
        self.scans += 1
        found = self.odometry.register_cloud(cloud)
        if found.pose is not None:
            self._add_view(cloud, found.pose[:3, 3])
        if len(self.views) >= self.views_per_round or self.scans >= self.max_round_scans:
            self._conclude()

    def _end_segment(self) -> None:
        """Use the views of a segment, or start another one if they are too few."""
        if len(self.views) >= self.min_views:
            self._conclude()
        else:
            self._start_segment()

    def _add_view(self, cloud: PointCloud, position: Floats) -> None:
        """Add a view of a scan that is far from the last view."""
        if self.last_position is None or np.linalg.norm(position - self.last_position) >= self.view_spacing:
            view = self._make_view(cloud)
            if view is not None:
                self.views.append(view)
                self.last_position = position

    def _make_view(self, cloud: PointCloud) -> ScanSample | None:
        """Return a view of the last scan of the odometry, if it has a pose; a subset of its points."""
        points = np.asarray(cloud.points, np.float64)
        squared_range = np.einsum("ij,ij->i", points, points)
        in_range = (squared_range > self.min_range**2) & (squared_range < self.max_range**2)
        rows = select_rows(np.flatnonzero(in_range), self.max_view_points)
        offset_ns = point_offsets(cloud, self.odometry.period_ns)
        times_ns = np.zeros(len(rows), np.int64) if offset_ns is None else offset_ns[rows]
        poses = self.odometry.poses_at(times_ns)
        return None if poses is None else sample_scan(points[rows], rings_of(cloud)[rows], poses)

    def _conclude(self) -> None:
        """Estimate the offsets from the views of a round, and add them to those of earlier rounds."""
        found = estimate_channel_errors(self.views) if len(self.views) >= self.min_views else None
        if found is not None:
            self.faults = found if self.faults is None else self.faults.add(found)
        self.finished_rounds += 1
        self._start_round()


def has_channels(cloud: PointCloud, max_channels: int = 512) -> bool:
    """Return whether a cloud has a valid channel number for each point."""
    if RING not in cloud.fields:
        return False
    ring = rings_of(cloud)
    return bool((ring >= 0).all() and (ring < max_channels).all())


def select_rows(rows: Ints, max_count: int) -> Ints:
    """Return at most about `max_count` of rows (n,), evenly spread without aliasing with channels."""
    golden_ratio, fraction = 0.6180339887498949, max_count / max(len(rows), 1)
    return rows[np.arange(len(rows)) * golden_ratio % 1.0 < fraction]


def describe_faults(faults: ChannelErrors) -> str:
    """Return a sentence on the size of the offsets."""
    (range_rms, elevation_rms), (range_sigma, elevation_sigma) = faults.rms()
    return (
        f"channels: range offsets of {1e3 * range_rms:.0f} mm (sigma {1e3 * range_sigma:.0f}), "
        f"elevation offsets of {np.degrees(elevation_rms):.3f} deg "
        f"(sigma {np.degrees(elevation_sigma):.3f}), "
        f"RMS of {int((faults.counts > 0).sum())} channels; corrected"
    )
