"""Packages whose public names are imported when they are first used: importing the package costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def importer(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose public names stand in its modules.

    Parameters
    ----------
    package : str
        `__name__` of the package.
    homes : mapping of str to sequence of str
        Each module and the names that it offers: ``{"source": ("Source", "source_of")}``.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def import_name(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return import_name


def exporter(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package: `dir` lists its names without importing."""
    offered = [name for names in homes.values() for name in names]
    return importer(package, homes), lambda: sorted({*vars(sys.modules[package]), *offered})
