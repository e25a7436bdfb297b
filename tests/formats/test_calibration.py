"""Calibrations: each dialect by its own words, one turned into the other without changing a number."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transect
from transect import formats
from transect.errors import ParseError, TransectError, UnsupportedError
from transect.formats.calibration import kind_of
from transect.formats.calibration.files import read_calibration, write_calibration
from transect.formats.calibration.model import CalibrationFile, documents
from transect.formats.calibration.opencv import read_opencv
from transect.geometry import rotations, se3
from transect.recording import Recording, arrow
from transect.types import CameraModel, Record

KALIBR = """\
cam0:
  cam_overlaps: [1]
  camera_model: pinhole
  distortion_coeffs: [-0.294719325148, 0.0858646300803, -0.000238639588026, 5e-05]
  distortion_model: radtan
  intrinsics: [461.629, 460.152, 362.680, 246.049]
  resolution: [752, 480]
  rostopic: /cam0/image_raw
  T_cam_imu:
  - [0.0, 1.0, 0.0, 0.1]
  - [-1.0, 0.0, 0.0, 0.2]
  - [0.0, 0.0, 1.0, 0.3]
  - [0.0, 0.0, 0.0, 1.0]
cam1:
  T_cn_cnm1:
  - [1.0, 0.0, 0.0, -0.11]
  - [0.0, 1.0, 0.0, 0.0]
  - [0.0, 0.0, 1.0, 0.0]
  - [0.0, 0.0, 0.0, 1.0]
  camera_model: pinhole
  distortion_coeffs: [0.1, 0.2, 0.3, 0.4]
  distortion_model: equidistant
  intrinsics: [460.0, 459.0, 370.0, 250.0]
  resolution: [752, 480]
"""
"""The layout of Kalibr's wiki, yaml formats, chain.yaml."""

STEREO_YML = """\
%YAML:1.0
---
M1: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 534.0, 0., 341.0, 0., 534.5, 232.0, 0., 0., 1. ]
D1: !!opencv-matrix
   rows: 1
   cols: 5
   dt: d
   data:[ -2.9e-01, 1.1e-01, 1.3e-03, -2.e-04, 1.4e-02 ]
M2: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 537.0, 0., 326.0, 0., 536.0, 250.0, 0., 0., 1. ]
D2: !!opencv-matrix
   rows: 1
   cols: 5
   dt: d
   data: [ -0.3, 0.2, 0., 0., 0. ]
R: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 1., 0., 0., 0., 1., 0., 0., 0., 1. ]
T: !!opencv-matrix
   rows: 3
   cols: 1
   dt: d
   data: [ -3.3, 0.05, 0.04 ]
R1: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 1., 0., 0., 0., 0., -1., 0., 1., 0. ]
P1: !!opencv-matrix
   rows: 3
   cols: 4
   dt: d
   data: [ 500., 0., 300., 0., 0., 500., 200., 0., 0., 0., 1., 0. ]
"""
"""As OpenCV's stereo_calib sample writes intrinsics.yml and extrinsics.yml, one behind the other."""

OPENCV_XML = """\
<?xml version="1.0"?>
<opencv_storage>
<image_width>640</image_width>
<image_height>480</image_height>
<camera_matrix type_id="opencv-matrix">
  <rows>3</rows>
  <cols>3</cols>
  <dt>d</dt>
  <data>
    657. 0. 319.5 0. 658.
    239.5 0. 0. 1.</data></camera_matrix>
<distortion_coefficients type_id="opencv-matrix">
  <rows>5</rows>
  <cols>1</cols>
  <dt>d</dt>
  <data>
    -0.4 0.5 0.001 0.002 -0.57</data></distortion_coefficients>
</opencv_storage>
"""
"""As OpenCV's camera_calibration sample writes out_camera_data.xml."""

ROS = """\
image_width: 640
image_height: 480
camera_name: narrow_stereo/left
camera_matrix:
  rows: 3
  cols: 3
  data: [438.783367, 0.0, 305.593336, 0.0, 437.302876, 243.738352, 0.0, 0.0, 1.0]
distortion_model: plumb_bob
distortion_coefficients:
  rows: 1
  cols: 5
  data: [-0.361976, 0.110510, 0.001014, 0.000505, 0.0]
rectification_matrix:
  rows: 3
  cols: 3
  data: [0.999978, 0.002789, -0.006046, -0.002816, 0.999986, -0.004401, 0.006034, 0.004417, 0.999972]
projection_matrix:
  rows: 3
  cols: 4
  data: [393.653800, 0.0, 322.797939, 0.0, 0.0, 393.653800, 241.090902, 0.0, 0.0, 0.0, 1.0, 0.0]
"""
"""The example of camera_calibration_parsers."""


