"""A small AMEDS folder as document 000, Table 7 describes it, written by hand and not by our writer.

Columns stand in the order and units of Table 7, after "the unix timestamp in their first column".
The spelling of the headers is invented: the document does not show them.
"""

from functools import cache
from pathlib import Path

T = "1657013071"
"""Unix seconds of the first sample: 2022-07-05 09:24:31 UTC."""
T_NS = 1_657_013_071 * 10**9

TABLES = {
    # Joint 1-7 angles [rad]
    "AuxArmJointAngles.csv": """\
timestamp,joint_1,joint_2,joint_3,joint_4,joint_5,joint_6,joint_7
1657013071.000123,0.1,-0.2,0.3,-0.4,0.5,-0.6,0.7
1657013072.000124,0.11,-0.21,0.31,-0.41,0.51,-0.61,0.71
""",
    "MainArmJointAngles.csv": """\
timestamp,joint_1,joint_2,joint_3,joint_4,joint_5,joint_6,joint_7
1657013071.5,1,2,3,-1,-2,-3,0
""",
    # (x, y, z) position [m]; (roll-x, pitch-y, yaw-z) attitude [rad]
    "AuxCamPoseEstimate.csv": """\
timestamp,x,y,z,roll-x,pitch-y,yaw-z
1657013071.1,1.0,0.25,-0.5,0,0,1.5707963267948966
1657013072.1,1.5,0.25,-0.5,0,0,1.5707963267948966
""",
    "MainCamPoseEstimate.csv": """\
timestamp,x,y,z,roll-x,pitch-y,yaw-z
1657013071.0,0.25,0.0,-1.25,1.5707963267948966,0,0
1657013072.0,0.75,0.0,-1.25,1.5707963267948966,0,0
""",
    # (x, y, z) acceleration [m/s2]
    "GnssBodyAcceleration.csv": """\
timestamp,x,y,z
1657013071.010,0.01,-0.02,0.03
""",
    # (x, y, z) angular velocity [rad/s]
    "GnssBodyAngularVelocity.csv": """\
timestamp,x,y,z
1657013071.010,0.001,-0.002,0.05
""",
    # (x, y, z) velocity [m/s]; (x, y, z) std velocity [m/s]
    "GnssBodyVelocity.csv": """\
timestamp,x,y,z,std_x,std_y,std_z
1657013071.010,0.3,0.01,-0.02,0.007,0.008,0.009
""",
    # accelerometer [m/s2], gyro [deg/s], magnetometer [G], imu temperature, outside pressure, temperature
    "GnssImu.csv": """\
timestamp,acc_x,acc_y,acc_z,gyro_x,gyro_y,gyro_z,mag_x,mag_y,mag_z,imu_temp,outside_pressure,outside_temp
1657013071.010,0.1,0.2,-9.8,180,-90,45,0.25,-0.5,0.75,41.5,73512.25,18.5
1657013071.020,0.1,0.2,-9.8,0,0,0,0.25,-0.5,0.75,41.5,73512.25,18.5
""",
    # (x, y, z) NED velocity [m/s]; (x, y, z) std NED velocity [m/s]
    "GnssNedVelocity.csv": """\
timestamp,x,y,z,std_x,std_y,std_z
1657013071.010,0.2,0.25,-0.02,0.007,0.008,0.009
""",
    # device time; (lat, lon, alt) [rad, rad, m]; std NED position [m]; NED attitude [rad]; fix type [0-7]
    # The first row is at the lander (section 5.2): 37.72351 N, 15.00668 E, 2639.838 m.
    "GnssPose.csv": """\
timestamp,device_timestamp,lat,lon,alt,std_x,std_y,std_z,roll-x,pitch-y,yaw-z,fix_type
1657013071.013,1657013071.010,0.6583994549090061,0.26191597579318265,2639.838,0.01,0.02,0.03,0,0,0,7
1657013071.024,1657013071.020,0.6583994549090061,0.26191597579318265,2629.838,0.01,0.02,0.03,0.1,-0.2,1.5,6
1657013071.033,1657013071.030,0.6583994549090061,0.26191597579318265,2619.838,0.01,0.02,0.03,0,0,0,0
""",
    # drive motor 1-4 velocity, cmd velocity [m/s]; drive motor 1-4, steer motor 1-4 position [ticks]
    "PlatformMotorEncoders.csv": """\
timestamp,drive_1_velocity,drive_2_velocity,drive_3_velocity,drive_4_velocity,drive_1_cmd_velocity,drive_2_cmd_velocity,drive_3_cmd_velocity,drive_4_cmd_velocity,drive_1_position,drive_2_position,drive_3_position,drive_4_position,steer_1_position,steer_2_position,steer_3_position,steer_4_position
1657013071.02,0.31,0.32,0.33,0.34,0.3,0.3,0.3,0.3,30000,15000,-7500,0,-900,900,901,-901
""",
    # (x, y) velocity [m/s]; (z) angular velocity [rad/s]; (z) std angular velocity [rad/s]
    "Platform2DVelocity.csv": """\
timestamp,x_velocity,y_velocity,z_angular_velocity,z_std_angular_velocity
1657013071.02,0.3,-0.01,0.05,0.002
""",
    # (x, y) NWU position [m]; yaw [rad]; (x, y) std NWU position [m]; yaw std [rad]
    "Platform2DPoseEstimate.csv": """\
timestamp,x,y,yaw-z,std_x,std_y,std_yaw-z
1657013071.02,12.5,-3.25,3.141592653589793,0.1,0.2,0.3
""",
    "Platform2DTwistEstimate.csv": """\
timestamp,x_velocity,y_velocity,z_angular_velocity,z_std_angular_velocity
1657013071.02,0.29,-0.02,0.04,0.003
""",
    # wheel 1-4 (roll-x, pitch-y, yaw-z) [rad]; wheel 1-4 drive angle [rad]; wheel 1-4 steering angle [rad]
    "PlatformWheelPoseEstimate.csv": """\
timestamp,wheel1_roll-x,wheel1_pitch-y,wheel1_yaw-z,wheel2_roll-x,wheel2_pitch-y,wheel2_yaw-z,wheel3_roll-x,wheel3_pitch-y,wheel3_yaw-z,wheel4_roll-x,wheel4_pitch-y,wheel4_yaw-z,drive_angle_1,drive_angle_2,drive_angle_3,drive_angle_4,steering_angle_1,steering_angle_2,steering_angle_3,steering_angle_4
1657013071.02,1.1,1.2,1.3,2.1,2.2,2.3,3.1,3.2,3.3,4.1,4.2,4.3,0.1,0.2,0.3,0.4,0.01,0.02,0.03,0.04
""",
}

