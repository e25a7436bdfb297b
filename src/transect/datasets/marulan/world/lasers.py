"""SICK LMS 2xx laser scanners: interleaved scans of one degree, in cm (SDI, 2.2.1 and 3.2.2).

The mirror rotates `mirror_rate` times a second, once for each scan. Each scan starts a quarter of the
increment after the one before, so that four make one sweep. Rays of many scans are cast together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.recording import Robot, arrow
from transect.simulation.raycast import Scene, cast
from transect.simulation.solids import Solids
from transect.types import LaserScan

from ..logs.tables import RangeUnit

Poses = Callable[[Ints], Floats]
"""Function from times (n,) in ns to ``T_world_sensor`` (n, 4, 4)."""
NO_RETURN_CM = 8191
"""Value of the sensor without a return."""


@dataclass(frozen=True)
class Sick:
    """Parameters of a scanner; the defaults are from data sheets of the LMS 2xx."""

    increment: float  # between the beams of a scan, rad
    field_of_view: float  # rad, centred on the sensor's x axis
    scans: int  # of a sweep
    mirror_rate: float  # Hz
    maximum: float  # m
    sigma: float = 0.010  # of a range, m
    dark_range: float = 30.0  # range of a surface with 10 % albedo at normal incidence, m
    beam_width: float = 0.012  # rad
    merge_distance: float = 1.5  # m; the receiver merges closer echoes, and measures between them

    @classmethod
    def of(cls, robot: Robot) -> Sick:
        """Return the scanner of a robot's constants."""
        laser = robot.constants["laser"]
        return cls(
            increment=float(laser["angle_increment"]),
            field_of_view=float(laser["field_of_view"]),
            scans=int(laser["scans_per_sweep"]),
            mirror_rate=float(laser["mirror_rate"]),
            maximum=float(laser["maximum_range"]),
        )

    @property
    def beams(self) -> int:
        """Beams of the first scan of a sweep; the last one of the others is outside the field of view."""
        return round(self.field_of_view / self.increment) + 1

    def start_angles(self, number: Ints) -> Floats:
        """Return the first angle (n,) of scans by their number (n,), rad."""
        return (number % self.scans) * np.float64(self.increment / self.scans) - self.field_of_view / 2

    def counts(self, number: Ints) -> Ints:
        """Return the number of beams (n,) of scans by their number (n,)."""
        return np.where(number % self.scans == 0, self.beams, self.beams - 1)

    def times(self, number: Ints, start_ns: int) -> Ints:
        """Return the time of the first beam (n,) of scans by their number (n,), ns, in whole microseconds."""
        return start_ns + np.rint(number * (1e6 / self.mirror_rate)).astype(np.int64) * 1000


@dataclass(frozen=True, eq=False)
class Returns:
    """Exact hits of n scans with k beams."""

    range: Floats  # (n, k) m; inf without a hit
    kind: NDArray[np.int32]  # (n, k) -1 without a hit, 0 the ground, else the number of the solid
    cosine: Floats  # (n, k) of the angle of incidence; NaN without a hit


def cast_scans(
    sick: Sick,
    scene: Scene,
    poses: Poses,
    number: Ints,
    start_ns: int,
    offset: tuple[float, float] = (0.0, 0.0),
) -> Returns:
    """Return the hits of scans.

    The sensor moves while the mirror rotates: poses are interpolated between the first and the last beam.

    Parameters
    ----------
    sick : Sick
    scene : Scene
    poses : callable
        ``T_world_sensor`` (n, 4, 4) at times (n,) in ns.
    number : (n,) int64 array
        Numbers of the scans.
    start_ns : int
        Start of the day, and of scan 0.
    offset : (float, float)
        Offset from the middle of the beam, in the plane of the scan and across it, rad.
    """
    first = sick.times(number, start_ns)
    beam = np.arange(sick.beams)
    delay = beam * sick.increment / (2 * np.pi * sick.mirror_rate)
    before, after = poses(first), poses(first + round(delay[-1] * 1e9))
    u = (beam / beam[-1])[:, None]
    origin = before[:, None, :3, 3] * (1 - u) + after[:, None, :3, 3] * u
    angle = sick.start_angles(number)[:, None] + beam * sick.increment + offset[0]
    ray = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    along = ray @ before[:, :3, :2].mT * (1 - u) + ray @ after[:, :3, :2].mT * u
    if offset[1]:
        along += np.tan(offset[1]) * before[:, None, :3, 2]
    along /= np.linalg.norm(along, axis=-1, keepdims=True)
    t = (first - start_ns)[:, None] * 1e-9 + delay
    hits = cast(scene, origin.reshape(-1, 3), along.reshape(-1, 3), sick.maximum, t.reshape(-1))
    cosine = -np.einsum("ij,ij->i", along.reshape(-1, 3), hits.normal)
    shape = (len(number), sick.beams)
    return Returns(hits.range.reshape(shape), hits.kind.reshape(shape), cosine.reshape(shape))


