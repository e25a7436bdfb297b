"""An image's colours on a cloud, and what it takes: its camera at its size, and which points it sees.

A wrong colour would stay with its point for good, so a coarse depth buffer decides which points are hidden.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Mask
from transect.errors import UnsupportedError
from transect.geometry import camera as lenses
from transect.geometry import se3
from transect.geometry.array_checks import floats
from transect.geometry.camera import project_points
from transect.types import CameraModel, Image, PointCloud

CELL, SLACK = 3.0, 0.1
"""Cells of the depth buffer in pixels, and how much farther than the nearest in its cell a point may be."""
SAME_SHAPE = 0.01
"""Relative difference of the sides' ratio up to which an image counts as resized, not cut."""
SPREAD = (1.0, 99.0)
"""Percentiles of more than 8 bits that become black and white."""
LARGEST = 1e150
"""Absolute value from which on a number is not one of a picture; differences and their squares are finite."""


def fit_camera(camera: CameraModel, width: int, height: int) -> tuple[CameraModel, tuple[str, ...]]:
    """Return the camera for an image of that size, and what is doubtful about it.

    An image of the same shape was resized. Of another shape and not much smaller it was cut out, and the file
    does not say where: the middle is taken (the Argo's infra-red images, see errata). Else both axes are
    scaled, each by itself.
    """
    sizes = f"the image has {width} x {height} pixels, the calibration {camera.width} x {camera.height}"
    if (width, height) == (camera.width, camera.height) or not (camera.width and camera.height):
        return dataclasses.replace(camera, width=width, height=height), _invent(camera)
    x, y = width / camera.width, height / camera.height
    if abs(x / y - 1) > SAME_SHAPE and min(x, y) >= 0.5 and max(x, y) <= 1:
        left, top = (camera.width - width) / 2, (camera.height - height) / 2
        intrinsics = lenses.crop_intrinsics(camera.K, left, top)
        note = f"{camera.name}: crop unknown: {sizes}; taken as its middle, so all points may be shifted"
    else:
        intrinsics = lenses.scale_intrinsics(camera.K, x, y)
        note = f"{camera.name}: {sizes}, which was scaled"
    return dataclasses.replace(camera, width=width, height=height, K=intrinsics), (note, *_invent(camera))


def _invent(camera: CameraModel) -> tuple[str, ...]:
    return (f"{camera.name}: its intrinsics are invented, not calibrated",) if camera.invented else ()


def rgb_of(image: Image) -> NDArray[np.uint8]:
    """Return an image as (h, w, 3) uint8, as `displayed` shows it."""
    shown = displayed(image.data, image.mode)
    return np.repeat(shown[..., None], 3, axis=2) if shown.ndim == 2 else shown


def displayed(data: NDArray[Any], mode: str) -> NDArray[np.uint8]:
    """Return pixels of any type and number of bands as gray (h, w) or RGB (h, w, 3) uint8.

    More bits, or floats, are stretched between their percentiles. Of one or two bands the first is shown, of
    more the first three, as red, green and blue.

    Raises
    ------
    UnsupportedError
        If it is no picture: empty, or of another number of axes.
    """
    if data.ndim not in (2, 3) or not data.size:
        size = " x ".join(map(str, data.shape))
        raise UnsupportedError("a picture cannot be shown", why=f"its array is {size or 'a single number'}")
    if data.dtype != np.uint8:
        data = stretch(data)
    if mode.startswith("bayer_") and data.ndim == 2:
        import cv2

        # OpenCV names a pattern by its second row: its BG is what everybody else calls RGGB.
        codes = {"rggb": "BG", "bggr": "RG", "gbrg": "GR", "grbg": "GB"}
        code = getattr(cv2, f"COLOR_Bayer{codes[mode.removeprefix('bayer_')]}2RGB")
        return np.asarray(cv2.cvtColor(np.ascontiguousarray(data), code), dtype=np.uint8)
    if data.ndim == 2 or data.shape[2] < 3:
        return data.reshape(*data.shape[:2], -1)[..., 0]
    return data[..., 2::-1] if mode == "bgr" else data[..., :3]


def stretch(data: NDArray[Any]) -> NDArray[np.uint8]:
    """Return numbers as uint8, from black to white between their percentiles; what is not finite is black."""
    values = np.abs(data) if np.iscomplexobj(data) else data
    values = np.clip(np.asarray(values, np.float64), -LARGEST, LARGEST)  # infinities too, and NaN stays
    known = np.abs(values) < LARGEST
    low, high = np.percentile(values[known], SPREAD) if known.any() else (0.0, 1.0)
    scaled = (np.where(known, values, low) - low) / max(float(high - low), 1e-12)
    return (255 * np.clip(scaled, 0, 1)).astype(np.uint8)


def colours(
    cloud: PointCloud, image: Image, camera: CameraModel, T_camera_cloud: ArrayLike, cell: float = CELL
) -> PointCloud:
    """Return the points that a camera sees, with its colours.

    Parameters
    ----------
    cloud : PointCloud
    image : Image
    camera : CameraModel
        For pixels of this image (`fit_camera`).
    T_camera_cloud : (4, 4) array
    cell : float
        Side of a cell of the depth buffer, pixels.

    Returns
    -------
    PointCloud
        Only the points that are in the image and not hidden, in the cloud's own frame and with its fields;
        `rgb` (n, 3) uint8 is that of the nearest pixel.
    """
    seen = se3.apply(floats("T_camera_cloud", T_camera_cloud, (4, 4)), np.asarray(cloud.points, np.float64))
    pixels, inside = project_points(seen, np.eye(4), camera)
    kept = np.flatnonzero(inside)
    kept = kept[visible(pixels[kept], seen[kept, 2], (image.width, image.height), cell)]
    column, row = np.rint(pixels[kept]).astype(np.int64).T
    rgb = rgb_of(image)[row, column]
    fields = {name: values[kept] for name, values in cloud.fields.items()} | {"rgb": rgb}
    return dataclasses.replace(cloud, points=cloud.points[kept], fields=fields)


def visible(
    pixels: Floats, depth: Floats, size: tuple[int, int], cell: float = CELL, slack: float = SLACK
) -> Mask:
    """Tell (n,) which points are not hidden behind others: a depth buffer on a coarse grid.

    A cloud is full of holes, so that a point is compared with the nearest one in its whole cell: it is hidden
    if it is more than `slack` (relative) farther. Small cells let things shine through gaps between points,
    large ones hide ground that is seen at a low angle.

    Parameters
    ----------
    pixels : (n, 2)
        Inside the image.
    depth : (n,)
        Metres along the optical axis.
    size : (width, height)
        Pixels.
    """
    columns = int(np.ceil(size[0] / cell)) + 1
    index = np.floor((pixels + 0.5) / cell).astype(np.int64)
    where = index[:, 1] * columns + index[:, 0]
    nearest = np.full(int(where.max(initial=-1)) + 1, np.inf)
    np.minimum.at(nearest, where, depth)
    return depth <= nearest[where] * (1.0 + slack)
