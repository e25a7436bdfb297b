"""Checks of array arguments: shape, length, finite values and time axes."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError

Shape = Sequence[int | str | EllipsisType]
"""A pattern such as ``(..., 3)`` or ``("n", 3)``: a letter matches any length, a leading ``...`` any axes."""


def floats(name: str, values: ArrayLike, shape: Shape) -> Floats:
    """Return `values` as float64 if they match the pattern `shape`, else raise an error with their shape."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise GeometryError(f"{name} is not an array of numbers", why=str(error)) from error
    if not _fits(array.shape, shape):
        raise GeometryError(f"{name}: expected shape {_spell(shape)}, got {array.shape}")
    return array


def times_ns(name: str, values: ArrayLike) -> Ints:
    """Return a (n,) int64 time axis; floats are an error, they cannot represent nanoseconds since 1970."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise GeometryError(f"{name}: expected shape (n,), got {array.shape}")
    if array.size and not np.can_cast(array.dtype, np.int64):
        raise GeometryError(
            f"{name}: expected int64 nanoseconds, got {array.dtype}",
            hint="compute nanoseconds from the stamp's digits by integer arithmetic",
        )
    return array.astype(np.int64, copy=False)


def check_times_ns(name: str, values: ArrayLike) -> Ints:
    """Return a (n,) int64 time axis that does not decrease; equal times are allowed."""
    axis = times_ns(name, values)
    backwards = np.flatnonzero(axis[1:] < axis[:-1])
    if backwards.size:
        raise GeometryError(
            f"{name}: time decreases",
            where=f"sample {backwards[0] + 1}",
            why=f"{backwards.size} of {axis.size} samples are older than the one before",
            hint="sort the samples by time first",
        )
    return axis


def same_length(**arrays: NDArray[np.generic]) -> None:
    """Raise unless all arrays have the same number of rows."""
    if len({array.shape[:1] for array in arrays.values()}) > 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise GeometryError(f"expected the same number of rows, got {shapes}")


def measured_rows(array: Floats) -> Mask:
    """Mask (n,) of the rows (n, ...) with only finite numbers."""
    return np.asarray(np.isfinite(array).all(axis=tuple(range(1, array.ndim))))


def norms(vectors: Floats) -> Floats:
    """Euclidean length along the last axis, which is kept with length 1."""
    return np.sqrt(np.add.reduce(vectors * vectors, axis=-1, keepdims=True))


def _fits(shape: tuple[int, ...], pattern: Shape) -> bool:
    if len(pattern) > 1 and pattern[0] is ... and shape[1 - len(pattern) :] == pattern[1:]:
        return True  # shortcut for the usual case
    if pattern and pattern[0] is ...:
        pattern = pattern[1:]
        shape = shape[len(shape) - len(pattern) :] if len(shape) >= len(pattern) else ()
    return len(shape) == len(pattern) and all(
        isinstance(expected, str) or expected == length
        for expected, length in zip(pattern, shape, strict=True)
    )


def _spell(pattern: Shape) -> str:
    words = ["..." if part is ... else str(part) for part in pattern]
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"


def finite_points(points: ArrayLike) -> Floats:
    """Return points as float64 (n, 3); an error where one has NaN."""
    cloud = floats("points", points, ("n", 3))
    if not np.isfinite(cloud).all():
        raise GeometryError("expected points without NaN", hint="remove the rows that were not measured")
    return cloud
