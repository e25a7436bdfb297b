"""A map of the last keyframes, to which scans are aligned point to plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry import rotations, se3

from ..registration.gicp import Aligned, Limits, Method, Prepared, align, prepare


class Submap:
    """The thinned points of the last keyframes, with normals and a tree that are made anew with each.

    Parameters
    ----------
    voxel : float
        Edge in metres to which the keyframes together are thinned.
    keyframes : int
        How many are kept.
    metres, radians : float
        A scan this far from the last keyframe becomes one.
    method : {"PLANE_ICP", "GICP", "ICP"}
    """

    def __init__(
        self, voxel: float, keyframes: int, metres: float, radians: float, method: Method = "PLANE_ICP"
    ) -> None:
        self.voxel, self.keyframes, self.metres, self.radians = voxel, keyframes, metres, radians
        self.method: Method = method
        self._poses: list[Floats] = []
        self._points: list[Floats] = []
        self._target: Prepared | None = None

    def align(self, scan: Prepared, guess: ArrayLike, limits: Limits | None = None) -> Aligned:
        """Align a scan to the keyframes, from the guess ``T_map_scan`` (4, 4) on; needs one keyframe."""
        if self._target is None:
            self._target = prepare(np.concatenate(self._points), self.voxel)
        return align(self._target, scan, guess, self.method, limits)

    def insert(self, parts: Sequence[Prepared], poses: Floats) -> None:
        """Add a scan by the poses ``T_map_part`` (k, 4, 4) of its parts, if it is far from the last."""
        T_map_scan = np.array(poses[len(poses) // 2])
        if self._poses and not self._is_far(se3.invert(self._poses[-1]) @ T_map_scan):
            return
        points = np.concatenate([se3.apply(T, part.points) for T, part in zip(poses, parts, strict=True)])
        self._poses = [*self._poses, T_map_scan][-self.keyframes :]
        self._points = [*self._points, points][-self.keyframes :]
        self._target = None

    def _is_far(self, motion: Floats) -> bool:
        turned = np.linalg.norm(rotations.rotation_vector_from_matrix(motion[:3, :3]))
        return bool(np.linalg.norm(motion[:3, 3]) > self.metres or turned > self.radians)

    def __deepcopy__(self, memo: dict[int, Any]) -> Submap:
        # The library's clouds and trees cannot be copied; made again of the same points they have equal bits.
        copy = Submap(self.voxel, self.keyframes, self.metres, self.radians, self.method)
        copy._poses, copy._points = list(self._poses), list(self._points)
        return copy
