"""Point clouds from disparity images, with the uncertainty of each point.

A disparity d with standard deviation s gives a point at range r the standard deviation ``s * r / d`` along
its ray; across the ray it is that of the pixel, ``z / fx`` times its standard deviation. Both are fields of
the cloud, `sigma_along` and `sigma_across`, in metres: two numbers instead of the nine of a covariance, which
`cloud_covariances` computes from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Singles
from transect.errors import TransectError
from transect.types import CameraModel, Image, PointCloud

IDENTITY_VIEWPOINT = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


@dataclass(frozen=True)
class CloudLimits:
    """Noise of disparities, and limits of the points that are kept."""

    disparity_sigma: float = 0.25  # px
    max_error: float = 0.1  # largest `sigma_along` relative to the range
    max_range: float = 0.0  # m; 0: unlimited


def cloud_from_disparity(disparity: Image, limits: CloudLimits, colours: Image | None = None) -> PointCloud:
    """Return the points of a disparity image in its camera's frame (x right, y down, z forward).

    Parameters
    ----------
    disparity : Image
        Pixels (h, w) of float32, NaN where not matched; the `P` of its camera contains the baseline.
    limits : CloudLimits
    colours : Image, optional
        The left image, for the field `intensity`, or `rgb` for three channels.

    Returns
    -------
    PointCloud
        float32, in the order of rows; fields `sigma_along` and `sigma_across` (m), and the colours.
    """
    camera = _require_baseline(disparity)
    values = np.asarray(disparity.data, np.float32)
    pixels = np.flatnonzero(values.ravel() >= _min_disparity(camera, limits))
    rays, lengths = _rays(values.shape, _intrinsics(camera))
    # `take` is ten times as fast as indexing.
    depth = np.float32(camera.K[0, 0] * camera.baseline) / values.ravel().take(pixels)
    ranges = depth * lengths.take(pixels)
    if limits.max_range:
        near = ranges <= limits.max_range
        pixels, depth, ranges = pixels[near], depth[near], ranges[near]
    points = np.empty((len(pixels), 3), np.float32)
    for axis in range(2):
        np.multiply(rays[axis].take(pixels), depth, out=points[:, axis])
    points[:, 2] = depth
    fields: dict[str, NDArray[Any]] = {
        "sigma_along": np.float32(limits.disparity_sigma) * ranges / values.ravel().take(pixels),
        # The standard deviation of a uniform distribution over a pixel is 0.29 px.
        "sigma_across": depth * np.float32(0.29 / camera.K[0, 0]),
    }
    if colours is not None:
        fields |= _colours(colours, values.shape, pixels)
    return PointCloud(points, fields, disparity.t_ns, disparity.frame, IDENTITY_VIEWPOINT.copy())


def cloud_covariances(cloud: PointCloud) -> Floats:
    """Return the covariances (n, 3, 3) in m^2 of the points of a stereo cloud, in its camera's frame."""
    points = np.asarray(cloud.points, np.float64)
    rays = points / np.linalg.norm(points, axis=1, keepdims=True)
    along, across = (
        np.asarray(cloud.fields[name], np.float64) ** 2 for name in ("sigma_along", "sigma_across")
    )
    outer = np.einsum("ni,nj->nij", rays, rays)
    return across[:, None, None] * np.eye(3) + (along - across)[:, None, None] * outer


def _min_disparity(camera: CameraModel, limits: CloudLimits) -> float:
    farthest = camera.K[0, 0] * camera.baseline / limits.max_range if limits.max_range else 0.0
    # The range is at least the depth, so this limit of the depth is safe.
    return max(limits.disparity_sigma / limits.max_error, farthest, float(np.finfo(np.float32).tiny))


def _require_baseline(disparity: Image) -> CameraModel:
    if disparity.camera is None or not disparity.camera.baseline > 0:
        raise TransectError(
            "the baseline of the disparity image is not known",
            where=f"frame {disparity.frame}" if disparity.frame else "",
            why="its camera is missing, or the camera's P has no -fx * baseline at row 0, column 3",
            hint="DisparityImage makes such images from a StereoPair with calibrated cameras",
        )
    if disparity.data.ndim != 2 or not np.issubdtype(disparity.data.dtype, np.floating):
        raise TransectError(
            "this is no disparity image", why=f"got {disparity.data.dtype} of shape {disparity.data.shape}"
        )
    return disparity.camera


def _intrinsics(camera: CameraModel) -> tuple[float, float, float, float]:
    K = camera.K
    return float(K[0, 0]), float(K[1, 1]), float(K[0, 2]), float(K[1, 2])


@lru_cache(maxsize=4)
def _rays(shape: tuple[int, int], numbers: tuple[float, float, float, float]) -> tuple[Singles, Singles]:
    """Return x and y (2, n) of the ray of each pixel at depth 1, and its length (n,)."""
    fx, fy, cx, cy = numbers
    rows, columns = np.indices(shape)
    rays = np.stack([(columns.ravel() - cx) / fx, (rows.ravel() - cy) / fy])
    lengths = np.sqrt(1 + np.sum(rays**2, axis=0))
    return rays.astype(np.float32), lengths.astype(np.float32)


def _colours(image: Image, shape: tuple[int, ...], pixels: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    if image.data.shape[:2] != shape:
        raise TransectError(
            f"the intensity image has {image.data.shape[:2]} pixels, the disparity image {shape}",
            hint="take the rectified left image",
        )
    if image.data.ndim == 2 and not image.mode.startswith("bayer"):
        return {"intensity": image.data.reshape(-1).take(pixels)}
    from .image_conversion import convert_colours

    return {"rgb": convert_colours(image, "rgb").data.reshape(-1, 3).take(pixels, axis=0)}
