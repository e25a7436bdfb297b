"""Depth and disparity images with less noise; what was not measured stays so."""

from __future__ import annotations

import dataclasses

import numpy as np

from transect.base.arrays import Singles
from transect.engine import Node, param
from transect.errors import TransectError
from transect.geometry import robust
from transect.types import Image


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
