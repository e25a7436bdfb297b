"""Groups the streams of a recording into sessions by their time spans, ignoring outlier stamps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Ints
from transect.base.clocks import NS

from .stream import Stream


@dataclass(frozen=True)
class SessionSettings:
    """Settings of the grouping of streams into sessions."""

    max_gap_ns: int = 30 * NS  # Streams further apart belong to another session, or have a wrong clock
    min_streams: int = 3  # Streams that must agree in time before another one is considered wrong
    median_window: int = 5  # Stamps of the median filter that detects outliers
    max_tail_ratio: float = 1.0  # Length of the first and last percent of stamps, relative to the span
    max_span_ratio: float = 10.0  # Longest span of a stream, relative to the median over the streams


SESSIONS = SessionSettings()


def group_spans(streams: Sequence[Stream]) -> list[list[tuple[int, int, Stream]]]:
    """Return first and last time (ns) of streams of one clock, grouped into sessions in order of time.

    Streams must not be empty. Outlier stamps are ignored.
    """
    groups: list[list[tuple[int, int, Stream]]] = []
    end = 0
    for span in sorted(_list_spans(streams), key=lambda each: (each[0], each[1], each[2].name)):
        if not groups or span[0] > end + SESSIONS.max_gap_ns:
            groups.append([])
            end = span[1]
        groups[-1].append(span)
        end = max(end, span[1])
    return groups


def _list_spans(streams: Sequence[Stream]) -> list[tuple[int, int, Stream]]:
    """Return first and last time of streams, ns; of much longer streams only those of their main part.

    A stream whose stamps are partly in another time zone or unit would make the session days or years long.
    """
    spans = [(*robust_span(stream), stream) for stream in streams]
    if len(spans) < SESSIONS.min_streams:
        return spans
    median = float(np.median([end - start for start, end, _ in spans]))
    longest = SESSIONS.max_span_ratio * median + SESSIONS.max_gap_ns
    return [
        (start, end, s) if end - start <= longest else (*_main_part(s.t_ns), s) for start, end, s in spans
    ]


def _main_part(t_ns: Ints) -> tuple[int, int]:
    """Return first and last time of the largest group of stamps without a long gap."""
    stamps = np.sort(t_ns)
    parts = np.split(stamps, np.flatnonzero(np.diff(stamps) > SESSIONS.max_gap_ns) + 1)
    largest = max(parts, key=len)
    return int(largest[0]), int(largest[-1])


def robust_span(stream: Stream) -> tuple[int, int]:
    """Return first and last time of a stream, ns, without a few outliers far away."""
    t_ns = _without_outliers(stream.t_ns)
    low, high = map(int, np.percentile(t_ns, [1, 99], method="nearest"))  # int: far apart they overflow
    width = max(int((high - low) * (1 + SESSIONS.max_tail_ratio)), NS)
    inside = t_ns[(t_ns >= low - width) & (t_ns <= high + width)]
    return int(inside.min()), int(inside.max())


def _without_outliers(t_ns: Ints) -> Ints:
    """Return stamps (n,) without those far from the median of their neighbours, that jump and return.

    Stamps in order are medians of their neighbours, even across a long gap.
    """
    size = SESSIONS.median_window
    if len(t_ns) < size or not np.any(t_ns[1:] < t_ns[:-1]):
        return t_ns
    around = np.lib.stride_tricks.sliding_window_view(np.pad(t_ns, size // 2, mode="edge"), size)
    middle = np.sort(around, axis=1)[:, size // 2]
    # As floats, because differences of stamps that are far apart overflow; the resolution is sufficient.
    near = np.abs(t_ns.astype(np.float64) - middle.astype(np.float64)) <= SESSIONS.max_gap_ns
    return t_ns[near] if near.any() else t_ns
