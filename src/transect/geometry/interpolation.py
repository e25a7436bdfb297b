"""Interpolation between samples on an int64 nanosecond axis.

Float64 cannot represent nanoseconds since 1970, so times are subtracted as integers and only the difference
is converted to float. An axis may contain equal times (the last sample of that time is used) but must not
decrease.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError
from transect.geometry import rotations
from transect.geometry.array_checks import check_times_ns, floats, same_length, times_ns

BATCH_SAMPLES = 16384
"""Samples per batch of slerp, whose temporary arrays fit the processor's cache: twice as fast."""


class Limits(NamedTuple):
    """Maximum distances from the samples at which a value is interpolated or extrapolated."""

    gap_ns: int | None = None  # maximum gap to interpolate across; None for no limit
    beyond_ns: int = 0  # the first and last values are held for this long before and after the axis
    otherwise: Literal["nan", "error"] = "nan"  # result outside these limits


INSIDE = Limits()
"""Interpolate across gaps of any length; NaN before the first and after the last sample."""


class Bracket(NamedTuple):
    """The samples before and after each of m query times."""

    left: Ints  # (m,) index of the sample before
    right: Ints  # (m,) index of the sample after; equal to left outside the axis
    fraction: Floats  # (m,) from left to right in [0, 1); 0 on a sample, NaN outside the limits


def unwrap(angles: ArrayLike) -> Floats:
    """Unwrap angles (n,) in rad: each differs by at most pi from the last measured one before it."""
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
        Query times, in any order.
    tolerance_ns : int, optional
        Maximum time difference.

    Returns
    -------
    (m,) int64; -1 where no sample is within the tolerance. The earlier of two equally near samples is chosen.
    """
    axis, query = _axis(axis_ns), times_ns("query times", query_ns)
    right = np.clip(np.searchsorted(axis, query), 0, len(axis) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(
        _time_difference(query, axis[left]) <= _time_difference(query, axis[right]), left, right
    )
    if tolerance_ns is None:
        return nearest
    return np.where(_time_difference(query, axis[nearest]) <= tolerance_ns, nearest, -1)


def bracket(axis_ns: ArrayLike, query_ns: ArrayLike, limits: Limits = INSIDE) -> Bracket:
    """Find the samples before and after each query time (m,) on a sorted axis (n,), n >= 1."""
    axis, query = _axis(axis_ns), times_ns("query times", query_ns)
    left = np.clip(np.searchsorted(axis, query, side="right") - 1, 0, len(axis) - 1)
    right = np.minimum(left + 1, len(axis) - 1)
    into, span = query - axis[left], axis[right] - axis[left]
    between = (into > 0) & (span > 0)
    fraction = np.divide(into, span, out=np.zeros(len(query)), where=between)
    outside = (query < int(axis[0]) - limits.beyond_ns) | (query > int(axis[-1]) + limits.beyond_ns)
    in_gap = between & (span > limits.gap_ns) if limits.gap_ns is not None else np.zeros_like(between)
    if limits.otherwise == "error" and np.any(outside | in_gap):
        raise _outside_limits(axis, query[outside | in_gap], limits)
    fraction[outside | in_gap] = np.nan
    return Bracket(left, right, fraction)


def interpolate_columns(
    axis_ns: ArrayLike, values: ArrayLike, query_ns: ArrayLike, limits: Limits = INSIDE
) -> Floats:
    """Linear interpolation of values (n,) or (n, k) at `query_ns` (m,): (m,) or (m, k).

    Queries between a sample and one with NaN are NaN, except exactly at the sample.
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

    Positions are interpolated linearly, attitudes by slerp; `se3.from_quaternion` converts them to
    transforms.
    """
    points = floats("positions", positions, ("n", 3))
    attitudes = floats("quaternions", quaternions, ("n", 4))
    same_length(times=np.asarray(axis_ns), positions=points, quaternions=attitudes)
    around = bracket(axis_ns, query_ns, limits)
    return _lerp(points, around), _slerp(attitudes, around)


def _axis(axis_ns: ArrayLike) -> Ints:
    axis = check_times_ns("time axis", axis_ns)
    if not len(axis):
        raise GeometryError("expected at least one sample on the time axis, got none")
    return axis


def _time_difference(a: Ints, b: Ints) -> NDArray[np.uint64]:
    # Unsigned: exact for any two int64 times, also for the extreme values that mean "no time".
    return np.where(a > b, a - b, b - a).view(np.uint64)


def _lerp(table: Floats, around: Bracket) -> Floats:
    fraction = around.fraction.reshape(-1, *[1] * (table.ndim - 1))
    a, b = table[around.left], table[around.right]
    # A query on a sample must not depend on the next sample, which may be NaN.
    return np.where(fraction == 0, a, a + fraction * (b - a))


def _slerp(attitudes: Floats, around: Bracket) -> Floats:
    result = np.empty((len(around.fraction), 4))
    for start in range(0, len(result), BATCH_SAMPLES):
        batch = slice(start, start + BATCH_SAMPLES)
        a, fraction = attitudes[around.left[batch]], around.fraction[batch]
        b = np.where(fraction[:, None] == 0, a, attitudes[around.right[batch]])
        result[batch] = rotations.slerp(a, b, fraction)
    return result


def _outside_limits(axis: Ints, query: Ints, limits: Limits) -> GeometryError:
    return GeometryError(
        f"{len(query)} query times are outside the samples or in a gap",
        where=f"first at {query[0]} ns",
        why=f"samples extend from {axis[0]} to {axis[-1]} ns; limits are gap {limits.gap_ns} ns, "
        f"beyond {limits.beyond_ns} ns",
        hint="widen the limits, or ask for NaN there",
    )
