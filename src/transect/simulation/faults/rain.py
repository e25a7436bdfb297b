"""Rain: returns from single drops, isolated in space and time (SDI, 5.2).

The report does not describe rain in images: its chapter 5 covers dust and smoke in images (5.3), and rain
only for lasers and radar. Here single drops leave faint streaks, as isolated as those that lasers hit, and
fewer in the infra-red, which is less affected by particles (5.3).
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.recording import Stream
from transect.types import Image, LaserScan, PointCloud, RadarRange, RadarSpectrum

from . import beams
from .model import Change, Event, Fault, leave_unchanged
from .pictures import blend, white
from .samples import change_of, changed_fraction, flat_values, with_flat, wrap, wrap_clouds

MIN_DROP_DISTANCE_M = 0.5
"""Smallest distance of a drop from the laser and from the surface behind it."""
MAX_STREAK_LENGTH, MAX_STREAK_OPACITY, STREAK_SLOPE = 0.12, 0.5, 0.1
"""Streak of the nearest drop: length relative to the image height, opacity; and the slope of all streaks."""
MIN_BRIGHTNESS = 0.1
"""Smallest brightness of a drop, at night, relative to white."""


def rainy(stream: Stream, event: Event) -> Change:
    """Apply rain to a stream."""
    if stream.type is PointCloud and stream.loader is not None:
        return _clouds(stream, event)
    if stream.type is Image and stream.loader is not None:
        return _images(stream, event)
    if stream.loader is not None:
        return leave_unchanged(stream)
    return _scans(stream, event) if stream.type is LaserScan else _radar(stream, event)


def drops(ranges: Floats, probability: float, draws: Floats) -> tuple[Floats, Mask]:
    """Return the ranges (n,) of beams with drops, and which beams hit a drop.

    Parameters
    ----------
    ranges : (n,) array
        Ranges without drops, m.
    probability : float
        Probability that a beam hits a drop.
    draws : (n, 2) array
        Uniform random numbers.
    """
    interval = np.nan_to_num(ranges - 2 * MIN_DROP_DISTANCE_M)
    hit = (draws[:, 0] < probability) & (interval > 0)
    return np.where(hit, MIN_DROP_DISTANCE_M + draws[:, 1] * interval, ranges), hit


def _scans(stream: Stream, event: Event) -> Change:
    old, row = flat_values(stream.table, "ranges")
    new, inside = old.copy(), event.inside(stream)
    for part in beams.chunks(inside, row):
        size = (part.stop - part.start, 2)
        draws = event.generator(stream.name, "drops", int(row[part.start])).random(size)
        found, hit = drops(beams.beam_lengths(stream, old[part], row[part]), _probability(event), draws)
        new[part] = np.where(hit & inside[row[part]], found, old[part])
    table, names = with_flat(stream.table, "ranges", new), ["ranges"]
    fraction = changed_fraction(stream, table, "ranges")
    if "remission" in stream.columns:
        bright, beam = flat_values(table, "remission")
        kept = _transmit(event, new) if len(bright) == len(new) else np.ones(len(bright))
        table = with_flat(table, "remission", np.where(inside[beam], bright * kept, bright))
        names.append("remission")
    return change_of(stream, table, names, fraction)


def _probability(event: Event) -> float:
    return event.severity * event.parameters["drops"]


def _transmit(event: Event, ranges: Floats) -> Floats:
    """Return the two-way transmission (n,) over ranges (n,)."""
    far = np.where(np.isfinite(ranges), np.minimum(ranges, beams.DEFAULT_MAX_RANGE_M), 0.0)
    return np.exp(-2.0 * event.severity * event.parameters["extinction"] * far)


def _clouds(stream: Stream, event: Event) -> Change:
    def altered(index: int, cloud: PointCloud) -> tuple[PointCloud, Mask]:
        points = np.asarray(cloud.points, dtype=np.float64)
        far = np.linalg.norm(points, axis=1)
        draws = event.generator(stream.name, "drops", index).random((len(points), 2))
        found, hit = drops(far, _probability(event), draws)
        scale = np.where(hit, found / np.where(hit, far, 1.0), 1.0)
        moved = (points * scale[:, None]).astype(cloud.points.dtype)
        fields = dict(cloud.fields)
        if "intensity" in fields:
            fields["intensity"] = (fields["intensity"] * _transmit(event, far)).astype(
                fields["intensity"].dtype
            )
        return dataclasses.replace(cloud, points=moved, fields=fields), hit

    return wrap_clouds(stream, event, altered)


def _images(stream: Stream, event: Event) -> Change:
    """Draw the streaks of drops, different ones in each image."""
    density = event.parameters["infrared"] if stream.tag == "infrared" else 1.0
    streaks_of = partial(_streaks, stream, event, density)
    fraction = np.zeros(len(stream))
    for index in np.flatnonzero(event.inside(stream)).tolist():
        streaks = streaks_of(index)
        area = MAX_STREAK_LENGTH * MAX_STREAK_OPACITY * streaks[:, 2] ** 2
        fraction[index] = area.sum() / event.parameters["streaks"]
    return wrap(stream, event, fraction > 0, fraction, partial(_draw_streaks, streaks_of))


def _streaks(stream: Stream, event: Event, density: float, index: int) -> Floats:
    """Return the streaks (k, 3) in an image: x and y of their tops, relative to the image, and their scale.

    The scale of the nearest is 1; most are further away and smaller.
    """
    draw = event.generator(stream.name, "streaks", index)
    draws = draw.random((round(event.parameters["streaks"]), 4))
    visible = draws[draws[:, 3] < event.severity * density, :3]
    return np.column_stack([visible[:, :2], 0.3 + 0.7 * visible[:, 2] ** 3])


def _draw_streaks(streaks_of: Any, index: int, image: Image) -> Image:
    import cv2

    veil = np.zeros(image.data.shape[:2], np.float32)
    for x, y, scale in streaks_of(index).tolist():
        u, v, length = x * image.width, y * image.height, MAX_STREAK_LENGTH * scale * image.height
        end = (int(u + STREAK_SLOPE * length), int(v + length))
        cv2.line(veil, (int(u), int(v)), end, MAX_STREAK_OPACITY * scale)
    # A drop refracts the sky, which is among the brightest parts of an image.
    light = max(float(np.percentile(image.data, 95)) / white(image), MIN_BRIGHTNESS)
    return blend(image, 1.0 - veil, (light, light, light))


def _radar(stream: Stream, event: Event) -> Change:
    """Reduce the reflectivity slightly; ranges are not affected."""
    bins, row = flat_values(stream.table, "reflectivity")
    loss = event.severity * event.parameters["radar"]
    table = with_flat(stream.table, "reflectivity", bins - np.where(event.inside(stream)[row], loss, 0.0))
    return change_of(stream, table, ["reflectivity"], np.full(len(stream), loss / 10.0))


FAULTS = (
    Fault(
        "rain",
        "lasers have isolated returns from single drops in empty space, images a few faint streaks",
        "heavy rain, four beams in a thousand hit a drop",
        (LaserScan, PointCloud, Image, RadarRange, RadarSpectrum),
        rainy,
        parameters={"drops": 0.004, "extinction": 0.001, "radar": 0.3, "streaks": 60.0, "infrared": 0.2},
        unit="fraction of the beams",
        reasons=("RAIN",),
    ),
)
