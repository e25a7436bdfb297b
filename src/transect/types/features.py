"""Keypoints, descriptors and correspondences of images and clouds, stereo pairs and octrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats

from ._fields import NOWHERE
from .images import CameraModel, Image


@dataclass(frozen=True, eq=False)
class StereoPair:
    """Two images taken at the same time, with the calibration in `left.camera` and `right.camera`.

    After rectification rows correspond, and ``right.camera.P[0, 3] = -fx * baseline``.
    """

    left: Image  # Of the left camera
    right: Image  # Of the right camera
    t_ns: int = 0


@dataclass(frozen=True, eq=False)
class Features2D:
    """Keypoints of one image, with their descriptors."""

    points: NDArray[np.float32]  # (n, 2) column and row in pixels; the centre of the top-left pixel is (0, 0)
    response: NDArray[np.float32] | None = None  # (n,) detector score
    size: NDArray[np.float32] | None = None  # (n,) diameter in pixels, if the detector estimates it
    angle: NDArray[np.float32] | None = None  # (n,) orientation in radians, if the detector estimates it
    # (n, k) uint8 for binary descriptors (Hamming distance), float32 for others (Euclidean distance)
    descriptors: NDArray[Any] | None = None
    t_ns: int = 0
    frame: str = NOWHERE
    camera: CameraModel | None = None  # Camera that took the image

    def __len__(self) -> int:
        return int(self.points.shape[0])


@dataclass(frozen=True, eq=False)
class Features3D:
    """Keypoints of one cloud, with their descriptors."""

    points: Floats  # (n, 3) metres, in `frame`
    response: Floats | None = None  # (n,) detector score
    normals: Floats | None = None  # (n, 3) unit vectors
    descriptors: NDArray[np.float32] | None = None  # (n, k); NaN rows for points with too few neighbours
    t_ns: int = 0
    frame: str = NOWHERE

    def __len__(self) -> int:
        return int(self.points.shape[0])


@dataclass(frozen=True, eq=False)
class Correspondences2D:
    """Matched points of two images: row i of `source` and `sink` is the same point of the scene."""

    source: NDArray[np.float32]  # (n, 2) pixels in the first image
    sink: NDArray[np.float32]  # (n, 2) pixels in the second image
    probability: NDArray[np.float32] | None = None  # (n,) confidence of each match, from 0 to 1
    source_index: NDArray[np.int64] | None = None  # (n,) indices of the matched features of the first image
    sink_index: NDArray[np.int64] | None = None  # (n,) indices of the matched features of the second image
    source_camera: CameraModel | None = None  # Camera of the first image
    sink_camera: CameraModel | None = None  # Camera of the second image
    t_ns: int = 0

    def __len__(self) -> int:
        return int(self.source.shape[0])


@dataclass(frozen=True, eq=False)
class Correspondences3D:
    """Matched points of two clouds: row i of `source` and `sink` is the same point of the scene."""

    source: Floats  # (n, 3) metres, in the frame of the first cloud
    sink: Floats  # (n, 3) metres, in the frame of the second cloud
    probability: NDArray[np.float32] | None = None  # (n,) confidence of each match, from 0 to 1
    t_ns: int = 0

    def __len__(self) -> int:
        return int(self.source.shape[0])


@dataclass(frozen=True, eq=False)
class CorrespondenceMaps2D:
    """Correspondences of several pairs of images."""

    maps: tuple[Correspondences2D, ...]  # `maps[i]` matches the images `pairs[i]`
    pairs: tuple[tuple[int, int], ...] = ()  # Empty for the order of CDFF: (0, 1), (0, 2), ..., (1, 2), ...
    t_ns: int = 0


@dataclass(frozen=True, eq=False)
class CorrespondenceMaps3D:
    """Correspondences of several pairs of clouds."""

    maps: tuple[Correspondences3D, ...]  # `maps[i]` matches the clouds `pairs[i]`
    pairs: tuple[tuple[int, int], ...] = ()  # Empty for the order of CDFF: (0, 1), (0, 2), ..., (1, 2), ...
    t_ns: int = 0


@dataclass(frozen=True, eq=False)
class Octree:
    """Occupied leaves of an octree: a cube that is split into eight wherever it contains points."""

    origin: Floats  # (3,) lowest corner of the root, metres, in `frame`
    size: float  # Edge length of the root in metres; a leaf has ``size / 2**depth``
    depth: int  # Number of subdivisions of the root
    leaves: NDArray[np.int64]  # (n, 3) column, row and layer of each occupied leaf, sorted by Morton code
    counts: NDArray[np.int64]  # (n,) number of points in each leaf
    t_ns: int = 0
    frame: str = NOWHERE

    @property
    def resolution(self) -> float:
        """Edge of a leaf in metres."""
        return float(self.size / 2**self.depth)

    @property
    def centres(self) -> Floats:
        """(n, 3) centres of the leaves in metres, in `frame`."""
        return self.origin + (self.leaves + 0.5) * self.resolution
