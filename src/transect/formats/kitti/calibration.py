"""KITTI's calibration files: rectified cameras and where they, the lidar and the inertial unit are.

``P_rect_0i`` (raw) and ``Pi`` (odometry) project points of rectified camera 0. `Tr`, or ``R_rect_00`` after
the R and T of calib_velo_to_cam.txt, takes points of the lidar to that camera; those of calib_imu_to_velo.txt
take points of the inertial unit to the lidar.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from transect.base.arrays import Floats
from transect.errors import FrameError
from transect.recording import FrameTree, Loss
from transect.types import CameraModel

from ..calibration.model import rigid

SEQUENCE_FILE = "calib.txt"
FILES = ("calib_cam_to_cam.txt", SEQUENCE_FILE, "calib_velo_to_cam.txt", "calib_imu_to_velo.txt")
VELO, IMU = "velo", "imu"
_SIZES = {"P_rect": 12, "S_rect": 2, "R_rect": 9, "P": 12, "Tr": 12, "R": 9, "T": 3}
_LABEL = re.compile(r"(P_rect|S_rect|R_rect)_(\d\d)|(P)([0-3])|(Tr)(?:_velo_to_cam|_velo_cam)?|(R|T)")


@dataclass
class KittiCalibration:
    """Content of the calibration files."""

    # Rectified cameras by number
    cameras: dict[int, CameraModel] = field(default_factory=dict[int, CameraModel])
    frames: FrameTree = field(default_factory=FrameTree)  # Rooted at camera 0
    losses: list[Loss] = field(default_factory=list[Loss])


def read_calibration(texts: Mapping[str, str], names: Sequence[str]) -> KittiCalibration:
    """Read the calibration files.

    Parameters
    ----------
    texts : mapping of str to str
        Content by file name (without folder), of `FILES` those that are there.
    names : sequence of str
        Folders of images that are there: `image_00`, ... or `image_0`, ...
    """
    result = KittiCalibration()
    values = {file: _label(text, file, result.losses) for file, text in texts.items()}
    style = "image_{}" if any(re.fullmatch(r"image_\d", name) for name in names) else "image_{:02d}"
    for file in FILES[:2]:
        for label, numbers in values.get(file, {}).items():
            if label.startswith("P") and style.format(int(label[-1])) in names:
                _add_camera(int(label[-1]), style, numbers, values[file], file, result)
    _place_lidar(values, style.format(0), result)
    return result


def _label(text: str, file: str, losses: list[Loss]) -> dict[str, Floats]:
    """Return the numbers of each label we know; some odometry calib.txt have none: they are P0, P1, ..."""
    found: dict[str, Floats] = {}
    for number, line in enumerate(text.splitlines(), 1):
        label, colon, rest = line.partition(":")
        label, rest = (label.strip(), rest) if colon else (f"P{number - 1}", line)
        match = _LABEL.fullmatch(label)
        if match is None or not rest.strip():
            continue
        kind = next(group for group in match.groups() if group)
        try:
            values = np.array([float(token) for token in rest.split()])
        except ValueError:
            values = np.zeros(0)
        if len(values) != _SIZES[kind] or not np.isfinite(values).all():
            losses.append(Loss(file, f"{label} is not {_SIZES[kind]} numbers", line=number))
            continue
        found.setdefault(label if match[2] or match[4] else kind, values)
    return found


def _add_camera(
    number: int, style: str, flat: Floats, values: Mapping[str, Floats], file: str, result: KittiCalibration
) -> None:
    """Add a rectified camera; the last column of P is -K times its centre in camera 0."""
    if number in result.cameras:
        return
    P, name = flat.reshape(3, 4), style.format(number)
    width, height = values.get(f"S_rect_{number:02d}", np.zeros(2)).clip(0, 1e6).astype(int)
    try:
        centre: Floats = -np.linalg.solve(P[:, :3], P[:, 3]).astype(np.float64)
        if number:
            result.frames.add_static(style.format(0), name, rigid(np.eye(3), centre), source=file)
    except (np.linalg.LinAlgError, FrameError) as error:
        result.losses.append(Loss(file, f"camera {number}: {error}"))
        return
    result.cameras[number] = CameraModel(name, int(width), int(height), P[:, :3].copy(), P=P, frame=name)


def _place_lidar(values: Mapping[str, Mapping[str, Floats]], camera: str, result: KittiCalibration) -> None:
    raw, odometry, velo, imu = (values.get(file, {}) for file in FILES)
    R_rect = raw.get("R_rect_00", np.eye(3)).reshape(3, 3)
    edges: list[tuple[str, str, Floats, str]] = []
    if {"R", "T"} <= set(velo):
        T_cam_velo = rigid(velo["R"].reshape(3, 3), velo["T"])
        edges.append((camera, VELO, rigid(R_rect, np.zeros(3)) @ T_cam_velo, FILES[2]))
    elif "Tr" in odometry:
        Tr = odometry["Tr"].reshape(3, 4)
        edges.append((camera, VELO, rigid(Tr[:, :3], Tr[:, 3]), FILES[1]))
    if {"R", "T"} <= set(imu):
        edges.append((VELO, IMU, rigid(imu["R"].reshape(3, 3), imu["T"]), FILES[3]))
    for parent, child, T, file in edges:
        try:
            result.frames.add_static(parent, child, T, source=file)
        except FrameError as error:
            result.losses.append(Loss(file, error.what))