SPOT = ((0.0, 0.0, 0.5), (0.35, 0.35, 0.25), (-0.35, -0.35, 0.25))
"""Rays of a beam: offsets along and across the scan, in beam widths, and their ratio of the light."""


def merge_spot(sick: Sick, returns: Sequence[Returns], solids: Solids, ground: float) -> Returns:
    """Return the hits of wide beams from those of their rays (see `SPOT`).

    The first echo counts. Echoes less than `merge_distance` behind it are merged: the range is the mean,
    weighted by strength. If the first surface fills only a fraction of the beam, the cosine is reduced by
    that fraction, as the echo is weaker.

    Parameters
    ----------
    returns : sequence of Returns
        Hits of the rays, in the order of `SPOT`.
    solids, ground
        See `find_detected`.
    """
    ranges, kinds, cosines = (
        np.stack([getattr(each, name) for each in returns]) for name in ("range", "kind", "cosine")
    )
    light = np.array([ratio for _, _, ratio in SPOT])[:, None, None]
    albedo = np.concatenate([[0.0, ground], solids.near_infrared])[kinds + 1]
    first = ranges.min(axis=0)
    with np.errstate(invalid="ignore"):
        is_merged = (kinds >= 0) & (ranges <= first + sick.merge_distance)
        strength = np.where(is_merged, light * albedo * np.abs(cosines) / ranges**2, 0.0)
    total = strength.sum(axis=0)
    mean = (strength * np.where(is_merged, ranges, 0.0)).sum(axis=0) / np.where(total > 0, total, 1.0)
    strongest = strength.argmax(axis=0)[None]
    kind, cosine = (np.take_along_axis(of, strongest, axis=0)[0] for of in (kinds, cosines))
    filled = (light * is_merged).sum(axis=0)
    return Returns(
        np.where(total > 0, mean, np.inf), np.where(total > 0, kind, -1).astype(np.int32), cosine * filled
    )


def find_detected(sick: Sick, returns: Returns, solids: Solids, ground: float) -> NDArray[np.bool_]:
    """Return which hits (n, k) are detected, by albedo, incidence and distance.

    Parameters
    ----------
    solids : Solids
        Solids of `returns.kind`.
    ground : float
        Albedo of the ground at 905 nm.
    """
    albedo = np.concatenate([[0.0, ground], solids.near_infrared])[returns.kind + 1]
    with np.errstate(invalid="ignore"):
        echo = albedo * np.abs(returns.cosine) / returns.range**2
        return (returns.kind >= 0) & (echo >= 0.1 / sick.dark_range**2)


def measure(sick: Sick, returns: Returns, good: NDArray[np.bool_], rng: np.random.Generator) -> Ints:
    """Return noisy ranges (n, k) in whole centimetres, `NO_RETURN_CM` where not `good`."""
    noisy = np.where(good, returns.range, 0.0) + sick.sigma * rng.standard_normal(good.shape)
    return np.where(good, np.maximum(np.rint(noisy * 100), 1), NO_RETURN_CM).astype(np.int64)


def scan_table(sick: Sick, number: Ints, times: Ints, centimetres: Ints) -> pa.Table:
    """Return scans as rows of the format: ranges in metres, angles, the unit of the log, error codes."""
    counts, start = sick.counts(number), sick.start_angles(number)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    is_measured = np.arange(sick.beams) < counts[:, None]
    sent = centimetres[is_measured]
    columns = {
        "ranges": arrow.ragged_from_offsets(np.where(sent == NO_RETURN_CM, np.nan, sent / 100), offsets),
        "start_angle": start,
        "angle_increment": np.full(len(number), sick.increment),
        "end_angle": start + sick.increment * (counts - 1),
        "range_unit": np.full(len(number), RangeUnit.CENTIMETRES, np.int8),
        "range_error": arrow.ragged_from_offsets(
            np.where(sent == NO_RETURN_CM, sent, 0).astype(np.uint16), offsets
        ),
    }
    return arrow.table(times, columns, units={**LaserScan.units(), "end_angle": "rad"})