def test_kalibr_is_read_as_its_wiki_says():
    calibration = read_calibration(KALIBR.encode(), "camchain.yaml")
    left, right = calibration.cameras["cam0"], calibration.cameras["cam1"]
    assert (left.width, left.height, left.distortion, right.distortion) == (752, 480, "radtan", "equidistant")
    np.testing.assert_array_equal(left.K, [[461.629, 0, 362.68], [0, 460.152, 246.049], [0, 0, 1]])
    assert left.coefficients.tolist() == [-0.294719325148, 0.0858646300803, -0.000238639588026, 5e-05]
    # T_cn_cnm1 takes points of cam0 to cam1: cam1 is 0.11 m to the right of cam0
    np.testing.assert_allclose(calibration.tree().lookup("cam0", "cam1")[:3, 3], [0.11, 0, 0])
    # T_cam_imu takes points of the imu to cam0
    np.testing.assert_array_equal(calibration.tree().lookup("cam0", "imu")[:3, 3], [0.1, 0.2, 0.3])


def test_an_opencv_stereo_file_is_read_with_its_quirks():
    calibration = read_calibration(STEREO_YML.encode(), "extrinsics.yml")
    left = calibration.cameras["left"]
    assert left.coefficients.tolist() == [-0.29, 0.11, 0.0013, -0.0002, 0.014]
    np.testing.assert_array_equal(left.R[1], [0, 0, -1])
    assert left.P is not None
    assert left.P[0, 0] == 500
    assert calibration.cameras["right"].P is None
    (edge,) = calibration.frames
    assert edge[:2] == ("right", "left")
    np.testing.assert_array_equal(edge[2][:3, 3], [-3.3, 0.05, 0.04])


def test_an_opencv_xml_file_is_read():
    camera = read_calibration(OPENCV_XML.encode(), "out_camera_data.xml").cameras["camera"]
    assert (camera.width, camera.height) == (640, 480)
    np.testing.assert_array_equal(camera.K, [[657, 0, 319.5], [0, 658, 239.5], [0, 0, 1]])
    assert camera.coefficients.tolist() == [-0.4, 0.5, 0.001, 0.002, -0.57]


def test_ros_camera_info_is_read():
    camera = read_calibration(ROS.encode(), "left.yaml").cameras["narrow_stereo/left"]
    assert camera.distortion == "radtan"
    assert camera.R[0, 2] == -0.006046
    assert camera.P is not None
    assert camera.P[1, 2] == 241.090902


def test_matlab_stereo_results_are_read_in_millimetres():
    text = (
        "fc_left = [ 533.0 ; 533.5 ];\ncc_left = [ 341.0 ; 232.0 ];\nalpha_c_left = [ 0.0 ];\n"
        "kc_left = [ -0.28 ; 0.09 ; 0.001 ; -0.0003 ; 0.0 ];\n"
        "fc_right = [ 536.0 ; 536.5 ];\ncc_right = [ 326.0 ; 250.0 ];\n"
        "kc_right = [ -0.28 ; 0.1 ; 0.0 ; 0.0 ; 0.0 ];\n"
        "om = [ 0.0 ; 0.0 ; 0.1 ];\nT = [ -99.8 ; 1.0 ; 0.4 ];\n"
    )
    calibration = read_calibration(text.encode(), "Calib_Results_stereo.m")
    T = calibration.frames[0][2]
    np.testing.assert_allclose(T[:3, 3], [-0.0998, 0.001, 0.0004])
    np.testing.assert_allclose(T[:2, 0], [np.cos(0.1), np.sin(0.1)])
    assert "millimetres" in calibration.notes[0]


