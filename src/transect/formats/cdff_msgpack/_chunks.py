"""Which samples go into which file of a chunked log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from transect.recording import Parsed, Stream

ROWS = 4096
"""Rows of a stream that are made into samples at a time."""


def chunks_of(streams: Sequence[Stream], size: int) -> Iterator[list[Stream]]:
    """Yield all streams again and again, each time with their part of the next `size` samples in time order.

    The samples of a stream stay in the order recorded, whatever their times are; a size of 0 is everything.
    """
    if not size:
        yield list(streams)
        return
    times = [np.maximum.accumulate(stream.t_ns) if len(stream) else stream.t_ns for stream in streams]
    merged = np.concatenate(times)
    rank = np.empty(len(merged), dtype=np.int64)
    rank[np.argsort(merged, kind="stable")] = np.arange(len(merged))
    ranks = np.split(rank, np.cumsum([len(t) for t in times])[:-1])
    for start in range(0, max(len(merged), 1), size):
        ends = [np.searchsorted(each, (start, start + size)) for each in ranks]
        yield [part_of(s, int(a), int(b)) for s, (a, b) in zip(streams, ends, strict=True)]


def part_of(stream: Stream, start: int, end: int) -> Stream:
    """Return the rows [start, end) of a stream, a view."""
    return stream.replace(source=Parsed(stream.table.slice(start, end - start)), seams=())


def pieces_of(stream: Stream) -> Iterator[Stream]:
    """Yield a stream piece by piece, so that not all of its samples are in memory at once."""
    for start in range(0, len(stream), ROWS):
        yield part_of(stream, start, min(start + ROWS, len(stream)))
