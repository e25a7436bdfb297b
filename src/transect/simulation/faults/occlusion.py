"""Something sits on the sensor: a sector of beams that get nothing, a dark patch in the picture."""

from __future__ import annotations

import dataclasses

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.recording import Stream
from transect.types import Image, LaserScan, PointCloud

from . import beams
from ._columns import change_of, flat_values, share_of_beams, with_flat
from ._model import Change, Event, Fault, leave_alone
from ._payloads import wrap, wrap_clouds


def occlude(stream: Stream, event: Event) -> Change:
    """Cover a part of the view, the same all the time."""
    if stream.type is Image and stream.loader is not None:
        return _images(stream, event)
    if stream.type is PointCloud and stream.loader is not None:
        return _clouds(stream, event)
    return _scans(stream, event) if stream.type is LaserScan else leave_alone(stream)


def _in_sector(event: Event, stream: Stream, angles: Floats, first: float, last: float) -> Mask:
    """Return which angles lie in a sector as wide as the severity has it, its middle in [first, last]."""
    middle = event.generator(stream.name, "sector").uniform(first, last)
    away = np.abs((angles - middle + np.pi) % (2 * np.pi) - np.pi)
    return away <= event.severity * np.radians(event.parameters["degrees"]) / 2


def _scans(stream: Stream, event: Event) -> Change:
    ranges, row = flat_values(stream.table, "ranges")
    if not len(ranges):
        return leave_alone(stream)
    angles = beams.beam_angles(stream, row)
    view = (float(angles.min()), float(angles.max()))
    covered = _in_sector(event, stream, angles, *view) & event.inside(stream)[row]
    table = with_flat(stream.table, "ranges", np.where(covered, np.nan, ranges))
    return change_of(stream, table, ["ranges"], share_of_beams(stream, table, "ranges"))


def _clouds(stream: Stream, event: Event) -> Change:
    def altered(index: int, cloud: PointCloud) -> tuple[PointCloud, Mask]:
        angles = np.arctan2(cloud.points[:, 1], cloud.points[:, 0])
        seen = np.isfinite(cloud.points).all(axis=1)
        covered = seen & _in_sector(event, stream, angles, -np.pi, np.pi)
        return beams.without_points(cloud, covered), covered

    return wrap_clouds(stream, event, altered)


def _images(stream: Stream, event: Event) -> Change:
    size = np.sqrt(event.severity * event.parameters["area"])
    at = event.generator(stream.name, "patch").uniform(0.25, 0.75, 2)

    def altered(index: int, image: Image) -> Image:
        y, x = np.mgrid[: image.height, : image.width]
        away = np.hypot((x / image.width - at[0]), (y / image.height - at[1])) / size * np.sqrt(np.pi)
        light = np.clip((away - 1.0) / 0.1, 0.05, 1.0)  # the patch is out of focus: its rim is soft
        light = light[..., None] if image.data.ndim == 3 else light
        return dataclasses.replace(image, data=(image.data * light).astype(image.data.dtype))

    share = np.full(len(stream), event.severity * event.parameters["area"])
    return wrap(stream, event, event.inside(stream), share, altered)


FAULTS = (
    Fault(
        "occlusion",
        "a part of the view is covered: beams get no return, a patch of the picture is dark",
        "60 degrees of a laser, a third of a picture",
        (LaserScan, PointCloud, Image),
        occlude,
        parameters={"degrees": 60.0, "area": 1.0 / 3.0},
        unit="deg, share of a picture",
        reasons=("BLOCKED",),
    ),
)
