"""Robot descriptions: one YAML per robot, to be copied for other robots.

Frames are ``T_frame_child``: `xyz` is the origin of `child` in `frame` in metres, and the rotation transforms
vectors from `child` to `frame`, given as one of

- `euler`: an `order` of axes as in scipy (capitals: intrinsic) with `degrees` or `radians`,
- `quaternion`: x, y, z, w,
- `matrix`: three rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base import plugins
from transect.base.yaml_loading import MAX_CHARACTERS
from transect.base.yaml_parts import Lines, YamlPart, parse, refuse
from transect.errors import FrameError, ParseError, TransectError, did_you_mean
from transect.recording import FrameTree, Robot
from transect.types import CameraModel

from .description import check_camera, check_edge, check_robot, check_transform

__all__ = [
    "camera_from_description",
    "edge_from_description",
    "load",
    "names",
    "path_of",
    "robot_from_description",
    "robot_from_text",
    "transform_from_description",
]


def names() -> tuple[str, ...]:
    """Return the names of all robots of transect and of plug-ins."""
    return plugins.names("robots")


def path_of(name: str) -> Path:
    """Return the YAML file of a robot by its name."""
    if name not in names():
        raise TransectError(f"there is no robot {name!r}", hint=did_you_mean(name, names()))
    return plugins.file_of("robots", name)


def load(name: str | Path) -> Robot:
    """Return a robot by its name, or from the path of a YAML file.

    Raises
    ------
    ParseError
        If the description is invalid; the error lists all problems with their lines.
    """
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return robot_from_text(_text(path), str(path))
    if path.suffix in (".urdf", ".xacro"):
        from .urdf import load as load_urdf

        return load_urdf(path)
    return _robot(*_own_description(str(name)))


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_CHARACTERS:
            raise ParseError(f"{path} is too large", where=str(path), why=f"more than {MAX_CHARACTERS} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ParseError(f"{path} cannot be read", where=str(path), why=str(error)) from error


@cache
def _own_description(name: str) -> tuple[Any, Lines]:
    text = path_of(name).read_text(encoding="utf-8")
    return _check(*parse(text, f"{name}.yaml"))


def robot_from_text(text: str, where: str) -> Robot:
    """Return the robot that a YAML text describes; `where` names the file in errors."""
    return _robot(*_check(*parse(text, where)))


def robot_from_description(description: Any, where: str) -> Robot:
    """Return the robot that a mapping describes."""
    return _robot(*_check(description, Lines(where)))


def _check(description: Any, lines: Lines) -> tuple[Any, Lines]:
    """Validate a description and return it."""
    whole = YamlPart(description, (), lines)
    check_robot(whole)
    refuse(whole.problems, lines.file)
    return description, lines


def _robot(description: Any, lines: Lines) -> Robot:
    whole = YamlPart(description, (), lines)
    frames = FrameTree()
    for i, edge in enumerate(description.get("frames") or ()):
        try:
            frames.add_static(edge["frame"], edge["child"], _transform(edge), source=description["name"])
        except FrameError as error:
            what = f"{error.what}: {error.why}" if error.why else error.what
            whole.child("frames").child(i).wrong(what)
    refuse(whole.problems, lines.file)
    return Robot(
        name=description["name"],
        title=description.get("title") or "",
        frames=frames,
        cameras={
            str(key): _camera(str(key), camera) for key, camera in (description.get("cameras") or {}).items()
        },
        constants=description.get("constants") or {},
        reference=description.get("reference") or "",
        z_down=bool(description.get("z_down", False)),
        body=description.get("body") or {},
        topics=description.get("topics") or {},
    )


def transform_from_description(edge: Mapping[str, Any], where: str = "") -> NDArray[np.float64]:
    """Return the (4, 4) matrix of ``{xyz: [...], euler|quaternion|matrix: ...}``; see the module."""
    part = YamlPart(edge, (), Lines(where))
    check_transform(part)
    refuse(part.problems, where)
    return _transform(edge)


def edge_from_description(edge: Any, where: str = "") -> tuple[str, str, NDArray[np.float64]]:
    """Return frame, child and matrix (4, 4) of ``{frame: ..., child: ..., xyz: [...], ...}``.

    Raises
    ------
    ParseError
        If a key is unknown or a value is invalid; all problems are listed.
    """
    part = YamlPart(edge, (), Lines(where))
    check_edge(part)
    refuse(part.problems, where)
    return edge["frame"], edge["child"], _transform(edge)


def _transform(edge: Mapping[str, Any]) -> NDArray[np.float64]:
    from transect.geometry import rotations

    T = np.eye(4)
    T[:3, 3] = np.asarray(edge.get("xyz", (0.0, 0.0, 0.0)), dtype=np.float64)
    if "quaternion" in edge:
        T[:3, :3] = rotations.matrix_from_quaternion(np.asarray(edge["quaternion"], dtype=np.float64))
    elif "matrix" in edge:
        T[:3, :3] = np.asarray(edge["matrix"], dtype=np.float64)
    elif "euler" in edge:
        euler = edge["euler"]
        angles = (
            np.radians(euler["degrees"])
            if "degrees" in euler
            else np.asarray(euler["radians"], dtype=np.float64)
        )
        T[:3, :3] = rotations.matrix_from_euler(euler["order"], angles)
    return T


def camera_from_description(name: str, camera: Mapping[str, Any], where: str = "") -> CameraModel:
    """Return the camera of ``size``, ``focal``, ``centre`` and ``distortion: {radtan: [...]}``."""
    part = YamlPart(camera, (), Lines(where))
    check_camera(name, part, strict=False)
    refuse(part.problems, where)
    return _camera(name, camera)


def _camera(name: str, camera: Mapping[str, Any]) -> CameraModel:
    (fx, fy), (cx, cy), (width, height) = camera["focal"], camera["centre"], camera["size"]
    model, coefficients = next(iter(camera.get("distortion", {"none": []}).items()))
    return CameraModel(
        name=name,
        width=int(width),
        height=int(height),
        K=np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]]),
        distortion=model,
        coefficients=np.asarray(coefficients, dtype=np.float64),
        frame=camera.get("frame", name),
        invented=bool(camera.get("invented", False)),
    )
