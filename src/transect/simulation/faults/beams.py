"""Beams of lasers: where they point and how far they reach."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.recording import Stream
from transect.types import PointCloud

FARTHEST = 80.0
"""Metres; a laser's reach where its scans do not say."""
ROWS = 64
"""Scans that are worked on together."""


def beam_angles(stream: Stream, row: Ints) -> Floats:
    """Return (m,) angles of the beams of whole scans, whose rows (m,) are in order; rad in the scan plane."""
    number = np.arange(len(row)) - np.searchsorted(row, row, side="left")
    start, step = stream.array("start_angle", "angle_increment")[row].T
    return start + step * number


def directions(angles: Floats, T: Floats) -> Floats:
    """Return unit vectors (m, 3) of beams in a scan plane, turned as ``T_vehicle_sensor`` (4, 4) says."""
    return np.column_stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))]) @ T[:3, :3].T


def reach(stream: Stream, ranges: Floats, row: Ints) -> Floats:
    """Return (m,) how far beams go: to what they measured, else to the end of the laser's reach, m."""
    limit = np.full(len(row), FARTHEST)
    if "range_max" in stream.columns:
        limit = np.fmin(np.asarray(stream["range_max"], dtype=np.float64)[row], FARTHEST)
    return np.where(np.isfinite(ranges), np.minimum(ranges, limit), limit)


def chunks(inside: Mask, row: Ints) -> Iterator[slice]:
    """Yield parts of the beams whose scans lie in the window, some scans at a time.

    Parts begin at the same scans whatever the severity, so that each beam keeps its luck.
    """
    if not inside.any():
        return
    first, last = int(np.argmax(inside)), len(inside) - int(np.argmax(inside[::-1]))
    for start in range(first, last, ROWS):
        begin, end = np.searchsorted(row, [start, min(start + ROWS, last)])
        if end > begin:
            yield slice(int(begin), int(end))


def without_points(cloud: PointCloud, lost: Mask) -> PointCloud:
    """Return a cloud without points: they are NaN where the cloud has such points, else left out."""
    if np.isnan(cloud.points).any():
        return dataclasses.replace(cloud, points=np.where(lost[:, None], np.nan, cloud.points))
    fields = {name: values[~lost] for name, values in cloud.fields.items()}
    return dataclasses.replace(cloud, points=cloud.points[~lost], fields=fields)
