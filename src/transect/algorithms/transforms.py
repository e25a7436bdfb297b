"""Interface of algorithms to the frames of a robot; `FrameTree` implements it."""

from __future__ import annotations

from typing import Protocol

from transect.base.arrays import Floats


class Transforms(Protocol):
    """Rigid transforms between named frames."""

    def __contains__(self, frame: str, /) -> bool: ...

    def lookup(self, target: str, source: str) -> Floats:
        """Return ``T_target_source`` (4, 4).

        Raises
        ------
        FrameError
            If nothing connects the two frames.
        """
        ...
