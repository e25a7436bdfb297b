"""What is wrong with a robot's description: every problem, each with its line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from transect.base.yaml_parts import Lines, Path
from transect.errors import GeometryError, ParseError, did_you_mean

ROBOT_KEYS = ("name", "title", "reference", "z_down", "frames", "cameras", "constants")
ROTATIONS = ("euler", "quaternion", "matrix")
EDGE_KEYS = ("frame", "child", "xyz", *ROTATIONS)
CAMERA_KEYS = ("size", "focal", "centre", "distortion", "frame", "invented")
COEFFICIENTS = {"none": (0,), "radtan": (4, 5, 8), "equidistant": (4,)}
"""How many coefficients each distortion may have."""
ORTHONORMAL = 1e-3
"""How far a rotation's rows may be from orthonormal: documents print few digits."""


@dataclass
class Problems:
    """Collects what is wrong with a file.

    Attributes
    ----------
    lines : Lines
    found : list of (str, str)
        Place and words of each problem.
    """

    lines: Lines
    found: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def add(self, path: Path, words: str) -> None:
        """Keep a problem of the part that `path` leads to."""
        self.found.append((self.lines.place(path), words))

    def refuse(self) -> None:
        """Raise a ParseError that lists all problems, one line each, if there are any."""
        if not self.found:
            return
        if len(self.found) == 1:
            [(where, words)] = self.found
            raise ParseError(words, where=where)
        listed = "\n         ".join(f"{where}: {words}" for where, words in self.found)
        file = self.lines.file
        raise ParseError(f"{file} has {len(self.found)} problems", where=file, why=listed)


def check_robot(description: Any, problems: Problems) -> None:
    """Find what is wrong with a whole description, but for how its frames hang together."""
    if not isinstance(description, dict) or "name" not in description:
        problems.add((), "a robot's file is a mapping with a name")
        return
    robot = cast(dict[str, Any], description)
    _known_keys(robot, ROBOT_KEYS, (), problems)
    for key in ("name", "title", "reference"):
        _expect(isinstance(robot.get(key, "-"), str), (key,), f"{key} is not text", problems)
    _expect(
        isinstance(robot.get("z_down", False), bool), ("z_down",), "z_down is not true or false", problems
    )
    _expect(isinstance(robot.get("constants", {}), dict), ("constants",), "constants is no mapping", problems)
    frames, cameras = robot.get("frames", []), robot.get("cameras", {})
    if _expect(isinstance(frames, list), ("frames",), "frames is not a list", problems):
        for i, edge in enumerate(frames):
            check_edge(edge, ("frames", i), problems)
    if _expect(isinstance(cameras, dict), ("cameras",), "cameras is not a mapping", problems):
        for name, camera in cameras.items():
            check_camera(str(name), camera, ("cameras", str(name)), problems)


def _expect(true: bool, path: Path, words: str, problems: Problems) -> bool:
    if not true:
        problems.add(path, words)
    return true


def _known_keys(mapping: Mapping[Any, Any], known: Sequence[str], path: Path, problems: Problems) -> None:
    for key in mapping:
        if key not in known:
            problems.add((*path, key), f"unknown key {key!r}: {did_you_mean(str(key), known)}")


def check_edge(edge: Any, path: Path, problems: Problems) -> None:
    """Find what is wrong with an entry of `frames`."""
    if not isinstance(edge, dict) or not {"frame", "child"} <= edge.keys():
        problems.add(path, f"a frame has a `frame`, a `child` and where it is: {', '.join(EDGE_KEYS)}")
        return
    entry = cast(dict[str, Any], edge)
    _known_keys(entry, EDGE_KEYS, path, problems)
    for key in ("frame", "child"):
        _expect(isinstance(entry[key], str) and entry[key] != "", (*path, key), f"{key} is no name", problems)
    check_transform(entry, path, problems)


def check_transform(edge: Mapping[str, Any], path: Path, problems: Problems) -> None:
    """Find what is wrong with `xyz` and the rotation of a frame."""
    child = edge.get("child", "a frame")
    if "xyz" in edge:
        _numbers(edge["xyz"], (3,), (*path, "xyz"), f"xyz of {child}", problems)
    given = [key for key in ROTATIONS if key in edge]
    if len(given) > 1:
        problems.add((*path, given[1]), f"{child} has two rotations, {given[0]} and {given[1]}")
    checks: dict[str, Callable[[Any, Path, str, Problems], None]]
    checks = {"euler": _check_euler, "quaternion": _check_quaternion, "matrix": _check_matrix}
    for key in given:
        checks[key](edge[key], (*path, key), f"{key} of {child}", problems)


