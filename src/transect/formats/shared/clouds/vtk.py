"""The legacy VTK codec: points and point attributes of POLYDATA, ascii and binary (which is big-endian)."""

from __future__ import annotations

import re
from typing import Any, Protocol

import numpy as np

from transect.base.arrays import Array
from transect.errors import ParseError, UnsupportedError
from transect.recording import Loss
from transect.recording.source import Buffer
from transect.recording.text import scan
from transect.types import PointCloud

from .points import PointColumns, columns_of, report_missing

ENCODINGS = ("ascii", "binary")
_WRITTEN = {
    "i1": "char",
    "u1": "unsigned_char",
    "i2": "short",
    "u2": "unsigned_short",
    "i4": "int",
    "u4": "unsigned_int",
    "i8": "long",
    "u8": "unsigned_long",
    "f4": "float",
    "f8": "double",
}
_IDS = {"vtkIdType": "i8", "vtktypeint64": "i8", "vtktypeint32": "i4"}
_DTYPE_CODES = {name: code for code, name in _WRITTEN.items()} | _IDS
_CELLS = ("VERTICES", "LINES", "POLYGONS", "TRIANGLE_STRIPS", "CELLS", "CELL_TYPES")
_START = re.compile(rb"# vtk DataFile Version (\d+)\.\d+[^\n]*\n[^\n]*\n\s*(ASCII|BINARY)\s*\n")


class _VtkParser(Protocol):
    """Reads a VTK file word by word and array by array."""

    def words(self) -> list[str]:
        """Return the next line that is not empty, or b"" at the end."""
        ...

    def array(self, count: int, code: str) -> Array:
        """Return the next `count` numbers, or as many as there are."""
        ...


class _Text:
    def __init__(self, body: memoryview) -> None:
        self.tokens = scan(body)
        self.at = 0

    def words(self) -> list[str]:
        tokens = self.tokens
        if self.at >= len(tokens.values):
            return []
        line = int(np.searchsorted(tokens.first, self.at, side="right")) - 1
        start, self.at = self.at, int(tokens.first[line + 1])
        return [tokens.text(i) for i in range(start, self.at)]

    def array(self, count: int, code: str) -> Array:
        part = slice(self.at, min(self.at + count, len(self.tokens.values)))
        stop = np.flatnonzero(self.tokens.is_word[part])
        part = slice(part.start, part.start + int(stop[0])) if len(stop) else part
        self.at = part.stop
        values, kind = self.tokens.values[part], np.dtype(code)
        if kind.kind == "f":
            with np.errstate(over="ignore"):
                return values.astype(kind)
        limits = np.iinfo(kind)
        is_valid = (values >= limits.min) & (values <= limits.max)
        return np.where(is_valid, values, 0).astype(kind) if is_valid.all() else values


