"""Effect of verdicts on samples: masks, and weights of measurements.

The engine is independent of the checks, which provide `Verdicts`: the verdict on a stream at a time, and
masks of single samples. A mask is applied to the sample before any node gets it (`apply_mask`). All else is a
weight: a node inflates its measurement noise by `Context.trust`, R' = R / max(score, 0.05)^2, or divides a
sigma by
it.
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

MIN_TRUST = 0.05  # of a sensor without a substitute: its sigmas are 20 times as large
MAX_MASKED_RATIO = 0.6  # of a cloud, or a sample other than a scan; if more is masked, it is dropped


class StreamVerdicts(NamedTuple):
    """The verdicts on a stream at a time."""

    whole: Verdict  # combined from all checks
    rest: Verdict  # combined from checks without a region: regions are masked, the rest is usable


class Verdicts(Protocol):
    """The verdicts that a run uses."""

    def known_at(self, stream: str, t_ns: int) -> StreamVerdicts | None:
        """Return the verdicts on a stream for a sample of a time (ns), None if there are none."""
        ...

    def mask_of(self, stream: str, row: int) -> Mask | None:
        """Return the mask of the sample in a row, None if nothing is masked."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return their source; `hindsight` states whether they were made with later data."""
        ...

    def write(self, folder: Path, until_ns: int) -> None:
        """Write them to the folder of the run, up to the time (ns) to which it was played."""
        ...


VerdictSource = Callable[[Recording, Collection[str]], Verdicts]
"""Makes the verdicts of a run from the played part of the recording and the names of the streams used."""


def apply_mask(value: Any, mask: Mask) -> tuple[Any, float]:
    """Return a sample without its masked parts, None if it is dropped; and the masked ratio.

    Parameters
    ----------
    value : any
        Masked beams of a `LaserScan` and points of a `PointCloud` are marked as not measured. Clouds with too
        many masked points, and other samples, are dropped.
    mask : (k,) bool array
        For its beams or points, possibly only the first k, or one number for the whole sample.
    """
    if isinstance(value, LaserScan):
        return _erase_beams(value, mask)
    if isinstance(value, PointCloud):
        return _erase_points(value, mask)
    return (None, 1.0) if np.mean(mask) >= MAX_MASKED_RATIO else (value, float(np.mean(mask)))


def _erase_beams(scan: LaserScan, mask: Mask) -> tuple[LaserScan | None, float]:
    dropped, ratio = _extend_mask(mask, len(scan.ranges))
    if ratio == 1.0:
        return None, ratio
    errors = np.zeros(len(dropped), np.uint16) if scan.range_error is None else scan.range_error
    codes = np.where(dropped, OTHER_ERROR, errors).astype(np.uint16)
    return dataclasses.replace(scan, ranges=np.where(dropped, np.nan, scan.ranges), range_error=codes), ratio


def _erase_points(cloud: PointCloud, mask: Mask) -> tuple[PointCloud | None, float]:
    dropped, ratio = _extend_mask(mask, len(cloud))
    if ratio >= MAX_MASKED_RATIO:
        return None, 1.0
    points = cloud.points.copy()
    points[dropped] = np.nan
    return dataclasses.replace(cloud, points=points), ratio


def _extend_mask(mask: Mask, parts: int) -> tuple[Mask, float]:
    """Return a mask (k,) extended to all parts of a sample, and the masked ratio."""
    dropped = np.zeros(parts, np.bool_)
    dropped[: len(mask)] = mask[:parts]
    return dropped, float(np.count_nonzero(dropped)) / max(parts, 1)


def worst_of(known: Collection[StreamVerdicts]) -> StreamVerdicts | None:
    """Return the worst verdicts of several streams; None if there are none."""
    return min(known, key=lambda each: _score(each.rest), default=None)


def _score(verdict: Verdict) -> float:
    """Return the score of a verdict; 1 if it is unknown, as no fault was found."""
    return 1.0 if verdict.score is None else verdict.score


def trust_of(verdict: Verdict) -> float:
    """Return the number by which sigmas are divided: max(score, 0.05)."""
    return max(_score(verdict), MIN_TRUST)


@dataclass
class DowngradedSamples:
    """Counts of the samples of an input, or a stream, that were down-weighted, masked or dropped."""

    down_weighted: int = 0
    masked: int = 0  # partly
    dropped: int = 0
    min_trust: float = 1.0  # of the down-weighted samples
    masked_ratio_sum: float = 0.0  # over the masked samples
    first_ns: int | None = None  # time of the first of these samples
    last_ns: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])  # of the verdicts behind them

    def add_trust(self, t_ns: int, trust: float, reason: str) -> None:
        """Count a down-weighted sample, or a dropped one (trust 0)."""
        self.down_weighted += trust > 0
        self.dropped += not trust
        self.min_trust = min(self.min_trust, trust or self.min_trust)
        self.reasons[reason] += 1
        self._note(t_ns)

    def add_mask(self, t_ns: int, ratio: float) -> None:
        """Count a sample with a masked ratio; 1 is a dropped sample."""
        self.dropped += ratio == 1.0
        self.masked += ratio < 1.0
        self.masked_ratio_sum += ratio if ratio < 1.0 else 0.0
        self._note(t_ns)

    def _note(self, t_ns: int) -> None:
        self.first_ns = t_ns if self.first_ns is None else min(self.first_ns, t_ns)
        self.last_ns = max(self.last_ns, t_ns)

    def describe(self, origin_ns: int) -> str:
        """Return the counts in words; times count from the first sample that is played."""
        parts: list[str] = []
        if self.masked:
            parts.append(
                f"{_samples(self.masked)} masked ({self.masked_ratio_sum / self.masked:.1%} of each)"
            )
        if self.down_weighted:
            parts.append(
                f"{_samples(self.down_weighted)} down-weighted, sigma up to {1 / self.min_trust:.3g} times"
            )
        if self.dropped:
            parts.append(f"{_samples(self.dropped)} dropped")
        first = origin_ns if self.first_ns is None else self.first_ns
        when = f"+{(first - origin_ns) / NS:.1f} s to +{(self.last_ns - origin_ns) / NS:.1f} s"
        why = ", ".join(sorted(name for name in self.reasons if name))
        return f"{', '.join(parts)}; {when}{f' ({why})' if why else ''}"


def _samples(number: int) -> str:
    return "1 sample" if number == 1 else f"{number} samples"
