"""Undistortion and rectification of images, and the geometry of rectified pairs."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.types import CameraModel, Image

Numbers = tuple[float, ...]

RECTIFIED_SUFFIX = "_rect"
"""Suffix of the name of a frame that rectification has rotated."""
CALIBRATIONS = (
    "calib.txt or calib_cam_to_cam.txt (KITTI), calibration*.yaml (Rosario), cam0/sensor.yaml (EuRoC), "
    "camera_info (ROS), an OpenCV or Kalibr YAML beside the images"
)


class RemapTables(NamedTuple):
    """Source coordinates of each pixel of the new image for `cv2.remap`, and which are inside the old one."""

    first: NDArray[Any]
    second: NDArray[Any]
    seen: NDArray[np.bool_]  # (h, w)


class _RemapKey(NamedTuple):
    """Key of the cached tables."""

    size: tuple[int, int]
    K: Numbers
    fisheye: bool
    coefficients: Numbers
    R: Numbers
    K_after: Numbers


def require_camera(image: Image) -> CameraModel:
    """Return the camera of an image, or raise with the names of calibration files."""
    if image.camera is None:
        raise TransectError(
            "the image comes without calibration",
            where=f"frame {image.frame}" if image.frame else "",
            why="its recording has no camera of that name",
            hint=f"add {CALIBRATIONS}",
        )
    known = image.camera.width, image.camera.height
    if all(known) and known != (image.width, image.height):
        raise TransectError(
            f"the calibration of {image.camera.name} is for images of {known[0]} x {known[1]} pixels",
            why=f"this one has {image.width} x {image.height}",
            hint="calibrate at this size, or scale the images back",
        )
    return image.camera


def undistort(image: Image) -> Image:
    """Return an image without lens distortion; focal length and frame stay."""
    camera = require_camera(image)
    if camera.distortion == "none":
        return image
    return _undistort(
        image, camera, np.eye(3), camera.K, dataclasses.replace(camera, **_pinhole_fields(camera.K))
    )


def rectify(image: Image) -> Image:
    """Return an image rectified by its camera's `R` and `P`; itself if it is rectified already.

    The camera of the result has ``K = P[:, :3]`` and no distortion. If `R` rotates it, the frame of the
    result is `rectified_frame`.
    """
    camera = require_camera(image)
    if camera.P is None:
        raise TransectError(
            f"it is not known how to rectify {camera.name or 'the image'}",
            why="its calibration has no projection P after rectification",
            hint="take ImageUndistortion, or StereoRectification, which makes P from the frames of a pair",
        )
    after = camera.P[:, :3]
    if is_rectified(camera):
        return image
    changed = dataclasses.replace(camera, **_pinhole_fields(after), P=camera.P, frame=rectified_frame(camera))
    return _undistort(image, camera, camera.R, after, changed)


def is_rectified(camera: CameraModel) -> bool:
    """Return whether images of this camera need no rectification."""
    same = camera.P is None or is_within(camera.K, camera.P[:, :3], 1e-6)
    return camera.distortion == "none" and same and not _is_rotated(camera)


def is_within(a: Floats, b: Floats, tolerance: Floats | float) -> bool:
    """Return whether two arrays agree within a tolerance; `np.allclose` takes ten times as long."""
    return bool((np.abs(a - b) <= tolerance).all())


def rectified_frame(camera: CameraModel) -> str:
    """Return the name of the frame of a camera after rectification."""
    return f"{camera.frame}{RECTIFIED_SUFFIX}" if camera.frame and _is_rotated(camera) else camera.frame


def _is_rotated(camera: CameraModel) -> bool:
    return not is_within(camera.R, np.eye(3), 1e-9)


def _pinhole_fields(K: Floats) -> dict[str, Any]:
    return {"K": K.copy(), "distortion": "none", "coefficients": np.zeros(0), "R": np.eye(3)}


def _undistort(image: Image, camera: CameraModel, R: Floats, after: Floats, changed: CameraModel) -> Image:
    lens = camera.coefficients if camera.distortion != "none" else np.zeros(0)
    fisheye = camera.distortion == "equidistant"
    size = image.width, image.height
    tables = _tables(
        _RemapKey(size, _as_tuple(camera.K), fisheye, _as_tuple(lens), _as_tuple(R), _as_tuple(after))
    )
    return dataclasses.replace(remap(image, tables), camera=changed, frame=changed.frame)


def remap(image: Image, tables: RemapTables) -> Image:
    """Return an image resampled by tables; its camera stays."""
    import cv2

    data = cv2.remap(np.ascontiguousarray(image.data), tables.first, tables.second, cv2.INTER_LINEAR)
    seen = tables.seen
    if image.valid is not None:
        measured = image.valid.astype(np.uint8)
        seen = seen & (cv2.remap(measured, tables.first, tables.second, cv2.INTER_NEAREST) > 0)
    return dataclasses.replace(image, data=data, valid=None if seen.all() else seen)


def _as_tuple(array: Floats) -> Numbers:
    return tuple(float(value) for value in np.ravel(array))


@lru_cache(maxsize=8)
def _tables(remap: _RemapKey) -> RemapTables:
    import cv2

    K, R, after = (np.array(values).reshape(3, 3) for values in (remap.K, remap.R, remap.K_after))
    lens = np.array(remap.coefficients)
    make: Any = cv2.fisheye.initUndistortRectifyMap if remap.fisheye else cv2.initUndistortRectifyMap
    if remap.fisheye and not lens.size:
        lens = np.zeros(4)
    return make_remap_tables(*make(K, lens, R, after, remap.size, cv2.CV_32FC1))


def make_remap_tables(x: NDArray[Any], y: NDArray[Any]) -> RemapTables:
    """Return the tables of source columns and rows (h, w)."""
    import cv2

    height, width = x.shape
    seen = (x >= -0.5) & (x <= width - 0.5) & (y >= -0.5) & (y <= height - 0.5)
    first, second = cv2.convertMaps(x.astype(np.float32), y.astype(np.float32), cv2.CV_16SC2)
    return RemapTables(first, second, np.asarray(seen))


def is_rectified_pair(left: CameraModel, right: CameraModel) -> bool:
    """Return whether the rows of two cameras correspond, and their baseline is known."""
    if not (is_rectified(left) and is_rectified(right) and _has_equal_rows(left.K, right.K)):
        return False
    return right.P is not None and pair_baseline(left, right) > 0


def pair_baseline(left: CameraModel, right: CameraModel) -> float:
    """Return the distance between two rectified cameras in metres; NaN if it is not known."""
    # Data sets with more than two cameras (KITTI) give P[0, 3] of all of them relative to the first one.
    return right.baseline - (0.0 if left.P is None else left.baseline)


def disparity_camera(left: Image, right: Image) -> CameraModel:
    """Return the camera of the disparity image of a rectified pair.

    It is the left camera with ``P[0, 3] = -fx * baseline``, all that is needed to compute points.

    Raises
    ------
    TransectError
        If the pair is not rectified or of unequal size, or if its baseline is not known.
    """
    first, second = require_camera(left), require_camera(right)
    if left.data.shape[:2] != right.data.shape[:2]:
        raise TransectError(
            f"the images of the pair differ in size: {left.data.shape[:2]} and {right.data.shape[:2]}"
        )
    if not is_rectified_pair(first, second):
        raise TransectError(
            f"the images of {first.name or 'left'} and {second.name or 'right'} are not rectified",
            why=_difference(first, second),
            hint="put StereoRectification before this",
        )
    return with_baseline(first, pair_baseline(first, second))


def with_baseline(camera: CameraModel, baseline: float) -> CameraModel:
    """Return a rectified camera whose `P` contains the baseline (m)."""
    shift = np.array([[-camera.K[0, 0] * baseline], [0.0], [0.0]])
    return dataclasses.replace(camera, P=np.hstack([camera.K, shift]))


def zero_disparity(left: CameraModel, right: CameraModel) -> float:
    """Return the disparity in pixels of a point at infinity: the distance of the principal points."""
    return float(left.K[0, 2] - right.K[0, 2])


def _has_equal_rows(left: Floats, right: Floats, max_offset_px: float = 1.5) -> bool:
    focal = is_within(left[:2, :2], right[:2, :2], 1e-6 * (1 + np.abs(right[:2, :2])))
    return focal and abs(left[1, 2] - right[1, 2]) < max_offset_px


def _difference(left: CameraModel, right: CameraModel) -> str:
    for camera in (left, right):
        if not is_rectified(camera):
            return f"{camera.name} has distortion ({camera.distortion}), or R and P that were not applied"
    if not _has_equal_rows(left.K, right.K):
        return "their focal lengths or principal rows differ"
    return f"the P of {right.name} has no -fx * baseline at row 0, column 3"
