"""Key points and their matches: OpenCV's as arrays, some rows of them, and which to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Ints, Singles
from transect.types import Correspondences2D, Features2D, Image

GRID = (6, 8)
"""Rows and columns into which an image is cut to tell how much of it has points."""


def features_of(keypoints: Sequence[Any], descriptors: NDArray[Any] | None, image: Image) -> Features2D:
    """Return OpenCV's key points as features of an image."""
    rows = np.array([(*k.pt, k.response, k.size, k.angle) for k in keypoints], np.float32).reshape(-1, 5)
    angle = np.where(rows[:, 4] < 0, np.nan, np.deg2rad(rows[:, 4])).astype(np.float32)  # -1: not known
    return Features2D(
        points=np.ascontiguousarray(rows[:, :2]),
        response=rows[:, 2].copy(),
        size=rows[:, 3].copy(),
        angle=angle,
        descriptors=descriptors,
        t_ns=image.t_ns,
        frame=image.frame,
        camera=image.camera,
    )


def keypoints_of(features: Features2D, diameter: float) -> list[Any]:
    """Return features as OpenCV's key points, `class_id` their row; upright where no angle is known.

    `diameter` in pixels is that of features whose detector knew none.
    """
    import cv2

    n = len(features)
    size = features.size if features.size is not None else np.full(n, diameter, np.float32)
    angle = features.angle if features.angle is not None else np.zeros(n, np.float32)
    degrees = np.rad2deg(np.nan_to_num(angle)) % 360
    rows = zip(features.points.tolist(), size.tolist(), degrees.tolist(), strict=True)
    return [cv2.KeyPoint(x, y, d, a, 0.0, 0, i) for i, ((x, y), d, a) in enumerate(rows)]


def take_features(features: Features2D, rows: NDArray[Any]) -> Features2D:
    """Return some rows of features, in that order."""

    def of(values: Any) -> Any:
        return None if values is None else values[rows]

    return Features2D(
        features.points[rows],
        of(features.response),
        of(features.size),
        of(features.angle),
        of(features.descriptors),
        features.t_ns,
        features.frame,
        features.camera,
    )


def take_matches(matches: Correspondences2D, rows: NDArray[Any]) -> Correspondences2D:
    """Return some rows of correspondences, in that order."""

    def of(values: Any) -> Any:
        return None if values is None else values[rows]

    return Correspondences2D(
        matches.source[rows],
        matches.sink[rows],
        of(matches.probability),
        of(matches.source_index),
        of(matches.sink_index),
        matches.source_camera,
        matches.sink_camera,
        matches.t_ns,
    )


def best_first(points: Singles, response: Singles, cell: int) -> Ints:
    """Return the order (n,) in which to take points: the best of each cell, then the second of each, ....

    Parameters
    ----------
    points : (n, 2)
        Pixels.
    response : (n,)
        Larger is better; equal ones are taken row by row.
    cell : int
        Side of a cell in pixels; 0 for one cell.
    """
    order = np.lexsort((points[:, 0], points[:, 1], -response))
    if not cell or not len(order):
        return order
    column, row = np.floor(points[order] / cell).astype(np.int64).T
    return order[np.argsort(_rank_within(row * (column.max() + 1) + column), kind="stable")]


def _rank_within(group: Ints) -> Ints:
    """Return for each row (n,) how many rows of its group come before it."""
    together = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.diff(group[together], prepend=group[together[0]] - 1))
    rank = np.empty_like(group)
    rank[together] = np.arange(len(group)) - np.repeat(begins, np.diff(begins, append=len(group)))
    return rank


def coverage(points: Singles, image: Image) -> float:
    """Return the part of an image, cut into 6 rows and 8 columns, in which there are points."""
    cells = np.array(GRID)
    place = np.floor(points[:, ::-1] * cells / (image.height, image.width)).astype(np.int64)
    row, column = np.clip(place, 0, cells - 1).T
    return len(np.unique(row * GRID[1] + column)) / (GRID[0] * GRID[1])
