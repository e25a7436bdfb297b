"""Calibration of a Rosario sequence: Kalibr's cameras, and the poses of the IMU and the antenna.

`calibration0N.yaml` of the published scripts and `calibration.txt` of the paper (4.1) have the same content::

    cam0: {intrinsics: [fx, fy, cx, cy], distortion_model: radtan, distortion_coeffs: [k1, k2, p1, p2],
           resolution: [672, 376], T_cam_imu: 4 x 4}     # cam0 left, cam1 right; imu points to the camera
    imu:  {gyro_offset: [deg/s], acc_offset: [milli-g],
           position_imu_baselink: [m], rotation_imu_baselink: [x, y, z, w]}    # imu points to base_link
    gps:  {position_gps_baselink: [m]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.yaml_parts import parse
from transect.errors import ParseError, TransectError
from transect.geometry import se3
from transect.recording import FrameTree, Loss
from transect.types import CameraModel

CAMERAS = {"cam0": "left", "cam1": "right"}
MAX_FILE_BYTES = 1_000_000


@dataclass
class StereoImuCalibration:
    """Content of a calibration file."""

    cameras: dict[str, CameraModel] = field(default_factory=dict[str, CameraModel])  # `left` and `right`
    # T_frame_child, m
    transforms: dict[tuple[str, str], Floats] = field(default_factory=dict[tuple[str, str], Floats])
    gyro_offset: Floats | None = None  # (3,) deg/s, to subtract from the log
    acc_offset: Floats | None = None  # (3,) milli-g, to subtract from the log
    losses: list[Loss] = field(default_factory=list[Loss])

    def frames(self, robot_frames: FrameTree, source: str) -> FrameTree:
        """Return the robot's frames, replaced by those of the calibration."""
        frames = robot_frames.copy()
        for (frame, child), matrix in self.transforms.items():
            frames.add_static(frame, child, matrix, source=source, replace=True)
        return frames

    def add_transform(self, frame: str, child: str, matrix: Floats) -> None:
        """Add T_frame_child; raise FrameError if it is not rigid."""
        FrameTree().add_static(frame, child, matrix)
        self.transforms[frame, child] = matrix


def read_calibration(data: bytes, file: str) -> StereoImuCalibration:
    """Read a calibration file; missing or malformed parts keep the robot's values."""
    result = StereoImuCalibration()
    if len(data) > MAX_FILE_BYTES:
        result.losses.append(Loss(file, "not a calibration: it is too large for one"))
        return result
    try:
        content, _ = parse(data.decode("utf-8-sig", "replace"), file)
    except ParseError as error:
        line = error.where.removeprefix(f"{file}:")
        reason = f"not a calibration: {error.why or error.what}"
        result.losses.append(Loss(file, reason, line=int(line) if line.isdecimal() else None))
        return result
    if not isinstance(content, dict):
        result.losses.append(Loss(file, "not a calibration: it is not a mapping"))
        return result
    for part, read in (("cam0", _camera), ("cam1", _camera), ("imu", _imu), ("gps", _gps)):
        if part not in content:
            continue
        try:
            if not isinstance(content[part], dict):
                raise ValueError("it is not a mapping")
            read(content[part], part, result)
        except TransectError as error:
            result.losses.append(Loss(file, f"{part}: {error.what}"))
        except (TypeError, ValueError, OverflowError) as error:
            result.losses.append(Loss(file, f"{part}: {error}"))
    return result


def _numbers(content: Mapping[str, Any], name: str, *shape: int) -> Floats:
    """Return a list of numbers, or a list of lists; numbers such as 5e-05 are text in YAML.

    The shape is checked first, as nested aliases can expand to a billion numbers.
    """
    values = content.get(name)
    rows: Any = values if len(shape) == 2 else [values]
    if not isinstance(rows, list) or len(rows) != (shape[0] if len(shape) == 2 else 1):
        raise ValueError(f"{name} is not {' x '.join(map(str, shape))} numbers")
    for row in rows:
        if not isinstance(row, list) or len(row) != shape[-1] or any(isinstance(v, list | dict) for v in row):
            raise ValueError(f"{name} is not {' x '.join(map(str, shape))} numbers")
    numbers = np.array([[float(v) for v in row] for row in rows]).reshape(shape)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} is not finite")
    return numbers


