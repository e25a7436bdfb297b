"""C05: has a sector of a laser lost its returns."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.engine.nodes import param
from transect.integrity.lasers.sweeps import Sweeps, sweeps_of
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import LaserScan


@dataclass(frozen=True)
class BlockageSettings:
    """Numbers of the directions that lose their returns."""

    max_windows: int = 30  # Windows of the baseline.
    # Ratio of sweeps with a return in a direction that had returns before, ...
    min_return_ratio: float = 0.8
    max_return_ratio: float = 0.02  # ... and in one that has none now.
    range_change_m: float = 0.5  # The laser has moved if ranges change by more, ...
    max_changed_ratio: float = 0.2  # ... in this ratio of the directions.
    max_object_step_m: float = 0.5  # Range difference of neighbouring returns from one object.


class Blockage(Check, id="C05", group="content", version=3, min_samples=5):
    """Fraction of the directions that used to have returns, and had none for `lasting`.

    A direction used to have returns if four fifths of all sweeps had one: a person who stood there for a
    while and left blocks nothing. It counts if `wide` degrees of neighbours have no return either. Dirt
    does not follow the outlines of objects: a sector that is exactly one object from edge to edge has
    moved away, and is not blocked. A laser that moves, or whose other ranges change, may see open space,
    and the check is UNKNOWN. The sector is masked.

    Motive: Mud, a cover, a load in front of the sensor; a map assumes that unseen space is free.
    """

    settings = BlockageSettings()

    share = Limit(0.05, 0.3, "BLOCKED", "", "fraction of the directions that are blocked")
    lasting: float = param(5.0, gt=0.0, unit="s", doc="without a return")
    wide: float = param(3.0, gt=0.0, unit="deg", doc="width of the smallest sector")

    def reset(self) -> None:
        """Start without a baseline."""
        self._rates: deque[Floats] = deque(maxlen=self.settings.max_windows)
        self._ranges: Floats | None = None
        self._silent: Floats | None = None
        self._middles: deque[Floats] = deque(maxlen=self.settings.max_windows)
        self._returned, self._windows = np.zeros(1), 0

    def evaluate(self, laser: Window[LaserScan], moving: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Count the directions without returns, and for how long."""
        sweeps = sweeps_of(laser, self.context)
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
        used = (np.median(np.array(self._rates), axis=0) >= self.settings.min_return_ratio) & (
            self._returned >= self.settings.min_return_ratio * self._windows
        )
        gone = used & (rate <= self.settings.max_return_ratio)
        since = np.zeros(len(rate)) if self._silent is None else self._silent
        self._silent = np.where(gone, since + laser.seconds, 0.0)
        step = float(np.abs(sweeps.angles[1] - sweeps.angles[0])) if len(sweeps.angles) > 1 else np.inf
        silent = self._silent >= self.lasting - 1e-9
        blocked = self._exclude_objects(
            silent, rate > self.settings.max_return_ratio, max(1, round(np.radians(self.wide) / step))
        )
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
        self._returned, self._windows = (
            self._returned + (rate >= self.settings.min_return_ratio),
            self._windows + 1,
        )

    def _exclude_objects(self, silent: Mask, has_returns: Mask, min_count: int) -> Mask:
        """Return runs of silent directions (d,), at least `min_count` long, that are not one whole object.

        `has_returns` (d,) are the directions with returns now.
        """
        kept = np.zeros(len(silent), np.bool_)
        if not silent.any():
            return kept
        is_joined = np.abs(np.diff(_medians(np.array(self._middles)))) < self.settings.max_object_step_m
        for start, stop in _runs(silent):
            first, last = start, stop - 1
            while first > 0 and is_joined[first - 1] and not has_returns[first]:
                first -= 1
            while last < len(is_joined) and is_joined[last] and not has_returns[last]:
                last += 1
            ends = first > 0 and last < len(is_joined) and not has_returns[first] and not has_returns[last]
            is_object = ends and bool(is_joined[start : stop - 1].all())
            kept[start:stop] = stop - start >= min_count and not is_object
        return kept

    def _has_changed(self, middle: Floats) -> bool:
        if self._ranges is None:
            return False
        both = np.isfinite(middle) & np.isfinite(self._ranges)
        changed = np.abs(middle - self._ranges)[both] > self.settings.range_change_m
        return bool(both.any() and changed.mean() > self.settings.max_changed_ratio)


def _returns(sweeps: Sweeps) -> tuple[Floats, Floats]:
    """Return for each direction the ratio of beams with a return, and the median range or NaN."""
    has_returns = np.isfinite(sweeps.ranges)
    measured = sweeps.measured.sum(axis=0)
    rate = has_returns.sum(axis=0) / np.maximum(measured, 1)
    return np.where(measured > 0, rate, 0.0), _medians(sweeps.ranges)


def _medians(ranges: Floats) -> Floats:
    """Return the median of each column (d,) of ranges (n, d), NaN for empty ones."""
    middle = np.full(ranges.shape[1], np.nan)
    some = np.isfinite(ranges).any(axis=0)
    middle[some] = np.nanmedian(ranges[:, some], axis=0)
    return middle


def _runs(which: Mask) -> list[tuple[int, int]]:
    """Return begin and end of the runs of True."""
    padded = np.concatenate([[False], which, [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1]).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))
