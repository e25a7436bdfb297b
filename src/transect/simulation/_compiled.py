"""Lazy import of compiled kernels, which numba caches in the user's cache folder.

Files of kernels end in `_compiled.py` and are imported only through `kernels`. Kernels do not call kernels of
another file: numba does not detect changes of a callee in another file, and would run the old one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from transect.base.cache_folder import load_compiled


@cache
def kernels(name: str) -> Any:
    """Return the module ``_<name>_compiled`` of this package."""
    return load_compiled(__name__, name)
