"""SICK LMS 2xx laser scanners: interleaved scans of one degree, in cm (document 004, 2.2.1 and 3.2.2).

A mirror turns `mirror_rate` times a second and each turn is one scan; the next begins a quarter of the
increment further, so that four make one sweep. Rays of many scans are cast together.
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

Poses = Callable[[Ints], Floats]
"""From times (n,) in ns to ``T_world_sensor`` (n, 4, 4)."""

CENTIMETRES = 2
"""RangeUnitType of 3.2.2."""
NO_RETURN = 8191
"""What the sensor says in cm mode where nothing comes back."""


@dataclass(frozen=True)
class Sick:
    """How a scanner measures.

    Attributes
    ----------
    increment : float
        Between the beams of a scan, rad.
    field_of_view : float
        rad, centred on the sensor's x axis.
    scans : int
        That make a sweep.
    mirror_rate : float
        Turns, and scans, a second.
    maximum : float
        m.
    deviation : float
        One sigma of a range, m: 10 mm in the maker's data sheets of the LMS 2xx.
    dark_range : float
        m up to which a surface of 10 % albedo is seen head on: 30 m in the same sheets.
    """

    increment: float
    field_of_view: float
    scans: int
    mirror_rate: float
    maximum: float
    deviation: float = 0.010
    dark_range: float = 30.0

    @classmethod
    def of(cls, robot: Robot) -> Sick:
        """Return the scanner that a robot's constants describe."""
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
        """In the first scan of a sweep; the others have one less, it would lie beyond the field of view."""
        return round(self.field_of_view / self.increment) + 1

    def start_angles(self, number: Ints) -> Floats:
        """First angle (n,) of scans by their number (n,) since the scanner began, rad."""
        return (number % self.scans) * np.float64(self.increment / self.scans) - self.field_of_view / 2

    def counts(self, number: Ints) -> Ints:
        """Beams (n,) of scans by their number (n,)."""
        return np.where(number % self.scans == 0, self.beams, self.beams - 1)

    def times(self, number: Ints, start_ns: int) -> Ints:
        """First beam's time (n,) of scans by their number (n,), in ns, whole microseconds as in a log."""
        return start_ns + np.rint(number * (1e6 / self.mirror_rate)).astype(np.int64) * 1000


@dataclass(frozen=True, eq=False)
class Returns:
    """What the beams of n scans met, k beams each.

    Attributes
    ----------
    range : (n, k) array
        Exact, m; inf where there was nothing.
    kind : (n, k) int32 array
        -1 nothing, 0 the ground, from 1 the solid of that number.
    cosine : (n, k) array
        Of the angle of incidence; NaN where there was nothing.
    """

    range: Floats
    kind: NDArray[np.int32]
    cosine: Floats


def cast_scans(
    sick: Sick,
    scene: Scene,
    poses: Poses,
    number: Ints,
    start_ns: int,
    aside: tuple[float, float] = (0.0, 0.0),
) -> Returns:
    """Return what scans meet.

    The sensor moves while the mirror turns: evenly between its poses at the first and the last beam, and
    every beam has its own time.

    Parameters
    ----------
    sick : Sick
    scene : Scene
    poses : callable
        ``T_world_sensor`` (n, 4, 4) at times (n,) in ns.
    number : (n,) int64 array
        Which scans.
    start_ns : int
        When the day, and scan 0, began.
    aside : (float, float)
        How far beside the middle of the beam, in the plane of the scan and out of it, rad.
    """
    first = sick.times(number, start_ns)
    beam = np.arange(sick.beams)
    late = beam * sick.increment / (2 * np.pi * sick.mirror_rate)
    before, after = poses(first), poses(first + round(late[-1] * 1e9))
    u = (beam / beam[-1])[:, None]
    origin = before[:, None, :3, 3] * (1 - u) + after[:, None, :3, 3] * u
    angle = sick.start_angles(number)[:, None] + beam * sick.increment + aside[0]
    ray = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    along = ray @ before[:, :3, :2].mT * (1 - u) + ray @ after[:, :3, :2].mT * u
    if aside[1]:
        along += np.tan(aside[1]) * before[:, None, :3, 2]
    along /= np.linalg.norm(along, axis=-1, keepdims=True)
    t = (first - start_ns)[:, None] * 1e-9 + late
    hits = cast(scene, origin.reshape(-1, 3), along.reshape(-1, 3), sick.maximum, t.reshape(-1))
    cosine = -np.einsum("ij,ij->i", along.reshape(-1, 3), hits.normal)
    shape = (len(number), sick.beams)
    return Returns(hits.range.reshape(shape), hits.kind.reshape(shape), cosine.reshape(shape))


