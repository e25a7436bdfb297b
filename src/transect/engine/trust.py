"""Acting on verdicts: how far samples are trusted, and what of them reaches no node.

The engine knows no checks. Whoever does gives it `Verdicts`: what was known of a stream at a time, and masks
of single samples. A mask acts on the sample itself, before any node gets it (`erase`). All else is weight: a
node gives `Context.trust` to `inflate`, R' = R / max(score, 0.05)^2, or divides a sigma by it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from transect.base.arrays import Mask
from transect.base.clocks import NS
from transect.recording import Recording
from transect.types import LaserScan, PointCloud, Verdict
from transect.types.returns import OTHER_ERROR

LEAST_TRUST = 0.05
"""A sensor that a node cannot do without counts for no less: its sigmas are 20 times as large."""
MOST_MASKED = 0.6
"""Share of a cloud, or of any sample but a scan, from which on it is left out. Beams are good one by one."""


class Known(NamedTuple):
    """What was known of a stream at a time."""

    whole: Verdict  # what all checks say together
    # The same of checks that gave no region. What a region explains is masked, and what is left is good
    rest: Verdict


class Verdicts(Protocol):
    """What a run may know of the streams that it plays."""

    def known_at(self, stream: str, t_ns: int) -> Known | None:
        """Return what is known of a stream for a sample of a time (ns), None if nothing is."""
        ...

    def mask_of(self, stream: str, row: int) -> Mask | None:
        """Return what of the sample in a row is to be dropped, None if nothing is."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return where they come from; `hindsight` tells whether they know what came later."""
        ...

    def write(self, folder: Path, until_ns: int) -> None:
        """Keep them in the folder of the run, up to the time (ns) to which it was played."""
        ...


VerdictSource = Callable[[Recording, Collection[str]], Verdicts]
"""Makes the verdicts of a run: given what is played of the recording, and the names of the streams used."""


def erase(value: Any, mask: Mask) -> tuple[Any, float]:
    """Return a sample without what is masked, None if it is left out; and which share of it is dropped.

    Parameters
    ----------
    value : any
        Beams of a `LaserScan` and points of a `PointCloud` become as if they had not been measured; a cloud
        of which most is masked, and other samples, go whole or not at all.
    mask : (k,) bool array
        Of its beams or points, which may be fewer, or one number for the whole sample.
    """
    if isinstance(value, LaserScan):
        return _erase_beams(value, mask)
    if isinstance(value, PointCloud):
        return _erase_points(value, mask)
    return (None, 1.0) if np.mean(mask) >= MOST_MASKED else (value, float(np.mean(mask)))


def _erase_beams(scan: LaserScan, mask: Mask) -> tuple[LaserScan | None, float]:
    dropped, share = _lay_over(mask, len(scan.ranges))
    if share == 1.0:
        return None, share
    errors = np.zeros(len(dropped), np.uint16) if scan.range_error is None else scan.range_error
    erased = np.where(dropped, OTHER_ERROR, errors).astype(np.uint16)
    return dataclasses.replace(scan, ranges=np.where(dropped, np.nan, scan.ranges), range_error=erased), share


def _erase_points(cloud: PointCloud, mask: Mask) -> tuple[PointCloud | None, float]:
    dropped, share = _lay_over(mask, len(cloud))
    if share >= MOST_MASKED:
        return None, 1.0
    points = cloud.points.copy()
    points[dropped] = np.nan
    return dataclasses.replace(cloud, points=points), share


def _lay_over(mask: Mask, parts: int) -> tuple[Mask, float]:
    """Return which of so many parts a mask (k,) drops, and their share."""
    dropped = np.zeros(parts, np.bool_)
    dropped[: len(mask)] = mask[:parts]
    return dropped, float(np.count_nonzero(dropped)) / max(parts, 1)


def worst_of(known: Collection[Known]) -> Known | None:
    """Return what is worst of what is known of several streams; None if nothing is."""
    return min(known, key=lambda each: _score(each.rest), default=None)


def _score(verdict: Verdict) -> float:
    """Return a score; of a verdict that cannot tell it is 1: nothing is known to be wrong."""
    return 1.0 if verdict.score is None else verdict.score


def trust_of(verdict: Verdict) -> float:
    """Return the number by which sigmas are divided: max(score, 0.05)."""
    return max(_score(verdict), LEAST_TRUST)


@dataclass
class Doubt:
    """What became of the samples of one input, or of one stream, that were not trusted."""

    # Samples that counted for less, that lost a part, and that were not used at all
    weighed: int = 0
    masked: int = 0
    left_out: int = 0
    least: float = 1.0  # smallest trust of those that counted for less
    share: float = 0.0  # sum of the shares of the samples that lost a part
    # Of all these samples
    first_ns: int | None = None
    last_ns: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])  # of the verdicts behind them

    def weigh(self, t_ns: int, trust: float, reason: str) -> None:
        """Take note of a sample that counts for less, or for nothing (0)."""
        self.weighed += trust > 0
        self.left_out += not trust
        self.least = min(self.least, trust or self.least)
        self.reasons[reason] += 1
        self._note(t_ns)

    def mask(self, t_ns: int, share: float) -> None:
        """Take note of a sample of which a share is dropped; 1 is all of it."""
        self.left_out += share == 1.0
        self.masked += share < 1.0
        self.share += share if share < 1.0 else 0.0
        self._note(t_ns)

    def _note(self, t_ns: int) -> None:
        self.first_ns = t_ns if self.first_ns is None else min(self.first_ns, t_ns)
        self.last_ns = max(self.last_ns, t_ns)

    def describe(self, origin_ns: int) -> str:
        """Return it as words; times count from the first sample of what is played."""
        parts: list[str] = []
        if self.masked:
            parts.append(f"{_samples(self.masked)} masked ({self.share / self.masked:.1%} of each)")
        if self.weighed:
            parts.append(f"{_samples(self.weighed)} down-weighted, sigma up to {1 / self.least:.3g} times")
        if self.left_out:
            parts.append(f"{_samples(self.left_out)} left out")
        first = origin_ns if self.first_ns is None else self.first_ns
        when = f"+{(first - origin_ns) / NS:.1f} s to +{(self.last_ns - origin_ns) / NS:.1f} s"
        why = ", ".join(sorted(name for name in self.reasons if name))
        return f"{', '.join(parts)}; {when}{f' ({why})' if why else ''}"


def _samples(number: int) -> str:
    return "1 sample" if number == 1 else f"{number} samples"
