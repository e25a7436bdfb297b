"""What flows through ports: frozen dataclasses over numpy, shapes, units and frames in their docstrings."""

from .aliases import CDFF_NAMES, type_from_alias
from .clouds import DEM, GridMap, LaserScan, PointCloud, RadarRange, RadarSpectrum
from .images import CameraModel, DepthMap, Image
from .motion import Odometry, Pose, RigidBodyState, Trajectory, Transform, Twist
from .provenance import Provenance, SourceFile
from .sensors import FIX_TYPES, Imu, JointState, NavFix, Record, WheelState, Wrench
from .verdict import Verdict

__all__ = [
    "CDFF_NAMES",
    "DEM",
    "FIX_TYPES",
    "CameraModel",
    "DepthMap",
    "GridMap",
    "Image",
    "Imu",
    "JointState",
    "LaserScan",
    "NavFix",
    "Odometry",
    "PointCloud",
    "Pose",
    "Provenance",
    "RadarRange",
    "RadarSpectrum",
    "Record",
    "RigidBodyState",
    "SourceFile",
    "Trajectory",
    "Transform",
    "Twist",
    "Verdict",
    "WheelState",
    "Wrench",
    "type_from_alias",
]
