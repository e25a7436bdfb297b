"""The PCD codec: ascii, binary and binary_compressed, versions 0.5 to 0.7.

Reading is our own, so that what a header promises is held against the bytes that are there before memory is
taken; pypcd4 writes (and reads for the tests, as a second opinion).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Array
from transect.errors import ParseError, UnsupportedError
from transect.recording import Loss
from transect.recording.source import HEAD_BYTES, Buffer
from transect.types import PointCloud

from .points import MAX_POINT_BYTES, PointColumns, columns_of, left_over, pack_colour, report_missing

ENCODINGS = ("ascii", "binary", "binary_compressed")
_KINDS = {"F": {4, 8}, "I": {1, 2, 4, 8}, "U": {1, 2, 4, 8}}
_LZF_RATIO = 90
"""LZF packs at most 264 bytes into 3."""
_NORMALS = ("normal_x", "normal_y", "normal_z")


@dataclass(frozen=True, eq=False)
class PcdHeader:
    """Content of a PCD header."""

    names: tuple[str, ...]  # Field names; `_` is padding
    # One point as `binary` stores it; its fields are called 0, 1, ... since names may repeat.
    dtype: np.dtype[Any]
    points: int
    encoding: str
    start: int  # Byte at which the data begins
    lines: int  # Lines of the header
    viewpoint: NDArray[np.float64] | None  # (7,), x y z qx qy qz qw


def read_header(head: bytes, name: str) -> PcdHeader:
    """Read a PCD header from the first bytes of a file."""
    entries: dict[str, list[str]] = {}
    at = lines = 0
    for line in head.splitlines(keepends=True):
        at, lines = at + len(line), lines + 1
        words = line.decode("latin-1").split()
        if words and not words[0].startswith("#"):
            entries.setdefault(words[0].upper(), words[1:])
        if "DATA" in entries:
            break
    try:
        return _header(entries, at, lines)
    except (KeyError, IndexError, ValueError) as error:
        why = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
        raise ParseError(f"{name} has no valid PCD header", where=f"{name}:{lines}", why=why) from error


def _header(entries: Mapping[str, list[str]], start: int, lines: int) -> PcdHeader:
    names = entries["FIELDS"]
    sizes = [int(v) for v in entries["SIZE"]]
    counts = [int(v) for v in entries.get("COUNT", ["1"] * len(names))]
    kinds = entries["TYPE"]
    if not names:
        raise ValueError("FIELDS is empty")
    if not len(names) == len(sizes) == len(counts) == len(kinds):
        raise ValueError("FIELDS, SIZE, TYPE and COUNT have different lengths")
    if bad := [n for n, k, s in zip(names, kinds, sizes, strict=True) if s not in _KINDS.get(k, ())]:
        raise ValueError(f"the field {bad[0]} has no type that PCD knows")
    if min(counts, default=1) < 1 or sum(s * c for s, c in zip(sizes, counts, strict=True)) > MAX_POINT_BYTES:
        raise ValueError(f"COUNT {' '.join(entries['COUNT'])} is not believable")
    if (encoding := entries["DATA"][0].lower()) not in ENCODINGS:
        raise ValueError(f"DATA {encoding} is none of {', '.join(ENCODINGS)}")
    size = entries.get("POINTS") or [str(int(entries["WIDTH"][0]) * int(entries.get("HEIGHT", ["1"])[0]))]
    if (points := int(size[0])) < 0:
        raise ValueError(f"POINTS {points} is negative")
    kind = {"F": "<f", "I": "<i", "U": "<u"}
    fields = [
        (str(i), f"{kind[k]}{s}", (c,) if c > 1 else ())
        for i, (k, s, c) in enumerate(zip(kinds, sizes, counts, strict=True))
    ]
    return PcdHeader(
        tuple(names),
        np.dtype(fields),
        points,
        encoding,
        start,
        lines,
        _viewpoint(entries.get("VIEWPOINT", [])),
    )


def _viewpoint(words: list[str]) -> NDArray[np.float64] | None:
    """Return x y z qx qy qz qw from PCD's x y z qw qx qy qz; None for the identity, which means not set."""
    values = np.array([float(w) for w in words] or [0, 0, 0, 1, 0, 0, 0], dtype=np.float64)
    if len(values) != 7:
        raise ValueError("VIEWPOINT is not seven numbers")
    return None if np.array_equal(values, (0, 0, 0, 1, 0, 0, 0)) else values[[0, 1, 2, 4, 5, 6, 3]]


def decode_pcd(data: Buffer, name: str) -> PointColumns:
    """Decode a PCD file: all complete points, and the loss of missing ones."""
    header = read_header(bytes(data[:HEAD_BYTES]), name)
    body = memoryview(data)[header.start :]
    if header.encoding == "ascii":
        fields, losses = _ascii(header, body, name)
    elif header.encoding == "binary":
        fields, losses = _binary(header, body), binary_losses(header, b"", len(data), name)
        losses = losses or left_over(
            body, header.points * header.dtype.itemsize, header.dtype.itemsize, name, header.start
        )
    else:
        fields, losses = _compress(header, body, name), ()
    return PointColumns(_name(header.names, fields), losses, header.viewpoint)


