"""Conversion of a robot to links and joints, and to URDF text with full precision.

Frames become fixed joints, arms movable joints.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.errors import TransectError, UnsupportedError
from transect.geometry import rotations
from transect.recording import Robot

from ..chains import Chain, chain_of
from .model import Joint, JointLimit, Origin, Urdf, UrdfLink, UrdfShape

_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_]+")
_ARM_END = re.compile(r"(.+) \(end\)")


@dataclass(frozen=True, eq=False)
class RobotArm:
    """A kinematic chain in the tree of a robot."""

    chain: Chain
    frames: Sequence[str]  # its frames 0 to n, the base first; unnamed ones are created
    joints: Sequence[str]  # names of its n joints
    # effort, velocity: (n,), maximum torque (N m) and speed (rad/s) of the joints; NaN if unknown
    effort: Floats = field(default_factory=lambda: np.array(np.nan))
    velocity: Floats = field(default_factory=lambda: np.array(np.nan))


def arms_of(robot: Robot) -> tuple[RobotArm, ...]:
    """Return the arms that a robot's constants describe by Denavit-Hartenberg parameters.

    `arm` (a, alpha, d; modified) connects each pair of frames "X (base)" and "X (end)", as on Interact; each
    of `arms` names its frames, joints and convention, as on InSight.
    """
    arms: list[RobotArm] = []
    if "arm" in robot.constants:
        ends = (match for frame in robot.frames.frames if (match := _ARM_END.fullmatch(frame)))
        sides = [match[1] for match in ends if f"{match[1]} (base)" in robot.frames]
        arms += [_arm_between(side, chain_of(robot)) for side in sides]
    return (*arms, *(_described_arm(robot, arm) for arm in robot.constants.get("arms", ())))


def _described_arm(robot: Robot, arm: Mapping[str, Any]) -> RobotArm:
    missing = [key for key in ("frames", "joints", "a", "alpha", "d") if key not in arm]
    if missing:
        raise TransectError(
            f"an arm of the robot {robot.name} lacks {', '.join(missing)}",
            where="constants.arms",
            hint="compare the block `arms` of ida.yaml",
        )
    rows = {
        key: np.array(arm[key], dtype=np.float64)
        for key in ("a", "alpha", "d", "lower", "upper", "effort", "velocity")
        if key in arm
    }
    motors = {key: rows.pop(key) for key in ("effort", "velocity") if key in rows}
    return RobotArm(
        Chain(convention=arm.get("convention", "standard"), **rows), arm["frames"], arm["joints"], **motors
    )


def _arm_between(name: str, chain: Chain) -> RobotArm:
    inner = [f"{name} link {i}" for i in range(1, chain.joints)]
    joints = [f"{name} joint {i}" for i in range(1, chain.joints + 1)]
    return RobotArm(chain, (f"{name} (base)", *inner, f"{name} (end)"), joints)


def urdf_from_robot(robot: Robot, arms: Iterable[RobotArm] | None = None) -> Urdf:
    """Return a robot's frames as links.

    Parameters
    ----------
    arms : iterable of Arm, optional
        Chains to add; by default those of its constants (`arms_of`).

    Returns
    -------
    Urdf
        Names contain only letters, digits and underscores. A URDF is one tree: if the robot has several,
        whose relative poses only data determine, floating joints connect them to the largest.
    """
    if not len(robot.frames):
        raise UnsupportedError(f"{robot.name} has no frames to write", why="a URDF has at least one link")
    names = _Names()
    joints = [
        Joint(
            names.joint(f"{edge.parent} to {edge.child}"),
            "fixed",
            names.link(edge.parent),
            names.link(edge.child),
            Origin.of(edge.matrix),
        )
        for edge in robot.frames.edges
        if edge.matrix is not None
    ]
    for arm in arms_of(robot) if arms is None else arms:
        joints += _arm_joints(arm, names)
    joints = _sort_from_root([*joints, *_floating(joints, names)])
    children = [joint.child for joint in joints]
    roots = [name for name in names.links if name not in children]
    links = tuple(UrdfLink(name) for name in (*roots, *children))
    return Urdf(names.plain(robot.name), links, joints, notes=_notes(robot, joints))


def _arm_joints(arm: RobotArm, names: _Names) -> list[Joint]:
    """Return a chain's joints, axis z.

    Modified: ``Rx(alpha) Tx(a) Tz(d)``, then the rotation. Standard: the rotation comes first, followed by a
    fixed joint ``Tz(d) Tx(a) Rx(alpha)``.
    """
    chain, axis = arm.chain, (0.0, 0.0, 1.0)
    joints: list[Joint] = []
    for i, limit in enumerate(_limits(arm)):
        parent, child = names.link(arm.frames[i]), names.link(arm.frames[i + 1])
        name, kind = names.joint(arm.joints[i]), "continuous" if limit is None else "revolute"
        fixed = Origin.of(_fixed_part(chain, i))
        if chain.convention == "modified":
            joints.append(Joint(name, kind, parent, child, fixed, axis, limit))
        else:
            turned = names.link(f"{arm.joints[i]} turned")
            joints.append(Joint(name, kind, parent, turned, Origin(), axis, limit))
            joints.append(Joint(names.joint(f"{arm.joints[i]} to {child}"), "fixed", turned, child, fixed))
    return joints


def _limits(arm: RobotArm) -> list[JointLimit | None]:
    """Return the limits of each joint; None for a continuous one."""
    columns = (arm.chain.lower, arm.chain.upper, arm.effort, arm.velocity)
    rows = np.stack([np.broadcast_to(column, arm.chain.joints) for column in columns], axis=1)
    return [JointLimit(*row) if np.isfinite(row[:2]).all() else None for row in rows.tolist()]


def _fixed_part(chain: Chain, i: int) -> Floats:
    """Constant transform of link i; ``Tx(a) Rx(alpha)`` equals ``Rx(alpha) Tx(a)``."""
    T = np.eye(4)
    T[:3, :3] = rotations.matrix_from_euler("x", [chain.alpha[i]])
    shift = np.array([chain.a[i], 0.0, chain.d[i]])
    T[:3, 3] = shift if chain.convention == "standard" else T[:3, :3] @ shift
    return T


def _floating(joints: Sequence[Joint], names: _Names) -> list[Joint]:
    """Connect all other trees to the largest."""
    parent_of = {joint.child: joint.parent for joint in joints}

    def root_of(link: str) -> str:
        while link in parent_of:
            link = parent_of[link]
        return link

    sizes: dict[str, int] = {}
    for link in names.links:
        sizes[root_of(link)] = sizes.get(root_of(link), 0) + 1
    main, *others = sorted(sizes, key=lambda root: (-sizes[root], root))
    return [Joint(names.joint(f"{main} to {other}"), "floating", main, other) for other in others]


def _sort_from_root(joints: Sequence[Joint]) -> tuple[Joint, ...]:
    """Sort the joints so that parents precede children."""
    outgoing: dict[str, list[Joint]] = {}
    for joint in joints:
        outgoing.setdefault(joint.parent, []).append(joint)
    children = {joint.child for joint in joints}
    pending = [joint for joint in reversed(joints) if joint.parent not in children]
    ordered: list[Joint] = []
    while pending:
        ordered.append(pending.pop())
        pending += reversed(outgoing.get(ordered[-1].child, []))
    return tuple(ordered)


def _notes(robot: Robot, joints: Sequence[Joint]) -> tuple[str, ...]:
    notes = [" ".join(text.split()) for text in (robot.title, robot.reference) if text]
    if robot.z_down:
        notes.append("z of the root points down")
    if any(joint.type == "floating" for joint in joints):
        notes.append("floating: only a recording says how these parts stand to each other")
    if robot.cameras:
        notes.append(f"without the optics of its cameras, which URDF cannot hold: {', '.join(robot.cameras)}")
    return tuple(notes)


class _Names:
    """Unique names that ROS accepts, in the order of request."""

    def __init__(self) -> None:
        self._links: dict[str, str] = {}
        self._joints: set[str] = set()

    @property
    def links(self) -> tuple[str, ...]:
        return tuple(self._links.values())

    def plain(self, name: str) -> str:
        return _INVALID_CHARACTERS.sub("_", name).strip("_") or "unnamed"

    def link(self, frame: str) -> str:
        if frame not in self._links:
            self._links[frame] = self._find_unused(frame, set(self._links.values()))
        return self._links[frame]

    def joint(self, wanted: str) -> str:
        name = self._find_unused(wanted, self._joints)
        self._joints.add(name)
        return name

    def _find_unused(self, wanted: str, taken: set[str]) -> str:
        name = plain = self.plain(wanted)
        number = 2
        while name in taken:
            name, number = f"{plain}_{number}", number + 1
        return name


_SIZES = {
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "sphere": ("radius",),
}
_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def text_of(urdf: Urdf) -> str:
    """Return a robot as the text of a URDF file."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    root = etree.Element("robot", name=urdf.name)
    for note in urdf.notes:
        # "--" is not allowed in XML comments
        root.append(etree.Comment(f" {note.replace('--', '- -')} "))
    for link in urdf.links:
        _add_link(root, link)
    for joint in urdf.joints:
        _add_joint(root, joint)
    etree.indent(root, "  ")
    return '<?xml version="1.0"?>\n' + etree.tostring(root, encoding="unicode") + "\n"