class _Binary:
    def __init__(self, body: memoryview) -> None:
        self.body = body
        self.at = 0

    def words(self) -> list[str]:
        while self.at < len(self.body):
            line = bytes(self.body[self.at : self.at + 4096]).partition(b"\n")[0]
            self.at += len(line) + 1
            if line.strip():
                return line.decode("latin-1").split()
        return []

    def array(self, count: int, code: str) -> Array:
        dtype = np.dtype(">" + code)
        held = min(count, max(len(self.body) - self.at, 0) // dtype.itemsize)
        values = np.frombuffer(self.body, dtype, held, self.at) if held else np.zeros(0, dtype)
        self.at += held * dtype.itemsize
        return values.astype(dtype.newbyteorder("="))


def decode_vtk(data: Buffer, name: str) -> PointColumns:
    """Decode a legacy VTK file: all complete points with attributes, and the loss of missing ones."""
    start = _START.match(bytes(data[:1024]))
    if start is None:
        raise ParseError(
            f"{name} has no legacy VTK header", where=name, why=f"it starts with {bytes(data[:24])!r}"
        )
    body = memoryview(data)[start.end() :]
    reader = _Text(body) if start[2] == b"ASCII" else _Binary(body)
    columns: dict[str, Array] = {}
    try:
        wanted, stopped = _points(reader, columns), ""
        _sections(reader, int(start[1]), columns)
    except (KeyError, IndexError, ValueError) as error:
        wanted, stopped = len(columns.get("x", ())), str(error.args[0])
    if "x" not in columns:
        raise ParseError(f"{name} has no points", where=name, why=stopped)
    points = len(columns["x"])
    losses = report_missing(points, wanted, name)
    losses += (Loss(name, f"nothing is read after this: {stopped}"),) if stopped else ()
    complete = {k: v for k, v in columns.items() if len(v) == points}
    losses += tuple(Loss(name, f"{k} is not there for all points") for k in columns if k not in complete)
    return PointColumns(complete, losses)


def _points(reader: _VtkParser, columns: dict[str, Array]) -> int:
    """Read up to and with the POINTS section; return how many it promises."""
    while words := reader.words():
        if words[0].upper() == "POINTS":
            wanted = _count(words[1])
            flat = reader.array(3 * wanted, _DTYPE_CODES[words[2]])
            points = flat[: len(flat) // 3 * 3].reshape(-1, 3)
            columns.update(zip("xyz", points.T, strict=True))
            return wanted
    raise ValueError("there is no POINTS section")


def _sections(reader: _VtkParser, version: int, columns: dict[str, Array]) -> None:
    """Read the data after the points, and keep the attributes of points."""
    points, of_points = len(columns["x"]), False
    while words := reader.words():
        key = words[0].upper()
        if key in _CELLS:
            _pass_cells(reader, words, version)
        elif key in ("POINT_DATA", "CELL_DATA"):
            of_points, rows = key == "POINT_DATA", _count(words[1])
            points = len(columns["x"]) if of_points else rows
        elif key == "METADATA":
            _pass_metadata(reader)
        else:
            found = _attributes(reader, words, points)
            columns.update(found if of_points else {})


def _count(word: str) -> int:
    count = int(word)
    if count < 0:
        raise ValueError(f"a count is negative: {count}")
    return count


def _pass_cells(reader: _VtkParser, words: list[str], version: int) -> None:
    """Skip the cells, which are not kept."""
    if version < 5 or words[0] == "CELL_TYPES":
        reader.array(_count(words[-1]), "i4")
        return
    for number in words[1:3]:
        offsets = reader.words()
        reader.array(_count(number), _DTYPE_CODES[offsets[1]])


def _pass_metadata(reader: _VtkParser) -> None:
    """Pass over a METADATA block: INFORMATION n, then two lines for each."""
    for _ in range(2 * _count((reader.words() or ["", "0"])[1])):
        reader.words()


def _attributes(reader: _VtkParser, words: list[str], points: int) -> dict[str, Array]:
    key = words[0].upper()
    if key == "FIELD":
        return _fields(reader, _count(words[2]))
    if key == "LOOKUP_TABLE":
        reader.array(4 * _count(words[2]), "u1")
        return {}
    width = {"VECTORS": 3, "TENSORS": 9, "NORMALS": 3, "TENSORS6": 6}.get(key, 1)
    if key == "SCALARS":
        width = _count(words[3]) if len(words) > 3 else 1
        table = reader.words()
        if not table or table[0].upper() != "LOOKUP_TABLE":
            raise ValueError(f"SCALARS {words[1]} without its LOOKUP_TABLE")
    elif key == "TEXTURE_COORDINATES":
        width, words = _count(words[2]), [*words[:2], words[3]]
    elif key == "COLOR_SCALARS":
        width, words = (
            _count(words[2]),
            [*words[:2], "unsigned_char" if isinstance(reader, _Binary) else "float"],
        )
    elif key not in ("VECTORS", "TENSORS", "NORMALS", "TENSORS6"):
        raise KeyError(f"the keyword {words[0]} is unknown")
    name = "normal" if key == "NORMALS" or words[1] == "normals" else words[1]
    return {name: _shape(reader.array(points * width, _DTYPE_CODES[words[2]]), width)}


def _fields(reader: _VtkParser, count: int) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for _ in range(count):
        words = reader.words()
        while words and words[0].upper() == "METADATA":
            _pass_metadata(reader)
            words = reader.words()
        name, width, rows, kind = words[0], _count(words[1]), _count(words[2]), words[3]
        found[name] = _shape(reader.array(width * rows, _DTYPE_CODES[kind]), width)
    return found


def _shape(flat: Array, width: int) -> Array:
    if width < 2:
        return flat
    return flat[: len(flat) // width * width].reshape(-1, width)


def encode_vtk(cloud: PointCloud, encoding: str = "binary") -> bytes:
    """Encode a cloud as legacy VTK POLYDATA, one vertex per point, its fields as a FIELD of point data."""
    if encoding not in ENCODINGS:
        raise UnsupportedError(f"VTK has no encoding {encoding!r}", hint=f"choose {', '.join(ENCODINGS)}")
    n = len(cloud)
    plain = columns_of(cloud.points, {})
    points = np.column_stack(list(plain.values()))
    cells = np.column_stack([np.ones(n, np.int32), np.arange(n, dtype=np.int32)])
    parts = [
        f"# vtk DataFile Version 3.0\ntransect\n{encoding.upper()}\nDATASET POLYDATA\n".encode(),
        f"POINTS {n} {_name_of(points)}\n".encode() + _body(points, encoding),
        f"VERTICES {n} {2 * n}\n".encode() + _body(cells, encoding),
    ]
    if cloud.fields:
        parts.append(f"POINT_DATA {n}\nFIELD fields {len(cloud.fields)}\n".encode())
    for name, values in cloud.fields.items():
        table = np.ascontiguousarray(values).reshape(n, -1)
        table = table.astype(np.uint8) if table.dtype == np.bool_ else table
        parts.append(f"{name} {table.shape[1]} {n} {_name_of(table)}\n".encode() + _body(table, encoding))
    return b"".join(parts)


def _name_of(values: Array) -> str:
    return _WRITTEN[f"{values.dtype.kind}{values.dtype.itemsize}"]


def _body(values: Array, encoding: str) -> bytes:
    from .plain import text_of

    if encoding == "binary":
        return values.astype(values.dtype.newbyteorder(">")).tobytes() + b"\n"
    columns: dict[str, Any] = {str(i): np.ascontiguousarray(values[:, i]) for i in range(values.shape[1])}
    return text_of(columns)
