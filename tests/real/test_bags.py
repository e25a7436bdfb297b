"""The real bags: all open, twins in two containers compare equal, and the numbers are those of rosbags."""

from pathlib import Path

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

import transect
from transect.recording import Recording
from transect.types import GridMap, Imu, NavFix, Odometry, Pose

BAGS = (
    "evo/ROS_example.bag",
    "evo/tf_example.bag",
    "evo/tf_example",
    "evo/nav2_turtlebot.mcap",
    "grid_map/grid_map.bag",
    "robot_localization/test1.bag",
    "robot_localization/test2.bag",
    *(
        f"rosbag2/{storage}/{name}"
        for storage in ("sqlite3", "mcap")
        for name in ("cdr_test", "talker", "wbag")
    ),
)


@pytest.fixture(scope="module")
def bags(real_data: Path) -> Path:
    return real_data / "bags"


def assert_equal(a: Recording, b: Recording) -> None:
    """Stream by stream, column by column, log times too."""
    assert [stream.name for stream in a] == [stream.name for stream in b]
    for stream, twin in zip(a, b, strict=True):
        for name in ("type", "clock", "frame", "child", "role", "tag"):
            assert getattr(stream, name) == getattr(twin, name)
        assert stream.table.column_names == twin.table.column_names
        for name in stream.table.column_names:
            assert stream.table[name].equals(twin.table[name]), f"{stream.name}: {name}"


@pytest.mark.parametrize("name", ["cdr_test", "talker", "wbag"])
def test_the_sqlite3_and_mcap_twins_are_equal(name: str, bags: Path):
    in_sqlite, in_mcap = (transect.open(bags / "rosbag2" / storage / name) for storage in ("sqlite3", "mcap"))
    assert sum(len(stream) for stream in in_sqlite) in (7, 20, 6074)
    assert_equal(in_sqlite, in_mcap)


def test_the_ros1_and_ros2_twins_of_tf_are_equal(bags: Path):
    ros1, ros2 = transect.open(bags / "evo/tf_example.bag"), transect.open(bags / "evo/tf_example")
    assert_equal(ros1, ros2)
    t_ns = int(ros1["/tf"].t_ns[100])
    T = ros1.frames.lookup("odom", "base_link", t_ns)
    assert np.array_equal(T, ros2.frames.lookup("odom", "base_link", t_ns))


@pytest.mark.parametrize("name", BAGS)
def test_every_bag_opens_whole_and_counts_as_rosbags_does(name: str, bags: Path):
    rec = transect.open(bags / name)
    assert rec.format == "rosbag"
    assert rec.losses == ()
    with AnyReader([bags / name], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        counts = {topic: info.msgcount for topic, info in reader.topics.items()}
    rows = {stream.name: len(stream) for stream in rec if "tf" not in stream.name}
    assert rows == {topic: count for topic, count in counts.items() if "tf" not in topic}


@pytest.mark.parametrize("name", ["robot_localization/test1.bag", "evo/nav2_turtlebot.mcap"])
def test_odometry_equals_what_rosbags_reads_message_by_message(name: str, bags: Path):
    odom = next(stream for stream in transect.open(bags / name) if stream.type is Odometry)
    with AnyReader([bags / name]) as reader:
        chosen = [c for c in reader.connections if c.topic == odom.name]
        read = [(t, reader.deserialize(raw, c.msgtype)) for c, t, raw in reader.messages(chosen)]
    assert odom.log_ns.tolist() == [t for t, _ in read]
    stamps = [message.header.stamp.sec * 10**9 + message.header.stamp.nanosec for _, message in read]
    assert odom.t_ns.tolist() == stamps
    assert odom["x"].tolist() == [message.pose.pose.position.x for _, message in read]
    assert odom["wz"].tolist() == [message.twist.twist.angular.z for _, message in read]
    assert np.array_equal(odom["pose_covariance"], [message.pose.covariance for _, message in read])


def test_the_husky_has_imu_odometry_and_fixes_for_395_seconds(bags: Path):
    rec = transect.open(bags / "robot_localization/test1.bag")
    assert {s.name: s.type for s in rec} == {
        "/fix": NavFix,
        "/husky_velocity_controller/odom": Odometry,
        "/imu/data": Imu,
    }
    start, end = rec.span or (0, 0)
    assert (end - start) / 1e9 == pytest.approx(395, abs=1)
    assert np.linalg.norm(rec["/imu/data"].array("acc_x", "acc_y", "acc_z"), axis=1).mean() == pytest.approx(
        9.8, abs=0.3
    )


def test_a_simulated_run_is_on_its_own_clock(bags: Path):
    rec = transect.open(bags / "evo/nav2_turtlebot.mcap")
    assert rec["/odom"].clock == "device"
    assert rec["/amcl_pose"].type is Pose
    assert rec["/amcl_pose"]["covariance"].shape == (135, 36)
    assert rec.frames.parent_of("base_link") == "odom"


def test_a_definition_that_lies_is_noticed(bags: Path):
    """The recorder of talker.db3 noted `uint8 level` as the whole of rcl_interfaces/msg/Log."""
    rec = transect.open(bags / "rosbag2/sqlite3/talker")
    assert rec["/rosout"]["msg"][0].startswith("Publishing: 'Hello, world! 0'")
    assert any("definition of rcl_interfaces/msg/Log" in note for note in rec.all_notes)


def test_metadata_that_is_wrong_about_the_start_is_noticed(bags: Path):
    rec = transect.open(bags / "rosbag2/sqlite3/wbag")
    assert any("metadata.yaml says 2623 ns as start, in the files it is 1000" in note for note in rec.notes)


def test_a_grid_map_is_a_map(bags: Path):
    rec = transect.open(bags / "grid_map/grid_map.bag")
    grid = rec["/grid_map"][0].value
    assert isinstance(grid, GridMap)
    assert {name: layer.shape for name, layer in grid.layers.items()} == {"elevation": (40, 120)}
    # 1.2 m by 3.6 m about the origin: the first cell is at its largest x and y (grid_map's README).
    assert grid.resolution == pytest.approx((0.03, 0.03))
    assert grid.transform == pytest.approx((0.0, -0.03, 0.6, -0.03, 0.0, 1.8))


def test_ground_truth_is_told_by_its_topic(bags: Path):
    rec = transect.open(bags / "evo/ROS_example.bag")
    assert rec.truth is rec["groundtruth"]
    assert len(rec["groundtruth"]) == 12765
