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
    """The same image in another colour space; pixels keep their depth (uint8, uint16 or float32).

    Hue, saturation, value and CIE L*a*b* are scaled as OpenCV does: H 0-179 for uint8, 0-360 for float32.
    What has no colour (depth, disparity, masks) is refused.
    """

    out_name = "convertedImage"
    to: str = param("gray", choices=(*PLAIN_MODES, *COLOUR_SPACES), doc="colour space of the result")

    def process(self, originalImage: Image) -> Image:
        return convert_colours(originalImage, self.to)


class DepthFiltering(Node, interface=True):
    """A depth or disparity image (h, w) of floats, filtered; NaN is not measured, and never averaged in."""

    out_name = "outputFrame"

    def process(self, inputFrame: Image) -> Image:
        return dataclasses.replace(inputFrame, data=self.smooth(_depth(inputFrame)))

    def smooth(self, depth: Singles) -> Singles:
        """Return a depth (h, w) with less noise."""
        raise NotImplementedError


class ConvolutionFilter(DepthFiltering):
    """Gaussian mean of the measured neighbours (normalised convolution, Knutsson and Westin 1993).

    It also blurs edges between near and far; `MedianFilter` does not.
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
        size, deviation = (self.window, self.window), self.window / 4
        total = cv2.GaussianBlur(
            np.where(measured, depth, 0), size, deviation, borderType=cv2.BORDER_CONSTANT
        )
        weight = cv2.GaussianBlur(
            measured.astype(np.float32), size, deviation, borderType=cv2.BORDER_CONSTANT
        )
        return np.divide(total, weight, out=np.full_like(depth, np.nan), where=measured)


class MedianFilter(DepthFiltering):
    """Median of the measured neighbours; a pixel with too few of them is an outlier and left out."""

    window: int = param(3, ge=3, odd=True, unit="px", doc="edge length of the neighbourhood")
    least: float = param(0.25, ge=0, le=1, doc="smallest share of the neighbourhood that must be measured")

    def smooth(self, depth: Singles) -> Singles:
        reach = self.window // 2
        around = np.pad(depth, reach, constant_values=np.nan)
        windows = np.lib.stride_tricks.sliding_window_view(around, (self.window, self.window))
        filtered = np.full_like(depth, np.nan)
        for row, line in enumerate(windows):  # a row at a time: all windows at once are window^2 images
            values = line.reshape(line.shape[0], -1)
            enough = np.isfinite(depth[row]) & (np.isfinite(values).mean(axis=1) >= self.least)
            filtered[row, enough] = robust.median(values[enough], axis=1)
        return filtered


def _depth(image: Image) -> Singles:
    if image.data.ndim != 2 or not np.issubdtype(image.data.dtype, np.floating):
        raise TransectError(
            f"an image of {image.data.dtype} and shape {image.data.shape} is no depth image",
            why="expected (h, w) of floats, NaN where nothing was measured",
        )
    return np.ascontiguousarray(image.data, dtype=np.float32)


BLOCK = 16
"""Edge of a block in pixels: 256 of them tell the noise to 6 %."""
FLATTEST = 0.1
"""Share of the blocks that are taken for flat."""
ROUNDING = float(1 / np.sqrt(12))
"""Grey levels: deviation of what rounding to whole levels does; no image has less noise."""
SOBEL_NOISE = float(np.sqrt(12))
"""Deviation of a 3 x 3 Sobel derivative where pixels have noise of deviation 1."""


class ImageFiltering(Node, interface=True):
    """An image, filtered; time and frame stay, and so does the camera unless the lens is taken out."""

    out_name = "image"

    def process(self, image: Image) -> Image | None:
        return self.filter(image)

    def filter(self, image: Image) -> Image | None:
        """Return the filtered image; None, and the reason is counted, where there is none yet."""
        raise NotImplementedError


class ImageUndistortion(ImageFiltering):
    """Without what the lens bent; focal length and direction stay."""

    calibrated = ("image",)

    def filter(self, image: Image) -> Image:
        return undistort(image)


class ImageUndistortionRectification(ImageFiltering):
    """Without what the lens bent, and turned and scaled as `R` and `P` of the calibration say."""

    calibrated = ("image",)

    def filter(self, image: Image) -> Image:
        camera = require_camera(image)
        turned = rectify(image)
        add_rectified_frame(camera, self.ctx.frames)
        return turned


class BackgroundExtraction(ImageFiltering):
    """What a camera that does not move sees when nothing passes: a running median of each pixel.

    It begins with the median of the first images, before which nothing is given, and then goes a step towards
    each new one (McFarlane and Schofield 1995): who passes does not count, who stays becomes background.
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
    """What moves before a camera that does not: 255 where a pixel is not background, 0 elsewhere.

    Each pixel is a mixture of normal distributions (Zivkovic 2004, OpenCV). OpenCV does not give the mixtures
    out, so a run with this node cannot be frozen: it is forked from its start.
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
            why="OpenCV does not give out what it has learnt",
            hint="run without keyframes, or take BackgroundExtraction",
        )


class CannyEdgeDetection(ImageFiltering):
    """Edges one pixel wide (Canny 1986): 255 on an edge, 0 elsewhere.

    Without thresholds they follow the image's own noise: an edge is begun where the gradient is 8 deviations
    of what noise makes, and followed down to 4.
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
        noise = SOBEL_NOISE * noise_sigma(gray)
        edges = cv2.Canny(gray, self.low or 4 * noise, self.high or 8 * noise, L2gradient=True)
        return dataclasses.replace(image, data=edges, mode="gray")


