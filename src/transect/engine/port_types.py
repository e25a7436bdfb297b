"""Types of ports: what their names mean, and which output fits which input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from transect import types

from .ports import type_name

Kind = type | str | None
"""A type, CDFF's name of a type that does not exist here, or None if unknown."""

Sizes = tuple[int | str, ...]
BUILTIN_TYPES: dict[str, type] = {
    "float": float,
    "int": int,
    "bool": bool,
    "str": str,
    "object": object,
    "ndarray": np.ndarray,
    "np.ndarray": np.ndarray,
    "numpy.ndarray": np.ndarray,
}


def kind_of(name: str, also: Iterable[type] = ()) -> Kind:
    """Return what the name of a type in a description means.

    Parameters
    ----------
    name : str
        As written.
    also : iterable of type
        Types of the ports of the nodes in use, which may be anyone's.
    """
    if name in BUILTIN_TYPES:
        return BUILTIN_TYPES[name]
    if (own := _own_type(name)) is not None:
        return own
    from transect.types.aliases import CDFF_OTHER_NAMES, CDFF_SCALARS, short_name, type_from_alias

    short = short_name(name)
    kind = type_from_alias(name) or CDFF_SCALARS.get(short)
    if kind is not None:
        return kind
    if short in CDFF_OTHER_NAMES:
        return short
    return next((kind for kind in also if type_name(kind) == name), None)


def shape_of(name: str) -> Sizes:
    """Return the shape of the arrays that CDFF's name of a type means; () where it says nothing of it."""
    if name in BUILTIN_TYPES or _own_type(name) is not None:
        return ()
    from transect.types.aliases import CDFF_SHAPES, short_name

    return CDFF_SHAPES.get(short_name(name), ())


def _own_type(name: str) -> type | None:
    """Return one of our message types by its name; only the module that defines it is imported."""
    kind = getattr(types, name) if name in types.__all__ else None
    return kind if isinstance(kind, type) else None


def shapes_fit(source: Sizes, target: Sizes) -> bool:
    """Return whether arrays of one shape are accepted by a port of another; () and a letter match any."""
    if not source or not target:
        return True
    same = (isinstance(a, str) or isinstance(b, str) or a == b for a, b in zip(source, target, strict=False))
    return len(source) == len(target) and all(same)


def known_names(name: str) -> list[str]:
    """Return the names that could have been meant by an unknown one, written as it is."""
    from transect.types.aliases import CDFF_NAMES, CDFF_OTHER_NAMES, CDFF_SCALARS, short_name

    prefix = name.removesuffix(short_name(name))
    cdff = [f"{prefix}{known}" for known in (*CDFF_NAMES, *CDFF_SCALARS, *CDFF_OTHER_NAMES)]
    return cdff if prefix else [*BUILTIN_TYPES, *filter(_own_type, types.__all__), *cdff]


def fits(source: Kind, target: Kind) -> bool:
    """Return whether the type of an output is accepted by an input; an unknown type is accepted."""
    if source is None or target is None or object in (source, target):
        return True
    if isinstance(source, str) or isinstance(target, str):
        return source == target
    return issubclass(source, target) or (target is float and source is int)


def spell(kind: Any) -> str:
    """Return a kind as descriptions spell it."""
    return kind if isinstance(kind, str) else type_name(kind)
