"""One damaged payload among good ones: the good ones are written, and what was left out is said."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import transect
from transect import formats
from transect.errors import MissingExtraError, ParseError, UnsupportedError
from transect.formats.shared.clouds import encode_cloud
from transect.formats.shared.payloads import good_payloads
from transect.recording import Recording, Sample, Stream, arrow
from transect.types import CameraModel, GridMap, Image, PointCloud, RadarSpectrum

START_S = 1_560_000_000
GOOD_ROWS = (0, 1, 3, 4, 5)
DAMAGED_ROW = 2


def picture(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 255, (6, 8), np.uint8)


def png(number: int) -> bytes:
    return cv2.imencode(".png", picture(number))[1].tobytes()


def pcd(number: int) -> bytes:
    return encode_cloud(PointCloud(np.full((3, 3), float(number))), ".pcd")


def zipped(path: Path, contents: dict[str, bytes], damaged: tuple[str, ...]) -> Path:
    """Write a zip, and change the last byte of some members, so that they fail their CRC."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
        ends = {name: _end(archive, name) for name in damaged}
    raw = bytearray(path.read_bytes())
    for end in ends.values():
        raw[end - 1] ^= 0xFF
    path.write_bytes(raw)
    return path


def _end(archive: zipfile.ZipFile, name: str) -> int:
    """Return where a stored member ends; its local header is 30 bytes and its name."""
    info = archive.getinfo(name)
    return info.header_offset + 30 + len(name) + info.file_size


def stamped(folder: str, suffix: str, number: int) -> str:
    return f"{folder}/{START_S + number}.000000000{suffix}"


@pytest.fixture
def camera(tmp_path: Path) -> Recording:
    """Return six images of a left camera in a zip, one of them damaged."""
    contents = {stamped("left", ".png", n): png(n) for n in range(6)}
    recording = transect.open(zipped(tmp_path / "in.zip", contents, (stamped("left", ".png", DAMAGED_ROW),)))
    model = CameraModel("left", 8, 6, np.array([[10.0, 0, 4], [0, 10, 3], [0, 0, 1]]))
    stream = recording.streams[0].replace(tag="left", camera="left")
    return recording.replace(streams=(stream,), cameras={"left": model})


def called(recording: Recording, name: str) -> Recording:
    """Return the recording with its one stream under another name."""
    return recording.replace(streams=(recording.streams[0].replace(name=name),))


def times(numbers: tuple[int, ...] = GOOD_ROWS) -> list[int]:
    return [(START_S + n) * 10**9 for n in numbers]


def assert_said_once(said: tuple[str, ...], name: str, file: str) -> None:
    reason = f"{file} is damaged inside the zip (its CRC does not match)"
    assert [s for s in said if "left out" in s] == [
        f"{name}: 1 of 6 payloads are left out, the first: {reason}"
    ]


@pytest.mark.parametrize("format", ["csv", "parquet", "euroc", "kitti", "folder", "radiate", "rosario"])
def test_good_images_are_copied_and_the_damaged_one_is_said(
    camera: Recording, tmp_path: Path, format: str
) -> None:
    said = formats.write(camera, tmp_path / "out", format)
    again = transect.open(tmp_path / "out")
    (stream,) = (s for s in again.streams if s.type is Image)
    assert_said_once(said, "left", stamped("left", ".png", DAMAGED_ROW))
    assert again.losses == ()
    assert stream.t_ns.tolist() == times()
    assert again.source is not None
    assert [again.source.read(s.row["payload"]) for s in stream] == [png(n) for n in GOOD_ROWS]


@pytest.mark.parametrize(("format", "name"), [("sdi", "VideoVisual"), ("ameds", "MainCam")])
def test_good_images_are_encoded_and_the_damaged_one_is_said(
    camera: Recording, tmp_path: Path, format: str, name: str
) -> None:
    said = formats.write(called(camera, name), tmp_path / "out", format)
    again = transect.open(tmp_path / "out", format=format)
    assert_said_once(said, name, stamped("left", ".png", DAMAGED_ROW))
    assert again.losses == ()
    assert again[name].t_ns.tolist() == times()
    assert [s.value.data.shape[:2] for s in again[name]] == [(6, 8)] * 5


