"""Joint states drive frames: from a stream of positions to moving edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.errors import StreamError
from transect.geometry import se3
from transect.recording import FrameTree, Stream, arrow

from .model import DRIVEN, Joint, Urdf

pc: Any = pyarrow.compute  # its functions are made when it is imported, so no type checker knows them

Driven = tuple[Ints, Floats]
"""Rows of a stream (m,) in which a joint is named, and its positions there (m,)."""


def joint_edges(urdf: Urdf, stream: Stream, joints: Sequence[str] | None = None) -> FrameTree:
    """Return the moving edges that a stream of joint states drives, mimicking joints among them.

    The stream's table is read when a lookup first needs it. Between two samples an edge turns along the
    shorter arc: more than half a turn from one to the next cannot be told from less the other way.

    Parameters
    ----------
    urdf : Urdf
    stream : Stream
        Of JointState: `position` in rad or m, and `names` if the file had them.
    joints : sequence of str, optional
        Names of the stream's positions, in order. By default the stream's own `names`; without those, the
        driven joints of the URDF in its order, if there are as many.

    Returns
    -------
    FrameTree
        To be put into another: ``rec.frames.merged(robot.frames).merged(joint_edges(urdf, stream))``.
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
    """Return the joint whose position the stream has to give."""
    while joint.mimic is not None:
        joint = urdf.joint(joint.mimic.joint)
    return joint.name


def _once(read: Callable[[], dict[str, Driven]]) -> Callable[[], dict[str, Driven]]:
    """Return a function that reads at its first call; all edges of a stream share it."""
    known: dict[str, Driven] = {}

    def cached() -> dict[str, Driven]:
        if not known:
            known.update(read())
        return known

    return cached


def _poses(
    urdf: Urdf, joint: Joint, leader: str, stream: Stream, read: Callable[[], dict[str, Driven]]
) -> tuple[Ints, Floats, Floats]:
    """Return times, positions and orientations of a joint's child; none if the stream does not name it."""
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
    """Sort positions by the names beside them; each sample may have its own joints in its own order."""
    table = stream.table.select(["names", "position"])
    # A sample may give velocities only: names without positions place nothing.
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
