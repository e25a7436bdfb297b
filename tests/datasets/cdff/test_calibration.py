"""The calibrations beside CDFF's images, written by hand in each of their forms."""

import numpy as np
import pytest

from transect.errors import ParseError
from transect.formats.calibration.files import read_calibration
from transect.formats.calibration.model import camera

HALF_TURN_ABOUT_Z = "[-1 0 0; 0 -1 0; 0 0 1]"
CALLAB = f"""\
version=2
origin=center
camera.0.R={HALF_TURN_ABOUT_Z}
camera.0.T=[ 100 200 300]
camera.0.A=[ 700 0.5 320; 0 701 240; 0 0 1]
camera.0.k1=-0.2
camera.0.k2=0.15
camera.0.width=640
camera.0.height=480
camera.1.A=[ 710 0 321; 0 711 241; 0 0 1]
"""
"""As the comments of DLR CalLab's own file define it: Pw = R Pc + T in millimetres, lens as in OpenCV."""


def test_a_callab_camera_is_placed_in_the_world_in_metres():
    calibration = read_calibration(CALLAB.encode(), "callab.txt")
    assert list(calibration.cameras) == ["camera0", "camera1"]
    first, second = calibration.cameras.values()
    assert first.K.tolist() == [[700, 0.5, 320], [0, 701, 240], [0, 0, 1]]
    assert first.coefficients.tolist() == [-0.2, 0.15, 0, 0, 0]
    assert (first.width, first.height, second.width) == (640, 480, 0)
    ((parent, child, T),) = calibration.frames  # the second says nothing of its place
    assert (parent, child) == ("world", "camera0")
    np.testing.assert_allclose(T @ [1, 2, 3, 1], [-0.9, -1.8, 3.3, 1])


@pytest.mark.parametrize(
    ("line", "point"),
    [("camera.0.R=" + HALF_TURN_ABOUT_Z, [-1, -2, 3]), ("camera.0.T=[ 100 200 300]", [1.1, 2.2, 3.3])],
)
def test_what_callab_leaves_out_of_a_place_is_its_default(line: str, point: list[float]):
    """`Default: [1 0 0; 0 1 0; 0 0 1] [0 0 0]`, as the comment of R and T says."""
    text = "camera.0.A=[ 700 0 320; 0 701 240; 0 0 1]\n" + line + "\n"
    ((_, _, T),) = read_calibration(text.encode(), "callab.txt").frames
    np.testing.assert_allclose(T @ [1, 2, 3, 1], [*point, 1])


def test_one_callab_camera_needs_no_number():
    text = "camera.A=[ 700 0 320; 0 701 240; 0 0 1]\n"
    calibration = read_calibration(text.encode(), "callab.txt")
    assert list(calibration.cameras) == ["camera"]
    assert not calibration.frames


def statements(lens: bool = True) -> str:
    parts = [
        f"{side}CameraMatrix.at<double>({row},{column}) = {value};"
        for side in ("left", "right")
        for row, column, value in ((0, 0, 700), (1, 1, 701), (0, 2, 320), (1, 2, 240))
    ]
    parts += [f"rotationMatrix.at<double>({i},{j}) = {float(i == j)};" for i in range(3) for j in range(3)]
    parts += [f"translationMatrix.at<double>({i},0) = {v} * 0.001;" for i, v in enumerate((-60, 3, 0))]
    if lens:
        parts += [f"leftDistortionCoefficients.at<double>(0,{k}) = {v};" for k, v in enumerate((-0.2, 0.1))]
        parts += ["imageSize = cv::Size(780, 582);"]
    return "\n".join(parts)


def test_statements_take_points_of_the_left_camera_to_the_right():
    calibration = read_calibration(statements().encode(), "Calibration.txt")
    left, right = calibration.cameras.values()
    assert left.K.tolist() == [[700, 0, 320], [0, 701, 240], [0, 0, 1]]
    assert left.coefficients.tolist() == [-0.2, 0.1, 0, 0]  # k1 k2 alone have no tangential part
    assert (left.distortion, right.distortion) == ("radtan", "none")
    assert (left.width, left.height) == (780, 582)
    ((parent, child, T),) = calibration.frames
    assert (parent, child) == ("right", "left")
    np.testing.assert_allclose(T[:3, 3], [-0.06, 0.003, 0])


def test_statements_without_a_size_or_a_lens_are_a_plain_pinhole():
    left = read_calibration(statements(lens=False).encode(), "Calibration.txt").cameras["left"]
    assert (left.width, left.height, left.distortion) == (0, 0, "none")


