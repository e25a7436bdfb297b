"""Meshes of URDF files: STL of both kinds, OBJ, and what is neither."""

import struct
from pathlib import Path

import numpy as np
import pytest

from transect.errors import ParseError, UnsupportedError
from transect.robots.urdf.reading import read_mesh

TRIANGLE = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]


def binary(count: int = 1) -> bytes:
    facet = struct.pack("<12fH", 0, 0, 1, *np.ravel(TRIANGLE), 0)
    return b"solid, says the header".ljust(80) + struct.pack("<I", count) + facet


def test_stl_is_read_in_binary_and_as_text(tmp_path: Path) -> None:
    text = "solid x\nfacet normal 0 0 1\nouter loop\n{}endloop\nendfacet\nendsolid\n"
    corners = "".join(f"vertex {x} {y} {z}\n" for x, y, z in TRIANGLE)
    for name, content in (("a.stl", binary()), ("b.STL", text.format(corners).encode())):
        (tmp_path / name).write_bytes(content)
        assert read_mesh(tmp_path / name).tolist() == [TRIANGLE]


def test_a_face_of_four_corners_in_obj_is_two_triangles(tmp_path: Path) -> None:
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1/1 2/2 -2 4\n")
    triangles = read_mesh(tmp_path / "a.obj")
    assert triangles.tolist() == [[[0, 0, 0], [1, 0, 0], [1, 1, 0]], [[0, 0, 0], [1, 1, 0], [0, 1, 0]]]


@pytest.mark.parametrize(
    "content",
    [b"", b"vertex 1 2", b"vertex 1 2 3", binary(9)[:100], b"v 1 x\nf 1 2 3"],
    ids=["empty", "cut", "one corner", "cut binary", "text in a number"],
)
def test_what_is_no_mesh_is_refused(tmp_path: Path, content: bytes) -> None:
    name = "a.obj" if content.startswith(b"v ") else "a.stl"
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ParseError, match="no mesh"):
        read_mesh(tmp_path / name)
    with pytest.raises(UnsupportedError, match="cannot be read"):
        read_mesh(tmp_path / "a.dae")
