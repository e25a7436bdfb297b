"""C05: does a sector of a laser, in which returns used to come, get none any more."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.engine.nodes import param
from transect.integrity.lasers.sweeps import Sweeps, sweeps_of
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import LaserScan

REMEMBERED = 30
"""Windows that tell where returns used to come."""
USED, GONE = 0.8, 0.02
"""Part of the sweeps with a return: at least where they used to come, at most where none come."""
MOVED_M, MOVED = 0.5, 0.2
"""Metres, and the part of the directions that change by more: then the laser has moved."""
JOINED_M = 0.5
"""Metres between neighbouring returns of one thing."""


class Blockage(Check, id="C05", group="content", version=3, least=5):
    """Part of the directions in which returns used to come, and for `lasting` none came.

    They used to come where they did for four fifths of all the time: who stood there for a while and left
    blocks nothing. They count where `wide` degrees of neighbours have none. Mud does not know where things
    end: what fell silent as one thing from edge to edge went away, and blocks nothing, either. A laser that
    moves, or whose other ranges change, may look into the open: then the check cannot tell. The sector is
    masked.

    Motive: Mud, a cover, a load in front of the sensor; a map takes what is not seen for free.
    """

    share = Limit(0.05, 0.3, "BLOCKED", "", "part of the directions that are blocked")
    lasting: float = param(5.0, gt=0.0, unit="s", doc="without a return")
    wide: float = param(3.0, gt=0.0, unit="deg", doc="width of the smallest sector")

    def reset(self) -> None:
        """Nothing was seen yet."""
        self._rates: deque[Floats] = deque(maxlen=REMEMBERED)
        self._ranges: Floats | None = None
        self._silent: Floats | None = None
        self._middles: deque[Floats] = deque(maxlen=REMEMBERED)
        self._returned, self._windows = np.zeros(1), 0

    def look(self, laser: Window[LaserScan], moving: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Count directions that fell silent, and how long ago."""
        sweeps = sweeps_of(laser, self.about)
        rate, middle = _returns(sweeps)
        moves = is_moving(moving)
        if moves or self._has_changed(middle):
            self._rates.clear()
            self._middles.clear()
            self._ranges = self._silent = None
            self._returned, self._windows = np.zeros(len(rate)), 0
            return Unknown("MOVING" if moves else "CHANGED", n=len(laser))
        if len(self._rates) < 3:
            self._learn(rate, middle)
            self._ranges = middle if self._ranges is None else self._ranges
            return Unknown("LEARNING", n=len(laser))
        used = (np.median(np.array(self._rates), axis=0) >= USED) & (self._returned >= USED * self._windows)
        gone = used & (rate <= GONE)
        since = np.zeros(len(rate)) if self._silent is None else self._silent
        self._silent = np.where(gone, since + laser.seconds, 0.0)
        step = float(np.abs(sweeps.angles[1] - sweeps.angles[0])) if len(sweeps.angles) > 1 else np.inf
        silent = self._silent >= self.lasting - 1e-9
        blocked = self._find_cut(silent, rate > GONE, max(1, round(np.radians(self.wide) / step)))
        if not gone.any() or (silent[gone].all() and not blocked.any()):
            self._learn(rate, middle)
        share = float(blocked.sum()) / max(int(used.sum()), 1)
        evidence = {
            "silent": float(gone.sum()) / max(int(used.sum()), 1),
            "degrees": float(np.degrees(blocked.sum() * step)),
        }
        region = sweeps.region(np.broadcast_to(blocked, sweeps.ranges.shape)) if blocked.any() else None
        return Finding({"share": share}, len(laser), evidence, region=region)

    def _learn(self, rate: Floats, middle: Floats) -> None:
        self._rates.append(rate)
        self._middles.append(middle)
        self._returned, self._windows = self._returned + (rate >= USED), self._windows + 1

    def _find_cut(self, silent: Mask, came: Mask, least: int) -> Mask:
        """Return runs of silent directions (d,), at least so long, that are no whole thing that went away.

        `came` are the directions that have returns now.
        """
        kept = np.zeros(len(silent), np.bool_)
        if not silent.any():
            return kept
        joined = np.abs(np.diff(_medians(np.array(self._middles)))) < JOINED_M
        for start, stop in _runs(silent):
            first, last = start, stop - 1
            while first > 0 and joined[first - 1] and not came[first]:
                first -= 1
            while last < len(joined) and joined[last] and not came[last]:
                last += 1
            ends = first > 0 and last < len(joined) and not came[first] and not came[last]
            is_thing = ends and bool(joined[start : stop - 1].all())
            kept[start:stop] = stop - start >= least and not is_thing
        return kept

    def _has_changed(self, middle: Floats) -> bool:
        if self._ranges is None:
            return False
        both = np.isfinite(middle) & np.isfinite(self._ranges)
        changed = np.abs(middle - self._ranges)[both] > MOVED_M
        return bool(both.any() and changed.mean() > MOVED)


def _returns(sweeps: Sweeps) -> tuple[Floats, Floats]:
    """Return for each direction the part of its beams that came back, and the median range; NaN for none."""
    came = np.isfinite(sweeps.ranges)
    asked = sweeps.asked.sum(axis=0)
    rate = came.sum(axis=0) / np.maximum(asked, 1)
    return np.where(asked > 0, rate, 0.0), _medians(sweeps.ranges)


def _medians(ranges: Floats) -> Floats:
    """Return the median of each column (d,) of ranges (n, d) that are known; NaN where none is."""
    middle = np.full(ranges.shape[1], np.nan)
    some = np.isfinite(ranges).any(axis=0)
    middle[some] = np.nanmedian(ranges[:, some], axis=0)
    return middle


def _runs(which: Mask) -> list[tuple[int, int]]:
    """Return begin and end of runs of True."""
    padded = np.concatenate([[False], which, [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1]).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))
