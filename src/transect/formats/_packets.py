"""Sensors that write one small text file of numbers per sample: KITTI's oxts, RADIATE's GPS_IMU_Twist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.recording import Loss, Source, Stream
from transect.recording.source import sha256_bytes
from transect.recording.text import is_number

LARGEST = 1 << 16
"""Bytes; a packet is never larger."""


@dataclass(frozen=True, eq=False)
class Packets:
    """The packets of one sensor.

    Attributes
    ----------
    t_ns : (n,) int64 array
    values : (n, width) float64 array
        As they stand in the files.
    losses : tuple of Loss
    notes : tuple of str
    """

    t_ns: NDArray[np.int64]
    values: NDArray[np.float64]
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()

    def columns(self, names: Iterable[str]) -> dict[str, NDArray[np.float64]]:
        """Return the values by name, in the order of the file."""
        return dict(zip(names, np.ascontiguousarray(self.values.T), strict=True))


def read_packets(source: Source, files: Sequence[str], times: Sequence[int], width: int) -> Packets:
    """Read files of `width` numbers, apart by blanks or commas; those that hold anything else are losses.

    Parameters
    ----------
    source : Source
    files, times : sequences
        Names, and the time of each in ns.
    width : int
    """
    t_ns: list[int] = []
    rows: list[list[float]] = []
    losses: list[Loss] = []
    for name, time in zip(files, times, strict=True):
        data = source.read(name) if source.size(name) <= LARGEST else b""
        source.touch(name, sha256_bytes(data) if data else None)
        tokens = data.replace(b",", b" ").split()
        if len(tokens) != width or not all(is_number(token) for token in tokens):
            losses.append(Loss(name, f"it does not hold {width} numbers"))
            continue
        t_ns.append(time)
        rows.append([float(token) for token in tokens])
    return Packets(np.array(t_ns, np.int64), np.array(rows, float).reshape(-1, width), _count(losses))


def one_unit(streams: Sequence[Stream]) -> dict[type, Stream]:
    """Choose the streams that one unit can have given: the first of each type with the times of the first."""
    chosen: dict[type, Stream] = {}
    for stream in streams:
        like = next(iter(chosen.values()), stream)
        if stream.type not in chosen and np.array_equal(stream.t_ns, like.t_ns):
            chosen[stream.type] = stream
    return chosen


def _count(losses: list[Loss]) -> tuple[Loss, ...]:
    """Return one loss for many alike: the first file, and how many."""
    return (Loss(losses[0].file, losses[0].reason, count=len(losses)),) if losses else ()
