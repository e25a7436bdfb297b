"""Where the arm's tools are at given joint angles, and which angles bring a tool somewhere.

Everything is in the IDA frame (ArmBase, which is Payload unless RA_LANDER_TO_RA moves it): z points down, so
a negative shoulder elevation lifts the arm. A tool's pose is x, y, z (m) and th (rad), the angle of its
approach axis below the xy plane.

The arm is a yaw joint and a plane of three pitch joints. With the angle phi = q2 + q3 + q4 of the wrist, a
tool at (tx, ty, tz) of the wrist frame is at X = a1 + a2 c2 + a3 c23 + tx cos(phi) + tz sin(phi) outwards,
Y = d1 + a2 s2 + a3 s23 + tx sin(phi) - tz cos(phi) down, and d2 + ty aside of the plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.errors import GeometryError
from transect.geometry.array_checks import floats

from .arm import Arm, Tool

Elbow = Literal["up", "down"]
Shoulder = Literal["front", "back"]

_ROUNDING = 1e-9
"""Angles (rad) and cosines may miss a bound by this much and still keep it."""
_TOUCHING = 1e-14
"""Of a tool right above or below the shoulder the squared distance (m2) is lost in rounding."""


def joint_poses(arm: Arm, q: ArrayLike) -> Floats:
    """Transforms ``T_ArmBase_i`` (..., 5, 4, 4) of the link frames at `q` (..., 4); 3 is Forearm, 4 Wrist."""
    return arm.chain.poses(q)


def levers(arm: Arm, q: ArrayLike, tool: Tool | str | int) -> tuple[Floats, Floats]:
    """How far a tool is from the axes of joints 2, 3 and 4, in the plane of the arm.

    Parameters
    ----------
    q : (..., 4)
        Joint angles, rad.

    Returns
    -------
    out, down : (..., 3)
        Outwards from each axis, and down, m; C and S of the SIS's appendix D. Of a hanging tool its attach
        point's, of a camera nothing from joint 4, which does not move it.
    """
    q1_4 = floats("joint angles", q, (..., 4))
    out, down = _levers(arm, q1_4, arm.tool(tool))
    return np.stack(out, axis=-1), np.stack(down, axis=-1)


def _levers(arm: Arm, q: Floats, tool: Tool) -> tuple[list[Floats], list[Floats]]:
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


def tool_pose(arm: Arm, q: ArrayLike, tool: Tool | str | int) -> Floats:
    """Where a tool is.

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
        wrapped; q2 + q3 - pi/2 + theta of the camera; of a hanging tool the elevation of gravity, whatever
        the arm does.
    """
    angles, chosen = floats("joint angles", q, (..., 4)), arm.tool(tool)
    out, down = _levers(arm, angles, chosen)
    radius, aside = arm.chain.a[0] + out[0], _aside(arm, chosen)
    c, s = np.cos(angles[..., 0]), np.sin(angles[..., 0])
    pose = np.empty(angles.shape)
    pose[..., 0] = c * radius + s * aside
    pose[..., 1] = s * radius - c * aside
    pose[..., 2] = arm.chain.d[0] + down[0]
    if chosen.kind == "hanging":
        pose[..., :3] += _hang(arm, chosen)
        pose[..., 3] = np.arcsin(arm.down[2])
    else:
        turned = angles[..., 1:3] if chosen.kind == "camera" else angles[..., 1:4]
        pose[..., 3] = turned.sum(axis=-1) - np.pi / 2 + chosen.offset[3]
    return pose


def _aside(arm: Arm, tool: Tool) -> float:
    """How far the tool is from the plane in which the arm's yaw axis lies, m."""
    return float(arm.chain.d[1:].sum() + tool.offset[1])


def _hang(arm: Arm, tool: Tool) -> Floats:
    """From the attach point to a hanging tool, (3,) m."""
    return tool.distance[2] * arm.down


