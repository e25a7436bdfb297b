"""Which streams of a recording belong together in time, and which of their stamps can be believed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Ints
from transect.base.clocks import NS

from .stream import Stream

SLACK_NS = 30 * NS
"""Streams further apart than this are of another session, or their clock is wrong."""
LEAST_OTHERS = 3
"""Streams that must agree in time, for one that is apart from them to be wrong."""
STRAY = 1.0
"""Part of a stream's span beyond which its first and last percent of stamps are not believed."""
LONGER = 10
"""Times the usual span of the streams of a clock from which on a stream's stamps fall into several parts."""


def group_spans(streams: Sequence[Stream]) -> list[list[tuple[int, int, Stream]]]:
    """Return first and last time of streams of one clock, ns, those that belong together group by group.

    None of them may be empty. Stamps that cannot be believed are left out (see `_list_spans`).
    """
    return _group(_list_spans(streams))


def _list_spans(streams: Sequence[Stream]) -> list[tuple[int, int, Stream]]:
    """Return first and last time of streams, ns; where some stamps of one are years off, of most of them.

    Half of a stream in another time zone, or in milliseconds, would make the session days or years long.
    """
    spans = [(*span_of(stream), stream) for stream in streams]
    usual = float(np.median([end - start for start, end, _ in spans]))
    if len(spans) < LEAST_OTHERS:
        return spans
    return [
        (start, end, s) if end - start <= LONGER * usual + SLACK_NS else (*_main_part(s.t_ns), s)
        for start, end, s in spans
    ]


def _main_part(t_ns: Ints) -> tuple[int, int]:
    """Return first and last time of the most stamps without a long silence between them."""
    stamps = np.sort(t_ns)
    parts = np.split(stamps, np.flatnonzero(np.diff(stamps) > SLACK_NS) + 1)
    longest = max(parts, key=len)
    return int(longest[0]), int(longest[-1])


def _group(spans: list[tuple[int, int, Stream]]) -> list[list[tuple[int, int, Stream]]]:
    """Return spans that overlap, or nearly, group by group in order of time."""
    groups: list[list[tuple[int, int, Stream]]] = []
    end = 0
    for span in sorted(spans, key=lambda each: (each[0], each[1], each[2].name)):
        if not groups or span[0] > end + SLACK_NS:
            groups.append([])
            end = span[1]
        groups[-1].append(span)
        end = max(end, span[1])
    return groups


def span_of(stream: Stream) -> tuple[int, int]:
    """Return first and last time of a stream, ns; a few stray stamps far away are left out."""
    low, high = map(int, np.percentile(stream.t_ns, [1, 99], method="nearest"))  # far apart they overflow
    width = max(int((high - low) * (1 + STRAY)), NS)
    inside = stream.t_ns[(stream.t_ns >= low - width) & (stream.t_ns <= high + width)]
    return int(inside.min()), int(inside.max())