@pytest.mark.parametrize("file", ["out.bag", "out.mcap", "out"])
def test_a_bag_has_the_good_images_and_the_damaged_one_is_said(
    camera: Recording, tmp_path: Path, file: str
) -> None:
    said = formats.write(camera, tmp_path / file, "rosbag")
    (stream,) = (s for s in transect.open(tmp_path / file).streams if s.type is Image)
    assert_said_once(said, "left", stamped("left", ".png", DAMAGED_ROW))
    assert stream.t_ns.tolist() == times()
    for number, sample in zip(GOOD_ROWS, stream, strict=True):
        np.testing.assert_array_equal(np.squeeze(sample.value.data), picture(number))


def test_a_bag_is_written_where_images_must_be_encoded_and_the_first_is_damaged(tmp_path: Path) -> None:
    def load(row: Mapping[str, Any]) -> Image:
        if row["t_ns"] == START_S * 10**9:
            raise ParseError("the first image is damaged")
        return Image(picture(1), "gray")

    images = Stream("Cam", Image, arrow.table(np.array(times((0, 1))), {"payload": ["a", "b"]}), loader=load)
    said = formats.write(Recording("two", (images,)), tmp_path / "two.bag", "rosbag")
    assert "Cam: 1 of 2 payloads are left out, the first: the first image is damaged" in said
    (stream,) = (s for s in transect.open(tmp_path / "two.bag").streams if s.type is Image)
    assert stream.t_ns.tolist() == times((1,))


@pytest.mark.parametrize(("format", "file"), [("pocolog", "out.0.log"), ("cdff_msgpack", "out.msg")])
def test_a_rock_log_has_the_good_images_and_the_damaged_one_is_said(
    camera: Recording, tmp_path: Path, format: str, file: str
) -> None:
    said = formats.write(camera, tmp_path / file, format)
    (stream,) = transect.open(tmp_path / file).streams
    assert_said_once(said, "left", stamped("left", ".png", DAMAGED_ROW))
    assert stream.t_ns.tolist() == times()
    for number, sample in zip(GOOD_ROWS, stream, strict=True):
        np.testing.assert_array_equal(np.squeeze(sample.value.data), picture(number))


def test_the_table_of_an_export_keeps_each_row_with_its_own_file(camera: Recording, tmp_path: Path) -> None:
    formats.write(camera, tmp_path / "out", "csv")
    again = transect.open(tmp_path / "out")
    for number, sample in zip(GOOD_ROWS, again.streams[0], strict=True):
        np.testing.assert_array_equal(sample.value.data, picture(number))


def test_a_file_that_is_no_image_is_left_out_where_it_would_be_encoded(tmp_path: Path) -> None:
    (tmp_path / "in" / "left").mkdir(parents=True)
    for number in range(6):
        data = (
            b"not an image" if number == DAMAGED_ROW else cv2.imencode(".bmp", picture(number))[1].tobytes()
        )
        (tmp_path / "in" / stamped("left", ".bmp", number)).write_bytes(data)
    said = formats.write(transect.open(tmp_path / "in"), tmp_path / "out", "euroc")
    stream = transect.open(tmp_path / "out").streams[0]
    assert any("1 of 6" in s and "is not an image" in s for s in said)
    assert stream.t_ns.tolist() == times()
    np.testing.assert_array_equal(stream[2].value.data, picture(3))


def test_a_kitti_drive_counts_what_was_written(camera: Recording, tmp_path: Path) -> None:
    formats.write(camera, tmp_path / "out", "kitti")
    names = sorted(p.name for p in (tmp_path / "out/image_00/data").iterdir())
    assert names == [f"{n:010d}.png" for n in range(5)]
    assert len((tmp_path / "out/image_00/timestamps.txt").read_text().splitlines()) == 5


