"""KITTI's camera calibrations, read and written: one file alone; `formats.kitti` reads those of a drive."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from transect.base.arrays import Floats
from transect.base.units import from_si, to_si
from transect.errors import ParseError, UnsupportedError
from transect.geometry import rotations, se3
from transect.types import CameraModel

from .model import CalibrationFile, StaticTransform, camera, pinhole, projection, rigid, scalars


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


def read_kitti(text: str) -> CalibrationFile:
    """Read calib_cam_to_cam.txt (raw cameras and their rectification) or an odometry calib.txt (rectified).

    ``R_0x T_0x`` take points of camera 0 to camera x; `Tr` takes points of the lidar to camera 0.
    """
    values = _entries(text)
    raw = sorted(k[2:] for k in values if re.fullmatch(r"K_\d\d", k))
    calibration = _kitti_raw(values, raw) if raw else _kitti_rectified(values)
    if not calibration.cameras:
        raise KeyError("P0")
    return calibration


def _kitti_raw(values: dict[str, Floats], numbers: list[str]) -> CalibrationFile:
    cameras: dict[str, CameraModel] = {}
    frames: list[StaticTransform] = []
    first = f"cam{int(numbers[0])}"
    for n in numbers:
        name = f"cam{int(n)}"
        K, size = values[f"K_{n}"].reshape(3, 3), values.get(f"S_{n}", np.zeros(2))
        D, R, P = (values.get(f"{key}_{n}") for key in ("D", "R_rect", "P_rect"))
        cameras[name] = camera(name, size, K, "none" if D is None else "radtan", () if D is None else D, R, P)
        if name != first and f"R_{n}" in values and f"T_{n}" in values:
            T_name_first = rigid(values[f"R_{n}"].reshape(3, 3), values[f"T_{n}"])
            frames.append((first, name, se3.invert(T_name_first)))
    return CalibrationFile(cameras, tuple(frames), "kitti")


def _kitti_rectified(values: dict[str, Floats]) -> CalibrationFile:
    cameras: dict[str, CameraModel] = {}
    for key in values:
        if re.fullmatch(r"P\d", key):
            P = values[key].reshape(3, 4)
            cameras[f"cam{key[1]}"] = camera(f"cam{key[1]}", (0, 0), P[:, :3].copy(), P=P)
    tr = values.get("Tr", values.get("Tr_velo_to_cam"))
    frames: tuple[StaticTransform, ...] = ()
    if tr is not None:
        frames = (("cam0", "lidar", np.vstack([tr.reshape(3, 4), [0.0, 0.0, 0.0, 1.0]])),)
    return CalibrationFile(cameras, frames, "kitti")


def write_kitti(calibration: CalibrationFile) -> bytes:
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


_COMMENT = re.compile(r"%[^\n]*|\.\.\.[^\n]*\n")
_ASSIGNMENT = re.compile(r"([A-Za-z]\w*)\s*=\s*(?:\[([^\[\]]*)\]|([^\s;\[\]=]+))")
_KC_COUNT = 5


def variables_from_matlab(text: str) -> dict[str, Floats]:
    """Return the numbers that a Matlab script assigns, by name; other statements are ignored.

    Parameters
    ----------
    text : str
        For example ``fc = [ 657.4 ; 657.8 ];``.

    Returns
    -------
    dict of str to array
        () for a scalar, (n,) for a row or a column, (m, n) for a matrix. A name's last assignment counts.
    """
    variables: dict[str, Floats] = {}
    for name, matrix, scalar in _ASSIGNMENT.findall(_COMMENT.sub("", text)):
        value = _matrix(matrix) if matrix else _scalar(scalar)
        if value is not None:
            variables[name] = value
    return variables


def _scalar(text: str) -> Floats | None:
    try:
        return np.array(float(text))
    except ValueError:
        return None


def _matrix(text: str) -> Floats | None:
    rows = [row.replace(",", " ").split() for row in re.split(r"[;\n]", text)]
    try:
        values = np.array([[float(number) for number in row] for row in rows if row])
    except ValueError:
        return None
    return values.reshape(-1) if 1 in values.shape else values


def camera_from_matlab(text: str, name: str, where: str = "Calib_Results.m") -> CameraModel:
    """Return the camera that a `Calib_Results.m` describes.

    Parameters
    ----------
    text : str
        Content of the file: `fc`, `cc`, and perhaps `alpha_c`, `kc`, `nx`, `ny`.
    name : str
        What to call the camera, and its frame.
    where : str
        Named in errors.
    """
    variables = variables_from_matlab(text)
    fx, fy = _numbers(variables, "fc", 2, where)
    cx, cy = _numbers(variables, "cc", 2, where)
    skew = float(_numbers(variables, "alpha_c", 1, where)[0]) if "alpha_c" in variables else 0.0
    kc = _numbers(variables, "kc", _KC_COUNT, where) if "kc" in variables else np.zeros(_KC_COUNT)
    width, height = (int(_numbers(variables, n, 1, where)[0]) if n in variables else 0 for n in ("nx", "ny"))
    return CameraModel(
        name=name,
        width=width,
        height=height,
        K=np.array([[fx, skew * fx, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]]),
        distortion="radtan",
        coefficients=kc,
        frame=name,
    )


def _numbers(variables: Mapping[str, Floats], name: str, count: int, where: str) -> Floats:
    """Return a variable as `count` finite numbers; old toolboxes wrote `kc` without its last."""
    value = np.atleast_1d(variables.get(name, np.zeros(0))).reshape(-1)
    if name == "kc" and len(value) == _KC_COUNT - 1:
        value = np.append(value, 0.0)
    if len(value) != count or not np.isfinite(value).all():
        raise ParseError(
            f"{name} of a camera calibration is {count} number{'s' if count > 1 else ''}",
            where=where,
            why=f"found {value.tolist()}" if name in variables else f"it has no {name}",
        )
    return value


def matlab_from_camera(camera: CameraModel) -> str:
    """Return a camera as the text of a `Calib_Results.m`, without uncertainties."""
    kc = np.zeros(_KC_COUNT)
    if camera.distortion not in ("none", "radtan") or len(camera.coefficients) > _KC_COUNT:
        raise UnsupportedError(
            f"the calibration of {camera.name} cannot be written for Matlab",
            why=f"the toolbox knows no {camera.distortion} of {len(camera.coefficients)} coefficients",
        )
    kc[: len(camera.coefficients)] = camera.coefficients
    (fx, skew, cx), (_, fy, cy) = camera.K[0], camera.K[1]
    return (
        "% Intrinsic Camera Parameters\n"
        "%\n"
        "% This script file can be directly executed under Matlab to recover the intrinsic parameters.\n"
        f"\n%-- Focal length:\nfc = {_matrix_text(np.array([fx, fy]))};\n"
        f"\n%-- Principal point:\ncc = {_matrix_text(np.array([cx, cy]))};\n"
        f"\n%-- Skew coefficient:\nalpha_c = {float(skew / fx)!r};\n"
        f"\n%-- Distortion coefficients:\nkc = {_matrix_text(kc)};\n"
        f"\n%-- Image size:\nnx = {camera.width};\nny = {camera.height};\n"
    )


def read_matlab(text: str, name: str) -> CalibrationFile:
    """Read Bouguet's Calib_Results.m, or Calib_Results_stereo.m, whose T is in the unit of the board: mm."""
    values = variables_from_matlab(text)
    if "fc_left" not in values:
        return CalibrationFile({"camera": camera_from_matlab(text, "camera", name)}, (), "matlab")
    cameras: dict[str, CameraModel] = {}
    for side in ("left", "right"):
        fx, fy = values[f"fc_{side}"].reshape(2)
        cx, cy = values[f"cc_{side}"].reshape(2)
        skew = float(values.get(f"alpha_c_{side}", np.zeros(1)).reshape(-1)[0]) * fx
        size = [float(values.get(k, np.zeros(1)).reshape(-1)[0]) for k in ("nx", "ny")]
        kc = values.get(f"kc_{side}", np.zeros(5)).reshape(-1)
        cameras[side] = camera(side, size, pinhole(fx, fy, cx, cy, skew), "radtan", kc)
    if "T" not in values:  # two cameras that were calibrated one by one
        return CalibrationFile(cameras, (), "matlab")
    turn = values["R"] if "R" in values else rotations.matrix_from_rotation_vector(values["om"].reshape(3))
    T = rigid(turn.reshape(3, 3), to_si(values["T"].reshape(3), "mm"))
    notes = ("the translation of Calib_Results_stereo.m is taken to be in millimetres",)
    return CalibrationFile(cameras, (("right", "left", T),), "matlab", notes)


