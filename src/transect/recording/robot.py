"""What is known of a machine without its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .frames import FrameTree

if TYPE_CHECKING:
    from transect.types import CameraModel


def _nothing() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, eq=False)
class Robot:
    """A machine: its static frames, cameras and constants.

    Attributes
    ----------
    name : str
        `interact`, `weeder`, `argo`, `ida`, or the user's own.
    title : str
        What a person calls it.
    frames : FrameTree
        Static frames only.
    cameras : mapping of str to CameraModel
    constants : mapping
        Numbers of the documents by name, SI and radians.
    reference : str
        Where the values come from.
    z_down : bool
        Whether z of the robot's root frame points down.
    body : mapping
        What it looks like: boxes, wheels, fields of sensors, lengths (`transect.robots.description`).
    topics : mapping of str to str
        The ROS topic under which each stream was published, by the stream's name.
    """

    name: str
    title: str = ""
    frames: FrameTree = field(default_factory=FrameTree)
    cameras: Mapping[str, CameraModel] = field(default_factory=_nothing)
    constants: Mapping[str, Any] = field(default_factory=_nothing)
    reference: str = ""
    z_down: bool = False
    body: Mapping[str, Any] = field(default_factory=_nothing)
    topics: Mapping[str, str] = field(default_factory=_nothing)

    def __repr__(self) -> str:
        return (
            f"Robot({self.name!r}, {len(self.frames)} frames, cameras: {', '.join(self.cameras) or 'none'})"
        )
