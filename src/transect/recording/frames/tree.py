"""Frame tree: named frames connected by static and moving transforms.

``T_a_b`` transforms points of b to a. An edge has ``T_parent_child``: the pose of the child in its parent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.base.clocks import text_from_ns
from transect.errors import FrameError, did_you_mean

if TYPE_CHECKING:
    from transect.types import Transform

    from .motion import FrameMotion

Missing = Literal["raise", "nan"]
Lookup = Callable[[Any, float, Missing], Floats]
"""(t_ns, tolerance in seconds, missing) to T_target_source."""
LazyPoses = Callable[[], tuple[ArrayLike, ArrayLike, ArrayLike]]
"""Returns t_ns, positions and orientations of a moving edge."""

MAX_ORTHONORMALITY_ERROR = 1e-2
"""Largest difference of ``R.T @ R`` of a static edge from the identity: documents print three digits."""


@dataclass(frozen=True, eq=False)
class FrameEdge:
    """One transform of a tree: a child frame in its parent."""

    parent: str
    child: str
    source: str = ""  # Source of the numbers ("AMEDS Table 2", a stream, a file)
    clock: str = ""  # Clock of a moving edge's times; "" for a static one
    matrix: Floats | None = None  # (4, 4), T_parent_child of a static edge
    # Times and poses of a moving one; a callable is called on first access
    poses: FrameMotion | Callable[[], FrameMotion] | None = None

    @property
    def moving(self) -> bool:
        """Whether the transform depends on time."""
        return self.poses is not None

    @cached_property
    def motion(self) -> FrameMotion | None:
        """Times and poses of a moving edge, loaded on first access; None for a static one."""
        return self.poses() if callable(self.poses) else self.poses

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """First and last time of a moving edge; None for a static one or without poses."""
        return self.motion.span_ns if self.motion is not None else None

    @property
    def span_text(self) -> str:
        """The span of a moving edge as text; "" for a static one."""
        if self.motion is None:
            return ""
        if self.span_ns is None:
            return "no poses"
        first, last = (text_from_ns(t, self.clock) for t in self.span_ns)
        return f"{first} to {last}"

    def __str__(self) -> str:
        return f"{self.parent} -> {self.child}"

    def __repr__(self) -> str:
        kind = f"moving, {self.span_text} on {self.clock}" if self.moving else "static"
        return f"FrameEdge({self}, {kind}{', from ' + self.source if self.source else ''})"

    def same_as(self, other: FrameEdge) -> bool:
        """Return whether both have the same frames and transforms, regardless of their source."""
        if (self.parent, self.child, self.clock) != (other.parent, other.child, other.clock):
            return False
        if self.matrix is not None and other.matrix is not None:
            return np.array_equal(self.matrix, other.matrix)
        return self.motion is not None and other.motion is not None and self.motion.same_as(other.motion)


DirectedEdge = tuple[FrameEdge, bool]
"""An edge, and whether it is traversed from child to parent, with its inverse transform."""


class FrameTree:
    """Static and moving transforms between named frames.

    Every frame has at most one parent; there may be several roots. Between two poses of a moving edge the
    position is interpolated linearly and the attitude by SLERP, across gaps of any length. Before the first
    pose, after the last, and between joined recordings the transform is unknown, unless a lookup has a
    `tolerance`.

    Examples
    --------
    >>> tree = FrameTree()
    >>> tree.add_static("Origin", "Lidar", np.eye(4), source="drawing")
    >>> tree.lookup("Origin", "Lidar").shape
    (4, 4)
    """

    def __init__(self) -> None:
        self._edges: dict[str, FrameEdge] = {}
        self._compiled: dict[tuple[str, str], Lookup] = {}
        self._version = 0

    @property
    def version(self) -> int:
        """Incremented by every edit, to detect stale derived values."""
        return self._version

    def add_static(
        self, parent: str, child: str, T_parent_child: ArrayLike, *, source: str = "", replace: bool = False
    ) -> None:
        """Add a transform that does not change.

        Parameters
        ----------
        T_parent_child : (4, 4) array
            Transforms points of `child` to `parent`; metres.
        source : str
            Source of the numbers.
        replace : bool
            Whether an edge between the same two frames may be replaced by a different one.
        """
        matrix = _rigid(T_parent_child, f"{parent} -> {child}")
        self._add(FrameEdge(parent, child, source, matrix=matrix), replace)

    def add_moving(
        self,
        parent: str,
        child: str,
        t_ns: ArrayLike,
        positions: ArrayLike,
        orientations: ArrayLike,
        *,
        clock: str = "utc",
        source: str = "",
        replace: bool = False,
    ) -> None:
        """Add the pose of `child` in `parent` over time.

        Parameters
        ----------
        t_ns : (n,) int64 array
            Times on `clock`, in any order; the last of equal times is used.
        positions : (n, 3) array
            Origin of `child` in `parent`, metres. Poses with a NaN are left out.
        orientations : (n, 4) array
            Quaternions x, y, z, w that rotate vectors of `child` to `parent`.
        replace : bool
            Whether an edge between the same two frames, static or moving, may be replaced.
        """
        from .motion import motion_from_poses  # most trees of single sensors have no moving edge

        motion = motion_from_poses(t_ns, positions, orientations, where=f"{parent} -> {child}")
        self._add(FrameEdge(parent, child, source, clock=clock, poses=motion), replace)

    def add_lazy(
        self, parent: str, child: str, poses: LazyPoses, *, clock: str = "utc", source: str = ""
    ) -> None:
        """Add a moving edge whose poses, the arguments of `add_moving`, are computed by the first lookup."""

        def load() -> FrameMotion:
            from .motion import motion_from_poses

            return motion_from_poses(*poses(), where=f"{parent} -> {child}")

        self._add(FrameEdge(parent, child, source, clock=clock, poses=load), replace=False)

    def lookup(
        self,
        target: str,
        source: str,
        t_ns: int | np.integer[Any] | Ints | None = None,
        *,
        tolerance: float = 0.0,
        missing: Missing = "raise",
    ) -> Floats:
        """Return T_target_source, which transforms points of `source` to `target`.

        Parameters
        ----------
        t_ns : int, (n,) int64 array or None
            Times; may be None if there is no moving edge between the two frames.
        tolerance : float
            Seconds for which a moving edge holds its nearest pose outside of its known intervals.
        missing : {"raise", "nan"}
            Treatment of times farther outside.

        Returns
        -------
        (4, 4) array for one time or None, (n, 4, 4) for n times; read-only without a moving edge.

        Raises
        ------
        FrameError
            If there is no path, or a moving edge is unknown at a time.
        """
        look = self._compiled.get((target, source))
        if look is None:
            look = self._compile(target, source)
        return look(t_ns, tolerance, missing)

    def transform(
        self, target: str, source: str, t_ns: int | None = None, *, tolerance: float = 0.0
    ) -> Transform:
        """Return T_target_source at one time with both names and the sources of the edges as producer."""
        from transect.types import Transform

        producers = (edge.source for edge, _ in self._steps(target, source) if edge.source)
        return Transform(
            target=target,
            source=source,
            matrix=self.lookup(target, source, t_ns, tolerance=tolerance),
            target_t_ns=t_ns,
            source_t_ns=t_ns,
            producer=", ".join(dict.fromkeys(producers)),
        )

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of all frames, sorted."""
        return tuple(sorted({name for edge in self._edges.values() for name in (edge.parent, edge.child)}))

    @property
    def roots(self) -> tuple[str, ...]:
        """Frames without a parent, sorted."""
        return tuple(name for name in self.frames if name not in self._edges)

    @property
    def edges(self) -> tuple[FrameEdge, ...]:
        """All edges, each after the edge to its parent."""
        children = self._children()
        return tuple(edge for root in self.roots for edge, _ in _walk(children, root))

    @property
    def largest_root(self) -> str:
        """The root of the largest tree; the first by name of several."""
        return max(self.roots, key=lambda root: len(self._tree_of(root)))

    def ancestry(self, frame: str) -> list[str]:
        """Return the frame, its parent, and so on up to the root."""
        if frame not in self:
            raise FrameError(f"no frame {frame!r}", hint=did_you_mean(frame, self.frames))
        return self._ancestry(frame)

    def parent_of(self, frame: str) -> str | None:
        """Return the parent of a frame; None for a root."""
        return next(iter(self.ancestry(frame)[1:]), None)

    def poses_below(self, base: str, t_ns: int | None = None) -> dict[str, Floats]:
        """Return T_base_frame (4, 4) of `base` and its descendants, except those that are never known."""
        poses: dict[str, Floats] = {}
        for frame in self.frames:
            if base in self.ancestry(frame):
                try:
                    poses[frame] = self.lookup(base, frame, t_ns, tolerance=float("inf"))
                except FrameError:
                    continue
        return poses

    def merge(self, other: FrameTree, prefix: str = "") -> FrameTree:
        """Return the union of both trees, with a prefix for the names of the frames of `other`.

        A moving edge of both trees is joined in time, with a seam.

        Raises
        ------
        FrameError
            If the two disagree on an edge, or on the parent of a frame.
        """
        result = self.copy()
        for edge in other.edges:
            named = dataclasses.replace(edge, parent=prefix + edge.parent, child=prefix + edge.child)
            result._add_or_join(named)
        return result

    def complete(self, other: FrameTree) -> FrameTree:
        """Return the tree with the edges of another one for frames that have no parent in this one."""
        result = self.copy()
        for edge in other.edges:
            if edge.child not in result._edges:
                result._add(edge, replace=False)
        return result

    def slice(self, from_ns: int, to_ns: int, *, clock: str | None = None) -> FrameTree:
        """Return the tree for lookups in [from_ns, to_ns), with unchanged results.

        Poses are not copied; moving edges keep one pose on either side of the interval. With `clock`, edges
        on other clocks are not sliced.
        """
        result = FrameTree()
        for child, edge in self._edges.items():
            if edge.motion is not None and clock in (None, edge.clock):
                edge = dataclasses.replace(edge, poses=edge.motion.between(from_ns, to_ns))
            result._edges[child] = edge
        return result

    def shift(self, source: str, offset_ns: int, clock: str) -> FrameTree:
        """Return the tree with an offset added to the times of all moving edges of one source.

        `source` is the name of a stream, `clock` the clock of the shifted times.
        """
        result = self.copy()
        for child, edge in result._edges.items():
            if edge.moving and edge.source == source:
                poses = partial(_shift_motion, edge, offset_ns)
                result._edges[child] = dataclasses.replace(edge, clock=clock, poses=poses)
        return result

    def copy(self) -> FrameTree:
        """Return a copy that can be edited independently; the arrays are shared."""
        result = FrameTree()
        result._edges = dict(self._edges)
        return result

    def __contains__(self, frame: object) -> bool:
        return frame in self._edges or any(edge.parent == frame for edge in self._edges.values())

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        moving = sum(edge.moving for edge in self._edges.values())
        lines = [f"FrameTree: {len(self)} frames, {len(self._edges)} edges, {moving} moving (~)"]
        children = self._children()
        for root in self.roots:
            lines.append(root)
            lines += [indent + _describe(edge) for edge, indent in _walk(children, root)]
        return "\n".join(lines)

    def _add(self, edge: FrameEdge, replace: bool) -> None:
        known = self._edges.get(edge.child)
        if known is None or known.parent != edge.parent:
            self._refuse_bad_shape(edge)
        elif known.same_as(edge):
            return
        elif not replace:
            raise FrameError(
                f"the edge {edge} is there already, and differs",
                where=edge.source,
                why=f"it is {_kind(known)}, the new one is {_kind(edge)}",
                hint="replace=True puts the new one in its place",
            )
        self._put(edge)

    def _put(self, edge: FrameEdge) -> None:
        self._edges[edge.child] = edge
        self._version += 1
        # A new dict, because a lookup in another thread may still store its compiled path in the old one.
        self._compiled = {}

    def _add_or_join(self, edge: FrameEdge) -> None:
        known = self._edges.get(edge.child)
        if known is not None and known.motion is not None and edge.motion is not None:
            joined = known.motion.join(edge.motion)
            if (known.parent, known.clock) == (edge.parent, edge.clock) and joined is not None:
                self._put(dataclasses.replace(known, poses=joined))
                return
        self._add(edge, replace=False)

    def _refuse_bad_shape(self, edge: FrameEdge) -> None:
        """Raise unless the edge has two names, and every frame still has one parent and no cycle."""
        if not edge.parent or not edge.child:
            raise FrameError(
                "a frame needs a name", why=f"got parent {edge.parent!r} and child {edge.child!r}"
            )
        known = self._edges.get(edge.child)
        if known is not None:
            raise FrameError(
                f"{edge.child!r} cannot have two parents, {known.parent!r} and {edge.parent!r}",
                where=edge.source,
                why=f"it is a child of {known.parent!r} already"
                + (f" ({known.source})" if known.source else ""),
                hint=f"make {edge.child!r} the parent of {edge.parent!r}, with the inverse transform",
            )
        ancestors = self._ancestry(edge.parent)
        if edge.child in ancestors:
            path = " -> ".join(reversed(ancestors[: ancestors.index(edge.child) + 1]))
            raise FrameError(
                f"an edge {edge} would close a cycle",
                where=edge.source,
                why=f"{path} is there already"
                if edge.parent != edge.child
                else "a frame is not its own parent",
            )

    def _ancestry(self, frame: str) -> list[str]:
        """Return the frame, its parent, and so on up to the root."""
        result = [frame]
        while (edge := self._edges.get(result[-1])) is not None:
            result.append(edge.parent)
        return result

    def _steps(self, target: str, source: str) -> list[DirectedEdge]:
        """Return the edges from target up to the first common frame, then down to source."""
        up, down = self._ancestry(target), self._ancestry(source)
        common = next((name for name in up if name in set(down)), None)
        if common is None or target not in self or source not in self:
            raise self._no_path(target, source)
        upward = [(self._edges[name], True) for name in up[: up.index(common)]]
        downward = [(self._edges[name], False) for name in reversed(down[: down.index(common)])]
        return upward + downward

    def _compile(self, target: str, source: str) -> Lookup:
        store = self._compiled
        from .paths import compile_path  # imported by the first lookup

        look = store[target, source] = compile_path(self._steps(target, source))
        return look

    def _children(self) -> dict[str, list[FrameEdge]]:
        children: dict[str, list[FrameEdge]] = {}
        for child in sorted(self._edges):
            children.setdefault(self._edges[child].parent, []).append(self._edges[child])
        return children

    def _no_path(self, target: str, source: str) -> FrameError:
        names = list(dict.fromkeys((target, source)))
        unknown = [name for name in names if name not in self]
        hints = [f"{name!r}: {did_you_mean(name, self.frames)}" for name in unknown]
        if not unknown:
            hints = [f"{source!r} from {target!r}: {did_you_mean(source, self._tree_of(target) - {target})}"]
        return FrameError(
            f"no path between the frames {target!r} and {source!r}",
            why="; ".join(self._connections(name) for name in names),
            hint="; ".join(hints),
        )

    def _connections(self, name: str) -> str:
        if name not in self:
            return f"there is no frame {name!r}"
        others = sorted(self._tree_of(name) - {name})
        listed = ", ".join(others[:8]) + (f" and {len(others) - 8} more" if len(others) > 8 else "")
        return f"{name!r} is connected to {listed}"

    def _tree_of(self, name: str) -> set[str]:
        """Return all frames with the same root."""
        root = self._ancestry(name)[-1]
        return {root} | {edge.child for edge, _ in _walk(self._children(), root)}


