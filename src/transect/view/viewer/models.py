"""What the robot looks like in 3-D: the shapes of its URDF, or the body that its description gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.geometry import meshes, se3
from transect.recording import FrameTree, Recording, Robot
from transect.robots.description import body_of, numbers_of
from transect.types import JointState

if TYPE_CHECKING:
    from transect.robots.urdf import Shape, Urdf

    from .scene import Scene

MOST_TRIANGLES = 20_000
"""Of one mesh; of a finer one only every n-th is sent."""
WHEEL = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
"""Turns a cylinder about z so that it rolls along x."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A part of the robot."""

    frame: str  # with which it moves
    role: str
    triangles: Floats  # (n, 3, 3) in that frame, m

    def describe(self) -> dict[str, Any]:
        """Return what the page is told; the triangles come when it asks for them."""
        return {"frame": self.frame, "role": self.role}


def solids_of(scene: Scene) -> tuple[Solid, ...]:
    """Return the body of the recording's robot, whose frames are all known; none where it has none."""
    robot = scene.recording.robot
    if robot is None:
        return ()
    try:
        found = [*_solids_of_robot(robot)]
    except TransectError:  # a person's own description may name what is not there
        return ()
    return tuple(solid for solid in found if solid.frame in scene.recording.frames)


def _solids_of_robot(robot: Robot) -> Iterator[Solid]:
    body = body_of(robot)
    for box in body.boxes.values():
        yield Solid(box.frame, "body", numbers_of(robot, box.xyz) + meshes.box(numbers_of(robot, box.size)))
    for wheel in body.wheels:
        diameter, width = numbers_of(robot, [wheel.diameter, wheel.width])
        rolling = se3.apply(WHEEL, meshes.cylinder(diameter / 2, width).reshape(-1, 3)).reshape(-1, 3, 3)
        yield Solid(wheel.frame, "wheel", numbers_of(robot, wheel.xyz) + rolling)


def dress(scene: Scene, path: Path | str) -> tuple[Scene, list[str]]:
    """Return a scene with the frames of a URDF and what its links look like, and what could not be drawn.

    Joints that a stream of joint states names move; the others stand at zero. The URDF's root is the frame
    of that name, else it is put onto the body, z up as URDF has it.
    """
    from transect.robots import urdf as urdfs

    urdf = urdfs.read(path)
    recording, body = scene.recording, scene.body
    tree = recording.frames.copy()
    for part in (*_moving_parts(urdf, recording), urdf.frames(dict.fromkeys(urdf.driven, 0.0))):
        tree = tree.complete(part)
    if body and urdf.root != body and urdf.root in tree and tree.parent_of(urdf.root) is None:
        tree.add_static(body, urdf.root, scene.stance, source=urdf.name)
    said = [f"{loss.file}:{loss.line}: {loss.reason}" for loss in urdf.losses]
    solids: list[Solid] = []
    for link in urdf.links:
        for shape in link.shapes:
            if shape.use == "visual":
                triangles, why = _triangles_of(shape)
                said += [f"{link.name}: {why}"] if why else []
                solids += [Solid(link.name, "body", triangles)] if len(triangles) else []
    return replace(scene, recording=recording.replace(frames=tree), solids=tuple(solids)), said


def _moving_parts(urdf: Urdf, recording: Recording) -> Iterator[FrameTree]:
    """Yield the joints that each stream of joint states moves, if it names all of them."""
    from transect.robots.urdf import joint_edges

    for stream in recording:
        if stream.type is not JointState or not len(stream):
            continue
        named = stream[0].value.names
        joints = [name for name in named or () if name in urdf.driven]
        if joints:
            yield joint_edges(urdf, stream, joints if len(joints) == len(named) else None)


def _triangles_of(shape: Shape) -> tuple[Floats, str]:
    """Return what a shape of a URDF looks like in its link (n, 3, 3), and why there is nothing."""
    from transect.robots.urdf.reading import read_mesh

    made = np.zeros((0, 3, 3))
    if shape.kind == "box":
        made = meshes.box(shape.size)
    elif shape.kind == "sphere":
        made = meshes.sphere(shape.size[0])
    elif shape.kind in ("cylinder", "capsule"):
        made = meshes.cylinder(*shape.size)
    elif shape.file is not None:
        try:
            made = read_mesh(shape.file) * np.asarray(shape.size)
        except TransectError as error:
            return made, error.what
    made = made[:: max(1, -(-len(made) // MOST_TRIANGLES))]
    return se3.apply(shape.origin.matrix, made.reshape(-1, 3)).reshape(-1, 3, 3), ""
