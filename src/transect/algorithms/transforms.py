"""What algorithms ask of whoever knows the frames of a robot; `FrameTree` is one that does."""

from __future__ import annotations

from typing import Protocol

from transect.base.arrays import Floats


class Transforms(Protocol):
    """Rigid transforms between named frames that are fixed to each other."""

    def __contains__(self, frame: str, /) -> bool: ...

    def lookup(self, target: str, source: str) -> Floats:
        """Return ``T_target_source`` (4, 4).

        Raises
        ------
        FrameError
            If nothing connects the two frames.
        """
        ...
