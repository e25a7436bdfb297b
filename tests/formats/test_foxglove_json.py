"""Messages of Foxglove's schemas written by other programs, as JSON: what the schemas say is what is read."""

import base64
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from mcap.writer import Writer

import transect
from transect.errors import TransectError
from transect.recording import Recording
from transect.types import GridMap, Image, PointCloud, Pose, Record, Trajectory

START_S = 1_650_000_000
START_NS = START_S * 10**9
ZERO, UPRIGHT = {"x": 0.0, "y": 0.0, "z": 0.0}, {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}
FLOAT32_TYPE, UINT8_TYPE = 7, 1  # foxglove.PackedElementField.NumericType


def stamped(frame: str = "map", nsec: int = 0, **fields: Any) -> dict[str, Any]:
    return {"timestamp": {"sec": START_S, "nsec": nsec}, "frame_id": frame, **fields}


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def opened(tmp_path: Path, schema: str, *sent: dict[str, Any], topic: str = "topic") -> Recording:
    """Open messages of one topic; all are published at the same time, a second after START."""
    path = tmp_path / "foreign.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        number = writer.register_schema(f"foxglove.{schema}", "jsonschema", b"{}")
        channel = writer.register_channel(topic, "json", number)
        for message in sent:
            writer.add_message(channel, START_NS + 10**9, json.dumps(message).encode(), START_NS + 10**9)
        writer.finish()
    return transect.open(path)


def test_an_image_file_in_base64_is_decoded(tmp_path: Path):
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    png = cv2.imencode(".png", pixels)[1].tobytes()
    stream = opened(
        tmp_path, "CompressedImage", stamped("cam", 7, data=encoded(png), format="png"), topic="image"
    )["image"]
    assert (stream.type, stream.frame, stream.t_ns.tolist()) == (Image, "cam", [START_NS + 7])
    np.testing.assert_array_equal(stream[0].value.data, pixels)


@pytest.mark.parametrize("data", ["no base64!", "AAA"])
def test_data_that_are_not_base64_are_an_error_of_their_message(tmp_path: Path, data: str):
    good = stamped("cam", width=2, height=1, step=2, encoding="mono8", data=encoded(b"\x07\x09"))
    stream = opened(tmp_path, "RawImage", good, {**good, "data": data})["topic"]
    assert stream[0].value.data.tolist() == [[7, 9]]
    with pytest.raises(TransectError, match="cannot be decoded") as caught:
        _ = stream[1].value
    assert "base64" in caught.value.why


def cloud(names: str, form: str, kind: int, values: list[list[float]]) -> dict[str, Any]:
    packed = np.array(values, dtype=form)
    fields = [
        {"name": name, "offset": k * packed.itemsize, "type": kind} for k, name in enumerate(names.split())
    ]
    stride = packed.shape[1] * packed.itemsize
    pose = {"position": ZERO, "orientation": UPRIGHT}
    return stamped("lidar", pose=pose, point_stride=stride, fields=fields, data=encoded(packed.tobytes()))


def test_a_cloud_without_height_is_flat_and_its_colours_are_one_field(tmp_path: Path):
    sent = cloud(
        "x y red green blue alpha", "<f4", FLOAT32_TYPE, [[1, 2, 10, 20, 30, 255], [3, 4, 40, 50, 60, 0]]
    )
    stream = opened(tmp_path, "PointCloud", sent)["topic"]
    assert stream.type is PointCloud
    value = stream[0].value
    assert value.points.tolist() == [[1, 2, 0], [3, 4, 0]]
    assert {name: field.tolist() for name, field in value.fields.items()} == {
        "rgb": [[10, 20, 30], [40, 50, 60]]
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"fields": [{"name": "range", "offset": 0, "type": FLOAT32_TYPE}]}, "range"),
        ({"fields": [{"name": "x", "offset": 0, "type": 99}]}, "99"),
        ({"point_stride": 7}, ""),
        ({"fields": []}, ""),
        ({"fields": None}, ""),
    ],
)
def test_a_cloud_that_cannot_be_meant_is_an_error_of_its_message(
    tmp_path: Path, change: dict[str, Any], why: str
):
    sent = cloud("x y", "<f4", FLOAT32_TYPE, [[1, 2]])
    stream = opened(tmp_path, "PointCloud", {**sent, **change})["topic"]
    with pytest.raises(TransectError) as caught:
        _ = stream[0].value
    assert why in caught.value.why
    assert "topic" in caught.value.where


