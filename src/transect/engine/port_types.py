"""What the type of a port means, and which types fit along a wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from transect import types
from transect.types.aliases import (
    CDFF_NAMES,
    CDFF_OTHER_NAMES,
    CDFF_SCALARS,
    CDFF_SHAPES,
    short_name,
    type_from_alias,
)

from .ports import type_name

Kind = type | str | None
"""A type, CDFF's name for something that has none here, or None where it is not known."""

Sizes = tuple[int | str, ...]
PLAIN: dict[str, type] = {
    "float": float,
    "int": int,
    "bool": bool,
    "str": str,
    "object": object,
    "ndarray": np.ndarray,
    "np.ndarray": np.ndarray,
    "numpy.ndarray": np.ndarray,
}
OURS: dict[str, type] = {
    name: kind for name in types.__all__ if isinstance(kind := getattr(types, name), type)
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
    for known in (PLAIN, OURS):
        if name in known:
            return known[name]
    short = short_name(name)
    kind = type_from_alias(name) or CDFF_SCALARS.get(short)
    if kind is not None:
        return kind
    if short in CDFF_OTHER_NAMES:
        return short
    return next((kind for kind in also if type_name(kind) == name), None)


def shape_of(name: str) -> Sizes:
    """Return the shape of the arrays that CDFF's name of a type means; () where it says nothing of it."""
    return CDFF_SHAPES.get(short_name(name), ()) if name not in PLAIN and name not in OURS else ()


def shapes_fit(source: Sizes, target: Sizes) -> bool:
    """Tell whether arrays of one shape may go where another is taken; () and a letter are any."""
    if not source or not target:
        return True
    same = (isinstance(a, str) or isinstance(b, str) or a == b for a, b in zip(source, target, strict=False))
    return len(source) == len(target) and all(same)


def known_names(name: str) -> list[str]:
    """Return the names that could have been meant by an unknown one, written as it is."""
    prefix = name.removesuffix(short_name(name))
    cdff = [f"{prefix}{known}" for known in (*CDFF_NAMES, *CDFF_SCALARS, *CDFF_OTHER_NAMES)]
    return cdff if prefix else [*PLAIN, *OURS, *cdff]


def fits(source: Kind, target: Kind) -> bool:
    """Tell whether what comes out of a port may go into another; what is not known may."""
    if source is None or target is None or object in (source, target):
        return True
    if isinstance(source, str) or isinstance(target, str):
        return source == target
    return issubclass(source, target) or (target is float and source is int)


def spell(kind: Any) -> str:
    """Return a kind as a person writes it."""
    return kind if isinstance(kind, str) else type_name(kind)
