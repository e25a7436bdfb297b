"""Where the Argo's cameras are: each laser's table places them once (document 004, section 2.2.5).

The range sensors stand in ``robot.frames`` (`argo.yaml`), and so do the cameras, by the table of
LaserHorizontal. The tables of the other lasers put them up to 18 cm away from there: whoever projects a
laser into an image takes that laser's own table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import FrameError, did_you_mean
from transect.geometry import se3
from transect.recording import FrameTree, Robot
from transect.robots import transform_from_description

BODY = "Body"
TABLES = {"VideoVisual": "laser_to_visual_camera", "VideoIR": "laser_to_ir_camera"}
"""Which of the robot's constants holds a camera's rows, one a laser."""

_OPTICAL = ("LaserHorizontal", "LaserHorizontalOptical")
"""A laser in its own axes and in a camera's; the turn between them is the same for all lasers."""


def camera_in_body(robot: Robot, camera: str, laser: str = "LaserHorizontal") -> Floats:
    """T_Body_camera (4, 4) by the table of one laser.

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
            hint=f"take {', '.join(usable_lasers(robot, camera))}",
        )
    return se3.compose(robot.frames.lookup(BODY, laser), robot.frames.lookup(*_OPTICAL), _move(row))


def cameras_in_body(robot: Robot, camera: str) -> dict[str, Floats]:
    """T_Body_camera (4, 4) by each laser whose table can be used; where they differ, nobody knows."""
    return {laser: camera_in_body(robot, camera, laser) for laser in usable_lasers(robot, camera)}


def usable_lasers(robot: Robot, camera: str) -> tuple[str, ...]:
    """Return the lasers whose tables place a camera; LaserVertical's do not."""
    return tuple(laser for laser, row in _table(robot, camera).items() if row.get("usable", True))


def frames_with_camera(frames: FrameTree, robot: Robot, camera: str, laser: str) -> FrameTree:
    """Return frames in which a camera stands where one laser's table puts it, to project that laser."""
    result = frames.copy()
    parent = result.parent_of(camera)
    if parent is None:
        raise FrameError(f"{camera} has no place in these frames that could be changed")
    T_parent_body = result.lookup(parent, BODY)
    T_parent_camera = se3.compose(T_parent_body, camera_in_body(robot, camera, laser))
    result.add_static(
        parent, camera, T_parent_camera, source=f"{robot.name}: {laser} to {camera}", replace=True
    )
    return result


def pitch_and_yaw(T_body_camera: ArrayLike) -> Floats:
    """Where cameras look: pitch (up is positive) and yaw (starboard is positive) in rad, (..., 2).

    Parameters
    ----------
    T_body_camera : (..., 4, 4) array
        Camera axes x right, y down, z forward; Body x forward, y starboard, z down.
    """
    x, y, z = np.moveaxis(np.asarray(T_body_camera, dtype=np.float64)[..., :3, 2], -1, 0)
    return np.stack([-np.arcsin(z), np.arctan2(y, x)], axis=-1)


def _move(row: Mapping[str, Any]) -> Floats:
    """T_optical_camera of a row as it is printed; why in this order is told in `argo.yaml`."""
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
        raise FrameError(f"no table places the camera {camera!r}", hint=did_you_mean(camera, TABLES))
    return robot.constants[TABLES[camera]]