def _check_euler(euler: Any, path: Path, name: str, problems: Problems) -> None:
    from transect.geometry import rotations

    if not isinstance(euler, dict) or not isinstance(order := euler.get("order"), str):
        problems.add(path, f"{name} needs an order of axes and its angles in degrees or radians")
        return
    turns = cast(dict[str, Any], euler)
    _known_keys(turns, ("order", "degrees", "radians"), path, problems)
    units = [unit for unit in ("degrees", "radians") if unit in turns]
    if len(units) != 1:
        lacks = "has both degrees and radians" if units else "lacks its unit"
        problems.add(path, f"{name} {lacks}: expected degrees or radians")
        return
    count = len(order)
    try:
        rotations.matrix_from_euler(order, np.zeros(count))
    except GeometryError as error:
        problems.add((*path, "order"), f"{name}: {error.what}, {error.why or error.hint}")
        return
    _numbers(turns[units[0]], (count,), (*path, units[0]), name, problems)


def _check_quaternion(quaternion: Any, path: Path, name: str, problems: Problems) -> None:
    if _numbers(quaternion, (4,), path, name, problems) and not any(quaternion):
        problems.add(path, f"{name} is zero")


def _check_matrix(matrix: Any, path: Path, name: str, problems: Problems) -> None:
    rows: list[Any] = list(matrix) if isinstance(matrix, list | tuple) else []
    numbers = [n for row in rows for n in (row if isinstance(row, list | tuple) else [row])]
    if len(rows) != 3 or any(not isinstance(row, list | tuple) or len(row) != 3 for row in rows):
        problems.add(path, f"{name} has {_counted(numbers)}, expected 3 rows of 3")
    elif _numbers(numbers, (9,), path, name, problems):
        R = np.array(matrix, dtype=np.float64)
        if not np.allclose(R @ R.T, np.eye(3), atol=ORTHONORMAL) or np.linalg.det(R) < 0:
            problems.add(path, f"{name} is not a rotation")


def check_camera(name: str, camera: Any, path: Path, problems: Problems, *, strict: bool = True) -> None:
    """Find what is wrong with an entry of `cameras`; unknown keys only if `strict`."""
    pairs = ("size", "focal", "centre")
    if not isinstance(camera, Mapping) or not all(_is_numbers(camera.get(key), (2,)) for key in pairs):
        problems.add(path, f"camera {name} needs size, focal and centre, two numbers each")
        return
    entry = cast(Mapping[str, Any], camera)
    if strict:
        _known_keys(entry, CAMERA_KEYS, path, problems)
    distortion = entry.get("distortion", {"none": []})
    where = (*path, "distortion")
    if not isinstance(distortion, Mapping) or len(cast(Mapping[str, Any], distortion)) != 1:
        problems.add(where, f"distortion of {name} is not one model with its coefficients")
        return
    [(model, coefficients)] = cast(Mapping[str, Any], distortion).items()
    if model not in COEFFICIENTS:
        problems.add(
            where, f"unknown distortion {model!r} of {name}: {did_you_mean(str(model), COEFFICIENTS)}"
        )
    else:
        _numbers(coefficients, COEFFICIENTS[model], where, f"{model} of {name}", problems)


def _numbers(value: Any, sizes: Sequence[int], path: Path, name: str, problems: Problems) -> bool:
    if _is_numbers(value, sizes):
        return True
    expected = f"expected {' or '.join(map(str, sizes))}"
    if not isinstance(value, list | tuple):
        problems.add(path, f"{name} is not a list of numbers, {expected}")
        return False
    entries = cast(Sequence[Any], value)
    wrong = [entry for entry in entries if not _is_number(entry)]
    words = (
        f"{name}: {wrong[0]!r} is not a number" if wrong else f"{name} has {_counted(entries)}, {expected}"
    )
    problems.add(path, words)
    return False


def _counted(entries: Sequence[Any]) -> str:
    return f"{len(entries)} number{'s' if len(entries) != 1 else ''}"


def _is_numbers(value: Any, sizes: Sequence[int]) -> bool:
    if not isinstance(value, list | tuple):
        return False
    entries = cast(Sequence[Any], value)
    return len(entries) in sizes and all(map(_is_number, entries))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
