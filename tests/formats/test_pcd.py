"""Point clouds: codecs read what they write, check headers, and keep the readable points."""

import io
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pypcd4
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import transect
from transect import formats
from transect.errors import ParseError, TransectError, UnsupportedError, UsageError
from transect.formats.shared.clouds import cloud_loader, decode_cloud, encode_cloud
from transect.formats.shared.clouds.points import cloud_of
from transect.formats.shared.file_heads import CLOUD_SUFFIXES
from transect.recording import Recording, source_of
from transect.types import PointCloud

ENCODINGS = [
    (".pcd", "ascii"),
    (".pcd", "binary"),
    (".pcd", "binary_compressed"),
    (".ply", "ascii"),
    (".ply", "binary"),
    (".ply", "binary_big_endian"),
    (".vtk", "ascii"),
    (".vtk", "binary"),
]

PCD_ASCII = """# .PCD v.7 - Point Cloud Data file format
VERSION .7
FIELDS x y z rgb
SIZE 4 4 4 4
TYPE F F F F
COUNT 1 1 1 1
WIDTH 3
HEIGHT 1
VIEWPOINT 1 2 3 0.5 -0.5 0.5 -0.5
POINTS 3
DATA ascii
0.93773 0.33763 0 4.2108e+06
0.90805 0.35641 0 4.2108e+06
nan nan nan 4.2108e+06
"""
"""After the example of the PCD 0.7 description, with a viewpoint and a beam without return."""


