"""ROS CameraInfo YAML (camera_calibration, camera_info_manager), read and written.

The format holds one camera; several are written as several YAML documents. What CameraInfo has no place for,
the transforms between cameras, is written under the key `frames`, which ROS passes over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.errors import UnsupportedError
from transect.types import CameraModel

from .documents import matrix
from .model import Calibration, Edge, camera, numbers, projection

_LENSES = {
    "plumb_bob": "radtan",
    "rational_polynomial": "radtan",
    "equidistant": "equidistant",
    "fisheye": "equidistant",
}


def read_ros(contents: Sequence[Mapping[str, Any]], file: str) -> Calibration:
    """Read CameraInfo YAML documents, one camera each."""
    cameras: dict[str, CameraModel] = {}
    frames: list[Edge] = []
    for content in contents:
        default = PurePosixPath(file).stem if not cameras else f"{PurePosixPath(file).stem}{len(cameras)}"
        name = str(content.get("camera_name") or default)
        cameras[name] = _camera(name, content)
        for edge in content.get("frames", ()):
            T = numbers(edge["T"], 16, what="T").reshape(4, 4)
            frames.append((str(edge["parent"]), str(edge["child"]), T))
    if all(_is_unrectified(model) for model in cameras.values()):
        cameras = {name: replace(model, P=None) for name, model in cameras.items()}
    return Calibration(cameras, tuple(frames), "ros")


def _is_unrectified(model: CameraModel) -> bool:
    """Tell whether R and P say nothing but K, as ROS writes them for a camera that is not rectified."""
    same = model.P is None or (np.array_equal(model.P[:, :3], model.K) and not model.P[:, 3].any())
    return same and np.array_equal(model.R, np.eye(3))


def _camera(name: str, content: Mapping[str, Any]) -> CameraModel:
    K = matrix(content["camera_matrix"], f"{name}: camera_matrix").reshape(3, 3)
    given = content.get("distortion_coefficients", {"rows": 0, "cols": 0, "data": []})
    coefficients = matrix(given, f"{name}: distortion_coefficients").reshape(-1)
    model = str(content.get("distortion_model", "plumb_bob"))
    lens = _LENSES.get(model, model) if len(coefficients) else "none"
    R, P = (
        matrix(content[k], k) if k in content else None for k in ("rectification_matrix", "projection_matrix")
    )
    size = numbers([content.get("image_width", 0), content.get("image_height", 0)], 2, what="image size")
    found = camera(name, size, K, lens, coefficients, R, P)
    return replace(found, frame=str(content.get("frame", name)))


def write_ros(calibration: Calibration) -> bytes:
    """Write one YAML document per camera."""
    import yaml

    contents = [_content(name, model) for name, model in calibration.cameras.items()]
    if calibration.frames and contents:
        contents[0]["frames"] = [
            {"parent": p, "child": c, "T": np.asarray(T).reshape(-1).tolist()}
            for p, c, T in calibration.frames
        ]
    return yaml.safe_dump_all(contents, default_flow_style=None, sort_keys=False, width=100).encode()


def _content(name: str, model: CameraModel) -> dict[str, Any]:
    coefficients = model.coefficients  # none at all is ROS's way, too, to say that there is no distortion
    if model.distortion == "radtan" and len(coefficients) < 5:
        coefficients = np.append(coefficients, np.zeros(5 - len(coefficients)))  # plumb_bob has five
    lens = {"equidistant": "equidistant"}.get(model.distortion, "plumb_bob")
    if model.distortion == "radtan" and len(coefficients) == 8:
        lens = "rational_polynomial"
    if model.distortion not in ("none", "radtan", "equidistant"):
        raise UnsupportedError(f"CameraInfo knows no lens {model.distortion!r}")
    ours = {"frame": model.frame} if model.frame not in ("", name) else {}
    return {
        "image_width": model.width,
        "image_height": model.height,
        "camera_name": name,
        "camera_matrix": _matrix(model.K),
        "distortion_model": lens,
        "distortion_coefficients": _matrix(coefficients.reshape(1, -1)),
        "rectification_matrix": _matrix(model.R),
        "projection_matrix": _matrix(projection(model)),
        **ours,
    }


def _matrix(values: Floats) -> dict[str, Any]:
    rows, cols = values.shape
    return {"rows": rows, "cols": cols, "data": values.reshape(-1).tolist()}
