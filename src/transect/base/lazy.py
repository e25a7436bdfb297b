"""Lazy import of the public names of packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def importer(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose public names are in its modules.

    Parameters
    ----------
    package : str
        `__name__` of the package.
    homes : mapping of str to sequence of str
        Each module and its public names: ``{"source": ("Source", "source_of")}``.
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
    """Return the `__getattr__` and the `__dir__` of a package; `dir` does not import."""
    offered = [name for names in homes.values() for name in names]
    return importer(package, homes), lambda: sorted({*vars(sys.modules[package]), *offered})
