"""Whether two images show the same thing where they were matched, or only noise.

The noise of two cameras is independent, texture is common to both. So the images' own noise is the measure:
the test asks whether brightness changes along the rows alike in both around a match. Where there is nothing
but noise, as in a clear sky, the correlation over n independent differences is that of chance, whose Fisher
transform has a deviation of ``1 / sqrt(n - 3)``. A share of false alarms that the caller states then gives
the least correlation to believe; the more texture stands out of the noise, the higher it is above that.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

WINDOW = 15
"""Pixels: edge of the square around a match that is compared."""
DEPENDENCE = 1.75 * 1.5
"""How many pixels count as one. Differences over two pixels of white noise are correlated -1/2 with the next
but one of their row. Noise that rectification has interpolated, half-way between pixels at worst, is
correlated with more of them; the sums of squared correlations are then 1.75 along the row and 1.5 down the
column."""


def shared_texture(
    left: NDArray[np.uint8], right: NDArray[np.uint8], disparity: NDArray[np.float32], false_alarms: float
) -> NDArray[np.bool_]:
    """Tell (h, w) where two rectified images show the same texture.

    Parameters
    ----------
    left, right : (h, w) uint8 array
    disparity : (h, w) float32 array
        In pixels, NaN where not matched; those are no part of the test, and False in the result.
    false_alarms : float
        Share of pixels of independent noise that pass. Who takes the best of k disparities divides what can
        be borne by k.
    """
    import cv2

    matched = np.isfinite(disparity)
    here, there = (cv2.filter2D(each, cv2.CV_32F, np.array([[-1.0, 0.0, 1.0]])) for each in (left, right))
    rows, columns = disparity.shape
    x = np.arange(columns, dtype=np.float32) - np.where(matched, disparity, np.float32(0))
    y = np.repeat(np.arange(rows, dtype=np.float32)[:, None], columns, axis=1)
    there = cv2.remap(there, x, y, cv2.INTER_LINEAR)
    here[~matched] = there[~matched] = 0.0
    correlation = _sums(here * there) / np.sqrt(np.maximum(_sums(here * here) * _sums(there * there), 1.0))
    count = np.rint(_sums(matched.astype(np.float32))).astype(np.uint8)
    return matched & (correlation > _least_correlations(false_alarms)[count])


def _sums(values: Any) -> NDArray[np.float32]:
    """Return the sum over the window around each pixel."""
    import cv2

    return np.asarray(
        cv2.boxFilter(values, -1, (WINDOW, WINDOW), normalize=False, borderType=cv2.BORDER_CONSTANT)
    )


def _least_correlations(false_alarms: float) -> NDArray[np.float32]:
    """Return the correlation that noise seldom exceeds, by how many pixels of the window are matched."""
    independent = np.arange(WINDOW * WINDOW + 1) / DEPENDENCE - 3
    z = NormalDist().inv_cdf(1 - false_alarms)
    least = np.tanh(z / np.sqrt(np.maximum(independent, 1e-6)))
    return least.astype(np.float32)
