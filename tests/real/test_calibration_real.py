"""The real calibration files open, with the numbers that stand in them."""

from pathlib import Path

import numpy as np
import pytest

import transect
from transect.errors import UnknownFormatError
from transect.formats.calibration.files import read_calibration, write_calibration
from transect.recording import Recording

CDFF = "cdff_images_clouds"
FILES = (
    f"{CDFF}/DatasetsInformation/DevonIsland/CameraCalibration",
    f"{CDFF}/DatasetsInformation/DlrSun/Calibration.txt",
    f"{CDFF}/DatasetsInformation/DlrSun/camera_calibration_callab_rmc.txt",
    f"{CDFF}/DatasetsInformation/KatwijkBeach/Calibration.txt",
    f"{CDFF}/Images/CameraCalibration.txt",
    f"{CDFF}/Images/MinnieStereo/MinnieRectDeg3Left.meta",
    f"{CDFF}/Images/MinnieStereo/MinnieRectDeg3Right",
    "rosario_tools/orbslam3_calib/Rosario_1.yaml",
    "rosario_tools/orbslam3_calib/Rosario_2.yaml",
    "rosario_tools/orbslam3_calib/Rosario_3.yaml",
    "rosario_tools/orbslam3_calib/Rosario_4.yaml",
    "rosario_tools/slam_configs/orbslam_ros.yaml",
    "radiate_fog/default-calib.yaml",
    "euroc_v101/mav0/cam0/sensor.yaml",
    "kitti_raw_06/calib.txt",
    "kitti_raw_06/calib_cam_to_cam.txt",
)


def opened(real_data: Path, name: str) -> Recording:
    return transect.open(real_data / name)


@pytest.mark.parametrize("name", FILES)
def test_a_real_calibration_opens_with_its_cameras(real_data: Path, name: str):
    recording = opened(real_data, name)
    assert recording.format == "calibration"
    assert recording.cameras
    for camera in recording.cameras.values():
        assert 100 < camera.K[0, 0] < 2000
        assert 0 < camera.K[0, 2] < 1000


@pytest.mark.parametrize("name", FILES)
def test_a_real_calibration_survives_opencv_and_ros(real_data: Path, name: str):
    calibration = read_calibration((real_data / name).read_bytes(), name)
    carried = read_calibration(write_calibration(calibration, "opencv"), "a.yml")
    carried = read_calibration(write_calibration(carried, "ros"), "a.yaml")
    assert list(carried.cameras) == list(calibration.cameras)
    for key, camera in calibration.cameras.items():
        again = carried.cameras[key]
        np.testing.assert_array_equal(again.K, camera.K)
        n = len(camera.coefficients)
        np.testing.assert_array_equal(again.coefficients[:n], camera.coefficients)
        assert not again.coefficients[n:].any()
    for parent, child, matrix in calibration.frames:
        np.testing.assert_array_equal(carried.transform(parent, child), matrix)


def test_the_devon_island_pair_has_its_baseline_and_focal_length(real_data: Path):
    recording = opened(real_data, FILES[0])
    right = recording.cameras["right"]
    # data/README.md: b 0.239977 m, f 969.0
    assert right.baseline == pytest.approx(0.239977002)
    assert right.K[0, 0] == 968.999694824
    assert (right.width, right.height) == (1280, 960)
    assert recording.cameras["left_512x384"].K[0, 0] == 387.599884033
    # rectified: the right camera is a baseline to the right of the left one
    np.testing.assert_allclose(recording.frames.lookup("left", "right")[:3, 3], [0.239977002, 0, 0])


def test_the_rosario_cameras_are_the_published_ones(real_data: Path):
    recording = opened(real_data, "rosario_tools/orbslam3_calib/Rosario_1.yaml")
    left = recording.cameras["left"]
    # data/README.md: fx 348.52 fy 348.45 cx 344.48 cy 188.81, baseline 0.1187 m
    np.testing.assert_allclose(
        left.K[[0, 1, 0, 1], [0, 1, 2, 2]], [348.52, 348.45, 344.48, 188.81], atol=0.005
    )
    assert recording.cameras["right"].baseline == pytest.approx(0.1187, abs=5e-5)
    np.testing.assert_allclose(
        np.linalg.norm(recording.frames.lookup("left", "right")[:3, 3]), 0.1187, atol=5e-5
    )
    # Tbc takes points of the left camera to the imu
    np.testing.assert_allclose(
        recording.frames.lookup("imu", "left")[:3, 3], [-0.03095006, -0.07713643, 0.02651249]
    )


def test_the_minnie_poses_are_distinguished_although_they_run_together(real_data: Path):
    left = opened(real_data, f"{CDFF}/Images/MinnieStereo/MinnieRectDeg3Left.meta")
    right = opened(real_data, f"{CDFF}/Images/MinnieStereo/MinnieRectDeg3Right")
    # .translation: 0.2959220.1245421.66978 and 0.301027-0.1428881.66636
    at_left = left.frames.lookup("RoverBodyFrame", "NavCamL")[:3, 3]
    at_right = right.frames.lookup("RoverBodyFrame", "NavCamR")[:3, 3]
    np.testing.assert_array_equal(at_left, [0.295922, 0.124542, 1.66978])
    np.testing.assert_array_equal(at_right, [0.301027, -0.142888, 1.66636])
    np.testing.assert_array_equal(left.cameras["NavCamL"].K[0], [339.532, 0, 318.834])
    assert "LocalTerrainFrame" in left.frames


def test_the_dlr_file_gives_the_transform_that_it_states_itself(real_data: Path):
    recording = opened(real_data, FILES[2])
    T = recording.frames.lookup("camera0", "camera1")
    # camera.0_R_camera.1 and camera.0_T_camera.1 (mm) of the file's own comment
    np.testing.assert_allclose(T[0, :3], [0.999674, -0.0112460, -0.0229002], atol=2e-6)
    np.testing.assert_allclose(T[:3, 3], [-0.0603606, -0.000305207, -0.00139953], atol=2e-6)


def test_radiate_s_stereo_pair_is_twelve_centimetres_wide(real_data: Path):
    recording = opened(real_data, "radiate_fog/default-calib.yaml")
    T = recording.frames.lookup("right", "left")
    np.testing.assert_allclose(T[:3, 3], [-0.1207469, 0.0001726, 0.0011592])
    assert recording.cameras["left"].coefficients.tolist() == [
        -0.183879883467351,
        0.0308609205858947,
        0,
        0,
        0,
    ]


def test_the_image_list_beside_the_chessboards_is_no_calibration(real_data: Path):
    with pytest.raises(UnknownFormatError) as caught:
        transect.open(real_data / "stereo_calib_chessboard" / "stereo_calib.xml")
    assert "without a camera matrix" in caught.value.why
