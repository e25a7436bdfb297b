"""Parallel work in threads: compiled kernels and numpy release the interpreter lock.

Work is divided into independent parts without sums over them, so that results do not depend on the number of
threads.
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

RAYS_PER_BATCH = 16_384
"""Rays of one call, whose temporary arrays fit the cache of a core."""
_thread = threading.local()


def run_in_batches(work: Callable[[int, int], None], count: int, size: int = RAYS_PER_BATCH) -> None:
    """Call ``work(begin, end)`` for batches of `count` rays on all cores, unless in a worker thread."""
    edges = list(pairwise([*range(0, count, size), count]))
    if len(edges) < 2 or getattr(_thread, "is_worker", False):
        for begin, end in edges:
            work(begin, end)
    else:
        list(_pool().map(lambda edge: work(*edge), edges))


def submit(work: Callable[[], T]) -> Future[T]:
    """Run work in a pool of as many threads as there are cores."""
    return _pool().submit(work)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), "simulation", initializer=_enter)


def _enter() -> None:
    _thread.is_worker = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child process has no threads