class DerivativeEdgeDetection(ImageFiltering):
    """How steeply brightness changes: grey levels per pixel, float32 (Scharr's derivative)."""

    def filter(self, image: Image) -> Image:
        import cv2

        gray = gray_of(image)
        across, down = (cv2.Scharr(gray, cv2.CV_32F, dx, dy, scale=1 / 32) for dx, dy in ((1, 0), (0, 1)))
        return dataclasses.replace(image, data=cv2.magnitude(across, down), mode="gradient")


class NormalVectorExtraction(ImageFiltering):
    """Unit vectors across the surface of a depth image, towards the camera: (h, w, 3) float32 in its frame.

    The image has depth along the optical axis in metres, NaN where not measured, and a camera without a lens.
    A normal is NaN where one of the four neighbours is.
    """

    def filter(self, image: Image) -> Image:
        camera = require_camera(image)
        if image.data.ndim != 2 or not np.issubdtype(image.data.dtype, np.floating):
            raise TransectError(
                "normals need a depth image", why=f"got {image.data.dtype} of shape {image.data.shape}"
            )
        if camera.distortion != "none":
            raise TransectError("normals need a camera without lens", hint="undistort the depth image first")
        depth = image.data.astype(np.float64)
        rows, columns = np.indices(depth.shape)
        x = (columns - camera.K[0, 2]) / camera.K[0, 0] * depth
        y = (rows - camera.K[1, 2]) / camera.K[1, 1] * depth
        points = np.stack([x, y, depth], axis=-1)
        normals = np.full(points.shape, np.nan, dtype=np.float32)
        down, across = points[2:, 1:-1] - points[:-2, 1:-1], points[1:-1, 2:] - points[1:-1, :-2]
        # Across the image, then up it, so that the normal of what the camera sees looks back at it.
        vectors = np.cross(down, across)
        normals[1:-1, 1:-1] = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        return dataclasses.replace(image, data=normals, mode="normal")


class KMeansClustering(ImageFiltering):
    """Pixels of similar colour as one: each has the mean of its cluster.

    Clusters begin at equal shares of the pixels by brightness, not at random: same image, same clusters.
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
        until = (cv2.TERM_CRITERIA_MAX_ITER | cv2.TERM_CRITERIA_EPS, self.iterations, 0.1)
        _, labels, centres = cv2.kmeans(
            pixels, self.clusters, labels, until, 1, cv2.KMEANS_USE_INITIAL_LABELS
        )
        means = np.asarray(centres)[np.asarray(labels, np.int64).ravel()]
        return dataclasses.replace(image, data=_as(data.dtype, means).reshape(data.shape))


def _as(kind: np.dtype[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Return values as pixels of a type, rounded where it has whole numbers only."""
    return (np.rint(values) if np.issubdtype(kind, np.integer) else values).astype(kind)


def noise_sigma(gray: NDArray[np.uint8]) -> float:
    """Return the standard deviation of the noise of an image (h, w), in grey levels.

    The flattest blocks tell, by an operator that neither slopes nor straight edges excite (Immerkær 1996).
    Blocks at the ends of the scale have no noise and are left out. Where all of an image is textured, the
    answer is too large by as much as the flattest texture.
    """
    import cv2

    operator = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32)
    response = np.abs(cv2.filter2D(gray, cv2.CV_32F, operator))[1:-1, 1:-1]
    clipped = ((gray == 0) | (gray == 255)).astype(np.float32)[1:-1, 1:-1]
    usable = _block_means(clipped) < 0.05
    if not usable.any():
        return ROUNDING
    # For normal noise of deviation s the mean of |response| is 6 s sqrt(2 / pi).
    sigma = _block_means(response)[usable] * (np.sqrt(np.pi / 2) / 6)
    return max(float(np.quantile(sigma, FLATTEST)), ROUNDING)


def _block_means(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the means of whole blocks (rows, columns); none if the image is smaller than one."""
    rows, columns = values.shape[0] // BLOCK, values.shape[1] // BLOCK
    cut = values[: rows * BLOCK, : columns * BLOCK]
    return cut.reshape(rows, BLOCK, columns, BLOCK).mean(axis=(1, 3))
