"""URDF model: links, joints, and their transforms at joint positions.

`joint_edges` moves the frames by a stream of joint states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Ints
from transect.errors import FrameError, GeometryError, StreamError, did_you_mean
from transect.geometry import rotations, se3
from transect.geometry.array_checks import floats
from transect.recording import FrameTree, Loss, Stream, arrow

JointType = Literal["fixed", "revolute", "continuous", "prismatic", "floating", "planar"]
Vector = tuple[float, float, float]

DRIVEN = ("revolute", "continuous", "prismatic")
"""Joints with one degree of freedom."""
FREE = ("floating", "planar")
"""Joints with several degrees of freedom: a URDF does not determine the pose of the child."""


@dataclass(frozen=True)
class Origin:
    """A pose in URDF: `xyz` in metres, and roll, pitch, yaw about fixed axes in rad."""

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
        # The angles have an error in the 16th digit: rounding makes them as short as the given ones. Adding
        # zero removes -0.0.
        rpy = rotations.euler_from_matrix("rpy", T[:3, :3]).round(14) + 0.0
        x, y, z, roll, pitch, yaw = (float(v) for v in (*(T[:3, 3] + 0.0), *rpy))
        return Origin((x, y, z), (roll, pitch, yaw))


@dataclass(frozen=True)
class JointLimit:
    """Limits of a joint: rad or m, N m or N, rad/s or m/s; NaN if not given."""

    lower: float = 0.0
    upper: float = 0.0
    effort: float = float("nan")
    velocity: float = float("nan")

    def __eq__(self, other: object) -> bool:
        mine = (self.lower, self.upper, self.effort, self.velocity)
        return isinstance(other, JointLimit) and np.array_equal(
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
    """Connection of a child link to its parent."""

    name: str
    type: JointType
    parent: str
    child: str
    origin: Origin = Origin()  # T_parent_child at position zero
    # (3,) unit vector in the child frame: rotation axis of a revolute, direction of a prismatic joint
    axis: Vector = (1.0, 0.0, 0.0)
    limit: JointLimit | None = None
    mimic: Mimic | None = None
    line: int | None = field(default=None, compare=False)  # in the file

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
class UrdfInertial:
    """Mass in kg, centre of mass, and inertia ixx ixy ixz iyy iyz izz about it in kg m2."""

    mass: float
    inertia: tuple[float, float, float, float, float, float]
    origin: Origin = Origin()


@dataclass(frozen=True)
class UrdfShape:
    """Visual or collision geometry of a link."""

    use: str
    kind: str
    # metres: edges of a box; radius and length of a cylinder; radius of a sphere; for a mesh its scale
    size: tuple[float, ...]
    origin: Origin = Origin()
    name: str = ""
    mesh: str = ""  # path or `package://` address in the file
    file: Path | None = field(default=None, compare=False)  # of the mesh
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class UrdfLink:
    """A rigid body and its frame."""

    name: str
    inertial: UrdfInertial | None = None
    shapes: tuple[UrdfShape, ...] = ()
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Urdf:
    """A tree of links and joints."""

    name: str
    links: tuple[UrdfLink, ...]  # in the order of the file
    joints: tuple[Joint, ...] = ()  # in the order of the file
    # missing meshes, with their lines
    losses: tuple[Loss, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)  # written as comments

    @property
    def root(self) -> str:
        """The link without a parent."""
        children = {joint.child for joint in self.joints}
        return next(link.name for link in self.links if link.name not in children)

    @property
    def driven(self) -> tuple[str, ...]:
        """Names of the joints with one degree of freedom that mimic no other, in the order of the file."""
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
        """Return the position (...) of a joint from driven ones that it may mimic; None if unknown."""
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
            Positions of driven joints, rad or m. Joints without a position have no edge; default: only fixed
            joints.
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


pc: Any = pyarrow.compute  # its functions are created at import, so type checkers do not know them

Driven = tuple[Ints, Floats]
"""Rows (m,) of a stream that contain a joint, and its positions (m,)."""


def joint_edges(urdf: Urdf, stream: Stream, joints: Sequence[str] | None = None) -> FrameTree:
    """Return the moving edges of a stream of joint states, including mimicking joints.

    The table of the stream is read at the first lookup. Between two samples an edge rotates along the shorter
    arc: more than half a turn is ambiguous.

    Parameters
    ----------
    stream : Stream
        JointState: `position` in rad or m, and optional `names`.
    joints : sequence of str, optional
        Names of the stream's positions, in order. By default the stream's own `names`; without those, the
        driven joints of the URDF in its order, if there are as many.

    Returns
    -------
    FrameTree
        For example for ``rec.frames.merge(robot.frames).merge(joint_edges(urdf, stream))``.
    """
    for name in joints or ():
        urdf.joint(name)
    tree = FrameTree()
    read = _once(partial(_positions, urdf, stream, joints))
    for joint in urdf.joints:
        leader = _leader(urdf, joint)
        if joint.type in DRIVEN and (joints is None or leader in joints):
            poses = partial(_poses, urdf, joint, leader, stream, read)
            tree.add_lazy(joint.parent, joint.child, poses, clock=stream.clock, source=stream.name)
    return tree


def _leader(urdf: Urdf, joint: Joint) -> str:
    """Return the joint of the stream that determines the position of a joint."""
    while joint.mimic is not None:
        joint = urdf.joint(joint.mimic.joint)
    return joint.name


def _once(read: Callable[[], dict[str, Driven]]) -> Callable[[], dict[str, Driven]]:
    """Return a function that reads at its first call; shared by all edges of a stream."""
    known: dict[str, Driven] = {}

    def cached() -> dict[str, Driven]:
        if not known:
            known.update(read())
        return known

    return cached


def _poses(
    urdf: Urdf, joint: Joint, leader: str, stream: Stream, read: Callable[[], dict[str, Driven]]
) -> tuple[Ints, Floats, Floats]:
    """Return times, positions and orientations of a joint's child; empty if the stream lacks the joint."""
    rows, q = read().get(leader, (np.zeros(0, np.int64), np.zeros(0)))
    position = urdf.position_of(joint, {leader: q})
    assert position is not None
    orientations, positions = se3.to_quaternion(joint.transforms(position))
    return stream.t_ns[rows], positions, orientations


