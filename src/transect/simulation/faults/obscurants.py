"""Dust, smoke, fog: what hangs in the air and comes between the vehicle and the obstacle (document 004, 5).

A laser gives its first return (5.1). Particles send light back as it passes them, so the chance that a beam
is returned by the cloud grows with the optical depth behind it: the way to the first return from a cloud is
exponential in optical depth. A beam of whose light less than 1/50 would come back is lost. That is the range
of return against visibility that Formsma and others model for SICK scanners in smoke. Waves of millimetres
hardly see such particles; the infra-red sees less of them than the eye.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.recording import Stream
from transect.types import Image, LaserScan, PointCloud, RadarRange, RadarSpectrum

from . import beams
from .air import Air, Beams, place_of_sensor, puffs, sensor_height, through, uniform
from .model import Change, Event, Fault, leave_alone
from .pictures import Veil, cover
from .samples import change_of, flat_values, payload, row_of, share_of_beams, with_flat, wrap, wrap_clouds

TYPES = (LaserScan, PointCloud, Image, RadarRange, RadarSpectrum)
LEAST_LIGHT = 0.02
RADAR = 0.01
"""Extinction at millimetres against that of light: not 0, for 5.1 sees slightly lower reflectivities."""
RADAR_NOISE = 0.03
"""Metres; noise that a dense cloud adds to a radar's ranges."""
WEAK = 0.2
"""Intensity of a point that particles returned, against that of what it hides."""
FAINT = 0.05
"""Images that lose less of their light are looked at, whether it shows in any pixel."""
_DECIBEL = 20.0 / np.log(10.0)
"""Decibels lost both ways for one unit of optical depth."""


def dusty(stream: Stream, event: Event) -> Change:
    """Let puffs pass between a sensor and what it looks at."""
    frames = {s.frame for s in event.recording if s.type in TYPES and s.frame}
    height = sensor_height(event.recording, frames)
    return in_air(stream, event, puffs(event, event.length(stream), height))


def foggy(stream: Stream, event: Event) -> Change:
    """Fill the air evenly: at severity 1 one sees as far as `visibility` (contrast 2 %, Koschmieder)."""
    return in_air(stream, event, uniform(event.severity * 3.912 / event.parameters["visibility"]))


def in_air(stream: Stream, event: Event, air: Air) -> Change:
    """Return what a sensor gives in such air."""
    if not event.inside(stream).any():
        return leave_alone(stream)
    if stream.type in (PointCloud, Image) and stream.loader is not None:
        return _clouds(stream, event, air) if stream.type is PointCloud else _images(stream, event, air)
    columns = {LaserScan: _scans, RadarRange: _radar_ranges, RadarSpectrum: _radar_spectra}
    if stream.loader is None and stream.type in columns:
        return columns[stream.type](stream, event, air)
    return leave_alone(stream)


def first_returns(beams: Beams, ranges: Floats, luck: Floats, back: float) -> tuple[Floats, Mask, Mask]:
    """Return what a laser measures in such air.

    Parameters
    ----------
    ranges : (n,) array
        To what stands there, m.
    luck : (n,) array
        Exponential random numbers, one a beam.
    back : float
        Returns from the cloud for one unit of optical depth, on average.

    Returns
    -------
    ranges : (n,) array
        To the cloud where it returned the beam, m.
    early, lost : (n,) bool array
        Beams returned by the cloud, and by nothing.
    """
    depth = beams.depth(ranges)
    early = depth * back > luck
    lost = ~early & (np.exp(-2.0 * depth) < LEAST_LIGHT)
    result = ranges.copy()
    result[early] = beams.of(early).range_at(luck[early] / back, ranges[early])
    return result, early, lost


def _scans(stream: Stream, event: Event, air: Air) -> Change:
    old, row = flat_values(stream.table, "ranges")
    new, seconds = old.copy(), event.seconds(stream)
    T = place_of_sensor(event.recording, stream.frame)
    for part in beams.chunks(event.inside(stream), row):
        rows, before = row[part], old[part]
        luck = event.generator(stream.name, "returns", int(rows[0])).exponential(size=len(rows))
        towards = beams.directions(beams.beam_angles(stream, rows), T)
        far, back = beams.reach(stream, before, rows), event.parameters["backscatter"]
        found, early, lost = first_returns(through(air, seconds[rows], T[:3, 3], towards), far, luck, back)
        new[part] = np.where(early, found, np.where(lost, np.nan, before))
    table = with_flat(stream.table, "ranges", new)
    return change_of(stream, table, ["ranges"], share_of_beams(stream, table, "ranges"))


def _clouds(stream: Stream, event: Event, air: Air) -> Change:
    T, seconds = place_of_sensor(event.recording, stream.frame), event.seconds(stream)

    def altered(index: int, cloud: PointCloud) -> tuple[PointCloud, Mask]:
        luck = event.generator(stream.name, "returns", index).exponential(size=len(cloud))
        return cloud_in_air(cloud, air, float(seconds[index]), T, luck, event.parameters["backscatter"])

    return wrap_clouds(stream, event, altered)


def cloud_in_air(
    cloud: PointCloud, air: Air, seconds: float, T: Floats, luck: Floats, back: float
) -> tuple[PointCloud, Mask]:
    """Return a cloud with the points that the air returned, without those that it swallowed, and which (n,).

    The sensor stands in the origin of the cloud's frame, at ``T_vehicle_sensor`` (4, 4).
    """
    points = np.asarray(cloud.points, dtype=np.float64)
    distance = np.linalg.norm(points, axis=1)
    seen = np.isfinite(distance) & (distance > 0.0)
    far = np.where(seen, distance, 0.0)
    towards = np.where(seen[:, None], points, 1.0) / np.where(seen, distance, 1.0)[:, None]
    met = through(air, np.full(len(points), seconds), T[:3, 3], towards @ T[:3, :3].T)
    found, early, lost = first_returns(met, far, luck, back)
    early, lost = early & seen, lost & seen
    moved = np.where(early[:, None], towards * found[:, None], points)
    return beams.without_points(_dim(cloud, moved, early), lost), early | lost


