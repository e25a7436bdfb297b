"""Pictures as detectors and trackers want them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transect.geometry import colours
from transect.types import Image


def gray_of(image: Image) -> NDArray[np.uint8]:
    """Return an image as (h, w) uint8, whatever its mode and depth."""
    import cv2

    data = image.data
    if data.dtype == np.uint8 and data.ndim == 2 and not image.mode.startswith("bayer"):
        return np.ascontiguousarray(data)
    rgb = np.ascontiguousarray(colours.rgb_of(image))
    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), np.uint8)


def mask_of(image: Image) -> NDArray[np.uint8] | None:
    """Return where an image was measured, (h, w) uint8 as OpenCV takes it; None for everywhere."""
    return None if image.valid is None else np.where(image.valid, 255, 0).astype(np.uint8)