def test_a_kitti_sequence_keeps_numbers_that_cameras_share(tmp_path: Path) -> None:
    contents = {f"image_{c}/{n:06d}.png": png(10 * c + n) for c in (0, 1) for n in range(6)}
    contents["times.txt"] = b"".join(b"%d.5\n" % n for n in range(6))
    recording = transect.open(zipped(tmp_path / "in.zip", contents, ("image_1/000002.png",)))
    formats.write(recording, tmp_path / "out", "kitti")
    again = transect.open(tmp_path / "out")
    seconds = {s.name: (s.t_ns // 10**9).tolist() for s in again.streams}
    assert sorted(seconds.values()) == [[0, 1, 2, 3, 4, 5], list(GOOD_ROWS)]
    assert (tmp_path / "out/image_1/000003.png").read_bytes() == png(13)
    assert again.losses == ()


@pytest.mark.parametrize("format", ["csv", "folder", "pcd"])
def test_good_clouds_are_written_and_the_damaged_one_is_said(tmp_path: Path, format: str) -> None:
    contents = {stamped("lidar", ".pcd", n): pcd(n) for n in range(6)}
    source = zipped(tmp_path / "in.zip", contents, (stamped("lidar", ".pcd", DAMAGED_ROW),))
    recording = transect.open(source)
    said = formats.write(recording, tmp_path / "out", format)
    stream = transect.open(tmp_path / "out").streams[0]
    assert any("1 of" in s and "damaged inside the zip" in s for s in said)
    assert [float(s.value.points[0, 0]) for s in stream] == list(GOOD_ROWS)


@pytest.mark.parametrize("format", ["csv", "geotiff"])
def test_good_maps_are_written_and_the_damaged_one_is_said(tmp_path: Path, format: str) -> None:
    def load(row: Mapping[str, Any]) -> GridMap:
        number = row["t_ns"] // 10**9
        if number == 1:
            raise ParseError("map_1.tif cannot be decoded")
        return GridMap({"z": np.full((2, 2), number, np.float32)}, (1.0, 0.0, 0.0, 0.0, -1.0, 0.0))

    maps = Stream("Map", GridMap, arrow.table(np.arange(3) * 10**9, {}), clock="index", loader=load)
    said = formats.write(Recording("maps", (maps,)), tmp_path / "out", format)
    (stream,) = transect.open(tmp_path / "out").streams
    assert said == ("Map: 1 of 3 payloads are left out, the first: map_1.tif cannot be decoded",)
    assert [float(s.value.layers["z"][0, 0]) for s in stream] == [0.0, 2.0]
    assert stream.t_ns.tolist() == [0, 2 * 10**9]


def test_radiate_takes_the_radar_from_the_first_image_that_is_good(tmp_path: Path) -> None:
    def load(row: Mapping[str, Any]) -> RadarSpectrum:
        if row["t_ns"] == START_S * 10**9:
            raise ParseError("the first turn is damaged")
        return RadarSpectrum(np.full((4, 3), 7, np.uint8), np.arange(4.0), 0.5, 0.0)

    radar = Stream("Radar", RadarSpectrum, arrow.table(np.array(times((0, 1))), {}), loader=load)
    said = formats.write(Recording("turns", (radar,)), tmp_path / "out", "radiate")
    assert "Radar: 1 of 2 payloads are left out, the first: the first turn is damaged" in said
    text = (tmp_path / "out/config.yaml").read_text()
    assert text == "radar_calib: {range_res: 0.5, range_cells: 3, azimuth_cells: 4}\n"


def test_a_damaged_film_of_ameds_is_left_out_alone(tmp_path: Path) -> None:
    contents = {f"MainCam_{START_S + n}.000000000.jpg": png(n) for n in range(2)}
    contents["MainCamVideoFeed.mp4"] = b"a film"
    recording = transect.open(
        zipped(tmp_path / "in.zip", contents, ("MainCamVideoFeed.mp4",)), format="ameds"
    )
    said = formats.write(recording, tmp_path / "out", "ameds")
    assert "MainCamVideoFeed.mp4 is not written: MainCamVideoFeed.mp4 is damaged inside the zip" in said
    assert len(transect.open(tmp_path / "out", format="ameds")["MainCam"]) == 2


def test_a_camera_with_nothing_but_damaged_images_leaves_the_others(tmp_path: Path) -> None:
    contents = {stamped(side, ".png", n): png(n) for side in ("left", "right") for n in range(3)}
    damaged = tuple(stamped("right", ".png", n) for n in range(3))
    recording = transect.open(zipped(tmp_path / "in.zip", contents, damaged))
    for format in ("csv", "euroc", "kitti", "folder"):
        said = formats.write(recording, tmp_path / format, format)
        streams = transect.open(tmp_path / format).streams
        assert any(s.startswith("right: 3 of 3") for s in said)
        assert sum(len(s) for s in streams) == 3


def test_only_errors_of_the_payload_itself_leave_a_sample_out(camera: Recording) -> None:
    def fails(error: Exception) -> int:
        def content(sample: Sample) -> bytes:
            raise error

        return len(list(good_payloads(camera.streams[0], content, [])))

    assert fails(ParseError("bad")) == fails(UnsupportedError("bad")) == 0
    for error in (MissingExtraError("rasterio", "maps"), OSError("disk full")):
        with pytest.raises(type(error)):
            fails(error)
