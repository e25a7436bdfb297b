"""Interface of format modules."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transect.recording import Recording, Source


class Match(NamedTuple):
    """Confidence of a format that it can read a path (0 not at all, 1 certain), and the reason."""

    confidence: float
    reason: str

    def __bool__(self) -> bool:
        return self.confidence > 0


def no(reason: str) -> Match:
    """Return a match of confidence 0 with its reason, which is shown if no format matches."""
    return Match(0.0, reason)


class Format(Protocol):
    """A module in `formats/` with the name of the format; the first line of its docstring describes it.

    `write` is optional; it returns a sentence for everything that is left out, and a `Note` for what is
    written in another form. Commands end with exit code 3 if anything is left out.
    """

    __doc__: str | None

    def recognises(self, source: Source) -> Match:
        """Return the confidence of this format, from names and first bytes only."""
        ...

    def read(self, source: Source, **options: Any) -> Recording:
        """Read a recording; columns and payloads are loaded on access."""
        ...


class WritingFormat(Format, Protocol):
    """A format that also writes."""

    def write(self, recording: Recording, path: Path, **options: Any) -> tuple[str, ...]:
        """Write a recording to a new folder or file; most formats have no options."""
        ...


class LazyFormat:
    """A format whose module is imported on access to `read`, `write` or its docstring."""

    def __init__(self, module: str, recognises: Callable[[Source], Match]) -> None:
        self.module = module
        self.recognises = recognises

    def __getattr__(self, name: str) -> Any:
        if name not in ("read", "write"):
            raise AttributeError(f"{self.module} has no attribute {name!r}")
        return getattr(import_module(self.module), name)

    def __dir__(self) -> list[str]:
        return ["read", "recognises", "write"]


class DataLost(str):
    """A sentence of `write` on samples that are left out because they could not be read."""

    __slots__ = ()


class Note(str):
    """A sentence of `write` on the form in which something is written without loss."""

    __slots__ = ()
