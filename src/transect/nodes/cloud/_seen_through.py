"""What a sensor saw through: how far the nearest thing was in every direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import se3


@dataclass(frozen=True, eq=False)
class View:
    """One scan as an image of ranges.

    Attributes
    ----------
    T_sensor_fixed : (4, 4)
        Takes points of the fixed frame to the sensor's, at the time of the scan.
    nearest : (rows, columns)
        Metres to the nearest return in and around every cell of elevation and azimuth; infinite where the
        cell itself has none: there nothing is known.
    """

    T_sensor_fixed: Floats
    nearest: Floats


def view_of(points: Floats, T_fixed_sensor: Floats, step: float) -> View:
    """Return the view of a scan (n, 3) in the sensor's frame, with cells of that angle (rad)."""
    ranges, cells = _cells(points, step)
    image = np.full(_shape(step), np.inf)
    np.minimum.at(image, cells, ranges)
    beside = np.minimum.reduce([np.roll(image, shift, axis=1) for shift in (-1, 0, 1)])
    padded = np.pad(beside, ((1, 1), (0, 0)), constant_values=np.inf)
    around = np.minimum.reduce([padded[:-2], beside, padded[2:]])
    return View(se3.invert(T_fixed_sensor), np.where(np.isfinite(image), around, np.inf))


def ranges_in(view: View, points: Floats, step: float) -> tuple[Floats, Floats]:
    """Return how far points (n, 3) of the fixed frame were from the sensor, and how far it saw that way."""
    ranges, cells = _cells(se3.apply(view.T_sensor_fixed, points), step)
    return ranges, view.nearest[cells]


def _cells(points: Floats, step: float) -> tuple[Floats, tuple[Ints, Ints]]:
    ranges = np.linalg.norm(points, axis=1)
    elevation = np.arcsin(np.clip(points[:, 2] / np.maximum(ranges, 1e-9), -1, 1))
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    rows, columns = _shape(step)
    row = np.clip(np.floor((elevation + np.pi / 2) / np.pi * rows), 0, rows - 1).astype(np.int64)
    column = np.clip(np.floor((azimuth + np.pi) / (2 * np.pi) * columns), 0, columns - 1).astype(np.int64)
    return ranges, (row, column)


def _shape(step: float) -> tuple[int, int]:
    # An odd number of rows, so that a planar laser looks along the middle of one and not along an edge.
    rows = max(int(np.pi / step), 1) // 2 * 2 + 1
    return rows, max(int(2 * np.pi / step), 4)