SECTIONS = """\
Image size: [640 x 480]
{}
{}
Rotation:
[1, 0, 0; 0, 0, -1; 0, 1, 0]
Translation:
[-0.1, 0, 0.2]
"""
SECTION = """\
{0} Camera Matrix
  FocalLengthX: 700.5
  FocalLengthY: 701.5
  PrinciplePointX: 320.5
  PrinciplePointY: 240.5
{0} Distortion Matrix
  K1: -0.2
  K2: 0.1
  P1: 1e-3
  P2: -2e-3
  K3: 0.05
"""
RECTIFIED = """\
{0} Rectification Matrix
  Element_0_0: 1
  Element_0_1: 0
  Element_0_2: 0
  Element_1_0: 0
  Element_1_1: 0
  Element_1_2: -1
  Element_2_0: 0
  Element_2_1: 1
  Element_2_2: 0
Rectified {0} Projection Matrix
[690, 0, 310, 0; 0, 690, 230, 0; 0, 0, 1, 0]
"""


def test_sections_are_read_with_lens_rectification_and_the_place_of_the_pair():
    text = SECTIONS.format((SECTION + RECTIFIED).format("Left"), SECTION.format("Right"))
    calibration = read_calibration(text.encode(), "CameraCalibration.txt")
    left, right = calibration.cameras.values()
    assert left.K.tolist() == [[700.5, 0, 320.5], [0, 701.5, 240.5], [0, 0, 1]]
    assert left.coefficients.tolist() == [-0.2, 0.1, 1e-3, -2e-3, 0.05]  # OpenCV's order
    assert left.R.tolist() == [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    assert left.P is not None
    assert left.P[0].tolist() == [690, 0, 310, 0]
    assert (right.P, right.R.tolist()) == (None, np.eye(3).tolist())
    ((parent, child, T),) = calibration.frames
    assert (parent, child) == ("right", "left")
    np.testing.assert_allclose(T @ [0, 1, 0, 1], [-0.1, 0, 1.2, 1])


@pytest.mark.parametrize("lost", ["Translation:\n[-0.1, 0, 0.2]", "Rotation:\n[1, 0, 0; 0, 0, -1; 0, 1, 0]"])
def test_sections_without_a_whole_place_of_the_pair_give_the_cameras_alone(lost: str):
    text = SECTIONS.format(SECTION.format("Left"), SECTION.format("Right")).replace(lost, "")
    text = text.replace("Image size: [640 x 480]\n", "")
    calibration = read_calibration(text.encode(), "CameraCalibration.txt")
    assert not calibration.frames
    assert {(c.width, c.height) for c in calibration.cameras.values()} == {(0, 0)}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("sections", SECTIONS.format(SECTION.format("Left"), "")),
        ("statements", statements().replace("rightCameraMatrix", "wrongCameraMatrix")),
        ("rectified", "Focal Length: 700\nImageCenter: 240 320\n"),
        ("callab", "camera.A = \n"),
        ("meta", "  .cameraMatrix: 500 0\n"),
    ],
)
def test_half_of_a_calibration_is_refused_by_its_dialect(kind: str, text: str):
    with pytest.raises(ParseError, match=f"is not a {kind} calibration"):
        read_calibration(text.encode(), "a.txt")


def meta(poses: str = "") -> bytes:
    """Print a matrix as the Minnie rover's .meta files do: fx 0 cx fy cy 0 1, two zeros lost."""
    return f"\t.cameraMatrix: \n 339.5 0 318.8\n 339.6 205.7 0\n 1\n{poses}".encode()


POSE = """\
.orientation: {}
.translation: {}
.childFrameId: NavCam
.parentFrameId: Body
"""


def test_a_meta_file_without_poses_is_a_camera_in_no_frame():
    calibration = read_calibration(meta(), "a.meta")
    assert calibration.cameras["camera"].K.tolist() == [[339.5, 0, 318.8], [0, 339.6, 205.7], [0, 0, 1]]
    assert not calibration.frames


@pytest.mark.parametrize(
    ("orientation", "translation", "place"),
    [
        ("0001", "123-4.50.25", None),  # where 123 ends and -4.50.25 does is not to be known
        ("0.6000000.80000000", "1.00000-2.000003.00000", [1, -2, 3]),
        ("0.9000000.80000000", "1.00000-2.000003.00000", None),  # no unit quaternion
        ("0.6000000.800000", "1.00000-2.000003.00000", None),  # two numbers are missing
        ("0.6000000.80000000", "1.00000-2.00000x", None),
    ],
)
def test_numbers_that_run_together_are_taken_only_where_they_make_a_pose(
    orientation: str, translation: str, place: list[float] | None
):
    calibration = read_calibration(meta(POSE.format(orientation, translation)), "a.meta")
    assert list(calibration.cameras) == ["NavCam"]
    assert [T[:3, 3].tolist() for _, _, T in calibration.frames] == ([] if place is None else [place])


def test_lens_coefficients_that_are_zero_at_the_end_are_dropped_and_others_refused():
    K = np.diag([500.0, 500.0, 1.0])
    thin_prism = [0.1] * 8 + [0.0] * 4
    assert camera("a", (1, 1), K, "radtan", thin_prism).coefficients.tolist() == [0.1] * 8
    for values in ([0.1] * 12, [0.1] * 14, [0.1] * 9):
        with pytest.raises(ValueError, match="thin-prism"):
            camera("a", (1, 1), K, "radtan", values)
    with pytest.raises(ValueError, match="3 coefficients"):
        camera("a", (1, 1), K, "radtan", [0.1] * 3)


