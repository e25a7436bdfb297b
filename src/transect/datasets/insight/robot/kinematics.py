"""Forward and inverse kinematics of the arm's tools in closed form.

Everything is in the IDA frame (ArmBase, which is Payload unless RA_LANDER_TO_RA moves it): z points down, so
a negative shoulder elevation lifts the arm. The pose of a tool is x, y, z (m) and th (rad), the angle of its
approach axis below the xy plane.

The arm is a yaw joint and a plane of three pitch joints. With the angle phi = q2 + q3 + q4 of the wrist, a
tool at (tx, ty, tz) of the wrist frame is at X = a1 + a2 c2 + a3 c23 + tx cos(phi) + tz sin(phi) outwards,
Y = d1 + a2 s2 + a3 s23 + tx sin(phi) - tz cos(phi) down, with a lateral offset of d2 + ty from the plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.errors import GeometryError
from transect.geometry.array_checks import floats

from .arm import ArmTool, DeploymentArm

Elbow = Literal["up", "down"]
Shoulder = Literal["front", "back"]

_LIMIT_TOLERANCE = 1e-9
"""Rounding error of angles (rad) and cosines at a limit."""
_MIN_SQUARED_RADIUS_M2 = 1e-14
"""Smaller squared distances from the shoulder axis are rounding errors."""


def joint_poses(arm: DeploymentArm, q: ArrayLike) -> Floats:
    """Transforms ``T_ArmBase_i`` (..., 5, 4, 4) of the link frames at `q` (..., 4); 3 is Forearm, 4 Wrist."""
    return arm.chain.poses(q)


def levers(arm: DeploymentArm, q: ArrayLike, tool: ArmTool | str | int) -> tuple[Floats, Floats]:
    """Distances of a tool from the axes of joints 2, 3 and 4, in the plane of the arm.

    Parameters
    ----------
    q : (..., 4)
        Joint angles, rad.

    Returns
    -------
    out, down : (..., 3)
        Outwards from each axis, and down, m: C and S of SIS appendix D. For a hanging tool, those of its
        attach point; for the camera, without joint 4, which does not move it.
    """
    q1_4 = floats("joint angles", q, (..., 4))
    out, down = _levers(arm, q1_4, arm.tool(tool))
    return np.stack(out, axis=-1), np.stack(down, axis=-1)


def _levers(arm: DeploymentArm, q: Floats, tool: ArmTool) -> tuple[list[Floats], list[Floats]]:
    shoulder, forearm = q[..., 1], q[..., 1] + q[..., 2]
    wrist = forearm if tool.kind == "camera" else forearm + q[..., 3]
    _, upper, fore, last = arm.chain.a
    along, across = tool.offset[0] + last, tool.offset[2]
    c, s = np.cos(wrist), np.sin(wrist)
    out, down = [along * c + across * s], [along * s - across * c]
    for length, angle in ((fore, forearm), (upper, shoulder)):
        out.insert(0, out[0] + length * np.cos(angle))
        down.insert(0, down[0] + length * np.sin(angle))
    return out, down


def tool_pose(arm: DeploymentArm, q: ArrayLike, tool: ArmTool | str | int) -> Floats:
    """Forward kinematics of a tool.

    Parameters
    ----------
    q : (..., 4)
        Joint angles, rad.
    tool : Tool, str or int
        A tool, its name, or its code in SIS Table 14.

    Returns
    -------
    (..., 4)
        x, y, z (m) in the IDA frame and th (rad). th is q2 + q3 + q4 - pi/2 + theta of a rigid tool, not
        wrapped; q2 + q3 - pi/2 + theta of the camera; the elevation of gravity of a hanging tool at any
        posture.
    """
    angles, chosen = floats("joint angles", q, (..., 4)), arm.tool(tool)
    out, down = _levers(arm, angles, chosen)
    radius, lateral = arm.chain.a[0] + out[0], _lateral_offset(arm, chosen)
    c, s = np.cos(angles[..., 0]), np.sin(angles[..., 0])
    pose = np.empty(angles.shape)
    pose[..., 0] = c * radius + s * lateral
    pose[..., 1] = s * radius - c * lateral
    pose[..., 2] = arm.chain.d[0] + down[0]
    if chosen.kind == "hanging":
        pose[..., :3] += _hanging_offset(arm, chosen)
        pose[..., 3] = np.arcsin(arm.down[2])
    else:
        pitch = angles[..., 1:3] if chosen.kind == "camera" else angles[..., 1:4]
        pose[..., 3] = pitch.sum(axis=-1) - np.pi / 2 + chosen.offset[3]
    return pose


def _lateral_offset(arm: DeploymentArm, tool: ArmTool) -> float:
    """Distance of the tool from the vertical plane through the yaw axis, m."""
    return float(arm.chain.d[1:].sum() + tool.offset[1])


def _hanging_offset(arm: DeploymentArm, tool: ArmTool) -> Floats:
    """Vector (3,) from the attach point to a hanging tool, m."""
    return tool.distance[2] * arm.down


@dataclass(frozen=True, eq=False)
class Solution:
    """Joint angles for tool poses, with the limits that they violate."""

    q: Floats  # (..., 4), joint angles, rad; NaN where the pose is out of reach
    in_reach: Mask  # (...) bool, whether the pose is in the workspace of the two links
    in_limits: Mask  # (..., 4) bool, whether each joint is within its limits

    @property
    def feasible(self) -> Mask:
        """Whether the pose is in reach and within all joint limits, (...)."""
        return np.asarray(self.in_reach & self.in_limits.all(axis=-1))


def solve(
    arm: DeploymentArm,
    pose: ArrayLike,
    tool: ArmTool | str | int,
    elbow: Elbow = "up",
    *,
    shoulder: Shoulder = "front",
    wrist: ArrayLike = 0.0,
) -> Solution:
    """Inverse kinematics with reach and limits reported separately.

    The pose of a rigid tool determines all four joints. The camera does not move with joint 4, and a hanging
    tool does not rotate: their position determines joints 1 to 3, th is not used, and joint 4 is `wrist`.

    Parameters
    ----------
    pose : (..., 4)
        x, y, z (m) in the IDA frame and th (rad).
    elbow : {"up", "down"}
        Whether the forearm bends down from the upper arm or up.
    shoulder : {"front", "back"}
        Whether the arm extends in the direction of joint 1 or over its shoulder to the opposite side.
    wrist : (...) or float
        Joint 4 (rad) where the pose does not determine it; 0 in the via point of the grapple in SIS 5.1.1.

    Returns
    -------
    Solution
        Each angle is wrapped to the turn nearest to the middle of the joint limits.
    """
    wanted, chosen = floats("pose", pose, (..., 4)), arm.tool(tool)
    bend = _sign(elbow, "elbow", ("up", "down"))
    side = _sign(shoulder, "shoulder", ("front", "back"))
    position = wanted[..., :3] - _hanging_offset(arm, chosen)
    with np.errstate(invalid="ignore"):
        yaw, radius = _yaw_and_radius(position, _lateral_offset(arm, chosen), side)
        out, down = radius - arm.chain.a[0], position[..., 2] - arm.chain.d[0]
        if chosen.kind == "rigid":
            pitch = _rigid_pitch(arm, out, down, wanted[..., 3], chosen, bend)
        else:
            pitch = _free_pitch(arm, out, down, np.asarray(wrist, dtype=np.float64), chosen, bend)
    q = np.stack(np.broadcast_arrays(yaw, *pitch), axis=-1)
    q = _nearest_turn(q, 0.5 * (arm.chain.lower + arm.chain.upper))
    in_reach = np.asarray(np.isfinite(q).all(axis=-1))
    return Solution(
        np.where(in_reach[..., None], q, np.nan), in_reach, arm.chain.within_limits(q, -_LIMIT_TOLERANCE)
    )


def _sign(given: str, name: str, choices: tuple[str, str]) -> float:
    if given not in choices:
        raise GeometryError(f"{name} is {given!r}", hint=f"expected {choices[0]!r} or {choices[1]!r}")
    return 1.0 if given == choices[0] else -1.0


def inverse(
    arm: DeploymentArm,
    pose: ArrayLike,
    tool: ArmTool | str | int,
    elbow: Elbow = "up",
    *,
    shoulder: Shoulder = "front",
    wrist: ArrayLike = 0.0,
) -> Floats:
    """Joint angles (..., 4) for tool poses (..., 4); NaN where `solve` finds no feasible solution."""
    solution = solve(arm, pose, tool, elbow, shoulder=shoulder, wrist=wrist)
    return np.where(solution.feasible[..., None], solution.q, np.nan)


def _yaw_and_radius(position: Floats, lateral: float, side: float) -> tuple[Floats, Floats]:
    """Angle of joint 1 and radius of a tool at `position` with a lateral offset from the plane of the arm."""
    square = position[..., 0] ** 2 + position[..., 1] ** 2 - lateral**2
    radius = side * np.sqrt(np.where(np.abs(square) < _MIN_SQUARED_RADIUS_M2, 0.0, square))
    return np.arctan2(position[..., 1], position[..., 0]) + np.arctan2(lateral, radius), radius


def _rigid_pitch(
    arm: DeploymentArm, out: Floats, down: Floats, th: Floats, tool: ArmTool, bend: float
) -> tuple[Floats, Floats, Floats]:
    """Angles of joints 2 to 4 for a tool at (out, down) from joint 2 whose th determines the wrist angle."""
    phi = th + np.pi / 2 - tool.offset[3]
    along, across = tool.offset[0] + arm.chain.a[3], tool.offset[2]
    c, s = np.cos(phi), np.sin(phi)
    q2, q3 = _two_links(
        arm.chain.a[1], arm.chain.a[2], out - along * c - across * s, down - along * s + across * c, bend
    )
    return q2, q3, phi - q2 - q3


def _free_pitch(
    arm: DeploymentArm, out: Floats, down: Floats, wrist: Floats, tool: ArmTool, bend: float
) -> tuple[Floats, Floats, Floats]:
    """Angles of joints 2 to 4 at a given joint 4: forearm and tool form one link."""
    turn = np.zeros_like(wrist) if tool.kind == "camera" else wrist
    along, across = tool.offset[0] + arm.chain.a[3], tool.offset[2]
    c, s = np.cos(turn), np.sin(turn)
    u, w = arm.chain.a[2] + along * c + across * s, along * s - across * c
    q2, q3 = _two_links(arm.chain.a[1], np.hypot(u, w), out, down, bend)
    return q2, q3 - np.arctan2(w, u), wrist


def _two_links(
    upper: float, fore: float | Floats, out: Floats, down: Floats, bend: float
) -> tuple[Floats, Floats]:
    """Angles of two links in a plane whose end is at (out, down); NaN if out of reach."""
    cosine = (out**2 + down**2 - upper**2 - fore**2) / (2.0 * upper * fore)
    cosine = np.where(np.abs(cosine) < 1.0 + _LIMIT_TOLERANCE, np.clip(cosine, -1.0, 1.0), np.nan)
    angle = bend * np.arccos(cosine)
    first = np.arctan2(down, out) - np.arctan2(fore * np.sin(angle), upper + fore * cosine)
    return first, angle


def _nearest_turn(angle: Floats, middle: Floats) -> Floats:
    """Wrap an angle to the turn nearest to `middle`."""
    return angle - 2.0 * np.pi * np.round((angle - middle) / (2.0 * np.pi))
