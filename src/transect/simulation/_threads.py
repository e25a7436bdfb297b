"""Work on all cores: compiled kernels and numpy let other threads run while they work.

What is worked on is divided, never summed up: the results do not depend on the number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

from transect.base.processes import cores

T = TypeVar("T")

PIECE = 16_384
"""Rays that are worked on at once: what is computed of them stays in a core's own memory."""
_here = threading.local()


def spread(work: Callable[[int, int], None], count: int, piece: int = PIECE) -> None:
    """Call ``work(begin, end)`` for pieces of `count` rays on all cores, if it is not on one of them."""
    edges = list(pairwise([*range(0, count, piece), count]))
    if len(edges) < 2 or getattr(_here, "works", False):
        for begin, end in edges:
            work(begin, end)
    else:
        list(_pool().map(lambda edge: work(*edge), edges))


def submit(work: Callable[[], T]) -> Future[T]:
    """Have another thread do the work; there are as many as cores."""
    return _pool().submit(work)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), "simulation", initializer=_enter)


def _enter() -> None:
    _here.works = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # the threads stay with the parent
