"""PLY and VTK by hand: what their descriptions allow, and what a header cannot mean."""

import struct

import numpy as np
import pytest

from transect.errors import ParseError
from transect.formats.shared.clouds import decode_cloud
from transect.formats.shared.clouds.ply import decode_ply, header_losses

VERTEX = "element vertex 2\nproperty float x\nproperty float y\nproperty float z\n"
POINTS = np.array([[1, 2, 3], [4, 5, 6]], dtype="<f4")


def ply(header: str, body: bytes = POINTS.tobytes(), form: str = "binary_little_endian") -> bytes:
    return f"ply\nformat {form} 1.0\n{header}end_header\n".encode() + body


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("element vertex two\nproperty float x\n", "invalid literal"),
        ("element vertex -2\nproperty float x\n", "negative count"),
        ("element vertex 2\n", "no vertex element with plain numbers"),
        ("element vertex 2\nproperty list uchar int x\n", "no vertex element with plain numbers"),
        (f"{VERTEX}{VERTEX}", "no vertex element with plain numbers"),
        ("property float x\n", "list index out of range"),
        ("element vertex 2\nproperty quaternion x\n", "'quaternion' is unknown"),
        (f"{VERTEX}texture 4\n", "'texture' is unknown"),
    ],
)
def test_a_ply_header_that_cannot_be_meant_is_refused(header: str, why: str):
    with pytest.raises(ParseError, match="no valid PLY header") as caught:
        decode_ply(ply(header), "a.ply")
    assert why in caught.value.why


def test_a_ply_of_an_unknown_encoding_or_without_an_end_is_refused():
    for data in (ply(VERTEX, form="binary_middle_endian"), b"ply\nformat ascii 1.0\n", b"plx\nend_header\n"):
        with pytest.raises(ParseError, match="no valid PLY header"):
            decode_ply(data, "a.ply")


def test_comments_and_properties_of_one_name_are_read():
    header = "comment made by hand\nobj_info 1\n\nelement vertex 2\n" + "property float x\n" * 3
    columns = decode_ply(ply(header), "a.ply").columns
    assert {name: values.tolist() for name, values in columns.items()} == {
        "x": [1, 4], "x#1": [2, 5], "x#2": [3, 6],
    }  # fmt: skip


def test_elements_before_the_points_are_passed_over_however_they_are_made():
    plain = "element scale 2\nproperty uchar a\nproperty uchar b\n"
    found = decode_ply(ply(plain + VERTEX, b"\1\2\3\4" + POINTS.tobytes()), "a.ply").columns
    assert found["x"].tolist() == [1, 4]
    lists = "element face 2\nproperty list uchar ushort index\n"
    faces = b"\1" + struct.pack("<H", 7) + b"\2" + struct.pack("<HH", 8, 9)
    found = decode_ply(ply(lists + VERTEX, faces + POINTS.tobytes()), "a.ply").columns
    assert found["z"].tolist() == [3, 6]
    with pytest.raises(ParseError, match="cut off before its points"):
        decode_ply(ply(lists + VERTEX, b"\2" + struct.pack("<H", 8)), "a.ply")
    with pytest.raises(ParseError, match="mixes lists and numbers"):
        decode_ply(ply(lists.replace("index\n", "index\nproperty float area\n") + VERTEX), "a.ply")


AXES = [f"{axis}_axis{part}" for axis in "xyz" for part in "xyz"]
CAMERA_ELEMENT = "element camera 1\n" + "".join(
    f"property float {name}\n" for name in ("view_px", "view_py", "view_pz", *AXES)
)


@pytest.mark.parametrize(
    ("camera", "numbers", "view"),
    [
        (CAMERA_ELEMENT, [1, 2, 3, 1, 0, 0, 0, 1, 0, 0, 0, 1], [1, 2, 3, 0, 0, 0, 1]),
        (CAMERA_ELEMENT, [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], None),  # not set
        (CAMERA_ELEMENT, [0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1], None),  # no rotation
        (CAMERA_ELEMENT, [1, 2, 3], None),  # cut off
        (CAMERA_ELEMENT.replace("camera 1", "camera 2"), [1, 2, 3, 1, 0, 0, 0, 1, 0, 0, 0, 1], None),
        (CAMERA_ELEMENT.replace("view_px", "px"), [1, 2, 3, 1, 0, 0, 0, 1, 0, 0, 0, 1], None),
        (CAMERA_ELEMENT.replace("camera", "face"), [1, 2, 3, 1, 0, 0, 0, 1, 0, 0, 0, 1], None),
    ],
)
def test_the_camera_behind_the_points_is_the_viewpoint_where_it_is_one(
    camera: str, numbers: list[float], view: list[float] | None
):
    body = POINTS.tobytes() + np.array(numbers, "<f4").tobytes()
    found = decode_ply(ply(VERTEX + camera, body), "a.ply").viewpoint
    assert (found is None) == (view is None)
    if view is not None:
        np.testing.assert_allclose(found, view, atol=1e-6)


