"""CDFF / ESROCOS type names and the transect types they mean (document 003; `asn1Scc*` names)."""

from __future__ import annotations

from .clouds import GridMap, LaserScan, PointCloud
from .images import Image
from .motion import Odometry, Pose, RigidBodyState, Trajectory, Transform
from .sensors import Imu, JointState, NavFix, Wrench

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
}


def type_from_alias(name: str) -> type | None:
    """Return the transect type for a CDFF, ESROCOS or Rock name, or None.

    Accepts ``asn1SccFrame``, ``Frame``, ``/base/samples/Frame`` and ``/base/samples/Frame_m``.
    """
    short = name.rsplit("/", 1)[-1].removesuffix("_m").removeprefix("asn1Scc").removeprefix("asn1scc")
    return CDFF_NAMES.get(short)
