"""Where things are, at a time: frames joined by static and moving edges."""

from .tree import Edge, FrameTree

__all__ = ["Edge", "FrameTree"]
