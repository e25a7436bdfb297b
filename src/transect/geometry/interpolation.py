"""Values between samples on an int64 nanosecond axis.

Times since 1970 do not fit a float to the nanosecond, so times are subtracted as integers first; only the
difference becomes a float. An axis may hold equal times (the last sample of that time counts) but never step
back.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError
from transect.geometry import rotations
from transect.geometry.array_checks import check_times_ns, floats, same_length, times_ns

CHUNK = 16384
"""Samples at a time: their temporary arrays stay in the processor's cache, which doubles the speed."""


class Limits(NamedTuple):
    """How far from the samples an answer is still an answer.

    Attributes
    ----------
    gap_ns : int or None
        Between samples further apart than this there is none; None for no limit.
    beyond_ns : int
        This long before the first and after the last sample their value is held.
    otherwise : "nan" or "error"
        What to do where there is no answer.
    """

    gap_ns: int | None = None
    beyond_ns: int = 0
    otherwise: Literal["nan", "error"] = "nan"


INSIDE = Limits()
"""From the first sample to the last, across gaps of any length, NaN outside."""


class Bracket(NamedTuple):
    """The samples around each query time.

    Attributes
    ----------
    left, right : (m,)
        Indices; equal outside the axis.
    fraction : (m,)
        Way from left to right in [0, 1); 0 on a sample, NaN where the limits leave no answer.
    """

    left: Ints
    right: Ints
    fraction: Floats


def unwrap(angles: ArrayLike) -> Floats:
    """Angles (n,) in rad without jumps of a turn, each by the shorter way from the last that was measured."""
    values = floats("angles", angles, ("n",)).copy()
    known = np.isfinite(values)
    values[known] = np.unwrap(values[known])
    return values


def nearest_index(axis_ns: ArrayLike, query_ns: ArrayLike, tolerance_ns: int | None = None) -> Ints:
    """Index (m,) of the sample nearest in time to each query.

    Parameters
    ----------
    axis_ns : (n,)
        Sorted sample times, at least one.
    query_ns : (m,)
        Times to look for, in any order.
    tolerance_ns : int, optional
        -1 is the answer where no sample is that near.

    Returns
    -------
    (m,) int64. Half-way between two samples the earlier one is taken.
    """
    axis, query = _axis(axis_ns), times_ns("query times", query_ns)
    right = np.clip(np.searchsorted(axis, query), 0, len(axis) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(_apart(query, axis[left]) <= _apart(query, axis[right]), left, right)
    if tolerance_ns is None:
        return nearest
    return np.where(_apart(query, axis[nearest]) <= tolerance_ns, nearest, -1)


def bracket(axis_ns: ArrayLike, query_ns: ArrayLike, limits: Limits = INSIDE) -> Bracket:
    """Samples on both sides of each query time (m,) on a sorted axis (n,), n >= 1."""
    axis, query = _axis(axis_ns), times_ns("query times", query_ns)
    left = np.clip(np.searchsorted(axis, query, side="right") - 1, 0, len(axis) - 1)
    right = np.minimum(left + 1, len(axis) - 1)
    into, span = query - axis[left], axis[right] - axis[left]
    between = (into > 0) & (span > 0)
    fraction = np.divide(into, span, out=np.zeros(len(query)), where=between)
    outside = (query < int(axis[0]) - limits.beyond_ns) | (query > int(axis[-1]) + limits.beyond_ns)
    in_gap = between & (span > limits.gap_ns) if limits.gap_ns is not None else np.zeros_like(between)
    if limits.otherwise == "error" and np.any(outside | in_gap):
        raise _no_answer(axis, query[outside | in_gap], limits)
    fraction[outside | in_gap] = np.nan
    return Bracket(left, right, fraction)


def interpolate_columns(
    axis_ns: ArrayLike, values: ArrayLike, query_ns: ArrayLike, limits: Limits = INSIDE
) -> Floats:
    """Linear interpolation of values (n,) or (n, k) at `query_ns` (m,): (m,) or (m, k).

    NaN in a sample makes NaN of everything next to it, but a query that hits the good sample gets it.
    """
    table = floats("values", values, (...,))
    if table.ndim not in (1, 2):
        raise GeometryError(f"values: expected shape (n,) or (n, k), got {table.shape}")
    same_length(times=np.asarray(axis_ns), values=table)
    return _lerp(table, bracket(axis_ns, query_ns, limits))


def interpolate_attitudes(
    axis_ns: ArrayLike, quaternions: ArrayLike, query_ns: ArrayLike, limits: Limits = INSIDE
) -> Floats:
    """Attitudes (m, 4) at `query_ns` (m,) between quaternions (n, 4), by slerp along the shorter arc."""
    attitudes = floats("quaternions", quaternions, ("n", 4))
    same_length(times=np.asarray(axis_ns), quaternions=attitudes)
    return _slerp(attitudes, bracket(axis_ns, query_ns, limits))


def interpolate_poses(
    axis_ns: ArrayLike,
    positions: ArrayLike,
    quaternions: ArrayLike,
    query_ns: ArrayLike,
    limits: Limits = INSIDE,
) -> tuple[Floats, Floats]:
    """Positions (m, 3) and quaternions (m, 4) at `query_ns` (m,) between those of a track (n, 3), (n, 4).

    The position goes straight, the attitude by slerp. `se3.from_quaternion` makes transforms of the result.
    """
    places = floats("positions", positions, ("n", 3))
    attitudes = floats("quaternions", quaternions, ("n", 4))
    same_length(times=np.asarray(axis_ns), positions=places, quaternions=attitudes)
    around = bracket(axis_ns, query_ns, limits)
    return _lerp(places, around), _slerp(attitudes, around)


def _axis(axis_ns: ArrayLike) -> Ints:
    axis = check_times_ns("time axis", axis_ns)
    if not len(axis):
        raise GeometryError("expected at least one sample on the time axis, got none")
    return axis


def _apart(a: Ints, b: Ints) -> NDArray[np.uint64]:
    # Unsigned: exact for any two int64 times, also the extreme ones that stand for "no time".
    return np.where(a > b, a - b, b - a).view(np.uint64)


def _lerp(table: Floats, around: Bracket) -> Floats:
    fraction = around.fraction.reshape(-1, *[1] * (table.ndim - 1))
    a, b = table[around.left], table[around.right]
    # On a sample its neighbour must not matter, not even a NaN one.
    return np.where(fraction == 0, a, a + fraction * (b - a))


def _slerp(attitudes: Floats, around: Bracket) -> Floats:
    result = np.empty((len(around.fraction), 4))
    for start in range(0, len(result), CHUNK):
        piece = slice(start, start + CHUNK)
        a, fraction = attitudes[around.left[piece]], around.fraction[piece]
        b = np.where(fraction[:, None] == 0, a, attitudes[around.right[piece]])
        result[piece] = rotations.slerp(a, b, fraction)
    return result


def _no_answer(axis: Ints, query: Ints, limits: Limits) -> GeometryError:
    return GeometryError(
        f"{len(query)} of the times asked for are outside the samples or in a gap",
        where=f"first at {query[0]} ns",
        why=f"samples reach from {axis[0]} to {axis[-1]} ns; limits are gap {limits.gap_ns} ns, "
        f"beyond {limits.beyond_ns} ns",
        hint="widen the limits, or ask for NaN there",
    )
