"""Images and clouds of Rock and CDFF samples, from their bytes; the cameras that samples describe."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import ParseError
from transect.recording.arrow import PAYLOAD
from transect.types import CameraModel, Image, PointCloud, Transform

from .._images import MAX_PIXELS, decode_image
from .flat import Flat

Fetch = Callable[[str, int, int], NDArray[np.uint8]]
"""Returns the bytes of an image: file, place and size in it."""
FetchRows = Callable[[str, int, int, int], NDArray[np.float64]]
"""Returns rows of k numbers as (n, k): file, place and size in it, k."""
_DEPTHS = {
    "8U": np.uint8,
    "8S": np.int8,
    "16U": np.uint16,
    "16S": np.int16,
    "32S": np.int32,
    "32F": np.float32,
    "64F": np.float64,
}
_MODES = {"grayscale": "gray", "undefined": "", "undef": ""}
_COMPRESSED = ("jpeg", "png", "pjpg")


def mode_of(word: str, channels: int) -> str:
    """Return the mode of an image from what a log calls it: `mode_GRAY`, `MODE_BAYER_RGGB`."""
    mode = re.sub(r"^mode[_-]", "", word.lower()).replace("-", "_")
    return _MODES.get(mode, mode) or {1: "gray", 3: "rgb", 4: "rgba"}.get(channels, "")


def frame_loader(
    fetch: Fetch, frame: str, camera: CameraModel | None
) -> Callable[[Mapping[str, Any]], Image]:
    """Return a Stream loader for the columns that `kinds` finds in a Frame."""

    def load(row: Mapping[str, Any]) -> Image:
        _expect(row, "image_byte", "width", "height")
        where = f"{row[PAYLOAD]}@{row['image_byte']}"
        data = fetch(row[PAYLOAD], row["image_byte"], row["image_size"])
        attributes: dict[str, Any] = {"t_ns": row["t_ns"], "frame": frame, "camera": camera}
        if any(word in row.get("mode", "").lower() for word in _COMPRESSED):
            return decode_image(data.tobytes(), where, **attributes)
        pixels = _pixels(data, row, where)
        channels = pixels.shape[2] if pixels.ndim == 3 else 1
        status = row.get("status", "").upper()
        valid = np.zeros(pixels.shape[:2], dtype=bool) if status.endswith("INVALID") else None
        return Image(pixels, mode_of(row.get("mode", ""), channels), valid=valid, **attributes)

    return load


def _expect(row: Mapping[str, Any], *names: str) -> None:
    """Raise ParseError unless a sample has some fields; a damaged stream may have lost them."""
    missing = [name for name in names if name not in row]
    if missing:
        where = f"{row.get(PAYLOAD, '')}@{row['t_ns']} ns"
        raise ParseError(
            "a sample is not what its type promises", where=where, why=f"no {', '.join(missing)}"
        )


def _pixels(data: NDArray[np.uint8], row: Mapping[str, Any], where: str) -> NDArray[Any]:
    """Lay the bytes out as (h, w) or (h, w, channels); rows may have unused bytes at their end."""
    kind, channels = _layout(row, where)
    height, width = int(row["height"]), int(row["width"])
    used = width * channels * kind.itemsize
    step = int(row.get("row_size") or 0) or used
    if min(height, width, channels) < 1 or height * width > MAX_PIXELS or step < used:
        raise ParseError(
            "an image has an impossible size", where=where, why=f"{width} x {height}, {step} bytes per row"
        )
    if len(data) < height * step:
        raise ParseError(
            "an image is shorter than it says", where=where, why=f"{len(data)} bytes for {height} x {step}"
        )
    rows = data[: height * step].reshape(height, step)[:, :used]
    pixels = np.ascontiguousarray(rows).view(kind).reshape(height, width, channels)
    return pixels[:, :, 0] if channels == 1 else pixels


def _layout(row: Mapping[str, Any], where: str) -> tuple[np.dtype[Any], int]:
    """Return the type of a number and how many make a pixel: CDFF names both, Rock counts bits and bytes."""
    if "depth" in row:
        name = re.sub(r"^depth[_-]", "", row["depth"])
        if name not in _DEPTHS:
            raise ParseError(f"an image has the unknown depth {row['depth']!r}", where=where)
        return np.dtype(_DEPTHS[name]), int(row.get("channels") or 1)
    bits, size = int(row.get("data_depth") or 8), int(row.get("pixel_size") or 1)
    kind = np.dtype(np.uint16 if bits > 8 else np.uint8)
    return kind, max(size // kind.itemsize, 1)


def cloud_loader(fetch: FetchRows, frame: str) -> Callable[[Mapping[str, Any]], PointCloud]:
    """Return a Stream loader for the columns that `kinds` finds in a Pointcloud."""

    def load(row: Mapping[str, Any]) -> PointCloud:
        _expect(row, "points_byte")

        def rows(name: str, width: int) -> NDArray[np.float64]:
            if f"{name}_byte" not in row:
                return np.zeros((0, width))
            return fetch(row[PAYLOAD], row[f"{name}_byte"], row[f"{name}_size"], width)

        points = rows("points", 3)
        fields = {"rgba": rows("colors", 4), "intensity": rows("intensity", 1).reshape(-1)}
        kept = {name: values for name, values in fields.items() if len(values) == len(points) > 0}
        return PointCloud(points, kept, t_ns=row["t_ns"], frame=frame)

    return load


def load_transform(row: Mapping[str, Any]) -> Transform:
    """Build T_target_source from a row of the columns that `kinds` finds."""
    from transect.geometry import se3

    _expect(row, *"xyz", "qw")
    covariance, estimated = row.get("covariance"), row.get("estimated")
    return Transform(
        target=row.get("target_frame", ""),
        source=row.get("source_frame", ""),
        matrix=se3.from_quaternion([row[f"q{n}"] for n in "xyzw"], [row[n] for n in "xyz"]),
        covariance=None if covariance is None else np.reshape(covariance, (6, 6)),
        target_t_ns=row.get("target_t_ns"),
        source_t_ns=row["t_ns"],
        estimated=None if estimated is None else np.asarray(estimated),
        producer=row.get("producer", ""),
    )


_RADTAN = (4, 5, 8)
_EQUIDISTANT = 4


def camera_of(name: str, intrinsic: Mapping[str, Any], width: int = 0, height: int = 0) -> CameraModel | None:
    """Return a camera from a CDFF `intrinsic`, or None where its focal length is a placeholder (0 or 1)."""
    K = np.asarray(intrinsic["cameraMatrix"], dtype=np.float64).reshape(3, 3)
    if not min(K[0, 0], K[1, 1]) > 1.0:
        return None
    given = np.asarray(intrinsic.get("distCoeffs", ()), dtype=np.float64).reshape(-1)
    fisheye = "FISHEYE" in str(intrinsic.get("cameraModel", "")).upper()
    model, coefficients = _distortion(given, fisheye)
    return CameraModel(name, width, height, K, model, coefficients, frame=name)


def _distortion(given: NDArray[np.float64], fisheye: bool) -> tuple[str, NDArray[np.float64]]:
    """Return model and coefficients in OpenCV's order; CDFF pads them with zeros to twelve."""
    used = int(np.max(np.flatnonzero(given), initial=-1)) + 1
    sizes = (_EQUIDISTANT,) if fisheye else _RADTAN
    size = next((size for size in sizes if size >= used), 0)
    if not used or not size:
        return "none", np.zeros(0)
    coefficients = np.zeros(size)
    coefficients[:used] = given[:used]
    return "equidistant" if fisheye else "radtan", coefficients


def camera_in(probe: Flat, name: str) -> CameraModel | None:
    """Return the camera that the first of some Frame samples describes, or None."""
    flat = Flat(probe.table)
    matrix, coefficients = flat.vector(9, "intrinsic.cameramatrix"), flat.lists("intrinsic.distcoeffs")
    sizes = [flat.numbers("data.cols"), flat.numbers("data.rows")]
    if matrix is None or not len(matrix):
        return None
    values, offsets = coefficients if coefficients is not None else (np.zeros(0), np.zeros(2, np.int64))
    intrinsic = {
        "cameraMatrix": matrix[0],
        "distCoeffs": values[offsets[0] : offsets[1]],
        "cameraModel": next(iter(flat.texts("intrinsic.cameramodel") or []), ""),
    }
    width, height = (int(size[0]) if size is not None else 0 for size in sizes)
    return camera_of(name, intrinsic, width, height)
