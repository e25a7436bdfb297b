"""Pictures, clouds, maps and numbers as no sensor gives them: shown, or refused with a typed error.

No warning may reach the terminal either: here they are errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from tests.commands import transect as typed

from transect import formats
from transect.errors import UnsupportedError
from transect.formats.shared.images import encode_image
from transect.geometry.colours import displayed, rgb_of
from transect.recording import Recording, Stream, arrow, stream_of_values
from transect.recording.arrow import PAYLOAD
from transect.types import DepthMap, GridMap, Image, Imu, LaserScan, NavFix, PointCloud, Pose
from transect.view.report import ReportOptions, gather, write_page
from transect.view.viewer import Viewer, ViewerScene
from transect.view.viewer.encoding import (
    as_float32,
    cloud_points,
    encode_picture,
    encode_surface,
    scan_points,
)

SECOND_NS = 1_000_000_000
T_NS = 1_656_936_023 * SECOND_NS + np.arange(12) * SECOND_NS
ODD = np.array([1e300, -1e300, np.inf, -np.inf, np.nan, 0.0, 1e39, -5e-324, 1e-40, 3.0, 2.0, 1.0])
LABEL = """<?xml version="1.0" encoding="UTF-8"?>
<Product_Observational xmlns="http://pds.nasa.gov/pds4/pds/v1">
  <Identification_Area><logical_identifier>urn:nasa:pds:a:b:c</logical_identifier>
    <version_id>1.0</version_id><title>Bands</title></Identification_Area>
  <File_Area_Observational><File><file_name>bands.img</file_name></File>
    <Array_3D_Image><local_identifier>bands</local_identifier><offset unit="byte">0</offset>
      <axes>3</axes><axis_index_order>Last Index Fastest</axis_index_order>
      <Element_Array><data_type>UnsignedByte</data_type></Element_Array>
      <Axis_Array><axis_name>Band</axis_name><elements>{bands}</elements>
        <sequence_number>1</sequence_number></Axis_Array>
      <Axis_Array><axis_name>Line</axis_name><elements>6</elements>
        <sequence_number>2</sequence_number></Axis_Array>
      <Axis_Array><axis_name>Sample</axis_name><elements>8</elements>
        <sequence_number>3</sequence_number></Axis_Array>
    </Array_3D_Image></File_Area_Observational>
</Product_Observational>"""


def stream_of(kind: type, value: Any) -> Stream:
    """Return a stream with one payload at twelve times."""

    def load(row: Mapping[str, Any]) -> Any:
        return value

    table = arrow.table(T_NS, {PAYLOAD: arrow.strings([str(k) for k in range(len(T_NS))])})
    return Stream("Thing", kind, table, loader=load)


def picture_of(image: Image | DepthMap) -> np.ndarray:
    decoded = cv2.imdecode(np.frombuffer(encode_picture(image), np.uint8), cv2.IMREAD_UNCHANGED)
    assert decoded is not None
    return decoded


# Pictures


@pytest.fixture(params=[2, 5])
def product(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A PDS4 product, a picture of several bands: the first is 10, the next 20, ..."""
    bands = np.repeat(10 * np.arange(1, request.param + 1, dtype=np.uint8), 48)
    (tmp_path / "bands.img").write_bytes(bands.tobytes())
    (tmp_path / "bands.xml").write_text(LABEL.format(bands=request.param))
    return tmp_path / "bands.xml"


def test_pds4_pictures_of_two_or_five_bands_are_viewed_and_reported(product: Path, tmp_path: Path) -> None:
    [stream] = formats.open(product)
    shown = picture_of(stream[0].payload)
    expected = [10] if stream[0].payload.data.shape[2] == 2 else [30, 20, 10]  # OpenCV decodes B, G, R
    assert shown.reshape(48, -1).mean(axis=0) == pytest.approx(expected, abs=2)
    for arguments in (
        ("view", product, "--save", tmp_path / "x.rrd"),
        ("report", product, "-o", tmp_path / "x.html"),
        ("check", product),
    ):
        done = typed(*arguments)
        assert done.returncode in (0, 4), done.stderr
        assert "OpenCV" not in done.stdout + done.stderr