EUROC = """\
T_BS: {cols: 4, rows: 4, data: [1, 0, 0, 0.1, 0, 1, 0, 0.2, 0, 0, 1, 0.3, 0, 0, 0, 1]}
intrinsics: [458, 457, 367, 248]
resolution: [752, 480]
camera_model: pinhole
distortion_model: radial-tangential
distortion_coefficients: [-0.28, 0.07, 0.0002, 0.00002]
"""
ORBSLAM = """\
%YAML:1.0
Camera1.fx: 700.0
Camera1.fy: 701.0
Camera1.cx: 600.0
Camera1.cy: 180.0
Camera2.fx: 710.0
Camera2.fy: 711.0
Camera2.cx: 610.0
Camera2.cy: 181.0
Camera.width: 1241
Camera.height: 376
Stereo.T_c1_c2: !!opencv-matrix
  rows: 4
  cols: 4
  dt: f
  data: [1, 0, 0, 0.5, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
IMU.T_b_c1: !!opencv-matrix
  rows: 4
  cols: 4
  dt: f
  data: [1, 0, 0, 0.1, 0, 1, 0, 0.2, 0, 0, 1, 0.3, 0, 0, 0, 1]
"""


def test_orbslam_3_settings_of_two_cameras_have_both_their_places():
    calibration = read_calibration(ORBSLAM.encode(), "settings.yaml")
    left, right = calibration.cameras.values()
    assert (left.name, right.name, left.K[0, 0], right.K[1, 1]) == ("left", "right", 700, 711)
    assert (right.width, right.height) == (1241, 376)
    # T_c1_c2 takes points of the second camera to the first, T_b_c1 those of the first to the body
    np.testing.assert_allclose(calibration.tree().lookup("left", "right")[:3, 3], [0.5, 0, 0])
    np.testing.assert_allclose(calibration.tree().lookup("imu", "left")[:3, 3], [0.1, 0.2, 0.3])


def test_orbslam_settings_without_a_focal_length_are_refused():
    text = "%YAML:1.0\nCamera.width: 3\nViewer.note: |\n  old\n  Camera.fx: 3\n"
    with pytest.raises(ParseError):
        read_calibration(text.replace("  Camera.fx", "Camera.fx").encode(), "settings.yaml")


def test_a_yaml_without_a_mapping_is_no_calibration():
    for text in ("# camera_matrix: of no one\n- Camera.fx: 1\n- 2\n", "--- \nCamera.fx: [\n"):
        with pytest.raises(ParseError):
            read_calibration(("Camera.fx: 1\n---\n- 1\n" + text).encode(), "a.yaml")


def test_a_calibration_larger_than_any_is_refused():
    with pytest.raises(ParseError, match="no camera calibration"):
        read_calibration(EUROC.encode() + b"#" * 4_000_001, "sensor.yaml")


@pytest.mark.parametrize(
    ("key", "value"), [("IMU.T_b_c1", [1, 2, 3]), ("Stereo.T_c1_c2", "a matrix"), ("Camera.width", "wide")]
)
def test_orbslam_settings_with_a_bad_value_are_refused(key: str, value: object):
    lines = [line for line in ORBSLAM.splitlines() if key not in line]
    text = "\n".join(line for line in lines if not line.startswith(" ") and "matrix" not in line)
    with pytest.raises(ParseError, match="is not a orbslam calibration"):
        read_calibration(f"{text}\n{key}: {value}\n".encode(), "settings.yaml")


def test_an_opencv_size_may_be_a_matrix_and_a_frames_entry_that_is_no_list_is_left():
    text = """%YAML:1.0
size: !!opencv-matrix
   rows: 1
   cols: 2
   dt: i
   data: [ 640, 480 ]
camera_matrix: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 500., 0., 320., 0., 501., 240., 0., 0., 1. ]
frames: none
"""
    calibration = read_calibration(text.encode(), "a.yml")
    camera = calibration.cameras["camera"]
    assert (camera.width, camera.height, camera.distortion) == (640, 480, "none")
    assert not calibration.frames


def test_an_opencv_pair_without_a_transform_has_that_of_its_projections():
    """The right camera of a rectified pair has P[0, 3] = -f b (OpenCV's stereoRectify)."""
    matrix = "{}: {{rows: {}, cols: {}, dt: d, data: {}}}\n"
    K, P = [500, 0, 320, 0, 500, 240, 0, 0, 1], [500, 0, 320, 0, 0, 500, 240, 0, 0, 0, 1, 0]
    shifted = [*P[:3], -60, *P[4:]]
    parts = [("M1", 3, 3, K), ("M2", 3, 3, K), ("P1", 3, 4, P), ("P2", 3, 4, shifted)]
    text = "%YAML:1.0\n# opencv-matrix\n" + "".join(matrix.format(*part) for part in parts)
    calibration = read_calibration(text.encode(), "a.yml")
    np.testing.assert_allclose(calibration.tree().lookup("left", "right")[:3, 3], [0.12, 0, 0], atol=1e-15)
