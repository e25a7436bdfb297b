"""T08: are the stamps of two sensors that measure the same motion consistent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.clocks import NS
from transect.engine.nodes import param
from transect.engine.offsets import MotionSignal, signals_of
from transect.errors import GeometryError
from transect.geometry.correlation import time_offset
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving
from transect.integrity.windows import Window

SIGNAL = "rate of turn"


@dataclass(frozen=True)
class LatencySettings:
    """Numbers of the correlation of turn rates."""

    min_correlation: float = 0.6
    min_rate_std_rad_s: float = 0.05  # Standard deviation of turn rates that determine an offset.
    resolution_intervals: float = 0.25  # Resolution of an offset, in sampling intervals.
    max_offset_ns: int = NS
    recent_ratio: float = 0.4  # Ratio of the span whose newest samples show a recent offset.
    estimate_interval: int = 5  # Windows from one estimate to the next.
    min_common_stamps: float = 0.8  # Ratio of common stamps in a window of two streams from one message.
    min_irregularity_ns: int = 10_000  # Range of the intervals of stamps that are not on a regular grid.
    single_peer_score: float = 0.2  # Minimum score with a single peer: either of the two may be late.
    min_confidence: float = 0.1  # Confidence of a correlation peak.


class Latency(Check, id="T08", group="timing", version=5):
    """Time offset at the peak of the normalised cross-correlation of the absolute turn rates of two streams.

    The peak is refined with a parabola; a quarter of the longer sampling interval is subtracted as its
    resolution. The correlation must be at least 0.6, and both signals must vary. Of the whole span and
    its newest part, the one with the higher correlation counts. Of several peers the median offset counts
    (the smaller of the two middle ones), so that the stream that is late is found. With a single peer
    either may be late, and both are SUSPECT at most. Streams with the same stamps come from one message
    of one device: their filters may differ, but neither is late.

    Motive: SDI: "offsets ... a few milliseconds"; AMEDS, Figure 5: "DT values".
    """

    settings = LatencySettings()

    offset = Limit(0.01, 0.05, "LATENCY", "s", "between this stream's stamps and those of its peers")
    span: float = param(30.0, gt=0.0, unit="s", doc="of the motion that is compared")

    def reset(self) -> None:
        """Start without an estimate."""
        self._last: Finding | Unknown = Unknown("LEARNING")
        self._age = 0

    def evaluate(self, stream: Window[Moving], peers: Sequence[Window[Moving]]) -> Finding | Unknown:
        """Correlate the last half minute with each peer, every few windows."""
        self._age += 1
        if self._age % self.settings.estimate_interval == 0:
            self._last = self._compare(stream, peers)
        return self._last

    def _compare(self, stream: Window[Moving], peers: Sequence[Window[Moving]]) -> Finding | Unknown:
        found = {
            p.stream.name: self._best(stream, p)
            for p in peers
            if not _is_one_message(stream, p, self.settings)
        }
        known = {name: each for name, each in found.items() if each is not None}
        if known or _signal(stream, self.span, self.settings) is not None:  # streams of one message agree
            known |= {p.stream.name: (0.0, 0.0, 1.0) for p in peers if p.stream.name not in found}
        if not known:
            return Unknown("NO_MOTION", "no turns that two streams have in common", len(stream))
        counted, offset, correlation = sorted(known.values())[(len(known) - 1) // 2]
        evidence = {"offset_s": offset, "correlation": correlation}
        floor = self.settings.single_peer_score if len(known) == 1 else 0.0
        return Finding({"offset": counted}, len(stream), evidence, peers=tuple(known), min_score=floor)

    def _best(self, stream: Window[Moving], peer: Window[Moving]) -> tuple[float, float, float] | None:
        """Return the result for the whole span or its newest part, by correlation."""
        spans = (self.span, self.span * self.settings.recent_ratio)
        found = [
            _offset(_signal(stream, span, self.settings), _signal(peer, span, self.settings), self.settings)
            for span in spans
        ]
        return max((each for each in found if each is not None), key=lambda each: each[2], default=None)


def _is_one_message(stream: Window[Moving], peer: Window[Moving], settings: LatencySettings) -> bool:
    """Return whether two streams have the same stamps, or most of them off a regular grid.

    On a regular grid, stamps of two sensors may coincide although one is late by some intervals, but not
    from its first stamp on.
    """
    if np.array_equal(stream.stream.t_ns[: stream.stop], peer.stream.t_ns[: peer.stop]):
        return True
    fewer, more = sorted((np.unique(stream.t_ns), np.unique(peer.t_ns)), key=len)
    is_irregular = len(more) > 2 and float(np.ptp(np.diff(more))) > settings.min_irregularity_ns
    return (
        is_irregular and len(fewer) > 0 and bool(np.mean(np.isin(fewer, more)) > settings.min_common_stamps)
    )


def _signal(window: Window[Moving], span: float, settings: LatencySettings) -> MotionSignal | None:
    """Return the turn rate of the last seconds, None if it varies too little."""
    past = window.history(span).as_stream()
    signal = next((each for each in signals_of(past) if each.name == SIGNAL), None)
    if signal is None:
        return None
    known = np.isfinite(signal.values)
    return (
        signal
        if known.sum() > 20 and float(np.std(signal.values[known])) > settings.min_rate_std_rad_s
        else None
    )


def _offset(
    own: MotionSignal | None, other: MotionSignal | None, settings: LatencySettings
) -> tuple[float, float, float] | None:
    """Return the offset less its resolution, the offset (positive: the first is later), the correlation."""
    if own is None or other is None:
        return None
    try:
        found = time_offset(other.t_ns, other.values, own.t_ns, own.values, settings.max_offset_ns)
    except GeometryError:
        return None
    if found.correlation < settings.min_correlation or found.confidence < settings.min_confidence:
        return None
    step = max(float(np.median(np.diff(each.t_ns))) for each in (own, other)) / NS
    offset = -found.offset_ns / NS
    return max(0.0, abs(offset) - settings.resolution_intervals * step), offset, found.correlation
