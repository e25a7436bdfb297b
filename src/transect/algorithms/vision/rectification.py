"""Undistortion and rectification of images, and the geometry of rectified pairs."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.types import CameraModel, Image, StereoPair

Numbers = tuple[float, ...]

CACHED = 8
"""Cameras whose tables are kept: two pairs of a pair of images, raw and resized."""
TURNED = "_rect"
"""What the name of a frame gets that rectification has turned."""
CALIBRATIONS = (
    "calib.txt or calib_cam_to_cam.txt (KITTI), calibration*.yaml (Rosario), cam0/sensor.yaml (EuRoC), "
    "camera_info (ROS), an OpenCV or Kalibr YAML beside the images"
)


class Tables(NamedTuple):
    """Where each pixel of the new image comes from, as `cv2.remap` takes it, and whether it was seen."""

    first: NDArray[Any]
    second: NDArray[Any]
    seen: NDArray[np.bool_]


class _Warp(NamedTuple):
    """All that decides the tables, hashable."""

    size: tuple[int, int]
    K: Numbers
    fisheye: bool
    coefficients: Numbers
    R: Numbers
    K_after: Numbers


def require_camera(image: Image) -> CameraModel:
    """Return the camera of an image, or say which file should have told."""
    if image.camera is None:
        raise TransectError(
            "the image comes without calibration",
            where=f"frame {image.frame}" if image.frame else "",
            why="its recording knows no camera of that name",
            hint=f"wanted is {CALIBRATIONS}",
        )
    known = image.camera.width, image.camera.height
    if all(known) and known != (image.width, image.height):
        raise TransectError(
            f"the calibration of {image.camera.name} is for images of {known[0]} x {known[1]} pixels",
            why=f"this one has {image.width} x {image.height}",
            hint="calibrate at this size, or scale the images back",
        )
    return image.camera


def straight(image: Image) -> Image:
    """Return an image without what the lens bent; focal length and frame stay."""
    camera = require_camera(image)
    if camera.distortion == "none":
        return image
    return _warp(image, camera, np.eye(3), camera.K, dataclasses.replace(camera, **_no_lens(camera.K)))


def rectify(image: Image) -> Image:
    """Return an image as its camera's `R` and `P` say; itself, if it is so already.

    The camera of the result has ``K = P[:, :3]``, no lens and nothing to turn. Where `R` turned it, its frame
    is another one than the camera's and called so (`rectified_frame`).
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
    changed = dataclasses.replace(camera, **_no_lens(after), P=camera.P, frame=rectified_frame(camera))
    return _warp(image, camera, camera.R, after, changed)


def is_rectified(camera: CameraModel) -> bool:
    """Tell whether an image of this camera needs no rectification."""
    same = camera.P is None or differ_at_most(camera.K, camera.P[:, :3], 1e-6)
    return camera.distortion == "none" and same and not _turns(camera)


def differ_at_most(a: Floats, b: Floats, tolerance: Floats | float) -> bool:
    """Tell whether two arrays differ by no more than a tolerance; `np.allclose` takes ten times as long."""
    return bool((np.abs(a - b) <= tolerance).all())


def rectified_frame(camera: CameraModel) -> str:
    """Return the name of the frame of a camera after rectification: its own if nothing turns."""
    return f"{camera.frame}{TURNED}" if camera.frame and _turns(camera) else camera.frame


def _turns(camera: CameraModel) -> bool:
    return not differ_at_most(camera.R, np.eye(3), 1e-9)


def _no_lens(K: Floats) -> dict[str, Any]:
    return {"K": K.copy(), "distortion": "none", "coefficients": np.zeros(0), "R": np.eye(3)}


def _warp(image: Image, camera: CameraModel, R: Floats, after: Floats, changed: CameraModel) -> Image:
    lens = camera.coefficients if camera.distortion != "none" else np.zeros(0)
    fisheye = camera.distortion == "equidistant"
    size = image.width, image.height
    tables = _tables(_Warp(size, _flat(camera.K), fisheye, _flat(lens), _flat(R), _flat(after)))
    return dataclasses.replace(warp(image, tables), camera=changed, frame=changed.frame)


