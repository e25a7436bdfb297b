"""Images, clouds, maps and paths of ROS bags, decoded to known values."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from tests.formats import bag_sample as bags
from tests.formats.bag_sample import NS_PER_S, START_NS, Make

import transect
from transect.errors import ParseError
from transect.formats.shared.bags.ros_decoder import Lists
from transect.formats.shared.bags.ros_payloads import PayloadContext, grid_map, point_times
from transect.recording import Stream
from transect.types import DepthMap, GridMap, Image


@pytest.fixture(params=["ros1", "sqlite3"])
def stream(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Stream]:
    """Writes one message to a bag and returns its stream."""

    def opened(kind: str, make: Callable[[Make], Any], topic: str = "/it") -> Stream:
        said = [(topic, kind.replace("/", "/msg/"), START_NS)]
        path = bags.write(tmp_path, request.param, lambda m: [(*said[0], make(m))])
        return transect.open(path, format="rosbag")[topic]

    return opened


RAMP = np.arange(24, dtype=np.uint8)


@pytest.mark.parametrize(
    ("encoding", "pixels", "mode"),
    [
        ("mono8", RAMP.reshape(4, 6), "gray"),
        ("mono16", RAMP.reshape(4, 6).astype(np.uint16) * 256, "gray"),
        ("rgb8", RAMP.reshape(2, 4, 3), "rgb"),
        ("bgr8", RAMP.reshape(2, 4, 3), "bgr"),
        ("rgba8", RAMP.reshape(2, 3, 4), "rgba"),
        ("bayer_grbg8", RAMP.reshape(4, 6), "bayer_grbg"),
        ("8UC3", RAMP.reshape(2, 4, 3), "bgr"),
        ("16UC1", RAMP.reshape(4, 6).astype(np.uint16), "gray"),
    ],
)
def test_pixels_are_kept_as_recorded(
    stream: Callable[..., Stream], encoding: str, pixels: np.ndarray, mode: str
):
    image = stream("sensor_msgs/Image", lambda m: m.image(START_NS, pixels, encoding))[0].value
    assert image.mode == mode
    assert image.data.dtype == pixels.dtype
    assert np.array_equal(image.data, pixels)


def test_bgra_becomes_rgba(stream: Callable[..., Stream]):
    pixels = RAMP.reshape(2, 3, 4)
    image = stream("sensor_msgs/Image", lambda m: m.image(START_NS, pixels, "bgra8"))[0].value
    assert image.mode == "rgba"
    assert np.array_equal(image.data, pixels[..., [2, 1, 0, 3]])


def test_rows_lose_their_padding(stream: Callable[..., Stream]):
    padded = np.zeros((3, 8), np.uint8)
    padded[:, :6] = RAMP[:18].reshape(3, 6)

    def make(m: Make) -> Any:
        message = m.image(START_NS, padded, "mono8")
        message.width = 6
        return message

    assert np.array_equal(stream("sensor_msgs/Image", make)[0].value.data, RAMP[:18].reshape(3, 6))


def test_yuv_is_converted_to_rgb(stream: Callable[..., Stream]):
    gray = np.full((2, 4, 2), 128, np.uint8)
    image = stream("sensor_msgs/Image", lambda m: m.image(START_NS, gray, "yuv422"))[0].value
    assert image.mode == "rgb"
    assert image.data.shape == (2, 4, 3)
    assert np.ptp(image.data) == 0


@pytest.mark.parametrize("encoding", ["jpeg2000", "33UC1", ""])
def test_an_unknown_encoding_is_an_error_that_names_it(stream: Callable[..., Stream], encoding: str):
    sample = stream("sensor_msgs/Image", lambda m: m.image(START_NS, RAMP.reshape(4, 6), encoding))[0]
    with pytest.raises(ParseError, match="cannot be decoded") as caught:
        _ = sample.value
    assert repr(encoding) in caught.value.why
    assert caught.value.where.startswith("/it, rover")


@pytest.mark.parametrize(("height", "step"), [(1000, 6), (4, 1000), (2**32 - 1, 2**32 - 1), (4, 0)])
def test_an_image_with_fewer_bytes_than_pixels_is_an_error(
    stream: Callable[..., Stream], height: int, step: int
):
    def make(m: Make) -> Any:
        message = m.image(START_NS, RAMP.reshape(4, 6), "mono8")
        message.height, message.step = height, step
        return message

    sample = stream("sensor_msgs/Image", make)[0]
    with pytest.raises(ParseError, match="fewer bytes than pixels"):
        _ = sample.value


def test_float_depth_is_in_metres(stream: Callable[..., Stream]):
    metres = np.array([[1.5, np.inf], [np.nan, 0.25]], np.float32)
    depth = stream("sensor_msgs/Image", lambda m: m.image(START_NS, metres, "32FC1"))
    assert depth.type is DepthMap
    assert np.array_equal(depth[0].value.data, [[1.5, np.nan], [np.nan, 0.25]], equal_nan=True)


def test_integer_depth_is_in_millimetres_with_zero_for_none(stream: Callable[..., Stream]):
    millimetres = np.array([[1500, 0], [250, 10]], np.uint16)
    depth = stream(
        "sensor_msgs/Image", lambda m: m.image(START_NS, millimetres, "16UC1"), topic="/depth/image_raw"
    )
    assert depth.type is DepthMap
    assert depth[0].value.data == pytest.approx(np.array([[1.5, np.nan], [0.25, 0.01]]), nan_ok=True)


def png(pixels: np.ndarray) -> bytes:
    return cv2.imencode(".png", pixels)[1].tobytes()


def test_compressed_images_are_decoded(stream: Callable[..., Stream]):
    pixels = RAMP.reshape(2, 4, 3)
    image = stream(
        "sensor_msgs/CompressedImage",
        lambda m: m.compressed(START_NS, "bgr8; png compressed bgr8", png(pixels)),
    )
    assert image.type is Image
    assert image[0].value.mode == "rgb"
    assert np.array_equal(image[0].value.data, pixels[..., ::-1])


def test_a_compressed_bayer_image_keeps_its_pattern(stream: Callable[..., Stream]):
    data = png(RAMP.reshape(4, 6))
    image = stream(
        "sensor_msgs/CompressedImage", lambda m: m.compressed(START_NS, "bayer_rggb8; png compressed ", data)
    )
    assert image[0].value.mode == "bayer_rggb"


def test_compressed_depth_is_in_metres(stream: Callable[..., Stream]):
    data = bytes(12) + png(np.array([[1500, 0]], np.uint16))
    depth = stream(
        "sensor_msgs/CompressedImage", lambda m: m.compressed(START_NS, "16UC1; compressedDepth png", data)
    )
    assert depth.type is DepthMap
    assert depth[0].value.data == pytest.approx(np.array([[1.5, np.nan]]), nan_ok=True)


def test_compressed_inverse_depth_is_in_metres(stream: Callable[..., Stream]):
    """compressed_depth_image_transport stores a / z + b; with a = 100, b = 1: 2 m is 51."""
    parameters = np.array([0, 100.0, 1.0], np.float32).tobytes()
    data = parameters + png(np.array([[51, 0]], np.uint16))
    depth = stream(
        "sensor_msgs/CompressedImage", lambda m: m.compressed(START_NS, "32FC1; compressedDepth png", data)
    )
    assert depth[0].value.data == pytest.approx(np.array([[2.0, np.nan]]), nan_ok=True)


@pytest.mark.parametrize("data", [b"", b"not an image", b"\x89PNG\r\n\x1a\n"])
def test_an_image_that_is_not_one_is_an_error(stream: Callable[..., Stream], data: bytes):
    sample = stream("sensor_msgs/CompressedImage", lambda m: m.compressed(START_NS, "png", data))[0]
    with pytest.raises(ParseError):
        _ = sample.value


def cloud(form: list[tuple[str, str]], **columns: Any) -> np.ndarray:
    points = np.zeros(4, dtype=[("x", "<f4"), ("y", "<f4"), ("z", "<f4"), *form])
    points["x"] = np.arange(4)
    for name, values in columns.items():
        points[name] = values
    return points


def test_an_organised_cloud_with_padded_rows_is_unrolled(stream: Callable[..., Stream]):
    points = cloud([("ring", "<u2")], ring=[0, 1, 2, 3])
    value = stream("sensor_msgs/PointCloud2", lambda m: m.cloud(START_NS, points, row_padding=5, height=2))[
        0
    ].value
    assert value.points[:, 0].tolist() == [0, 1, 2, 3]
    assert value.fields["ring"].tolist() == [0, 1, 2, 3]


def test_packed_colours_and_normals_are_columns(stream: Callable[..., Stream]):
    rgb = np.array([0x00FF8001] * 4, np.uint32).view(np.float32)
    form = [("rgb", "<f4"), ("normal_x", "<f4"), ("normal_y", "<f4"), ("normal_z", "<f4")]
    value = stream(
        "sensor_msgs/PointCloud2", lambda m: m.cloud(START_NS, cloud(form, rgb=rgb, normal_z=1.0))
    )[0].value
    assert value.fields["rgb"].tolist() == [[255, 128, 1]] * 4
    assert value.fields["normal"].tolist() == [[0.0, 0.0, 1.0]] * 4


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("t", np.array([0, 1_500], np.uint32)),
        ("offset_time", np.array([0, 1_500], np.uint32)),
        ("time", np.array([0.0, 1.5e-6], np.float32)),
        ("timestamp", np.array([START_NS, START_NS + 1_500], np.uint64)),
        ("timestamp", np.array([0.0, 1.5e-6])),
    ],
)
def test_the_time_of_a_point_counts_from_the_stamp(name: str, values: np.ndarray):
    assert point_times(values, START_NS).tolist() == [0, 1500]


def test_nanoseconds_since_1970_as_fractions_count_from_the_stamp():
    assert point_times(np.array([2.0**60, 2.0**60 + 256]), 2**60).tolist() == [0, 256]


def test_absolute_seconds_are_exact_to_their_digits():
    seconds = np.array([1_700_000_000.0, 1_700_000_000.25])
    assert point_times(seconds, START_NS).tolist() == [0, NS_PER_S // 4]


@pytest.mark.parametrize("count", [10**9, 5])
def test_a_cloud_that_claims_more_points_than_it_has_is_an_error(stream: Callable[..., Stream], count: int):
    def make(m: Make) -> Any:
        message = m.cloud(START_NS, cloud([]))
        message.width = count
        return message

    sample = stream("sensor_msgs/PointCloud2", make)[0]
    with pytest.raises(ParseError, match="fewer bytes than points"):
        _ = sample.value


def test_a_cloud_without_heights_is_an_error(stream: Callable[..., Stream]):
    flat = np.zeros(3, np.dtype([("x", "<f4"), ("y", "<f4")]))
    sample = stream("sensor_msgs/PointCloud2", lambda m: m.cloud(START_NS, flat))[0]
    with pytest.raises(ParseError, match="no x, y, z") as caught:
        _ = sample.value
    assert caught.value.why == "its fields are x, y"


def test_a_compressed_depth_without_its_parameters_is_an_error(stream: Callable[..., Stream]):
    def make(m: Make) -> Any:
        return m.compressed(START_NS, "16UC1; compressedDepth png", bytes(11))

    sample = stream("sensor_msgs/CompressedImage", make, "/depth/compressedDepth")[0]
    with pytest.raises(ParseError, match="depth image is too short") as caught:
        _ = sample.value
    assert caught.value.why == "it has 11 bytes"


def test_an_occupancy_grid_with_fewer_values_than_cells_is_an_error(stream: Callable[..., Stream]):
    def make(m: Make) -> Any:
        info = m("nav_msgs/MapMetaData", m.time(START_NS), 0.5, 3, 2, m.pose(0.0, 0.0, 0.0))
        return m("nav_msgs/OccupancyGrid", m.header(START_NS, "map"), info, np.zeros(5, np.int8))

    sample = stream("nav_msgs/OccupancyGrid", make)[0]
    with pytest.raises(ParseError, match="fewer values than cells") as caught:
        _ = sample.value
    assert caught.value.why == "3 x 2, 5 values"


@pytest.mark.parametrize(
    ("layers", "sizes", "match"),
    [(["elevation", "slope"], [2, 3], "more layers than arrays"), (["elevation"], [2, 4], "fewer values")],
)
def test_a_grid_map_whose_arrays_do_not_fit_is_an_error(layers: list[str], sizes: list[int], match: str):
    dims = Lists(np.array([0, 2]), {"label": ["row_index", "column_index"], "size": np.array(sizes)})
    data = {"layout.dim": dims, "data": Lists(np.array([0, 6]), np.zeros(6, np.float32))}
    fields = {"layers": layers, "data": data, "outer_start_index": 0, "inner_start_index": 0}
    with pytest.raises(ParseError, match=match):
        grid_map(fields, PayloadContext("/map", START_NS, "map"))


def test_an_occupancy_grid_is_a_map_with_unknown_cells(stream: Callable[..., Stream]):
    def make(m: Make) -> Any:
        origin = m.pose(10.0, 20.0, 0.0)
        origin.orientation = m.quaternion(0.0, 0.0, 0.0, 1.0)
        info = m("nav_msgs/MapMetaData", m.time(START_NS), 0.5, 3, 2, origin)
        cells = np.array([0, 100, -1, 50, 0, 0], np.int8)
        return m("nav_msgs/OccupancyGrid", m.header(START_NS, "map"), info, cells)

    grid = stream("nav_msgs/OccupancyGrid", make)[0].value
    assert isinstance(grid, GridMap)
    assert np.array_equal(grid.layers["occupancy"], [[0, 100, np.nan], [50, 0, 0]], equal_nan=True)
    assert grid.transform == pytest.approx((0.5, 0.0, 10.0, 0.0, 0.5, 20.0))
    assert grid.frame == "map"


@pytest.mark.parametrize("by_rows", [True, False])
def test_a_grid_map_is_unrolled_from_its_ring_buffer(by_rows: bool):
    """Cell (0, 0) is stored at the start index, here row 1 and column 2 of a matrix of 2 by 3."""
    stored = np.array([[5.0, 6.0, 4.0], [2.0, 3.0, 1.0]], np.float32)
    labels, sizes = (
        (["row_index", "column_index"], [2, 3]) if by_rows else (["column_index", "row_index"], [3, 2])
    )
    values = stored.reshape(-1) if by_rows else stored.T.reshape(-1)
    dims = Lists(np.array([0, 2]), {"label": labels, "size": np.array(sizes)})
    fields = {
        "layers": ["elevation"],
        "data": {"layout.dim": dims, "data": Lists(np.array([0, 6]), values)},
        "outer_start_index": 1,
        "inner_start_index": 2,
        "info.resolution": 0.5,
        "info.length_x": 1.0,
        "info.length_y": 1.5,
        "info.pose.position.x": 10.0,
        "info.pose.position.y": 20.0,
    }
    grid = grid_map(fields, PayloadContext("here", START_NS, "map"))
    assert grid.layers["elevation"].tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert grid.transform == pytest.approx((0.0, -0.5, 10.5, -0.5, 0.0, 20.75))


def test_a_camera_that_is_not_calibrated_is_noted(tmp_path: Path):
    def said(m: Make) -> list[bags.Message]:
        info = m.camera(START_NS)
        matrix = "K" if m.ros1 else "k"
        setattr(info, matrix, np.zeros(9))
        return [("/cam/camera_info", "sensor_msgs/msg/CameraInfo", START_NS, info)]

    rec = transect.open(bags.write(tmp_path, "ros1", said), format="rosbag")
    assert not rec.cameras
    assert rec.notes == ("/cam/camera_info is not a calibration: it has no focal length",)
