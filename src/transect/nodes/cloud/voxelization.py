"""Depth images as octrees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.clouds.octree import octree
from transect.base.arrays import Floats
from transect.engine import Node, param
from transect.errors import TransectError
from transect.geometry import camera
from transect.types import CameraModel, Image
from transect.types import Octree as Leaves

MILLIMETRES = 1e-3
"""Whole numbers in a depth image are millimetres, and 0 is no measurement (OpenNI, ROS REP 118)."""


class Voxelization(Node, interface=True):
    """Space that a depth image shows to be occupied, in its camera's frame (x right, y down, z forward)."""

    out_name = "octree"

    def process(self, depth: Image) -> Leaves | None:
        if depth.camera is None:
            raise TransectError(
                "the depth image has no camera",
                where=f"frame {depth.frame}" if depth.frame else "",
                why="without intrinsics its pixels have no directions",
                hint="the recording needs the camera's calibration (K, and distortion if there is any)",
            )
        return self.build(depth, depth.camera)

    def build(self, depth: Image, model: CameraModel) -> Leaves | None:
        """Return the octree of a depth image by its camera; None, and why is counted, if it shows nothing."""
        raise NotImplementedError


class Octree(Voxelization):
    """Cubes of equal size around the points of the image."""

    resolution: float = param(0.05, gt=0, unit="m", doc="edge length of the smallest cubes")
    farthest: float = param(20.0, gt=0, unit="m", doc="largest depth that is used")

    def build(self, depth: Image, model: CameraModel) -> Leaves | None:
        points = _points(depth, model, self.farthest)
        if not len(points):
            return self.ctx.skip("no depth was measured")
        return octree(points, self.resolution, depth.t_ns, depth.frame)


def _points(depth: Image, model: CameraModel, farthest: float) -> Floats:
    """Return the points (n, 3) of a depth image, by its camera."""
    scale = MILLIMETRES if np.issubdtype(depth.data.dtype, np.integer) else 1.0
    z = np.asarray(depth.data, dtype=np.float64) * scale
    seen = np.isfinite(z) & (z > 0) & (z <= farthest)
    seen = seen if depth.valid is None else seen & depth.valid
    rows, columns = np.nonzero(seen)
    rays = _rays(np.column_stack([columns, rows]), model)
    return rays / rays[:, 2:] * z[seen][:, None]


def _rays(pixels: NDArray[np.int64], model: CameraModel) -> Floats:
    lens = () if model.distortion == "none" else model.coefficients
    return camera.unproject(
        pixels, model.K, lens, "fisheye" if model.distortion == "equidistant" else "pinhole"
    )
