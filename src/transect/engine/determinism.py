"""One thread per library during a run: with two, results of OpenBLAS and others differ in bits.

Parallelism comes from the flow, which does not change what a node computes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OPENCV_FOR_THREADS_NUM",
)
"""Read by libraries when they are loaded, which nodes may do in the middle of a run."""


def seed_libraries() -> None:
    """Reset the seed of OpenCV's random numbers, if it is loaded.

    They are hidden, and one sequence per thread; 0 is where they stand after loading and in a new thread, so
    that a node which is the first to import OpenCV draws the same.
    """
    if (seed := opencv_seed()) is not None:
        seed(0)


def opencv_seed() -> Callable[[int], None] | None:
    """Return what sets the seed of OpenCV; None if it is not loaded, or just loading in another thread."""
    return getattr(sys.modules.get("cv2"), "setRNGSeed", None)


@contextmanager
def one_thread_per_library() -> Generator[None]:
    """Hold BLAS, OpenMP and OpenCV to one thread inside the block, whether loaded already or only then."""
    from threadpoolctl import threadpool_limits

    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    cv2: Any = sys.modules.get("cv2")
    threads = cv2.getNumThreads() if cv2 is not None else 0
    if cv2 is not None:
        cv2.setNumThreads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        if cv2 is not None:
            cv2.setNumThreads(threads)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def one_openmp_thread() -> Generator[None]:
    """Hold OpenMP to one thread where this thread calls it: it keeps a number for each thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="openmp"):
        yield