@pytest.mark.parametrize("form", ["folder", "parquet", "csv", "rosbag", "mcap", "video"])
def test_pds4_pictures_of_two_or_five_bands_are_left_out_of_exports(
    product: Path, tmp_path: Path, form: str
) -> None:
    done = typed("export", product, "--format", form, "-o", tmp_path / "out")
    assert done.returncode in (1, 3)
    said = done.stdout + done.stderr
    assert "left out" in said
    assert "OpenCV" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("kind", ["u1", "u2", "i2", "f4", "f8", "?", "c8"])
@pytest.mark.parametrize("bands", [(), (1,), (2,), (3,), (4,), (7,)])
def test_pictures_of_any_numbers_and_bands_are_shown(kind: str, bands: tuple[int, ...]) -> None:
    ramp = np.broadcast_to(np.arange(16).reshape(16, *(1 for _ in bands)), (16, *bands))
    data = np.repeat(ramp[:, None], 6, axis=1).astype(kind)
    shown = displayed(data, "gray")
    assert shown.shape == ((16, 6, 3) if bands and bands[0] > 2 else (16, 6))
    assert shown.dtype == np.uint8
    column = shown[:, 0].reshape(16, -1)[:, 0].astype(int)
    assert (np.diff(column) >= 0).all()  # from dark to bright, in every type
    assert column[-1] > column[0]
    assert picture_of(Image(data)).shape[:2] == (16, 6)
    assert rgb_of(Image(data)).shape == (16, 6, 3)


@pytest.mark.parametrize("mode", ["rgb", "bgr"])
def test_red_is_red(mode: str) -> None:
    data = np.zeros((8, 8, 3), np.uint8)
    data[..., 0 if mode == "rgb" else 2] = 250
    blue, green, red = picture_of(Image(data, mode)).reshape(-1, 3).mean(axis=0)
    assert red > 230 > 30 > max(blue, green)


@pytest.mark.parametrize("shape", [(0, 9), (9, 0), (4, 4, 0), (7,), (2, 3, 4, 5), ()])
def test_what_is_no_picture_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UnsupportedError, match="cannot be shown"):
        encode_picture(Image(np.zeros(shape, np.uint8)))
    with pytest.raises(UnsupportedError, match="cannot be written as"):
        encode_image(Image(np.zeros(shape, np.uint8)), ".png")


@pytest.mark.parametrize("size", [(2, 70_000), (70_000, 2)])
def test_pictures_longer_than_a_jpeg_can_be_are_made_smaller(size: tuple[int, int]) -> None:
    assert max(picture_of(Image(np.full(size, 9, np.uint8))).shape) <= 9600


def test_thermal_pictures_with_numbers_that_are_none_are_stretched_by_the_others() -> None:
    data = np.tile(np.linspace(0.0, 10.0, 100), (4, 1))
    data[0, :6] = ODD[:6]
    shown = displayed(data, "thermal").astype(int)
    assert (shown[1, 0], shown[1, -1]) == (0, 255)
    assert (np.diff(shown[1]) >= 0).all()
    assert picture_of(DepthMap(np.full((4, 4), np.nan, np.float32))).max() == 0


# Points, maps and numbers


def test_what_float32_cannot_hold_is_the_largest_that_it_can() -> None:
    held = as_float32(ODD)
    largest = float(np.finfo(np.float32).max)
    assert held[[0, 1, 6]].tolist() == [largest, -largest, largest]
    assert held[9:].tolist() == [3, 2, 1]
    assert np.array_equal(np.isfinite(held), np.isfinite(ODD))


def test_points_that_are_nowhere_are_left_out() -> None:
    cloud = cloud_points(PointCloud(np.column_stack([ODD] * 3), {"intensity": ODD[::-1].copy()}))
    assert len(cloud) == np.isfinite(ODD).sum()
    assert np.isfinite(cloud).all()
    assert ((cloud[:, 3] >= 0) & (cloud[:, 3] <= 1)).all()
    scan = scan_points(LaserScan(np.array([1.0, np.inf, 2.0, 3.0]), 0.0, 1e308))
    assert scan.shape == (1, 4)  # the angles of the others are no numbers