def _shift_motion(edge: FrameEdge, offset_ns: int) -> FrameMotion:
    assert edge.motion is not None, "asked of moving edges only"
    return edge.motion.shift(offset_ns)


def _walk(children: dict[str, list[FrameEdge]], root: str) -> Iterator[tuple[FrameEdge, str]]:
    """Yield the edges below `root`, depth first, with the indentation that draws the tree."""
    pending = [(edge, "") for edge in reversed(children.get(root, []))]
    last = {id(edges[-1]) for edges in children.values()}
    while pending:
        edge, indent = pending.pop()
        is_last = id(edge) in last
        yield edge, indent + ("└" if is_last else "├")
        below = indent + ("   " if is_last else "│  ")
        pending += [(grandchild, below) for grandchild in reversed(children.get(edge.child, []))]


def _describe(edge: FrameEdge) -> str:
    if edge.motion is None:
        return f"─ {edge.child}"
    return f"~ {edge.child}  ({edge.span_text}, {len(edge.motion)} poses, {edge.clock})"


def _kind(edge: FrameEdge) -> str:
    if edge.motion is None:
        return "static" + (f" ({edge.source})" if edge.source else "")
    return f"moving, {edge.span_text}" + (f" ({edge.source})" if edge.source else "")


def _rigid(matrix: ArrayLike, where: str) -> Floats:
    """Return a read-only (4, 4) copy of a rigid transform, which may be rounded to three digits."""
    result = np.array(matrix, dtype=np.float64)
    if result.shape != (4, 4):
        raise FrameError("a transform is a (4, 4) matrix", where=where, why=f"got shape {result.shape}")
    rotation = result[:3, :3]
    error = np.abs(rotation.T @ rotation - np.eye(3)).max()
    is_rotation = error < MAX_ORTHONORMALITY_ERROR and np.linalg.det(rotation) > 0
    if not (is_rotation and np.isfinite(result).all() and np.array_equal(result[3], (0.0, 0.0, 0.0, 1.0))):
        raise FrameError(
            "the matrix is not a rigid transform",
            where=where,
            why=f"rows {np.array2string(result, precision=4, max_line_width=200).replace(chr(10), '')}",
            hint="expected a right-handed rotation, a translation in metres, and 0 0 0 1",
        )
    result.flags.writeable = False
    return result
