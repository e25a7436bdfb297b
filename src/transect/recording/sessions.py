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
NEIGHBOURS = 5  # Stamps whose median tells that one of them is a stray.
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
    t_ns = _without_strays(stream.t_ns)
    low, high = map(int, np.percentile(t_ns, [1, 99], method="nearest"))  # far apart they overflow
    width = max(int((high - low) * (1 + STRAY)), NS)
    inside = t_ns[(t_ns >= low - width) & (t_ns <= high + width)]
    return int(inside.min()), int(inside.max())


def _without_strays(t_ns: Ints) -> Ints:
    """Return stamps (n,) without those far from the median of their neighbours, that jump and return.

    Stamps in order are medians of their neighbours, however long a silence is.
    """
    if len(t_ns) < NEIGHBOURS or not np.any(t_ns[1:] < t_ns[:-1]):
        return t_ns
    around = np.lib.stride_tricks.sliding_window_view(np.pad(t_ns, NEIGHBOURS // 2, mode="edge"), NEIGHBOURS)
    middle = np.sort(around, axis=1)[:, NEIGHBOURS // 2]
    # In floats, as stamps that are far apart overflow; a second is not lost in them.
    near = np.abs(t_ns.astype(np.float64) - middle.astype(np.float64)) <= SLACK_NS
    return t_ns[near] if near.any() else t_ns
