"""Points of interest and what they are matched with: what vision and registration nodes hand on."""

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
    """Two images taken at once; `left.camera` and `right.camera` say how the cameras stand.

    After rectification rows correspond, and ``right.camera.P[0, 3] = -fx * baseline``.

    Attributes
    ----------
    left, right : Image
        Of the two cameras.
    """

    left: Image
    right: Image
    t_ns: int = 0


@dataclass(frozen=True, eq=False)
class Features2D:
    """Points of interest of one image.

    Attributes
    ----------
    points : (n, 2) float32 array
        Column and row in pixels; the centre of the top-left pixel is (0, 0).
    response : (n,) float32 array or None
        How strong the detector found each.
    size, angle : (n,) float32 array or None
        Diameter in pixels and direction in radians, where the detector knows them.
    descriptors : (n, k) array or None
        uint8 for binary descriptors (compared by Hamming distance), float32 for others (Euclidean).
    camera : CameraModel or None
        What took the image.
    """

    points: NDArray[np.float32]
    response: NDArray[np.float32] | None = None
    size: NDArray[np.float32] | None = None
    angle: NDArray[np.float32] | None = None
    descriptors: NDArray[Any] | None = None
    t_ns: int = 0
    frame: str = NOWHERE
    camera: CameraModel | None = None

    def __len__(self) -> int:
        return int(self.points.shape[0])


@dataclass(frozen=True, eq=False)
class Features3D:
    """Points of interest of one cloud.

    Attributes
    ----------
    points : (n, 3) float array
        Metres, in `frame`.
    response : (n,) float array or None
        How strong the detector found each.
    normals : (n, 3) float array or None
        Unit vectors.
    descriptors : (n, k) float32 array or None
        NaN rows where a point had too few neighbours to be described.
    """

    points: Floats
    response: Floats | None = None
    normals: Floats | None = None
    descriptors: NDArray[np.float32] | None = None
    t_ns: int = 0
    frame: str = NOWHERE

    def __len__(self) -> int:
        return int(self.points.shape[0])


@dataclass(frozen=True, eq=False)
class Correspondences2D:
    """Which point of one image is which of another.

    Attributes
    ----------
    source, sink : (n, 2) float32 array
        Pixels in the first and in the second image; row i of both is the same point of the world.
    probability : (n,) float32 array or None
        From 0 to 1, how far each is believed.
    source_index, sink_index : (n,) int64 array or None
        Rows of the features that were matched.
    source_camera, sink_camera : CameraModel or None
        What took the images.
    """

    source: NDArray[np.float32]
    sink: NDArray[np.float32]
    probability: NDArray[np.float32] | None = None
    source_index: NDArray[np.int64] | None = None
    sink_index: NDArray[np.int64] | None = None
    source_camera: CameraModel | None = None
    sink_camera: CameraModel | None = None
    t_ns: int = 0

    def __len__(self) -> int:
        return int(self.source.shape[0])


@dataclass(frozen=True, eq=False)
class Correspondences3D:
    """Which point of one cloud is which of another.

    Attributes
    ----------
    source, sink : (n, 3) float array
        Metres, each in the frame of its cloud.
    probability : (n,) float32 array or None
        From 0 to 1, how far each is believed.
    """

    source: Floats
    sink: Floats
    probability: NDArray[np.float32] | None = None
    t_ns: int = 0

    def __len__(self) -> int:
        return int(self.source.shape[0])


@dataclass(frozen=True, eq=False)
class CorrespondenceMaps2D:
    """Correspondences of several pairs of images.

    Attributes
    ----------
    maps : tuple of Correspondences2D
        `maps[i]` is between the images `pairs[i]`.
    pairs : tuple of (int, int)
        Empty where they are in CDFF's order: (0, 1), (0, 2), ..., (1, 2), ....
    """

    maps: tuple[Correspondences2D, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    t_ns: int = 0


@dataclass(frozen=True, eq=False)
class CorrespondenceMaps3D:
    """Correspondences of several pairs of clouds.

    Attributes
    ----------
    maps : tuple of Correspondences3D
        `maps[i]` is between the clouds `pairs[i]`.
    pairs : tuple of (int, int)
        Empty where they are in CDFF's order: (0, 1), (0, 2), ..., (1, 2), ....
    """

    maps: tuple[Correspondences3D, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    t_ns: int = 0


@dataclass(frozen=True, eq=False)
class Octree:
    """Space cut into cubes, each cut into eight again where there is something in it.

    Attributes
    ----------
    origin : (3,) array
        Lowest corner of the root, metres, in `frame`.
    size : float
        Edge of the root in metres; a leaf has the edge ``size / 2**depth``.
    depth : int
        How often the root was cut.
    leaves : (n, 3) int64 array
        Column, row and layer of each occupied leaf, sorted by Morton code.
    counts : (n,) int64 array
        Points in each.
    """

    origin: Floats
    size: float
    depth: int
    leaves: NDArray[np.int64]
    counts: NDArray[np.int64]
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