def _add(parent: Any, tag: str, attributes: Mapping[str, str]) -> Any:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    return etree.SubElement(parent, tag, {key: text for key, text in attributes.items() if text})


def _numbers(values: Iterable[float]) -> str:
    """Return numbers with the fewest digits that are parsed as equal; whole numbers without a point."""
    return " ".join(
        str(int(v)) if v.is_integer() and abs(v) < 1e15 else repr(v) for v in (float(v) + 0.0 for v in values)
    )


def _add_origin(parent: Any, origin: Origin) -> None:
    if origin != Origin():
        _add(parent, "origin", {"xyz": _numbers(origin.xyz), "rpy": _numbers(origin.rpy)})


def _add_link(root: Any, link: UrdfLink) -> None:
    element = _add(root, "link", {"name": link.name})
    if link.inertial is not None:
        inertial = _add(element, "inertial", {})
        _add_origin(inertial, link.inertial.origin)
        _add(inertial, "mass", {"value": _numbers([link.inertial.mass])})
        moments = zip(_INERTIA, link.inertial.inertia, strict=True)
        _add(inertial, "inertia", {key: _numbers([value]) for key, value in moments})
    for shape in link.shapes:
        _add_shape(element, shape)


def _add_shape(link: Any, shape: UrdfShape) -> None:
    element = _add(link, shape.use, {"name": shape.name})
    _add_origin(element, shape.origin)
    geometry = _add(element, "geometry", {})
    if shape.kind == "mesh":
        scale = _numbers(shape.size) if shape.size != (1.0, 1.0, 1.0) else ""
        _add(geometry, "mesh", {"filename": shape.mesh, "scale": scale})
    elif shape.kind == "box":
        _add(geometry, "box", {"size": _numbers(shape.size)})
    else:
        sizes = zip(_SIZES[shape.kind], shape.size, strict=True)
        _add(geometry, shape.kind, {key: _numbers([value]) for key, value in sizes})


def _add_joint(root: Any, joint: Joint) -> None:
    element = _add(root, "joint", {"name": joint.name, "type": joint.type})
    _add_origin(element, joint.origin)
    _add(element, "parent", {"link": joint.parent})
    _add(element, "child", {"link": joint.child})
    if joint.axis != (1.0, 0.0, 0.0):
        _add(element, "axis", {"xyz": _numbers(joint.axis)})
    if joint.limit is not None:
        limit = joint.limit
        known = {
            "lower": limit.lower,
            "upper": limit.upper,
            "effort": limit.effort,
            "velocity": limit.velocity,
        }
        _add(element, "limit", {key: _numbers([v]) for key, v in known.items() if not math.isnan(v)})
    if joint.mimic is not None:
        mimic = joint.mimic
        numbers = {"multiplier": _numbers([mimic.multiplier]), "offset": _numbers([mimic.offset])}
        _add(element, "mimic", {"joint": mimic.joint, **numbers})
