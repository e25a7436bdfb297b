"""C05: does a sector of a laser, in which returns used to come, get none any more."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.engine.params import param
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.sweeps import Sweeps, sweeps_of
from transect.integrity.windows import Window
from transect.types import LaserScan

REMEMBERED = 30
"""Windows that tell where returns used to come."""
USED, GONE = 0.8, 0.02
"""Part of the sweeps with a return: at least where they used to come, at most where none come."""
MOVED_M, MOVED = 0.5, 0.2
"""Metres, and the part of the directions that change by more: then the laser has moved."""


class Blockage(Check, id="C05", group="content", version=2, least=5):
    """Part of the directions in which returns used to come, and for `lasting` none came.

    They used to come where they did for four fifths of all the time: who stood there for a while and left
    blocks nothing. They count where `wide` degrees of neighbours have none. A laser that moves, or whose
    other ranges change, may look into the open: then the check cannot tell. The sector is masked.

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
        self._returned, self._windows = np.zeros(1), 0

    def look(self, laser: Window[LaserScan], moving: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Count directions that fell silent, and how long ago."""
        sweeps = sweeps_of(laser, self.about)
        rate, middle = _returns(sweeps)
        moves = is_moving(moving)
        if moves or self._has_changed(middle):
            self._rates.clear()
            self._ranges = self._silent = None
            self._returned, self._windows = np.zeros(len(rate)), 0
            return Unknown("MOVING" if moves else "CHANGED", n=len(laser))
        if len(self._rates) < 3:
            self._learn(rate)
            self._ranges = middle if self._ranges is None else self._ranges
            return Unknown("LEARNING", n=len(laser))
        used = (np.median(np.array(self._rates), axis=0) >= USED) & (self._returned >= USED * self._windows)
        gone = used & (rate <= GONE)
        since = np.zeros(len(rate)) if self._silent is None else self._silent
        self._silent = np.where(gone, since + laser.seconds, 0.0)
        if not gone.any():
            self._learn(rate)
        step = float(np.abs(sweeps.angles[1] - sweeps.angles[0])) if len(sweeps.angles) > 1 else np.inf
        blocked = _wide(self._silent >= self.lasting - 1e-9, max(1, round(np.radians(self.wide) / step)))
        share = float(blocked.sum()) / max(int(used.sum()), 1)
        evidence = {
            "silent": float(gone.sum()) / max(int(used.sum()), 1),
            "degrees": float(np.degrees(blocked.sum() * step)),
        }
        region = sweeps.region(np.broadcast_to(blocked, sweeps.ranges.shape)) if blocked.any() else None
        return Finding({"share": share}, len(laser), evidence, region=region)

    def _learn(self, rate: Floats) -> None:
        self._rates.append(rate)
        self._returned, self._windows = self._returned + (rate >= USED), self._windows + 1

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
    middle = np.full(len(rate), np.nan)
    some = came.any(axis=0)
    middle[some] = np.nanmedian(sweeps.ranges[:, some], axis=0)
    return np.where(asked > 0, rate, 0.0), middle


def _wide(which: Mask, least: int) -> Mask:
    """Return runs of True that are at least so long."""
    padded = np.concatenate([[False], which, [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    kept = np.zeros(len(which), np.bool_)
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        kept[start:stop] = stop - start >= least
    return kept
