"""Dust, smoke and fog: particles between the vehicle and obstacles (SDI, 5).

A laser measures its first return (5.1). Particles scatter light back, so the probability of a return from a
cloud increases with the optical depth: the optical depth at the first return is exponentially distributed. A
beam with a two-way transmission below 1/50 has no return. This is the relation of range and visibility that
Formsma et al. model for SICK scanners in smoke. Millimetre waves are barely affected by such particles,
infra-red less than visible light.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.recording import Stream
from transect.types import Image, LaserScan, PointCloud, RadarRange, RadarSpectrum

from . import beams
from .air import Air, AttenuatedBeams, pose_of_sensor, puffs, sensor_height, through, uniform
from .model import Change, Event, Fault, leave_unchanged
from .pictures import CameraTransmission, add_airlight
from .samples import change_of, changed_fraction, flat_values, payload, row_of, with_flat, wrap, wrap_clouds

TYPES = (LaserScan, PointCloud, Image, RadarRange, RadarSpectrum)
MIN_TRANSMISSION = 0.02
RADAR_EXTINCTION_RATIO = 0.01
"""Extinction of millimetre waves relative to light: not 0, as reflectivities are slightly lower (5.1)."""
RADAR_NOISE_M = 0.03
"""Range noise of a radar in a dense cloud."""
PARTICLE_INTENSITY_RATIO = 0.2
"""Intensity of a return from particles relative to that of the surface behind them."""
MIN_LOSS = 0.05
"""Images with a smaller loss of light are compared, as they may be unchanged."""
_DB_PER_OPTICAL_DEPTH = 20.0 / np.log(10.0)
"""Two-way loss in decibels for one unit of optical depth."""


def dusty(stream: Stream, event: Event) -> Change:
    """Move puffs of particles through the field of view of a sensor."""
    frames = {s.frame for s in event.recording if s.type in TYPES and s.frame}
    height = sensor_height(event.recording, frames)
    return in_air(stream, event, puffs(event, event.length(stream), height))


def foggy(stream: Stream, event: Event) -> Change:
    """Apply uniform extinction: at severity 1 with a range of `visibility` (contrast 2 %, Koschmieder)."""
    return in_air(stream, event, uniform(event.severity * 3.912 / event.parameters["visibility"]))


def in_air(stream: Stream, event: Event, air: Air) -> Change:
    """Return the measurements of a sensor in air with particles."""
    if not event.inside(stream).any():
        return leave_unchanged(stream)
    if stream.type in (PointCloud, Image) and stream.loader is not None:
        return _clouds(stream, event, air) if stream.type is PointCloud else _images(stream, event, air)
    columns = {LaserScan: _scans, RadarRange: _radar_ranges, RadarSpectrum: _radar_spectra}
    if stream.loader is None and stream.type in columns:
        return columns[stream.type](stream, event, air)
    return leave_unchanged(stream)


def first_returns(
    beams: AttenuatedBeams, ranges: Floats, draws: Floats, backscatter: float
) -> tuple[Floats, Mask, Mask]:
    """Return the first returns of a laser in air with particles.

    Parameters
    ----------
    ranges : (n,) array
        Ranges to surfaces, m.
    draws : (n,) array
        Exponential random numbers, one per beam.
    backscatter : float
        Mean number of returns from particles per unit of optical depth.

    Returns
    -------
    ranges : (n,) array
        Ranges, m, to particles for early returns.
    early, lost : (n,) bool array
        Beams with a return from particles, and without a return.
    """
    depth = beams.depth(ranges)
    early = depth * backscatter > draws
    lost = ~early & (np.exp(-2.0 * depth) < MIN_TRANSMISSION)
    result = ranges.copy()
    result[early] = beams.of(early).range_at(draws[early] / backscatter, ranges[early])
    return result, early, lost


def _scans(stream: Stream, event: Event, air: Air) -> Change:
    old, row = flat_values(stream.table, "ranges")
    new, seconds = old.copy(), event.seconds(stream)
    T = pose_of_sensor(event.recording, stream.frame)
    for part in beams.chunks(event.inside(stream), row):
        rows, before = row[part], old[part]
        draws = event.generator(stream.name, "returns", int(rows[0])).exponential(size=len(rows))
        directions = beams.directions(beams.beam_angles(stream, rows), T)
        lengths, backscatter = beams.beam_lengths(stream, before, rows), event.parameters["backscatter"]
        paths = through(air, seconds[rows], T[:3, 3], directions)
        found, early, lost = first_returns(paths, lengths, draws, backscatter)
        new[part] = np.where(early, found, np.where(lost, np.nan, before))
    table = with_flat(stream.table, "ranges", new)
    return change_of(stream, table, ["ranges"], changed_fraction(stream, table, "ranges"))


def _clouds(stream: Stream, event: Event, air: Air) -> Change:
    T, seconds = pose_of_sensor(event.recording, stream.frame), event.seconds(stream)

    def altered(index: int, cloud: PointCloud) -> tuple[PointCloud, Mask]:
        draws = event.generator(stream.name, "returns", index).exponential(size=len(cloud))
        return cloud_in_air(cloud, air, float(seconds[index]), T, draws, event.parameters["backscatter"])

    return wrap_clouds(stream, event, altered)


def cloud_in_air(
    cloud: PointCloud, air: Air, seconds: float, T: Floats, draws: Floats, backscatter: float
) -> tuple[PointCloud, Mask]:
    """Return a cloud with returns from particles and without lost points, and the mask (n,) of both.

    The sensor is at the origin of the cloud's frame, at ``T_vehicle_sensor`` (4, 4).
    """
    points = np.asarray(cloud.points, dtype=np.float64)
    distance = np.linalg.norm(points, axis=1)
    measured = np.isfinite(distance) & (distance > 0.0)
    lengths = np.where(measured, distance, 0.0)
    directions = np.where(measured[:, None], points, 1.0) / np.where(measured, distance, 1.0)[:, None]
    paths = through(air, np.full(len(points), seconds), T[:3, 3], directions @ T[:3, :3].T)
    found, early, lost = first_returns(paths, lengths, draws, backscatter)
    early, lost = early & measured, lost & measured
    moved = np.where(early[:, None], directions * found[:, None], points)
    return beams.without_points(_dim(cloud, moved, early), lost), early | lost


def _dim(cloud: PointCloud, points: Floats, early: Mask) -> PointCloud:
    fields = dict(cloud.fields)
    if "intensity" in fields:
        weak = fields["intensity"] * np.where(early, PARTICLE_INTENSITY_RATIO, 1.0)
        fields["intensity"] = weak.astype(fields["intensity"].dtype)
    return dataclasses.replace(cloud, points=points.astype(cloud.points.dtype), fields=fields)


def _radar_depth(stream: Stream, event: Event, air: Air, ranges: Floats) -> Floats:
    """Return the optical depth (n,), for light, of radar beams up to ranges (n,)."""
    T = pose_of_sensor(event.recording, stream.frame)
    directions = beams.directions(np.asarray(stream["angle"], dtype=np.float64), T)
    limit = beams.DEFAULT_MAX_RANGE_M
    lengths = np.where(np.isfinite(ranges), np.clip(ranges, 0.0, limit), limit)
    depth, seconds = np.zeros(len(stream)), event.seconds(stream)
    for part in beams.chunks(event.inside(stream), np.arange(len(stream))):
        depth[part] = through(air, seconds[part], T[:3, 3], directions[part]).depth(lengths[part])
    return np.where(event.inside(stream), depth, 0.0)


def _radar_ranges(stream: Stream, event: Event, air: Air) -> Change:
    """Reduce the reflectivity and add a little noise, the only effects on a radar (5.1)."""
    ranges = np.asarray(stream["range"], dtype=np.float64)
    depth = _radar_depth(stream, event, air, ranges)
    noise = event.generator(stream.name, "noise").normal(size=len(stream))
    opacity = -np.expm1(-depth)
    table = with_flat(stream.table, "range", ranges + RADAR_NOISE_M * opacity * noise)
    reflectivity = np.asarray(stream["reflectivity"], dtype=np.float64)
    table = with_flat(
        table, "reflectivity", reflectivity - _DB_PER_OPTICAL_DEPTH * RADAR_EXTINCTION_RATIO * depth
    )
    return change_of(stream, table, ["range", "reflectivity"], RADAR_EXTINCTION_RATIO * opacity)


def _radar_spectra(stream: Stream, event: Event, air: Air) -> Change:
    """Reduce all bins of a beam equally, by the optical depth of the whole beam."""
    depth = _radar_depth(stream, event, air, np.full(len(stream), np.nan))
    bins, row = flat_values(stream.table, "reflectivity")
    loss = _DB_PER_OPTICAL_DEPTH * RADAR_EXTINCTION_RATIO * depth[row]
    table = with_flat(stream.table, "reflectivity", bins - loss)
    return change_of(stream, table, ["reflectivity"], RADAR_EXTINCTION_RATIO * -np.expm1(-depth))


def _images(stream: Stream, event: Event, air: Air) -> Change:
    """Blend images with the light of the air by the transmission at each pixel."""
    p = event.parameters
    veil = CameraTransmission.of(stream, event, air, p["infrared"] if stream.tag == "infrared" else 1.0)
    alter = partial(add_airlight, veil, (p["red"], p["green"], p["blue"]))
    fraction = veil.losses(event.inside(stream))
    for index in np.flatnonzero((fraction > 0) & (fraction < MIN_LOSS)).tolist():
        clear: Image = payload(stream, row_of(stream, index))
        if np.array_equal(clear.data, alter(index, clear).data):
            fraction[index] = 0.0
    return wrap(stream, event, fraction > 0, fraction, alter)


_SIGHT = {"infrared": 0.2, "depth": 15.0}
# Dust is thrown into the test area, 9.3 m long; it is thin and without an edge, so that its returns are
# random points in front of the obstacle (5.1). Smoke is a dense plume with an edge, "mostly located between
# the sensors and the test area" (dataset 07, 4.2.1): a laser "detects it as it would detect an actual
# obstacle".
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
        "puffs of dust drift through the scene: they affect lasers most, cameras less, the radar very little",
        "heavy dust, puffs with a transmission of one third per metre",
        TYPES,
        dusty,
        parameters={**_DUST, **_SIGHT, "red": 0.72, "green": 0.62, "blue": 0.48},
        unit="extinction",
        reasons=("DUST", "SMOKE", "HAZE", "INLIERS"),
    ),
    Fault(
        "smoke",
        "a dense orange plume drifts through the scene: lasers measure it like an obstacle",
        "nearly no beam passes through",
        TYPES,
        dusty,
        parameters={**_SMOKE, **_SIGHT, "red": 0.95, "green": 0.5, "blue": 0.15},
        unit="extinction",
        reasons=("SMOKE", "DUST", "HAZE", "INLIERS"),
    ),
    Fault(
        "fog",
        "uniform fog, the air is white everywhere",
        "a visibility of 20 m",
        TYPES,
        foggy,
        parameters={**_FOG, "red": 0.8, "green": 0.8, "blue": 0.82},
        unit="extinction",
        reasons=("SMOKE", "HAZE", "INLIERS"),
    ),
)
