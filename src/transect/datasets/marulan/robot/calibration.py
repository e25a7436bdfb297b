"""Extrinsics of the Argo's cameras: each laser has a table with their poses (SDI, section 2.2.5).

``robot.frames`` (`argo.yaml`) contains the range sensors, and the cameras by the table of LaserHorizontal.
The tables of the other lasers differ from it by up to 18 cm: to project a laser into an image, use the table
of that laser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transect.base.arrays import Floats
from transect.errors import FrameError, did_you_mean
from transect.geometry import se3
from transect.recording import FrameTree, Robot
from transect.robots import transform_from_description

BODY = "Body"
TABLES = {"VideoVisual": "laser_to_visual_camera", "VideoIR": "laser_to_ir_camera"}
"""Constant of the robot with the table of each camera, one row per laser."""

_OPTICAL = ("LaserHorizontal", "LaserHorizontalOptical")
"""A laser in its own axes and in camera axes; the rotation between them is the same for all lasers."""


def camera_in_body(robot: Robot, camera: str, laser: str = "LaserHorizontal") -> Floats:
    """Return T_Body_camera (4, 4) by the table of one laser.

    Parameters
    ----------
    robot : Robot
    camera : {"VideoVisual", "VideoIR"}
    laser : str
        LaserHorizontal, LaserPort or LaserStarboard.

    Raises
    ------
    FrameError
        If there is no such table, or it cannot be used.
    """
    row = _row(robot, camera, laser)
    if not row.get("usable", True):
        raise FrameError(
            f"the table that takes {laser} to {camera} cannot be used",
            why="it was combined from LaserHorizontal's with the wrong forward sign (see errata)",
            hint=f"use {', '.join(usable_lasers(robot, camera))}",
        )
    return se3.compose(robot.frames.lookup(BODY, laser), robot.frames.lookup(*_OPTICAL), _row_transform(row))


def usable_lasers(robot: Robot, camera: str) -> tuple[str, ...]:
    """Return the lasers with a usable table for a camera; LaserVertical's is not."""
    return tuple(laser for laser, row in _table(robot, camera).items() if row.get("usable", True))


def frames_with_camera(frames: FrameTree, robot: Robot, camera: str, laser: str) -> FrameTree:
    """Return frames with a camera's pose by the table of one laser, to project that laser."""
    result = frames.copy()
    parent = result.parent_of(camera)
    if parent is None:
        raise FrameError(f"{camera} is not in these frames")
    T_parent_body = result.lookup(parent, BODY)
    T_parent_camera = se3.compose(T_parent_body, camera_in_body(robot, camera, laser))
    result.add_static(
        parent, camera, T_parent_camera, source=f"{robot.name}: {laser} to {camera}", replace=True
    )
    return result


def _row_transform(row: Mapping[str, Any]) -> Floats:
    """Return T_optical_camera of a printed row; `argo.yaml` explains the order of rotations."""
    x, y, z = row["degrees"]
    return transform_from_description(
        {"xyz": row["metres"], "euler": {"order": "YXZ", "degrees": [y, x, z]}}, "argo"
    )


def _row(robot: Robot, camera: str, laser: str) -> Mapping[str, Any]:
    table = _table(robot, camera)
    if laser not in table:
        raise FrameError(f"no table takes {laser!r} to {camera}", hint=did_you_mean(laser, table))
    return table[laser]


def _table(robot: Robot, camera: str) -> Mapping[str, Mapping[str, Any]]:
    if camera not in TABLES:
        raise FrameError(f"no table contains the camera {camera!r}", hint=did_you_mean(camera, TABLES))
    return robot.constants[TABLES[camera]]
