"""Where things are, at a time: frames joined by static and moving edges."""

from .paths import Edge
from .tree import FrameTree

__all__ = ["Edge", "FrameTree"]