def jacobian(arm: Arm, q: ArrayLike, tool: Tool | str | int) -> Floats:
    """How a tool's pose changes with the joint angles.

    Returns
    -------
    (..., 4, 4)
        Rows x, y, z (m/rad) and th (rad/rad), a column per joint. Joint 4 does not move the camera (its
        column is zero), and no joint turns a hanging tool (the row of th is zero).
    """
    angles, chosen = floats("joint angles", q, (..., 4)), arm.tool(tool)
    out, down = _levers(arm, angles, chosen)
    radius, aside = arm.chain.a[0] + out[0], _aside(arm, chosen)
    c, s = np.cos(angles[..., 0]), np.sin(angles[..., 0])
    J = np.zeros((*angles.shape, 4))
    J[..., 0, 0] = c * aside - s * radius
    J[..., 1, 0] = s * aside + c * radius
    moving = 2 if chosen.kind == "camera" else 3
    for joint in range(moving):
        J[..., 0, joint + 1] = -c * down[joint]
        J[..., 1, joint + 1] = -s * down[joint]
        J[..., 2, joint + 1] = out[joint]
    if chosen.kind != "hanging":
        J[..., 3, 1 : moving + 1] = 1.0
    return J


@dataclass(frozen=True, eq=False)
class Solution:
    """Joint angles that bring a tool to a pose, and what is wrong with them."""

    q: Floats  # (..., 4), joint angles, rad; NaN where the pose is out of reach
    in_reach: Mask  # (...) bool, Whether the arm is long enough, and short enough
    in_limits: Mask  # (..., 4) bool, Whether each joint keeps within its limits

    @property
    def good(self) -> Mask:
        """Whether the arm can take the pose, (...)."""
        return np.asarray(self.in_reach & self.in_limits.all(axis=-1))


def solve(
    arm: Arm,
    pose: ArrayLike,
    tool: Tool | str | int,
    elbow: Elbow = "up",
    *,
    shoulder: Shoulder = "front",
    wrist: ArrayLike = 0.0,
) -> Solution:
    """Joint angles that bring a tool to a pose, with what the arm cannot do.

    A rigid tool has four numbers for four joints. The camera does not move with joint 4, and a hanging tool
    does not turn: for these the place alone decides joints 1 to 3, th is not used, and `wrist` is taken for
    joint 4.

    Parameters
    ----------
    pose : (..., 4)
        x, y, z (m) in the IDA frame and th (rad).
    elbow : {"up", "down"}
        Whether the forearm bends down from the upper arm or up.
    shoulder : {"front", "back"}
        Whether the arm reaches out to where joint 1 points, or over its shoulder to the other side.
    wrist : (...) or float
        Joint 4 (rad) where the pose leaves it free; the flight software's via point for the grapple has 0.

    Returns
    -------
    Solution
        Each angle is the one of its turns that is nearest to the middle of the joint's limits.
    """
    wanted, chosen = floats("pose", pose, (..., 4)), arm.tool(tool)
    bend = _sign(elbow, "elbow", ("up", "down"))
    side = _sign(shoulder, "shoulder", ("front", "back"))
    place = wanted[..., :3] - _hang(arm, chosen)
    with np.errstate(invalid="ignore"):
        yaw, radius = _yaw_and_radius(place, _aside(arm, chosen), side)
        out, down = radius - arm.chain.a[0], place[..., 2] - arm.chain.d[0]
        if chosen.kind == "rigid":
            pitch = _rigid_pitch(arm, out, down, wanted[..., 3], chosen, bend)
        else:
            pitch = _free_pitch(arm, out, down, np.asarray(wrist, dtype=np.float64), chosen, bend)
    q = np.stack(np.broadcast_arrays(yaw, *pitch), axis=-1)
    q = _nearest_turn(q, 0.5 * (arm.chain.lower + arm.chain.upper))
    in_reach = np.asarray(np.isfinite(q).all(axis=-1))
    return Solution(
        np.where(in_reach[..., None], q, np.nan), in_reach, arm.chain.within_limits(q, -_ROUNDING)
    )


