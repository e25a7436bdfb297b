"""Everything real that is a format of ours opens by itself; what it lost is known."""

from __future__ import annotations

from pathlib import Path

import pytest

import transect
from transect.errors import ParseError
from transect.formats import recognise

# folder under the data, format of each path in it ("." is the folder itself)
COVERED: dict[str, dict[str, str]] = {
    "bags": {
        "evo/ROS_example.bag": "rosbag",
        "evo/nav2_turtlebot.mcap": "rosbag",
        "evo/tf_example": "rosbag",
        "evo/tf_example/tf_example.db3": "rosbag",
        "evo/tf_example.bag": "rosbag",
        "grid_map/grid_map.bag": "rosbag",
        "robot_localization/test1.bag": "rosbag",
        "robot_localization/test2.bag": "rosbag",
        **{f"rosbag2/mcap/{name}": "rosbag" for name in ("cdr_test", "talker", "wbag")},
        **{f"rosbag2/sqlite3/{name}": "rosbag" for name in ("cdr_test", "talker", "wbag")},
        "rosbag2/mcap/wbag/wbag_0.mcap": "rosbag",
        "rosbag2/sqlite3/wbag/wbag_0.db3": "rosbag",
    },
    "boreas_traj": dict.fromkeys(
        ("gt", "gt/boreas-2021-08-05-13-34", "gt/boreas-2021-08-05-13-34/applanix/radar_poses.csv",
         "pred_3d", "pred_3d/boreas-2021-08-05-13-34.txt"), "boreas"
    ),
    "carmen_2dlaser": {
        **{f"{name}.clf.bz2": "carmen" for name in ("aces", "fr079", "mit-csail")},
        "ual_dataset_2014_05_23_2dlaser_odo.rawlog": "rawlog",
    },
    "cdff_images_clouds": {
        "Images": "folder",
        "Images/MinnieStereo": "folder",
        "PointClouds": "pcd",
        "PointClouds/bunny0.ply": "pcd",
        "cdff_dev_pointclouds": "pcd",
        "Images/CameraCalibration.txt": "calibration",
        "Images/MinnieStereo/MinnieRectDeg3Left.meta": "calibration",
        "Images/MinnieStereo/tisc-33UP2000_17810171-tisc-33UP2000_17810152.yml": "calibration",
        "DatasetsInformation/DevonIsland/CameraCalibration": "calibration",
        "DatasetsInformation/DlrSun/Calibration.txt": "calibration",
        "DatasetsInformation/DlrSun/camera_calibration_callab_rmc.txt": "calibration",
        "DatasetsInformation/KatwijkBeach/Calibration.txt": "calibration",
    },
    "dem_geotiff": {
        "pysheds_dem.tif": "geotiff",
        **{f"rasterio/{name}.tif": "geotiff" for name in ("float", "float_nan", "shade")},
    },
    "euroc_v101": {
        ".": "euroc",
        "V1_01_easy_gt_20hz_corrected_first_half.csv": "euroc",
        "mav0/cam0/sensor.yaml": "calibration",
        "mav0/cam1/sensor.yaml": "calibration",
    },
    "kitti_raw_06": {
        ".": "kitti",
        "gt_poses_06_frames0-599.txt": "kitti",
        "calib.txt": "calibration",
        "calib_cam_to_cam.txt": "calibration",
    },
    "lidar_fast_gicp": {".": "pcd", "251370668.pcd": "pcd", "251371071.pcd": "pcd"},
    "lidar_gtsam_points": dict.fromkeys((".", "continuous", "kitti_07_dump", "newer_01"), "gtsam_points"),
    "lidar_libpointmatcher": {
        ".": "pcd",
        **{f"data/2D_{name}.csv": "pcd" for name in ("oneBox", "twoBoxes")},
        **{f"data/car_cloud{number}.csv": "pcd" for number in (400, 401)},
        **{f"data/{name}.vtk": "pcd" for name in ("cloud.00000", "cloud.00001", "cloud.00002", "trajectory")},
    },
    "lidar_small_gicp": {".": "pcd", "source.ply": "pcd", "target.ply": "pcd"},
    "nmea": {
        "nmea.log": "nmea",
        **{
            f"pynmeagps/pygpsdata-{name}.log": "nmea"
            for name in ("BADHDR", "badeof", "mixed", "nmea2", "nmea4", "nmea4lc", "nmea4sm", "nmeabadck",
                         "nmeabadck2", "nmeafoo1", "nmeafoo2", "um981")
        },
    },
    "pcl_terrain": {".": "pcd", "samp11-utm.pcd": "pcd", "samp31-utm-ground.pcd": "pcd"},
    "radiate_fog": {".": "radiate", "default-calib.yaml": "calibration"},
    "rock_logs": {
        "msgpack": "cdff_msgpack",
        "msgpack/asn1_bitstream.msg": "cdff_msgpack",
        "msgpack/frames2.msg": "cdff_msgpack",
        **{f"msgpack/dynamixel_{i}.msg": "cdff_msgpack" for i in range(3)},
        **{f"msgpack/xsens_imu_0{i}.msg": "cdff_msgpack" for i in range(3)},
        **{
            f"pocolog/{name}.0.log": "pocolog"
            for name in ("camera32bit", "depth_map", "integers", "joint_state", "joints", "laser_scan",
                         "rigid_body_state", "strings", "vector_int", "vector_string")
        },
    },
    "rosario_gt_odom": {
        "sequence01_new_gt_IMU_frame.txt": "rosario_tracks",
        "odometry_sequence01.txt": "rosario_tracks",
        "flourish_DatasetA_GT.txt": "rosario_tracks",
        "sample_left_images": "folder",
    },
    "rosario_tools": {
        **{f"orbslam3_calib/Rosario_{i}.yaml": "calibration" for i in range(1, 5)},
        "slam_configs/orbslam_ros.yaml": "calibration",
    },
    "seeing_through_fog": {".": "folder", "2019-09-11_19-13-44_00960.bin": "pcd"},
    "stereo_calib_chessboard": {".": "folder"},
    "stereo_middlebury": dict.fromkeys((".", "aloe", "teddy", "tsukuba"), "folder"),
    "trajectories_evo": {
        **{f"KITTI_00_{name}.txt": "kitti" for name in ("ORB", "SPTAM", "gt")},
        **{f"fr2_desk_{name}.txt": "tum" for name in ("ORB", "ORB_kf_mono", "groundtruth")},
        **{
            f"freiburg1_xyz-{name}.txt": "tum"
            for name in ("ORB_kf_mono", "groundtruth", "rgbdslam", "rgbdslam_drift", "rgbdslam_drift_short")
        },
        "V102.txt": "tum",
        "georeferenced.tum": "tum",
        "V102_groundtruth.csv": "euroc",
    },
}  # fmt: skip
PATHS = {
    f"{folder}/{name}".removesuffix("/."): f for folder, paths in COVERED.items() for name, f in paths.items()
}
# What is wrong with the files themselves: how many lines, frames or sentences are lost.
LOST = {
    "euroc_v101": 85 + 89,  # images that the lists name and the excerpt leaves out
    "radiate_fog": 8 + 16 + 28 + 70 + 20,  # frames that the lists name and the excerpt leaves out
    "nmea/pynmeagps/pygpsdata-BADHDR.log": 1,
    "nmea/pynmeagps/pygpsdata-badeof.log": 1,
    "nmea/pynmeagps/pygpsdata-nmeabadck.log": 2,  # checksums
    "nmea/pynmeagps/pygpsdata-nmeabadck2.log": 1,
    "nmea/pynmeagps/pygpsdata-nmeafoo2.log": 1,
}
# Receivers' commands, or sentences before the first fix: NMEA without a position or a velocity.
NO_POSITIONS = (
    *("feyman_nmea", "furuno_nmea", "kenwood_nmea", "locosys_get_nmea", "locosys_set_nmea"),
    *("pygpsdata-maritime", "pygpsdata-nmeastartup", "pygpsdata-userdefined"),
    *("pygpsdata_quectel_pair_get", "pygpsdata_quectel_pair_poll", "pygpsdata_quectel_pair_set"),
    *("quectel_nmea_command", "quectel_nmea_get", "quectel_nmea_poll", "quectel_nmea_response"),
    *("septentriox5_nmea", "trimble_nmea", "unicore_nmea"),
)


