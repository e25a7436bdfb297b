"""Drawing of a robot from its description: frames, cameras, arms, and the geometry of `body`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.draw.robots import Dimension, RobotScene, RobotSolid
from transect.errors import TransectError
from transect.geometry import rotations, se3
from transect.geometry.planar import points_from_polar
from transect.recording import FrameTree, Robot
from transect.types import CameraModel

from . import load
from .description import RobotBody, body_of, number_of, numbers_of

if TYPE_CHECKING:
    from .urdf import RobotArm, Urdf

FIELD_LENGTH_RATIO = 0.28
"""Drawn length of the field of view of a sensor relative to the largest extent of the robot."""
OVERALL = (("length", 0), ("width", 1), ("height", 2))


def load_scene(name: str | Path) -> tuple[str, RobotScene]:
    """Return the name and the drawing of a robot, by its name or the path of its YAML or URDF file."""
    if Path(name).suffix in (".urdf", ".xacro"):
        from . import urdf

        read = urdf.read(name)
        return read.name, scene_of_urdf(read)
    robot = load(name)
    return robot.name, scene_of(robot)


def scene_of(robot: Robot, posture: Mapping[str, ArrayLike] | None = None) -> RobotScene:
    """Return the drawing of a robot.

    Parameters
    ----------
    posture : mapping of str to (k,) array
        Joint angles, rad, of arms by the name of their base frame.

    Notes
    -----
    Other arms have the posture of `body`. Frames that are only known from recordings are omitted and listed
    in the legend.

    Raises
    ------
    TransectError
        If it has no frames, or its body refers to an unknown frame or constant.
    """
    from .urdf import arms_of

    if not len(robot.frames):
        raise TransectError(
            f"the robot {robot.name} has no frames to draw", hint="describe its frames in YAML"
        )
    body, arms = body_of(robot), arms_of(robot)
    tree = _posed(robot, body, arms, {**body.posture, **(posture or {})})
    poses = _poses(tree, robot.z_down)
    solids = [*_boxes(robot, body, poses), *_wheels(robot, body, poses)]
    shown = [arm for arm in arms if arm.frames[-1] in poses]
    chains = [np.stack([poses[frame][:3, 3] for frame in arm.frames]) for arm in shown]
    points = np.concatenate([*(pose[:3, 3][None] for pose in poses.values()), *(s.points for s in solids)])
    field_length = FIELD_LENGTH_RATIO * (float(np.ptp(points, axis=0).max()) or 1.0)
    solids += [*_fields(robot, body, poses, field_length)]
    inner = {frame for arm in arms for frame in arm.frames if frame not in robot.frames}
    return RobotScene(
        robot.title or robot.name,
        {name: pose for name, pose in poses.items() if name not in inner},
        solids,
        chains,
        [
            Dimension(each.name, *(se3.apply(_pose(poses, each.frame, robot), numbers_of(robot, end))
                              for end in (each.start, each.end)))
            for each in body.lengths
        ],
        _facts(robot, body, arms, [name for name in tree.frames if name not in poses]),
    )  # fmt: skip


def scene_of_urdf(urdf: Urdf) -> RobotScene:
    """Return the drawing of a URDF, joints at zero, with the boxes, cylinders and spheres of its links."""
    tree = urdf.frames(dict.fromkeys(urdf.driven, 0.0))
    poses = _poses(tree, False) if len(tree) else {urdf.root: np.eye(4)}
    solids = [
        RobotSolid(se3.apply(poses[link.name] @ shape.origin.matrix, points))
        for link in urdf.links
        for shape in link.shapes
        if shape.use == "visual" and link.name in poses
        if (points := _points_of_shape(shape.kind, shape.size)) is not None
    ]
    moving = [joint for joint in urdf.joints if joint.type != "fixed"]
    chains = [
        np.stack([poses[joint.parent][:3, 3], poses[joint.child][:3, 3]])
        for joint in moving
        if joint.parent in poses and joint.child in poses
    ]
    hidden = [link.name for link in urdf.links if link.name not in poses]
    facts = [("joints, at zero", _truncate([f"{j.name}: {j.type}" for j in moving], 12))] if moving else []
    facts += [("not drawn: their place is not fixed", _truncate(hidden, 8))] if hidden else []
    spans = _overall(np.concatenate([solid.points for solid in solids])) if solids else []
    return RobotScene(urdf.name, poses, solids, chains, spans, facts)


def _posed(
    robot: Robot, body: RobotBody, arms: Iterable[RobotArm], posture: Mapping[str, ArrayLike]
) -> FrameTree:
    """Return the robot's frames with its arms in a posture, and the invented frames of `body`."""
    tree = robot.frames.copy()
    for arm in arms:
        q = np.asarray(posture.get(arm.frames[0], np.zeros(arm.chain.joints)), dtype=np.float64)
        if q.shape != (arm.chain.joints,):
            raise TransectError(
                f"the posture of {arm.frames[0]} has {q.size} angles, expected {arm.chain.joints}",
                where=f"body of the robot {robot.name}",
            )
        for parent, child, step in zip(arm.frames[:-1], arm.frames[1:], arm.chain.steps(q), strict=True):
            tree.add_static(parent, child, step, source="posture")
    for frame, (x, y, z, *angles) in body.place.items():
        pose = se3.from_matrix(rotations.matrix_from_euler("rpy", angles), (x, y, z))
        tree.add_static(_main_root(tree), frame, pose, source="place in the picture")
    return tree


