"""Comparison of sample time and log time: delay and clock drift.

The drift is the slope of a least-squares line through the smallest delays of blocks of samples, because
messages can be delayed, but not early. Its standard error comes from the residuals of the blocks, inflated
for their first-order autocorrelation. The drift is reported only if it is significant and both halves of the
recording agree with it, so that a jump, or a queue that fills once, is not reported as drift.
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
    drift_ppm: float | None  # Growth of the delay, microseconds per second; None if not significant
    drift_sigma_ppm: float | None  # Standard error of the slope; None for too few samples
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


@dataclass(frozen=True)
class DriftSettings:
    """Settings of the drift estimate."""

    blocks: int = 24  # Blocks of samples; the smallest delay of each is fitted
    min_block_samples: int = 4
    significant_sigmas: float = 4.0  # Smallest reported drift, in standard errors


DRIFT = DriftSettings()


def _estimate_drift(elapsed_s: Floats, delay_s: Floats) -> tuple[float | None, float | None]:
    """Return the drift, if it is significant and steady, and its standard error, both in ppm."""
    if len(elapsed_s) < DRIFT.blocks * DRIFT.min_block_samples:
        return None, None
    order = np.argsort(elapsed_s, kind="stable")
    blocks = np.array_split(order, DRIFT.blocks)
    earliest = [int(block[np.argmin(delay_s[block])]) for block in blocks]
    t, delay = elapsed_s[earliest], delay_s[earliest]
    half_parts = slice(DRIFT.blocks // 2), slice(DRIFT.blocks // 2, None)
    if not all(np.ptp(t[part]) for part in half_parts):
        return None, None
    slope, sigma = _slope(t, delay)
    halves = [_slope(t[part], delay[part])[0] for part in half_parts]
    # Half of the time and half of the blocks: the standard error of a half is 2^1.5 times that of the whole.
    is_steady = max(abs(half - slope) for half in halves) <= DRIFT.significant_sigmas * 2**1.5 * sigma
    if not is_steady:  # a line does not describe the delays: there is no single drift
        sigma = max(sigma, max(abs(half - slope) for half in halves))
    is_significant = is_steady and abs(slope) > DRIFT.significant_sigmas * sigma
    return slope * 1e6 if is_significant else None, sigma * 1e6


def _slope(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the slope of the regression line of y on x (n,), and its standard error."""
    x, y = x - x.mean(), y - y.mean()
    sum_of_squares = float(x @ x)
    slope = float(x @ y) / sum_of_squares if sum_of_squares else 0.0
    residual = y - slope * x
    power = float(residual @ residual)
    correlation = float(residual[1:] @ residual[:-1]) / power if power else 0.0
    correlation = min(max(correlation, 0.0), 0.9)
    variance = power / (len(x) - 2) * (1 + correlation) / (1 - correlation)
    return slope, math.sqrt(variance / sum_of_squares) if sum_of_squares else math.inf


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
    """Return the drift with its standard error, or the smallest drift that would be reported."""
    drift, sigma = comparison.drift_ppm, comparison.drift_sigma_ppm
    if sigma is None:
        return "-"
    if drift is None:
        return f"none above {DRIFT.significant_sigmas * sigma:.2g} ppm" if sigma else "none"
    return f"{drift:.1f} +- {sigma:.1g} ppm"