IMAGES = {
    "AuxCam_1657013071.033333.jpg": 40,
    "AuxCam_1657013071.066667.jpg": 60,
    "MainCam_1657013071.000001.jpg": 80,
    "MainCam_1657013071.5.jpg": 100,
    "MainCam_1657013072.25.jpg": 120,
    "MainAuxCamProjected_1657013071.066667.jpg": 140,
}
"""File names and the grey value of their pixels."""

CLOUD = "LidarPointcloud_1657013071.2.pcd"
PCD = """\
# .PCD v0.7 - Point Cloud Data file format
VERSION 0.7
FIELDS x y z intensity
SIZE 4 4 4 4
TYPE F F F F
COUNT 1 1 1 1
WIDTH 3
HEIGHT 1
VIEWPOINT 0 0 0 1 0 0 0
POINTS 3
DATA ascii
1.5 2.5 -1.25 10
-4.5 0.5 -1.5 255
0.25 8 0.75 0
"""
VIDEOS = {"AuxCamVideoFeed.mp4": 2, "MainCamVideoFeed.mp4": 3}
"""Films and the number of their frames, those of the images of their cameras."""


def jpeg(grey: int, width: int = 16, height: int = 16) -> bytes:
    """An even picture."""
    import cv2
    import numpy as np

    return cv2.imencode(".jpg", np.full((height, width, 3), grey, np.uint8))[1].tobytes()


@cache
def video(frames: int, rate: int = 30) -> bytes:
    """A film whose frames tell their number, see `films`."""
    from tests.formats.films import film

    return film(frames, rate)


def sample_files() -> dict[str, bytes]:
    """Every file of Table 7."""
    files = {name: text.encode() for name, text in TABLES.items()}
    files |= {name: jpeg(grey) for name, grey in IMAGES.items()}
    files |= {CLOUD: PCD.encode(), **{name: video(frames) for name, frames in VIDEOS.items()}}
    return files


def write_sample(folder: Path, files: dict[str, bytes] | None = None) -> Path:
    """Write the sample, or other files, to a folder."""
    for name, data in (sample_files() if files is None else files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def stored_zip(path: Path, files: dict[str, bytes]) -> Path:
    """Write a zip, as downloaded."""
    import zipfile

    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path
