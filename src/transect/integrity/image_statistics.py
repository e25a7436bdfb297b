"""What checks of cameras measure in an image, once for all of them.

Decoding is the cost: of a window at most `most` images are looked at, evenly spaced, and each is
decoded once, whichever checks ask for it.
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
from .windows import Track, Window

WIDTH = 160
"""Columns of the reduced image; smaller images keep their size."""
DEPTHS = (8, 10, 12, 14, 16)
"""Bits that cameras have; the fewest that hold all values of a stream so far are taken."""
DARK, BRIGHT = 5.0, 250.0
"""Grey levels of 255 up to which a pixel is black, and from which on it is white."""
LOCAL, RANKS = 3, (50.0, 90.0, 99.0)
"""Pixels of the reduced image over which contrast is measured, and the percentiles that are kept."""
PATCH = 15
"""Pixels of the reduced image over which the dark channel is taken."""
KEPT = 4
"""Images of a stream that are kept for the other checks of a window."""
REMEMBERED, LEAST = 30, 3
"""Clear windows that tell what is usual: at most, and at least before anything is said."""
_COLOURS = {"rgb": (0, 1, 2), "rgba": (0, 1, 2), "bgr": (2, 1, 0)}


@dataclass(frozen=True, eq=False)
class Picture:
    """What is known of one image; grey levels are 0 to 255, whatever its depth.

    Attributes
    ----------
    row : int
        Of the stream.
    digest : int
        Checksum of the pixels: equal for equal images.
    colours : (h, w, 3) array
        The reduced image, red, green, blue; three times grey for an image without colours.
    dark, bright : float
        Part of all pixels that are black, and white.
    mean, entropy : float
        Grey level, and bits.
    sharpness : float
        Variance of the Laplacian in full size.
    thermal, colourful : bool
        Whether it is of heat, and whether it has colours.
    """

    row: int
    digest: int
    colours: Singles
    dark: float
    bright: float
    mean: float
    entropy: float
    sharpness: float
    thermal: bool
    colourful: bool

    @cached_property
    def grey(self) -> Singles:
        """(h, w) the reduced image without colours."""
        return self.colours @ np.array([0.299, 0.587, 0.114], np.float32)

    @property
    def variance(self) -> float:
        """Of the grey levels of the reduced image."""
        return float(self.grey.var())

    @cached_property
    def crispness(self) -> float:
        """Variance of the Laplacian over that of the grey levels, both of the reduced image."""
        import cv2

        return float(cv2.Laplacian(self.grey, cv2.CV_32F).var()) / max(self.variance, 1e-3)

    @cached_property
    def contrasts(self) -> Floats:
        """(3,) local contrast, deviation over mean in 3 x 3 pixels of the reduced image: p50, p90, p99."""
        import cv2

        mean = cv2.blur(self.grey, (LOCAL, LOCAL))
        square = cv2.blur(self.grey**2, (LOCAL, LOCAL))
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
        return np.percentile(deviation / np.maximum(mean, 8.0), RANKS)

    @cached_property
    def transmission(self) -> float:
        """``1 - 0.95 median(dark channel) / light``; light: 99th percentile of the brightest colour."""
        import cv2

        dark = cv2.erode(self.colours.min(axis=2), np.ones((PATCH, PATCH), np.uint8))
        light = max(float(np.percentile(self.colours.max(axis=2), 99.0)), 1.0)
        return 1.0 - 0.95 * float(np.median(dark)) / light


class _Album:
    """The pictures of a stream that checks still need."""

    def __init__(self) -> None:
        self.white = 2.0 ** DEPTHS[0] - 1
        self.pictures: dict[int, Picture] = {}
        self._images: dict[int, Image] = {}

    def image(self, window: Window[Image], row: int) -> Image:
        """Return an image of the stream; the last few are kept, as to decode one takes longest of all."""
        if row not in self._images:
            [self._images[row]] = values_between(window.stream, row, row + 1)
            for old in list(self._images)[:-KEPT]:
                del self._images[old]
        return self._images[row]

    def look(self, window: Window[Image], most: int) -> list[Picture]:
        rows = np.unique(np.linspace(window.start, window.stop - 1, min(most, len(window))).astype(int))
        return self.look_at(window, rows.tolist())

    def look_at(self, window: Window[Image], rows: Sequence[int]) -> list[Picture]:
        self.pictures = {row: each for row, each in self.pictures.items() if row >= window.start}
        for row in rows:
            if row not in self.pictures:
                self.pictures[row] = self._measure(row, self.image(window, row))
        return [self.pictures[row] for row in rows]

    def _measure(self, row: int, image: Image) -> Picture:
        import cv2

        pixels = self._levels(image.data)
        order = _COLOURS.get(image.mode) if pixels.ndim == 3 else None
        if pixels.ndim == 3:
            pixels = np.ascontiguousarray(pixels[..., list(order or (0,))])
            pixels = pixels if order else pixels[..., 0]
        full: Any = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY) if order else pixels
        shares = np.bincount(full.ravel(), minlength=256) / full.size
        levels = np.arange(256)
        known = shares[shares > 0]
        height, width = full.shape
        size = (min(width, WIDTH), max(1, round(height * min(1.0, WIDTH / width))))
        small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA).astype(np.float32)
        return Picture(
            row,
            zlib.crc32(image.data.tobytes()),
            small if order else np.repeat(small[..., None], 3, axis=2),
            dark=float(shares[levels <= DARK].sum()),
            bright=float(shares[levels >= BRIGHT].sum()),
            mean=float(shares @ levels),
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
            depth = next((bits for bits in DEPTHS if values.max(initial=0) < 2.0**bits), 16)
            self.white = max(self.white, 2.0**depth - 1)
        else:
            self.white = float(values.max(initial=1e-6))
        return np.clip(values * (255.0 / self.white), 0, 255).astype(np.uint8)


_ALBUMS: WeakKeyDictionary[Track[Any], _Album] = WeakKeyDictionary()


def pictures_of(window: Window[Image], most: int) -> list[Picture]:
    """Return what is measured in at most so many images of a window, evenly spaced."""
    return _ALBUMS.setdefault(window.track, _Album()).look(window, most) if len(window) else []


def pictures_near(window: Window[Image], t_ns: Ints) -> list[Picture]:
    """Return what is measured in the images of a window that are nearest to times (n,)."""
    rows = window.start + np.abs(window.t_ns[:, None] - t_ns).argmin(axis=0)
    return _ALBUMS.setdefault(window.track, _Album()).look_at(window, rows.tolist())


def image_at(window: Window[Image], row: int) -> Image:
    """Return an image of the stream of a window, decoded once for all checks of the window."""
    return _ALBUMS.setdefault(window.track, _Album()).image(window, row)


class CameraCheck(Check):
    """A check of images."""

    most: int = param(4, ge=1, le=1000, doc="largest number of images of a window that are looked at")

    def see(self, window: Window[Image]) -> list[Picture] | Unknown:
        """Return what is measured in images of a window, or why they are not of a camera."""
        if self._is_of_radar(window):
            return Unknown("NOT_A_CAMERA", "its images are drawn from what a radar measured", len(window))
        return pictures_of(window, self.most) or Unknown("NO_DATA")

    def _is_of_radar(self, window: Window[Image]) -> bool:
        recording, frame = self.about.recording, window.stream.frame
        if recording is None or not frame or window.stream.camera:
            return False
        return any(issubclass(s.type, RadarRange | RadarSpectrum) and s.frame == frame for s in recording)


class Clear:
    """Numbers of the last clear windows, and their median: what a camera usually sees."""

    def __init__(self) -> None:
        self._known: deque[Floats] = deque(maxlen=REMEMBERED)

    def learn(self, numbers: Sequence[float] | Floats) -> None:
        """Remember those of a window that was clear; others of another size are forgotten."""
        new = np.asarray(numbers, np.float64)
        if self._known and self._known[0].shape != new.shape:
            self._known.clear()
        self._known.append(new)

    def forget(self) -> None:
        """Learn anew."""
        self._known.clear()

    @property
    def usual(self) -> Floats | None:
        """The median of the clear windows; None while too few are known."""
        return np.median(np.array(self._known), axis=0) if len(self._known) >= LEAST else None


def middle(pictures: Sequence[Picture], name: str) -> float:
    """Return the median of a number over pictures."""
    return float(np.median([getattr(picture, name) for picture in pictures]))
