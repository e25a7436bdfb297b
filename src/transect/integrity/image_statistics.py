"""Statistics of camera images, computed once for all checks.

Decoding dominates the cost: at most `most` images of a window are used, evenly spaced, and each is decoded
once.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from transect.base.arrays import Array, Floats, Ints, Singles
from transect.engine.nodes import param
from transect.recording.stream import values_between
from transect.types import Image, RadarRange, RadarSpectrum

from .model import Check, Unknown
from .windows import Window, WindowedStream

_CHANNELS = {"rgb": (0, 1, 2), "rgba": (0, 1, 2), "bgr": (2, 1, 0)}


@dataclass(frozen=True)
class ImageSettings:
    """Numbers of the image statistics."""

    reduced_width_px: int = 160  # Columns of the reduced image; smaller images keep their size.
    # Smallest one that contains all values of a stream is used.
    bit_depths: tuple[int, ...] = (8, 10, 12, 14, 16)
    max_dark_grey: float = 5.0  # Grey levels, of 255, of black ...
    min_bright_grey: float = 250.0  # ... and of white pixels.
    contrast_px: int = 3  # Pixels of the reduced image over which contrast is measured, and ...
    contrast_percentiles: tuple[float, ...] = (50.0, 90.0, 99.0)  # ... its percentiles.
    dark_channel_px: int = 15  # Pixels of the reduced image of the dark channel.
    max_cached_images: int = 4  # Images of a stream kept for the other checks of a window.
    max_clear_windows: int = 30  # Clear windows of a baseline, at most ...
    min_clear_windows: int = 3  # ... and at least.


SETTINGS = ImageSettings()


@dataclass(frozen=True, eq=False)
class ImageStatistics:
    """Statistics of one image; grey levels are 0 to 255 for any bit depth."""

    row: int  # of the stream
    digest: int  # checksum of the pixels
    colours: Singles  # (h, w, 3) the reduced image in red, green, blue; grey images repeat their channel
    dark: float  # ratio of black pixels
    bright: float  # ratio of white pixels
    mean: float  # grey level
    entropy: float  # bits
    sharpness: float  # variance of the Laplacian in full size
    thermal: bool  # whether it measures heat
    colourful: bool  # whether it has colours

    @cached_property
    def grey(self) -> Singles:
        """(h, w) the reduced image without colours."""
        return self.colours @ np.array([0.299, 0.587, 0.114], np.float32)

    @property
    def variance(self) -> float:
        """Variance of the grey levels of the reduced image."""
        return float(self.grey.var())

    @cached_property
    def crispness(self) -> float:
        """Variance of the Laplacian over that of the grey levels, both of the reduced image."""
        import cv2

        return float(cv2.Laplacian(self.grey, cv2.CV_32F).var()) / max(self.variance, 1e-3)

    @cached_property
    def contrasts(self) -> Floats:
        """(3,) local contrast, sigma over mean in 3 x 3 pixels of the reduced image: p50, p90, p99."""
        import cv2

        mean = cv2.blur(self.grey, (SETTINGS.contrast_px, SETTINGS.contrast_px))
        square = cv2.blur(self.grey**2, (SETTINGS.contrast_px, SETTINGS.contrast_px))
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
        return np.percentile(deviation / np.maximum(mean, 8.0), SETTINGS.contrast_percentiles)

    @cached_property
    def transmission(self) -> float:
        """``1 - 0.95 median(dark channel) / light``; light: 99th percentile of the brightest colour."""
        import cv2

        dark = cv2.erode(
            self.colours.min(axis=2), np.ones((SETTINGS.dark_channel_px, SETTINGS.dark_channel_px), np.uint8)
        )
        light = max(float(np.percentile(self.colours.max(axis=2), 99.0)), 1.0)
        return 1.0 - 0.95 * float(np.median(dark)) / light


class _ImageCache:
    """Images and statistics of a stream that checks still need."""

    def __init__(self) -> None:
        self.white = 2.0 ** SETTINGS.bit_depths[0] - 1
        self.statistics: dict[int, ImageStatistics] = {}
        self._images: dict[int, Image] = {}

    def image(self, window: Window[Image], row: int) -> Image:
        """Return an image of the stream; the last few are cached, as decoding dominates the cost."""
        if row not in self._images:
            [self._images[row]] = values_between(window.stream, row, row + 1)
            for old in list(self._images)[: -SETTINGS.max_cached_images]:
                del self._images[old]
        return self._images[row]

    def sample(self, window: Window[Image], most: int) -> list[ImageStatistics]:
        rows = np.unique(np.linspace(window.start, window.stop - 1, min(most, len(window))).astype(int))
        return self.at_rows(window, rows.tolist())

    def at_rows(self, window: Window[Image], rows: Sequence[int]) -> list[ImageStatistics]:
        self.statistics = {row: each for row, each in self.statistics.items() if row >= window.start}
        for row in rows:
            if row not in self.statistics:
                self.statistics[row] = self._measure(row, self.image(window, row))
        return [self.statistics[row] for row in rows]

    def _measure(self, row: int, image: Image) -> ImageStatistics:
        import cv2

        pixels = self._levels(image.data)
        order = _CHANNELS.get(image.mode) if pixels.ndim == 3 else None
        if pixels.ndim == 3:
            pixels = np.ascontiguousarray(pixels[..., list(order or (0,))])
            pixels = pixels if order else pixels[..., 0]
        full: Any = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY) if order else pixels
        ratios = np.bincount(full.ravel(), minlength=256) / full.size
        levels = np.arange(256)
        known = ratios[ratios > 0]
        height, width = full.shape
        size = (
            min(width, SETTINGS.reduced_width_px),
            max(1, round(height * min(1.0, SETTINGS.reduced_width_px / width))),
        )
        small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA).astype(np.float32)
        return ImageStatistics(
            row,
            zlib.crc32(image.data.tobytes()),
            small if order else np.repeat(small[..., None], 3, axis=2),
            dark=float(ratios[levels <= SETTINGS.max_dark_grey].sum()),
            bright=float(ratios[levels >= SETTINGS.min_bright_grey].sum()),
            mean=float(ratios @ levels),
            entropy=float(-(known * np.log2(known)).sum()),
            sharpness=float(cv2.Laplacian(full, cv2.CV_32F).var()),
            thermal=image.mode == "thermal",
            colourful=order is not None,
        )

    def _levels(self, data: Array) -> Array:
        """Return pixels as bytes."""
        if data.dtype == np.uint8:
            return data
        values = np.nan_to_num(data.astype(np.float32))
        if data.dtype.kind in "ui":
            depth = next((bits for bits in SETTINGS.bit_depths if values.max(initial=0) < 2.0**bits), 16)
            self.white = max(self.white, 2.0**depth - 1)
        else:
            self.white = float(values.max(initial=1e-6))
        return np.clip(values * (255.0 / self.white), 0, 255).astype(np.uint8)


_CACHES: WeakKeyDictionary[WindowedStream[Any], _ImageCache] = WeakKeyDictionary()


def image_statistics(window: Window[Image], most: int) -> list[ImageStatistics]:
    """Return the statistics of at most `most` images of a window, evenly spaced."""
    return _CACHES.setdefault(window.windowed, _ImageCache()).sample(window, most) if len(window) else []


def image_statistics_near(window: Window[Image], t_ns: Ints) -> list[ImageStatistics]:
    """Return the statistics of the images of a window that are nearest to times (n,)."""
    rows = window.start + np.abs(window.t_ns[:, None] - t_ns).argmin(axis=0)
    return _CACHES.setdefault(window.windowed, _ImageCache()).at_rows(window, rows.tolist())


def image_at(window: Window[Image], row: int) -> Image:
    """Return an image of the stream of a window, decoded once for all checks of the window."""
    return _CACHES.setdefault(window.windowed, _ImageCache()).image(window, row)


class CameraCheck(Check):
    """Base class of checks of images."""

    most: int = param(4, ge=1, le=1000, doc="largest number of images per window that are processed")

    def measure(self, window: Window[Image]) -> list[ImageStatistics] | Unknown:
        """Return the statistics of images of a window, or why they are not of a camera."""
        if self._is_of_radar(window):
            return Unknown("NOT_A_CAMERA", "its images are drawn from radar data", len(window))
        return image_statistics(window, self.most) or Unknown("NO_DATA")

    def _is_of_radar(self, window: Window[Image]) -> bool:
        recording, frame = self.context.recording, window.stream.frame
        if recording is None or not frame or window.stream.camera:
            return False
        return any(issubclass(s.type, RadarRange | RadarSpectrum) and s.frame == frame for s in recording)


class ClearBaseline:
    """Median of numbers over the last clear windows."""

    def __init__(self) -> None:
        self._known: deque[Floats] = deque(maxlen=SETTINGS.max_clear_windows)

    def learn(self, numbers: Sequence[float] | Floats) -> None:
        """Add the numbers of a clear window; those of another size are dropped."""
        new = np.asarray(numbers, np.float64)
        if self._known and self._known[0].shape != new.shape:
            self._known.clear()
        self._known.append(new)

    def forget(self) -> None:
        """Restart the baseline."""
        self._known.clear()

    @property
    def usual(self) -> Floats | None:
        """Median of the clear windows; None while too few are known."""
        return (
            np.median(np.array(self._known), axis=0)
            if len(self._known) >= SETTINGS.min_clear_windows
            else None
        )


def median_of(images: Sequence[ImageStatistics], name: str) -> float:
    """Return the median of a statistic over images."""
    return float(np.median([getattr(image, name) for image in images]))
