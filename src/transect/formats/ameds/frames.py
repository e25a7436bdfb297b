"""Where Interact's frames are: the static ones of Table 2, and what the recording says of the others."""

from __future__ import annotations

from transect.robots.interact.moving import frame_tree as frames_of

__all__ = ["frames_of"]