def write_matlab(calibration: CalibrationFile) -> bytes:
    """Write Calib_Results.m for one camera, Calib_Results_stereo.m for two."""
    models = list(calibration.cameras.values())
    if len(models) == 1:
        return matlab_from_camera(models[0]).encode()
    if len(models) != 2:
        raise UnsupportedError(f"Matlab's toolbox knows one or two cameras, not {len(models)}")
    lines: list[str] = []
    for side, model in zip(("left", "right"), models, strict=True):
        values = variables_from_matlab(matlab_from_camera(model))
        lines += [f"{key}_{side} = {_matrix_text(values[key])};" for key in ("fc", "cc", "alpha_c", "kc")]
    if (T := calibration.transform(models[1].name, models[0].name)) is not None:
        lines += [f"R = {_matrix_text(T[:3, :3])};", f"T = {_matrix_text(from_si(T[:3, 3], 'mm'))};"]
    lines += [f"nx = {models[0].width};", f"ny = {models[0].height};"]
    return ("\n".join(lines) + "\n").encode()


def _matrix_text(values: Floats) -> str:
    if values.ndim == 0:
        return repr(float(values))
    rows = values.reshape(-1, 1) if values.ndim == 1 else values
    return "[ " + " ; ".join(" ".join(repr(float(v)) for v in row) for row in rows) + " ]"
