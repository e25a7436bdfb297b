"""Data types of ports: frozen dataclasses over numpy, with shapes, units and frames in field comments."""

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from ._fields import Record
    from .aliases import CDFF_NAMES, type_from_alias
    from .clouds import DEM, GridMap, LaserScan, PointCloud, RadarRange, RadarSpectrum
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
    from .fixes import FIX_TYPES, TYPICAL_FIX_ERRORS, NavFix
    from .images import CameraModel, DepthMap, Image
    from .motion import Odometry, Pose, RigidBodyState, Trajectory, Transform, Twist
    from .places import Anchor, Edges, PlaceMap
    from .provenance import Provenance, SourceFile
    from .sensors import Imu, JointState, WheelState, Wrench
    from .verdict import STATES, State, Verdict

__all__ = [
    "CDFF_NAMES",
    "DEM",
    "FIX_TYPES",
    "STATES",
    "TYPICAL_FIX_ERRORS",
    "Anchor",
    "CameraModel",
    "CorrespondenceMaps2D",
    "CorrespondenceMaps3D",
    "Correspondences2D",
    "Correspondences3D",
    "DepthMap",
    "Edges",
    "Features2D",
    "Features3D",
    "GridMap",
    "Image",
    "Imu",
    "JointState",
    "LaserScan",
    "NavFix",
    "Octree",
    "Odometry",
    "PlaceMap",
    "PointCloud",
    "Pose",
    "Provenance",
    "RadarRange",
    "RadarSpectrum",
    "Record",
    "RigidBodyState",
    "SourceFile",
    "State",
    "StereoPair",
    "Trajectory",
    "Transform",
    "Twist",
    "Verdict",
    "WheelState",
    "Wrench",
    "type_from_alias",
]

__getattr__ = importer(
    __name__,
    {
        "aliases": ("CDFF_NAMES", "type_from_alias"),
        "clouds": ("DEM", "GridMap", "LaserScan", "PointCloud", "RadarRange", "RadarSpectrum"),
        "features": (
            "CorrespondenceMaps2D",
            "CorrespondenceMaps3D",
            "Correspondences2D",
            "Correspondences3D",
            "Features2D",
            "Features3D",
            "Octree",
            "StereoPair",
        ),
        "fixes": ("FIX_TYPES", "TYPICAL_FIX_ERRORS", "NavFix"),
        "images": ("CameraModel", "DepthMap", "Image"),
        "motion": ("Odometry", "Pose", "RigidBodyState", "Trajectory", "Transform", "Twist"),
        "places": ("Anchor", "Edges", "PlaceMap"),
        "provenance": ("Provenance", "SourceFile"),
        "_fields": ("Record",),
        "sensors": ("Imu", "JointState", "WheelState", "Wrench"),
        "verdict": ("STATES", "State", "Verdict"),
    },
)
