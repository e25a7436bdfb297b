"""Rain: a few returns from single drops, isolated in space and time (document 004, 5.2).

Of rain on images the report says nothing: chapter 5 has dust and smoke there (5.3), and rain on lasers and
radar only. Here single drops leave faint streaks, isolated as those that lasers meet, and fewer of them in
the infra-red, which 5.3 finds less affected by what is in the air.
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
from .model import Change, Event, Fault, leave_alone
from .pictures import blend, white
from .samples import change_of, flat_values, share_of_beams, with_flat, wrap, wrap_clouds

NEAREST = 0.5
"""Metres from the laser, and from what it sees, within which a drop is not told from it."""
LONGEST, OPAQUE, SLANT = 0.12, 0.5, 0.1
"""Of the streak of the nearest drop: its length in picture heights, how much it hides; and its slope."""
DARKEST = 0.1
"""Part of white that a drop is at night."""


def rainy(stream: Stream, event: Event) -> Change:
    """Let it rain."""
    if stream.type is PointCloud and stream.loader is not None:
        return _clouds(stream, event)
    if stream.type is Image and stream.loader is not None:
        return _images(stream, event)
    if stream.loader is not None:
        return leave_alone(stream)
    return _scans(stream, event) if stream.type is LaserScan else _radar(stream, event)


def drops(far: Floats, chance: float, luck: Floats) -> tuple[Floats, Mask]:
    """Return where beams that reach to `far` (n,) meet a drop, and which do.

    Parameters
    ----------
    far : (n,) array
        m.
    chance : float
        That a beam meets a drop.
    luck : (n, 2) array
        Uniform random numbers.
    """
    room = np.nan_to_num(far - 2 * NEAREST)
    hit = (luck[:, 0] < chance) & (room > 0)
    return np.where(hit, NEAREST + luck[:, 1] * room, far), hit


def _scans(stream: Stream, event: Event) -> Change:
    old, row = flat_values(stream.table, "ranges")
    new, inside = old.copy(), event.inside(stream)
    for part in beams.chunks(inside, row):
        luck = event.generator(stream.name, "drops", int(row[part.start])).random((part.stop - part.start, 2))
        found, hit = drops(beams.reach(stream, old[part], row[part]), _chance(event), luck)
        new[part] = np.where(hit & inside[row[part]], found, old[part])
    table, names = with_flat(stream.table, "ranges", new), ["ranges"]
    share = share_of_beams(stream, table, "ranges")
    if "remission" in stream.columns:
        bright, beam = flat_values(table, "remission")
        kept = _transmit(event, new) if len(bright) == len(new) else np.ones(len(bright))
        table = with_flat(table, "remission", np.where(inside[beam], bright * kept, bright))
        names.append("remission")
    return change_of(stream, table, names, share)


def _chance(event: Event) -> float:
    return event.severity * event.parameters["drops"]


def _transmit(event: Event, ranges: Floats) -> Floats:
    """Return (n,) the part of the light that comes back over ranges (n,)."""
    far = np.where(np.isfinite(ranges), np.minimum(ranges, beams.FARTHEST), 0.0)
    return np.exp(-2.0 * event.severity * event.parameters["extinction"] * far)


def _clouds(stream: Stream, event: Event) -> Change:
    def altered(index: int, cloud: PointCloud) -> tuple[PointCloud, Mask]:
        points = np.asarray(cloud.points, dtype=np.float64)
        far = np.linalg.norm(points, axis=1)
        luck = event.generator(stream.name, "drops", index).random((len(points), 2))
        found, hit = drops(far, _chance(event), luck)
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
    """Draw the streaks of a few drops, others in each image."""
    part = event.parameters["infrared"] if stream.tag == "infrared" else 1.0
    seen = partial(_streaks, stream, event, part)
    fraction = np.zeros(len(stream))
    for index in np.flatnonzero(event.inside(stream)).tolist():
        streaks = seen(index)
        fraction[index] = (LONGEST * OPAQUE * streaks[:, 2] ** 2).sum() / event.parameters["streaks"]
    return wrap(stream, event, fraction > 0, fraction, partial(_streak, seen))


def _streaks(stream: Stream, event: Event, part: float, index: int) -> Floats:
    """Return the streaks (k, 3) in an image: x and y of their tops, in pictures, and how near they are.

    The nearest is 1; there are more further away, and these are smaller.
    """
    draw = event.generator(stream.name, "streaks", index)
    luck = draw.random((round(event.parameters["streaks"]), 4))
    there = luck[luck[:, 3] < event.severity * part, :3]
    return np.column_stack([there[:, :2], 0.3 + 0.7 * there[:, 2] ** 3])


def _streak(seen: Any, index: int, image: Image) -> Image:
    import cv2

    veil = np.zeros(image.data.shape[:2], np.float32)
    for x, y, near in seen(index).tolist():
        u, v, way = x * image.width, y * image.height, LONGEST * near * image.height
        cv2.line(veil, (int(u), int(v)), (int(u + SLANT * way), int(v + way)), OPAQUE * near)
    # A drop shows the sky, which is among the brightest that there is.
    light = max(float(np.percentile(image.data, 95)) / white(image), DARKEST)
    return blend(image, 1.0 - veil, (light, light, light))


def _radar(stream: Stream, event: Event) -> Change:
    """Take a little off the reflectivity; ranges are not affected."""
    bins, row = flat_values(stream.table, "reflectivity")
    loss = event.severity * event.parameters["radar"]
    table = with_flat(stream.table, "reflectivity", bins - np.where(event.inside(stream)[row], loss, 0.0))
    return change_of(stream, table, ["reflectivity"], np.full(len(stream), loss / 10.0))


FAULTS = (
    Fault(
        "rain",
        "lasers get isolated returns from single drops in otherwise empty space, images a few faint streaks",
        "heavy rain, four beams in a thousand meet a drop",
        (LaserScan, PointCloud, Image, RadarRange, RadarSpectrum),
        rainy,
        parameters={"drops": 0.004, "extinction": 0.001, "radar": 0.3, "streaks": 60.0, "infrared": 0.2},
        unit="share of the beams",
        reasons=("RAIN",),
    ),
)
