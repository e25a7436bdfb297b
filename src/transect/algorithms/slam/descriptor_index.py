"""Which views have descriptors like these: all are compared, exactly (faiss, of the extra `fusion`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from transect.base.arrays import Array, Bytes, Ints, Mask
from transect.errors import MissingExtraError

from .stereo_keyframes import BITS

NEIGHBOURS = 8
"""Descriptors of the map that each descriptor votes for."""
ALIKE = 64
"""Bits by which two descriptors of one point may differ; those of two points differ by 100 and more."""
ASKED = 250
"""Descriptors that vote: those of the strongest corners, which come first."""


@cache
def faiss() -> Any:
    """Return the module, or say what to install."""
    try:
        import faiss as module
    except ImportError as error:
        raise MissingExtraError("faiss", "fusion") from error
    return module


def count_votes(descriptors: Bytes, views: Sequence[Array]) -> Ints:
    """Return how many of some descriptors (n, 32) each of m views has, (m,).

    Parameters
    ----------
    views : sequence of m arrays
        Their descriptors, (k, 32) each.
    """
    votes = np.zeros(len(views), np.int64)
    owner = np.repeat(np.arange(len(views)), [len(each) for each in views])
    if not len(owner) or not len(descriptors):
        return votes
    index = faiss().IndexBinaryFlat(BITS)
    index.add(np.concatenate(views))
    apart, rows = index.search(np.ascontiguousarray(descriptors[:ASKED]), NEIGHBOURS)
    np.add.at(votes, *_name_views(owner[rows], (apart <= ALIKE) & (rows >= 0)))
    return votes


def _name_views(views: Ints, alike: Mask) -> tuple[Ints, int]:
    """Return the views (n, k) that are alike, each once for every row; and the vote of each."""
    row = np.nonzero(alike)[0]
    return np.unique(np.column_stack([row, views[alike]]), axis=0)[:, 1], 1