def test_kitti_raw_and_odometry_files_are_read():
    raw = (
        "calib_time: 09-Jan-2012 13:57:47\nS_00: 1392 512\nK_00: 980 0 690 0 981 245 0 0 1\n"
        "D_00: -0.37 0.2 0.001 0.002 -0.07\nR_00: 1 0 0 0 1 0 0 0 1\nT_00: 0 0 0\n"
        "S_01: 1392 512\nK_01: 990 0 702 0 991 261 0 0 1\nD_01: -0.36 0.19 0 0 -0.06\n"
        "R_01: 1 0 0 0 1 0 0 0 1\nT_01: -0.537 0.005 -0.012\n"
        "P_rect_01: 721 0 609 -387 0 721 172 0 0 0 1 0\n"
    )
    calibration = read_calibration(raw.encode(), "calib_cam_to_cam.txt")
    assert calibration.cameras["cam1"].baseline == pytest.approx(387 / 721)
    np.testing.assert_allclose(calibration.tree().lookup("cam0", "cam1")[:3, 3], [0.537, -0.005, 0.012])
    odometry = "P0: 7 0 6 0 0 7 5 0 0 0 1 0\nP1: 7 0 6 -3.5 0 7 5 0 0 0 1 0\nTr: 0 -1 0 1 0 0 -1 2 1 0 0 3\n"
    calibration = read_calibration(odometry.encode(), "calib.txt")
    assert calibration.cameras["cam1"].baseline == 0.5
    np.testing.assert_array_equal(calibration.tree().lookup("cam0", "lidar")[:3, 3], [1, 2, 3])


def test_orbslam_settings_without_raw_cameras_give_the_rectified_pair():
    text = (
        "%YAML:1.0\nCamera.fx: 700.0\nCamera.fy: 701.0\nCamera.cx: 600.0\nCamera.cy: 180.0\nCamera.k1: 0.0\n"
        "Camera.k2: 0.0\nCamera.p1: 0.0\nCamera.p2: 0.0\nCamera.width: 1241\nCamera.height: 376\n"
        "Camera.bf: 350.0\nViewer.PointSize:2\n"
    )
    cameras = read_calibration(text.encode(), "KITTI.yaml").cameras
    assert cameras["right"].baseline == 0.5
    assert cameras["left"].width == 1241


def test_opencv_reads_what_we_write(tmp_path: Path):
    calibration = read_calibration(KALIBR.replace("equidistant", "radtan").encode(), "camchain.yaml")
    path = tmp_path / "stereo.yml"
    path.write_bytes(write_calibration(calibration, "opencv"))
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_READ)
    assert storage.isOpened()
    np.testing.assert_array_equal(storage.getNode("M1").mat(), calibration.cameras["cam0"].K)
    np.testing.assert_array_equal(
        storage.getNode("D2").mat().ravel(), calibration.cameras["cam1"].coefficients
    )
    np.testing.assert_array_equal(storage.getNode("T").mat().ravel(), [-0.11, 0, 0])
    assert storage.getNode("image_width").real() == 752
    frame = storage.getNode("frames").at(0)
    assert frame.getNode("child").string() == "imu"
    np.testing.assert_array_equal(frame.getNode("T").mat()[:3, 3], [0.1, 0.2, 0.3])
    storage.release()


def test_we_read_what_opencv_writes(tmp_path: Path):
    K, D = np.array([[500.125, 0, 320], [0, 501, 240], [0, 0, 1.0]]), np.array([[-0.1, 0.01, 1e-7, 0, 0]])
    for suffix in (".yml", ".xml"):
        path = tmp_path / f"camera{suffix}"
        storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
        storage.write("image_width", 640)
        storage.write("image_height", 480)
        storage.write("camera_matrix", K)
        storage.write("distortion_coefficients", D)
        storage.release()
        camera = transect.open(path, format="calibration").cameras["camera"]
        np.testing.assert_array_equal(camera.K, K)
        np.testing.assert_array_equal(camera.coefficients, D.ravel())
        assert (camera.width, camera.height) == (640, 480)


finite = st.floats(-1e3, 1e3, allow_nan=False, allow_subnormal=False)
focal = st.floats(1e-3, 1e5)


