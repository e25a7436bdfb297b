"""T08: do two sensors that feel the same motion stamp it alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.clocks import NS
from transect.engine.nodes import param
from transect.engine.offsets import Signal, signals_of
from transect.errors import GeometryError
from transect.geometry.correlation import time_offset
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving
from transect.integrity.windows import Window

LEAST_CORRELATION = 0.6
SIGNAL, VARIES = "rate of turn", 0.05
"""rad/s: standard deviation of turn rates that show an offset."""
FINEST = 0.25
"""Part of a step between samples to which an offset can be told."""
FARTHEST_NS = NS
"""Offsets up to this are looked for."""
NEWEST = 0.4
"""Part of the span that shows an offset that is new."""
EVERY = 5
"""Windows from one estimate to the next."""
SAME_STAMPS = 0.8  # Part of the stamps of a window that two streams of one message have in common.
UNEVEN_NS = 10_000  # By which steps of stamps that are no even grid differ.
AT_MOST_SUSPECT = 0.2
"""Score of each of two streams of which one is late: the other one is sound."""
PEAKED = 0.1
"""Confidence of a peak that is one."""


class Latency(Check, id="T08", group="timing", version=5):
    """Where the normalised cross-correlation of the absolute turn rates of two streams peaks.

    A parabola through the peak makes it finer than a sample; a quarter of the coarser step is left off.
    It counts if the correlation is at least 0.6 and both signals vary; of the whole span and its newest part
    the one with the better correlation counts. Of several peers the median offset
    counts, of an even number the smaller of the middle two, so the stream that is late stands out; of two
    streams it cannot be told which is, and both are SUSPECT at most. Streams with the same stamps come from
    one message of one device: what differs there is how it filters them, and no stamp is late.

    Motive: Document 004: "offsets ... a few milliseconds"; document 000, Figure 5: "DT values".
    """

    offset = Limit(0.01, 0.05, "LATENCY", "s", "between this stream's stamps and those of its peers")
    span: float = param(30.0, gt=0.0, unit="s", doc="of the motion that is compared")

    def reset(self) -> None:
        """Nothing is known yet."""
        self._last: Finding | Unknown = Unknown("LEARNING")
        self._age = 0

    def look(self, stream: Window[Moving], peers: Sequence[Window[Moving]]) -> Finding | Unknown:
        """Correlate the last half minute with each peer, now and then."""
        self._age += 1
        if self._age % EVERY == 0:
            self._last = self._compare(stream, peers)
        return self._last

    def _compare(self, stream: Window[Moving], peers: Sequence[Window[Moving]]) -> Finding | Unknown:
        found = {p.stream.name: self._best(stream, p) for p in peers if not _is_one_message(stream, p)}
        known = {name: each for name, each in found.items() if each is not None}
        if known or _signal(stream, self.span) is not None:  # what comes in one message agrees
            known |= {p.stream.name: (0.0, 0.0, 1.0) for p in peers if p.stream.name not in found}
        if not known:
            return Unknown("NO_MOTION", "no turns that two streams show alike", len(stream))
        counted, offset, correlation = sorted(known.values())[(len(known) - 1) // 2]
        evidence = {"offset_s": offset, "correlation": correlation}
        floor = AT_MOST_SUSPECT if len(known) == 1 else 0.0
        return Finding({"offset": counted}, len(stream), evidence, peers=tuple(known), floor=floor)

    def _best(self, stream: Window[Moving], peer: Window[Moving]) -> tuple[float, float, float] | None:
        """Return what is found of the whole span, or of its newest part if that fits better, or None."""
        spans = (self.span, self.span * NEWEST)
        found = [_offset(_signal(stream, span), _signal(peer, span)) for span in spans]
        return max((each for each in found if each is not None), key=lambda each: each[2], default=None)


def _is_one_message(stream: Window[Moving], peer: Window[Moving]) -> bool:
    """Return whether two streams have had the same stamps, or most of them where these are no even grid.

    On an even grid stamps of two sensors may coincide although one is late by some steps, but not from its
    first stamp on.
    """
    if np.array_equal(stream.stream.t_ns[: stream.stop], peer.stream.t_ns[: peer.stop]):
        return True
    few, many = sorted((np.unique(stream.t_ns), np.unique(peer.t_ns)), key=len)
    uneven = len(many) > 2 and float(np.ptp(np.diff(many))) > UNEVEN_NS
    return uneven and len(few) > 0 and bool(np.mean(np.isin(few, many)) > SAME_STAMPS)


def _signal(window: Window[Moving], span: float) -> Signal | None:
    """Return the turn rate in the last seconds, None if it hardly varies."""
    past = window.history(span).as_stream()
    signal = next((each for each in signals_of(past) if each.name == SIGNAL), None)
    if signal is None:
        return None
    known = np.isfinite(signal.values)
    return signal if known.sum() > 20 and float(np.std(signal.values[known])) > VARIES else None


def _offset(own: Signal | None, other: Signal | None) -> tuple[float, float, float] | None:
    """Return what counts of an offset, the offset (positive: the first stamps later), the correlation."""
    if own is None or other is None:
        return None
    try:
        found = time_offset(other.t_ns, other.values, own.t_ns, own.values, FARTHEST_NS)
    except GeometryError:
        return None
    if found.correlation < LEAST_CORRELATION or found.confidence < PEAKED:
        return None
    step = max(float(np.median(np.diff(each.t_ns))) for each in (own, other)) / NS
    offset = -found.offset_ns / NS
    return max(0.0, abs(offset) - FINEST * step), offset, found.correlation
