"""What the pictures of InSight's arm show: postures that the SIS prints, sag, limits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from transect.base.arrays import Floats
from transect.draw._robots_ida import Limits, Posture, Sag, ToolPlace, draw_arm, draw_limits, draw_sag
from transect.draw.robots import Picture
from transect.geometry import se3
from transect.recording import Robot

from .ida.arm import Arm, Tool
from .ida.conversions import angle_from_encoder
from .ida.deflection import deflection, target_pose
from .ida.frames import tool_mount
from .ida.kinematics import joint_poses, tool_pose
from .ida.links import DISTAL, Frames, Links
from .ida.motor import Motors, current_limits, torque_constant
from .ida.parameters import Parameters

TARGET = ("target.q", (0.026, -0.389, 1.378, 0.125), "IDC", (0.960, 0.218, -0.098, 0.992))
VIA = ("via.q", (-0.829, -1.640, 0.230, 0.0), "Grapple", (0.210, 0.036, -1.580, 1.501))
"""Name, joint angles (rad), tool, and its pose (m, rad) in the system status of SIS 5.1.1."""
TABLE_12 = (-0.1203, -0.503, 1.5311, 0.0)
"""Joint angles of the row of SIS Table 12, by inverse kinematics of its x_pot (spec, 4.14)."""
SAG_OF_TABLE_12 = 0.5068 - 0.5034
"""z_pot_defl minus z_pot there, m."""
CURRENT_LIMITS = np.array([0.172, 0.325, 0.273, 0.190])
"""sys_status.curr_limit in SIS 5.1.1, A."""
LOADS = {"nothing": "OK-To-Open", "HP3": "HP3-Grappled", "WTS": "WTS-Grappled", "SEIS": "SEIS-Grappled"}
DRAWN = ("Blade 1", "IDC", "Grapple")


def pictures(robot: Robot) -> list[Picture]:
    """Return the pictures of the arm, or of a user's copy of it."""
    arm = Arm.of(Parameters.printed(robot), fitted=True)
    postures = [_posture(arm, *TARGET), _posture(arm, *VIA)]
    return [
        Picture("arm", 4.8, partial(draw_arm, postures=postures)),
        Picture("sag", 3.7, partial(draw_sag, sag=_sag(arm))),
        Picture("limits", 3.8, partial(draw_limits, limits=_limits(arm, robot))),
    ]


def _posture(arm: Arm, name: str, q: tuple[float, ...], of: str, printed: tuple[float, ...]) -> Posture:
    return Posture(
        name=name,
        angles=np.array(q),
        frames=joint_poses(arm, q),
        tools=[_tool_place(arm, q, arm.tool(tool)) for tool in DRAWN],
        computed=target_pose(arm, q, of) if of == "IDC" else tool_pose(arm, q, of),
        printed=np.array(printed),
        of=of,
    )


def _tool_place(arm: Arm, q: tuple[float, ...], tool: Tool) -> ToolPlace:
    frames, place = joint_poses(arm, q), tool_pose(arm, q, tool)[:3]
    if tool.kind == "hanging":
        return ToolPlace(tool.name, tool.kind, place - tool.distance[2] * arm.down, place, arm.down)
    frame, mount = tool_mount(arm, tool)
    T = frames[3 if frame == "Forearm" else 4]
    # The point of the link's own axis that is beside the tool.
    held = se3.apply(T, mount[:3, 3] * (1.0, 0.0, 0.0) if frame == "Forearm" else np.zeros(3))
    return ToolPlace(tool.name, tool.kind, held, place, (T @ mount)[:3, 2])


def _sag(arm: Arm) -> Sag:
    yaw = TABLE_12[0]
    view = np.array([[np.cos(yaw), np.sin(yaw), 0.0], [0.0, 0.0, -1.0]])
    moved, down = dict[str, Floats](), dict[str, float]()
    for load, phase in LOADS.items():
        links = Links.of(arm, phase)
        moved[load] = _moved_frames(arm, links) @ view.T
        down[load] = float(deflection(arm, TABLE_12, "Grapple", links).displacement[2])
    points = joint_poses(arm, TABLE_12)[:4, :3, 3] @ view.T
    return Sag(points, moved, down, {"nothing": SAG_OF_TABLE_12})


def _moved_frames(arm: Arm, links: Links) -> Floats:
    """By how much the origins of frames 0 to 3 move (4, 3), m: what is beyond a frame does not move it."""
    frames = Frames.of(arm, TABLE_12)
    forearm = joint_poses(arm, (*TABLE_12[:3], 0.0))[4]
    moved = np.zeros((4, 3))
    for k in range(1, 4):
        stiff = np.array([distal > k for distal in DISTAL])
        inner = replace(links, compliance=np.where(stiff[:, None, None], 0.0, links.compliance))
        # A point of the forearm that is where frame k is; all that bends lies before it.
        offset = se3.apply(se3.invert(forearm), frames.origin[k])
        moved[k] = deflection(arm, TABLE_12, _point(offset), inner).displacement
    return moved


def _point(offset: Floats) -> Tool:
    return Tool("point", -1, "camera", np.array([*offset, 0.0]), np.zeros(3))


def _limits(arm: Arm, robot: Robot) -> Limits:
    p, motors = arm.parameters, Motors.of(arm.parameters)
    detent = motors.detent_torque / torque_constant(motors, np.zeros(4))
    marks = {
        "encoders at 1000 counts": angle_from_encoder(np.full(4, 1000.0), p),
        "via.q (SIS 5.1.1)": np.array(VIA[1]),
        "calibrate.home": p.numbers("RA_TASK_C", "calibrate.home"),
    }
    return Limits(
        joints=[f"{i} {name}" for i, name in enumerate(robot.constants["joints"], 1)],
        lower=arm.chain.lower,
        upper=arm.chain.upper,
        margin=p.numbers("RA_FAULT_DETECT", "joint_delta"),
        marks=marks,
        base=current_limits(motors) - detent,
        detent=detent,
        printed=CURRENT_LIMITS,
    )
