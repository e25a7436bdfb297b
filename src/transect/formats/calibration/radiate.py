"""RADIATE's default-calib.yaml: two cameras, their stereo transform, and the lidar.

As the data set's own tools use it: angles are degrees, `stereo_calib` takes points of the left camera to the
right and is in millimetres, and points of the lidar or the radar (x right, y forward, z up) go to the left
camera by ``(axes Rx Ry Rz)^T p + t``, with the differences of the two `R` as angles, about the axes of the
radar, and of the two `T` as t, in metres along the axes of the camera (x right, y down, z forward).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.units import to_si
from transect.geometry import rotations
from transect.types import CameraModel

from .model import Calibration, Edge, camera, numbers, pinhole, rigid

_AXES = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])


def read_radiate(content: Mapping[str, Any]) -> Calibration:
    """Read the two cameras and the frames of a RADIATE calibration."""
    cameras: dict[str, CameraModel] = {}
    for side in ("left", "right"):
        part = content[f"{side}_cam_calib"]
        K = pinhole(*numbers([part[k] for k in ("fx", "fy", "cx", "cy")], 4, what=side).tolist())
        lens = numbers([part[k] for k in ("k1", "k2", "p1", "p2", "k3")], 5, what=f"{side} lens")
        cameras[side] = camera(side, numbers(part["res"], 2, what="res"), K, "radtan", lens)
    stereo = content["stereo_calib"]
    T = to_si(numbers([stereo[k] for k in ("TX", "TY", "TZ")], 3, what="stereo_calib"), "mm")
    frames: list[Edge] = [("right", "left", rigid(numbers(stereo["R"], 3, 3, what="stereo_calib: R"), T))]
    if "lidar_calib" in content:
        frames.append(("left", "lidar", place_sensor(content["lidar_calib"], content["left_cam_calib"])))
    return Calibration(cameras, tuple(frames), "radiate")


def place_sensor(sensor: Mapping[str, Any], left: Mapping[str, Any]) -> Floats:
    """Return T_left_sensor (4, 4) of the lidar or the radar."""
    angles = numbers(sensor["R"], 3, what="R") - numbers(left["R"], 3, what="R")
    place = numbers(sensor["T"], 3, what="T") - numbers(left["T"], 3, what="T")
    return rigid((_AXES @ rotations.matrix_from_euler("XYZ", to_si(angles, "deg"))).T, place)
