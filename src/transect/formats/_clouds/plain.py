"""Point clouds without a header worth the name: raw float32 (`.bin`) and text of numbers (`.csv`, `.xyz`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transect.errors import ParseError, UnsupportedError
from transect.recording import Loss
from transect.recording.source import Buffer
from transect.types import PointCloud

from .._heads import BRIGHTEST, FARTHEST, LAYOUTS, MOST_RINGS, text_layout
from .number_text import read_rows, text_of
from .points import Columns, columns_of


def plausible_layout(data: Buffer) -> tuple[str, ...] | None:
    """Return the columns of raw float32 points by size and plausibility, or None if nothing is plausible.

    Five columns need whole ring numbers, four need an intensity that is never negative; else it is x y z.
    Where the size fits none, the file was cut: the first layout that its whole points allow is taken.
    """
    exact = [width for width in (5, 4, 3) if len(data) % (4 * width) == 0]
    for width in exact or (5, 4, 3):
        count = len(data) // (4 * width)
        if count and _plausible(np.frombuffer(data, "<f4", count * width).reshape(-1, width)):
            return LAYOUTS[width]
    return None


def raw_layout(data: Buffer) -> tuple[str, ...]:
    """Return the columns of raw float32 points: the plausible ones, else KITTI's four if the size allows."""
    return plausible_layout(data) or LAYOUTS[4 if len(data) % 16 == 0 or len(data) % 12 else 3]


def _plausible(rows: NDArray[np.float32]) -> bool:
    with np.errstate(invalid="ignore"):
        near = not bool((np.abs(rows[:, :3]) > FARTHEST).any())
        if rows.shape[1] == 3:
            return near
        bright = bool(((rows[:, 3] >= 0) & (rows[:, 3] <= BRIGHTEST)).all())
        if rows.shape[1] == 4:
            return near and bright
        ring = rows[:, 4]
        return near and bright and bool(((ring >= 0) & (ring < MOST_RINGS) & (ring == np.trunc(ring))).all())


def decode_raw(data: Buffer, name: str, columns: Sequence[str] | None = None) -> Columns:
    """Decode raw little-endian float32 points.

    Parameters
    ----------
    columns : sequence of str, optional
        What each number of a point is; found by `raw_layout` by default.
    """
    layout = tuple(columns) if columns else raw_layout(data)
    width = 4 * len(layout)
    count, rest = divmod(len(data), width)
    table = np.frombuffer(data, "<f4", count * len(layout)).reshape(-1, len(layout))
    return Columns({key: table[:, i] for i, key in enumerate(layout)}, _cut(rest, count, width, name))


def _cut(rest: int, count: int, width: int, name: str) -> tuple[Loss, ...]:
    reason = f"the last point has {rest} of {width} bytes"
    return (Loss(name, reason, byte=count * width),) if rest else ()


def raw_losses(size: int, layout: Sequence[str], name: str) -> tuple[Loss, ...]:
    """Hold the size of a raw file against its columns."""
    count, rest = divmod(size, 4 * len(layout))
    return _cut(rest, count, 4 * len(layout), name)


def encode_raw(cloud: PointCloud) -> bytes:
    """Encode x, y, z, then intensity and ring where the cloud has them, as little-endian float32."""
    if "ring" in cloud.fields and "intensity" not in cloud.fields:
        raise UnsupportedError("raw float32 points cannot have a ring without an intensity")
    layout = LAYOUTS[3 + ("intensity" in cloud.fields) + ("ring" in cloud.fields)]
    columns = columns_of(cloud.points, cloud.fields)
    return np.column_stack([columns[key].astype("<f4") for key in layout]).tobytes()


def decode_text(data: Buffer, name: str) -> Columns:
    """Decode text of one point per line, blank- or comma-separated, with or without a header."""
    layout, skip, _ = text_layout(bytes(data[:65_536]))
    if not layout:
        raise ParseError(f"{name} holds no rows of numbers", where=name)
    at = 0
    for _ in range(skip):
        at = bytes(data[at : at + 65_536]).find(b"\n") + at + 1
    float64 = np.dtype(np.float64)
    rows = read_rows(memoryview(data)[at:], [float64] * len(layout), name, first_line=skip + 1)
    return Columns(dict(zip(layout, rows.columns, strict=True)), rows.losses)


def encode_text(cloud: PointCloud) -> bytes:
    """Encode a cloud as CSV with a header, one column per number."""
    columns = columns_of(cloud.points, cloud.fields)
    return (",".join(columns) + "\n").encode() + text_of(columns, ",")