@st.composite
def chains(draw: st.DrawFn) -> CalibrationFile:
    """A Kalibr chain of one to three cameras with one lens model, and perhaps an imu."""
    lens = draw(st.sampled_from(["radtan", "equidistant"]))
    size = draw(st.tuples(st.integers(1, 9000), st.integers(1, 9000)))
    cameras: dict[str, CameraModel] = {}
    frames: list[tuple[str, str, np.ndarray]] = []
    for number in range(draw(st.integers(1, 3))):
        name = f"cam{number}"
        K = np.array([[draw(focal), 0, draw(finite)], [0, draw(focal), draw(finite)], [0, 0, 1]])
        lens_values = np.array(draw(st.lists(finite, min_size=4, max_size=4)))
        cameras[name] = CameraModel(name, *size, K, lens, lens_values, frame=name)
        if number:
            frames.append((name, f"cam{number - 1}", draw(transforms())))
        elif draw(st.booleans()):
            frames.append((name, "imu", draw(transforms())))
    return CalibrationFile(cameras, tuple(frames), "kalibr")


@st.composite
def transforms(draw: st.DrawFn) -> np.ndarray:
    vector, place = (draw(st.lists(st.floats(-3, 3), min_size=3, max_size=3)) for _ in range(2))
    return se3.from_matrix(rotations.matrix_from_rotation_vector(vector), place)


def assert_same(a: CalibrationFile, b: CalibrationFile) -> None:
    assert list(a.cameras) == list(b.cameras)
    for name, camera in a.cameras.items():
        assert camera.same_as(b.cameras[name]), name
    for parent, child, matrix in a.frames:
        found = b.transform(parent, child)
        assert found is not None
        np.testing.assert_array_equal(found, matrix)


@given(chains())
def test_kalibr_to_opencv_to_ros_to_kalibr_keeps_all_numbers(calibration: CalibrationFile):
    carried = calibration
    for kind in ("kalibr", "opencv", "ros", "kalibr"):
        carried = read_calibration(write_calibration(carried, kind), "camchain.yaml")
        assert carried.kind == kind
    assert_same(without_rectification(carried), calibration)


def without_rectification(calibration: CalibrationFile) -> CalibrationFile:
    cameras = {
        name: CameraModel(
            name, c.width, c.height, c.K, c.distortion, c.coefficients[:4], np.eye(3), None, frame=name
        )
        for name, c in calibration.cameras.items()
    }
    return CalibrationFile(cameras, calibration.frames, calibration.kind)


@given(chains())
def test_kitti_and_matlab_keep_the_cameras(calibration: CalibrationFile):
    if next(iter(calibration.cameras.values())).distortion == "equidistant":
        for kind in ("kitti", "matlab"):
            with pytest.raises(UnsupportedError):
                write_calibration(calibration, kind)
        return
    models = list(calibration.cameras.values())
    read = read_calibration(write_calibration(calibration, "kitti"), "calib_cam_to_cam.txt")
    for model, again in zip(models, read.cameras.values(), strict=True):
        np.testing.assert_array_equal(again.K, model.K)
        np.testing.assert_array_equal(again.coefficients[:4], model.coefficients)
    if len(models) == 2:
        stereo = read_calibration(write_calibration(calibration, "matlab"), "Calib_Results_stereo.m")
        np.testing.assert_array_equal(stereo.cameras["right"].K, models[1].K)
        np.testing.assert_allclose(stereo.frames[0][2], calibration.transform("cam1", "cam0"), atol=1e-12)


def test_rectification_survives_opencv_and_ros():
    K = np.array([[500.0, 0, 320], [0, 500, 240], [0, 0, 1]])
    R = rotations.matrix_from_rotation_vector([0.01, -0.02, 0.03])
    P = np.column_stack([K, [-60.0, 0, 0]])
    left = CameraModel("left", 640, 480, K, "radtan", np.array([0.1, 0.2, 0, 0, 0.3]), R, P, frame="left")
    right = CameraModel("right", 640, 480, K, "radtan", np.zeros(8) + 0.5, R.T, P, frame="right")
    for kind in ("opencv", "ros"):
        read = read_calibration(
            write_calibration(CalibrationFile({"left": left, "right": right}), kind), "x.yaml"
        )
        assert read.cameras["left"].same_as(left)
        assert read.cameras["right"].same_as(right)


def test_what_a_dialect_cannot_hold_is_refused():
    K = np.array([[500.0, 2.0, 320], [0, 500, 240], [0, 0, 1]])
    skewed = CalibrationFile({"a": CameraModel("a", 1, 1, K)})
    with pytest.raises(UnsupportedError, match="skew"):
        write_calibration(skewed, "kalibr")
    K = K * [[1, 0, 1]]
    k3 = CalibrationFile({"a": CameraModel("a", 1, 1, K, "radtan", np.array([0, 0, 0, 0, 0.1]))})
    with pytest.raises(UnsupportedError, match="lens"):
        write_calibration(k3, "kalibr")
    with pytest.raises(UnsupportedError, match="cannot be written") as caught:
        write_calibration(k3, "kalibrr")
    assert "kalibr" in caught.value.hint


