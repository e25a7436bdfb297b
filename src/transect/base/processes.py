"""Number of cores, and Python processes that import nothing from the working directory.

`python -m` and `python -c` put the working directory first in `sys.path`, and so does the `spawn` method of
multiprocessing: a file `numpy.py` in the folder of a recording would be executed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

SAFE_PATH = "PYTHONSAFEPATH"
"""Environment variable with the effect of the option -P."""
_own = False


def claim_process() -> None:
    """Declare that this process is a command of transect, or one that such a command started."""
    global _own
    _own = True


def is_own_process() -> bool:
    """Return whether global settings of libraries may be changed, i.e. not in a script or notebook."""
    return _own


def python_command(*arguments: str) -> list[str]:
    """Return the command that starts this Python, without the working directory in its `sys.path`."""
    return [sys.executable, "-P", *arguments]


@contextmanager
def process_pool(
    jobs: int, initializer: Callable[..., object] | None = None, initargs: tuple[Any, ...] = ()
) -> Generator[ProcessPoolExecutor]:
    """Run a pool of new processes, and wait for them when the block ends."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"  # the pool starts its processes when tasks are submitted
    try:
        with ProcessPoolExecutor(jobs, get_context("spawn"), initializer, initargs) as pool:
            yield pool
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
