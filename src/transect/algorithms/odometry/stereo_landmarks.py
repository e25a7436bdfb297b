"""Points that an odometry saw, kept when it sees them no more: a sparse map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Bytes, Floats, Ints
from transect.geometry import se3
from transect.types import PointCloud

OFTEN = 2
"""Keyframes that must know a point: the second found it again, in agreement with the motion."""


class Landmarks:
    """Points by their ids, as the last keyframe that saw them knew them."""

    def __init__(self) -> None:
        self.rows = np.zeros((0, 6))
        """x, y, z, sigma (m), gray value, and how many keyframes knew it."""

    def see(self, ids: Ints, points: Floats, sigma: Floats, gray: NDArray[Any]) -> None:
        """Take what a keyframe knows of points (n, 3), whose ids (n,) count up from 0.

        Parameters
        ----------
        sigma : (n,)
            Standard deviation in metres, if measured now; a point that did not move was not.
        gray : (n,)
            What the camera saw there.
        """
        short = int(ids.max(initial=-1)) + 1 - len(self.rows)
        if short > 0:
            self.rows = np.concatenate([self.rows, np.zeros((max(short, len(self.rows)), 6))])
        moved = np.any(self.rows[ids, :3] != points, axis=1)
        self.rows[ids[moved], 3] = sigma[moved]
        self.rows[ids, :3], self.rows[ids, 4] = points, gray
        self.rows[ids, 5] += 1

    def cloud(self, T_frame_world: Floats, frame: str) -> PointCloud:
        """Return those that keyframes found again, with the fields `intensity`, `sigma` (m) and `count`."""
        kept = self.rows[self.rows[:, 5] >= OFTEN]
        fields: dict[str, NDArray[Any]] = {
            "intensity": kept[:, 4].astype(np.uint8),
            "sigma": kept[:, 3].astype(np.float32),
            "count": kept[:, 5].astype(np.int32),
        }
        return PointCloud(se3.apply(T_frame_world, kept[:, :3]).astype(np.float32), fields, frame=frame)


def gray_at(picture: Bytes, pixels: Floats) -> NDArray[np.uint8]:
    """Gray values (n,) of a picture at the pixels (n, 2) inside it."""
    column, row = np.rint(pixels[:, :2]).astype(np.int64).T
    return picture[row, column]
