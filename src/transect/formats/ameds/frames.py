"""Where Interact's frames are: the static ones of Table 2, and what the recording says of the others."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from transect.geometry import geodesy, rotations, se3
from transect.recording import FrameTree, Robot, Stream

Poses = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


def frames_of(robot: Robot, streams: Iterable[Stream]) -> FrameTree:
    """Return the robot's frames with the moving ones of a recording; poses are computed when asked for.

    NED -> Origin comes from GnssPose. MainArm (base) -> MainArm (end), and AuxArm's, come from the camera
    pose estimates, so that Origin -> MainCam is what MainCamPoseEstimate.csv says.
    """
    tree = robot.frames.copy()
    for stream in streams:
        if stream.name == "Gnss/Pose":
            tree.add_lazy("NED", "Origin", partial(_rover_poses, stream, robot), source=stream.name)
        if stream.name in ("MainCam/PoseEstimate", "AuxCam/PoseEstimate"):
            arm = stream.name.removesuffix("Cam/PoseEstimate") + "Arm"
            poses = partial(_arm_poses, stream, robot, arm)
            tree.add_lazy(f"{arm} (base)", f"{arm} (end)", poses, source=stream.name)
    return tree


def _rover_poses(stream: Stream, robot: Robot) -> Poses:
    """Poses of Origin in the NED world at the lander (section 5.2).

    The attitude is against north at the rover, not at the lander. Over the 500 m of the test site that turns
    by less than 0.005 degrees, a sixth of what the Spatial Dual resolves, and is left as it is.
    """
    origin = robot.constants["world_origin"]
    values = stream.array("lat", "lon", "alt", "roll", "pitch", "yaw")
    known = np.isfinite(values).all(axis=1) & (np.abs(values[:, 0]) <= np.pi / 2)
    place, attitude = values[known, :3], values[known, 3:]
    lander = (origin["latitude"], origin["longitude"], origin["altitude"])
    positions = geodesy.local_from_geodetic(place, lander, "NED")
    return stream.t_ns[known], positions, rotations.quaternion_from_euler("rpy", attitude)


def _arm_poses(stream: Stream, robot: Robot, arm: str) -> Poses:
    """Poses of an arm's end in its base such that its camera is where the estimate says."""
    values = stream.array("x", "y", "z", "qx", "qy", "qz", "qw")
    known = np.isfinite(values).all(axis=1)
    T_origin_camera = se3.from_quaternion(values[known, 3:], values[known, :3])
    T_base_origin = robot.frames.lookup(f"{arm} (base)", "Origin")
    T_camera_end = robot.frames.lookup(stream.child, f"{arm} (end)")
    quaternions, positions = se3.to_quaternion(T_base_origin @ T_origin_camera @ T_camera_end)
    return stream.t_ns[known], positions, quaternions