def grid(**changes: Any) -> dict[str, Any]:
    """Two rows of three cells, 0.5 m x 0.25 m, turned by 90 degrees about the corner (10, 20)."""
    half = float(np.sqrt(0.5))
    turned = {"x": 0.0, "y": 0.0, "z": half, "w": half}
    return stamped(
        "map",
        pose={"position": {"x": 10.0, "y": 20.0, "z": 0.0}, "orientation": turned},
        column_count=3, cell_size={"x": 0.5, "y": 0.25}, row_stride=3, cell_stride=1,
        fields=[{"name": "cost", "offset": 0, "type": UINT8_TYPE}], data=encoded(bytes(range(6))), **changes,
    )  # fmt: skip


def test_a_turned_grid_has_its_columns_along_the_x_axis_of_its_pose(tmp_path: Path):
    stream = opened(tmp_path, "Grid", grid())["topic"]
    assert stream.type is GridMap
    value = stream[0].value
    assert value.layers["cost"].tolist() == [[0, 1, 2], [3, 4, 5]]
    a, b, c, d, e, f = value.transform
    # x of the grid is y of the map, and y of the grid is -x of the map
    corner = np.array([[a, b, c], [d, e, f]]) @ [3, 2, 1]
    np.testing.assert_allclose(corner, [10 - 2 * 0.25, 20 + 3 * 0.5], atol=1e-12)
    np.testing.assert_allclose([c, f], [10, 20], atol=1e-12)


@pytest.mark.parametrize("changes", [{"row_stride": 4}, {"column_count": 0}])
def test_a_grid_with_gaps_or_without_columns_is_refused(tmp_path: Path, changes: dict[str, Any]):
    stream = opened(tmp_path, "Grid", {**grid(), **changes})["topic"]
    with pytest.raises(TransectError, match="grid cannot be decoded"):
        _ = stream[0].value


def test_a_path_has_its_poses_at_the_time_of_the_message(tmp_path: Path):
    half = float(np.sqrt(0.5))
    poses = [
        {"position": {"x": 1.0, "y": 2.0, "z": 3.0}, "orientation": UPRIGHT},
        {
            "position": {"x": 4.0, "y": 5.0, "z": 6.0},
            "orientation": {"x": half, "y": 0.0, "z": 0.0, "w": half},
        },
    ]
    stream = opened(tmp_path, "PosesInFrame", stamped("odom", 5, poses=poses))["topic"]
    assert stream.type is Trajectory
    value = stream[0].value
    assert (value.frame, value.t_ns.tolist()) == ("odom", [START_NS + 5] * 2)
    assert value.positions.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert value.orientations is not None
    np.testing.assert_allclose(value.orientations, [[0, 0, 0, 1], [half, 0, 0, half]])


def calibration(**changes: Any) -> dict[str, Any]:
    K = [500.0, 0, 320, 0, 501, 240, 0, 0, 1]
    fields: dict[str, Any] = {"width": 640, "height": 480}
    fields |= {
        "distortion_model": "plumb_bob",
        "D": [0.1, 0.2, 0.0, 0.0, 0.0],
        "K": K,
        "R": np.eye(3).ravel(),
    }
    fields |= {"P": [500.0, 0, 320, -60, 0, 501, 240, 0, 0, 0, 1, 0]} | changes
    lists = {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in fields.items()}
    return stamped("cam", **lists)


