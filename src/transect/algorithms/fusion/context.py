"""What a fusion asks of its caller: mounts of sensors, how far each is trusted, and where messages go.

A node gives its `Context`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from ..transforms import Transforms


class FusionContext(Protocol):
    """What a fusion asks of its caller."""

    @property
    def frames(self) -> Transforms:
        """How the sensors are mounted."""
        ...

    def is_fed(self, port: str, /) -> bool:
        """Tell whether samples can come from an input."""
        ...

    def trust(self, port: str, t_ns: int, others: Collection[str], /) -> float:
        """Return the number by which sigmas of a sample are divided; 0 if another input replaces it."""
        ...

    def skip(self, reason: str, /) -> None:
        """Count a sample that was of no use."""
        ...

    def leave_out(self, port: str, reason: str, /) -> None:
        """Count a sample that is not used."""
        ...

    def log(self, message: str, /) -> None:
        """Take a message."""
        ...

    def conclude(self, text: str, /, *, bad: bool = False) -> None:
        """Take a statement about the whole result; `bad` if it should not be trusted."""
        ...
