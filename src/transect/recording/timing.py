"""Sample time against log time: which clock a stream trusts, and by how much the two differ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from transect.base import clocks

from .stream import Stream
from .summary import duration_text


@dataclass(frozen=True)
class ClockComparison:
    """Log time minus sample time of one stream; None where it has no log time.

    Attributes
    ----------
    median_s, min_s, max_s : float or None
        Delay from sample to log in seconds.
    drift_ppm : float or None
        How fast the delay grows: microseconds per second.
    backwards, repeated : int
        Stamps earlier than, or equal to, the one before.
    """

    stream: str
    clock: str
    median_s: float | None
    min_s: float | None
    max_s: float | None
    drift_ppm: float | None
    backwards: int
    repeated: int


def compare_clocks(stream: Stream) -> ClockComparison:
    """Compare a stream's sample times with its log times."""
    disorder = (stream.timing.backwards, stream.timing.repeated)
    log_ns = stream.log_ns
    if log_ns is None or not len(stream):
        return ClockComparison(stream.name, stream.clock, None, None, None, None, *disorder)
    delay = (log_ns - stream.t_ns) / clocks.NS
    elapsed = (stream.t_ns - stream.t_ns[0]) / clocks.NS
    drift = _slope(elapsed, delay) * 1e6 if len(stream) > 2 and np.ptp(elapsed) > 0 else None
    low, high = float(delay.min()), float(delay.max())
    return ClockComparison(stream.name, stream.clock, float(np.median(delay)), low, high, drift, *disorder)


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())


def comparison_row(comparison: ClockComparison) -> tuple[str, ...]:
    """Return a comparison as the cells of a table."""

    def seconds(value: float | None) -> str:
        if value is None:
            return "-"
        return ("-" if value < 0 else "") + duration_text(abs(value))

    drift = comparison.drift_ppm
    return (
        comparison.stream,
        comparison.clock,
        seconds(comparison.median_s),
        seconds(comparison.min_s),
        seconds(comparison.max_s),
        "-" if drift is None or math.isnan(drift) else f"{drift:.1f} ppm",
        str(comparison.backwards),
        str(comparison.repeated),
    )