SPOT = ((0.0, 0.0, 0.5), (0.35, 0.35, 0.25), (-0.35, -0.35, 0.25))
"""Rays of a beam: how far aside, in widths of the beam, along and across the scan, and their light."""
DIVERGENCE = 0.012
"""rad: about the width of the beam in the maker's data sheets of the LMS 2xx."""
PULSE = 1.5
"""m: echoes closer together than this are one to the receiver, and measured between them."""


def merge_spot(returns: Sequence[Returns], solids: Solids, ground: float) -> Returns:
    """Return what a wide beam measures from what its rays (see `SPOT`) meet.

    The first echo counts. Echoes less than `PULSE` behind it are one with it: the range is their mean, by
    strength. Where the first surface fills a part of the beam only, its cosine is less by that part, as its
    echo is weaker.

    Parameters
    ----------
    returns : sequence of Returns
        Of the rays, in the order of `SPOT`.
    solids, ground
        See `find_seen`.
    """
    ranges, kinds, cosines = (
        np.stack([getattr(each, name) for each in returns]) for name in ("range", "kind", "cosine")
    )
    light = np.array([share for _, _, share in SPOT])[:, None, None]
    albedo = np.concatenate([[0.0, ground], solids.near_infrared])[kinds + 1]
    first = ranges.min(axis=0)
    with np.errstate(invalid="ignore"):
        together = (kinds >= 0) & (ranges <= first + PULSE)
        strength = np.where(together, light * albedo * np.abs(cosines) / ranges**2, 0.0)
    whole = strength.sum(axis=0)
    mean = (strength * np.where(together, ranges, 0.0)).sum(axis=0) / np.where(whole > 0, whole, 1.0)
    strongest = strength.argmax(axis=0)[None]
    kind, cosine = (np.take_along_axis(of, strongest, axis=0)[0] for of in (kinds, cosines))
    filled = (light * together).sum(axis=0)
    return Returns(
        np.where(whole > 0, mean, np.inf), np.where(whole > 0, kind, -1).astype(np.int32), cosine * filled
    )


def find_seen(sick: Sick, returns: Returns, solids: Solids, ground: float) -> NDArray[np.bool_]:
    """Return which beams (n, k) come back strong enough: albedo, incidence and distance decide.

    Parameters
    ----------
    solids : Solids
        That `returns.kind` counts.
    ground : float
        Albedo of the ground at 905 nm.
    """
    albedo = np.concatenate([[0.0, ground], solids.near_infrared])[returns.kind + 1]
    with np.errstate(invalid="ignore"):
        echo = albedo * np.abs(returns.cosine) / returns.range**2
        return (returns.kind >= 0) & (echo >= 0.1 / sick.dark_range**2)


def measure(sick: Sick, returns: Returns, good: NDArray[np.bool_], rng: np.random.Generator) -> Ints:
    """Return ranges (n, k) in whole centimetres as the sensor sends them, `NO_RETURN` where not `good`."""
    noisy = np.where(good, returns.range, 0.0) + sick.deviation * rng.standard_normal(good.shape)
    return np.where(good, np.maximum(np.rint(noisy * 100), 1), NO_RETURN).astype(np.int64)


def scan_table(sick: Sick, number: Ints, times: Ints, centimetres: Ints) -> pa.Table:
    """Return scans as the rows that the format has: ranges in metres, angles, the unit of the log, codes."""
    counts, start = sick.counts(number), sick.start_angles(number)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    there = np.arange(sick.beams) < counts[:, None]
    sent = centimetres[there]
    columns = {
        "ranges": arrow.ragged_from_offsets(np.where(sent == NO_RETURN, np.nan, sent / 100), offsets),
        "start_angle": start,
        "angle_increment": np.full(len(number), sick.increment),
        "end_angle": start + sick.increment * (counts - 1),
        "range_unit": np.full(len(number), CENTIMETRES, np.int8),
        "range_error": arrow.ragged_from_offsets(
            np.where(sent == NO_RETURN, sent, 0).astype(np.uint16), offsets
        ),
    }
    return arrow.table(times, columns, units={**LaserScan.units(), "end_angle": "rad"})
