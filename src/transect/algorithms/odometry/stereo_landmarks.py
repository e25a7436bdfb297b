"""Sparse map of the points that an odometry tracked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Bytes, Floats, Ints
from transect.geometry import se3
from transect.types import PointCloud


class SparseMap:
    """Points by their ids, as estimated by the last keyframe that observed them."""

    def __init__(self) -> None:
        self.rows = np.zeros((0, 6))  # x, y, z, sigma (m), gray value, number of keyframes

    def update(self, ids: Ints, points: Floats, sigma: Floats, gray: NDArray[Any]) -> None:
        """Update points (n, 3), whose ids (n,) count from 0, with the estimates of a keyframe.

        Parameters
        ----------
        sigma : (n,)
            Standard deviation, m; used for points whose position changed.
        gray : (n,)
            Values of the image at the points.
        """
        missing = int(ids.max(initial=-1)) + 1 - len(self.rows)
        if missing > 0:
            self.rows = np.concatenate([self.rows, np.zeros((max(missing, len(self.rows)), 6))])
        moved = np.any(self.rows[ids, :3] != points, axis=1)
        self.rows[ids[moved], 3] = sigma[moved]
        self.rows[ids, :3], self.rows[ids, 4] = points, gray
        self.rows[ids, 5] += 1

    def cloud(self, T_frame_world: Floats, frame: str, min_keyframes: int = 2) -> PointCloud:
        """Return the points with enough keyframes, with fields `intensity`, `sigma` (m) and `count`."""
        landmarks = self.rows[self.rows[:, 5] >= min_keyframes]
        fields: dict[str, NDArray[Any]] = {
            "intensity": landmarks[:, 4].astype(np.uint8),
            "sigma": landmarks[:, 3].astype(np.float32),
            "count": landmarks[:, 5].astype(np.int32),
        }
        return PointCloud(se3.apply(T_frame_world, landmarks[:, :3]).astype(np.float32), fields, frame=frame)


def sample_gray(image: Bytes, pixels: Floats) -> NDArray[np.uint8]:
    """Return the gray values (n,) of an image at the pixels (n, 2) inside it."""
    column, row = np.rint(pixels[:, :2]).astype(np.int64).T
    return image[row, column]
