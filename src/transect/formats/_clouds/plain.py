"""Point clouds without a header worth the name: raw float32 (`.bin`) and text of numbers (`.csv`, `.xyz`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transect.errors import ParseError, UnsupportedError
from transect.recording import Loss
from transect.recording.source import Buffer
from transect.types import PointCloud

from .._lines import is_number
from .number_text import read_rows, text_of
from .points import XYZ, Columns, columns_of

LAYOUTS = {3: XYZ, 4: (*XYZ, "intensity"), 5: (*XYZ, "intensity", "ring")}
"""What the columns of a headerless cloud mean: KITTI has four, nuScenes and Seeing Through Fog have five."""
FARTHEST = 2_000.0
"""Metres; no lidar of a vehicle sees farther, and a wrong number of columns soon does."""
BRIGHTEST = 65_535.0
FEWEST = 20
"""Rows of numbers without a header that may be a cloud; a shorter table is taken for something else."""
MOST_RINGS = 256


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


def text_layout(head: bytes) -> tuple[tuple[str, ...], int, bool]:
    """Return the columns of a text of points, how many lines come before them, and whether these name them.

    A first line with words is a header (libpointmatcher writes `x,y,z,nx,ny,nz`); without one, two columns
    are x y, and three to five are as in `LAYOUTS`.
    """
    skip, names = 0, tuple[str, ...]()
    for line in head.decode("utf-8-sig", "replace").splitlines():
        words = _words(line)
        if words and is_number(words[0]):
            named = len(names) == len(words)
            return names if named else _headerless(len(words)), skip, named
        names = tuple(_cleaned(w) for w in words if _cleaned(w)) or names
        skip += 1
    return names, skip, bool(names)


def _words(line: str) -> list[str]:
    return line.replace(",", " ").replace(";", " ").split()


def looks_like_text_points(head: bytes) -> bool:
    """Tell whether a text is points: its header begins with x y, or its numbers are near and in no order.

    Without a header a first column that only grows is the time of a log.
    """
    layout, skip, named = text_layout(head)
    if layout[:2] != ("x", "y") or b"\0" in head:
        return False
    if named:
        return True
    lines = head[: head.rfind(b"\n") + 1].decode("utf-8-sig", "replace").splitlines()[skip:]
    rows = [words for words in map(_words, lines) if len(words) == len(layout) and all(map(is_number, words))]
    first = np.array([float(words[0]) for words in rows])
    if len(layout) > max(LAYOUTS) or len(first) < FEWEST or 2 * len(first) < len(lines):
        return False
    return bool((np.abs(first) < FARTHEST).all() and (np.diff(first) < 0).any())


def _cleaned(word: str) -> str:
    """Return a header's word without comment signs and quotes; X, Y, Z are x, y, z."""
    word = word.lstrip("#/").strip('"')
    return word.lower() if word.lower() in XYZ else word


def _headerless(width: int) -> tuple[str, ...]:
    base = LAYOUTS.get(width) or ("x", "y") if width < 6 else XYZ
    return (*base, *(f"column_{i}" for i in range(len(base), width)))


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
