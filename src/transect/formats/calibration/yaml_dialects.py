"""Kalibr's camchain YAML, read and written, and the similar sensor.yaml of EuRoC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.units import to_si
from transect.errors import UnsupportedError
from transect.geometry import rotations
from transect.types import CameraModel

from .model import CalibrationFile, StaticTransform, camera, matrix, numbers, pinhole, projection, rigid

_KALIBR_LENSES = {
    "radtan": "radtan",
    "radial-tangential": "radtan",
    "plumb_bob": "radtan",
    "equidistant": "equidistant",
    "equi": "equidistant",
    "none": "none",
}
IMU = "imu"


def read_kalibr(content: Mapping[str, Any]) -> CalibrationFile:
    """Read a camchain: `cam0`, `cam1`, ... each with intrinsics, and T_cn_cnm1 and T_cam_imu where known."""
    cameras: dict[str, CameraModel] = {}
    frames: list[StaticTransform] = []
    for name in sorted(
        (k for k in content if k.startswith("cam") and k[3:].isdigit()), key=lambda k: int(k[3:])
    ):
        part = content[name]
        if not isinstance(part, Mapping):
            raise ValueError(f"{name} is not a mapping")
        cameras[name] = _camera_from_kalibr(name, part)
        before = f"cam{int(name[3:]) - 1}"
        if "T_cn_cnm1" in part and before in cameras:
            frames.append((name, before, numbers(part["T_cn_cnm1"], 4, 4, what=f"{name}: T_cn_cnm1")))
        if "T_cam_imu" in part and not any(child == IMU for _, child, _ in frames):
            frames.append((name, IMU, numbers(part["T_cam_imu"], 4, 4, what=f"{name}: T_cam_imu")))
    if not cameras:
        raise KeyError("cam0")
    return CalibrationFile(cameras, tuple(frames), "kalibr")


def _camera_from_kalibr(name: str, part: Mapping[str, Any]) -> CameraModel:
    if (model := str(part.get("camera_model", "pinhole"))) != "pinhole":
        raise ValueError(f"{name}: the camera model {model} is not known")
    fx, fy, cx, cy = numbers(part["intrinsics"], 4, what=f"{name}: intrinsics")
    lens = _KALIBR_LENSES.get(str(part.get("distortion_model", "none")), str(part.get("distortion_model")))
    given = part.get("distortion_coeffs", part.get("distortion_coefficients", []))
    coefficients = numbers(given, len(given), what=f"{name}: distortion") if lens != "none" else np.zeros(0)
    size = numbers(part.get("resolution", [0, 0]), 2, what=f"{name}: resolution")
    return camera(name, size, pinhole(fx, fy, cx, cy), lens, coefficients)


def write_kalibr(calibration: CalibrationFile) -> bytes:
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


def read_euroc(content: Mapping[str, Any], file: str) -> CalibrationFile:
    """Read one camera's sensor.yaml; T_BS takes points of the sensor to the body."""
    name = PurePosixPath(file).parent.name or "cam"
    model = _camera_from_kalibr(name, {**content, "camera_model": content.get("camera_model", "pinhole")})
    frames = [("body", name, matrix(content["T_BS"], "T_BS").reshape(4, 4))] if "T_BS" in content else []
    return CalibrationFile({name: model}, tuple(frames), "euroc")


_ROS_LENSES = {
    "plumb_bob": "radtan",
    "rational_polynomial": "radtan",
    "equidistant": "equidistant",
    "fisheye": "equidistant",
}


def read_ros(contents: Sequence[Mapping[str, Any]], file: str) -> CalibrationFile:
    """Read CameraInfo YAML documents, one camera each."""
    cameras: dict[str, CameraModel] = {}
    frames: list[StaticTransform] = []
    for content in contents:
        default = PurePosixPath(file).stem if not cameras else f"{PurePosixPath(file).stem}{len(cameras)}"
        name = str(content.get("camera_name") or default)
        cameras[name] = _camera_from_ros(name, content)
        for edge in content.get("frames", ()):
            T = numbers(edge["T"], 16, what="T").reshape(4, 4)
            frames.append((str(edge["parent"]), str(edge["child"]), T))
    if all(_is_unrectified(model) for model in cameras.values()):
        cameras = {name: replace(model, P=None) for name, model in cameras.items()}
    return CalibrationFile(cameras, tuple(frames), "ros")


def _is_unrectified(model: CameraModel) -> bool:
    """Return whether R and P only repeat K, as ROS writes them for a camera that is not rectified."""
    same = model.P is None or (np.array_equal(model.P[:, :3], model.K) and not model.P[:, 3].any())
    return same and np.array_equal(model.R, np.eye(3))


def _camera_from_ros(name: str, content: Mapping[str, Any]) -> CameraModel:
    K = matrix(content["camera_matrix"], f"{name}: camera_matrix").reshape(3, 3)
    given = content.get("distortion_coefficients", {"rows": 0, "cols": 0, "data": []})
    coefficients = matrix(given, f"{name}: distortion_coefficients").reshape(-1)
    model = str(content.get("distortion_model", "plumb_bob"))
    lens = _ROS_LENSES.get(model, model) if len(coefficients) else "none"
    R, P = (
        matrix(content[k], k) if k in content else None for k in ("rectification_matrix", "projection_matrix")
    )
    size = numbers([content.get("image_width", 0), content.get("image_height", 0)], 2, what="image size")
    found = camera(name, size, K, lens, coefficients, R, P)
    return replace(found, frame=str(content.get("frame", name)))


def write_ros(calibration: CalibrationFile) -> bytes:
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


_AXES = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])


def read_radiate(content: Mapping[str, Any]) -> CalibrationFile:
    """Read the two cameras and the frames of a RADIATE calibration."""
    cameras: dict[str, CameraModel] = {}
    for side in ("left", "right"):
        part = content[f"{side}_cam_calib"]
        K = pinhole(*numbers([part[k] for k in ("fx", "fy", "cx", "cy")], 4, what=side).tolist())
        lens = numbers([part[k] for k in ("k1", "k2", "p1", "p2", "k3")], 5, what=f"{side} lens")
        cameras[side] = camera(side, numbers(part["res"], 2, what="res"), K, "radtan", lens)
    stereo = content["stereo_calib"]
    T = to_si(numbers([stereo[k] for k in ("TX", "TY", "TZ")], 3, what="stereo_calib"), "mm")
    frames: list[StaticTransform] = [
        ("right", "left", rigid(numbers(stereo["R"], 3, 3, what="stereo_calib: R"), T))
    ]
    if "lidar_calib" in content:
        frames.append(("left", "lidar", place_sensor(content["lidar_calib"], content["left_cam_calib"])))
    return CalibrationFile(cameras, tuple(frames), "radiate")


def place_sensor(sensor: Mapping[str, Any], left: Mapping[str, Any]) -> Floats:
    """Return T_left_sensor (4, 4) of the lidar or the radar."""
    angles = numbers(sensor["R"], 3, what="R") - numbers(left["R"], 3, what="R")
    place = numbers(sensor["T"], 3, what="T") - numbers(left["T"], 3, what="T")
    return rigid((_AXES @ rotations.matrix_from_euler("XYZ", to_si(angles, "deg"))).T, place)
