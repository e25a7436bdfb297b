"""Validation of robot descriptions, and their geometry for drawings: boxes, wheels, scan planes and lengths.

Known objects fixed to frames (a container, a gripper, a bumper) are in `constants.shapes`, the other geometry
under `body` in a robot's YAML. A number may be the name of one of the robot's constants, or a sum of such
names and numbers: ``platform.half_width + platform.swivel_length``. So each number is written once, and the
drawing of a copied description follows its constants.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.base.yaml_fields import read
from transect.base.yaml_parts import Lines, YamlPart, is_number, refuse, shorten
from transect.errors import GeometryError, TransectError, did_you_mean
from transect.recording import Recording, Robot

Number = float | str
"""A number, or names of constants and numbers with + and - between them."""

_TERM = re.compile(r"\s*([+-]?)\s*([\w.]+)\s*")


def _origin() -> list[Number]:
    return [0.0, 0.0, 0.0]


@dataclass(frozen=True)
class BodyBox:
    """A box along the axes of a frame: centre and edges, m. Invented sizes are drawn dashed."""

    frame: str
    size: list[Number]
    xyz: list[Number] = field(default_factory=_origin)
    invented: bool = False


@dataclass(frozen=True)
class Wheel:
    """A wheel that rolls along x of a frame: centre, diameter and width, m."""

    frame: str
    xyz: list[Number]
    diameter: Number
    width: Number
    name: str = ""
    invented: bool = False


@dataclass(frozen=True)
class ScanPlane:
    """The scan plane of a laser or radar: `opening` rad about x of its frame, from x towards y."""

    frame: str
    opening: Number


@dataclass(frozen=True)
class Length:
    """A dimension in the drawing, between two points of a frame, m."""

    name: str
    frame: str
    start: list[Number]
    end: list[Number]


@dataclass(frozen=True)
class RobotBody:
    """Geometry of a robot for drawings."""

    boxes: dict[str, BodyBox] = field(default_factory=dict[str, BodyBox])
    wheels: list[Wheel] = field(default_factory=list[Wheel])
    scans: list[ScanPlane] = field(default_factory=list[ScanPlane])
    lengths: list[Length] = field(default_factory=list[Length])
    # joint angles of the drawn arms, rad, by the name of the base frame; default 0
    posture: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    # invented poses of frames that are only known from recordings: x, y, z in m and roll, pitch, yaw in rad,
    # in the root of the frames
    place: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def check(self, part: YamlPart) -> None:
        """Report lists of wrong length."""
        entries = [part.child("boxes").child(name) for name in self.boxes]
        entries += [each for key in ("wheels", "lengths") for each in part.items(key)]
        triples = [each.child(key) for each in entries for key in ("xyz", "size", "start", "end")]
        places = [part.child("place").child(name) for name in self.place]
        for count, lists in ((3, triples), (6, places)):
            for each in lists:
                if each.data is not None and len(each.data) != count:
                    each.wrong(f"{each.path[-1]} has {len(each.data)} numbers, expected {count}")


def check_body(part: YamlPart) -> None:
    """Report problems of the `body` of a robot's description."""
    read(part, RobotBody, "body")


def body_of(robot: Robot) -> RobotBody:
    """Return the geometry of a robot, empty if it is not described.

    Raises
    ------
    ParseError
        If it is invalid.
    """
    part = YamlPart(robot.body, (), Lines(f"body of {robot.name}"))
    body = read(part, RobotBody, "body")
    refuse(part.problems, part.lines.file)
    assert body is not None
    return body


def numbers_of(robot: Robot, values: Sequence[Number]) -> Floats:
    """Evaluate numbers (n,) that may be sums of constants."""
    return np.array([number_of(robot, value) for value in values])


