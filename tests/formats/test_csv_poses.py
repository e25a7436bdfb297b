"""A CSV of poses or positions with a header opens by itself, and says what was guessed."""

from pathlib import Path

import numpy as np
import pytest

import transect
from transect.errors import UnknownFormatError
from transect.evaluation import load_trajectory
from transect.types import NavFix, Pose

ROW_COUNT = 12


def write(path: Path, header: str, *columns: np.ndarray) -> Path:
    lines = [",".join(map(repr, row)) for row in np.column_stack(columns).tolist()]
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    "header",
    [
        "timestamp,x,y,z,qx,qy,qz,qw",
        "#timestamp [s],p_x [m],p_y [m],p_z [m],q_x,q_y,q_z,q_w",
        "time,tx,ty,tz,qx,qy,qz,qw",
        "t;pos_x;pos_y;pos_z;qx;qy;qz;qw",
        "sec,position_x,position_y,position_z,orientation_x,orientation_y,orientation_z,orientation_w",
    ],
)
def test_poses_of_any_header_open(tmp_path: Path, header: str):
    t = np.arange(ROW_COUNT) / 10
    q = np.array([0.0, 0.0, 0.6, 0.8])
    file = write(tmp_path / "poses.csv", header, t, t * 2, t * 3, t * 0, *np.repeat(q[:, None], ROW_COUNT, 1))
    if ";" in header:
        file.write_text(file.read_text().replace(",", ";"))
        file = file.rename(tmp_path / "poses.txt")
    recording = transect.open(file)
    (stream,) = recording.streams
    assert (recording.format, stream.type) == ("csv", Pose)
    np.testing.assert_allclose(stream["y"], t * 3)
    trajectory = load_trajectory(file)
    assert trajectory.orientations is not None
    np.testing.assert_allclose(trajectory.orientations[5], q)
    assert any("transect new recording" in note for note in recording.all_notes)


def test_the_header_says_where_the_scalar_of_a_quaternion_stands(tmp_path: Path):
    t = np.arange(ROW_COUNT) / 10
    columns = (t, t, t, t, t * 0 + 0.8, t * 0, t * 0, t * 0 + 0.6)
    file = write(tmp_path / "poses.csv", "timestamp,x,y,z,qw,qx,qy,qz", *columns)
    assert transect.open(file).streams[0][0].value.orientation.tolist() == [0.0, 0.0, 0.6, 0.8]
    trajectory = load_trajectory(file)
    assert trajectory.orientations is not None
    assert trajectory.orientations[0].tolist() == [0.0, 0.0, 0.6, 0.8]


def test_eastings_and_northings_are_positions(tmp_path: Path):
    t = 1_628_184_886_518_266 + np.arange(ROW_COUNT) * 103_700
    header = "GPSTime,easting,northing,altitude,vel_east,angvel_z,angvel_y,angvel_x"
    place = (t * 0 + 600_000, t * 0 + 4_000_000, t * 0 + 150)
    file = write(tmp_path / "lidar_poses.csv", header, t, *place, *[t * 0] * 4)
    (stream,) = transect.open(file).streams
    assert stream.type is Pose
    assert stream.t_ns[0] == 1_628_184_886_518_266_000
    assert (stream["x"][0], stream["y"][0], stream["z"][0]) == (6e5, 4e6, 150)


def test_latitudes_and_longitudes_are_fixes(tmp_path: Path):
    t = np.arange(ROW_COUNT) * 1000
    header = "time_ms,latitude,longitude,altitude_m"
    (stream,) = transect.open(
        write(tmp_path / "gps.csv", header, t, t * 0 + 48.1, t * 0 + 11.5, t * 0)
    ).streams
    assert stream.type is NavFix
    np.testing.assert_allclose(stream["lat"], np.radians(48.1))


def test_other_tables_are_left_to_a_description(tmp_path: Path):
    t = np.arange(ROW_COUNT)
    for header in ("time,voltage,current", "a,b,c"):
        with pytest.raises(UnknownFormatError, match="no format recognises"):
            transect.open(write(tmp_path / "table.csv", header, t, t, t))


STAMPED = "%time,field.header.seq,field.header.stamp,field.header.frame_id"


MOTION = ("twist.twist.linear", "twist.twist.angular")


def vector(*paths: str) -> str:
    return ",".join(f"field.{path}.{axis}" for path in paths for axis in "xyz")


ROS = {
    "Imu": (
        f"{STAMPED},{vector('angular_velocity', 'linear_acceleration')}",
        ["gyro_x", "gyro_y", "gyro_z", "acc_x", "acc_y", "acc_z"],
    ),
    "NavFix": (
        f"{STAMPED},field.latitude,field.longitude,field.altitude,field.position_covariance0",
        ["lat", "lon", "alt", "field.position_covariance0"],
    ),
    "Odometry": (
        f"{STAMPED},{vector('pose.pose.position')},field.pose.covariance0,{vector(*MOTION)}",
        ["x", "y", "z", "field.pose.covariance0", "vx", "vy", "vz", "wx", "wy", "wz"],
    ),
    "Twist": (f"%time,{vector('linear', 'angular')}", ["vx", "vy", "vz", "wx", "wy", "wz"]),
}
"""Headers that `rostopic echo -p` prints for sensor_msgs, nav_msgs and geometry_msgs, and what they mean."""


@pytest.mark.parametrize("kind", ROS)
def test_echoed_messages_of_ros_are_what_they_are(tmp_path: Path, kind: str):
    header, columns = ROS[kind]
    stamps = [1_700_000_000_123_456_789 + 10**7 * row for row in range(ROW_COUNT)]
    told = {"seq": str, "stamp": lambda row: str(stamps[row]), "frame_id": lambda _: "here"}
    write_cell = [told.get(name.rpartition(".")[2], lambda _: "9") for name in header.split(",")[1:]]
    lines = [[str(stamps[row] + 1_500_000), *(cell(row) for cell in write_cell)] for row in range(ROW_COUNT)]
    text = "\n".join([header, *map(",".join, lines)]) + "\n"
    (tmp_path / "echo.csv").write_text(text)
    (stream,) = transect.open(tmp_path / "echo.csv").streams
    assert stream.type.__name__ == kind
    stamped = header.startswith(STAMPED)
    assert stream.t_ns.tolist() == [stamp + 1_500_000 * (not stamped) for stamp in stamps]
    assert [name for name in stream.columns if "header" not in name] == columns
    assert (stream.log_ns - stream.t_ns == 1_500_000).all() if stream.log_ns is not None else not stamped
