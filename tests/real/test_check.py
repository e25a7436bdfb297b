"""What checks say of real recordings: their known defects, and nothing else that is BAD.

What each BAD is stands in `shared/data/README.md`, or was looked at in a picture (`docs/integrity.md`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import transect
from transect.base.clocks import NS
from transect.integrity import check
from transect.recording import Recording, Stream, arrow
from transect.types import PointCloud

CHECKS = [
    *(f"T0{k}" for k in range(1, 10)), *(f"S0{k}" for k in range(1, 8)), *(f"C0{k}" for k in range(1, 6)),
    "X03", "X04", "X05", "X07", "X08", "X09", "X10", "E01", "E02", "E03", "E04", "E05",
]  # fmt: skip
GPS = {"fix", "imu", "velocity"}
KNOWN: dict[str, set[tuple[str, str]]] = {
    # "GPS time does not overlap the rest, repeated stamps", and one stamp that goes back
    "radiate_fog": {
        (f"GPS_IMU_Twist/{name}", reason)
        for name in GPS for reason in ("META_TIME", "DUPLICATE", "BACKWARD", "CLOCK_JUMP")
    }
    # 2 of 83 features are matched between left and right: docs/integrity/fog.png
    | {("zed_left", "INLIERS"), ("zed_right", "INLIERS")},
    # the excerpts have images for 0.45 s and 5.7 s
    "euroc_v101": {("cam0", "EARLY_STOP"), ("cam1", "EARLY_STOP")},
    "kitti_raw_06": {("image_00", "EARLY_STOP"), ("image_01", "EARLY_STOP")},
    "kitti_06_turn": set(),
    "kitti_06_revisit": set(),
    "bags/robot_localization/test1.bag": set(),
    # the wheels turn by 34 rad, the inertial sensor by 4.4: docs/integrity/jackal.png
    "bags/robot_localization/test2.bag": {("/jackal_velocity_controller/odom", "SLIP")},
    "bags/evo/nav2_turtlebot.mcap": {("/odom", "GAP")},  # 1.76 s
    "bags/evo/ROS_example.bag": set(),
    "bags/evo/tf_example.bag": set(),
    "bags/grid_map/grid_map.bag": set(),
    "carmen_2dlaser/mit-csail.clf.bz2": set(),
    "carmen_2dlaser/aces.clf.bz2": set(),
    "lidar_gtsam_points": set(),
    "nmea/nmea.log": set(),
    # "real gaps (4.0 s in 04)"
    "rosario_gt_odom/sequence04_new_gt_IMU_frame.txt": {("Rtk", "GAP")},
    "rosario_gt_odom/sequence01_new_gt_IMU_frame.txt": set(),
    "rosario_gt_odom/sequence03_new_gt_IMU_frame.txt": set(),
    "canada_planetary_gps/global-pose-utm.txt": set(),
    "baseprod_rover/kml/2023-07-20_18-12-05.kml": set(),
    "baseprod_rover/kml/2023-07-22_16-24-27.kml": set(),
    "gtsam_data/quadraped_imu_data.csv": set(),
    "rock_logs/msgpack": set(),
    "rock_logs/pocolog": set(),
    "trajectories_evo/fr2_desk_ORB.txt": set(),
    "boreas_traj/gt": set(),
}  # fmt: skip
SUSPECTED: dict[str, set[tuple[str, str]]] = {
    # wheel odometry lags the gyroscopes by 0.4 s: docs/integrity/husky.png; either may be the late one
    "bags/robot_localization/test1.bag": {
        ("/imu/data", "LATENCY"), ("/husky_velocity_controller/odom", "LATENCY"),
    },
    "rock_logs/msgpack": {("/xsens_imu.calibrated_sensors", "GAP")},
}  # fmt: skip
PARTS = {
    "euroc_v101": (None, "+12s"),
    "bags/robot_localization/test1.bag": ("+350s", "+380s"),
    "bags/robot_localization/test2.bag": (None, "+20s"),
    "bags/evo/ROS_example.bag": (None, "+60s"),
    "carmen_2dlaser/mit-csail.clf.bz2": (None, "+40s"),
    "carmen_2dlaser/aces.clf.bz2": ("+100s", "+140s"),
    "rosario_gt_odom/sequence01_new_gt_IMU_frame.txt": (None, "+60s"),
    "lidar_gtsam_points": (None, "+20s"),
    "trajectories_evo/fr2_desk_ORB.txt": (None, "+20s"),
    "boreas_traj/gt": (None, "+20s"),
}
"""What is checked here of long ones, for the time that tests may take; all of them were checked whole."""


@pytest.mark.parametrize("name", KNOWN)
def test_known_defects_are_found_and_nothing_else_is_bad(real_data: Path, name: str) -> None:
    recording = transect.open(real_data / name)
    if name in PARTS:
        recording = recording.slice(*PARTS[name])
    verdicts = check(recording, checks=CHECKS)
    bad = verdicts.select(state="BAD")
    assert set(zip(bad.column("stream"), bad.column("reason"), strict=True)) == KNOWN[name]
    if name in SUSPECTED:
        suspect = verdicts.select(state="SUSPECT")
        assert set(zip(suspect.column("stream"), suspect.column("reason"), strict=True)) == SUSPECTED[name]
    assert verdicts.select(reason="CHECK_FAILED").column("note") == []


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("lidar_gtsam_points", "newer_01/planes"),
        ("lidar_libpointmatcher", "data/cloud"),
    ],
)
def test_clear_clouds_have_nothing_in_the_air(real_data: Path, folder: str, name: str) -> None:
    """They have no times: here one comes a second, over and over."""
    clouds = transect.open(real_data / folder)[name]
    rows = arrow.strings([str(k % len(clouds)) for k in range(6)])
    table = arrow.table(1_700_000_000 * NS + np.arange(6) * NS, {"payload": rows})
    lidar = Stream("lidar", PointCloud, table, loader=lambda row: clouds[int(row["payload"])].payload)
    found = list(check(Recording(folder, (lidar,)), checks=["C04"]))
    assert {v.state for v in found} == {"OK"}
    assert found[-1].evidence["alone"] > 0.05  # slanted and far surfaces: no neighbours, and yet no dust