@pytest.mark.parametrize(
    ("model", "D", "lens"),
    [
        ("plumb_bob", [0.1, 0.2, 0.0, 0.0, 0.0], "radtan"),
        ("rational_polynomial", [0.1] * 8, "radtan"),
        ("kannala_brandt", [0.1, 0.2, 0.3, 0.4], "equidistant"),
        ("", [], "none"),
    ],
)
def test_a_calibration_is_the_camera_of_its_topic(tmp_path: Path, model: str, D: list[float], lens: str):
    sent = calibration(distortion_model=model, D=D)
    recording = opened(tmp_path, "CameraCalibration", sent, topic="/left/calibration")
    (name,) = recording.cameras
    camera = recording.cameras[name]
    assert name == "/left"
    assert (camera.width, camera.height, camera.distortion, camera.frame) == (640, 480, lens, "cam")
    assert camera.coefficients.tolist() == D
    assert camera.K.tolist() == [[500, 0, 320], [0, 501, 240], [0, 0, 1]]
    assert camera.baseline == pytest.approx(0.12)


@pytest.mark.parametrize("changes", [{"K": [1.0, 2.0]}, {"K": None}, {"D": "none"}, {"width": "wide"}])
def test_an_invalid_calibration_gives_no_camera(tmp_path: Path, changes: dict[str, Any]):
    assert not opened(
        tmp_path, "CameraCalibration", calibration(**changes), topic="/left/calibration"
    ).cameras


def moved(nsec: int, x: float, parent: str = "odom", child: str = "base") -> dict[str, Any]:
    return {
        "timestamp": {"sec": START_S, "nsec": nsec}, "parent_frame_id": parent, "child_frame_id": child,
        "translation": {"x": x, "y": 0.0, "z": 0.0}, "rotation": UPRIGHT,
    }  # fmt: skip


def test_transforms_of_several_times_move_and_those_of_one_time_do_not(tmp_path: Path):
    sent = [
        {"transforms": [moved(0, 1.0), moved(0, 0.5, "base", "lidar")]},
        {"transforms": [moved(100, 3.0)]},
    ]
    recording = opened(tmp_path, "FrameTransforms", *sent)
    assert recording.frames.lookup("odom", "base", START_NS + 50)[0, 3] == pytest.approx(2.0)
    assert recording.frames.lookup("base", "lidar")[0, 3] == 0.5
    table = recording["topic"]
    assert table.t_ns.tolist() == [START_NS, START_NS, START_NS + 100]
    assert table.type is Record


def test_a_transform_that_is_no_rotation_is_left_out_of_the_frames(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    bad = moved(0, 1.0, "base", "arm") | {"rotation": {**ZERO, "w": 0.0}}
    recording = opened(
        tmp_path,
        "FrameTransforms",
        {"transforms": [moved(0, 1.0), bad]},
        {"transforms": 7},
        {"transforms": [5, None]},
    )
    assert "base" in recording.frames
    assert "arm" not in recording.frames
    assert "arm" in caplog.text


def test_a_message_that_says_no_time_has_that_of_its_publishing(tmp_path: Path):
    pose = {"position": {"x": 1.0, "y": 2.0, "z": 3.0}, "orientation": UPRIGHT}
    sent = stamped("map", 3, pose=pose), {"frame_id": "map", "pose": pose}
    stream = opened(tmp_path, "PoseInFrame", *sent)["topic"]
    assert stream.type is Pose
    assert stream.t_ns.tolist() == [START_NS + 3, START_NS + 10**9]
    assert stream.array("x", "y", "z", "qw").tolist() == [[1, 2, 3, 1]] * 2


def test_a_fix_whose_latitude_is_no_number_keeps_its_fields_and_says_what_lacks(tmp_path: Path):
    sent = stamped("gps", latitude="north", longitude=15.0, altitude=1700.0)
    recording = opened(tmp_path, "LocationFix", sent)
    assert recording["topic"]["alt"].tolist() == [1700.0]
    assert any("topic" in note and "lack lat" in note for note in recording.all_notes)