def test_lenses_and_frames_that_a_file_cannot_hold():
    K = np.array([[500.0, 0, 320], [0, 500, 240], [0, 0, 1]])
    wide = CameraModel("wide", 640, 480, K, "equidistant", np.full(4, 0.1))
    plain = CameraModel("plain", 640, 480, K, "radtan", np.full(4, 0.1))
    with pytest.raises(UnsupportedError, match="one lens model") as caught:
        write_calibration(CalibrationFile({"wide": wide, "plain": plain}), "opencv")
    assert "equidistant" in caught.value.why
    with pytest.raises(UnsupportedError, match="no camera"):
        write_calibration(CalibrationFile({}), "opencv")
    with pytest.raises(UnsupportedError, match="one or two cameras, not 3"):
        write_calibration(CalibrationFile(dict.fromkeys("abc", plain)), "matlab")


@pytest.mark.parametrize(("kind", "name"), [("kitti", "calib.txt"), ("matlab", "a.m"), ("opencv", "a.yml")])
def test_cameras_that_nothing_joins_are_kept_without_a_frame(kind: str, name: str):
    K = np.array([[500.0, 0, 320], [0, 500, 240], [0, 0, 1]])
    cameras = {each: CameraModel(each, 640, 480, K, "radtan", np.zeros(5)) for each in ("left", "right")}
    read = read_calibration(write_calibration(CalibrationFile(cameras), kind), name)
    assert len(read.cameras) == 2
    assert list(read.frames) == []


def test_lists_and_parts_in_xml_are_read():
    more = "<names><_>one</_><_>two</_></names><by><a>1</a></by><image_width>"
    text = OPENCV_XML.replace("<image_width>", more)
    [content] = documents(text.encode(), "a.xml")
    assert content["names"] == ["one", "two"]
    assert content["by"] == {"a": "1"}
    assert read_calibration(text.encode(), "a.xml").cameras


def test_orbslam_settings_with_raw_cameras_have_their_transforms():
    lines = ["Camera.width: 640", "Camera.height: 480"]
    lens = {"fx": 500, "fy": 501, "cx": 320, "cy": 240}
    for camera in ("Camera1", "Camera2"):
        lines += [f"{camera}.{key}: {value}" for key, value in lens.items()]
    T = np.eye(4)
    T[0, 3] = 0.12
    numbers = ", ".join(map(str, T.reshape(-1)))
    lines += [
        f"{key}: !!opencv-matrix\n  rows: 4\n  cols: 4\n  dt: f\n  data: [{numbers}]"
        for key in ("Stereo.T_c1_c2", "IMU.T_b_c1")
    ]
    found = read_calibration(("%YAML:1.0\n" + "\n".join(lines) + "\n").encode(), "a.yaml")
    assert set(found.cameras) == {"left", "right"}
    edges = {(parent, child): matrix for parent, child, matrix in found.frames}
    assert set(edges) == {("left", "right"), ("imu", "left")}
    np.testing.assert_array_equal(edges["left", "right"], T)
    single = [line for line in lines if not line.startswith(("Camera2", "Stereo", "IMU"))]
    alone = read_calibration("\n".join(single).encode(), "a.yaml")
    assert (list(alone.cameras), alone.frames) == (["left"], ())


def test_a_calibration_opens_as_a_recording_with_cameras_and_frames(tmp_path: Path):
    path = tmp_path / "camchain.yaml"
    path.write_text(KALIBR.replace("\n", "\r\n"))
    recording = transect.open(path)
    assert recording.format == "calibration"
    assert len(recording) == 0
    assert set(recording.cameras) == {"cam0", "cam1"}
    assert "imu" in recording.frames


@pytest.mark.parametrize("name", ["a.yml", "a.yaml", "camchain.yaml", "a.m", "a.txt"])
def test_a_recording_s_cameras_are_written_in_the_dialect_of_the_file_name(tmp_path: Path, name: str):
    source = tmp_path / "in.yml"
    source.write_bytes(
        write_calibration(read_calibration(STEREO_YML.replace("1.4e-02", "0.").encode(), "a.yml"), "opencv")
    )
    recording = transect.open(source, format="calibration")
    formats.write(recording, tmp_path / name, "calibration")
    again = transect.open(tmp_path / name, format="calibration")
    assert len(again.cameras) == 2
    K = [c.K for c in again.cameras.values()]
    np.testing.assert_array_equal(K, [c.K for c in recording.cameras.values()])


