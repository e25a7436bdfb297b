"""The text calibrations that come with CDFF's images: Katwijk, DLR, Devon Island, and the Minnie rover's."""

from __future__ import annotations

import re

import numpy as np

from transect.base.arrays import Floats
from transect.base.units import to_si
from transect.formats.calibration.model import (
    CalibrationFile,
    StaticTransform,
    camera,
    pinhole,
    rigid,
    scalars,
)
from transect.geometry import rotations, se3
from transect.types import CameraModel

_SIX_DIGITS = re.compile(r"-?(?:0\.0*[1-9]\d{0,5}|[1-9]\d{0,5}(?:\.\d+)?|0)")


def read_statements(text: str) -> CalibrationFile:
    """Read `leftCameraMatrix.at<double>(0,0) = 725.107;` statements (CDFF's Katwijk and DLR calibrations).

    They are arguments of cv::stereoRectify: rotation and translation transform points from the left to the
    right camera.
    """
    pattern = r"(\w+)\.at<double>\((\d),\s*(\d)\)\s*=\s*([-+.\deE]+)(?:\s*\*\s*([-+.\deE]+))?\s*;"
    parts: dict[str, dict[tuple[int, int], float]] = {}
    for name, row, column, value, factor in re.findall(pattern, text):
        parts.setdefault(name, {})[int(row), int(column)] = float(value) * float(factor or 1)
    size = re.search(r"cv::Size\((\d+),\s*(\d+)\)", text)
    wh = (int(size[1]), int(size[2])) if size else (0, 0)
    cameras: dict[str, CameraModel] = {}
    for side in ("left", "right"):
        at = parts[f"{side}CameraMatrix"]
        lens = parts.get(f"{side}DistortionCoefficients", {})
        K = pinhole(at[0, 0], at[1, 1], at[0, 2], at[1, 2], at.get((0, 1), 0.0))
        cameras[side] = camera(side, wh, K, "radtan" if lens else "none", [lens[k] for k in sorted(lens)])
    R, T = parts["rotationMatrix"], parts["translationMatrix"]
    matrix = rigid(
        np.array([[R[i, j] for j in range(3)] for i in range(3)]), np.array([T[i, 0] for i in range(3)])
    )
    return CalibrationFile(cameras, (("right", "left", matrix),), "cdff")


def read_sections(text: str) -> CalibrationFile:
    """Read the report of CDFF's stereo calibration: sections of `FocalLengthX: 693.4`, bracketed matrices."""
    size = re.search(r"\[(\d+) x (\d+)\]", text)
    wh = (int(size[1]), int(size[2])) if size else (0, 0)
    cameras: dict[str, CameraModel] = {}
    for side in ("Left", "Right"):
        intrinsics = _section(text, f"{side} Camera Matrix")
        lens = _section(text, f"{side} Distortion Matrix")
        rotation = _section(text, f"{side} Rectification Matrix")
        K = pinhole(*(intrinsics[f"{a}{b}"] for a in ("FocalLength", "PrinciplePoint") for b in "XY"))
        keys = [k for k in ("K1", "K2", "P1", "P2", "K3", "K4", "K5", "K6") if k in lens]
        R = np.array([rotation[f"Element_{i}_{j}"] for i in range(3) for j in range(3)]) if rotation else None
        P = _bracket(text, f"Rectified {side} Projection Matrix", 12)
        cameras[side.lower()] = camera(side.lower(), wh, K, "radtan", [lens[k] for k in keys], R, P)
    rotation, translation = _bracket(text, "Rotation:", 9), _bracket(text, "Translation:", 3)
    frames: tuple[StaticTransform, ...] = ()
    if rotation is not None and translation is not None:
        frames = (("right", "left", rigid(rotation.reshape(3, 3), translation)),)
    return CalibrationFile(cameras, frames, "cdff")


def _section(text: str, title: str) -> dict[str, float]:
    _, found, after = text.partition(title)
    lines = re.match(r"[^\n]*\n((?:[ \t]+\w+:[^\n]*\n?)*)", after) if found else None
    pairs = re.findall(r"(\w+):\s*([-+.\d][-+.\deE]*)", lines[1] if lines else "")
    return {name: float(value) for name, value in pairs}


def _bracket(text: str, title: str, count: int) -> Floats | None:
    match = re.search(rf"(?m)^{re.escape(title)}\s*\[([^\]]*)\]", text)
    values = scalars(match[1]) if match else np.zeros(0)
    return values if len(values) == count else None