def _main_root(tree: FrameTree) -> str:
    """Return the root of the largest tree."""
    roots = [tree.ancestry(frame)[-1] for frame in tree.frames]
    return max(roots, key=roots.count)


def _poses(tree: FrameTree, z_down: bool) -> dict[str, Floats]:
    """Return the poses of the largest tree, its root first, z up."""
    upright, root = np.diag([1.0, -1.0, -1.0, 1.0]) if z_down else np.eye(4), _main_root(tree)
    return {frame: upright @ pose for frame, pose in {root: np.eye(4), **tree.poses_below(root)}.items()}


def _pose(poses: Mapping[str, Floats], frame: str, robot: Robot) -> Floats:
    if frame not in poses:
        raise TransectError(
            f"{frame!r} is no frame that can be drawn", where=f"body of the robot {robot.name}",
            hint=f"its frames are {', '.join(poses)}",
        )  # fmt: skip
    return poses[frame]


def _boxes(robot: Robot, body: RobotBody, poses: Mapping[str, Floats]) -> Iterable[RobotSolid]:
    for name, box in body.boxes.items():
        points = numbers_of(robot, box.xyz) + _box_points(numbers_of(robot, box.size))
        yield RobotSolid(se3.apply(_pose(poses, box.frame, robot), points), "body", name, box.invented)


def _wheels(robot: Robot, body: RobotBody, poses: Mapping[str, Floats]) -> Iterable[RobotSolid]:
    for wheel in body.wheels:
        diameter, width = numbers_of(robot, [wheel.diameter, wheel.width])
        points = numbers_of(robot, wheel.xyz) + _cylinder_points(diameter / 2, width)[:, [0, 2, 1]]
        yield RobotSolid(
            se3.apply(_pose(poses, wheel.frame, robot), points), "wheel", wheel.name, wheel.invented
        )


def _fields(
    robot: Robot, body: RobotBody, poses: Mapping[str, Floats], length: float
) -> Iterable[RobotSolid]:
    for camera in robot.cameras.values():
        if camera.frame in poses:
            yield RobotSolid(se3.apply(poses[camera.frame], length * _pyramid(camera)), "camera")
    for scan in body.scans:
        half = min(number_of(robot, scan.opening), 2 * np.pi) / 2
        rim = points_from_polar(length, np.linspace(-half, half, 61))
        yield RobotSolid(se3.apply(_pose(poses, scan.frame, robot), np.vstack([rim, np.zeros(3)])), "scan")


def _pyramid(camera: CameraModel) -> Floats:
    """(5, 3): the camera and the corners of its image, 1 m away, without its distortion."""
    corners = np.array([[0, 0], [camera.width, 0], [camera.width, camera.height], [0, camera.height]])
    rays = np.concatenate([(corners - camera.K[:2, 2]) / camera.K.diagonal()[:2], np.ones((4, 1))], axis=1)
    return np.vstack([np.zeros(3), rays])


