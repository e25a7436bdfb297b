"""ROS bags in all their containers, written by rosbags, read by us: every value is known."""

import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from tests.formats import bag_sample as bags
from tests.formats.bag_sample import LOG_DELAY_NS, NS_PER_S, START_NS, Make

import transect
from transect.formats import load, recognise
from transect.formats.shared.bags.bag_file import MESSAGE_HEAD_BYTES
from transect.formats.shared.bags.topics import Topic
from transect.recording import Recording
from transect.recording.stream import LOGGED_TYPE
from transect.types import (
    Image,
    Imu,
    JointState,
    LaserScan,
    NavFix,
    Odometry,
    PointCloud,
    Pose,
    Record,
    Trajectory,
    Twist,
)

TEN_HZ = START_NS + np.arange(10) * NS_PER_S // 10
Said = Callable[[Make], list[bags.Message]]


@pytest.fixture(scope="module", params=bags.KINDS)
def rover(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return transect.open(bags.write(tmp_path_factory.mktemp("bag"), request.param), format="rosbag")


@pytest.fixture(params=["ros1", "mcap"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Said], Recording]:
    """Writes messages to a bag and opens it."""
    return lambda said: transect.open(bags.write(tmp_path, request.param, said), format="rosbag")


def one(topic: str, kind: str, make: Callable[[Make], Any]) -> Said:
    return lambda m: [(topic, kind.replace("/", "/msg/"), START_NS + LOG_DELAY_NS, make(m))]


def test_every_topic_is_a_stream_of_its_type(rover: Recording):
    assert {stream.name: stream.type for stream in rover} == {
        "/cloud": PointCloud,
        "/fix": NavFix,
        "/imu": Imu,
        "/left/camera_info": Record,
        "/left/image_raw": Image,
        "/odom": Odometry,
        "/path": Trajectory,
        "/say": Record,
        "/status": Record,
        "/tf": Record,
        "/tf_static": Record,
    }
    assert rover.losses == ()


def test_every_stream_keeps_the_type_that_the_bag_gives_it(rover: Recording):
    assert rover["/imu"].meta[LOGGED_TYPE] == "sensor_msgs/msg/Imu"
    assert all("/msg/" in stream.meta[LOGGED_TYPE] for stream in rover)


def test_the_header_stamp_is_the_time_and_the_receive_time_the_log_time(rover: Recording):
    imu = rover["/imu"]
    assert imu.t_ns.tolist() == [START_NS + k * NS_PER_S // 20 for k in range(20)]
    assert (imu.log_ns - imu.t_ns).tolist() == [LOG_DELAY_NS] * 20
    assert imu.clock == "utc"


def test_an_imu_has_the_canonical_columns_and_its_covariances(rover: Recording):
    imu = rover["/imu"]
    assert imu.frame == "imu_link"
    assert imu["gyro_x"] == pytest.approx(0.1 * np.arange(20))
    assert imu["acc_z"].tolist() == [9.81] * 20
    assert imu["orientation_covariance"][0].tolist() == [0.0, *range(1, 9)]
    assert imu.units["acc_x"] == "m/s2"
    assert imu[3].value.angular_velocity == pytest.approx([0.3, 0.2, 0.3])


def test_odometry_names_both_frames(rover: Recording):
    odom = rover["/odom"]
    assert (odom.frame, odom.child) == ("odom", "base_link")
    assert odom["x"].tolist() == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
    assert odom.array("qx", "qy", "qz", "qw")[0].tolist() == [0.0, 0.0, 0.6, 0.8]
    assert odom["wz"].tolist() == [0.25] * 10
    assert odom["twist_covariance"].shape == (10, 36)


def test_a_fix_is_in_radians_with_sigmas_from_its_covariance(rover: Recording):
    fix = rover["/fix"]
    assert fix["lat"] == pytest.approx(np.radians([45.0, 50.0, 55.0, 60.0]), abs=1e-15)
    assert fix["lon"] == pytest.approx([-np.pi / 2] * 4)
    assert fix.array("std_east", "std_north", "std_down")[0].tolist() == [2.0, 3.0, 4.0]
    assert fix["fix"] == ["differential"] * 4


def test_an_unknown_type_is_flattened_by_the_definition_that_the_bag_carries(rover: Recording):
    status = rover["/status"]
    assert status["voltage"].tolist() == [24.0, 29.0, 34.0, 39.0]
    assert status["cells"].tolist() == [[0, 1, 2, 3]] * 4
    assert (status["since_ns"] - status.t_ns).tolist() == [-NS_PER_S] * 4
    assert status.table["faults"].to_pylist() == [[], ["hot"], ["hot"] * 2, ["hot"] * 3]
    assert status.frame == "base_link"


def test_messages_without_a_stamp_have_their_log_time_and_a_note(rover: Recording):
    said = rover["/say"]
    assert said.t_ns.tolist() == said.log_ns.tolist()
    assert said["data"] == ["step 0", "step 5", "step 10", "step 15"]
    assert any("time at which they were logged" in note for note in said.parsed.notes)


def test_tf_makes_the_frame_tree(rover: Recording):
    assert rover["/tf"]["child"] == ["base_link"] * 10
    assert rover["/tf"]["x"] == pytest.approx(0.1 * np.arange(0, 20, 2))
    T = rover.frames.lookup("odom", "lidar", START_NS + NS_PER_S // 20)
    assert T[:3, 3] == pytest.approx([0.1 + 0.3, 0.0, 0.0])


def test_images_and_clouds_load_when_asked_for(rover: Recording):
    image = rover["/left/image_raw"][1].payload
    assert (image.data == bags.picture(5)).all()
    assert (image.mode, image.t_ns, image.frame) == ("rgb", START_NS + NS_PER_S // 4, "left_optical")
    cloud = rover["/cloud"][1].payload
    assert cloud.points[:, 0].tolist() == [5, 6, 7, 8, 9]
    assert cloud.fields["t_offset_ns"].tolist() == [0, 1000, 2000, 3000, 4000]
    assert cloud.fields["intensity"].tolist() == [100.0] * 5


def test_a_path_is_a_trajectory(rover: Recording):
    path = rover["/path"][0].value
    assert path.t_ns.tolist() == [START_NS, START_NS + NS_PER_S, START_NS + 2 * NS_PER_S]
    assert path.positions[:, 0].tolist() == [0.0, 1.0, 2.0]


def test_the_camera_beside_an_image_is_attached_to_it(rover: Recording):
    camera = rover.cameras["left"]
    assert rover["/left/image_raw"].camera == "left"
    assert rover["/left/image_raw"].tag == "left"
    assert rover["/left/image_raw"][0].value.camera is camera
    assert (camera.width, camera.height, camera.distortion) == (640, 480, "radtan")
    assert camera.K[0].tolist() == [350.0, 0.0, 320.0]
    assert camera.coefficients.tolist() == [-0.3, 0.1, 0.001, 0.002, 0.0]
    assert camera.baseline == pytest.approx(0.12)


@pytest.mark.parametrize("kind", ["ros1", "sqlite3", "mcap"])
def test_opening_reads_no_messages_but_the_first(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = bags.write(tmp_path, kind)
    monkeypatch.setattr(Topic, "messages", lambda _: pytest.fail("all messages were read"))
    assert len(transect.open(path, format="rosbag")) == 11


@pytest.mark.parametrize("kind", ["ros1", "sqlite3", "mcap"])
def test_listing_images_reads_only_their_headers(kind: str, tmp_path: Path):
    big = np.zeros((100, 100, 3), np.uint8)
    said = one("/camera", "sensor_msgs/Image", lambda m: m.image(START_NS, big, "rgb8"))
    rec = transect.open(bags.write(tmp_path, kind, said), format="rosbag")
    ((file, channel),) = rec["/camera"].meta["raw"].__self__.parts
    assert len(file.messages(channel).raws[0]) == MESSAGE_HEAD_BYTES
    assert file.messages(channel).sizes[0] > 30_000
    assert rec["/camera"][0].value.data.shape == (100, 100, 3)


def test_a_single_file_of_a_ros2_bag_opens_without_its_folder(tmp_path: Path):
    folder = bags.write(tmp_path, "sqlite3")
    shutil.copy(folder / "rover.db3", tmp_path / "alone.db3")
    assert len(transect.open(tmp_path / "alone.db3")["/imu"]) == 20
    folder = bags.write(tmp_path / "m", "mcap")
    assert len(transect.open(folder / "rover.mcap")["/imu"]) == 20


@pytest.mark.parametrize("kind", ["ros1", "sqlite3", "mcap"])
def test_a_bag_in_a_zip_is_read_in_place(kind: str, tmp_path: Path):
    path = bags.write(tmp_path, kind)
    with zipfile.ZipFile(tmp_path / "bag.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in [path] if path.is_file() else path.iterdir():
            archive.write(file, f"rover/{file.name}")
    rec = transect.open(tmp_path / "bag.zip")
    assert rec["/imu"].table.equals(transect.open(path)["/imu"].table)
    assert rec["/left/image_raw"][0].value.data.shape == (6, 8, 3)


def test_parts_of_a_split_bag_are_one_recording_in_order(tmp_path: Path):
    for part in (2, 10, 1):
        said = one("/say", "std_msgs/String", lambda m, part=part: m("std_msgs/String", f"part {part}"))
        bags.write_ros1(tmp_path / f"drive_{part}.bag", said(Make("ros1")))
    assert transect.open(tmp_path)["/say"]["data"] == ["part 1", "part 2", "part 10"]


def test_parts_are_ordered_by_their_numbers_for_any_time_in_their_names(tmp_path: Path):
    for name in ("drive_2024-05-01-10-00-00_0.bag", "drive_2024-05-01-10-10-00_1.bag"):
        said = one("/say", "std_msgs/String", lambda m, name=name: m("std_msgs/String", name))
        bags.write_ros1(tmp_path / name, said(Make("ros1")))
    assert [text[-5:] for text in transect.open(tmp_path)["/say"]["data"]] == ["0.bag", "1.bag"]


def test_a_bag_that_is_still_being_written_opens(tmp_path: Path):
    path = bags.write(tmp_path, "ros1")
    path.rename(tmp_path / "rover.bag.active")
    assert len(transect.open(tmp_path / "rover.bag.active")["/imu"]) == 20


def test_a_value_that_was_not_measured_is_nan(opened: Callable[[Said], Recording]):
    rec = opened(one("/imu", "sensor_msgs/Imu", lambda m: m.imu(START_NS, 1, oriented=False)))
    assert np.isnan(rec["/imu"].array("qx", "qy", "qz", "qw")).all()
    assert rec["/imu"]["gyro_x"].tolist() == [0.1]
    assert rec["/imu"]["orientation_covariance"][0, 0] == -1


def test_beams_without_a_return_are_nan(opened: Callable[[Said], Recording]):
    ranges, remission = [1.0, np.inf, 3.0], [10.0, 0.0, 30.0]
    rec = opened(one("/scan", "sensor_msgs/LaserScan", lambda m: m.scan(START_NS, ranges, remission)))
    scan = rec["/scan"][0].value
    assert rec["/scan"].type is LaserScan
    assert np.array_equal(scan.ranges, [1.0, np.nan, 3.0], equal_nan=True)
    assert scan.remission.tolist() == remission
    assert scan.angles == pytest.approx([-1.5, -1.0, -0.5])


def test_why_a_beam_has_no_range_is_kept_and_written_again(
    opened: Callable[[Said], Recording], tmp_path: Path
):
    """REP 117: inf is no return, -inf too close, NaN an erroneous measurement."""
    ranges = [1.0, np.inf, -np.inf, np.nan, 2.0]
    rec = opened(one("/scan", "sensor_msgs/LaserScan", lambda m: m.scan(START_NS, ranges, [])))
    scan = rec["/scan"][0].value
    np.testing.assert_array_equal(scan.measured, [1.0, np.nan, np.nan, np.nan, 2.0])
    assert scan.range_error.tolist() == [0, 1, 2, 3, 0]
    assert transect.formats.write(rec, tmp_path / "again.bag", "rosbag") == ()
    with AnyReader([tmp_path / "again.bag"]) as reader:
        ((connection, _, raw),) = reader.messages()
        np.testing.assert_array_equal(reader.deserialize(raw, connection.msgtype).ranges, ranges)
    again = transect.open(tmp_path / "again.bag")["/scan"][0].value
    assert again.range_error.tolist() == [0, 1, 2, 3, 0]


def test_scans_of_unequal_length_are_kept_as_they_are(opened: Callable[[Said], Recording]):
    def said(m: Make) -> list[bags.Message]:
        return [
            ("/scan", "sensor_msgs/msg/LaserScan", START_NS + k, m.scan(START_NS + k, [1.0] * (k + 1), []))
            for k in range(4)
        ]

    rec = opened(said)
    assert [len(row) for row in rec["/scan"].table["ranges"].to_pylist()] == [1, 2, 3, 4]
    assert "remission" not in rec["/scan"].columns


def test_joints_keep_their_names(opened: Callable[[Said], Recording]):
    rec = opened(
        one("/joints", "sensor_msgs/JointState", lambda m: m.joints(START_NS, ["pan", "tilt"], [0.5, -0.5]))
    )
    joints = rec["/joints"]
    assert joints.type is JointState
    assert joints["position"].tolist() == [[0.5, -0.5]]
    assert joints.table["names"].to_pylist() == [["pan", "tilt"]]
    assert "effort" not in joints.columns


def test_a_zero_stamp_is_replaced_by_the_log_time_and_noted(opened: Callable[[Said], Recording]):
    def said(m: Make) -> list[bags.Message]:
        return [
            ("/imu", "sensor_msgs/msg/Imu", START_NS + k, m.imu(t_ns, k))
            for k, t_ns in enumerate((START_NS - 5, 0, START_NS))
        ]

    imu = opened(said)["/imu"]
    assert imu.t_ns.tolist() == [START_NS - 5, START_NS + 1, START_NS]
    assert imu.parsed.notes == ("/imu: 1 of 3 header stamps are zero, their log time is used",)


def test_stamps_of_a_simulation_are_on_their_own_clock(opened: Callable[[Said], Recording]):
    rec = opened(one("/imu", "sensor_msgs/Imu", lambda m: m.imu(12 * NS_PER_S, 0)))
    assert rec["/imu"].clock == "device"
    assert rec["/imu"].t_ns.tolist() == [12 * NS_PER_S]


def test_a_frame_that_changes_becomes_a_column(opened: Callable[[Said], Recording]):
    def said(m: Make) -> list[bags.Message]:
        return [
            ("/imu", "sensor_msgs/msg/Imu", START_NS + k, m.imu(START_NS + k, k, frame))
            for k, frame in enumerate("aba")
        ]

    imu = opened(said)["/imu"]
    assert imu.frame == "a"
    assert imu["frame_id"] == ["a", "b", "a"]
    assert any("frame_id changes" in note for note in imu.parsed.notes)


def test_a_topic_with_two_types_is_two_streams(opened: Callable[[Said], Recording]):
    def said(m: Make) -> list[bags.Message]:
        twist = m("geometry_msgs/Twist", m.vector(1.0, 0.0, 0.0), m.vector(0.0, 0.0, 0.5))
        return [
            ("/cmd", "geometry_msgs/msg/Twist", START_NS, twist),
            ("/cmd", "std_msgs/msg/String", START_NS + 1, m("std_msgs/String", "stop")),
        ]

    rec = opened(said)
    assert [(stream.name, stream.type) for stream in rec] == [
        ("/cmd (geometry_msgs/msg/Twist)", Twist),
        ("/cmd (std_msgs/msg/String)", Record),
    ]
    assert rec.streams[0]["vx"].tolist() == [1.0]


def test_truth_and_estimates_are_told_by_their_topics(opened: Callable[[Said], Recording]):
    def said(m: Make) -> list[bags.Message]:
        pose = m("geometry_msgs/PoseStamped", m.header(START_NS, "map"), m.pose(1.0, 2.0, 3.0))
        return [
            (topic, "geometry_msgs/msg/PoseStamped", START_NS, pose)
            for topic in ("/ground_truth/pose", "/amcl_pose", "/pose")
        ]

    rec = opened(said)
    assert [(stream.type, stream.role) for stream in rec] == [
        (Pose, "estimate"),
        (Pose, "truth"),
        (Pose, "measurement"),
    ]


def test_a_type_that_nobody_describes_is_kept_as_bytes(tmp_path: Path):
    folder = bags.write(tmp_path, "sqlite3")
    with sqlite3.connect(folder / "rover.db3") as db:
        db.execute("DELETE FROM message_definitions WHERE topic_type LIKE 'rover%'")
    db.close()
    rec = transect.open(folder)
    status = rec["/status"]
    assert status["size"].tolist() == [len(sample.value) for sample in status]
    assert status[0].value.startswith(b"\x00\x01\x00\x00")  # the encapsulation of little-endian CDR
    assert status.parsed.notes[0].startswith(
        "/status: messages of this type cannot be read here (rover_msgs/msg/Status"
    )
    assert len(rec["/imu"]) == 20


@pytest.mark.parametrize("definition", ["uint8 level", "float64 ?", "", "rover_msgs/Status self\n"])
def test_a_definition_that_lies_gives_way_to_that_of_ros(definition: str, tmp_path: Path):
    folder = bags.write(tmp_path, "sqlite3")
    with sqlite3.connect(folder / "rover.db3") as db:
        db.execute("UPDATE message_definitions SET encoded_message_definition = ?", (definition,))
    db.close()
    rec = transect.open(folder)
    assert rec["/imu"]["acc_z"].tolist() == [9.81] * 20
    assert len(rec["/status"]) in (0, 4)
    assert definition != "uint8 level" or any(
        "definition of sensor_msgs/msg/Imu" in note for note in rec.all_notes
    )


def test_lists_of_structures_are_counted(opened: Callable[[Said], Recording]):
    def polygon(m: Make) -> Any:
        corners = [m("geometry_msgs/Point32", 1.0, 2.0, 3.0) for _ in range(3)]
        return m(
            "geometry_msgs/PolygonStamped", m.header(START_NS, "map"), m("geometry_msgs/Polygon", corners)
        )

    rec = opened(one("/area", "geometry_msgs/PolygonStamped", polygon))
    assert rec["/area"]["polygon.points"].tolist() == [3]
    assert rec["/area"].parsed.notes == ("/area: polygon.points is kept as the number of its elements",)


def test_a_frame_with_two_parents_keeps_the_one_sent_most(opened: Callable[[Said], Recording]):
    def said(m: Make) -> list[bags.Message]:
        sent = [("odom", 1.0), ("map", 2.0), ("map", 2.0)]
        return [
            ("/tf", "tf2_msgs/msg/TFMessage", START_NS + k, m.tf((START_NS + k, p, "base", x)))
            for k, (p, x) in enumerate(sent)
        ]

    rec = opened(said)
    assert rec.frames.parent_of("base") == "map"
    assert any("base has several parents" in note for note in rec.all_notes)


def test_metadata_that_disagrees_with_the_files_is_noted_and_ignored(tmp_path: Path):
    folder = bags.write(tmp_path, "mcap")
    metadata = (folder / "metadata.yaml").read_text()
    (folder / "metadata.yaml").write_text(metadata.replace("message_count: 63", "message_count: 99"))
    rec = transect.open(folder)
    assert len(rec["/imu"]) == 20
    assert any("metadata.yaml says 99 messages" in note for note in rec.notes)
    assert rec.losses == ()


def test_a_file_that_metadata_lists_and_is_missing_is_a_loss(tmp_path: Path):
    folder = bags.write(tmp_path, "mcap")
    metadata = (folder / "metadata.yaml").read_text()
    listed = "relative_file_paths:\n  - rover.mcap"
    assert listed in metadata
    (folder / "metadata.yaml").write_text(metadata.replace(listed, listed + "\n  - rover_1.mcap"))
    assert [loss.file for loss in transect.open(folder).losses] == ["rover_1.mcap"]
    many = "".join(f"\n  - bag/rover_{k}.mcap" for k in range(1, 5001))
    (folder / "metadata.yaml").write_text(metadata.replace(listed, listed + many))
    losses = transect.open(folder).losses
    assert [loss.file for loss in losses] == [*(f"rover_{k}.mcap" for k in range(1, 101)), "metadata.yaml"]
    assert losses[-1].reason == "lists 4900 further files that are not there"


def test_a_file_that_metadata_does_not_list_is_read_and_noted(tmp_path: Path):
    folder = bags.write(tmp_path, "mcap")
    shutil.copy(folder / "rover.mcap", folder / "rover_1.mcap")
    rec = transect.open(folder)
    assert len(rec["/imu"]) == 40
    assert "metadata.yaml does not list rover_1.mcap, which is read, too" in rec.notes


def test_metadata_that_is_not_yaml_does_not_matter(tmp_path: Path):
    folder = bags.write(tmp_path, "mcap")
    (folder / "metadata.yaml").write_text("rosbag2_bagfile_information: [")
    rec = transect.open(folder)
    assert len(rec["/imu"]) == 20
    assert any("not YAML" in note for note in rec.notes)


def test_a_write_ahead_log_left_beside_a_database_is_reported(tmp_path: Path):
    folder = bags.write(tmp_path, "sqlite3")
    (folder / "rover.db3-wal").write_bytes(b"x" * 100)
    (loss,) = transect.open(folder).losses
    assert loss.file == "rover.db3-wal"


@pytest.mark.parametrize("kind", bags.KINDS)
def test_each_container_is_recognised(kind: str, tmp_path: Path):
    name, match = recognise(bags.write(tmp_path, kind))[0]
    assert name == "rosbag"
    assert match.confidence > 0.8


def test_refusals_say_what_was_near(tmp_path: Path):
    rosbag = load("rosbag")
    for name, content, words in (
        ("old.bag", b"#ROSRECORD V1.2\n", "before 2.0"),
        ("some.db3", b"SQLite format 3\x00" + bytes(100), "no table of topics"),
        ("some.mcap", b"\x89MCAP0\r\n" + bytes(30), "not of ROS"),
        ("some.bag", b"no bag", "does not begin like one"),
    ):
        (tmp_path / name).write_bytes(content)
        match = rosbag.recognises(transect.recording.source_of(tmp_path / name))
        assert not match
        assert words in match.reason
        assert " but " in match.reason


def test_unrelated_bags_in_a_folder_are_not_one_recording(tmp_path: Path):
    for name in ("monday.bag", "tuesday.bag"):
        (tmp_path / name).write_bytes(b"#ROSBAG V2.0\n")
    match = load("rosbag").recognises(transect.recording.source_of(tmp_path))
    assert not match
    assert "not parts of one recording" in match.reason


def test_the_provenance_names_the_file_and_its_hash(tmp_path: Path):
    rec = transect.open(bags.write(tmp_path, "ros1"))
    assert rec["/imu"].table.num_rows
    (source,) = rec.provenance.sources
    assert source.path == "rover.bag"
    assert len(source.sha256) == 64