def read_rectified(text: str) -> CalibrationFile:
    """Read the Devon Island calibration: blocks of baseline, focal length, centre and resolution."""
    cameras: dict[str, CameraModel] = {}
    for block in text.split("Camera calibration")[1:]:
        values = {
            k.strip(): scalars(v)
            for k, v in re.findall(r"(?m)^([^\n:,]+?)(?: \([^)]*\))?:\s*([^\n]*)", block)
        }
        height, width = values["Resolution"]
        cy, cx = values["ImageCenter"]
        f, baseline = float(values["Focal Length"][0]), float(values["Baseline"][0])
        tail = f"_{int(width)}x{int(height)}" if "left" in cameras else ""
        for side, shift in (("left", 0.0), ("right", -f * baseline)):
            K = pinhole(f, f, cx, cy)
            P = np.column_stack([K, [shift, 0.0, 0.0]])
            cameras[side + tail] = camera(side + tail, (width, height), K, P=P)
    if not cameras:
        raise KeyError("Focal Length")
    baseline = cameras["right"].baseline
    T = rigid(np.eye(3), np.array([-baseline, 0.0, 0.0]))
    return CalibrationFile(cameras, (("right", "left", T),), "cdff")


def read_callab(text: str) -> CalibrationFile:
    """Read DLR CalLab's file: ``Pw = R Pc + T`` in millimetres, `A` with skew, OpenCV's lens.

    R defaults to the identity and T to zero, as documented in the file; without both there is no frame.
    """
    values = dict(re.findall(r"(?m)^camera\.((?:\d+\.)?\w+)\s*=\s*(.+)$", text))
    cameras: dict[str, CameraModel] = {}
    frames: list[StaticTransform] = []
    for key in sorted(k for k in values if k.endswith("A")):
        start = key.removesuffix("A")
        name = f"camera{start.rstrip('.')}"
        lens = [float(values.get(start + k, 0)) for k in ("k1", "k2", "p1", "p2", "k3")]
        size = [float(values.get(start + k, 0)) for k in ("width", "height")]
        cameras[name] = camera(name, size, scalars(values[key]).reshape(3, 3), "radtan", lens)
        if start + "R" in values or start + "T" in values:
            rotation = scalars(values.get(start + "R", "1 0 0 0 1 0 0 0 1"))
            translation = scalars(values.get(start + "T", "0 0 0"))
            frames.append(("world", name, rigid(rotation.reshape(3, 3), to_si(translation, "mm"))))
    if not cameras:
        raise KeyError("camera.A")
    return CalibrationFile(cameras, tuple(frames), "callab")


def read_meta(text: str) -> CalibrationFile:
    """Read the .meta files of CDFF's Minnie images, in which zeros and separators are missing.

    `.cameraMatrix` holds fx 0 cx fy cy 0 1 without two of its zeros. The numbers of a pose are split after
    six significant digits, and accepted only if they give a unit quaternion.
    """
    fx, _, cx, fy, cy = scalars(text.partition(".cameraMatrix:")[2])[:5]
    names = re.findall(r"\.childFrameId:[ ]*(\w+)\s+\.parentFrameId:[ ]*(\w+)", text)
    quaternions = [_split_numbers(v, 4) for v in re.findall(r"\.orientation: (\S+)", text)]
    translations = [_split_numbers(v, 3) for v in re.findall(r"\.translation: (\S+)", text)]
    frames: list[StaticTransform] = []
    for (child, parent), q, t in zip(names, quaternions, translations, strict=False):
        if len(q) == 4 and len(t) == 3 and abs(np.linalg.norm(q) - 1) < 1e-4:
            frames.append((parent, child, se3.from_quaternion(rotations.normalise(q), t)))
    name = names[-1][0] if names else "camera"
    K = pinhole(float(fx), float(fy), float(cx), float(cy))
    return CalibrationFile({name: camera(name, (0, 0), K)}, tuple(frames), "cdff")


def _split_numbers(text: str, count: int) -> Floats:
    found: list[float] = []
    while match := _SIX_DIGITS.match(text):
        digits = _six_significant(match[0])
        found.append(float(digits))
        text = text[len(digits) :]
    return np.array(found if len(found) == count and not text else [])


def _six_significant(number: str) -> str:
    """Return the prefix with six significant digits; the following digits belong to the next number."""
    significant = 0
    for at, digit in enumerate(number):
        significant += digit.isdigit() and (digit != "0" or significant > 0)
        if significant == 6:
            return number[: at + 1]
    return number
