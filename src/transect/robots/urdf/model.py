"""What a URDF says: links, the joints between them, and the transforms that joint positions make of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import FrameError, GeometryError, did_you_mean
from transect.geometry import rotations, se3
from transect.geometry._arrays import floats
from transect.recording import FrameTree, Loss

JointType = Literal["fixed", "revolute", "continuous", "prismatic", "floating", "planar"]
Vector = tuple[float, float, float]

DRIVEN = ("revolute", "continuous", "prismatic")
"""Joints that one number places."""
FREE = ("floating", "planar")
"""Joints of several degrees of freedom: nothing in a URDF says where the child is."""


@dataclass(frozen=True)
class Origin:
    """A pose as URDF writes it: `xyz` in metres, and roll, pitch, yaw about fixed axes in rad."""

    xyz: Vector = (0.0, 0.0, 0.0)
    rpy: Vector = (0.0, 0.0, 0.0)

    @cached_property
    def matrix(self) -> Floats:
        """(4, 4) transform, ``R = Rz(yaw) Ry(pitch) Rx(roll)``."""
        return se3.from_matrix(rotations.matrix_from_euler("rpy", self.rpy), self.xyz)

    @staticmethod
    def of(matrix: ArrayLike) -> Origin:
        """Return the origin of a rigid (4, 4) transform."""
        T = floats("transform", matrix, (4, 4))
        # Angles come back with an error in their 16th digit: without it they are as short as they were given.
        # Plus zero: no file needs a -0.0.
        rpy = rotations.euler_from_matrix("rpy", T[:3, :3]).round(14) + 0.0
        x, y, z, roll, pitch, yaw = (float(v) for v in (*(T[:3, 3] + 0.0), *rpy))
        return Origin((x, y, z), (roll, pitch, yaw))


@dataclass(frozen=True)
class Limit:
    """How far, how hard and how fast a joint moves: rad or m, N m or N, rad/s or m/s; NaN: not given."""

    lower: float = 0.0
    upper: float = 0.0
    effort: float = float("nan")
    velocity: float = float("nan")

    def __eq__(self, other: object) -> bool:
        mine = (self.lower, self.upper, self.effort, self.velocity)
        return isinstance(other, Limit) and np.array_equal(
            mine, (other.lower, other.upper, other.effort, other.velocity), equal_nan=True
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: ``position = multiplier * position of joint + offset``."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Joint:
    """What ties a child link to its parent.

    Attributes
    ----------
    origin : Origin
        T_parent_child at position zero.
    axis : (3,) tuple
        Unit vector in the child's frame: what a revolute joint turns about, a prismatic one slides along.
    line : int or None
        Where it stands in the file.
    """

    name: str
    type: JointType
    parent: str
    child: str
    origin: Origin = Origin()
    axis: Vector = (1.0, 0.0, 0.0)
    limit: Limit | None = None
    mimic: Mimic | None = None
    line: int | None = field(default=None, compare=False)

    def transforms(self, positions: ArrayLike) -> Floats:
        """T_parent_child (..., 4, 4) at positions (...) in rad or m; NaN where the joint is free."""
        q = floats(f"positions of {self.name}", positions, (...,))
        if self.type in FREE:
            return np.full((*q.shape, 4, 4), np.nan)
        step = np.broadcast_to(np.eye(4), (*q.shape, 4, 4)).copy()
        if self.type == "prismatic":
            step[..., :3, 3] = q[..., None] * np.asarray(self.axis)
        elif self.type in DRIVEN:
            step[..., :3, :3] = rotations.matrix_from_rotation_vector(q[..., None] * np.asarray(self.axis))
        return self.origin.matrix @ step


@dataclass(frozen=True)
class Inertial:
    """Mass in kg, its centre, and the inertia ixx ixy ixz iyy iyz izz about it in kg m2."""

    mass: float
    inertia: tuple[float, float, float, float, float, float]
    origin: Origin = Origin()


@dataclass(frozen=True)
class Shape:
    """What a link looks like, or bumps into.

    Attributes
    ----------
    use : {"visual", "collision"}
    kind : {"mesh", "box", "cylinder", "sphere", "capsule"}
    size : tuple of float
        Metres: edges of a box; radius and length of a cylinder; radius of a sphere; for a mesh its scale.
    mesh : str
        Path or `package://` address as it stands in the file.
    file : Path or None
        Where the mesh was found.
    """

    use: str
    kind: str
    size: tuple[float, ...]
    origin: Origin = Origin()
    name: str = ""
    mesh: str = ""
    file: Path | None = field(default=None, compare=False)
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Link:
    """A rigid part, which is also a frame."""

    name: str
    inertial: Inertial | None = None
    shapes: tuple[Shape, ...] = ()
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Urdf:
    """A robot of links and joints: one tree, parents before children.

    Attributes
    ----------
    links : tuple of Link
        In the order of the file.
    joints : tuple of Joint
        In the order of the file.
    losses : tuple of Loss
        Meshes that are not there, with the line that names them.
    notes : tuple of str
        What to know of it; written as comments.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...] = ()
    losses: tuple[Loss, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def root(self) -> str:
        """The link without a parent."""
        children = {joint.child for joint in self.joints}
        return next(link.name for link in self.links if link.name not in children)

    @property
    def driven(self) -> tuple[str, ...]:
        """Names of the joints that a position places and that follow no other, in the order of the file."""
        return tuple(joint.name for joint in self.joints if joint.type in DRIVEN and joint.mimic is None)

    def joint(self, name: str) -> Joint:
        """Return a joint by its name."""
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise FrameError(
            f"{self.name} has no joint {name!r}",
            hint=did_you_mean(name, [joint.name for joint in self.joints]),
        )

    def position_of(self, joint: Joint, positions: Mapping[str, Floats]) -> Floats | None:
        """Return where a joint stands (...), given driven ones that it may mimic; None if they do not say."""
        if joint.mimic is None:
            return positions.get(joint.name)
        leader = self.position_of(self.joint(joint.mimic.joint), positions)
        return None if leader is None else joint.mimic.multiplier * leader + joint.mimic.offset

    def transforms(self, positions: ArrayLike) -> dict[str, Floats]:
        """Transforms of all joints at many positions.

        Parameters
        ----------
        positions : (..., n) array
            rad or m, in the order of `driven`.

        Returns
        -------
        dict of str to (..., 4, 4) array
            T_parent_child by the joint's name; NaN for a floating or planar joint.
        """
        names = self.driven
        q = floats("joint positions", positions, (..., len(names)))
        known = {name: q[..., i] for i, name in enumerate(names)}
        zero = np.zeros(q.shape[:-1])
        result: dict[str, Floats] = {}
        for joint in self.joints:
            position = self.position_of(joint, known) if joint.type in DRIVEN else zero
            assert position is not None
            result[joint.name] = joint.transforms(position)
        return result

    def frames(self, positions: Mapping[str, float] | None = None) -> FrameTree:
        """Return the links as frames.

        Parameters
        ----------
        positions : mapping of str to float, optional
            Where driven joints stand, rad or m. A joint that is not named has no edge, as nothing says where
            it stands; without any, only what is fixed is there.
        """
        given = {name: np.asarray(value, dtype=np.float64) for name, value in (positions or {}).items()}
        for name in given:
            if name not in self.driven:
                raise GeometryError(
                    f"{name!r} is no joint of {self.name} that can be placed",
                    hint=did_you_mean(name, self.driven),
                )
        tree = FrameTree()
        for joint in self.joints:
            at = self.position_of(joint, given) if joint.type in DRIVEN else np.zeros(())
            if at is not None and joint.type not in FREE:
                tree.add_static(joint.parent, joint.child, joint.transforms(at), source=self.name)
        return tree