@pytest.mark.parametrize("names", [["elevation"], ["occupancy"], ["height"], ["a", "b"], ["r", "g", "b"]])
def test_maps_with_odd_cells_are_drawn(names: list[str]) -> None:
    grid = GridMap({name: np.tile(ODD, (3, 1)) for name in names}, (1.0, 0, 0, 0, -1.0, 0), frame="map")
    drawn = encode_surface((True, np.eye(4)), grid)
    cells = np.frombuffer(drawn, "<f4", 36 * 3, offset=76).reshape(3, 12, 3)
    assert cells[..., 0].tolist() == [[k + 0.5 for k in range(12)]] * 3
    if len(names) == 1 and names != ["occupancy"]:
        known = np.abs(ODD) < 1e150
        assert np.isfinite(cells[0, :, 2]).tolist() == known.tolist()


def odd_recordings() -> Iterator[tuple[str, Recording]]:
    columns: dict[str, np.ndarray] = {
        "odd": ODD, "huge": np.arange(-6, 6) * 2.8e307, "denormal": np.arange(12) * 5e-324,
        "apart": 1e16 + 2.0 * np.arange(12), "same": np.full(12, 1e308), "nothing": np.full(12, np.nan),
        "near": 1.0 + np.arange(12) * 2.3e-16,
    }  # fmt: skip
    zeros = np.zeros(12)
    for name, values in columns.items():
        yield f"number {name}", Recording(name, (stream_of_values("Imu", T_NS, {"acc_x": values}, type=Imu),))
        pose = {"x": values, "y": values[::-1].copy(), "z": zeros, "qx": zeros, "qy": zeros, "qz": zeros}
        pose |= {"qw": zeros + 1}
        made = stream_of_values("Pose", T_NS, pose, type=Pose, frame="map", child="base")
        yield f"pose {name}", Recording(name, (made,))
        fix = {"lat": 0.6 + 1e-6 * np.arange(12), "lon": zeros, "alt": values}
        yield f"fix {name}", Recording(name, (stream_of_values("Fix", T_NS, fix, type=NavFix),))
    yield "cloud", Recording("cloud", (stream_of(PointCloud, PointCloud(np.column_stack([ODD] * 3))),))
    scans = {"ranges": np.tile(ODD, (12, 1)), "start_angle": ODD, "angle_increment": ODD}
    yield "scan", Recording("scan", (stream_of_values("Laser", T_NS, scans, type=LaserScan),))
    yield (
        "map",
        Recording(
            "map",
            (stream_of(GridMap, GridMap({"elevation": np.tile(ODD, (3, 1))}, (1.0, 0, 0, 0, -1.0, 0))),),
        ),
    )


@pytest.mark.parametrize(("name", "recording"), odd_recordings())
def test_a_recording_of_odd_numbers_is_viewed_and_reported(name: str, recording: Recording) -> None:
    viewer = Viewer(ViewerScene(recording), check=False)
    try:
        told = json.loads(viewer.description)
        (stream,) = told["streams"]
        assert viewer.answer("times/0") is not None
        for number in range(len(stream["curves"])):
            assert viewer.answer(f"curve/0/{number}/0/{told['duration']}") is not None
        if stream["kind"] != "numbers":
            assert viewer.answer("sample/0/11") is not None
        for number in range(len(told["paths"])):
            answer = viewer.answer(f"path/{number}")
            assert answer is not None
            assert np.isfinite(np.frombuffer(answer[1], "<f4")).all()
    finally:
        viewer._server.server_close()
    page = write_page(gather([name], lambda *_: recording, ReportOptions())[0])
    assert stream["name"] in page
    assert "NaN" not in page.partition("<svg")[2].rpartition("</svg>")[0].replace("NaN;", "")


def test_one_stream_without_a_position_does_not_hide_the_others() -> None:
    columns = dict.fromkeys(("x", "y", "z", "qx", "qy", "qz"), np.full(12, np.nan)) | {"qw": np.ones(12)}
    lost = stream_of_values("Pose", T_NS, columns, type=Pose, frame="map", child="base")
    imu = stream_of_values("Imu", T_NS, {"acc_x": np.arange(12.0)}, type=Imu)
    scene = ViewerScene(Recording("lost", (lost, imu)))
    assert {stream.name for stream in scene.streams} == {"Pose", "Imu"}
    assert scene.paths == ()
