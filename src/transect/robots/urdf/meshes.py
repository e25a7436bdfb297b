"""Meshes that a URDF names: STL, in binary or as text, and OBJ."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from transect.base.arrays import Floats
from transect.errors import ParseError, UnsupportedError

LARGEST = 200_000_000
"""Bytes of a file that is read."""
_HEADER = 80
_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_mesh(path: Path) -> Floats:
    """Return the triangles (n, 3, 3) of a mesh, in its own units.

    Raises
    ------
    UnsupportedError
        For a kind of file that is not read, or one that is too large.
    ParseError
        If it is not what its name says.
    """
    readers = {".stl": _read_stl, ".obj": _read_obj}
    if path.suffix.lower() not in readers:
        raise UnsupportedError(f"the mesh {path.name} cannot be read", hint=f"known are {', '.join(readers)}")
    if path.stat().st_size > LARGEST:
        raise UnsupportedError(f"the mesh {path.name} has more than {LARGEST // 1_000_000} MB")
    try:
        triangles = readers[path.suffix.lower()](path.read_bytes())
    except (ValueError, IndexError) as error:
        raise ParseError(f"{path.name} is no mesh", where=str(path), why=str(error)) from error
    return triangles[np.isfinite(triangles).all(axis=(1, 2))]


def _read_stl(content: bytes) -> Floats:
    """Read STL; a binary one is told by its length, since its header may begin with `solid`, too."""
    body = content[_HEADER + 4 :]
    count = int.from_bytes(content[_HEADER : _HEADER + 4], "little")
    if len(content) >= _HEADER + 4 and len(body) >= count * _FACET.itemsize and count:
        return np.frombuffer(body, _FACET, count)["corners"].astype(np.float64)
    words = content.split()
    at = [k for k, word in enumerate(words) if word == b"vertex"]
    if not at or len(at) % 3:
        raise ValueError(f"it has {len(at)} corners")
    return np.array([words[k + 1 : k + 4] for k in at], np.float64).reshape(-1, 3, 3)


def _read_obj(content: bytes) -> Floats:
    """Read the corners and faces of OBJ; a face of more than three corners is cut into a fan."""
    lines = [line.split() for line in content.splitlines()]
    corners = np.array([line[1:4] for line in lines if line[:1] == [b"v"]], np.float64).reshape(-1, 3)
    triangles: list[tuple[int, int, int]] = []
    for line in lines:
        if line[:1] == [b"f"]:
            numbers = [int(word.partition(b"/")[0]) for word in line[1:]]
            face = [n - 1 if n > 0 else len(corners) + n for n in numbers]
            triangles += [(face[0], a, b) for a, b in pairwise(face[1:])]
    return corners[np.array(triangles, np.int64).reshape(-1, 3)]
