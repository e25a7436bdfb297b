"""Between the columns of a point-cloud file and a PointCloud: names are made alike here, and only here.

Files spell the same thing in many ways (`nx`, `normal_x`; `red green blue`, a packed `rgb`; CloudCompare's
`scalar_intensity`). `cloud_of` gives them the names of `PointCloud.fields`, `columns_of` takes them apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Array
from transect.errors import ParseError
from transect.recording import Loss
from transect.types import PointCloud

from ..file_heads import XYZ

_NORMALS = (("normal_x", "normal_y", "normal_z"), ("nx", "ny", "nz"))
_COLOURS = (("red", "green", "blue"), ("r", "g", "b"))
_NUMBERED = re.compile(r"(.+)_(\d+)")
MAX_POINT_BYTES = 1 << 20
"""Headers with larger points are refused."""


@dataclass(frozen=True, eq=False)
class PointColumns:
    """Content of a point-cloud file, with the names of the file."""

    columns: Mapping[str, Array]  # each (n,)
    losses: tuple[Loss, ...] = ()  # What the file promises and does not hold, or holds and is not a point
    # (7,), sensor pose x y z qx qy qz qw; None where the file has none or leaves it at the identity
    viewpoint: NDArray[np.float64] | None = None


def cloud_of(columns: Mapping[str, Array], name: str, **attributes: Any) -> PointCloud:
    """Return the cloud of columns: `x`, `y`, `z` (0 where a planar scan has none), and the others as fields.

    `normal_x normal_y normal_z` and `nx ny nz` become `normal`; `red green blue` and a packed `rgb` become
    `rgb` (n, 3) uint8; a packed `rgba` becomes (n, 4) uint8; `name_0 name_1 ...` become `name` (n, k);
    Ouster's `t` (uint32 ns) becomes `t_offset_ns`.

    Parameters
    ----------
    columns : mapping of str to (n,) or (n, k) array
    name : str
        For the error.
    attributes
        Further fields of `PointCloud` (`t_ns`, `frame`, `viewpoint`).
    """
    rest = {key.removeprefix("scalar_"): values for key, values in columns.items()}
    if "x" not in rest or "y" not in rest:
        raise ParseError(
            f"{name} has no points", where=name, why=f"its columns are {', '.join(rest) or 'none'}"
        )
    axes = [rest.pop("x"), rest.pop("y")]
    axes.append(rest.pop("z") if "z" in rest else np.zeros_like(axes[0]))
    points = np.column_stack(axes)
    _join(rest, "normal", _NORMALS, None)
    _join(rest, "rgb", _COLOURS, np.uint8)
    _join_numbered(rest)
    _unpack_colour(rest)
    _offsets(rest)
    fields = {key: np.ascontiguousarray(values) for key, values in rest.items()}
    return PointCloud(points if points.dtype.kind == "f" else points.astype(np.float64), fields, **attributes)


def _join(rest: dict[str, Array], name: str, spellings: Sequence[tuple[str, ...]], dtype: Any) -> None:
    for parts in spellings:
        if all(p in rest and rest[p].ndim == 1 and (dtype is None or rest[p].dtype == dtype) for p in parts):
            rest[name] = np.column_stack([rest.pop(p) for p in parts])
            return


def _join_numbered(rest: dict[str, Array]) -> None:
    found: dict[str, list[int]] = {}
    for key in rest:
        if match := _NUMBERED.fullmatch(key):
            found.setdefault(match[1], []).append(int(match[2]))
    for base, numbers in found.items():
        parts = [f"{base}_{i}" for i in range(len(numbers))]
        whole = len(parts) > 1 and base not in rest and all(p in rest and rest[p].ndim == 1 for p in parts)
        if whole and len({rest[p].dtype for p in parts}) == 1:
            rest[base] = np.column_stack([rest.pop(p) for p in parts])


def _unpack_colour(rest: dict[str, Array]) -> None:
    """Split PCL's packed 0xAARRGGBB, an integer or the bits of a float."""
    for name, channels in (("rgb", 3), ("rgba", 4)):
        packed = rest.get(name)
        if packed is not None and packed.ndim == 1 and packed.dtype.itemsize == 4:
            bgra = np.ascontiguousarray(packed).view(np.uint8).reshape(-1, 4)
            rest[name] = bgra[:, [2, 1, 0, 3][:channels]]


def _offsets(rest: dict[str, Array]) -> None:
    """Convert times after the scan's to int64 ns, if possible."""
    if "t" in rest and "t_offset_ns" not in rest and rest["t"].dtype == np.uint32:
        rest["t_offset_ns"] = rest.pop("t")
    offsets = rest.get("t_offset_ns")
    if offsets is not None and (offsets.dtype.kind in "iu" or bool((np.abs(offsets) < 2.0**62).all())):
        rest["t_offset_ns"] = offsets.astype(np.int64)


def pack_colour(colour: Array) -> NDArray[np.uint32]:
    """Return (n, 3) or (n, 4) uint8 colours as PCL packs them: 0xAARRGGBB."""
    wide = colour.astype(np.uint32)
    shifts = np.array([16, 8, 0, 24], dtype=np.uint32)[: colour.shape[1]]
    return np.bitwise_or.reduce(wide << shifts, axis=1, dtype=np.uint32)


def columns_of(points: Array, fields: Mapping[str, Array]) -> dict[str, Array]:
    """Return points (n, 3) and fields as plain (n,) columns, the inverse of `cloud_of`."""
    columns: dict[str, Array] = {axis: points[:, i] for i, axis in enumerate(XYZ)}
    for name, values in fields.items():
        if values.ndim == 1:
            columns[name] = values
        else:
            columns.update(zip(_parts(name, values.shape[1]), values.T, strict=True))
    return {name: _plain(values) for name, values in columns.items()}


def _plain(values: Array) -> Array:
    """Return a contiguous column of a type that every file knows."""
    wider = {"bool": np.dtype(np.uint8), "float16": np.dtype(np.float32)}
    return np.ascontiguousarray(values, dtype=wider.get(values.dtype.name, values.dtype.newbyteorder("=")))


def _parts(name: str, width: int) -> tuple[str, ...]:
    known = {("normal", 3): _NORMALS[1], ("rgb", 3): _COLOURS[0]}
    return known.get((name, width)) or tuple(f"{name}_{i}" for i in range(width))


def report_missing(found: int, wanted: int, name: str, byte: int | None = None) -> tuple[Loss, ...]:
    """Return the loss of a file with fewer points than in its header."""
    if found >= wanted:
        return ()
    reason = f"the header promises {wanted} points, {found} are there"
    return (Loss(name, reason, byte=byte, count=wanted - found),)


def left_over(body: memoryview, used: int, point: int, name: str, start: int) -> tuple[Loss, ...]:
    """Return the loss of bytes after the last promised point, unless they are padding."""
    rest = body[used : used + (1 << 16)]
    if len(rest) < max(point, 1) or not np.frombuffer(rest, np.uint8).any():
        return ()
    count = (len(body) - used) // max(point, 1)
    return (Loss(name, "more points follow than the header promises", byte=start + used, count=count),)
