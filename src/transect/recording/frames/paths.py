"""Lookup of transforms along a path of edges, with the static edges multiplied in advance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import text_from_ns
from transect.errors import FrameError, TimeError

from .motion import FrameMotion, compose_blocks, inverse_block

if TYPE_CHECKING:
    from .tree import DirectedEdge, FrameEdge, Lookup, Missing


CHUNK_TIMES = 16_384
"""Times per chunk: its arrays fit in the processor's cache, which doubles the speed."""


def compile_path(steps: Iterable[DirectedEdge]) -> Lookup:
    """Return a function that evaluates the edges from target to source."""
    static, joints = _fold(steps)
    return _MovingPath(static, joints) if joints else _static_path(static)


@dataclass(frozen=True)
class _Joint:
    """A moving edge on a path and the static transform that follows it; None if there is none."""

    edge: FrameEdge
    motion: FrameMotion
    inverted: bool
    after: Floats | None


def _fold(steps: Iterable[DirectedEdge]) -> tuple[Floats | None, list[_Joint]]:
    """Return the static transform before the first moving edge, and each moving edge with what follows it."""
    first: Floats | None = None
    joints: list[_Joint] = []
    for edge, inverted in steps:
        if edge.motion is not None:
            joints.append(_Joint(edge, edge.motion, inverted, None))
            continue
        assert edge.matrix is not None
        # Printed matrices are rounded: the transpose is not exactly the inverse.
        matrix = np.linalg.inv(edge.matrix).astype(np.float64) if inverted else edge.matrix
        if joints:
            last = joints[-1]
            joints[-1] = _Joint(last.edge, last.motion, last.inverted, _product(last.after, matrix))
        else:
            first = _product(first, matrix)
    return first, joints


def _product(left: Floats | None, right: Floats) -> Floats:
    return right if left is None else left @ right


def _static_path(matrix: Floats | None) -> Lookup:
    fixed = np.eye(4) if matrix is None else matrix.copy()
    fixed.flags.writeable = False

    def look(t_ns: Any, tolerance: float, missing: Missing) -> Floats:
        times = None if t_ns is None or t_ns.__class__ is int else _times(t_ns)
        return (
            fixed if times is None or isinstance(times, int) else np.broadcast_to(fixed, (len(times), 4, 4))
        )

    return look


class _MovingPath:
    """A path with moving edges: `first`, then each joint and what follows it."""

    def __init__(self, first: Floats | None, joints: list[_Joint]) -> None:
        _refuse_two_clocks([joint.edge for joint in joints])
        self.first, self.joints = first, joints

    def __call__(self, t_ns: Any, tolerance: float, missing: Missing) -> Floats:
        # Half a nanosecond more, because 0.57 * 1e9 is slightly less than 570,000,000.
        slack_ns = tolerance * 1e9 + 0.5
        times = t_ns if t_ns.__class__ is int else _times(t_ns)
        if isinstance(times, int):
            return self._one(times, slack_ns, missing)
        if times is not None:
            return self._many(times, slack_ns, missing)
        edge = self.joints[0].edge
        raise FrameError(
            f"a lookup through the moving edge {edge} needs a time",
            why=f"it is known {edge.span_text}",
            hint="lookup(target, source, t_ns)",
        )

    def _one(self, t_ns: int, slack_ns: float, missing: Missing) -> Floats:
        result = self.first
        for joint in self.joints:
            matrix = joint.motion.at(t_ns, slack_ns, joint.inverted)
            if matrix is None:
                if missing == "nan":
                    return np.full((4, 4), np.nan)
                raise _unknown_at(joint.edge, t_ns)
            # For 4x4 matrices ndarray.dot is twice as fast as @.
            result = matrix if result is None else result.dot(matrix)
            if joint.after is not None:
                result = result.dot(joint.after)
        assert result is not None
        return result

    def _many(self, t_ns: Ints, slack_ns: float, missing: Missing) -> Floats:
        result = np.empty((len(t_ns), 4, 4))
        result[:, 3] = (0.0, 0.0, 0.0, 1.0)
        for start in range(0, len(t_ns), CHUNK_TIMES):
            chunk = slice(start, start + CHUNK_TIMES)
            block, unknown = self._block(t_ns[chunk], slack_ns)
            result[chunk, :3] = block.transpose(2, 0, 1)
            if unknown.any():
                if missing == "raise":
                    self._refuse_unknown(t_ns, slack_ns)
                result[chunk][unknown] = np.nan
        return result

    def _block(self, t_ns: Ints, slack_ns: float) -> tuple[Floats, Mask]:
        """Return T_target_source as (3, 4, m) blocks, and where (m,) it is unknown."""
        result = None if self.first is None else self.first[:3, :, None]
        unknown = np.zeros(len(t_ns), dtype=np.bool_)
        for joint in self.joints:
            block, outside = joint.motion.block(t_ns, slack_ns)
            unknown |= outside
            if joint.inverted:
                block = inverse_block(block)
            result = block if result is None else compose_blocks(result, block)
            if joint.after is not None:
                result = compose_blocks(result, joint.after[:3, :, None])
        assert result is not None
        return result, unknown

    def _refuse_unknown(self, t_ns: Ints, slack_ns: float) -> None:
        for joint in self.joints:
            unknown = t_ns[joint.motion.outside(t_ns, slack_ns)]
            if len(unknown):
                raise _unknown_at(joint.edge, int(unknown[0]), f"{len(unknown)} of {len(t_ns)} times")


def _times(t_ns: Any) -> int | Ints | None:
    """Return one time, an axis of times, or None; anything but whole nanoseconds is refused."""
    if t_ns is None:
        return None
    times = np.asarray(t_ns)
    if times.ndim > 1 or (times.size and not np.can_cast(times.dtype, np.int64)):
        raise TimeError(
            "a lookup wants int64 nanoseconds, one or (n,)",
            why=f"got {times.dtype} of shape {times.shape}",
            hint="make nanoseconds from the stamp's digits by integer arithmetic, never through float",
        )
    return times.astype(np.int64, copy=False) if times.ndim else int(times)


def _refuse_two_clocks(edges: list[FrameEdge]) -> None:
    clocks = {edge.clock: edge for edge in edges}
    if len(clocks) > 1:
        raise FrameError(
            "one time cannot be looked up on two clocks",
            why=", ".join(f"{edge} moves on {clock}" for clock, edge in clocks.items()),
            hint="map one clock to the other before the edge is added",
        )


def _unknown_at(edge: FrameEdge, t_ns: int, count: str = "") -> FrameError:
    seams = len(edge.motion.seams) if edge.motion is not None else 0
    known = f"it is known {edge.span_text}"
    if seams:
        known += f", but not in {seams} seam{'s' * (seams > 1)} between recordings"
    return FrameError(
        f"the edge {edge} is not known at {text_from_ns(t_ns, edge.clock)} ({t_ns} ns, clock {edge.clock})",
        where=edge.source,
        why=known + (f"; {count} are outside" if count else ""),
        hint="tolerance=SECONDS holds the nearest pose that long, missing='nan' answers NaN",
    )
