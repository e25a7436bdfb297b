"""Frame trees with static and time-dependent transforms."""

from .tree import FrameEdge, FrameTree

__all__ = ["FrameEdge", "FrameTree"]
