"""How far the arm sags under its own weight and a payload's.

At each link frame the weights beyond it, the link's own among them, are a force and a moment; the link's
compliance matrices turn these into a small displacement v and rotation w of the frame (spec, 4.14). They add
up to the tool to first order: ``dp = sum(v + w x (p - o))``, loads taken where the stiff arm has them. What
that leaves out is some 0.02 mm for the arm alone, and up to 1 mm with SEIS at full reach, a sag of 5 cm.

The umbilical of a hanging tool hangs along gravity from the deflected attach point, so th does not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.geometry.array_checks import floats

from .arm import Arm, Tool
from .kinematics import jacobian, tool_pose
from .links import DISTAL, Frames, Links, Stack, cross, outer_masses, turn

Move = Literal["abs", "rel", "tool", "jnt_abs", "jnt_rel"]
"""Cartesian moves: absolute, relative, in the tool's frame; joint moves: absolute, relative."""


@dataclass(frozen=True, eq=False)
class Deflection:
    """Where a tool really is."""

    pose: Floats  # (..., 4), deflected pose, x, y, z (m) in the IDA frame and th (rad)
    # (..., 3), of the tool, or of the attach point of one that hangs, in the IDA frame, m
    displacement: Floats
    rotation: Floats  # (..., 3), small rotation vector of what the tool is fixed to, in the IDA frame, rad
    substitutes: tuple[str, ...]  # numbers of the model that no source gives, and what was taken for them


def deflection(arm: Arm, q: ArrayLike, tool: Tool | str | int, links: Links | None = None) -> Deflection:
    """Deflected pose of a tool.

    Parameters
    ----------
    q : (..., 4)
        Joint angles, rad.
    links : Links, optional
        Of the grapple phase; without it `Links.of(arm)`: grapple unstowed, nothing grappled.
    """
    bodies = links or Links.of(arm)
    chosen = arm.tool(tool)
    pose = tool_pose(arm, q, chosen)
    held = np.moveaxis(pose[..., :3] - chosen.distance[2] * arm.down, -1, 0)
    frames = Frames.of(arm, q)
    stack = outer_masses(bodies, frames, with_payload=True)
    fixed_to = 3 if chosen.kind == "camera" else 4
    displacement, rotation = np.zeros(held.shape), np.zeros(held.shape)
    for body, frame in enumerate(DISTAL):
        if frame > fixed_to or not bodies.compliance[body].any():
            continue
        v, w = _give(bodies, stack, frames, body)
        displacement += v + cross(w, held - frames.origin[frame])
        rotation += w
    moved = np.moveaxis(displacement, 0, -1)
    pose[..., :3] += moved
    if chosen.kind != "hanging":
        axis = frames.rotation[1, :, 2]  # joints 2 to 4 turn about it, and so does th
        pose[..., 3] += np.einsum("i...,i...->...", rotation, axis)
    return Deflection(pose, moved, np.moveaxis(rotation, 0, -1), bodies.substitutes)


def _give(links: Links, stack: Stack, frames: Frames, body: int) -> tuple[Floats, Floats]:
    """Displacement and rotation (3, ...) of a body's frame by its own compliance, in ArmBase."""
    frame, mass = DISTAL[body], stack.mass[body]
    R, back = frames.rotation[frame], frames.rotation[frame].swapaxes(0, 1)
    lever = stack.moment[body] - mass * frames.origin[frame]
    load = [turn(back, mass * links.gravity), turn(back, cross(lever, links.gravity))]
    given = np.einsum("ij,j...->i...", links.compliance[body], np.concatenate(load))
    return turn(R, given[:3]), turn(R, given[3:])


def target_pose(
    arm: Arm, q: ArrayLike, tool: Tool | str | int, links: Links | None = None, move: Move = "abs"
) -> Floats:
    """Pose (..., 4) that the flight software means by target angles `q` (..., 4).

    It is the deflected one if RA_DEFL_GENERAL enables the compensation for that kind of move, else the stiff
    arm's. Of the five the SIS says that only `abs` is implemented; the others count if they are enabled.
    """
    if arm.parameters.number("RA_DEFL_GENERAL", f"defl_params.enable_{move}"):
        return deflection(arm, q, tool, links).pose
    return tool_pose(arm, q, tool)


def joint_deltas(arm: Arm, q: ArrayLike, tool: Tool | str | int, deflected: Deflection) -> Floats:
    """Angles (..., 4) in rad by which a stiff arm at `q` (..., 4) must turn to have its tool where it sags.

    To first order; the least turn where the pose leaves one joint free (camera, hanging tools), and the
    nearest pose where it cannot be had.
    """
    change = deflected.pose - tool_pose(arm, q, tool)
    return (np.linalg.pinv(jacobian(arm, q, tool), rcond=1e-6) @ change[..., None])[..., 0]


def exceeds_limit(arm: Arm, deltas: ArrayLike) -> Mask:
    """Where the root sum square of `joint_deltas` (..., 4) is above `deflection_limit` of RA_FAULT_DETECT."""
    size = np.linalg.norm(floats("joint deltas", deltas, (..., 4)), axis=-1)
    return np.asarray(size > arm.parameters.number("RA_FAULT_DETECT", "deflection_limit"))
