"""The one record of where bytes came from; Recording, Run, result file, Product and label all carry it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def _no_parameters() -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class SourceFile:
    """A file that was read: its path as given, its size in bytes, and the sha256 of its content."""

    path: str
    size: int
    sha256: str


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