def cloud(n: int = 50, seed: int = 0) -> PointCloud:
    random = np.random.default_rng(seed)
    fields = {
        "intensity": random.uniform(0, 255, n).astype(np.float32),
        "ring": random.integers(0, 64, n).astype(np.uint16),
        "rgb": random.integers(0, 256, (n, 3)).astype(np.uint8),
        "normal": random.normal(size=(n, 3)).astype(np.float32),
        "t_offset_ns": random.integers(0, 10**8, n),
        "descriptor": random.normal(size=(n, 4)),
    }
    points = random.normal(scale=30, size=(n, 3)).astype(np.float32)
    points[n // 2] = np.nan
    return PointCloud(points, fields)


def assert_same(read: PointCloud, wrote: PointCloud) -> None:
    np.testing.assert_array_equal(read.points, wrote.points)
    assert set(read.fields) == set(wrote.fields)
    for name, values in wrote.fields.items():
        np.testing.assert_array_equal(read.fields[name], values, err_msg=name)
        assert read.fields[name].dtype == values.dtype, name


def test_the_example_of_the_pcd_description_reads_as_it_says():
    read = decode_cloud(PCD_ASCII.encode(), "example.pcd")
    np.testing.assert_array_equal(
        read.points[:2], np.array([[0.93773, 0.33763, 0], [0.90805, 0.35641, 0]], "f4")
    )
    assert np.isnan(read.points[2]).all()
    # 4.2108e+06 is 0x4A80804x as the bits of a float: the description's red-green-blue packing
    packed = np.array([4.2108e06], "f4").view("u4")[0]
    assert read.fields["rgb"][0].tolist() == [packed >> 16 & 255, packed >> 8 & 255, packed & 255]
    # VIEWPOINT is tx ty tz qw qx qy qz
    np.testing.assert_array_equal(read.viewpoint, [1, 2, 3, -0.5, 0.5, -0.5, 0.5])


@pytest.mark.parametrize(("suffix", "encoding"), ENCODINGS)
def test_every_encoding_reads_back_what_was_written(suffix: str, encoding: str):
    wrote = cloud()
    assert_same(decode_cloud(encode_cloud(wrote, suffix, encoding), "a" + suffix), wrote)


@pytest.mark.parametrize(("suffix", "encoding"), ENCODINGS)
def test_a_cloud_without_points_reads_back(suffix: str, encoding: str):
    read = decode_cloud(encode_cloud(PointCloud(np.zeros((0, 3), "f4")), suffix, encoding), "a" + suffix)
    assert read.points.shape == (0, 3)


@given(
    points=hnp.arrays(
        np.float32, st.tuples(st.integers(1, 20), st.just(3)), elements=st.floats(width=32, allow_nan=False)
    ),
    which=st.sampled_from(ENCODINGS),
)
def test_any_float_survives_any_encoding(points: np.ndarray, which: tuple[str, str]):
    suffix, encoding = which
    read = decode_cloud(encode_cloud(PointCloud(points), suffix, encoding), "a" + suffix)
    np.testing.assert_array_equal(read.points, points)


def test_double_coordinates_stay_double():
    wrote = PointCloud(np.array([[500000.123456789, 4.5e6, 1e-12]]))
    for suffix, encoding in ENCODINGS:
        read = decode_cloud(encode_cloud(wrote, suffix, encoding), "a" + suffix)
        np.testing.assert_array_equal(read.points, wrote.points)
        assert read.points.dtype == np.float64


def test_pypcd4_reads_what_we_write_and_the_other_way_round(tmp_path: Path):
    wrote = cloud()
    for encoding in ("ascii", "binary", "binary_compressed"):
        theirs = pypcd4.PointCloud.from_fileobj(io.BytesIO(encode_cloud(wrote, ".pcd", encoding)))
        np.testing.assert_array_equal(theirs.numpy(("x", "y", "z")), wrote.points)
        sink = io.BytesIO()
        theirs.save(sink, pypcd4.Encoding("binary"))
        np.testing.assert_array_equal(decode_cloud(sink.getvalue(), "a.pcd").points, wrote.points)


def test_compression_that_does_not_pay_is_written_plain_and_the_header_says_so():
    noise = np.random.default_rng(1).integers(0, 2**32, (4, 3), dtype=np.uint32).view(np.float32)
    noise[~np.isfinite(noise)] = 0
    data = encode_cloud(PointCloud(noise), ".pcd", "binary_compressed")
    assert b"DATA binary\n" in data
    np.testing.assert_array_equal(decode_cloud(data, "a.pcd").points, noise)


def test_the_viewpoint_survives_a_round_trip():
    pose = np.array([1.5, -2.0, 0.25, 0.5, -0.5, 0.5, 0.5])
    wrote = PointCloud(np.ones((3, 3)), viewpoint=pose)
    np.testing.assert_array_equal(decode_cloud(encode_cloud(wrote, ".pcd"), "a.pcd").viewpoint, pose)


def test_counted_fields_of_a_compressed_cloud_stand_together_as_pcl_writes_them():
    # PCL packs field by field, and the COUNT values of a point stay together
    import lzf

    x, y, z = np.arange(40, dtype="f4"), np.zeros(40, "f4"), np.ones(40, "f4")
    histogram = np.arange(80, dtype="f4").reshape(40, 2)
    flat = b"".join(a.tobytes() for a in (x, y, z, histogram))
    packed = lzf.compress(flat)
    head = (
        "VERSION 0.7\nFIELDS x y z histogram\nSIZE 4 4 4 4\nTYPE F F F F\nCOUNT 1 1 1 2\n"
        "WIDTH 40\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 40\nDATA binary_compressed\n"
    )
    read = decode_cloud(head.encode() + struct.pack("<II", len(packed), len(flat)) + packed, "a.pcd")
    np.testing.assert_array_equal(read.fields["histogram"], histogram)


def test_padding_fields_are_dropped_and_an_old_header_without_count_is_read():
    head = "VERSION 0.6\nFIELDS x y z _\nSIZE 4 4 4 4\nTYPE F F F F\nWIDTH 2\nHEIGHT 1\nDATA binary\n"
    body = np.arange(8, dtype="<f4").tobytes()
    read = decode_cloud(head.encode() + body, "a.pcd")
    np.testing.assert_array_equal(read.points, [[0, 1, 2], [4, 5, 6]])
    assert not read.fields


def test_a_ply_with_faces_before_and_after_its_points_is_read():
    head = (
        "ply\nformat binary_little_endian 1.0\nelement face 2\nproperty list uchar int vertex_indices\n"
        "element vertex 2\nproperty double x\nproperty double y\nproperty double z\n"
        "element face2 1\nproperty list uchar int vertex_indices\nend_header\n"
    )
    faces = struct.pack("<B3i", 3, 0, 1, 2) + struct.pack("<B1i", 1, 7)
    body = faces + np.arange(6, dtype="<f8").tobytes() + struct.pack("<B1i", 1, 7)
    np.testing.assert_array_equal(decode_cloud(head.encode() + body, "a.ply").points, [[0, 1, 2], [3, 4, 5]])


def test_a_vtk_with_cells_scalars_and_vectors_is_read():
    text = (
        "# vtk DataFile Version 3.0\na title\nASCII\nDATASET POLYDATA\nPOINTS 2 float\n0 1 2 3 4 5\n"
        "VERTICES 2 4\n1 0\n1 1\nPOINT_DATA 2\nNORMALS n float\n0 0 1 0 1 0\n"
        "SCALARS height float 1\nLOOKUP_TABLE default\n7.5 8.5\nFIELD more 1\nid 1 2 unsigned_int\n4 5\n"
        "CELL_DATA 2\nSCALARS other int\nLOOKUP_TABLE default\n1 2\n"
    )
    read = decode_cloud(text.encode(), "a.vtk")
    np.testing.assert_array_equal(read.points, [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(read.fields["normal"], [[0, 0, 1], [0, 1, 0]])
    assert read.fields["height"].tolist() == [7.5, 8.5]
    assert read.fields["id"].tolist() == [4, 5]
    assert "other" not in read.fields


@pytest.mark.parametrize(
    ("text", "points", "fields"),
    [
        ("x,y,z,nx,ny,nz\n1 , 2 , 3 , 0,0,1\n", [[1, 2, 3]], {"normal"}),
        ("   1.0e+00   2.0e+00  -3.0e+00\n", [[1, 2, -3]], set()),
        ("0.5 , 1.5\n", [[0.5, 1.5, 0]], set()),
        ("-0.48906,-0.14171,-0.083654,1,16\n", [[-0.48906, -0.14171, -0.083654]], {"intensity", "ring"}),
        ("#X Y Z label\r\n1 2 3 4\r\n", [[1, 2, 3]], {"label"}),
    ],
)
def test_text_clouds_are_read_with_and_without_a_header(
    text: str, points: list[list[float]], fields: set[str]
):
    read = decode_cloud(text.encode(), "a.csv")
    np.testing.assert_array_equal(read.points, points)
    assert set(read.fields) == fields


@pytest.mark.parametrize("fields", [(), ("intensity",), ("intensity", "ring")])
def test_raw_float32_columns_are_found_by_size_and_plausibility(fields: tuple[str, ...]):
    random = np.random.default_rng(3)
    kinds = {"intensity": random.uniform(0, 1, 240).astype("f4"), "ring": np.arange(240, dtype="f4") % 32}
    wrote = PointCloud(random.normal(scale=20, size=(240, 3)).astype("f4"), {f: kinds[f] for f in fields})
    read = decode_cloud(encode_cloud(wrote, ".bin"), "a.bin")
    assert_same(read, wrote)


def test_raw_columns_can_be_told():
    data = np.arange(12, dtype="<f4").tobytes()
    read = decode_cloud(data, "a.bin", columns=("x", "y", "z", "intensity", "t", "range"))
    assert len(read) == 2
    assert set(read.fields) == {"intensity", "t", "range"}


def test_ouster_times_become_offsets():
    columns = {
        "x": np.zeros(2),
        "y": np.zeros(2),
        "z": np.zeros(2),
        "t": np.array([0, 99_000_000], np.uint32),
    }
    made = cloud_of(columns, "a")
    assert made.fields["t_offset_ns"].tolist() == [0, 99_000_000]
    assert made.fields["t_offset_ns"].dtype == np.int64


# What a header promises and a file does not hold


def lying_pcd(points: int, there: int, encoding: str = "binary") -> bytes:
    head = (
        "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
        f"WIDTH {points}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {points}\nDATA {encoding}\n"
    )
    return head.encode() + np.arange(3 * there, dtype="<f4").tobytes()


def test_a_pcd_that_claims_a_billion_points_is_refused_without_taking_memory():
    data = lying_pcd(10**9, 60)
    assert len(data) < 1000
    with pytest.raises(ParseError, match="does not hold all its points") as caught:
        decode_cloud(data, "a.pcd")
    assert "1000000000 points, 60 are there" in caught.value.why
    assert len(decode_cloud(data, "a.pcd", partial=True)) == 60


def test_a_compressed_pcd_that_claims_gigabytes_is_refused_without_taking_memory():
    data = lying_pcd(300_000_000, 0, "binary_compressed") + struct.pack("<II", 20, 3_600_000_000) + bytes(20)
    with pytest.raises(ParseError, match="cannot be unpacked"):
        decode_cloud(data, "a.pcd", partial=True)


@pytest.mark.parametrize(("suffix", "encoding"), ENCODINGS)
def test_a_cut_cloud_keeps_its_whole_points_and_says_so(suffix: str, encoding: str):
    wrote = PointCloud(cloud().points)
    whole = encode_cloud(wrote, suffix, encoding)
    data = whole[: len(whole) // 2]
    with pytest.raises(ParseError):
        decode_cloud(data, "a" + suffix)
    if encoding == "binary_compressed":
        return
    kept = decode_cloud(data, "a" + suffix, partial=True)
    assert 0 < len(kept) < 50
    np.testing.assert_array_equal(kept.points, wrote.points[: len(kept)])


def test_points_beyond_the_promised_number_are_reported():
    data = lying_pcd(5, 50)
    with pytest.raises(ParseError) as caught:
        decode_cloud(data, "a.pcd")
    assert "more points follow" in caught.value.why
    padded = lying_pcd(5, 5) + bytes(4096)  # PCL leaves zeros at the end of a page
    assert len(decode_cloud(padded, "a.pcd")) == 5


def test_a_bad_row_of_an_ascii_cloud_is_located():
    data = PCD_ASCII.replace("0.90805", "0.9x805").encode()
    with pytest.raises(ParseError) as caught:
        decode_cloud(data, "a.pcd")
    assert caught.value.where == "a.pcd:13"
    assert len(decode_cloud(data, "a.pcd", partial=True)) == 2


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.pcd", b""),
        ("a.pcd", b"VERSION 0.7\nFIELDS x y z\n"),
        ("a.pcd", b"VERSION 0.7\nFIELDS x y z\nSIZE 4 4\nTYPE F F F\nPOINTS 1\nDATA ascii\n1 2 3\n"),
        ("a.pcd", b"FIELDS x y z\nSIZE 4 4 3\nTYPE F F F\nPOINTS 1\nDATA ascii\n1 2 3\n"),
        ("a.pcd", b"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 999999999\nPOINTS 1\nDATA binary\n"),
        ("a.pcd", b"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nPOINTS -1\nDATA binary\n"),
        ("a.pcd", b"FIELDS a b c\nSIZE 4 4 4\nTYPE F F F\nPOINTS 1\nDATA ascii\n1 2 3\n"),
        ("a.ply", b"plyformat ascii 1.0\n"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex x\nend_header\n"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement face 1\nproperty list uchar int i\nend_header\n"),
        ("a.vtk", b"# vtk DataFile Version 3.0\nt\nASCII\nDATASET POLYDATA\n"),
        ("a.vtk", b"\x00\x01"),
        ("a.csv", b"no numbers here\n"),
    ],
)
def test_what_is_no_cloud_is_refused_with_a_reason(name: str, data: bytes):
    with pytest.raises(ParseError) as caught:
        decode_cloud(data, name)
    assert caught.value.why
    assert name in caught.value.where


def test_an_unknown_suffix_or_encoding_is_refused():
    with pytest.raises(UnsupportedError, match="no point cloud"):
        decode_cloud(b"x", "a.obj")
    with pytest.raises(UnsupportedError, match="no encoding"):
        encode_cloud(cloud(), ".pcd", "utf-8")
    with pytest.raises(UnsupportedError):
        encode_cloud(cloud(), ".obj")
    assert set(CLOUD_SUFFIXES) >= {".pcd", ".ply", ".vtk", ".bin", ".csv"}


@given(
    which=st.sampled_from(ENCODINGS),
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6),
    cut=st.one_of(st.none(), st.floats(0, 1)),
)
def test_mutated_clouds_raise_nothing_but_parse_errors(
    which: tuple[str, str], changes: list[tuple[float, int]], cut: float | None
):
    suffix, encoding = which
    data = bytearray(encode_cloud(cloud(12), suffix, encoding))
    for place, value in changes:
        data[int(place * (len(data) - 1))] = value
    data = data if cut is None else data[: int(cut * len(data))]
    try:
        decode_cloud(bytes(data), "a" + suffix, partial=True)
        strict = decode_cloud(bytes(data), "a" + suffix)
    except ParseError:
        return
    assert cut is None or len(strict) <= 12


# Folders of clouds


def folder_of(tmp_path: Path, count: int = 3) -> Path:
    path = tmp_path / "scans"
    path.mkdir()
    for i in range(count):
        (path / f"1657000000.{i}00000.pcd").write_bytes(encode_cloud(cloud(seed=i), ".pcd"))
    return path


def test_a_folder_of_clouds_named_by_time_is_a_stream_on_utc(tmp_path: Path):
    recording = transect.open(folder_of(tmp_path))
    stream = recording["Lidar"]
    assert recording.format == "pcd"
    assert stream.clock == "utc"
    assert stream.t_ns.tolist() == [1657000000_000000000 + i * 10**8 for i in range(3)]
    assert_same(stream[1].value, cloud(seed=1))
    assert stream[1].value.t_ns == 1657000000_100000000


def test_numbered_clouds_are_on_the_index_clock_in_natural_order(tmp_path: Path):
    for i in (10, 9, 2):
        (tmp_path / f"scan{i}.ply").write_bytes(encode_cloud(cloud(i), ".ply"))
    stream = transect.open(tmp_path)["scan"]
    assert stream.clock == "index"
    assert [len(s.value) for s in stream] == [2, 9, 10]
    assert len(stream.at("9").value) == 9


def test_a_damaged_cloud_in_a_folder_is_kept_in_part_and_located(tmp_path: Path):
    path = folder_of(tmp_path)
    (path / "1657000000.300000.pcd").write_bytes(lying_pcd(10**9, 7))
    (path / "1657000000.400000.pcd").write_bytes(b"nothing of the kind")
    (path / "1657000000.500000.pcd").write_bytes(b"")
    recording = transect.open(path)
    assert [len(s.value) for s in recording["Lidar"]] == [50, 50, 50, 7]
    assert [loss.file for loss in recording.losses] == [f"1657000000.{i}00000.pcd" for i in (3, 4, 5)]
    assert recording.losses[0].count == 10**9 - 7
    with pytest.raises(ParseError):
        transect.open(path, strict=True)


def test_a_bad_line_of_a_text_cloud_is_a_loss_with_its_line(tmp_path: Path):
    path = tmp_path / "a.pcd"
    path.write_text(PCD_ASCII.replace("0.90805", "0.9x805"))
    recording = transect.open(path)
    assert [(loss.line, loss.count) for loss in recording.losses] == [(13, 1)]
    assert len(recording.streams[0][0].value) == 2


def test_a_loader_refuses_a_damaged_cloud_unless_told_otherwise(tmp_path: Path):
    (tmp_path / "a.pcd").write_bytes(lying_pcd(9, 4))
    source = source_of(tmp_path)
    row = {"payload": "a.pcd", "t_ns": 5}
    with pytest.raises(ParseError):
        cloud_loader(source)(row)
    loaded = cloud_loader(source, "lidar", partial=True)(row)
    assert (len(loaded), loaded.frame, loaded.t_ns) == (4, "lidar", 5)


def test_raw_clouds_say_how_they_were_read(tmp_path: Path):
    wrote = PointCloud(np.ones((240, 3), "f4"), {"intensity": np.ones(240, "f4") / 3})
    (tmp_path / "000000.bin").write_bytes(encode_cloud(wrote, ".bin"))
    recording = transect.open(tmp_path)
    assert recording.all_notes == ("Lidar: raw float32 points read as x y z intensity",)


def test_a_written_folder_opens_again_with_the_same_times_and_points(tmp_path: Path):
    recording = transect.open(folder_of(tmp_path))
    assert formats.write(recording, tmp_path / "out", "pcd") == ()
    again = transect.open(tmp_path / "out")
    assert again["Lidar"].t_ns.tolist() == recording["Lidar"].t_ns.tolist()
    original = (tmp_path / "scans" / "1657000000.100000.pcd").read_bytes()
    assert (tmp_path / "out" / "1657000000.100000000.pcd").read_bytes() == original
    with pytest.raises(UsageError, match="exists already"):
        formats.write(recording, tmp_path / "out", "pcd")


def test_one_cloud_is_written_to_a_file_of_any_kind(tmp_path: Path):
    wrote = folder_of(tmp_path, 1)
    formats.write(transect.open(wrote), tmp_path / "one.ply", "pcd")
    assert_same(transect.open(tmp_path / "one.ply").streams[0][0].value, cloud(seed=0))


def test_repeated_times_are_written_apart_and_said(tmp_path: Path):
    recording = transect.open(folder_of(tmp_path))
    stream = recording["Lidar"]
    doubled = stream.take(np.array([True, False, False]))
    table = pa.concat_tables([doubled.table, doubled.table])
    said = formats.write(
        Recording("x", (stream.replace(source=table),), source=recording.source), tmp_path / "o", "pcd"
    )
    assert "1 ns apart" in said[0]
    assert len(transect.open(tmp_path / "o")["Lidar"]) == 2


@given(place=st.floats(0, 1), value=st.integers(0, 255), which=st.integers(0, 2))
def test_a_mutated_folder_opens_or_raises_a_transect_error(
    tmp_path_factory: pytest.TempPathFactory, place: float, value: int, which: int
):
    path = folder_of(tmp_path_factory.mktemp("m"))
    file = sorted(path.iterdir())[which]
    data = bytearray(file.read_bytes())
    data[int(place * (len(data) - 1))] = value
    file.write_bytes(bytes(data))
    recording = transect.open(path)
    kept = 0
    for sample in recording["Lidar"]:
        try:
            kept += len(sample.value) == 50
        except TransectError:
            kept += 0
    assert kept >= 2
    assert isinstance(recording.losses, tuple)
