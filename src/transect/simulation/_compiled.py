"""Loads compiled kernels when they are first used; what numba compiles is kept in the user's cache.

A kernel's file ends in `_compiled.py` and is imported through `kernels` alone. Kernels do not call kernels of
another file: numba does not notice when a callee in another file changes, and would run the old one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from transect.base.cache_folder import load_compiled


@cache
def kernels(name: str) -> Any:
    """Return the module ``_<name>_compiled`` of this package."""
    return load_compiled(__name__, name)