def _points_of_shape(kind: str, size: tuple[float, ...]) -> Floats | None:
    """Return points (k, 3) of a URDF shape; None for a mesh."""
    if kind == "box":
        return _box_points(size)
    if kind == "sphere":
        angles = np.linspace(-np.pi / 2, np.pi / 2, 13)
        rims = [_cylinder_points(size[0] * np.cos(angle), 2 * size[0] * np.sin(angle)) for angle in angles]
        return np.concatenate(rims)
    return _cylinder_points(*size) if kind in ("cylinder", "capsule") else None


def _box_points(size: ArrayLike) -> Floats:
    signs = np.stack(np.meshgrid(*[[-0.5, 0.5]] * 3), axis=-1).reshape(-1, 3)
    return signs * np.asarray(size, dtype=np.float64)


def _cylinder_points(radius: float, length: float) -> Floats:
    """Return both rims of a cylinder about z."""
    ring = points_from_polar(radius, np.linspace(0, 2 * np.pi, 48, endpoint=False))
    half = np.array([0.0, 0.0, length / 2])
    return np.concatenate([ring + half, ring - half])


def _overall(points: Floats) -> list[Dimension]:
    """Return length, width and height of points."""
    low, high = points.min(axis=0), points.max(axis=0)
    corners = {axis: np.where(np.arange(3) == axis, high, low) for axis in range(3)}
    return [Dimension(name, low, corners[axis]) for name, axis in OVERALL if high[axis] > low[axis]]


def _facts(
    robot: Robot, body: RobotBody, arms: Iterable[RobotArm], hidden: list[str]
) -> list[tuple[str, list[str]]]:
    facts: list[tuple[str, list[str]]] = []
    if robot.cameras:
        facts.append(("cameras", [_camera_text(camera) for camera in robot.cameras.values()]))
    by_ranges: dict[tuple[str, ...], list[str]] = {}
    for arm in arms:
        name = arm.frames[0].removesuffix(" (base)")
        by_ranges.setdefault(tuple(_range_texts(arm, name)), []).append(name)
    facts += [(f"joints of {', '.join(names)}", list(lines)) for lines, names in by_ranges.items()]
    if hidden:
        facts.append(("not drawn: only a recording\nknows their place", _truncate(hidden, 6)))
    guesses = any(part.invented for part in (*body.boxes.values(), *body.wheels))
    drawn = ["fields of view end where it suits"] if robot.cameras or body.scans else []
    drawn += ["dashed: a guess, not in the document"] if guesses else []
    drawn += [f"place of {', '.join(body.place)}: a guess"] if body.place else []
    return [*facts, *([("drawn", drawn)] if drawn else [])]


def _camera_text(camera: CameraModel) -> str:
    size = np.array([camera.width, camera.height])
    centre, focal = camera.K[:2, 2], camera.K.diagonal()[:2]
    across, up = np.degrees(np.arctan(centre / focal) + np.arctan((size - centre) / focal))
    guess = " (a guess)" if camera.invented else ""
    return f"{camera.name}  {camera.width} × {camera.height}, {across:.0f}° × {up:.0f}°{guess}"


def _range_texts(arm: RobotArm, name: str) -> Iterable[str]:
    limits = np.degrees(np.stack(np.broadcast_arrays(arm.chain.lower, arm.chain.upper), axis=-1))
    for joint, (low, high) in zip(arm.joints, limits.tolist(), strict=True):
        yield f"{joint.removeprefix(name).strip()}  {_degrees(low)} to {_degrees(high)}"


def _degrees(angle: float) -> str:
    return f"{angle:+.0f}°".replace("-", "\N{MINUS SIGN}") if np.isfinite(angle) else "no limit"


def _truncate(lines: list[str], limit: int) -> list[str]:
    return lines if len(lines) <= limit else [*lines[: limit - 1], f"and {len(lines) - limit + 1} more"]
