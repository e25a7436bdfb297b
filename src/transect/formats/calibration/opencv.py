"""OpenCV FileStorage calibrations, YAML or XML, one camera or a stereo pair; and ORB-SLAM's settings.

OpenCV's tools write `camera_matrix distortion_coefficients` for one camera and `M1 D1 M2 D2 R T R1 R2 P1 P2`
for a pair, in which R, T take points of the first camera to the second: ``T_second_first``. People spell them
in other ways; `left`/`right` or a number say which camera, the rest says what.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.errors import UnsupportedError
from transect.geometry import rotations
from transect.types import CameraModel

from .model import (
    CalibrationFile,
    StaticTransform,
    camera,
    is_matrix,
    matrix,
    numbers,
    pinhole,
    rectified_pair,
    rigid,
)

_WORDS = {
    "K": "k m cm cameramatrix intrinsic intrinsics intrinsicmatrix mtx",
    "D": "d kc dist distcoeffs distcoeff distortion distortioncoefficients distortionparameters",
    "R": "r rect rectification rectificationmatrix",
    "P": "p projection projectionmatrix",
    "T": "t translation translationvector translationmatrix",
    "rotation": "rotation rotationmatrix",
    "width": "width imagewidth",
    "height": "height imageheight",
    "size": "size imagesize resolution",
}
_MEANING = {word: key for key, words in _WORDS.items() for word in words.split()}
_SIDES = {"left": 0, "right": 1}
_PAIR = ("left", "right")
Part = tuple[int | None, str]


def read_opencv(content: Mapping[str, Any]) -> CalibrationFile:
    """Read the cameras of a FileStorage, and the transform between the two of a pair."""
    found = _find(content)
    numbered = sorted({side for side, what in found if side is not None and what == "K"})
    given = content.get("camera_names")
    names = [str(v) for v in given] if isinstance(given, list) else []
    if (None, "K") in found:
        numbered, names = [None], names or ["camera"]  # pyright: ignore[reportAssignmentType]
    if not numbered:
        raise KeyError("camera_matrix")
    if len(names) != len(numbered):
        names = list(_PAIR[: len(numbered)]) if len(numbered) <= 2 else [f"camera{n}" for n in numbered]
    lens = str(content.get("distortion_model", ""))
    cameras = {name: _camera(name, side, found, lens) for name, side in zip(names, numbered, strict=True)}
    stereo = _stereo(found, names)
    if len(names) == 2 and not stereo:
        stereo = rectified_pair(cameras[names[0]], cameras[names[1]])
    return CalibrationFile(cameras, (*stereo, *_frames(content)), "opencv")


def _find(content: Mapping[str, Any]) -> dict[Part, Any]:
    """Return the values by what they are and to which camera they belong."""
    parts: dict[Part, Any] = {}
    for key, value in content.items():
        side, what = _meaning(key)
        if what:
            parts.setdefault((side, what), value)
    return parts


def _meaning(key: str) -> Part:
    """Take `LEFT.K`, `cameraMatrix1`, `M2`, `rightDistCoeffs`, `image_width` apart."""
    word = re.sub(r"[^a-z0-9]", "", key.lower())
    for name, side in _SIDES.items():
        if name in word:
            return side, _MEANING.get(word.replace(name, "", 1), "")
    match = re.fullmatch(r"([a-z]+)(\d)", word)
    if match:
        return int(match[2]), _MEANING.get(match[1], "")
    return None, _MEANING.get(word, "")


def _camera(name: str, side: int | None, found: Mapping[Part, Any], lens: str) -> CameraModel:
    def part(what: str) -> Floats | None:
        return matrix(found[side, what], f"{what} of {name}") if (side, what) in found else None

    K, D = part("K"), part("D")
    coefficients = np.zeros(0) if D is None else D.reshape(-1)
    if K is None or K.shape != (3, 3):
        raise ValueError(f"the camera matrix of {name} is not 3 x 3")
    lens = lens if len(coefficients) else "none"
    R, P = (part("R"), part("P")) if side is not None else (None, None)
    return camera(name, _size(side, found), K, lens or "radtan", coefficients, R, P)


def _size(side: int | None, found: Mapping[Part, Any]) -> Floats:
    for key in (side, None):
        if (key, "width") in found and (key, "height") in found:
            return numbers([found[key, "width"], found[key, "height"]], 2, what="image size")
        if (key, "size") in found:
            value = found[key, "size"]
            return (
                matrix(value, "image size") if is_matrix(value) else numbers(value, 2, what="size")
            ).reshape(2)
    return np.zeros(2)


def _stereo(found: Mapping[Part, Any], names: Sequence[str]) -> list[StaticTransform]:
    """Return T_second_first from R and T (a (3, 3) matrix, or a rotation vector)."""
    turn = found.get((None, "R"), found.get((None, "rotation")))
    if len(names) != 2 or turn is None or (None, "T") not in found:
        return []
    rotation, place = matrix(turn, "R"), matrix(found[None, "T"], "T")
    if rotation.size == 3:
        rotation = rotations.matrix_from_rotation_vector(rotation.reshape(3))
    if rotation.shape != (3, 3) or place.size != 3:
        raise ValueError("R is not 3 x 3, or T not three numbers")
    return [(names[1], names[0], rigid(rotation, place.reshape(3)))]


def _frames(content: Mapping[str, Any]) -> list[StaticTransform]:
    given = content.get("frames", ())
    if not isinstance(given, list):
        return []
    return [(str(e["parent"]), str(e["child"]), matrix(e["T"], "T").reshape(4, 4)) for e in given]


def read_orbslam(content: Mapping[str, Any]) -> CalibrationFile:
    """Read ORB-SLAM 2 and 3 settings: the cameras as they are (LEFT.K, ...), else the rectified ones.

    `Tbc` takes points of the first camera to the body, which is the imu; `Stereo.T_c1_c2` points of the
    second camera to the first.
    """
    try:
        raw = read_opencv({k: v for k, v in content.items() if not k.startswith(("Camera", "Stereo", "IMU"))})
        cameras = dict(raw.cameras)
    except KeyError:
        cameras = _settings_cameras(content)
    first, *others = cameras
    frames: list[StaticTransform] = []
    for key in ("Tbc", "IMU.T_b_c1"):
        if key in content:
            frames.append(("imu", first, matrix(content[key], key).reshape(4, 4)))
    if "Stereo.T_c1_c2" in content and others:
        T = matrix(content["Stereo.T_c1_c2"], "Stereo.T_c1_c2").reshape(4, 4)
        frames.append((first, others[0], T))
    elif others:
        frames += rectified_pair(cameras[first], cameras[others[0]])
    return CalibrationFile(cameras, tuple(frames), "orbslam")


def _settings_cameras(content: Mapping[str, Any]) -> dict[str, CameraModel]:
    size = numbers([content.get("Camera.width", 0), content.get("Camera.height", 0)], 2, what="Camera.width")
    found: dict[str, CameraModel] = {}
    for prefix, name in (("Camera", "left"), ("Camera1", "left"), ("Camera2", "right")):
        if f"{prefix}.fx" not in content:
            continue
        values = [content[f"{prefix}.{k}"] for k in ("fx", "fy", "cx", "cy")]
        lens = [content.get(f"{prefix}.{k}", 0.0) for k in ("k1", "k2", "p1", "p2", "k3")]
        K = pinhole(*numbers(values, 4, what=prefix).tolist())
        found[name] = camera(name, size, K, "radtan", numbers(lens, 5, what=f"{prefix} lens"))
    if "Camera.bf" in content and "left" in found and "right" not in found:
        left = found["left"]
        shift = -float(numbers([content["Camera.bf"]], 1, what="Camera.bf")[0])
        P = np.column_stack([left.K, [shift, 0.0, 0.0]])
        found["right"] = camera("right", size, left.K, "radtan", left.coefficients, P=P)
    if not found:
        raise KeyError("Camera.fx")
    return found


def write_opencv(calibration: CalibrationFile) -> bytes:
    """Write YAML that cv2.FileStorage reads: `camera_matrix` for one camera, `M1 D1 M2 D2 R T` for more."""
    names = list(calibration.cameras)
    if not names:
        raise UnsupportedError("there is no camera to write")
    lenses = {m.distortion for m in calibration.cameras.values()} - {"none"}
    sizes = {(m.width, m.height) for m in calibration.cameras.values()}
    if len(lenses) > 1:
        raise UnsupportedError(
            "an OpenCV file has one lens model", why=f"the cameras have {', '.join(lenses)}"
        )
    lines = ["%YAML:1.0", "---", f"camera_names: [ {', '.join(_quote(n) for n in names)} ]"]
    lines += [f"distortion_model: {_quote(lens)}" for lens in lenses]
    if len(sizes) == 1:
        lines += [f"image_width: {width}\nimage_height: {height}" for width, height in sizes]
    for number, model in enumerate(calibration.cameras.values(), 1):
        lines += _camera_lines(model, "" if len(names) == 1 else str(number), own_size=len(sizes) > 1)
    lines += _frame_lines(calibration, names)
    return ("\n".join(lines) + "\n").encode()


def _camera_lines(model: CameraModel, number: str, own_size: bool) -> list[str]:
    keys = ("M", "D", "R", "P") if number else ("camera_matrix", "distortion_coefficients", "", "")
    lines = [f"image_size{number}: [ {model.width}, {model.height} ]"] if own_size else []
    lines.append(_matrix_text(keys[0] + number, model.K))
    if model.distortion != "none":
        lines.append(_matrix_text(keys[1] + number, model.coefficients.reshape(1, -1)))
    if number and model.P is not None:
        lines += [_matrix_text(f"R{number}", model.R), _matrix_text(f"P{number}", model.P)]
    return lines


def _frame_lines(calibration: CalibrationFile, names: list[str]) -> list[str]:
    """Write the transform of a pair as R and T, and all others under `frames`."""
    lines: list[str] = []
    others: list[str] = []
    for parent, child, T in calibration.frames:
        if len(names) == 2 and (parent, child) == (names[1], names[0]) and not lines:
            lines += [_matrix_text("R", T[:3, :3]), _matrix_text("T", T[:3, 3:])]
        else:
            others += ["   -", f"      parent: {_quote(parent)}", f"      child: {_quote(child)}"]
            others.append(_matrix_text("T", np.asarray(T), indent="      "))
    return lines + (["frames:", *others] if others else [])


def _matrix_text(key: str, values: Floats, indent: str = "") -> str:
    rows, cols = values.shape
    data = ", ".join(repr(float(v)) for v in values.reshape(-1))
    inner = f"{indent}   "
    return (
        f"{indent}{key}: !!opencv-matrix\n{inner}rows: {rows}\n{inner}cols: {cols}\n{inner}dt: d\n"
        f"{inner}data: [ {data} ]"
    )


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
