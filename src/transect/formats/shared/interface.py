"""What every format module offers, and what it may say of a path."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transect.recording import Recording, Source


class Match(NamedTuple):
    """How sure a format is that a path is its own (0 not at all, 1 certain), and why."""

    confidence: float
    reason: str

    def __bool__(self) -> bool:
        return self.confidence > 0


def no(reason: str) -> Match:
    """Return a refusal with its reason; a person reads it when nothing else matched."""
    return Match(0.0, reason)


class Format(Protocol):
    """A module in `formats/`: the file name is the format's name, its docstring's first line says what it is.

    `write` is optional; it returns what it left out, a sentence each, and as a `Note` what is written in
    another form. A command that writes ends with exit code 3 if anything was left out.
    """

    __doc__: str | None

    def recognises(self, source: Source) -> Match:
        """Say how sure this format is, from names and the first bytes only."""
        ...

    def read(self, source: Source, **options: Any) -> Recording:
        """Read a recording; columns and payloads stay lazy."""
        ...


class WritingFormat(Format, Protocol):
    """A format that also writes."""

    def write(self, recording: Recording, path: Path, **options: Any) -> tuple[str, ...]:
        """Write a recording to a new folder or file; most formats have no options."""
        ...


class LazyFormat:
    """A format whose module is imported when its `read`, its `write` or its docstring is asked for."""

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
    """A sentence of `write` about samples that are left out because they could not be read."""

    __slots__ = ()


class Note(str):
    """A sentence of `write` about how something is written, where nothing of it is left out."""

    __slots__ = ()