def test_streams_that_a_calibration_cannot_carry_are_named(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text(ROS)
    recording = transect.open(path, format="calibration")
    stream = transect.Stream("battery", Record, arrow.table([1], {}))
    said = formats.write(recording.replace(streams=(stream,)), tmp_path / "b.yml", "calibration")
    assert "battery" in said[0]
    with pytest.raises(UnsupportedError, match="no cameras"):
        formats.write(Recording("x", ()), tmp_path / "c.yml", "calibration")
    with pytest.raises(UnsupportedError, match="dialect"):
        formats.write(recording, tmp_path / "c.pdf", "calibration")


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.yaml", KALIBR.replace("461.629, ", ""), "intrinsics"),
        ("a.yaml", KALIBR.replace("461.629", "fast"), "intrinsics"),
        ("a.yaml", KALIBR.replace("461.629", ".nan"), "finite"),
        ("a.yaml", KALIBR.replace("radtan", "magic"), "magic"),
        ("a.yaml", KALIBR.replace("pinhole", "omni"), "omni"),
        ("a.yaml", KALIBR.replace("cam_overlaps: [1]", "cam_overlaps: [1"), ""),
        ("a.yml", STEREO_YML.replace("rows: 3\n   cols: 3", "rows: 30000\n   cols: 30000"), "30000"),
        ("a.yml", STEREO_YML.replace("534.0, 0.,", "0., 0.,"), "focal"),
        ("a.xml", OPENCV_XML.replace("</opencv_storage>", ""), ""),
        ("a.xml", OPENCV_XML.replace("657.", "fast"), "number"),
        ("a.yaml", ROS.replace("data: [438.783367, 0.0,", "data: [438.783367,"), "camera_matrix"),
        ("a.m", "fc = [ 1 ; 2 ];\n", "cc"),
        ("calib.txt", "P0: 1 2 3\n", ""),
        ("a.txt", "nothing here\n", ""),
        ("a.yaml", "cam0: [intrinsics: 1]\ncam0x:\n  intrinsics: 2\n", "cam0 is not a mapping"),
        ("a.yaml", "cam0x: 1\ncam1: 2\nintrinsics: 1\n", "cam1 is not a mapping"),
        ("a.yaml", "# a comment\ncam0:\n---\ncam0: {intrinsics: 7}\n", ""),
        ("calib.txt", "S_00: 1 2\n", "P0"),
        ("a.yaml", "Camera.fx:\n", ""),
        ("a.txt", "Focal Length: 1\nImageCenter\n", ""),
    ],
)
def test_a_bad_calibration_is_refused_and_says_why(name: str, text: str, why: str):
    with pytest.raises(ParseError) as caught:
        read_calibration(text.encode(), name)
    assert why in caught.value.why
    assert name in caught.value.where


def test_names_of_opencv_files_are_understood_however_they_are_spelt():
    text = """LEFT.K: [[500, 0, 320], [0, 501, 240], [0, 0, 1]]
cameraMatrix_right: [[600, 0, 321], [0, 601, 241], [0, 0, 1]]
rightDistCoeffs: [0.1, 0.2, 0.3, 0.4]
image_size: [640, 480]
camera_names: [one]
rotation: [0, 0, 1.5707963267948966]
translation: [1, 2, 3]
frames: [{parent: base, child: left, T: [[1, 0, 0, 5], [0, 1, 0, 6], [0, 0, 1, 7], [0, 0, 0, 1]]}]
unknown: 7
"""
    found = _opencv([text])
    assert list(found.cameras) == ["left", "right"]  # one name is not enough for two cameras
    assert [(c.K[0, 0], c.K[1, 1]) for c in found.cameras.values()] == [(500, 501), (600, 601)]
    assert [(c.width, c.height, c.distortion) for c in found.cameras.values()] == [
        (640, 480, "none"), (640, 480, "radtan"),
    ]  # fmt: skip
    np.testing.assert_allclose(found.cameras["right"].coefficients, [0.1, 0.2, 0.3, 0.4])
    edges = {(parent, child): T for parent, child, T in found.frames}
    np.testing.assert_allclose(
        edges["right", "left"], [[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]], atol=1e-12
    )
    assert edges["base", "left"][:3, 3].tolist() == [5, 6, 7]


