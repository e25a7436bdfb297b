"""What a robot looks like: boxes, wheels, fields of range sensors and lengths, for pictures of it.

Known things that are fixed to its frames (a container, a gripper, a bumper) are its `constants.shapes`. The
rest stands under `body` in a robot's YAML. A number may be the name of one of the robot's constants, or a sum
of such names and numbers: ``platform.half_width + platform.swivel_length``. So each number is written once,
and the picture of a copy follows its constants.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.base.yaml_fields import read
from transect.base.yaml_parts import Lines, Part, is_number, refuse
from transect.errors import TransectError
from transect.recording import Robot

Number = float | str
"""A number, or names of constants and numbers with + and - between them."""

_TERM = re.compile(r"\s*([+-]?)\s*([\w.]+)\s*")


def _origin() -> list[Number]:
    return [0.0, 0.0, 0.0]


@dataclass(frozen=True)
class Box:
    """A box along the axes of a frame: its centre and its edges, m. Invented sizes are drawn dashed."""

    frame: str
    size: list[Number]
    xyz: list[Number] = field(default_factory=_origin)
    invented: bool = False


@dataclass(frozen=True)
class Wheel:
    """A wheel that rolls along x of a frame: its centre, diameter and width, m."""

    frame: str
    xyz: list[Number]
    diameter: Number
    width: Number
    name: str = ""
    invented: bool = False


@dataclass(frozen=True)
class Scan:
    """The plane that a laser or radar scans: `opening` rad about x of its frame, from x towards y."""

    frame: str
    opening: Number


@dataclass(frozen=True)
class Length:
    """A length that a picture shows, between two points of a frame, m."""

    name: str
    frame: str
    start: list[Number]
    end: list[Number]


@dataclass(frozen=True)
class Body:
    """What a robot looks like."""

    boxes: dict[str, Box] = field(default_factory=dict[str, Box])
    wheels: list[Wheel] = field(default_factory=list[Wheel])
    scans: list[Scan] = field(default_factory=list[Scan])
    lengths: list[Length] = field(default_factory=list[Length])
    # joint angles, rad, in which each arm is drawn, by the name of its base frame; 0 if not given
    posture: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    # where a frame is drawn whose place only recordings know: x, y, z in m and roll, pitch, yaw in rad, in
    # the root of the frames. Invented.
    place: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def check(self, part: Part) -> None:
        """Note lists that are not as long as they should be."""
        entries = [part.child("boxes").child(name) for name in self.boxes]
        entries += [each for key in ("wheels", "lengths") for each in part.items(key)]
        triples = [each.child(key) for each in entries for key in ("xyz", "size", "start", "end")]
        places = [part.child("place").child(name) for name in self.place]
        for count, lists in ((3, triples), (6, places)):
            for each in lists:
                if each.data is not None and len(each.data) != count:
                    each.wrong(f"{each.path[-1]} has {len(each.data)} numbers, expected {count}")


def check_body(part: Part) -> None:
    """Note what is wrong with the `body` of a robot's description."""
    read(part, Body, "body")


def body_of(robot: Robot) -> Body:
    """Return what a robot looks like; an empty body if its description does not say.

    Raises
    ------
    ParseError
        If something in it is not what it should be.
    """
    part = Part(robot.body, (), Lines(f"body of {robot.name}"))
    body = read(part, Body, "body")
    refuse(part.problems, part.lines.file)
    assert body is not None
    return body


def numbers_of(robot: Robot, values: Sequence[Number]) -> Floats:
    """Return numbers (n,), each given as a number or by names of constants."""
    return np.array([number_of(robot, value) for value in values])


def number_of(robot: Robot, value: Number) -> float:
    """Return a number that is given as such or by names of constants.

    Raises
    ------
    TransectError
        If a name is none of a number in the robot's constants.
    """
    if not isinstance(value, str):
        return float(value)
    terms = _TERM.findall(value)
    if "".join(sign + name for sign, name in terms) != re.sub(r"\s", "", value):
        raise TransectError(f"{value!r} is no sum of constants", where=f"body of the robot {robot.name}")
    return sum((-1.0 if sign == "-" else 1.0) * _constant(robot, name) for sign, name in terms)


def _constant(robot: Robot, name: str) -> float:
    try:
        return float(name)
    except ValueError:
        pass
    found: object = robot.constants
    for step in name.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    if not is_number(found):
        raise TransectError(
            f"the robot {robot.name} has no constant {name}",
            where=f"body of the robot {robot.name}",
            hint="write the number itself, or add it to constants",
        )
    return float(found)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, eq=False)
class Shape:
    """Points fixed to a frame, and which of them a line joins."""

    name: str
    frame: str
    points: Floats  # (k, 3), in `frame`, m
    # (m, 2), indices of points
    lines: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    invented: bool = False  # true where the points are a guess and no measurement


def shapes_of(robot: Robot) -> tuple[Shape, ...]:
    """Return the shapes that a robot's `constants.shapes` describe."""
    return tuple(
        Shape(
            name,
            shape["frame"],
            np.array(shape["points"], dtype=np.float64).reshape(-1, 3),
            np.array(shape.get("lines", []), dtype=np.int64).reshape(-1, 2),
            bool(shape.get("invented", False)),
        )
        for name, shape in robot.constants.get("shapes", {}).items()
    )
