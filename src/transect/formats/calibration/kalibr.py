"""Kalibr's camchain YAML, read and written; and EuRoC's sensor.yaml, which is its older cousin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from transect.errors import UnsupportedError
from transect.types import CameraModel

from .documents import matrix
from .model import Calibration, Edge, camera, numbers, pinhole

_LENSES = {
    "radtan": "radtan",
    "radial-tangential": "radtan",
    "plumb_bob": "radtan",
    "equidistant": "equidistant",
    "equi": "equidistant",
    "none": "none",
}
IMU = "imu"


def read_kalibr(content: Mapping[str, Any]) -> Calibration:
    """Read a camchain: `cam0`, `cam1`, ... each with intrinsics, and T_cn_cnm1 and T_cam_imu where known."""
    cameras: dict[str, CameraModel] = {}
    frames: list[Edge] = []
    for name in sorted(
        (k for k in content if k.startswith("cam") and k[3:].isdigit()), key=lambda k: int(k[3:])
    ):
        part = content[name]
        if not isinstance(part, Mapping):
            raise ValueError(f"{name} is not a mapping")
        cameras[name] = _camera(name, part)
        before = f"cam{int(name[3:]) - 1}"
        if "T_cn_cnm1" in part and before in cameras:
            frames.append((name, before, numbers(part["T_cn_cnm1"], 4, 4, what=f"{name}: T_cn_cnm1")))
        if "T_cam_imu" in part and not any(child == IMU for _, child, _ in frames):
            frames.append((name, IMU, numbers(part["T_cam_imu"], 4, 4, what=f"{name}: T_cam_imu")))
    if not cameras:
        raise KeyError("cam0")
    return Calibration(cameras, tuple(frames), "kalibr")


def _camera(name: str, part: Mapping[str, Any]) -> CameraModel:
    if (model := str(part.get("camera_model", "pinhole"))) != "pinhole":
        raise ValueError(f"{name}: the camera model {model} is not known")
    fx, fy, cx, cy = numbers(part["intrinsics"], 4, what=f"{name}: intrinsics")
    lens = _LENSES.get(str(part.get("distortion_model", "none")), str(part.get("distortion_model")))
    given = part.get("distortion_coeffs", part.get("distortion_coefficients", []))
    coefficients = numbers(given, len(given), what=f"{name}: distortion") if lens != "none" else np.zeros(0)
    size = numbers(part.get("resolution", [0, 0]), 2, what=f"{name}: resolution")
    return camera(name, size, pinhole(fx, fy, cx, cy), lens, coefficients)


def write_kalibr(calibration: Calibration) -> bytes:
    """Write a camchain; cameras are called cam0, cam1, ... in their order."""
    import yaml

    content: dict[str, Any] = {}
    names = list(calibration.cameras)
    for number, name in enumerate(names):
        part = _part(calibration.cameras[name])
        before = calibration.transform(name, names[number - 1]) if number else None
        imu = calibration.transform(name, IMU)
        part |= {} if before is None else {"T_cn_cnm1": before.tolist()}
        part |= {} if imu is None else {"T_cam_imu": imu.tolist()}
        content[f"cam{number}"] = part
    return yaml.safe_dump(content, default_flow_style=None, width=100).encode()


def _part(model: CameraModel) -> dict[str, Any]:
    coefficients = model.coefficients.tolist()
    if model.distortion == "radtan":
        if any(coefficients[4:]):
            raise UnsupportedError(
                f"Kalibr cannot hold the lens of {model.name}",
                why=f"its radtan has four coefficients, and k3 and more are {coefficients[4:]}",
            )
        coefficients = coefficients[:4]
    if model.K[0, 1]:
        raise UnsupportedError(f"Kalibr cannot hold the skew of {model.name}", why=f"it is {model.K[0, 1]}")
    return {
        "camera_model": "pinhole",
        "distortion_coeffs": coefficients,
        "distortion_model": model.distortion,
        "intrinsics": [float(model.K[i]) for i in ((0, 0), (1, 1), (0, 2), (1, 2))],
        "resolution": [model.width, model.height],
    }


def read_euroc(content: Mapping[str, Any], file: str) -> Calibration:
    """Read one camera's sensor.yaml; T_BS takes points of the sensor to the body."""
    name = PurePosixPath(file).parent.name or "cam"
    model = _camera(name, {**content, "camera_model": content.get("camera_model", "pinhole")})
    frames = [("body", name, matrix(content["T_BS"], "T_BS").reshape(4, 4))] if "T_BS" in content else []
    return Calibration({name: model}, tuple(frames), "euroc")