def test_three_numbered_cameras_have_the_names_of_their_numbers():
    lines = [f"M{n}: [[{n}00, 0, 0], [0, {n}00, 0], [0, 0, 1]]\nsize{n}: [{n}0, {n}]" for n in (1, 2, 3)]
    found = _opencv(lines)
    assert {name: (c.K[0, 0], c.width) for name, c in found.cameras.items()} == {
        "camera1": (100, 10), "camera2": (200, 20), "camera3": (300, 30),
    }  # fmt: skip
    assert not found.frames


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("[[500, 0, 320], [0, 501, 240], [0, 0, 1]]", "[1, 2, 3]"), "is not 3 x 3"),
        (("rotation: [0, 0, 1]", "rotation: [0, 0, 1, 2]"), "R is not 3 x 3"),
        (("translation: [1, 2, 3]", "translation: [1, 2]"), "T not three numbers"),
        (("K1: [[500", "X1: [[500"), "camera_matrix"),
        (("K1: [[500, 0, 320], [0, 501, 240], [0, 0, 1]]", "K1: 7"), "is not a matrix"),
    ],
)
def test_an_opencv_file_that_cannot_be_meant_says_why(change: tuple[str, str], why: str):
    lines = [
        "K1: [[500, 0, 320], [0, 501, 240], [0, 0, 1]]",
        "K2: [[500, 0, 320], [0, 501, 240], [0, 0, 1]]" if "X1" not in change[1] else "",
        "rotation: [0, 0, 1]",
        "translation: [1, 2, 3]",
    ]
    with pytest.raises((ValueError, KeyError), match=why):
        _opencv([line.replace(*change) for line in lines])


def _opencv(lines: list[str]) -> CalibrationFile:
    [content] = documents("\n".join(lines).encode(), "a.yaml")
    return read_opencv(content)


def test_xml_with_a_document_type_is_refused():
    bomb = OPENCV_XML.replace("<opencv_storage>", '<!DOCTYPE x [<!ENTITY a "b">]>\n<opencv_storage>', 1)
    with pytest.raises(ParseError, match="document type"):
        read_calibration(bomb.encode(), "a.xml")


def test_yaml_aliases_of_aliases_take_no_memory():
    levels = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12))
    text = "a0: &a0 [1, 1]\n" + levels + "\n" + KALIBR.replace("[461.629, 460.152, 362.680, 246.049]", "*a11")
    with pytest.raises(ParseError) as caught:
        read_calibration(text.encode(), "a.yaml")
    assert "expanded aliases" in caught.value.why


def test_what_is_no_calibration_is_not_taken_for_one():
    assert (
        kind_of(
            b'<?xml version="1.0"?>\n<opencv_storage>\n<imagelist>"left01.jpg"</imagelist>',
            "stereo_calib.xml",
        )
        == ""
    )
    assert kind_of(b"x,y,z\n1,2,3\n", "a.txt") == ""
    assert kind_of(b"1 0 0 0 0 1 0 0 0 0 1 0\n" * 3, "poses.txt") == ""
    assert kind_of(b"1 0 0 0 0 1 0 0 0 0 1 0\n" * 3, "calib.txt") == "kitti"


@given(
    which=st.sampled_from(["kalibr", "opencv", "ros", "matlab", "kitti"]),
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=5),
    cut=st.one_of(st.none(), st.floats(0, 1)),
)
def test_mutated_calibrations_raise_nothing_but_transect_errors(
    which: str, changes: list[tuple[float, int]], cut: float | None
):
    base = read_calibration(KALIBR.replace("equidistant", "radtan").encode(), "camchain.yaml")
    data = bytearray(write_calibration(base, which))
    for place, value in changes:
        data[int(place * (len(data) - 1))] = value
    data = data if cut is None else data[: int(cut * len(data))]
    name = {"matlab": "a.m", "kitti": "calib.txt"}.get(which, "a.yaml")
    try:
        read = read_calibration(bytes(data), name)
        frames = read.tree()
    except TransectError:
        return
    assert read.cameras
    assert len(frames) <= 4