def _sign(given: str, name: str, choices: tuple[str, str]) -> float:
    if given not in choices:
        raise GeometryError(f"{name} is {given!r}", hint=f"expected {choices[0]!r} or {choices[1]!r}")
    return 1.0 if given == choices[0] else -1.0


def inverse(
    arm: Arm,
    pose: ArrayLike,
    tool: Tool | str | int,
    elbow: Elbow = "up",
    *,
    shoulder: Shoulder = "front",
    wrist: ArrayLike = 0.0,
) -> Floats:
    """Joint angles (..., 4) that bring a tool to `pose` (..., 4); see `solve`, which also says why not.

    Rows are NaN where the pose is out of reach or a joint would leave its limits.
    """
    solution = solve(arm, pose, tool, elbow, shoulder=shoulder, wrist=wrist)
    return np.where(solution.good[..., None], solution.q, np.nan)


def _yaw_and_radius(place: Floats, aside: float, side: float) -> tuple[Floats, Floats]:
    """Angle of joint 1, and how far out a tool at `place` is that stays `aside` of the plane of the arm."""
    square = place[..., 0] ** 2 + place[..., 1] ** 2 - aside**2
    radius = side * np.sqrt(np.where(np.abs(square) < _TOUCHING, 0.0, square))
    return np.arctan2(place[..., 1], place[..., 0]) + np.arctan2(aside, radius), radius


def _rigid_pitch(
    arm: Arm, out: Floats, down: Floats, th: Floats, tool: Tool, bend: float
) -> tuple[Floats, Floats, Floats]:
    """Angles of joints 2 to 4 for a tool at (out, down) from joint 2 whose th fixes the wrist's angle."""
    phi = th + np.pi / 2 - tool.offset[3]
    along, across = tool.offset[0] + arm.chain.a[3], tool.offset[2]
    c, s = np.cos(phi), np.sin(phi)
    q2, q3 = _two_links(
        arm.chain.a[1], arm.chain.a[2], out - along * c - across * s, down - along * s + across * c, bend
    )
    return q2, q3, phi - q2 - q3


def _free_pitch(
    arm: Arm, out: Floats, down: Floats, wrist: Floats, tool: Tool, bend: float
) -> tuple[Floats, Floats, Floats]:
    """Angles of joints 2 to 4 where joint 4 is given: forearm and tool are one link, at an angle to it."""
    turn = np.zeros_like(wrist) if tool.kind == "camera" else wrist
    along, across = tool.offset[0] + arm.chain.a[3], tool.offset[2]
    c, s = np.cos(turn), np.sin(turn)
    u, w = arm.chain.a[2] + along * c + across * s, along * s - across * c
    q2, q3 = _two_links(arm.chain.a[1], np.hypot(u, w), out, down, bend)
    return q2, q3 - np.arctan2(w, u), wrist


def _two_links(
    upper: float, fore: float | Floats, out: Floats, down: Floats, bend: float
) -> tuple[Floats, Floats]:
    """Angles of two links in a plane whose end is at (out, down); NaN where they do not reach it."""
    cosine = (out**2 + down**2 - upper**2 - fore**2) / (2.0 * upper * fore)
    cosine = np.where(np.abs(cosine) < 1.0 + _ROUNDING, np.clip(cosine, -1.0, 1.0), np.nan)
    angle = bend * np.arccos(cosine)
    first = np.arctan2(down, out) - np.arctan2(fore * np.sin(angle), upper + fore * cosine)
    return first, angle


def _nearest_turn(angle: Floats, middle: Floats) -> Floats:
    """The angle plus whole turns that is nearest to `middle`."""
    return angle - 2.0 * np.pi * np.round((angle - middle) / (2.0 * np.pi))