def binary_losses(header: PcdHeader, sizes: bytes | memoryview, size: int, name: str) -> tuple[Loss, ...]:
    """Hold what a binary PCD promises against the size of its file; raise where nothing of it can be kept.

    Parameters
    ----------
    sizes : 8 bytes
        The first bytes after the header: for compressed data its packed and unpacked size.
    size : int
        Of the whole file, in bytes.
    """
    there, wanted = size - header.start, header.points * header.dtype.itemsize
    if header.encoding == "binary":
        held = min(there // header.dtype.itemsize, header.points)
        return report_missing(held, header.points, name, header.start + held * header.dtype.itemsize)
    if header.points:
        packed, unpacked = struct.unpack("<II", sizes) if len(sizes) == 8 else (wanted, wanted)
        if packed > there - 8 or unpacked != wanted or unpacked > _LZF_RATIO * packed:
            said = f"{header.points} points in {packed} packed bytes, {unpacked} unpacked"
            raise _not_unpacked(header, name, f"the header promises {said}; {there} bytes follow it")
    return ()


def header_losses(head: bytes, size: int, name: str) -> tuple[Loss, ...] | None:
    """Return the missing part of a file of `size` bytes from its first bytes; None if it must be read."""
    if b"DATA binary" not in head:
        return None
    header = read_header(head, name)
    longer = size - header.start > header.points * header.dtype.itemsize
    if header.encoding == "binary" and longer:
        return None
    return binary_losses(header, head[header.start : header.start + 8], size, name)


def _not_unpacked(header: PcdHeader, name: str, why: str) -> ParseError:
    return ParseError(f"{name} cannot be unpacked", where=f"{name}@{header.start}", why=why)


def _ascii(header: PcdHeader, body: memoryview, name: str) -> tuple[list[Array], tuple[Loss, ...]]:
    fields = [header.dtype[str(i)] for i in range(len(header.names))]
    widths = [int(np.prod(f.shape, dtype=int)) for f in fields]
    flat = [f.base for f, w in zip(fields, widths, strict=True) for _ in range(w)]
    from .plain import read_rows  # text needs a scanner of its own

    rows = read_rows(body, flat, name, first_line=header.lines + 1)
    ends = np.cumsum(widths)
    columns = [
        np.column_stack(rows.columns[e - w : e]) if w > 1 else rows.columns[e - 1]
        for w, e in zip(widths, ends, strict=True)
    ]
    losses = [*rows.losses, *(() if rows.losses else report_missing(rows.row_count, header.points, name))]
    if rows.row_count > header.points:
        reason = f"the header promises {header.points} points, {rows.row_count} rows follow"
        losses.append(
            Loss(name, reason, line=header.lines + header.points + 1, count=rows.row_count - header.points)
        )
    return [c[: header.points] for c in columns], tuple(losses)


def _binary(header: PcdHeader, body: memoryview) -> list[Array]:
    held = min(len(body) // header.dtype.itemsize, header.points)
    table = np.frombuffer(body, header.dtype, count=held)
    return [table[str(i)] for i in range(len(header.names))]


def _compress(header: PcdHeader, body: memoryview, name: str) -> list[Array]:
    """Unpack LZF data, in which the values of a field are contiguous."""
    import lzf  # pyright: ignore[reportMissingImports]

    binary_losses(header, body[:8], header.start + len(body), name)
    flat = b""
    if header.points:
        packed, unpacked = struct.unpack("<II", body[:8])
        try:
            flat = lzf.decompress(bytes(body[8 : 8 + packed]), unpacked) or b""
        except ValueError as error:
            raise _not_unpacked(header, name, str(error)) from error
        if len(flat) != unpacked:
            raise _not_unpacked(header, name, f"{len(flat)} bytes come out where {unpacked} should")
    fields, at = list[Array](), 0
    for i in range(len(header.names)):
        dtype = header.dtype[str(i)]
        fields.append(
            np.frombuffer(flat, dtype, count=header.points, offset=at) if flat else np.zeros(0, dtype)
        )
        at += header.points * dtype.itemsize
    return fields


def _name(names: tuple[str, ...], fields: list[Array]) -> dict[str, Array]:
    columns: dict[str, Array] = {}
    for number, (name, values) in enumerate(zip(names, fields, strict=True)):
        if name != "_":
            columns[f"{name}#{number}" if name in columns else name] = values
    return columns


def encode_pcd(cloud: PointCloud, encoding: str = "binary_compressed") -> bytes:
    """Encode a cloud as PCD 0.7.

    Where compression does not pay, pypcd4 writes plain `binary`, and the header says so.
    """
    from pypcd4.pypcd4 import Encoding
    from pypcd4.pypcd4 import PointCloud as PcdFile

    if encoding not in ENCODINGS:
        raise UnsupportedError(f"PCD has no encoding {encoding!r}", hint=f"choose {', '.join(ENCODINGS)}")
    columns = _pcl_columns(cloud)
    made = PcdFile.from_points(list(columns.values()), list(columns), [c.dtype for c in columns.values()])
    if cloud.viewpoint is not None:
        x, y, z, qx, qy, qz, qw = (float(v) for v in cloud.viewpoint)
        made.metadata.viewpoint = (x, y, z, qw, qx, qy, qz)
    if encoding == "ascii":  # pypcd4 would round to ten decimals
        from .plain import text_of

        return made.metadata.compose_header(Encoding.ASCII).encode() + text_of(columns)
    sink = io.BytesIO()
    made.save(sink, Encoding(encoding))
    return sink.getvalue()


def _pcl_columns(cloud: PointCloud) -> dict[str, Array]:
    """Return a cloud's columns by the names that PCL's point types have."""
    fields: dict[str, Array] = {}
    for name, values in cloud.fields.items():
        if name == "normal" and values.shape[1:] == (3,):
            fields.update(zip(_NORMALS, values.T, strict=True))
        elif (name, values.shape[1:], values.dtype) in (("rgb", (3,), np.uint8), ("rgba", (4,), np.uint8)):
            packed = pack_colour(values)
            fields[name] = packed.view(np.float32) if name == "rgb" else packed
        else:
            fields[name] = values
    return columns_of(cloud.points, fields)
