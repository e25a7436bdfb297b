"""Cameras as CDFF samples and configuration files describe them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.types import CameraModel

from .flat import Flat

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
