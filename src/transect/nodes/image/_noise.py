"""How noisy an image is, by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLOCK = 16
"""Edge of a block in pixels: 256 of them tell the noise to 6 %."""
FLATTEST = 0.1
"""Share of the blocks that are taken for flat."""
ROUNDING = float(1 / np.sqrt(12))
"""Grey levels: deviation of what rounding to whole levels does; no image has less noise."""


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
