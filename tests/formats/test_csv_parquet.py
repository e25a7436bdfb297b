"""Export to CSV and Parquet: the folder opens again through its recording.yaml, nothing changed."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import transect
from transect import formats
from transect.errors import ParseError, TransectError, UnsupportedError, UsageError
from transect.formats.shared.clouds import encode_cloud
from transect.formats.shared.images import decode_image
from transect.recording import FrameTree, Recording, Stream, arrow, source_of, stream_of_values
from transect.types import CameraModel, GridMap, Image, Imu, LaserScan, NavFix, PointCloud, Record, Verdict

FORMATS = ("csv", "parquet")
T = np.array([1657000000_123456789, 1657000001_000000001, 1657000000_500000000], dtype=np.int64)


def columns_stream() -> Stream:
    values: dict[str, Any] = {
        "acc_x": np.array([0.1, np.nan, -1e-300]),
        "gyro_x": np.array([1 / 3, 2e17, np.inf]),
        "count": np.array([1, 2**53 + 1, -(2**62)], dtype=np.int64),
        "flag": np.array([True, False, True]),
        "small": np.array([1, 255, 0], dtype=np.uint8),
        "single": np.array([0.1, 3.4e38, -0.0], dtype=np.float32),
        "mode": ["idle, waiting", 'say "go"', ""],
        "covariance": np.arange(6.0).reshape(3, 2) / 7,
        "decibel": np.array([1.0, 2.0, 3.0]),
        "delay": np.array([5.0, 6.0, 7.0]),
    }
    return stream_of_values(
        "Device/Imu",
        T,
        values,
        type=Imu,
        units={"decibel": "dB", "delay": "ns"},
        log_ns=T + 5,
        frame="imu",
        tag="main",
    )


def scan_stream() -> Stream:
    ranges = arrow.ragged([np.array([1.0, np.nan, 3.0]), np.array([]), np.array([0.1])])
    values = {"ranges": ranges, "start_angle": np.zeros(3), "angle_increment": np.ones(3)}
    table = arrow.table(T, values, units=LaserScan.units())
    return Stream("Laser", LaserScan, table, clock="device", role="truth")


def full_recording() -> Recording:
    frames = FrameTree()
    matrix = np.eye(4)
    matrix[:3, 3] = 0.1, 0.2, 1 / 3
    frames.add_static("base", "imu", matrix)
    K = np.array([[500.0, 1.5, 320], [0, 501, 240], [0, 0, 1]])
    cameras = {
        "left": CameraModel("left", 640, 480, K, "radtan", np.array([0.1, 0.2, 0.3, 0.4, 0.5]), frame="mast"),
        "right": CameraModel("right", 640, 480, K, "equidistant", np.ones(4), frame="right"),
        "plain": CameraModel("plain", 640, 480, K, frame="plain"),
    }
    return Recording(
        "a drive",
        (columns_stream(), scan_stream()),
        frames=frames,
        cameras=cameras,
        conditions={"dust": True, "day": 3},
        notes=("it rained",),
    )


def same_tables(a: pa.Table, b: pa.Table) -> None:
    assert a.column_names == b.column_names
    for name in a.column_names:
        assert a.schema.field(name).type == b.schema.field(name).type, name
        assert arrow.unit_of(a.schema.field(name)) == arrow.unit_of(b.schema.field(name)), name
        x, y = a.column(name).to_pylist(), b.column(name).to_pylist()
        np.testing.assert_equal(x, y, err_msg=name)


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_whose_camera_is_missing_opens_again_without_it(tmp_path: Path, format: str):
    stream = stream_of_values("Flow", T, {"x": np.arange(3.0)}, camera="left")
    said = formats.write(Recording("day", (stream,)), tmp_path / "day", format)
    assert "Flow: the camera left is not known, and not named" in said
    (again,) = transect.open(tmp_path / "day").streams
    assert again.camera == ""
    assert again["x"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("format", FORMATS)
def test_an_exported_recording_opens_again_unchanged(tmp_path: Path, format: str):
    recording = full_recording()
    assert formats.write(recording, tmp_path / "out", format) == ()
    again = transect.open(tmp_path / "out")
    assert (again.format, again.name, again.losses) == ("described", "a drive", ())
    assert [s.name for s in again] == ["Device/Imu", "Laser"]
    for stream in recording:
        other = again[stream.name]
        same_tables(other.table, stream.table)
        for key in ("type", "clock", "role", "tag", "frame", "child"):
            assert getattr(other, key) == getattr(stream, key), key
    np.testing.assert_array_equal(again.frames.lookup("base", "imu"), recording.frames.lookup("base", "imu"))
    for name, camera in recording.cameras.items():
        assert again.cameras[name].same_as(camera), name
        assert again.cameras[name].frame == camera.frame
    assert again.conditions == recording.conditions
    assert again.notes == recording.notes


def test_the_csv_header_has_the_units(tmp_path: Path):
    formats.write(full_recording(), tmp_path / "out", "csv")
    first = (tmp_path / "out/Device/Imu.csv").read_text().splitlines()[0]
    assert first.split(",")[:4] == ['"t_ns [ns]"', '"log_ns [ns]"', '"acc_x [m/s2]"', '"gyro_x [rad/s]"']


def test_the_parquet_file_has_the_units_in_its_metadata(tmp_path: Path):
    import pyarrow.parquet as pq

    formats.write(full_recording(), tmp_path / "out", "parquet")
    schema = pq.read_schema(tmp_path / "out/Device/Imu.parquet")
    assert schema.field("acc_x").metadata[b"unit"] == b"m/s2"


def payload_folder(path: Path) -> Path:
    path.mkdir()
    for i in range(3):
        cv2.imwrite(str(path / f"cam{1657000000 + i}.jpg"), np.full((8, 8), 40 * i, np.uint8))
        data = encode_cloud(PointCloud(np.full((5, 3), float(i), "f4")), ".ply")
        (path / f"scan{1657000000 + i}.ply").write_bytes(data)
    return path


@pytest.mark.parametrize("format", FORMATS)
def test_payload_files_are_copied_byte_for_byte(tmp_path: Path, format: str):
    recording = transect.open(payload_folder(tmp_path / "in"))
    assert {s.type for s in recording} == {Image, PointCloud}
    formats.write(recording, tmp_path / "out", format)
    again = transect.open(tmp_path / "out")
    assert (tmp_path / "out/cam/000001.jpg").read_bytes() == (tmp_path / "in/cam1657000001.jpg").read_bytes()
    for name in ("cam", "scan"):
        assert again[name].t_ns.tolist() == recording[name].t_ns.tolist()
        assert again[name].clock == "utc"
    assert again["scan"][2].value.points[0, 0] == 2
    assert again["cam"][1].value.data[0, 0] == recording["cam"][1].value.data[0, 0]


def test_payloads_without_a_file_are_encoded_without_loss(tmp_path: Path):
    pixels = np.random.default_rng(0).integers(0, 2**16, (4, 6), dtype=np.uint16)
    table = arrow.table(T[:1], {})
    stream = Stream("Cam", Image, table, loader=lambda row: Image(pixels, t_ns=row["t_ns"]))
    formats.write(Recording("x", (stream,)), tmp_path / "out", "csv")
    data = (tmp_path / "out/Cam/000000.png").read_bytes()
    np.testing.assert_array_equal(decode_image(data, "x").data, pixels)
    np.testing.assert_array_equal(transect.open(tmp_path / "out")["Cam"][0].value.data, pixels)


def test_maps_are_written_as_geotiff(tmp_path: Path):
    pytest.importorskip("rasterio")
    grid = GridMap({"elevation": np.arange(6.0).reshape(2, 3)}, (1.0, 0.0, 5.0, 0.0, -1.0, 7.0), "EPSG:32633")
    stream = Stream("Map", GridMap, arrow.table([0], {}), clock="index", loader=lambda row: grid)
    formats.write(Recording("x", (stream,)), tmp_path / "out", "parquet")
    again = transect.open(tmp_path / "out")["Map"][0].value
    np.testing.assert_array_equal(again.layers["elevation"], grid.layers["elevation"])
    assert again.crs == "EPSG:32633"


def test_a_slice_and_a_selection_can_be_exported(tmp_path: Path):
    recording = full_recording().select("Device/*").slice("+0s", "+0.5s")
    formats.write(recording, tmp_path / "out", "csv")
    again = transect.open(tmp_path / "out")
    assert [len(s) for s in again] == [2]


def test_what_cannot_be_carried_is_said(tmp_path: Path):
    frames = FrameTree()
    frames.add_moving("map", "base", [0, 1], np.zeros((2, 3)), np.tile([0, 0, 0, 1.0], (2, 1)))
    odd = Stream("odd", Verdict, arrow.table([1], {"trust": np.ones(1)}))
    nested = pa.table({"t_ns": pa.array([1], pa.int64()), "s": pa.array([{"a": 1}])})
    said = formats.write(
        Recording("x", (odd, Stream("nested", Record, nested)), frames=frames), tmp_path / "out", "csv"
    )
    assert any("odd" in s and "Record" in s for s in said)
    assert any("nested" in s and "struct" in s for s in said)
    assert any("map -> base" in s for s in said)
    assert transect.open(tmp_path / "out")["odd"]["trust"].tolist() == [1.0]


def test_stream_names_become_safe_and_different_file_names(tmp_path: Path):
    names = ("../up", "a:b", "a?b", "A_B", "/abs", "recording")
    streams = tuple(stream_of_values(n, T, {"v": np.arange(3.0)}) for n in names)
    formats.write(Recording("x", streams), tmp_path / "out", "csv")
    files = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.csv"))
    assert len(files) == len(names)
    assert all(f.startswith("out/") for f in files)
    again = transect.open(tmp_path / "out")
    assert {s.name for s in again} == set(names)


@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path, format: str):
    (tmp_path / "x").write_text("")
    with pytest.raises(UsageError, match="exists already"):
        formats.write(full_recording(), tmp_path, format)


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_alone_is_not_opened_but_the_error_says_how(tmp_path: Path, format: str):
    (tmp_path / f"a.{format}").write_text("t,v\n1,2\n")
    source = source_of(tmp_path / f"a.{format}")
    assert not formats.load(format).recognises(source)
    with pytest.raises(UnsupportedError) as caught:
        formats.load(format).read(source)
    assert "recording" in caught.value.hint


@given(
    values=hnp.arrays(
        np.float64, st.integers(1, 20), elements=st.floats(allow_nan=True, allow_infinity=True)
    ),
    times=st.lists(st.integers(-(2**62), 2**62), min_size=20, max_size=20),
    words=st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C"])), min_size=20, max_size=20),
    format=st.sampled_from(FORMATS),
)
def test_any_number_time_and_text_survives(
    tmp_path_factory: pytest.TempPathFactory,
    values: np.ndarray,
    times: list[int],
    words: list[str],
    format: str,
):
    n = len(values)
    stream = stream_of_values("s", np.array(times[:n], np.int64), {"v": values, "w": words[:n]}, type=Record)
    path = tmp_path_factory.mktemp("e") / "out"
    formats.write(Recording("x", (stream,)), path, format)
    again = transect.open(path, format="described")["s"]
    assert again.losses == ()
    assert again.t_ns.tolist() == times[:n]
    np.testing.assert_array_equal(again["v"], values)
    assert again["w"] == words[:n]


@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=5))
def test_a_mutated_parquet_file_raises_nothing_but_transect_errors(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[float, int]]
):
    path = tmp_path_factory.mktemp("p") / "out"
    formats.write(Recording("x", (columns_stream(),)), path, "parquet")
    file = path / "Device/Imu.parquet"
    data = bytearray(file.read_bytes())
    for place, value in changes:
        data[int(place * (len(data) - 1))] = value
    file.write_bytes(bytes(data))
    try:
        rows = len(transect.open(path, format="described")["Device/Imu"])
    except TransectError:
        return
    assert rows <= 3


def test_a_cut_parquet_file_is_a_parse_error(tmp_path: Path):
    formats.write(Recording("x", (columns_stream(),)), tmp_path / "out", "parquet")
    file = tmp_path / "out/Device/Imu.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ParseError, match="Parquet"):
        transect.open(tmp_path / "out")["Device/Imu"].table  # noqa: B018


def test_navfix_survives_with_its_fix_type(tmp_path: Path):
    values: dict[str, Any] = {
        "lat": np.ones(3),
        "lon": np.ones(3),
        "alt": np.ones(3),
        "fix": ["3d", "rtk fixed", "none"],
    }
    formats.write(
        Recording("x", (stream_of_values("Gnss", T, values, type=NavFix),)), tmp_path / "out", "csv"
    )
    assert transect.open(tmp_path / "out")["Gnss"][1].value.fix == "rtk fixed"
