"""How an input port takes its samples: annotations that a type checker reads as the type itself.

- ``T`` triggers: the node runs when every such port has a sample that it has not yet used.
- ``Annotated[T, Synced(0.005)]`` takes the nearest sample within that many seconds of the trigger, each once.
- ``Latest[T]`` is the newest sample up to and including its own wave.
- ``Batch[T]`` is everything since the last firing up to the trigger's time.
- ``At[T]`` is interpolated to the trigger's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from transect.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True)
class Policy:
    """How a port takes its samples; this one triggers."""

    @property
    def triggers(self) -> bool:
        """Whether a sample on the port makes the node run."""
        return type(self) is Policy

    def __str__(self) -> str:
        return type(self).__name__.removesuffix("Policy").lower() or "trigger"


@dataclass(frozen=True)
class Synced(Policy):
    """The nearest sample within `seconds` of the trigger, each sample once."""

    seconds: float

    def __post_init__(self) -> None:
        if not self.seconds >= 0:
            raise UsageError(f"Synced({self.seconds!r}): expected seconds of 0 or more")

    def __str__(self) -> str:
        return f"synced within {self.seconds:g} s"


@dataclass(frozen=True)
class LatestPolicy(Policy):
    """The newest sample; before the first one the port's default, without one the node waits."""


@dataclass(frozen=True)
class BatchPolicy(Policy):
    """All samples since the last firing, oldest first."""


@dataclass(frozen=True)
class AtPolicy(Policy):
    """Interpolated to the trigger's time."""


TRIGGER, LATEST, BATCH, AT = Policy(), LatestPolicy(), BatchPolicy(), AtPolicy()
Latest = Annotated[T, LATEST]
Batch = Annotated[Sequence[T], BATCH]
At = Annotated[T, AT]
