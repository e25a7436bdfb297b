"""Colours of a point cloud from a camera image, and the conversion of images for display.

A coarse depth buffer removes points that are occluded in the image, which would get the colour of what
occludes them.
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

MAX_ASPECT_DIFFERENCE = 0.01
"""Relative difference of the aspect ratios up to which an image is taken as resized, not cropped."""
DISPLAY_PERCENTILES = (1.0, 99.0)
"""Percentiles that are shown as black and white, for images that are not uint8."""
MAX_PIXEL_VALUE = 1e150
"""Larger absolute values are not displayed; squares of smaller ones are finite."""


def fit_camera(camera: CameraModel, width: int, height: int) -> tuple[CameraModel, tuple[str, ...]]:
    """Return the camera model for an image of another size, and warnings about it.

    An image of the same aspect ratio was resized. An image of another aspect ratio, with at least half the
    width and height, was cropped at an unknown position: a central crop is assumed (the Argo's infra-red
    images, see errata). Otherwise each axis is scaled separately.
    """
    sizes = f"the image has {width} x {height} pixels, the calibration {camera.width} x {camera.height}"
    if (width, height) == (camera.width, camera.height) or not (camera.width and camera.height):
        return dataclasses.replace(camera, width=width, height=height), _invent(camera)
    x, y = width / camera.width, height / camera.height
    if abs(x / y - 1) > MAX_ASPECT_DIFFERENCE and min(x, y) >= 0.5 and max(x, y) <= 1:
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
    """Return an image as (h, w, 3) uint8, converted by `displayed`."""
    shown = displayed(image.data, image.mode)
    return np.repeat(shown[..., None], 3, axis=2) if shown.ndim == 2 else shown


def displayed(data: NDArray[Any], mode: str) -> NDArray[np.uint8]:
    """Convert pixels of any type and number of bands to gray (h, w) or RGB (h, w, 3) uint8.

    Values of other types are stretched between percentiles. With one or two bands the first is shown, with
    more the first three, as red, green and blue.

    Raises
    ------
    UnsupportedError
        If the array is empty, or has not two or three axes.
    """
    if data.ndim not in (2, 3) or not data.size:
        size = " x ".join(map(str, data.shape))
        raise UnsupportedError("a picture cannot be shown", why=f"its array is {size or 'a single number'}")
    if data.dtype != np.uint8:
        data = stretch(data)
    if mode.startswith("bayer_") and data.ndim == 2:
        import cv2

        # OpenCV names a pattern by its second row: its BG is RGGB elsewhere.
        codes = {"rggb": "BG", "bggr": "RG", "gbrg": "GR", "grbg": "GB"}
        code = getattr(cv2, f"COLOR_Bayer{codes[mode.removeprefix('bayer_')]}2RGB")
        return np.asarray(cv2.cvtColor(np.ascontiguousarray(data), code), dtype=np.uint8)
    if data.ndim == 2 or data.shape[2] < 3:
        return data.reshape(*data.shape[:2], -1)[..., 0]
    return data[..., 2::-1] if mode == "bgr" else data[..., :3]


def stretch(data: NDArray[Any]) -> NDArray[np.uint8]:
    """Map values to uint8, from black to white between percentiles; non-finite values are black."""
    values = np.abs(data) if np.iscomplexobj(data) else data
    values = np.clip(np.asarray(values, np.float64), -MAX_PIXEL_VALUE, MAX_PIXEL_VALUE)
    known = np.abs(values) < MAX_PIXEL_VALUE  # False for infinities and NaN
    low, high = np.percentile(values[known], DISPLAY_PERCENTILES) if known.any() else (0.0, 1.0)
    scaled = (np.where(known, values, low) - low) / max(float(high - low), 1e-12)
    return (255 * np.clip(scaled, 0, 1)).astype(np.uint8)


def colours(
    cloud: PointCloud, image: Image, camera: CameraModel, T_camera_cloud: ArrayLike, cell: float = 3.0
) -> PointCloud:
    """Return the points that a camera sees, with their colours in its image.

    Parameters
    ----------
    camera : CameraModel
        For pixels of this image (`fit_camera`).
    T_camera_cloud : (4, 4) array
    cell : float
        Side of a cell of the depth buffer, px.

    Returns
    -------
    PointCloud
        The points inside the image that are not occluded, in the cloud's own frame and with its fields; the
        field `rgb` (n, 3) uint8 is the nearest pixel.
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
    pixels: Floats, depth: Floats, size: tuple[int, int], cell: float = 3.0, tolerance: float = 0.1
) -> Mask:
    """Return a mask (n,) of the points that are not occluded, by a depth buffer with cells of `cell` pixels.

    A point is occluded if its depth exceeds the smallest depth in its cell by more than the relative
    `tolerance`. With small cells, occluded points show through gaps between the points in front of them; with
    large cells, ground at grazing incidence is removed.

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
    number = index[:, 1] * columns + index[:, 0]
    nearest = np.full(int(number.max(initial=-1)) + 1, np.inf)
    np.minimum.at(nearest, number, depth)
    return depth <= nearest[number] * (1.0 + tolerance)
