"""What a laser should see of known walls, and whether it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints, Mask

BIN = np.radians(2.0)
"""Directions that are told apart."""
MARGIN, MARGIN_SHARE = 0.3, 0.02
"""Metres, and part of the range, by which what is seen may be off what is known."""
FARTHEST = 0.95
"""Part of a scan's longest range up to which walls should have been seen."""


@dataclass(frozen=True, eq=False)
class LaserView:
    """Where a laser is on its body, and which way it looks.

    Attributes
    ----------
    place : (2,)
        m, in the body's plane.
    ahead : float
        Direction of the middle of its view, rad in the body's plane.
    half : float
        Angle to each side, rad.
    """

    place: Floats
    ahead: float
    half: float

    @staticmethod
    def of(calibration: Mapping[str, Any]) -> LaserView:
        """Return the view that a map tells of; a scanner of 180 deg if it does not."""
        mounted = np.array(calibration.get("T_body_laser", np.eye(4).tolist()), np.float64)
        first, last = calibration.get("view", (-np.pi / 2, np.pi / 2))
        middle = mounted[:2, :2] @ np.array([np.cos((first + last) / 2), np.sin((first + last) / 2)])
        return LaserView(mounted[:2, 3], float(np.arctan2(middle[1], middle[0])), abs(last - first) / 2)

    def share_seen(self, points: Floats, walls: Floats, pose: Floats) -> float:
        """Return which part of the walls that are in view from a pose was seen from there.

        That a scan fits is half of the evidence: a few walls far away fit in many places where it should
        have seen others before them.

        Parameters
        ----------
        points : (n, 2)
            Returns of a scan, about the body.
        walls : (m, 2)
            Known ones, densely.
        pose : (3,)
            Of the body among the walls.
        """
        from scipy.ndimage import maximum_filter1d, minimum_filter1d

        c, s = np.cos(pose[2]), np.sin(pose[2])
        known, _ = self._ranges((walls - pose[:2]) @ np.array([[c, -s], [s, c]]))
        near, far = self._ranges(points)
        near, far = minimum_filter1d(near, 3), maximum_filter1d(far, 3)  # walls that are seen aslant
        asked = known < FARTHEST * far.max()
        margin = MARGIN + MARGIN_SHARE * np.where(asked, known, 0.0)
        seen = asked & (known >= near - margin) & (known <= far + margin)
        missed = asked & (known < near - margin)
        return float(seen.sum() / max((seen | missed).sum(), 1))

    def sight_of(self, points: Floats) -> Sight:
        """Return how far a scan with these returns (n, 2) looked."""
        _, far = self._ranges(points)
        return Sight(self, far, float(far.max(initial=0.0)))

    def _ranges(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the nearest and the farthest of points (n, 2) by direction; inf and -inf where none is."""
        aside, away = self.polar(points)
        inside = np.abs(aside) <= self.half
        rows, away = self.rows_of(aside[inside]), away[inside]
        count = int(2 * self.half / BIN) + 1
        near, far = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(near, rows, away)
        np.maximum.at(far, rows, away)
        return near, far

    def polar(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the angle of points (n, 2) beside the middle of the view, and how far they are."""
        x, y = (points - self.place).T
        return (np.arctan2(y, x) - self.ahead + np.pi) % (2 * np.pi) - np.pi, np.hypot(x, y)

    def rows_of(self, aside: Floats) -> Ints:
        """Return the numbers of the directions at angles (n,) beside the middle of the view."""
        return ((aside + self.half) / BIN).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Sight:
    """How far a scan looked.

    Attributes
    ----------
    view : LaserView
    far : (n,)
        Farthest return by direction, m; -inf where none is.
    reach : float
        Farthest return of all, m: what is beyond cannot be told from nothing.
    """

    view: LaserView
    far: Floats
    reach: float

    def covers(self, points: Floats, slack: float) -> Mask:
        """Tell which points (n, 2), about the body, the scan would have seen if there was something.

        Where it looked no further walls do not end; they are not known.

        Parameters
        ----------
        slack : float
            Metres by which the points may be off.
        """
        aside, away = self.view.polar(points)
        inside = np.abs(aside) <= self.view.half - slack / np.maximum(away, slack)
        far = self.far[self.view.rows_of(np.where(inside, aside, 0.0))]
        limit = np.where(far >= 0.0, far * (1 + MARGIN_SHARE) + MARGIN, np.inf)
        return inside & (away <= np.minimum(limit, self.reach - slack))