def _camera(content: Mapping[str, Any], part: str, result: StereoImuCalibration) -> None:
    name = CAMERAS[part]
    if "T_cam_imu" in content:
        result.add_transform("imu", f"{name}_camera", se3.invert(_numbers(content, "T_cam_imu", 4, 4)))
    fx, fy, cx, cy = _numbers(content, "intrinsics", 4)
    width, height = _numbers(content, "resolution", 2)
    model = str(content.get("distortion_model", "none"))
    coefficients = np.zeros(0) if model == "none" else _numbers(content, "distortion_coeffs", 4)
    result.cameras[name] = CameraModel(
        name=name,
        width=int(width),
        height=int(height),
        K=np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]]),
        distortion={"equi": "equidistant"}.get(model, model),
        coefficients=coefficients,
        frame=f"{name}_camera",
    )


def _imu(content: Mapping[str, Any], _: str, result: StereoImuCalibration) -> None:
    if "gyro_offset" in content:
        result.gyro_offset = _numbers(content, "gyro_offset", 3)
    if "acc_offset" in content:
        result.acc_offset = _numbers(content, "acc_offset", 3)
    if "position_imu_baselink" in content:
        xyz, turn = (
            _numbers(content, "position_imu_baselink", 3),
            _numbers(content, "rotation_imu_baselink", 4),
        )
        result.add_transform("base_link", "imu", se3.from_quaternion(turn, xyz))


def _gps(content: Mapping[str, Any], _: str, result: StereoImuCalibration) -> None:
    # In Table 1 the antenna has no rotation; that of the file is ignored (errata).
    result.add_transform(
        "base_link", "gps", se3.from_matrix(np.eye(3), _numbers(content, "position_gps_baselink", 3))
    )


def calibration_text(
    cameras: Mapping[str, CameraModel],
    transforms: Mapping[tuple[str, str], Floats],
    gyro_offset: Any = None,
    acc_offset: Any = None,
) -> str:
    """Return the text of a calibration file; all numbers are read back unchanged."""
    import yaml

    imu: dict[str, Any] = {}
    if ("base_link", "imu") in transforms:
        turn, xyz = se3.to_quaternion(transforms["base_link", "imu"])
        imu = {"position_imu_baselink": xyz.tolist(), "rotation_imu_baselink": turn.tolist()}
    offsets = {"gyro_offset": gyro_offset, "acc_offset": acc_offset}
    imu |= {name: [float(v) for v in values] for name, values in offsets.items() if values is not None}
    content: dict[str, Any] = {"imu": imu} if imu else {}
    if ("base_link", "gps") in transforms:
        content["gps"] = {
            "position_gps_baselink": transforms["base_link", "gps"][:3, 3].tolist(),
            "orientation_gps_baselink": [0.0, 0.0, 0.0, 1.0],
        }
    for part, name in CAMERAS.items():
        if name in cameras:
            content[part] = _camera_content(cameras[name], transforms.get(("imu", f"{name}_camera")))
    left, right = (transforms.get(("imu", f"{name}_camera")) for name in CAMERAS.values())
    if left is not None and right is not None and "cam1" in content:
        content["cam1"]["T_cn_cnm1"] = se3.compose(se3.invert(right), left).tolist()
    return yaml.safe_dump(content, default_flow_style=None, sort_keys=True, width=100)


def _camera_content(camera: CameraModel, T_imu_camera: Floats | None) -> dict[str, Any]:
    content: dict[str, Any] = {
        "camera_model": "pinhole",
        "intrinsics": [float(camera.K[i]) for i in ((0, 0), (1, 1), (0, 2), (1, 2))],
        "resolution": [camera.width, camera.height],
        "distortion_model": {"equidistant": "equi"}.get(camera.distortion, camera.distortion),
        "distortion_coeffs": camera.coefficients[:4].tolist(),
    }
    if T_imu_camera is not None:
        content["T_cam_imu"] = se3.invert(T_imu_camera).tolist()
    return content
