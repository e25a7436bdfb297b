"""CDFF / ESROCOS type names (`asn1Scc*`) and the corresponding transect types (CDFF report)."""

from __future__ import annotations

import re

import numpy as np

from .clouds import GridMap, LaserScan, PointCloud
from .features import (
    CorrespondenceMaps2D,
    CorrespondenceMaps3D,
    Correspondences2D,
    Correspondences3D,
    Features2D,
    Features3D,
    Octree,
    StereoPair,
)
from .fixes import NavFix
from .images import Image
from .motion import Odometry, Pose, RigidBodyState, Trajectory, Transform
from .sensors import Imu, JointState, Wrench

CDFF_NAMES: dict[str, type] = {
    "Frame": Image,
    "Pointcloud": PointCloud,
    "Pose": Pose,
    "RigidBodyState": RigidBodyState,
    "TransformWithCovariance": Transform,
    "IMUSensors": Imu,
    "LaserScan": LaserScan,
    "Joints": JointState,
    "Wrench": Wrench,
    "Map": GridMap,
    "PosesSequence": Trajectory,
    "GpsSolution": NavFix,
    "Odometry": Odometry,
    "FramePair": StereoPair,
    "VisualPointFeatureVector2D": Features2D,
    "VisualPointFeatureVector3D": Features3D,
    "CorrespondenceMap2D": Correspondences2D,
    "CorrespondenceMap3D": Correspondences3D,
    "CorrespondenceMaps2DSequence": CorrespondenceMaps2D,
    "CorrespondenceMaps3DSequence": CorrespondenceMaps3D,
    "Octree": Octree,
}

CDFF_SHAPES: dict[str, tuple[int | str, ...]] = {
    **{f"Vector{n}d": (n,) for n in (2, 3, 4, 6)},
    **{f"Matrix{n}d": (n, n) for n in (2, 3, 4, 6)},
    "VectorXd": ("n",),
    "MatrixXd": ("n", "m"),
    "Quaterniond": (4,),
    "Point": (3,),
    "Position": (3,),
    "Orientation": (4,),
    "Transform3d": (4, 4),
}
"""Shapes of the ESROCOS arrays by name; quaternions are x, y, z, w. A letter is any size."""

_INTEGERS = [f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)]
CDFF_SCALARS: dict[str, type] = {
    "T_String": str,
    "T_Double": float,
    "T_Float": float,
    "T_Boolean": bool,
    **{f"T_{sign}Int{bits}": int for sign in ("", "U") for bits in (8, 16, 32, 64)},
    "double": float,
    "boolean": bool,
    **dict.fromkeys((*_INTEGERS, "unsigned", "unsigned int", "long", "size_t"), int),
    **dict.fromkeys(("string", "std::string"), str),
    **dict.fromkeys(CDFF_SHAPES, np.ndarray),
}
"""Types of ports, but not of streams: the primitive types of ASN.1, and those of C++ that CDFF writes."""

CDFF_OTHER_NAMES = frozenset(
    {
        "AngleAxisd",
        "Array3D",
        "StringSequence",
        "Time",
        "VectorXdSequence",
    }
)
"""Names in CDFF's descriptions without a transect type; only ports of the same name can be connected."""

_PREFIX = re.compile(r"^asn[1l][Ss]cc")  # the scanned CDFF report has an l for the 1


def short_name(name: str) -> str:
    """Return a CDFF, ESROCOS or Rock name without prefix and suffix: `Frame` for `asn1SccFrame`."""
    return _PREFIX.sub("", name.rsplit("/", 1)[-1].removesuffix("_m"), count=1)


def type_from_alias(name: str) -> type | None:
    """Return the transect type for a CDFF, ESROCOS or Rock name, or None.

    Accepts ``asn1SccFrame``, ``Frame``, ``/base/samples/Frame`` and ``/base/samples/Frame_m``.
    """
    return CDFF_NAMES.get(short_name(name))