def number_of(robot: Robot, value: Number) -> float:
    """Evaluate a number that may be a sum of constants.

    Raises
    ------
    TransectError
        If a name is not a number in the robot's constants.
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
class PointShape:
    """Points fixed to a frame, and lines between them."""

    name: str
    frame: str
    points: Floats  # (k, 3), in `frame`, m
    # (m, 2), indices of the end points
    lines: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    invented: bool = False  # whether the points are guessed instead of measured


def shapes_of(robot: Robot) -> tuple[PointShape, ...]:
    """Return the shapes of a robot's `constants.shapes`."""
    return tuple(
        PointShape(
            name,
            shape["frame"],
            np.array(shape["points"], dtype=np.float64).reshape(-1, 3),
            np.array(shape.get("lines", []), dtype=np.int64).reshape(-1, 2),
            bool(shape.get("invented", False)),
        )
        for name, shape in robot.constants.get("shapes", {}).items()
    )


ROBOT_KEYS = ("name", "title", "reference", "z_down", "frames", "cameras", "constants", "body", "topics")
ROTATIONS = ("euler", "quaternion", "matrix")
EDGE_KEYS = ("frame", "child", "xyz", *ROTATIONS)
CAMERA_KEYS = ("size", "focal", "centre", "distortion", "frame", "invented")
COEFFICIENTS = {"none": (0,), "radtan": (4, 5, 8), "equidistant": (4,)}
"""Allowed numbers of coefficients of each distortion model."""
ORTHONORMALITY_TOLERANCE = 1e-3
"""Tolerance for rotation matrices, which documents print with few digits."""


def check_robot(part: YamlPart) -> None:
    """Report problems of a description, except those of the frame tree."""
    if not part.has("name"):
        part.wrong("a robot's file is a mapping with a name")
        return
    part.is_mapping("a robot", *ROBOT_KEYS)
    part.needed("name", "a robot")
    part.text("title")
    part.text("reference")
    part.flag("z_down")
    for edge in part.items("frames"):
        check_edge(edge)
    for key in ("cameras", "constants"):
        inner = part.child(key)
        if inner.data is not None and not isinstance(inner.data, Mapping):
            inner.wrong(f"{key} should be a mapping, not {shorten(inner.data)}")
        elif key == "cameras":
            for name in inner.data or ():
                check_camera(str(name), inner.child(name))
    if part.has("body"):
        check_body(part.child("body"))
    if part.has("topics"):
        _check_topics(part.child("topics"))


def _check_topics(part: YamlPart) -> None:
    if not isinstance(part.data, Mapping):
        part.wrong(f"topics should be a mapping of streams to topics, not {shorten(part.data)}")
        return
    for stream in part.data:
        topic = part.child(stream)
        if not (isinstance(topic.data, str) and topic.data.startswith("/")):
            topic.wrong(f"the topic of {stream} begins with a slash")


def check_edge(part: YamlPart) -> None:
    """Report problems of an entry of `frames`."""
    if not (part.has("frame") and part.has("child")):
        part.wrong(f"a frame has a `frame`, a `child` and where it is: {', '.join(EDGE_KEYS)}")
        return
    part.is_mapping("a frame", *EDGE_KEYS)
    for key in ("frame", "child"):
        name = part.child(key)
        if not isinstance(name.data, str) or not name.data:
            name.wrong(f"{key} is no name")
    check_transform(part)


def check_transform(part: YamlPart) -> None:
    """Report problems of `xyz` and the rotation of a frame."""
    child = part.data.get("child", "a frame")
    if part.has("xyz"):
        part.child("xyz").numbers(f"xyz of {child}", 3)
    given = [key for key in ROTATIONS if part.has(key)]
    if len(given) > 1:
        part.child(given[1]).wrong(f"{child} has two rotations, {given[0]} and {given[1]}")
    checks = {"euler": _check_euler, "quaternion": _check_quaternion, "matrix": _check_matrix}
    for key in given:
        checks[key](part.child(key), f"{key} of {child}")


