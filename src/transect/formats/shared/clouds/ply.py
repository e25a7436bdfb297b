"""The PLY codec: ascii and binary of either byte order, points and their scalar properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Array
from transect.errors import ParseError, UnsupportedError
from transect.geometry import rotations
from transect.recording import Loss
from transect.recording.source import HEAD_BYTES, Buffer
from transect.types import PointCloud

from .points import PointColumns, columns_of, left_over, report_missing

ENCODINGS = {"ascii": "ascii", "binary": "binary_little_endian", "binary_big_endian": "binary_big_endian"}
_ORDERS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}
_NAMES = ["char", "uchar", "short", "ushort", "int", "uint", "float", "double"]
_WRITTEN = dict(zip(["i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8"], _NAMES, strict=True))
_TYPES = {spelled: code for code, name in _WRITTEN.items() for spelled in (name, np.dtype(code).name)}
_VIEW = ("view_px", "view_py", "view_pz")
_AXES = tuple(f"{a}_axis{b}" for a in "xyz" for b in "xyz")


@dataclass(frozen=True)
class Element:
    """One kind of row: its name, how many there are, its scalar properties, and whether it has lists."""

    name: str
    count: int
    properties: tuple[tuple[str, str], ...]
    lists: tuple[tuple[str, str], ...] = ()

    def dtype(self, order: str) -> np.dtype[Any]:
        """Return one row as the binary encodings store it."""
        return np.dtype([(name, order + kind) for name, kind in self.properties])


@dataclass(frozen=True)
class PlyHeader:
    """Content of a PLY header; data start at byte `start`, after `lines` lines."""

    encoding: str
    elements: tuple[Element, ...]
    start: int
    lines: int

    @property
    def vertex(self) -> Element:
        """The points."""
        return next(e for e in self.elements if e.name == "vertex")


def read_header(head: bytes, name: str) -> PlyHeader:
    """Read a PLY header from the first bytes of a file."""
    end = head.find(b"end_header")
    newline = head.find(b"\n", end)
    lines = head[: max(0, end)].decode("latin-1").splitlines()
    try:
        if end < 0 or lines[0].strip() != "ply":
            raise ValueError("it does not begin with ply, or end_header is missing")
        return _header([line.split() for line in lines[1:]], newline + 1 or len(head), len(lines) + 1)
    except (KeyError, IndexError, ValueError) as error:
        why = f"{error.args[0]!r} is unknown" if isinstance(error, KeyError) else str(error)
        raise ParseError(f"{name} has no valid PLY header", where=name, why=why) from error


def _header(lines: list[list[str]], start: int, count: int) -> PlyHeader:
    encoding, elements = "", list[Element]()
    for words in lines:
        if not words or words[0] in ("comment", "obj_info"):
            continue
        if words[0] == "format":
            encoding = words[1]
        elif words[0] == "element":
            elements.append(Element(words[1], int(words[2]), ()))
        elif words[0] == "property":
            elements[-1] = _with_property(elements[-1], words)
        else:
            raise KeyError(words[0])
    if encoding not in _ORDERS:
        raise KeyError(f"format {encoding}")
    vertex = [e for e in elements if e.name == "vertex"]
    if len(vertex) != 1 or vertex[0].lists or not vertex[0].properties:
        raise ValueError("there is no vertex element with plain numbers")
    if min(e.count for e in elements) < 0:
        raise ValueError("an element has a negative count")
    return PlyHeader(encoding, tuple(elements), start, count)


def _with_property(element: Element, words: list[str]) -> Element:
    if words[1] == "list":
        lists = (*element.lists, (_TYPES[words[2]], _TYPES[words[3]]))
        return Element(element.name, element.count, element.properties, lists)
    known = dict(element.properties)
    name = f"{words[2]}#{len(known)}" if words[2] in known else words[2]
    return Element(
        element.name, element.count, (*element.properties, (name, _TYPES[words[1]])), element.lists
    )


def decode_ply(data: Buffer, name: str) -> PointColumns:
    """Decode a PLY file: all complete points, and the loss of missing ones."""
    header = read_header(bytes(data[:HEAD_BYTES]), name)
    body = memoryview(data)[header.start :]
    return _ascii(header, body, name) if header.encoding == "ascii" else _binary(header, body, name)


def header_losses(head: bytes, size: int, name: str) -> tuple[Loss, ...] | None:
    """Return the missing part of a file of `size` bytes from its first bytes; None if it must be read."""
    if b"end_header" not in head or b"format binary" not in head:
        return None
    header = read_header(head, name)
    before = header.elements[: header.elements.index(header.vertex)]
    itemsize = header.vertex.dtype("<").itemsize
    at = header.start + sum(e.count * e.dtype("<").itemsize for e in before)
    longer = size - at > header.vertex.count * itemsize
    if any(e.lists for e in before) or (longer and header.elements[-1] is header.vertex):
        return None
    held = min(max(size - at, 0) // itemsize, header.vertex.count)
    return report_missing(held, header.vertex.count, name, at + held * itemsize)


def _binary(header: PlyHeader, body: memoryview, name: str) -> PointColumns:
    order, vertex = _ORDERS[header.encoding], header.vertex
    at = _start_of_vertices(header, body, name)
    dtype = vertex.dtype(order)
    held = min(max(len(body) - at, 0) // dtype.itemsize, vertex.count)
    table = np.frombuffer(body, dtype, count=held, offset=at) if held else np.zeros(0, dtype)
    end = at + held * dtype.itemsize
    losses = report_missing(held, vertex.count, name, header.start + end)
    after = header.elements[header.elements.index(vertex) + 1 :]
    if not after and not losses:
        losses = left_over(body, end, dtype.itemsize, name, header.start)
    columns = {key: table[key].astype(dtype[key].newbyteorder("=")) for key in dtype.names or ()}
    return PointColumns(columns, losses, _viewpoint(after, body, end, order))


def _start_of_vertices(header: PlyHeader, body: memoryview, name: str) -> int:
    """Return the start of the points after other elements, whose lists have to be read."""
    order, at = _ORDERS[header.encoding], 0
    for element in header.elements[: header.elements.index(header.vertex)]:
        fixed = element.dtype(order).itemsize
        if not element.lists:
            at += fixed * element.count
            continue
        if element.properties:
            raise ParseError(f"{name} mixes lists and numbers before its points", where=name)
        for _ in range(element.count):
            for length, item in element.lists:
                if at + np.dtype(length).itemsize > len(body):
                    raise ParseError(
                        f"{name} is cut off before its points", where=f"{name}@{header.start + at}"
                    )
                count = int(np.frombuffer(body, order + length, 1, at)[0])
                at += np.dtype(length).itemsize + max(count, 0) * np.dtype(item).itemsize
    return at


def _viewpoint(
    after: tuple[Element, ...], body: memoryview, at: int, order: str
) -> NDArray[np.float64] | None:
    """Return the sensor pose that PCL writes after the points as `camera`; None if it is not set."""
    if not after or after[0].name != "camera" or after[0].lists or after[0].count != 1:
        return None
    dtype = after[0].dtype(order)
    if not {*_VIEW, *_AXES} <= set(dtype.names or ()) or at + dtype.itemsize > len(body):
        return None
    row = np.frombuffer(body, dtype, 1, at)[0]
    rotation = np.array([float(row[a]) for a in _AXES]).reshape(3, 3)
    position = np.array([float(row[v]) for v in _VIEW])
    if not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-3):
        return None
    if np.array_equal(rotation, np.eye(3)) and not position.any():
        return None
    return np.concatenate([position, rotations.quaternion_from_matrix(rotation)])


def _ascii(header: PlyHeader, body: memoryview, name: str) -> PointColumns:
    vertex = header.vertex
    before = sum(e.count for e in header.elements[: header.elements.index(vertex)])
    dtypes = [np.dtype(kind) for _, kind in vertex.properties]
    from .plain import read_rows  # text needs a scanner of its own

    rows = read_rows(body, dtypes, name, first_line=header.lines + 1, skip=before, max_rows=vertex.count)
    losses = rows.losses or report_missing(rows.row_count, vertex.count, name)
    return PointColumns({key: c for (key, _), c in zip(vertex.properties, rows.columns, strict=True)}, losses)


def encode_ply(cloud: PointCloud, encoding: str = "binary") -> bytes:
    """Encode a cloud as PLY; 64-bit integers, which PLY lacks, become doubles."""
    if encoding not in ENCODINGS:
        raise UnsupportedError(f"PLY has no encoding {encoding!r}", hint=f"choose {', '.join(ENCODINGS)}")
    columns = {key: _narrow(values) for key, values in columns_of(cloud.points, cloud.fields).items()}
    order = _ORDERS[ENCODINGS[encoding]]
    head = ["ply", f"format {ENCODINGS[encoding]} 1.0", f"element vertex {len(cloud)}"]
    head += [f"property {_WRITTEN[values.dtype.str[1:]]} {key}" for key, values in columns.items()]
    text = "\n".join([*head, "end_header", ""]).encode()
    if encoding == "ascii":
        from .plain import text_of

        return text + text_of(columns)
    return text + _interleave(columns, order).tobytes()


def _interleave(columns: Mapping[str, Array], order: str) -> NDArray[Any]:
    """Return columns as one structured array, a row per point."""
    length = len(next(iter(columns.values())))
    table = np.empty(length, dtype=[(key, order + values.dtype.str[1:]) for key, values in columns.items()])
    for key, values in columns.items():
        table[key] = values
    return table


def _narrow(values: Array) -> Array:
    return values.astype(np.float64) if values.dtype.kind in "iu" and values.dtype.itemsize == 8 else values
