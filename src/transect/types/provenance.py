"""Provenance of recordings, runs, result files, products and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def _no_parameters() -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class SourceFile:
    """A file that was read, or a series of files whose names differ in their numbers only."""

    path: str  # As given; of a series with `*` for the numbers: `left/*.png`
    size: int  # Bytes; of a series the sum over its files
    sha256: str  # Of the content; of a series that of the output of `sha256sum` for its files, sorted by name
    count: int = 1  # Number of files
    part: int = 0  # Index of the joined recording to which the file belongs

    @property
    def label(self) -> str:
        """The path, with the number of the part for joined recordings."""
        return f"{self.part}:{self.path}" if self.part else self.path

    def to_dict(self) -> dict[str, Any]:
        """Return plain values without defaults, the keyword arguments of `SourceFile`."""
        required = {"path": self.path, "size": self.size, "sha256": self.sha256}
        optional = {"count": (self.count, 1), "part": (self.part, 0)}
        return required | {name: value for name, (value, default) in optional.items() if value != default}


@dataclass(frozen=True)
class Provenance:
    """Sources, tool and parameters from which something was made."""

    sources: tuple[SourceFile, ...] = ()  # Files whose bytes were read
    tool: str = ""  # `transect <version>`
    format: str = ""  # Name of the format that read the files
    command: str = ""  # The command line, if there was one
    parameters: Mapping[str, Any] = field(default_factory=_no_parameters)  # Settings that change the result
    parents: tuple[str, ...] = ()  # Digests of the runs or products from which it was made

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "sources": [source.to_dict() for source in self.sources],
            "tool": self.tool,
            "format": self.format,
            "command": self.command,
            "parameters": dict(self.parameters),
            "parents": list(self.parents),
        }