def _check_euler(part: YamlPart, called: str) -> None:
    from transect.geometry import rotations

    order = part.child("order")
    if not isinstance(order.data, str):
        part.wrong(f"{called} needs an order of axes and its angles in degrees or radians")
        return
    part.is_mapping(called, "order", "degrees", "radians")
    units = [unit for unit in ("degrees", "radians") if part.has(unit)]
    if len(units) != 1:
        lacks = "has both degrees and radians" if units else "lacks its unit"
        part.wrong(f"{called} {lacks}: expected degrees or radians")
        return
    try:
        rotations.matrix_from_euler(order.data, np.zeros(len(order.data)))
    except GeometryError as error:
        order.wrong(f"{called}: {error.what}, {error.why or error.hint}")
        return
    part.child(units[0]).numbers(called, len(order.data))


def _check_quaternion(part: YamlPart, called: str) -> None:
    numbers = part.numbers(called, 4)
    if numbers and not any(numbers):
        part.wrong(f"{called} is zero")


def _check_matrix(part: YamlPart, called: str) -> None:
    rows: list[Any] = list(part.data) if isinstance(part.data, list | tuple) else []
    entries = [entry for row in rows for entry in (row if isinstance(row, list | tuple) else [row])]
    if len(rows) != 3 or any(not isinstance(row, list | tuple) or len(row) != 3 for row in rows):
        counted = f"{len(entries)} number{'s' * (len(entries) != 1)}"
        part.wrong(f"{called} has {counted}, expected 3 rows of 3")
    elif YamlPart(entries, part.path, part.lines, part.problems).numbers(called, 9):
        R = np.array(part.data, dtype=np.float64)
        if not np.allclose(R @ R.T, np.eye(3), atol=ORTHONORMALITY_TOLERANCE) or np.linalg.det(R) < 0:
            part.wrong(f"{called} is not a rotation")


def check_camera(name: str, part: YamlPart, *, strict: bool = True) -> None:
    """Report problems of an entry of `cameras`; unknown keys only if `strict`."""
    if not all(_is_pair(part.child(key).data) for key in ("size", "focal", "centre")):
        part.wrong(f"camera {name} needs size, focal and centre, two numbers each")
        return
    if strict:
        part.is_mapping(f"camera {name}", *CAMERA_KEYS)
    if not part.has("distortion"):
        return
    distortion = part.child("distortion")
    if not isinstance(distortion.data, Mapping) or len(distortion.data) != 1:
        distortion.wrong(f"distortion of {name} is not one model with its coefficients")
        return
    [model] = distortion.data
    if model in COEFFICIENTS:
        distortion.child(model).numbers(f"{model} of {name}", *COEFFICIENTS[model])
    else:
        hint = did_you_mean(str(model), COEFFICIENTS)
        distortion.wrong(f"unknown distortion {model!r} of {name}", hint)


def _is_pair(data: Any) -> bool:
    return isinstance(data, list | tuple) and len(data) == 2 and all(map(is_number, data))


class Constants:
    """Constants of a robot by group and key, with errors for missing ones.

    Parameters
    ----------
    robot : Robot
    model : str
        Described model, for errors: "four steered wheels".
    example : str
        YAML file with these constants.
    """

    def __init__(self, robot: Robot, model: str, example: str) -> None:
        self.robot, self.model, self.example = robot, model, example

    def __getitem__(self, path: tuple[str, str]) -> Any:
        group, key = path
        values = self.robot.constants.get(group)
        if not isinstance(values, Mapping) or key not in values:
            raise TransectError(
                f"the robot {self.robot.name} does not say {group}.{key}",
                why=f"the model of {self.model} needs it",
                hint=f"copy the block `{group}` of {self.example} and change its numbers",
            )
        return values[key]


def find_parameter(robot: Robot, recording: Recording | None, path: Sequence[str]) -> Any | None:
    """Return a parameter by set and key from the recording, else from the robot, else None.

    Both store them under ``parameters``, in `Recording.conditions` and `Robot.constants`.
    """
    group, key = path
    for source in (recording.conditions if recording is not None else {}, robot.constants):
        values = source.get("parameters", {}).get(group, {})
        if key in values:
            return values[key]
    return None
