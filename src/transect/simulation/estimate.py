"""How long it takes to write a day, and how large it gets: measured on a few of its samples."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transect import formats
from transect.errors import UsageError
from transect.recording import Recording, Stream

from .day import Day

ROWS = 1000
"""Rows of a table that are written to measure what the others take."""
SLOW, SEVERAL = 0.2, 10
"""Seconds of an image or cloud from which only one more is measured; for quicker ones so many together."""


@dataclass(frozen=True)
class Estimate:
    """What writing a day takes."""

    seconds: float  # on this machine
    size: float  # bytes on disk

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.seconds + other.seconds, self.size + other.size)


def estimate(day: Day) -> Estimate:
    """Return what `write_day` will take: some samples of every stream are written and thrown away.

    Not counted are the tables and the trajectory of the truth, which are small.
    """
    rasters = (layer for grid in day.truth.maps.values() for layer in grid.layers.values())
    total = Estimate(0.0, float(sum(layer.nbytes for layer in rasters)))
    with tempfile.TemporaryDirectory(prefix="transect-estimate-") as folder:
        for stream in day.recording:
            try:
                total += _measure_stream(day.recording, stream, Path(folder))
            except UsageError:  # the format has no place for this stream, and it takes none
                continue
    return total + _measure_files(list(day.truth.files.values()))


def _measure_files(contents: Sequence[Callable[[], bytes]]) -> Estimate:
    def make(first: int, count: int) -> float:
        return float(sum(len(content()) for content in contents[first : first + count]))

    return _repeat(make, len(contents)) if contents else Estimate(0.0, 0.0)


def _measure_stream(recording: Recording, stream: Stream, folder: Path) -> Estimate:
    def write(first: int, count: int) -> float:
        """Write rows of the stream; return the bytes that they take."""
        chosen = np.zeros(len(stream), np.bool_)
        chosen[first : first + count] = True
        with tempfile.TemporaryDirectory(dir=folder) as place:
            target = Path(place) / "part"
            formats.write(recording.replace(streams=(stream.take(chosen),)), target, recording.format)
            return float(sum(file.stat().st_size for file in target.rglob("*") if file.is_file()))

    if not len(stream):
        return Estimate(0.0, 0.0)
    if stream.loader is not None:
        return _repeat(write, len(stream))
    count = min(len(stream), ROWS)
    alone = write(0, 1)
    begin = time.perf_counter()
    size = write(0, count)
    seconds = time.perf_counter() - begin
    # What a format writes beside the rows does not grow with them.
    return Estimate(seconds * len(stream) / count, alone + (size - alone) * len(stream) / count)


def _repeat(write: Callable[[int, int], float], count: int) -> Estimate:
    """Return what `count` samples take, from some in the middle; `write(first, n)` returns the bytes of n."""
    begin = time.perf_counter()
    size, some = write(count // 2, 1), 1
    seconds = time.perf_counter() - begin
    if count > 2:  # the first one may have compiled something
        some = min(SEVERAL if seconds < SLOW else 1, count // 2)
        begin = time.perf_counter()
        size = write(count // 3, some)
        seconds = time.perf_counter() - begin
    return Estimate(count / some * seconds, count / some * size)
