"""Directions and lengths of laser beams, and occlusion of the field of view."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.recording import Stream
from transect.types import Image, LaserScan, PointCloud

from .model import Change, Event, Fault, leave_unchanged
from .samples import (
    change_of,
    changed_fraction,
    flat_values,
    with_flat,
    wrap,
    wrap_clouds,
)

DEFAULT_MAX_RANGE_M = 80.0
"""Maximum range of a laser whose scans do not state it."""


def beam_angles(stream: Stream, row: Ints) -> Floats:
    """Return (m,) angles of the beams of whole scans, whose rows (m,) are in order; rad in the scan plane."""
    number = np.arange(len(row)) - np.searchsorted(row, row, side="left")
    start, step = stream.array("start_angle", "angle_increment")[row].T
    return start + step * number


def directions(angles: Floats, T: Floats) -> Floats:
    """Return unit vectors (m, 3) of beams in a scan plane, rotated by ``T_vehicle_sensor`` (4, 4)."""
    return np.column_stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))]) @ T[:3, :3].T


def beam_lengths(stream: Stream, ranges: Floats, row: Ints) -> Floats:
    """Return the lengths (m,) of beams: the measured range, or else the maximum range of the laser, m."""
    limit = np.full(len(row), DEFAULT_MAX_RANGE_M)
    if "range_max" in stream.columns:
        limit = np.fmin(np.asarray(stream["range_max"], dtype=np.float64)[row], DEFAULT_MAX_RANGE_M)
    return np.where(np.isfinite(ranges), np.minimum(ranges, limit), limit)


def chunks(inside: Mask, row: Ints, scans: int = 64) -> Iterator[slice]:
    """Yield batches of the beams whose scans are in the window, by default 64 scans at a time.

    Batches start at the same scans for every severity, so that the random numbers of each beam are the same.
    """
    if not inside.any():
        return
    first, last = int(np.argmax(inside)), len(inside) - int(np.argmax(inside[::-1]))
    for start in range(first, last, scans):
        begin, end = np.searchsorted(row, [start, min(start + scans, last)])
        if end > begin:
            yield slice(int(begin), int(end))


def without_points(cloud: PointCloud, lost: Mask) -> PointCloud:
    """Remove points from a cloud: they are set to NaN if the cloud has NaN points, else left out."""
    if np.isnan(cloud.points).any():
        return dataclasses.replace(cloud, points=np.where(lost[:, None], np.nan, cloud.points))
    fields = {name: values[~lost] for name, values in cloud.fields.items()}
    return dataclasses.replace(cloud, points=cloud.points[~lost], fields=fields)


def occlude(stream: Stream, event: Event) -> Change:
    """Cover a constant part of the field of view."""
    if stream.type is Image and stream.loader is not None:
        return _images(stream, event)
    if stream.type is PointCloud and stream.loader is not None:
        return _clouds(stream, event)
    return _scans(stream, event) if stream.type is LaserScan else leave_unchanged(stream)


def _in_sector(event: Event, stream: Stream, angles: Floats, first: float, last: float) -> Mask:
    """Return which angles are in a sector with a width by severity and a random centre in [first, last]."""
    centre = event.generator(stream.name, "sector").uniform(first, last)
    difference = np.abs((angles - centre + np.pi) % (2 * np.pi) - np.pi)
    return difference <= event.severity * np.radians(event.parameters["degrees"]) / 2


def _scans(stream: Stream, event: Event) -> Change:
    ranges, row = flat_values(stream.table, "ranges")
    if not len(ranges):
        return leave_unchanged(stream)
    angles = beam_angles(stream, row)
    view = (float(angles.min()), float(angles.max()))
    covered = _in_sector(event, stream, angles, *view) & event.inside(stream)[row]
    table = with_flat(stream.table, "ranges", np.where(covered, np.nan, ranges))
    return change_of(stream, table, ["ranges"], changed_fraction(stream, table, "ranges"))


def _clouds(stream: Stream, event: Event) -> Change:
    def altered(index: int, cloud: PointCloud) -> tuple[PointCloud, Mask]:
        angles = np.arctan2(cloud.points[:, 1], cloud.points[:, 0])
        seen = np.isfinite(cloud.points).all(axis=1)
        covered = seen & _in_sector(event, stream, angles, -np.pi, np.pi)
        return without_points(cloud, covered), covered

    return wrap_clouds(stream, event, altered)


def _images(stream: Stream, event: Event) -> Change:
    size = np.sqrt(event.severity * event.parameters["area"])
    at = event.generator(stream.name, "patch").uniform(0.25, 0.75, 2)

    def altered(index: int, image: Image) -> Image:
        y, x = np.mgrid[: image.height, : image.width]
        distance = np.hypot((x / image.width - at[0]), (y / image.height - at[1])) / size * np.sqrt(np.pi)
        light = np.clip((distance - 1.0) / 0.1, 0.05, 1.0)  # the patch is out of focus, with a soft edge
        light = light[..., None] if image.data.ndim == 3 else light
        return dataclasses.replace(image, data=(image.data * light).astype(image.data.dtype))

    fraction = np.full(len(stream), event.severity * event.parameters["area"])
    return wrap(stream, event, event.inside(stream), fraction, altered)


FAULTS = (
    Fault(
        "occlusion",
        "a part of the field of view is covered: beams have no return, a patch of the image is dark",
        "60 degrees of a laser, a third of an image",
        (LaserScan, PointCloud, Image),
        occlude,
        parameters={"degrees": 60.0, "area": 1.0 / 3.0},
        unit="deg, fraction of an image",
        reasons=("BLOCKED",),
    ),
)
