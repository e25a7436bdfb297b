"""Sample time against log time: which clock a stream trusts, and by how much the two differ.

The drift is the slope of a least-squares line through the smallest delays of blocks of samples: messages are
late in many ways and early in none. Its standard error comes from the residuals of the blocks, inflated for
their first-order autocorrelation. It is reported only where it is significant and both halves of the time
agree with it, so that a jump, or a queue that fills once, is no drift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from transect.base import clocks
from transect.base.arrays import Floats

from .stream import Stream
from .summary import duration_text


@dataclass(frozen=True)
class ClockComparison:
    """Log time minus sample time of one stream; None where it has no log time."""

    stream: str
    clock: str
    median_s: float | None  # Delay from sample to log in seconds
    min_s: float | None
    max_s: float | None
    # How fast the delay grows: microseconds per second. None where the data do not determine it.
    drift_ppm: float | None
    # Standard error of the slope, known for drifts that are not significant, too; None for too few
    # samples
    drift_sigma_ppm: float | None
    backwards: int  # Stamps earlier than, or equal to, the one before
    repeated: int


def compare_clocks(stream: Stream) -> ClockComparison:
    """Compare a stream's sample times with its log times."""
    disorder = (stream.timing.backwards, stream.timing.repeated)
    log_ns = stream.log_ns
    if log_ns is None or not len(stream):
        return ClockComparison(stream.name, stream.clock, None, None, None, None, None, *disorder)
    delay = (log_ns - stream.t_ns) / clocks.NS
    elapsed = (stream.t_ns - stream.t_ns[0]) / clocks.NS
    drift = _estimate_drift(elapsed, delay)
    low, high = float(delay.min()), float(delay.max())
    return ClockComparison(stream.name, stream.clock, float(np.median(delay)), low, high, *drift, *disorder)


BLOCKS, MIN_BLOCK_SAMPLES = 24, 4
SIGNIFICANT_SIGMAS = 4.0


def _estimate_drift(elapsed_s: Floats, delay_s: Floats) -> tuple[float | None, float | None]:
    """Return the drift, if it is significant and steady, and its standard error, both in ppm."""
    if len(elapsed_s) < BLOCKS * MIN_BLOCK_SAMPLES:
        return None, None
    order = np.argsort(elapsed_s, kind="stable")
    blocks = np.array_split(order, BLOCKS)
    earliest = [int(block[np.argmin(delay_s[block])]) for block in blocks]
    t, delay = elapsed_s[earliest], delay_s[earliest]
    if not np.ptp(t[: BLOCKS // 2]) or not np.ptp(t[BLOCKS // 2 :]):
        return None, None
    slope, sigma = _slope(t, delay)
    halves = [_slope(t[part], delay[part])[0] for part in (slice(BLOCKS // 2), slice(BLOCKS // 2, None))]
    # Half of the time and half of the blocks: the standard error of a half is 2^1.5 times that of the whole.
    is_steady = max(abs(half - slope) for half in halves) <= SIGNIFICANT_SIGMAS * 2**1.5 * sigma
    if not is_steady:  # the line does not describe the delays: they have no drift that one number tells
        sigma = max(sigma, max(abs(half - slope) for half in halves))
    is_significant = is_steady and abs(slope) > SIGNIFICANT_SIGMAS * sigma
    return slope * 1e6 if is_significant else None, sigma * 1e6


def _slope(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the slope of a line through points (n,), and its standard error."""
    x, y = x - x.mean(), y - y.mean()
    spread = float(x @ x)
    slope = float(x @ y) / spread if spread else 0.0
    residual = y - slope * x
    power = float(residual @ residual)
    correlation = float(residual[1:] @ residual[:-1]) / power if power else 0.0
    correlation = min(max(correlation, 0.0), 0.9)
    variance = power / (len(x) - 2) * (1 + correlation) / (1 - correlation)
    return slope, math.sqrt(variance / spread) if spread else math.inf


def comparison_row(comparison: ClockComparison) -> tuple[str, ...]:
    """Return a comparison as the cells of a table."""

    def seconds(value: float | None) -> str:
        if value is None:
            return "-"
        return ("-" if value < 0 else "") + duration_text(abs(value))

    return (
        comparison.stream,
        comparison.clock,
        seconds(comparison.median_s),
        seconds(comparison.min_s),
        seconds(comparison.max_s),
        _drift_text(comparison),
        str(comparison.backwards),
        str(comparison.repeated),
    )


def _drift_text(comparison: ClockComparison) -> str:
    """Return the drift with its standard error, or up to which size it would not show."""
    drift, sigma = comparison.drift_ppm, comparison.drift_sigma_ppm
    if sigma is None:
        return "-"
    if drift is None:
        return f"none above {SIGNIFICANT_SIGMAS * sigma:.2g} ppm" if sigma else "none"
    return f"{drift:.1f} +- {sigma:.1g} ppm"