def _positions(urdf: Urdf, stream: Stream, joints: Sequence[str] | None) -> dict[str, Driven]:
    """Return rows and positions by joint."""
    if joints is None and "names" in stream.columns:
        return _sort_positions(stream)
    q = np.asarray(stream.column("position"), dtype=np.float64).reshape(len(stream), -1)
    names = tuple(joints) if joints is not None else urdf.driven
    if len(stream) and q.shape[1] != len(names):
        raise StreamError(
            f"{stream.name} has {q.shape[1]} positions a sample, {urdf.name} wants {len(names)}",
            why=f"they would be {', '.join(names)}",
            hint="name the stream's positions in order with joints=[...]",
        )
    every = np.arange(len(stream))
    return {name: (every, q[:, i]) for i, name in enumerate(names)} if len(stream) else {}


def _sort_positions(stream: Stream) -> dict[str, Driven]:
    """Group positions by joint names; joints and their order may differ between samples."""
    table = stream.table.select(["names", "position"])
    # samples with velocities only have names without positions
    lengths = [pc.list_value_length(table.column(key)) for key in ("names", "position")]
    complete = pc.equal(*lengths)
    kept = np.flatnonzero(_values(complete))
    names, positions = (pc.list_flatten(column) for column in table.filter(complete).columns)
    rows = kept[_values(pc.list_parent_indices(table.filter(complete).column("names")))]
    encoded = names.combine_chunks().dictionary_encode()
    which, q = _values(encoded.indices), _values(positions).astype(np.float64)
    return {
        name: (rows[which == code], q[which == code])
        for code, name in enumerate(encoded.dictionary.to_pylist())
    }


def _values(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    return arrow.numbers(pa.table({"values": column}), "values")
