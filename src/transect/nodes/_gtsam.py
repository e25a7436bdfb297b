"""GTSAM, imported when it is used; it belongs to the extra `fusion`."""

from __future__ import annotations

from functools import cache
from typing import Any

from transect.errors import MissingExtraError


@cache
def gtsam() -> Any:
    """Return the module, or say what to install."""
    try:
        import gtsam as module
    except ImportError as error:
        raise MissingExtraError("gtsam", "fusion") from error
    return module


class Kept:
    """Holds objects of GTSAM that never change, so that a copy of a node's state may share them."""

    def __init__(self, *things: Any) -> None:
        self.things = things

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        return self