def warp(image: Image, tables: Tables) -> Image:
    """Return an image whose pixels come from where the tables say; its camera stays."""
    import cv2

    data = cv2.remap(np.ascontiguousarray(image.data), tables.first, tables.second, cv2.INTER_LINEAR)
    seen = tables.seen
    if image.valid is not None:
        measured = image.valid.astype(np.uint8)
        seen = seen & (cv2.remap(measured, tables.first, tables.second, cv2.INTER_NEAREST) > 0)
    return dataclasses.replace(image, data=data, valid=None if seen.all() else seen)


def _flat(array: Floats) -> Numbers:
    return tuple(float(value) for value in np.ravel(array))


@lru_cache(maxsize=CACHED)
def _tables(warp: _Warp) -> Tables:
    import cv2

    K, R, after = (np.array(values).reshape(3, 3) for values in (warp.K, warp.R, warp.K_after))
    lens = np.array(warp.coefficients)
    make: Any = cv2.fisheye.initUndistortRectifyMap if warp.fisheye else cv2.initUndistortRectifyMap
    if warp.fisheye and not lens.size:
        lens = np.zeros(4)
    return tables_from(*make(K, lens, R, after, warp.size, cv2.CV_32FC1))


def tables_from(x: NDArray[Any], y: NDArray[Any]) -> Tables:
    """Return the tables of columns and rows (h, w) from which the pixels of an image come."""
    import cv2

    height, width = x.shape
    seen = (x >= -0.5) & (x <= width - 0.5) & (y >= -0.5) & (y <= height - 0.5)
    first, second = cv2.convertMaps(x.astype(np.float32), y.astype(np.float32), cv2.CV_16SC2)
    return Tables(first, second, np.asarray(seen))


ROWS_AGREE = 1.5
"""Pixels by which the principal points of a rectified pair may differ vertically."""


def is_rectified_pair(left: CameraModel, right: CameraModel) -> bool:
    """Tell whether the rows of two cameras correspond, and their baseline is known."""
    if not (is_rectified(left) and is_rectified(right) and _agree(left.K, right.K)):
        return False
    return right.P is not None and pair_baseline(left, right) > 0


def pair_baseline(left: CameraModel, right: CameraModel) -> float:
    """Return the distance between two rectified cameras in metres; NaN if it is not known."""
    # Datasets with more than two cameras (KITTI) count P[0, 3] of all of them from the first one.
    return right.baseline - (0.0 if left.P is None else left.baseline)


def disparity_camera(left: Image, right: Image) -> CameraModel:
    """Return the camera of the disparity image of a rectified pair.

    It is the left one with ``P[0, 3] = -fx * baseline``, so that nothing else is needed to make points of
    disparities.

    Raises
    ------
    TransectError
        If the pair is not rectified, of unequal size, or its baseline is not known.
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
    """Return a rectified camera whose `P` tells the distance in metres to its partner."""
    shift = np.array([[-camera.K[0, 0] * baseline], [0.0], [0.0]])
    return dataclasses.replace(camera, P=np.hstack([camera.K, shift]))


def zero_disparity(left: CameraModel, right: CameraModel) -> float:
    """Return the disparity in pixels of a point at infinity: how far the principal points are apart."""
    return float(left.K[0, 2] - right.K[0, 2])


def replace_images(pair: StereoPair, left: Image, right: Image) -> StereoPair:
    """Return a pair with other images, at the same time."""
    return dataclasses.replace(pair, left=left, right=right)


def _agree(left: Floats, right: Floats) -> bool:
    focal = differ_at_most(left[:2, :2], right[:2, :2], 1e-6 * (1 + np.abs(right[:2, :2])))
    return focal and abs(left[1, 2] - right[1, 2]) < ROWS_AGREE


def _difference(left: CameraModel, right: CameraModel) -> str:
    for camera in (left, right):
        if not is_rectified(camera):
            return f"{camera.name} has a lens ({camera.distortion}), or R and P that were not applied"
    if not _agree(left.K, right.K):
        return "their focal lengths or principal rows differ"
    return f"the P of {right.name} has no -fx * baseline at row 0, column 3"
