"""What nodes keep of a scene: the last thing whose place in it became known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from transect.base.arrays import Floats
from transect.geometry import se3
from transect.types import Pose

T = TypeVar("T")
Place = Callable[[T, Floats, str], T]
"""Takes a thing, ``T_scene_thing`` (4, 4) and the scene's frame, and returns it in that frame."""

SCENE = "scene"
"""The frame of a scene: that of the left camera at its first pose."""


def matrix_of(pose: Pose) -> Floats:
    """Return ``T_frame_child`` (4, 4)."""
    return se3.from_quaternion(pose.orientation, pose.position)


def pose_of(T_frame_child: Floats, t_ns: int, frame: str, child: str) -> Pose:
    """Return a transform (4, 4) as a pose."""
    turned, place = se3.to_quaternion(T_frame_child)
    return Pose(place, turned, t_ns, frame, child)


@dataclass
class Memory(Generic[T]):
    """The newest of a kind, and the last one whose pose became known.

    Poses come back by a delayed wire, after the thing that they belong to. One that never comes leaves the
    memory as it was, so that the next attempt is against the last that succeeded.

    Attributes
    ----------
    newest : T or None
        In its own frame.
    newest_ns : int
        Its time.
    placed : T or None
        In the frame of the scene.
    """

    newest: T | None = None
    newest_ns: int = 0
    placed: T | None = None

    def after(self, new: T, t_ns: int, view: Pose | None, place: Place[T]) -> T | None:
        """Take a new one; return the last one before it whose pose is known, in the scene's frame."""
        if self.newest is not None and view is not None and view.t_ns == self.newest_ns:
            self.placed = place(self.newest, matrix_of(view), view.frame)
        self.newest, self.newest_ns = new, t_ns
        return self.placed
