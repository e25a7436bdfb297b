"""transect: from a robot's raw logs to fused, checked, citable data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__

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

_HOMES = {
    "open": "formats",
    **dict.fromkeys(("FrameTree", "Recording", "Robot", "Stream", "join"), "recording"),
    **dict.fromkeys(("Node", "Run", "compound", "node", "outputs", "param", "run"), "engine"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``import transect`` itself does no work."""
    if name not in _HOMES:
        raise AttributeError(f"module 'transect' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