def _dim(cloud: PointCloud, points: Floats, early: Mask) -> PointCloud:
    fields = dict(cloud.fields)
    if "intensity" in fields:
        weak = fields["intensity"] * np.where(early, WEAK, 1.0)
        fields["intensity"] = weak.astype(fields["intensity"].dtype)
    return dataclasses.replace(cloud, points=points.astype(cloud.points.dtype), fields=fields)


def _radar_depth(stream: Stream, event: Event, air: Air, ranges: Floats) -> Floats:
    """Return (n,) the optical depth, for light, of radar beams that reach to ranges (n,)."""
    T = place_of_sensor(event.recording, stream.frame)
    towards = beams.directions(np.asarray(stream["angle"], dtype=np.float64), T)
    far = np.where(np.isfinite(ranges), np.clip(ranges, 0.0, beams.FARTHEST), beams.FARTHEST)
    depth, seconds = np.zeros(len(stream)), event.seconds(stream)
    for part in beams.chunks(event.inside(stream), np.arange(len(stream))):
        depth[part] = through(air, seconds[part], T[:3, 3], towards[part]).depth(far[part])
    return np.where(event.inside(stream), depth, 0.0)


def _radar_ranges(stream: Stream, event: Event, air: Air) -> Change:
    """Lower the reflectivity and add a little noise: more does not happen to a radar (5.1)."""
    ranges = np.asarray(stream["range"], dtype=np.float64)
    depth = _radar_depth(stream, event, air, ranges)
    noise = event.generator(stream.name, "noise").normal(size=len(stream))
    murk = -np.expm1(-depth)
    table = with_flat(stream.table, "range", ranges + RADAR_NOISE * murk * noise)
    weaker = np.asarray(stream["reflectivity"], dtype=np.float64) - _DECIBEL * RADAR * depth
    table = with_flat(table, "reflectivity", weaker)
    return change_of(stream, table, ["range", "reflectivity"], RADAR * murk)


def _radar_spectra(stream: Stream, event: Event, air: Air) -> Change:
    """Lower all bins of a beam alike, by what the whole beam meets."""
    depth = _radar_depth(stream, event, air, np.full(len(stream), np.nan))
    bins, row = flat_values(stream.table, "reflectivity")
    table = with_flat(stream.table, "reflectivity", bins - _DECIBEL * RADAR * depth[row])
    return change_of(stream, table, ["reflectivity"], RADAR * -np.expm1(-depth))


def _images(stream: Stream, event: Event, air: Air) -> Change:
    """Lay a veil over images, by the light that comes through to each part of the picture."""
    p = event.parameters
    veil = Veil.of(stream, event, air, p["infrared"] if stream.tag == "infrared" else 1.0)
    alter = partial(cover, veil, (p["red"], p["green"], p["blue"]))
    fraction = veil.taken(event.inside(stream))
    for index in np.flatnonzero((fraction > 0) & (fraction < FAINT)).tolist():
        clear: Image = payload(stream, row_of(stream, index))
        if np.array_equal(clear.data, alter(index, clear).data):
            fraction[index] = 0.0
    return wrap(stream, event, fraction > 0, fraction, alter)


_SIGHT = {"infrared": 0.2, "depth": 15.0}
# Dust is thrown into the test area, 9.3 m long; it is thin and has no edge, so that its returns are random
# points on the way to the obstacle (5.1). Smoke is a dense plume with an edge, "mostly located between the
# sensors and the test area" (dataset 07, 4.2.1): a laser "detects it as it would detect an actual obstacle".
_DUST = {
    "wind": 1.5, "drift": 0.15, "near": 2.5, "far": 8.0, "reach": 5.0,
    "rate": 1.2, "size": 1.0, "extinction": 1.2, "backscatter": 1.0,
}  # fmt: skip
_SMOKE = {
    "wind": 1.0, "drift": 0.03, "near": 3.2, "far": 5.0, "reach": 6.0,
    "rate": 5.0, "size": 0.6, "extinction": 4.5, "backscatter": 1.0,
}  # fmt: skip
_FOG = {"visibility": 20.0, "backscatter": 0.3, "depth": 15.0, "infrared": 0.8}

FAULTS = (
    Fault(
        "dust",
        "puffs of dust drift by on the wind: lasers see them, cameras less, the radar hardly",
        "heavy dust, puffs that let a third through in a metre",
        TYPES,
        dusty,
        parameters={**_DUST, **_SIGHT, "red": 0.72, "green": 0.62, "blue": 0.48},
        unit="extinction",
        reasons=("DUST", "SMOKE", "HAZE", "INLIERS"),
    ),
    Fault(
        "smoke",
        "a dense orange plume drifts by: lasers take it for an obstacle",
        "hardly a beam gets through",
        TYPES,
        dusty,
        parameters={**_SMOKE, **_SIGHT, "red": 0.95, "green": 0.5, "blue": 0.15},
        unit="extinction",
        reasons=("SMOKE", "DUST", "HAZE", "INLIERS"),
    ),
    Fault(
        "fog",
        "the air is white everywhere",
        "one sees 20 m far",
        TYPES,
        foggy,
        parameters={**_FOG, "red": 0.8, "green": 0.8, "blue": 0.82},
        unit="extinction",
        reasons=("SMOKE", "HAZE", "INLIERS"),
    ),
)