@pytest.mark.parametrize("name", PATHS)
def test_it_opens_by_itself_and_what_it_lost_is_known(real_data: Path, name: str) -> None:
    recording = transect.open(real_data / name)
    assert recording.format == PATHS[name]
    assert recording.name in repr(recording)
    assert sum(loss.count for loss in recording.losses) == LOST.get(name, 0), recording.losses
    assert recording.streams or recording.cameras


@pytest.mark.parametrize("sequence", ["01", "03", "04", "A"])
def test_a_folder_of_several_sequences_opens_one_at_a_time(real_data: Path, sequence: str) -> None:
    recording = transect.open(real_data / "rosario_gt_odom", sequence=sequence)
    assert recording.format == "rosario_tracks"
    assert recording.truth is not None
    assert sum(loss.count for loss in recording.losses) == 0


@pytest.mark.parametrize("name", NO_POSITIONS)
def test_nmea_without_positions_is_recognised_and_says_what_is_missing(real_data: Path, name: str) -> None:
    path = real_data / "nmea" / "pynmeagps" / f"{name}.log"
    assert recognise(path)[0][0] == "nmea"
    with pytest.raises(ParseError, match="holds no GGA or RMC"):
        transect.open(path)


def test_no_file_of_the_covered_kinds_is_forgotten(real_data: Path) -> None:
    """Every file lies in a path of the list, or is a description, a licence, or one that we do not cover."""
    listed = [real_data / name for name in PATHS] + [real_data / "rosario_gt_odom"]
    listed += [real_data / "nmea" / "pynmeagps" / f"{name}.log" for name in NO_POSITIONS]
    beside = ("SOURCE.txt", "LICENSE", "LICENSE.md", "DATA_LICENSE.md", "README.md", "IMPORTANT_NOTES")
    others = ("aces.relations", ".rawlog", "robot_localization", "cdff_dev_descriptors", "_times.txt")
    others += ("DatasetsInformation", "trajectory_aligment", "t_b_g.json")
    forgotten = [
        path
        for folder in COVERED
        for path in (real_data / folder).rglob("*")
        if path.is_file()
        and path.name not in beside
        and not any(word in str(path) for word in others)
        and not any(path == known or known in path.parents for known in listed)
    ]
    assert forgotten == []


@pytest.mark.parametrize("name", ["urdf", "imu_static_adis16405", "comma2k19_ex1"])
def test_what_is_not_covered_is_declined_with_reasons(real_data: Path, name: str) -> None:
    with pytest.raises(transect.errors.TransectError) as caught:
        transect.open(real_data / name)
    assert caught.value.why
