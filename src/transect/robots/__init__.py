"""What is known of each machine without its data: one YAML per robot, to be copied for one's own.

Frames stand as ``T_frame_child``: `xyz` is the origin of `child` in `frame` in metres, and the rotation
takes vectors of `child` to `frame`, written as one of

- `euler`: an `order` of axes as in scipy (capitals: intrinsic) with `degrees` or `radians`,
- `quaternion`: x, y, z, w,
- `matrix`: three rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import ParseError, TransectError, did_you_mean
from transect.recording import FrameTree, Robot
from transect.types import CameraModel

__all__ = ["camera_from_description", "load", "names", "transform_from_description"]


def names() -> tuple[str, ...]:
    """Return the names of the robots that come with transect."""
    files = resources.files(__name__).iterdir()
    return tuple(sorted(f.name.removesuffix(".yaml") for f in files if f.name.endswith(".yaml")))


def load(name: str | Path) -> Robot:
    """Return a robot by its name, or from the path of a YAML file."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return robot_from_description(_description(path.read_text(encoding="utf-8"), str(path)), str(path))
    if str(name) not in names():
        raise TransectError(f"there is no robot {str(name)!r}", hint=did_you_mean(str(name), names()))
    return robot_from_description(_own_description(str(name)), f"{name}.yaml")


@cache
def _own_description(name: str) -> Any:
    return _description(
        (resources.files(__name__) / f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml"
    )


def _description(text: str, where: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ParseError(f"{where} is not YAML", where=where, why=str(error)) from error


def robot_from_description(description: Any, where: str) -> Robot:
    """Return the robot that a YAML mapping describes."""
    if not isinstance(description, dict) or "name" not in description:
        raise ParseError("a robot's file is a mapping with a name", where=where)
    frames = FrameTree()
    for edge in description.get("frames", ()):
        matrix = transform_from_description(edge, where)
        frames.add_static(edge["frame"], edge["child"], matrix, source=description["name"])
    cameras = {
        key: camera_from_description(key, camera, where)
        for key, camera in description.get("cameras", {}).items()
    }
    return Robot(
        name=description["name"],
        title=description.get("title", ""),
        frames=frames,
        cameras=cameras,
        constants=description.get("constants", {}),
        reference=description.get("reference", ""),
        z_down=bool(description.get("z_down", False)),
    )


def transform_from_description(edge: Mapping[str, Any], where: str = "") -> NDArray[np.float64]:
    """Return the (4, 4) matrix of ``{xyz: [...], euler|quaternion|matrix: ...}``; see the module."""
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
    if not np.allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=1e-3):
        raise ParseError(f"the rotation of {edge.get('child', 'a frame')} is not a rotation", where=where)
    return T


def camera_from_description(name: str, camera: Mapping[str, Any], where: str = "") -> CameraModel:
    """Return the camera that ``size``, ``focal``, ``centre`` and ``distortion: {radtan: [...]}`` describe."""
    try:
        (fx, fy), (cx, cy) = camera["focal"], camera["centre"]
        width, height = camera["size"]
    except (KeyError, ValueError, TypeError) as error:
        raise ParseError(
            f"camera {name} needs size, focal and centre, two numbers each", where=where
        ) from error
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