def test_what_a_ply_lacks_is_told_by_its_head_where_that_suffices():
    whole = ply(VERTEX)
    assert header_losses(whole, len(whole), "a.ply") == ()
    (lost,) = header_losses(whole, len(whole) - 1, "a.ply") or ()
    assert lost.count == 1
    assert header_losses(whole, len(whole) + 12, "a.ply") is None  # more than was promised: it has to be read
    assert header_losses(whole.replace(b"binary_little_endian", b"ascii"), len(whole), "a.ply") is None
    faces = ply("element face 2\nproperty list uchar ushort index\n" + VERTEX)
    assert header_losses(faces, len(faces), "a.ply") is None


METADATA = "METADATA\nINFORMATION 1\nNAME L2 LOCATION vtk\nDATA 1 2\n\n"


def vtk(sections: str) -> bytes:
    text = "# vtk DataFile Version 3.0\na cloud\nASCII\nDATASET POLYDATA\nPOINTS 2 float\n1 2 3\n4 5 6\n"
    return (text + sections).encode()


@pytest.mark.parametrize(
    ("sections", "fields"),
    [
        ("POINT_DATA 2\nSCALARS heat float\nLOOKUP_TABLE default\n7 8\n", {"heat": [7, 8]}),
        ("POINT_DATA 2\nSCALARS heat float 2\nLOOKUP_TABLE default\n7 8 9 10\n", {"heat": [[7, 8], [9, 10]]}),
        ("POINT_DATA 2\nTEXTURE_COORDINATES uv 2 float\n1 2 3 4\n", {"uv": [[1, 2], [3, 4]]}),
        ("POINT_DATA 2\nCOLOR_SCALARS c 1\n0.5 1\n", {"c": [0.5, 1]}),
        ("POINT_DATA 2\nVECTORS v float\n1 2 3 4 5 6\n", {"v": [[1, 2, 3], [4, 5, 6]]}),
        ("POINT_DATA 2\nLOOKUP_TABLE t 0\nSCALARS heat int 1\nLOOKUP_TABLE t\n7 8\n", {"heat": [7, 8]}),
        ("CELL_DATA 1\nSCALARS heat float\nLOOKUP_TABLE default\n7\n", {}),
        (f"{METADATA}POINT_DATA 2\nFIELD f 1\na 1 2 int\n3 4\n", {"a": [3, 4]}),
    ],
)  # fmt: skip
def test_attributes_of_vtk_points_are_read_and_those_of_cells_passed_over(
    sections: str, fields: dict[str, list[float]]
):
    cloud = decode_cloud(vtk(sections), "a.vtk")
    assert cloud.points.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert {name: values.tolist() for name, values in cloud.fields.items()} == fields


@pytest.mark.parametrize(
    ("sections", "why"),
    [
        ("POINT_DATA 2\nSCALARS heat float\n7 8\n", "without its LOOKUP_TABLE"),
        ("POINT_DATA -2\n", "a count is negative"),
        ("POINT_DATA 2\nGLYPHS a float\n1 2\n", "GLYPHS is unknown"),
        ("POINT_DATA 2\nSCALARS heat quaternion\nLOOKUP_TABLE default\n7 8\n", "quaternion"),
        ("POINT_DATA 2\nTEXTURE_COORDINATES uv two float\n1 2 3 4\n", "invalid literal"),
    ],
)
def test_what_no_vtk_file_has_is_refused_with_the_reason(sections: str, why: str):
    with pytest.raises(ParseError) as caught:
        decode_cloud(vtk(sections), "a.vtk")
    assert why in str(caught.value)
