"""Stretches of time with a name."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.clocks import NS


@dataclass(frozen=True)
class Interval:
    """From the first to the last sample of a stretch, both included.

    Attributes
    ----------
    name : str
    start_ns, end_ns : int
        Times of the first and the last sample.
    first, stop : int
        Indices: ``samples[first:stop]``.
    """

    name: str
    start_ns: int
    end_ns: int
    first: int
    stop: int

    @property
    def seconds(self) -> float:
        """From the first to the last sample."""
        return (self.end_ns - self.start_ns) / NS


def intervals(t_ns: ArrayLike, names: NDArray[np.str_], seams: Sequence[int] = ()) -> list[Interval]:
    """Return the stretches of equal names (n,) at times (n,); none goes across a seam."""
    times = np.asarray(t_ns, dtype=np.int64)
    if not len(times):
        return []
    changes = np.flatnonzero(names[1:] != names[:-1]) + 1
    inner = sorted({*changes.tolist(), *(s for s in seams if 0 < s < len(times))})
    edges = [0, *inner, len(times)]
    return [
        Interval(str(names[a]), int(times[a]), int(times[b - 1]), a, b) for a, b in itertools.pairwise(edges)
    ]
