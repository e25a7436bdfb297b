"""KITTI's camera calibrations, read and written: one file alone; `formats.kitti` reads those of a drive."""

from __future__ import annotations

import re

import numpy as np

from transect.base.arrays import Floats
from transect.errors import UnsupportedError
from transect.geometry import se3
from transect.types import CameraModel

from .model import Calibration, Edge, camera, projection, rigid, scalars


def _entries(text: str) -> dict[str, Floats]:
    """Return ``name: numbers`` lines; lines of numbers alone are P0, P1, ..., as in some calib.txt."""
    found: dict[str, Floats] = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if not colon and line.strip():
            name, rest = f"P{sum(1 for k in found if k.startswith('P'))}", line
        if rest.strip() and not re.search(r"[A-Za-df-zDF-Z]", rest):
            found[name.strip()] = scalars(rest)
    return found


def read_kitti(text: str) -> Calibration:
    """Read calib_cam_to_cam.txt (raw cameras and their rectification) or an odometry calib.txt (rectified).

    ``R_0x T_0x`` take points of camera 0 to camera x; `Tr` takes points of the lidar to camera 0.
    """
    values = _entries(text)
    raw = sorted(k[2:] for k in values if re.fullmatch(r"K_\d\d", k))
    calibration = _kitti_raw(values, raw) if raw else _kitti_rectified(values)
    if not calibration.cameras:
        raise KeyError("P0")
    return calibration


def _kitti_raw(values: dict[str, Floats], numbers: list[str]) -> Calibration:
    cameras: dict[str, CameraModel] = {}
    frames: list[Edge] = []
    first = f"cam{int(numbers[0])}"
    for n in numbers:
        name = f"cam{int(n)}"
        K, size = values[f"K_{n}"].reshape(3, 3), values.get(f"S_{n}", np.zeros(2))
        D, R, P = (values.get(f"{key}_{n}") for key in ("D", "R_rect", "P_rect"))
        cameras[name] = camera(name, size, K, "none" if D is None else "radtan", () if D is None else D, R, P)
        if name != first and f"R_{n}" in values and f"T_{n}" in values:
            T_name_first = rigid(values[f"R_{n}"].reshape(3, 3), values[f"T_{n}"])
            frames.append((first, name, se3.invert(T_name_first)))
    return Calibration(cameras, tuple(frames), "kitti")


def _kitti_rectified(values: dict[str, Floats]) -> Calibration:
    cameras: dict[str, CameraModel] = {}
    for key in values:
        if re.fullmatch(r"P\d", key):
            P = values[key].reshape(3, 4)
            cameras[f"cam{key[1]}"] = camera(f"cam{key[1]}", (0, 0), P[:, :3].copy(), P=P)
    tr = values.get("Tr", values.get("Tr_velo_to_cam"))
    frames: tuple[Edge, ...] = ()
    if tr is not None:
        frames = (("cam0", "lidar", np.vstack([tr.reshape(3, 4), [0.0, 0.0, 0.0, 1.0]])),)
    return Calibration(cameras, frames, "kitti")


def write_kitti(calibration: Calibration) -> bytes:
    """Write a calib_cam_to_cam.txt; cameras are numbered in their order."""
    names, lines = list(calibration.cameras), list[str]()
    for number, (name, model) in enumerate(calibration.cameras.items()):
        if model.distortion == "equidistant" or len(model.coefficients) > 5:
            raise UnsupportedError(f"KITTI's file cannot hold the lens of {name}")
        T = np.eye(4) if number == 0 else calibration.transform(name, names[0])
        D = np.append(model.coefficients, np.zeros(5 - len(model.coefficients)))
        parts = {"S": np.array([model.width, model.height]), "K": model.K, "D": D}
        if T is not None:
            parts |= {"R": T[:3, :3], "T": T[:3, 3]}
        parts |= {"R_rect": model.R, "P_rect": projection(model)}
        lines += [
            f"{k}_{number:02d}: " + " ".join(repr(float(v)) for v in m.reshape(-1)) for k, m in parts.items()
        ]
    return ("\n".join(lines) + "\n").encode()
