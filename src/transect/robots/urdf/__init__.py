"""URDF input and output: links and joints of a robot, forward kinematics, and any robot as URDF text.

`read` parses a file, `load` returns its `Robot`, `joint_edges` moves its frames by a stream of joint states,
and `text_from_robot` writes a robot that is described in YAML. Materials, transmissions and extensions of
simulators are ignored; xacro files are refused with the command that expands them.
"""

from __future__ import annotations

from pathlib import Path

from transect.errors import ParseError
from transect.recording import Robot

from .model import Joint, JointLimit, Mimic, Origin, Urdf, UrdfInertial, UrdfLink, UrdfShape, joint_edges
from .reading import parse
from .robot import RobotArm, arms_of, text_of, urdf_from_robot

__all__ = [
    "Joint",
    "JointLimit",
    "Mimic",
    "Origin",
    "RobotArm",
    "Urdf",
    "UrdfInertial",
    "UrdfLink",
    "UrdfShape",
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
    """Parse a URDF file; missing meshes are in its `losses`, each with its line."""
    path = Path(path)
    if not path.is_file():
        raise ParseError(f"{path} does not exist", where=str(path))
    return parse(path.read_bytes(), str(path), path.resolve().parent)


def load(path: Path | str) -> Robot:
    """Return the robot of a URDF file; see `robot_from_urdf`."""
    return robot_from_urdf(read(path), str(path))


def robot_from_urdf(urdf: Urdf, reference: str = "") -> Robot:
    """Return a robot with the fixed joints as its static frames.

    Movable joints have no edge: their positions come from a recording (`joint_edges`), or from the caller for
    one posture (``urdf.frames(positions)``).
    """
    return Robot(
        name=urdf.name,
        title=urdf.name,
        frames=urdf.frames(),
        constants={"joints": list(urdf.driven)},
        reference=reference,
    )


def text_from_robot(robot: Robot) -> str:
    """Return a robot as URDF text: fixed joints for its frames, movable joints for its arms."""
    return text_of(urdf_from_robot(robot))
