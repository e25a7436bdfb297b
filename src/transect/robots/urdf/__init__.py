"""URDF in and out: a robot's links and joints, what joint positions make of them, and any robot as URDF text.

`read` gives everything a file says, `load` the `Robot` of it, `joint_edges` lets a stream of joint states
move its frames, and `text_from_robot` writes a robot that was described in YAML. Materials, transmissions and
what simulators add are left aside; xacro files are refused with the command that expands them.
"""

from __future__ import annotations

from pathlib import Path

from transect.errors import ParseError
from transect.recording import Robot

from .model import Inertial, Joint, Limit, Link, Mimic, Origin, Shape, Urdf, joint_edges
from .reading import parse
from .robot import Arm, arms_of, text_of, urdf_from_robot

__all__ = [
    "Arm",
    "Inertial",
    "Joint",
    "Limit",
    "Link",
    "Mimic",
    "Origin",
    "Shape",
    "Urdf",
    "arms_of",
    "joint_edges",
    "load",
    "parse",
    "read",
    "robot_from_urdf",
    "text_from_robot",
    "text_of",
    "urdf_from_robot",
]


def read(path: Path | str) -> Urdf:
    """Return what a URDF file says; meshes that are not there are in its `losses`, each with its line."""
    path = Path(path)
    if not path.is_file():
        raise ParseError(f"{path} does not exist", where=str(path))
    return parse(path.read_bytes(), str(path), path.resolve().parent)


def load(path: Path | str) -> Robot:
    """Return the robot of a URDF file; see `robot_from_urdf`."""
    return robot_from_urdf(read(path), str(path))


def robot_from_urdf(urdf: Urdf, reference: str = "") -> Robot:
    """Return a robot with the fixed joints as its static frames.

    What moves has no edge: only a recording says where it stands (`joint_edges`), or the caller does, for one
    posture (``urdf.frames(positions)``).
    """
    return Robot(
        name=urdf.name,
        title=urdf.name,
        frames=urdf.frames(),
        constants={"joints": list(urdf.driven)},
        reference=reference,
    )


def text_from_robot(robot: Robot) -> str:
    """Return a robot as URDF text: fixed joints for its frames, turning ones for its arms."""
    return text_of(urdf_from_robot(robot))
