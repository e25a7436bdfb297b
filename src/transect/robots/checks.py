"""What is wrong with the description of a robot, a frame or a camera: every problem, each with its line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from transect.base.yaml_parts import Part, is_number, shorten
from transect.errors import GeometryError, did_you_mean

from .body import check_body

ROBOT_KEYS = ("name", "title", "reference", "z_down", "frames", "cameras", "constants", "body", "topics")
ROTATIONS = ("euler", "quaternion", "matrix")
EDGE_KEYS = ("frame", "child", "xyz", *ROTATIONS)
CAMERA_KEYS = ("size", "focal", "centre", "distortion", "frame", "invented")
COEFFICIENTS = {"none": (0,), "radtan": (4, 5, 8), "equidistant": (4,)}
"""How many coefficients each distortion may have."""
ORTHONORMAL = 1e-3
"""How far a rotation's rows may be from orthonormal: documents print few digits."""


def check_robot(part: Part) -> None:
    """Note what is wrong with a whole description, but for how its frames hang together."""
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


def _check_topics(part: Part) -> None:
    if not isinstance(part.data, Mapping):
        part.wrong(f"topics should be a mapping of streams to topics, not {shorten(part.data)}")
        return
    for stream in part.data:
        topic = part.child(stream)
        if not (isinstance(topic.data, str) and topic.data.startswith("/")):
            topic.wrong(f"the topic of {stream} begins with a slash")


def check_edge(part: Part) -> None:
    """Note what is wrong with an entry of `frames`."""
    if not (part.has("frame") and part.has("child")):
        part.wrong(f"a frame has a `frame`, a `child` and where it is: {', '.join(EDGE_KEYS)}")
        return
    part.is_mapping("a frame", *EDGE_KEYS)
    for key in ("frame", "child"):
        name = part.child(key)
        if not isinstance(name.data, str) or not name.data:
            name.wrong(f"{key} is no name")
    check_transform(part)


def check_transform(part: Part) -> None:
    """Note what is wrong with `xyz` and the rotation of a frame."""
    child = part.data.get("child", "a frame")
    if part.has("xyz"):
        part.child("xyz").numbers(f"xyz of {child}", 3)
    given = [key for key in ROTATIONS if part.has(key)]
    if len(given) > 1:
        part.child(given[1]).wrong(f"{child} has two rotations, {given[0]} and {given[1]}")
    checks = {"euler": _check_euler, "quaternion": _check_quaternion, "matrix": _check_matrix}
    for key in given:
        checks[key](part.child(key), f"{key} of {child}")


def _check_euler(part: Part, called: str) -> None:
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


def _check_quaternion(part: Part, called: str) -> None:
    numbers = part.numbers(called, 4)
    if numbers and not any(numbers):
        part.wrong(f"{called} is zero")


def _check_matrix(part: Part, called: str) -> None:
    rows: list[Any] = list(part.data) if isinstance(part.data, list | tuple) else []
    entries = [entry for row in rows for entry in (row if isinstance(row, list | tuple) else [row])]
    if len(rows) != 3 or any(not isinstance(row, list | tuple) or len(row) != 3 for row in rows):
        counted = f"{len(entries)} number{'s' * (len(entries) != 1)}"
        part.wrong(f"{called} has {counted}, expected 3 rows of 3")
    elif Part(entries, part.path, part.lines, part.problems).numbers(called, 9):
        R = np.array(part.data, dtype=np.float64)
        if not np.allclose(R @ R.T, np.eye(3), atol=ORTHONORMAL) or np.linalg.det(R) < 0:
            part.wrong(f"{called} is not a rotation")


def check_camera(name: str, part: Part, *, strict: bool = True) -> None:
    """Note what is wrong with an entry of `cameras`; unknown keys only if `strict`."""
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
