"""Filters of images and of depth images, and conversion between colour spaces."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.vision.image_conversion import COLOUR_SPACES, PLAIN_MODES, convert_colours, gray_of
from transect.algorithms.vision.rectification import rectify, require_camera, undistort
from transect.base.arrays import Singles
from transect.engine import Node, param
from transect.errors import TransectError, UnsupportedError
from transect.geometry import robust
from transect.types import Image

from .rectification import add_rectified_frame


class ColorConversion(Node):
    """Converts an image to another colour space; the pixel type (uint8, uint16 or float32) is unchanged.

    Hue, saturation, value and CIE L*a*b* are scaled as in OpenCV: H 0-179 for uint8, 0-360 for float32.
    Images without colour (depth, disparity, masks) are an error.
    """

    out_name = "convertedImage"
    to: str = param("gray", choices=(*PLAIN_MODES, *COLOUR_SPACES), doc="colour space of the result")

    def process(self, originalImage: Image) -> Image:
        return convert_colours(originalImage, self.to)


class DepthFiltering(Node, interface=True):
    """Filters a depth or disparity image (h, w) of floats; NaN is not measured, and not averaged."""

    out_name = "outputFrame"

    def process(self, inputFrame: Image) -> Image:
        return dataclasses.replace(inputFrame, data=self.smooth(_depth(inputFrame)))

    def smooth(self, depth: Singles) -> Singles:
        """Return a depth (h, w) with less noise."""
        raise NotImplementedError


class ConvolutionFilter(DepthFiltering):
    """Gaussian mean of the measured neighbours (normalised convolution, Knutsson and Westin 1993).

    It also blurs depth discontinuities; `MedianFilter` does not.
    """

    window: int = param(
        5,
        ge=3,
        odd=True,
        unit="px",
        doc="edge length of the Gaussian kernel; its standard deviation is a quarter of it",
    )

    def smooth(self, depth: Singles) -> Singles:
        import cv2

        measured = np.isfinite(depth)
        size, sigma, border = (self.window, self.window), self.window / 4, cv2.BORDER_CONSTANT
        total = cv2.GaussianBlur(np.where(measured, depth, 0), size, sigma, borderType=border)
        weight = cv2.GaussianBlur(measured.astype(np.float32), size, sigma, borderType=border)
        return np.divide(total, weight, out=np.full_like(depth, np.nan), where=measured)


class MedianFilter(DepthFiltering):
    """Median of the measured neighbours; a pixel with too few of them is an outlier and removed."""

    window: int = param(3, ge=3, odd=True, unit="px", doc="edge length of the neighbourhood")
    min_measured: float = param(
        0.25, ge=0, le=1, doc="smallest ratio of the neighbourhood that must be measured"
    )

    def smooth(self, depth: Singles) -> Singles:
        padded = np.pad(depth, self.window // 2, constant_values=np.nan)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (self.window, self.window))
        filtered = np.full_like(depth, np.nan)
        for row, line in enumerate(
            windows
        ):  # row by row, because all windows take the memory of window^2 images
            values = line.reshape(line.shape[0], -1)
            enough = np.isfinite(depth[row]) & (np.isfinite(values).mean(axis=1) >= self.min_measured)
            filtered[row, enough] = robust.median(values[enough], axis=1)
        return filtered


def _depth(image: Image) -> Singles:
    if image.data.ndim != 2 or not np.issubdtype(image.data.dtype, np.floating):
        raise TransectError(
            f"an image of {image.data.dtype} and shape {image.data.shape} is not a depth image",
            why="expected (h, w) of floats, NaN where nothing was measured",
        )
    return np.ascontiguousarray(image.data, dtype=np.float32)


ROUNDING_SIGMA = float(1 / np.sqrt(12))
"""Grey levels: standard deviation of rounding to integers, the smallest noise of an image."""
SOBEL_SIGMA = float(np.sqrt(12))
"""Standard deviation of a 3 x 3 Sobel derivative of pixels with unit noise."""


class ImageFiltering(Node, interface=True):
    """Filters an image; time and frame are unchanged, and so is the camera except by undistortion."""

    out_name = "image"

    def process(self, image: Image) -> Image | None:
        return self.filter(image)

    def filter(self, image: Image) -> Image | None:
        """Return the filtered image; None, with a counted reason, if there is none yet."""
        raise NotImplementedError


class ImageUndistortion(ImageFiltering):
    """Removes lens distortion; focal length and orientation are unchanged."""

    calibrated = ("image",)

    def filter(self, image: Image) -> Image:
        return undistort(image)


class ImageUndistortionRectification(ImageFiltering):
    """Removes lens distortion, and rectifies by `R` and `P` of the calibration."""

    calibrated = ("image",)

    def filter(self, image: Image) -> Image:
        camera = require_camera(image)
        rectified = rectify(image)
        add_rectified_frame(camera, self.ctx.frames)
        return rectified


class BackgroundExtraction(ImageFiltering):
    """Background of a stationary camera: a running median of each pixel (McFarlane and Schofield 1995).

    It is initialised with the median of the first images, which have no output, and changes by a fixed step
    towards each new one: passing objects have no effect, objects that stop become background.
    """

    frames: int = param(20, ge=1, doc="number of images whose median is the first background")
    step: float = param(1.0, gt=0, unit="grey levels", doc="change of the background with each image")

    def reset(self) -> None:
        self.first: list[NDArray[Any]] = []
        self.background: NDArray[Any] | None = None

    def filter(self, image: Image) -> Image | None:
        if self.background is not None and self.background.shape == image.data.shape:
            change = image.data.astype(np.float32) - self.background
            self.background = self.background + np.clip(change, -self.step, self.step).astype(np.float32)
            return dataclasses.replace(image, data=_as(image.data.dtype, self.background))
        self.first = [*(each for each in self.first if each.shape == image.data.shape), image.data]
        if len(self.first) < self.frames:
            return self.ctx.skip("background not yet known")
        background = self.background = np.median(self.first, axis=0).astype(np.float32)
        self.first = []
        return dataclasses.replace(image, data=_as(image.data.dtype, background))


class BackgroundSubtractorMOG2(ImageFiltering):
    """Foreground mask of a stationary camera: 255 where a pixel is not background, 0 elsewhere.

    Each pixel is a mixture of normal distributions (Zivkovic 2004, OpenCV). OpenCV does not export the
    mixtures, so a run with this node cannot be frozen: it is forked from its start.
    """

    history: int = param(100, ge=1, doc="number of images that the mixture model remembers")
    deviations: float = param(
        4.0, gt=0, doc="smallest distance of a foreground pixel from the background, in standard deviations"
    )

    def reset(self) -> None:
        self.mixtures: Any = None

    def filter(self, image: Image) -> Image:
        import cv2

        if self.mixtures is None:
            self.mixtures = cv2.createBackgroundSubtractorMOG2(
                history=self.history, varThreshold=self.deviations**2, detectShadows=False
            )
        mask = self.mixtures.apply(np.ascontiguousarray(image.data))
        return dataclasses.replace(image, data=mask, mode="gray")

    def freeze(self) -> dict[str, Any]:
        if self.mixtures is None:
            return super().freeze()
        raise UnsupportedError(
            "BackgroundSubtractorMOG2 cannot be frozen",
            why="OpenCV does not export the estimated mixtures",
            hint="run without keyframes, or use BackgroundExtraction",
        )


class CannyEdgeDetection(ImageFiltering):
    """Edges one pixel wide (Canny 1986): 255 on an edge, 0 elsewhere.

    The default thresholds are multiples of the standard deviation of the gradient due to image noise: 8 to
    start an edge, 4 to continue it.
    """

    low: float = param(
        0.0, ge=0, unit="grey levels", doc="smallest gradient along an edge; 0: chosen from the image noise"
    )
    high: float = param(
        0.0,
        ge=0,
        unit="grey levels",
        doc="smallest gradient at which an edge starts; 0: chosen from the image noise",
    )

    def filter(self, image: Image) -> Image:
        import cv2

        gray = gray_of(image)
        noise = SOBEL_SIGMA * noise_sigma(gray)
        edges = cv2.Canny(gray, self.low or 4 * noise, self.high or 8 * noise, L2gradient=True)
        return dataclasses.replace(image, data=edges, mode="gray")


class DerivativeEdgeDetection(ImageFiltering):
    """Gradient magnitude in grey levels per pixel, float32 (Scharr's derivative)."""

    def filter(self, image: Image) -> Image:
        import cv2

        gray = gray_of(image)
        across, down = (cv2.Scharr(gray, cv2.CV_32F, dx, dy, scale=1 / 32) for dx, dy in ((1, 0), (0, 1)))
        return dataclasses.replace(image, data=cv2.magnitude(across, down), mode="gradient")


class NormalVectorExtraction(ImageFiltering):
    """Surface normals of a depth image, oriented towards the camera: (h, w, 3) float32 in its frame.

    The image has depth along the optical axis in metres, NaN where not measured, and a camera without
    distortion. A normal is NaN if one of the four neighbours is.
    """

    def filter(self, image: Image) -> Image:
        camera = require_camera(image)
        if image.data.ndim != 2 or not np.issubdtype(image.data.dtype, np.floating):
            raise TransectError(
                "normals need a depth image", why=f"got {image.data.dtype} of shape {image.data.shape}"
            )
        if camera.distortion != "none":
            raise TransectError(
                "normals need a camera without distortion", hint="undistort the depth image first"
            )
        depth = image.data.astype(np.float64)
        rows, columns = np.indices(depth.shape)
        x = (columns - camera.K[0, 2]) / camera.K[0, 0] * depth
        y = (rows - camera.K[1, 2]) / camera.K[1, 1] * depth
        points = np.stack([x, y, depth], axis=-1)
        normals = np.full(points.shape, np.nan, dtype=np.float32)
        down, across = points[2:, 1:-1] - points[:-2, 1:-1], points[1:-1, 2:] - points[1:-1, :-2]
        # In this order the normals point towards the camera.
        vectors = np.cross(down, across)
        normals[1:-1, 1:-1] = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        return dataclasses.replace(image, data=normals, mode="normal")


class KMeansClustering(ImageFiltering):
    """Clusters pixels by colour: each gets the mean of its cluster.

    Clusters are initialised by quantiles of brightness, not at random, so that results are reproducible.
    """

    clusters: int = param(4, ge=2, le=64, doc="number of colour clusters")
    iterations: int = param(10, ge=1, doc="largest number of iterations")

    def filter(self, image: Image) -> Image:
        import cv2

        data = np.ascontiguousarray(image.data)
        pixels = data.reshape(data.shape[0] * data.shape[1], -1).astype(np.float32)
        if len(pixels) < self.clusters:
            raise TransectError(f"{len(pixels)} pixels are too few for {self.clusters} clusters")
        order = np.argsort(pixels.sum(axis=1), kind="stable")
        labels = np.empty((len(pixels), 1), np.int32)
        labels[order, 0] = np.arange(len(pixels)) * self.clusters // len(pixels)
        criteria = (cv2.TERM_CRITERIA_MAX_ITER | cv2.TERM_CRITERIA_EPS, self.iterations, 0.1)
        _, labels, centres = cv2.kmeans(
            pixels, self.clusters, labels, criteria, 1, cv2.KMEANS_USE_INITIAL_LABELS
        )
        means = np.asarray(centres)[np.asarray(labels, np.int64).ravel()]
        return dataclasses.replace(image, data=_as(data.dtype, means).reshape(data.shape))


def _as(kind: np.dtype[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Return values as pixels of a type, rounded for integer types."""
    return (np.rint(values) if np.issubdtype(kind, np.integer) else values).astype(kind)


def noise_sigma(gray: NDArray[np.uint8], block: int = 16, quantile: float = 0.1) -> float:
    """Estimate the standard deviation of the noise of an image (h, w), in grey levels.

    It is the quantile over blocks of the response to an operator that is zero for gradients and straight
    edges (Immerkær 1996). Saturated blocks have no noise and are left out. Texture in all blocks increases
    the estimate.

    Parameters
    ----------
    block : int
        Edge of a block, px; 256 pixels determine the noise to 6 %.
    quantile : float
        Fraction of the blocks that is assumed to have no texture.
    """
    import cv2

    operator = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32)
    response = np.abs(cv2.filter2D(gray, cv2.CV_32F, operator))[1:-1, 1:-1]
    clipped = ((gray == 0) | (gray == 255)).astype(np.float32)[1:-1, 1:-1]
    usable = _block_means(clipped, block) < 0.05
    if not usable.any():
        return ROUNDING_SIGMA
    # For normal noise of standard deviation s the mean of |response| is 6 s sqrt(2 / pi).
    sigma = _block_means(response, block)[usable] * (np.sqrt(np.pi / 2) / 6)
    return max(float(np.quantile(sigma, quantile)), ROUNDING_SIGMA)


def _block_means(values: NDArray[np.float32], block: int) -> NDArray[np.float32]:
    """Return the means of complete blocks (rows, columns); empty if the image is smaller than one."""
    rows, columns = values.shape[0] // block, values.shape[1] // block
    cropped = values[: rows * block, : columns * block]
    return cropped.reshape(rows, block, columns, block).mean(axis=(1, 3))
