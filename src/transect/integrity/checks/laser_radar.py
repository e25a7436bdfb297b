"""X01: does a radar see through what a laser sees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.errors import TransectError
from transect.geometry.robust import NORMAL
from transect.integrity.lasers.background import Early
from transect.integrity.lasers.obscurants import Lookout
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving
from transect.integrity.windows import Window
from transect.types import LaserScan, RadarRange

BEARING = np.radians(2.0)
"""Width of the bearings in which a radar's ranges are gathered, rad."""
ELEVATION = np.radians(4.0)
"""Half the angle above and below its plane in which the radar sees what the laser sees, rad."""
MARGIN, SIGMAS, LEAST_SIGMA = 0.5, 3.0, 0.15
"""Metres, deviations, and the smallest deviation in metres, by which a laser must be short of a radar."""
STEADY = 1.0
"""Deviation in metres up to which a radar has a target at a bearing, and not now this, now that."""
LEAST_BEAMS = 20
"""Early beams that the radar can confirm, for anything to be said."""


class LaserRadar(Check, id="X01", group="cross", least=5, version=5):
    """Part of a laser's early returns from no surface (C02) behind which the radar sees farther.

    ``short = r_laser < r_radar - (0.5 m + 3 sigma_radar)`` at the radar's bearing, in the radar's frame, for
    beams within 4 degrees of its plane, where the radar has a steady target (sigma below 1 m). Where that is
    nearer than the laser's return, as ground before the vehicle is, it tells nothing of what is behind, since
    it has one range in a direction. A cloud is transparent to the radar: most of its returns are short, and
    are masked. What comes back from surfaces is not asked for: of a person before a wall, the wall may be the
    radar's strongest target.

    Motive: Document 004, 5.1: lasers see false obstacles in dust, while the radar is "not visibly affected".
    """

    disagreement = Limit(
        0.3, 0.5, "OBSCURANT", "", "part of the scattered returns that the radar sees through"
    )

    def look(
        self,
        laser: Window[LaserScan],
        radars: Sequence[Window[RadarRange]],
        moving: Sequence[Window[Moving]] = (),
        lasers: Sequence[Window[LaserScan]] = (),
    ) -> Finding | Unknown:
        """Hold early returns against the ranges of the first radar that has any."""
        radar = next((each for each in radars if len(each)), None)
        if radar is None:
            return Unknown("NO_PEER", n=len(laser))
        early = Lookout.of(self.about).find_early(laser, lasers, moving, self.about)
        if isinstance(early, Unknown):
            return early
        peers, found = (radar.stream.name,), {"early": early.share}
        if not early.is_cloud or early.is_rain:
            return Finding({"disagreement": 0.0}, len(laser), found, peers=peers)
        try:
            T = self.about.frames.lookup(radar.stream.frame, laser.stream.frame, laser.t1_ns)
        except TransectError as error:
            return Unknown("NO_FRAMES", error.what, len(laser), found)
        known, short = _held_against(radar, early, T)
        count = int(known.sum())
        if count < LEAST_BEAMS:
            return Unknown("TOO_FEW", "the radar does not look where the laser does", len(laser), found)
        share = float(short.sum()) / count
        found["confirmed"] = 1.0 - share
        note = "" if share > self.disagreement.warn else "the radar sees an object there too"
        region = early.sweeps.region(short) if share > self.disagreement.warn else None
        return Finding({"disagreement": share}, len(laser), found, note=note, peers=peers, region=region)


def _held_against(radar: Window[RadarRange], early: Early, T: Floats) -> tuple[Mask, Mask]:
    """Return which scattered returns (s, d) the radar can judge, and which of them it sees through."""
    r, angles = np.where(early.scattered, early.sweeps.ranges, np.nan), early.sweeps.angles
    beams = np.stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))], axis=-1)
    points = r[..., None] * (beams @ T[:3, :3].T) + T[:3, 3]
    flat = np.hypot(points[..., 0], points[..., 1])
    level = np.abs(np.arctan2(points[..., 2], flat)) < ELEVATION
    bearing = np.arctan2(points[..., 1], points[..., 0])
    middle, sigma = _profile(radar.column("angle"), radar.column("range"))
    place = np.mod(np.rint(np.nan_to_num(bearing) / BEARING).astype(np.int64), len(middle))
    far, deviation = middle[place], sigma[place]
    margin = MARGIN + SIGMAS * np.maximum(deviation, LEAST_SIGMA)
    known = early.scattered & level & (deviation < STEADY) & (flat < far + margin)
    return known, known & (flat < far - margin)


def _profile(angle: Floats, ranges: Floats) -> tuple[Floats, Floats]:
    """Return the median range and its deviation (k,) by bearing from 0 on, NaN where it did not look."""
    count = round(2 * np.pi / BEARING)
    place = np.mod(np.rint(angle / BEARING).astype(np.int64), count)
    middle, sigma = np.full(count, np.nan), np.full(count, np.nan)
    for each in np.unique(place):
        there = ranges[place == each]
        middle[each] = np.median(there)
        sigma[each] = NORMAL * np.median(np.abs(there - middle[each]))
    return middle, sigma
