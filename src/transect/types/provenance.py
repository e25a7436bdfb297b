"""The one record of where bytes came from; Recording, Run, result file, Product and label all carry it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def _no_parameters() -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class SourceFile:
    """A file that was read, or a series of files whose names differ in their numbers only.

    Attributes
    ----------
    path : str
        As given; of a series with `*` for the numbers: `left/*.png`.
    size : int
        Bytes, of a series of all its files.
    sha256 : str
        Of the content; of a series that of the lines that `sha256sum` prints for its files, by name.
    count : int
        Number of files.
    part : int
        Which recording of several that were joined it belongs to.
    """

    path: str
    size: int
    sha256: str
    count: int = 1
    part: int = 0

    @property
    def label(self) -> str:
        """The path, with the number of the part where there are several."""
        return f"{self.part}:{self.path}" if self.part else self.path

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values; `SourceFile(**values)` takes them again. Defaults are left out."""
        said = {"path": self.path, "size": self.size, "sha256": self.sha256}
        extra = {"count": (self.count, 1), "part": (self.part, 0)}
        return said | {name: value for name, (value, usual) in extra.items() if value != usual}


@dataclass(frozen=True)
class Provenance:
    """What something was made from, by what, and how.

    Attributes
    ----------
    sources : tuple of SourceFile
        Files whose bytes were read.
    tool : str
        `transect <version>`.
    format : str
        The format that read them.
    command : str
        The command line, where there was one.
    parameters : mapping
        Whatever changed the result.
    parents : tuple of str
        Digests of the runs or products it was made from.
    """

    sources: tuple[SourceFile, ...] = ()
    tool: str = ""
    format: str = ""
    command: str = ""
    parameters: Mapping[str, Any] = field(default_factory=_no_parameters)
    parents: tuple[str, ...] = ()

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
