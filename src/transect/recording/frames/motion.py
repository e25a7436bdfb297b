"""Poses of one frame in another over time, interpolated at one or many times.

There are two code paths for the same arithmetic. `FrameMotion.at` interpolates at one time with Python
floats, which is faster than a numpy call. `FrameMotion.block` interpolates at many times and keeps every
matrix element contiguous: arrays are (3, 4, m), the upper three rows of m transforms. Both use the formulas
of `transect.geometry.kernels` instead of `rotations.slerp`, because the quaternions were normalised and
checked when the edge was added. Tests compare both paths with `slerp`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import FrameError
from transect.geometry.kernels import conjugate, matrix_from_quaternion, slerp_weights
from transect.geometry.rotations import normalise


@dataclass(frozen=True, eq=False)
class FrameMotion:
    """Poses of a child frame in its parent over time."""

    t_ns: Ints  # (n,) int64, strictly increasing
    # (n, 7), x y z (m) and qx qy qz qw, unit, each quaternion in the hemisphere of the one before
    poses: Floats
    # Last pose before each seam between joined recordings, across which poses are not interpolated
    seams: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.t_ns)

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """First and last time; None without poses."""
        return (int(self.t_ns[0]), int(self.t_ns[-1])) if len(self) else None

    @cached_property
    def _breaks(self) -> frozenset[int]:
        """Indices of poses after which poses are not interpolated: -1, seams and the last pose."""
        return frozenset((-1, *self.seams, len(self) - 1))

    # Memory views return Python numbers, several times faster than indexing numpy arrays.
    @cached_property
    def _times(self) -> Any:
        return self.t_ns.data

    @cached_property
    def _numbers(self) -> Any:
        return self.poses.reshape(-1).data

    def at(self, t_ns: int, slack_ns: float, inverted: bool = False) -> Floats | None:
        """Return T_parent_child (4, 4), or its inverse, at one time; None if more than `slack_ns` outside."""
        i = bisect_right(self._times, t_ns) - 1
        if i in self._breaks:
            return self._hold(i, t_ns, slack_ns, inverted)
        start = self._times[i]
        w = (t_ns - start) / (self._times[i + 1] - start)
        ax, ay, az, ai, aj, ak, ar, bx, by, bz, bi, bj, bk, br = self._numbers[7 * i : 7 * i + 14].tolist()
        v = 1.0 - w
        p, q = slerp_weights((ai, aj, ak, ar), (bi, bj, bk, br), w)
        return (_inverse_matrix if inverted else _matrix)(
            (v * ax + w * bx, v * ay + w * by, v * az + w * bz),
            (p * ai + q * bi, p * aj + q * bj, p * ak + q * bk, p * ar + q * br),
        )

    def _hold(self, i: int, t_ns: int, slack_ns: float, inverted: bool) -> Floats | None:
        """Return the nearest pose if it is within `slack_ns`; there is no extrapolation."""
        if not len(self):
            return None
        before, after = max(i, 0), min(i + 1, len(self) - 1)
        since, until = abs(t_ns - self._times[before]), abs(self._times[after] - t_ns)
        if min(since, until) > slack_ns:
            return None
        row = self.poses[before if since <= until else after].tolist()
        return (_inverse_matrix if inverted else _matrix)(row[:3], row[3:])

    def block(self, t_ns: Ints, slack_ns: float) -> tuple[Floats, Mask]:
        """Return T_parent_child at many times (3, 4, m), and (m,) which are more than `slack_ns` outside."""
        if not len(self):
            return np.full((3, 4, len(t_ns)), np.nan), np.ones(len(t_ns), dtype=np.bool_)
        low, high, held, outside = self._brackets(t_ns, slack_ns)
        start = self.t_ns[low]
        w = (t_ns - start) / np.maximum(self.t_ns[high] - start, 1)
        w[held] = 0.0
        a, b = np.take(self.poses, low, axis=0).T, np.take(self.poses, high, axis=0).T
        v = 1.0 - w
        p, q = slerp_weights(a[3:], b[3:], w)
        return _blocks(v * a[:3] + w * b[:3], p * a[3:] + q * b[3:]), outside

    def outside(self, t_ns: Ints, slack_ns: float) -> Mask:
        """Return which times (m,) are more than `slack_ns` outside of the known intervals."""
        return self._brackets(t_ns, slack_ns)[3] if len(self) else np.ones(len(t_ns), dtype=np.bool_)

    def _brackets(self, t_ns: Ints, slack_ns: float) -> tuple[Ints, Ints, Mask, Mask]:
        """Return poses before and after each time, where the nearest is held, and where it is too far."""
        low = np.searchsorted(self.t_ns, t_ns, side="right").astype(np.int64, copy=False) - 1
        high = low + 1
        held, outside = np.zeros((2, len(t_ns)), dtype=np.bool_)
        for pose in self._breaks:
            held |= low == pose
        if held.any():
            before, after = np.maximum(low[held], 0), np.minimum(high[held], len(self) - 1)
            since = np.abs(t_ns[held] - self.t_ns[before])
            until = np.abs(self.t_ns[after] - t_ns[held])
            low[held] = high[held] = np.where(since <= until, before, after)
            outside[held] = np.minimum(since, until) > slack_ns
        return low, high, held, outside

    def between(self, from_ns: int, to_ns: int) -> FrameMotion:
        """Return a view of [from_ns, to_ns) with one pose on either side, so that inside nothing changes."""
        first = max(int(np.searchsorted(self.t_ns, from_ns, side="right")) - 1, 0)
        end = min(int(np.searchsorted(self.t_ns, to_ns, side="left")) + 1, len(self))
        end = max(end, first)
        seams = tuple(i - first for i in self.seams if first <= i < end - 1)
        return FrameMotion(self.t_ns[first:end], self.poses[first:end], seams)

    def shift(self, offset_ns: int) -> FrameMotion:
        """Return the same motion with an offset added to its times."""
        return _freeze(self.t_ns + offset_ns, self.poses, self.seams)

    def join(self, other: FrameMotion) -> FrameMotion | None:
        """Return both motions in order of time with a seam between them; None if they overlap."""
        first, last = sorted((self, other), key=lambda motion: motion.span_ns or (0, 0))
        if not (len(first) and len(last)):
            return first if len(first) else last
        if first.t_ns[-1] >= last.t_ns[0]:
            return None
        seams = (*first.seams, len(first) - 1, *(i + len(first) for i in last.seams))
        return _freeze(
            np.concatenate([first.t_ns, last.t_ns]), np.concatenate([first.poses, last.poses]), seams
        )

    def same_as(self, other: FrameMotion) -> bool:
        """Return whether both have the same poses at the same times."""
        return (
            self.seams == other.seams
            and np.array_equal(self.t_ns, other.t_ns)
            and np.array_equal(self.poses, other.poses)
        )


def motion_from_poses(
    t_ns: ArrayLike, positions: ArrayLike, orientations: ArrayLike, where: str
) -> FrameMotion:
    """Return poses sorted by time (stable), with the last of equal times and without unmeasured ones.

    Parameters
    ----------
    positions : (n, 3)
        Metres, in the parent; NaN if not measured.
    orientations : (n, 4)
        Quaternions x, y, z, w of any norm; zero norm means not measured.
    where : str
        Name of the edge for error messages.
    """
    times = np.asarray(t_ns)
    xyz, q = np.asarray(positions, dtype=np.float64), np.asarray(orientations, dtype=np.float64)
    _check_shapes(times, xyz, q, where)
    poses = np.hstack([xyz.reshape(-1, 3), normalise(q.reshape(-1, 4))])
    measured = np.isfinite(poses).all(axis=1)
    times, poses = times.astype(np.int64)[measured], poses[measured]
    order = np.argsort(times, kind="stable")
    times, poses = times[order], poses[order]
    last_of_equals = np.append(times[1:] != times[:-1], True)[: len(times)]
    times, poses = times[last_of_equals], poses[last_of_equals]
    flips = np.einsum("ni,ni->n", poses[1:, 3:], poses[:-1, 3:]) < 0
    poses[1:, 3:] *= np.where(np.cumsum(flips) % 2, -1.0, 1.0)[:, None]
    return _freeze(times, poses)


def inverse_block(block: Floats) -> Floats:
    """Return the inverse of rigid (3, 4, m) blocks."""
    result = np.empty_like(block)
    result[:, :3] = block[:, :3].swapaxes(0, 1)
    result[:, 3] = -np.einsum("kim,km->im", block[:, :3], block[:, 3])
    return result


def compose_blocks(left: Floats, right: Floats) -> Floats:
    """Return the product of (3, 4, m) blocks; either may be (3, 4, 1), constant in time."""
    result = left[:, 0, None] * right[0]
    result += left[:, 1, None] * right[1]
    result += left[:, 2, None] * right[2]
    result[:, 3] += left[:, 3]
    return result


def _check_shapes(times: NDArray[np.generic], xyz: Floats, q: Floats, where: str) -> None:
    n = len(times) if times.ndim == 1 else -1
    if times.ndim != 1 or (n and (xyz.shape != (n, 3) or q.shape != (n, 4))):
        raise FrameError(
            "a moving edge needs t_ns (n,), positions (n, 3) and orientations (n, 4)",
            where=where,
            why=f"got {times.shape}, {xyz.shape} and {q.shape}",
        )
    if n and not np.can_cast(times.dtype, np.int64):
        raise FrameError(
            f"the times of a moving edge are int64 nanoseconds, got {times.dtype}",
            where=where,
            hint="make nanoseconds from the stamp's digits by integer arithmetic",
        )


def _freeze(times: Ints, poses: Floats, seams: tuple[int, ...] = ()) -> FrameMotion:
    times, poses = np.ascontiguousarray(times), np.ascontiguousarray(poses)
    times.flags.writeable = poses.flags.writeable = False
    return FrameMotion(times, poses, seams)


def _matrix(xyz: Sequence[float], q: Sequence[float]) -> Floats:
    px, py, pz = xyz
    a, b, c, d, e, f, g, h, i = matrix_from_quaternion(q)
    return np.array((a, b, c, px, d, e, f, py, g, h, i, pz, 0.0, 0.0, 0.0, 1.0)).reshape(4, 4)


def _inverse_matrix(xyz: Sequence[float], q: Sequence[float]) -> Floats:
    px, py, pz = xyz
    a, b, c, d, e, f, g, h, i = matrix_from_quaternion(conjugate(q))
    translation = (-a * px - b * py - c * pz, -d * px - e * py - f * pz, -g * px - h * py - i * pz)
    return np.array(
        (a, b, c, translation[0], d, e, f, translation[1], g, h, i, translation[2], 0.0, 0.0, 0.0, 1.0)
    ).reshape(4, 4)


def _blocks(xyz: Floats, q: Floats) -> Floats:
    """Turn positions (3, m) and unit quaternions (4, m) into (3, 4, m) blocks."""
    result = np.empty((3, 4, xyz.shape[1]))
    for k, elements in enumerate(matrix_from_quaternion(q)):
        result[k // 3, k % 3] = elements
    result[:, 3] = xyz
    return result
