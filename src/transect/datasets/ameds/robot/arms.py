"""The two LWR IV+ arms and the cameras at their ends (document 000, Tables 2 and 3, and errata)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry import rotations
from transect.recording import Robot
from transect.robots.chains import chain_of

SIDES = ("Main", "Aux")

ATTITUDE = "XYZ"
"""Order of the angles (roll-x, pitch-y, yaw-z) in the processed files: ``R = Rx(roll) Ry(pitch) Rz(yaw)``.

Table 7 does not say. This is eq. 3, the only order that the document gives to angles about x, y and z, and
the errata's reading of it; GnssPose has the receiver's own, yaw first. `recomputed.attitude_orders` tells
which one a recording's own numbers fit.
"""


def end_poses(angles: ArrayLike, robot: Robot, side: str) -> Floats:
    """``T_Origin_end`` (..., 4, 4) of an arm, "Main" or "Aux", at joint angles (..., 7) in rad."""
    T_origin_base = robot.frames.lookup("Origin", f"{side}Arm (base)")
    return T_origin_base @ chain_of(robot).forward(angles)


def camera_poses(angles: ArrayLike, robot: Robot, side: str) -> Floats:
    """``T_Origin_Cam`` (..., 4, 4) of MainCam or AuxCam at joint angles (..., 7) in rad."""
    return end_poses(angles, robot, side) @ robot.frames.lookup(f"{side}Arm (end)", f"{side}Cam")


def attitude_angles(matrices: ArrayLike, order: str = ATTITUDE) -> Floats:
    """Angles (..., 3) about x, y, z in rad of rotation matrices (..., 3, 3), as in the processed files.

    Parameters
    ----------
    order : {"XYZ", "rpy"}
        ``Rx Ry Rz`` (eq. 3) or ``Rz Ry Rx``.
    """
    return rotations.euler_from_matrix(order, matrices)
