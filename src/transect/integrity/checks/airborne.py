"""C04: does a lidar see points that hang in the air."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Mask
from transect.engine.nodes import param
from transect.geometry.neighbours import beam_spacing
from transect.integrity.baselines import Usual
from transect.integrity.lasers.point_clouds import View, find_alone, find_hanging, views_of
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import PointCloud

LEAST_POINTS = 2000
"""Of a cloud, for neighbours to tell anything."""
USUAL = 0.03
"""Largest part of the points that clear air leaves hanging; real submaps have as much."""
LEAST, SPREADS = 5, 3.0
"""Windows that tell what is usual, and deviations above it that are usual, too."""


class Airborne(Check, id="C04", group="content"):
    """Part of a cloud's points that are alone (DROR) and hang before what is beside them.

    Alone: fewer than 3 neighbours within ``max(0.04 m, 3 alpha range)``. Alpha is the usual angle between a
    point and its nearest neighbour, from the stream's own first clouds, so that it fits any number of rings.
    Far and slanted surfaces leave points alone as well (4 to 37 % in clear air); such have points beside them
    that are as near. What hangs is nearer than 0.9 of the range of seven of its eight neighbours in
    direction. What is usual for the stream, 3 % at most, is taken off. Points that are alone and nearer than
    half of these neighbours are masked.

    Motive: Lidars of documents 000 and 003; document 004, 5.1: dust is "random points in the laser scans".
    """

    share = Limit(0.01, 0.1, "OBSCURANT", "", "part of the points that hang in the air, beyond what is usual")
    most: int = param(2, ge=1, le=100, doc="largest number of clouds of a window that are looked at")

    learns_baseline = True

    def reset(self) -> None:
        """Nothing is usual yet."""
        self._spacing, self._share = Usual(), Usual(least=LEAST)

    def look(self, lidar: Window[PointCloud]) -> Finding | Unknown:
        """Count the points that hang in the air, in a few clouds."""
        views = [view for view in views_of(lidar, self.most) if len(view.points) >= LEAST_POINTS]
        if not views:
            return Unknown("TOO_FEW", f"its clouds have less than {LEAST_POINTS} points", len(lidar))
        found = [self._find(view) for view in views]
        alone, share = (float(np.mean([np.mean(each[k]) for each in found])) for k in (0, 1))
        known = self._share.value + SPREADS * self._share.spread
        usual = min(USUAL, known) if np.isfinite(known) else USUAL
        self._share.learn(share)
        beyond = max(0.0, share - usual)
        region = _region(lidar, views, [each for *_, each in found]) if beyond > self.share.warn else None
        evidence = {"alone": alone, "hanging": share, "usual": usual}
        return Finding({"share": beyond}, len(views), evidence, region=region)

    def _find(self, view: View) -> tuple[Mask, Mask, Mask]:
        """Return which points (n,) are alone, which of these hang in the air for sure, and which may."""
        now = beam_spacing(view.points)
        usual = self._spacing.value
        self._spacing.learn(now)
        alone = find_alone(view, min(now, usual) if np.isfinite(usual) else now)
        return alone, *find_hanging(view, alone)


def _region(lidar: Window[PointCloud], views: list[View], found: list[Mask]) -> Mask:
    """Return the masked points (clouds, points) of a window; clouds that were not looked at have none."""
    region: Mask = np.zeros((len(lidar), max(view.count for view in views)), np.bool_)
    for view, hanging in zip(views, found, strict=True):
        region[view.row - lidar.start, np.flatnonzero(view.used)[hanging]] = True
    return region
