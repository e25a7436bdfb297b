"""Folders of images and clouds: grouped by sensor, put in time, paired, and calibrated."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transect
from transect import formats
from transect.errors import ParseError, UnsupportedError, UsageError
from transect.formats.shared.clouds import encode_cloud
from transect.formats.shared.file_groups import group_files, natural_key
from transect.formats.shared.images import image_size
from transect.recording import Recording
from transect.types import Image, PointCloud

STEREO = """\
%YAML:1.0
image_width: 8
image_height: 6
M1: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 10., 0., 4., 0., 10., 3., 0., 0., 1. ]
M2: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 11., 0., 4., 0., 11., 3., 0., 0., 1. ]
R: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 1., 0., 0., 0., 1., 0., 0., 0., 1. ]
T: !!opencv-matrix
   rows: 3
   cols: 1
   dt: d
   data: [ -0.5, 0., 0. ]
"""


def picture(path: Path, value: int = 7, size: tuple[int, int] = (8, 6)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((size[1], size[0]), value, np.uint8)
    path.write_bytes(cv2.imencode(path.suffix, pixels)[1].tobytes())


def stereo_folder(path: Path) -> Path:
    for i in (1, 2, 10):
        picture(path / f"left{i:02d}.png", i)
        picture(path / f"right{i:02d}.png", 100 + i)
    (path / "calibration.yml").write_text(STEREO)
    return path


def test_a_stereo_pair_is_found_and_calibrated_by_the_file_beside_it(tmp_path: Path):
    recording = transect.open(stereo_folder(tmp_path))
    assert recording.format == "folder"
    left, right = recording["left"], recording["right"]
    assert (left.tag, right.tag) == ("left", "right")
    assert left.clock == "index"
    assert [s.value.data[0, 0] for s in left] == [1, 2, 10]
    camera = right[0].value.camera
    assert camera is not None
    assert camera.K[0, 0] == 11
    np.testing.assert_allclose(recording.frames.lookup(left.frame, right.frame)[:3, 3], [0.5, 0, 0])


def test_numbers_pair_images_even_if_one_is_missing(tmp_path: Path):
    stereo_folder(tmp_path)
    (tmp_path / "right02.png").unlink()
    recording = transect.open(tmp_path)
    assert recording["left"].at("10").value.data[0, 0] == 10
    assert recording["right"].at("10").value.data[0, 0] == 110


def test_times_in_names_are_read_to_the_nanosecond(tmp_path: Path):
    picture(tmp_path / "cam/1657000000.123456789.jpg")
    picture(tmp_path / "cam/1657000000.2.jpg")
    stream = transect.open(tmp_path)["cam"]
    assert stream.clock == "utc"
    assert stream.t_ns.tolist() == [1657000000_123456789, 1657000000_200000000]


@pytest.mark.parametrize(
    ("number", "t_ns"),
    [
        ("1403636579763555584", 1403636579_763555584),
        ("1657000000123456", 1657000000_123456000),
        ("1657000000123", 1657000000_123000000),
        ("1657000000", 1657000000_000000000),
        ("1657000000.5", 1657000000_500000000),
        ("1657000000_123456", 1657000000_123456000),
        ("1657000000-123456789", 1657000000_123456789),
    ],
)
def test_unix_times_of_every_unit_are_known(number: str, t_ns: int):
    (group,) = group_files([f"left_{number}.png"], "x")
    assert (group.name, group.clock, group.t_ns) == ("left", "utc", (t_ns,))


@pytest.mark.parametrize(
    "name", ["251370668.pcd", "2019-09-11_19-13-44_00960.png", "000123.png", "scene.png"]
)
def test_other_numbers_are_no_times(name: str):
    (group,) = group_files([name], "x")
    assert group.clock == "index"


def test_one_file_without_a_time_puts_all_of_its_kind_on_the_index_clock():
    (group,) = group_files(["1657000000.1.png", "1657000000.2.png", "12.png"], "x")
    assert group.clock == "index"
    assert group.t_ns == (0, 10**9, 2 * 10**9)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("left/001.png", "right/001.png"),
        ("001_left.png", "001_right.png"),
        ("DLR_OOS_camL0000.pgm", "DLR_OOS_camR0000.pgm"),
        ("aloeL.jpg", "aloeR.jpg"),
        ("cam0/1.png", "cam1/1.png"),
        ("image_2/000000.png", "image_3/000000.png"),
        ("teddy/im2.png", "teddy/im6.png"),
    ],
)
def test_left_and_right_are_told_by_name(left: str, right: str):
    tags = {group.files[0]: group.tag for group in group_files([left, right], "x")}
    assert tags == {left: "left", right: "right"}
    (alone,) = group_files([left], "x")
    assert alone.tag == ""


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30, unique=True))
def test_every_file_lands_in_exactly_one_group_in_the_order_of_its_number(numbers: list[int]):
    names = [f"a/img{n}.png" for n in numbers] + [f"b/{n}.png" for n in numbers]
    groups = group_files(names, "x")
    assert sorted(f for g in groups for f in g.files) == sorted(names)
    for group in groups:
        assert list(group.t_ns) == [n * 10**9 for n in sorted(numbers)]
        assert list(group.files) == sorted(group.files, key=natural_key)


def test_a_calibration_for_another_image_size_is_not_used_and_that_is_said(tmp_path: Path):
    stereo_folder(tmp_path)
    (tmp_path / "calibration.yml").write_text(STEREO.replace("image_width: 8", "image_width: 9"))
    recording = transect.open(tmp_path)
    assert recording["left"].camera == ""
    assert "is for images of 9 x 6" in recording.notes[0]
    assert set(recording.cameras) == {"left", "right"}


def test_calibrations_of_several_folders_do_not_mix(tmp_path: Path):
    stereo_folder(tmp_path / "a")
    stereo_folder(tmp_path / "b")
    (tmp_path / "b/calibration.yml").write_text(STEREO.replace("10., 0., 4.", "20., 0., 4."))
    recording = transect.open(tmp_path)
    focal = {name: recording[name][0].value.camera.K[0, 0] for name in ("a/left", "b/left")}
    assert focal == {"a/left": 10, "b/left": 20}


def test_one_camera_s_calibration_applies_to_one_camera_s_images(tmp_path: Path):
    picture(tmp_path / "frame1.png")
    single = "\n".join(STEREO.replace("M1", "camera_matrix").splitlines()[:8])
    (tmp_path / "camera.yml").write_text(single + "\n")
    assert transect.open(tmp_path)["frame1"].camera == "camera"


def test_images_and_clouds_side_by_side_are_two_streams(tmp_path: Path):
    picture(tmp_path / "1657000000.1.png")
    (tmp_path / "1657000000.1.pcd").write_bytes(encode_cloud(PointCloud(np.ones((4, 3), "f4")), ".pcd"))
    recording = transect.open(tmp_path)
    assert {s.name: s.type for s in recording} == {"Camera": Image, "Lidar": PointCloud}
    assert len(recording["Lidar"][0].value) == 4


def test_files_that_are_not_read_are_mentioned(tmp_path: Path):
    picture(tmp_path / "1.png")
    (tmp_path / "imu.csv").write_text("time,ax\n1,2\n")
    (tmp_path / "README.txt").write_text("hello")
    assert "1 more file" in transect.open(tmp_path).notes[0]


def test_a_broken_calibration_is_a_loss_and_the_images_stay(tmp_path: Path):
    stereo_folder(tmp_path)
    (tmp_path / "calibration.yml").write_text(STEREO.replace("rows: 3", "rows: three", 1))
    recording = transect.open(tmp_path)
    assert len(recording["left"]) == 3
    assert [loss.file for loss in recording.losses] == ["calibration.yml"]
    with pytest.raises(ParseError):
        transect.open(tmp_path, strict=True)


def test_an_image_that_is_not_one_is_refused_when_it_is_asked_for(tmp_path: Path):
    stereo_folder(tmp_path)
    (tmp_path / "left02.png").write_bytes(b"nothing of the kind")
    stream = transect.open(tmp_path)["left"]
    assert stream[0].value.data[0, 0] == 1
    with pytest.raises(ParseError, match=r"left02\.png"):
        stream[1].value  # noqa: B018


def test_a_known_format_is_surer_than_a_folder_of_files(tmp_path: Path):
    (tmp_path / "a.pcd").write_bytes(encode_cloud(PointCloud(np.ones((4, 3), "f4")), ".pcd"))
    assert transect.open(tmp_path).format == "pcd"


def test_a_written_folder_opens_again_with_its_calibration(tmp_path: Path):
    recording = transect.open(stereo_folder(tmp_path / "in"))
    formats.write(recording, tmp_path / "out", "folder")
    again = transect.open(tmp_path / "out")
    assert again["left"].t_ns.tolist() == recording["left"].t_ns.tolist()
    assert (tmp_path / "out/left/000010.png").read_bytes() == (tmp_path / "in/left10.png").read_bytes()
    assert again["right"][0].value.camera.same_as(recording["right"][0].value.camera)
    with pytest.raises(UsageError, match="exists already"):
        formats.write(recording, tmp_path / "out", "folder")
    with pytest.raises(UnsupportedError):
        formats.write(Recording("x", ()), tmp_path / "out2", "folder")


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".pgm", ".ppm"])
def test_the_size_of_an_image_is_known_from_its_first_bytes(tmp_path: Path, suffix: str):
    pixels = np.zeros((37, 53, 3) if suffix == ".ppm" else (37, 53), np.uint8)
    data = cv2.imencode(suffix, pixels)[1].tobytes()
    assert image_size(data) == (53, 37)


@given(st.binary(max_size=64), st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"BM", b"P5\n", b""]))
def test_any_bytes_have_a_size_or_none(data: bytes, start: bytes):
    size = image_size(start + data)
    assert size is None or len(size) == 2
