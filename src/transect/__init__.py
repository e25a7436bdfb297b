"""transect: from a robot's raw logs to fused, checked, citable data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._version import __version__
from .base.lazy import importer

if TYPE_CHECKING:
    from .engine import Node, Run, compound, node, outputs, param, run
    from .formats import open
    from .recording import FrameTree, Recording, Robot, Stream, join

__all__ = [
    "FrameTree",
    "Node",
    "Recording",
    "Robot",
    "Run",
    "Stream",
    "__version__",
    "compound",
    "join",
    "node",
    "open",
    "outputs",
    "param",
    "run",
]

__getattr__ = importer(
    __name__,
    {
        "engine": ("Node", "Run", "compound", "node", "outputs", "param", "run"),
        "formats": ("open",),
        "recording": ("FrameTree", "Recording", "Robot", "Stream", "join"),
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
