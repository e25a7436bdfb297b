"""Recordings written as bags: rosbags reads them, and we read back what was there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pytest
from rosbags.highlevel import AnyReader
from tests.formats import bag_sample as bags
from tests.formats.bag_sample import NS_PER_S, START_NS

import transect
from transect.errors import UnsupportedError, UsageError
from transect.formats import load
from transect.recording import FrameTree, Recording, Stream, arrow, source_of, stream_of_values
from transect.recording.arrow import PAYLOAD
from transect.types import (
    CameraModel,
    DepthMap,
    GridMap,
    Image,
    Imu,
    JointState,
    LaserScan,
    NavFix,
    Odometry,
    PointCloud,
    Pose,
    RigidBodyState,
    Trajectory,
    Twist,
    Wrench,
)

TARGETS = ("out.bag", "out.mcap", "out")
TIMES_NS = START_NS + np.arange(4) * NS_PER_S // 10
EYE = np.tile([0.0, 0.0, 0.0, 1.0], (4, 1))


def write(rec: Recording, path: Path) -> tuple[str, ...]:
    return load("rosbag").write(rec, path)


def read_by_rosbags(path: Path) -> int:
    """Decode every message with rosbags."""
    with AnyReader([path]) as reader:
        return sum(1 for c, _, data in reader.messages() if reader.deserialize(data, c.msgtype) is not None)


def is_columns(stream: Stream) -> bool:
    return PAYLOAD not in stream.table.column_names


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["ros1", "sqlite3", "mcap"])
def test_a_bag_written_as_another_reads_the_same(kind: str, target: str, tmp_path: Path):
    rec = transect.open(bags.write(tmp_path, kind), format="rosbag")
    said = write(rec, tmp_path / "written" / target)
    back = transect.open(tmp_path / "written" / target, format="rosbag")
    same_ros = (kind == "ros1") == target.endswith(".bag")
    assert said == (
        () if same_ros else ("/status is not written: there is no message for a rover_msgs/msg/Status",)
    )
    assert [s.name for s in back] == [s.name for s in rec if same_ros or s.name != "/status"]
    for stream in back:
        known = rec[stream.name]
        assert stream.t_ns.tolist() == known.t_ns.tolist()
        assert stream.log_ns.tolist() == known.log_ns.tolist()
        assert (stream.type, stream.frame, stream.child) == (known.type, known.frame, known.child)
        if is_columns(stream) and stream.name not in ("/fix", "/left/camera_info"):
            assert stream.table.equals(known.table)
    assert back["/fix"]["lat"] == pytest.approx(rec["/fix"]["lat"], abs=1e-15)
    assert back.cameras["left"].same_as(rec.cameras["left"])
    assert np.array_equal(back["/left/image_raw"][1].value.data, rec["/left/image_raw"][1].value.data)
    assert np.array_equal(back["/cloud"][1].value.points, rec["/cloud"][1].value.points)
    assert back["/cloud"][1].value.fields["t_offset_ns"].tolist() == [0, 1000, 2000, 3000, 4000]
    assert np.array_equal(back["/path"][0].value.positions, rec["/path"][0].value.positions)
    assert np.array_equal(
        back.frames.lookup("odom", "lidar", START_NS), rec.frames.lookup("odom", "lidar", START_NS)
    )
    assert back.losses == ()
    assert read_by_rosbags(tmp_path / "written" / target) > 50


def same(a: pa.ChunkedArray, b: pa.ChunkedArray) -> bool:
    """Whether two columns hold the same values, NaN where the other has it."""
    if pa.types.is_floating(b.type):
        return np.array_equal(a.to_numpy(), b.to_numpy(), equal_nan=True)
    return a.cast(b.type).equals(b)


def values(kind: type, name: str, columns: dict[str, Any], **attributes: Any) -> Stream:
    return stream_of_values(name, TIMES_NS, columns, type=kind, **attributes)


def axes(names: str, start: float = 0.0) -> dict[str, Any]:
    return {name: np.arange(4) + start + k / 8 for k, name in enumerate(names.split())}


def foreign_streams() -> list[Stream]:
    """Streams as formats without ROS give them."""
    pose = {**axes("x y z"), **dict(zip(("qx", "qy", "qz", "qw"), EYE.T, strict=True))}
    ragged = arrow.ragged([np.ones(k + 1, np.float32) for k in range(4)])
    angles = {"start_angle": np.full(4, -1.5, np.float32), "angle_increment": np.full(4, 0.5, np.float32)}
    names = pa.LargeListArray.from_arrays(
        arrow.from_numpy(np.arange(5) * 2), arrow.strings(["pan", "tilt"] * 4)
    )
    fix = {
        "lat": np.full(4, 0.5),
        "lon": np.full(4, -1.0),
        "alt": np.arange(4.0),
        "fix": ["rtk fixed", "none", "3d", "sbas"],
    }
    sigmas = {name: np.array([1.0, 2.0, 3.0, np.nan]) for name in ("std_north", "std_east", "std_down")}
    return [
        values(Imu, "Imu", axes("acc_x acc_y acc_z gyro_x gyro_y gyro_z"), frame="imu", log_ns=TIMES_NS + 5),
        values(NavFix, "Gnss", {**fix, **sigmas}, frame="antenna"),
        values(Pose, "Pose", pose, frame="map", child="base"),
        values(Pose, "Located", {**pose, "covariance": np.zeros((4, 36))}, frame="map"),
        values(Odometry, "Wheels", {**pose, **axes("vx vy vz wx wy wz")}, frame="odom", child="base"),
        values(RigidBodyState, "State", {**pose, **axes("vx vy vz")}, frame="map"),
        values(Twist, "Command", axes("vx vy vz wx wy wz")),
        values(Wrench, "Wrist", axes("fx fy fz tx ty tz"), frame="wrist"),
        values(JointState, "Arm", {"position": np.arange(8.0).reshape(4, 2), "names": names}),
        values(LaserScan, "Laser", {"ranges": ragged, **angles}, frame="laser"),
        values(transect.types.Record, "Battery", {"voltage": np.full(4, 24.0)}),
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_streams_that_never_saw_ros_become_standard_messages(target: str, tmp_path: Path):
    rec = Recording("field", tuple(foreign_streams()))
    said = write(rec, tmp_path / target)
    assert said == (
        "Gnss: sensor_msgs/msg/NavSatFix has no place for fix",
        "Gnss: not measured, so sensor_msgs/msg/NavSatFix has 0: service",
        "State: geometry_msgs/msg/PoseStamped has no place for vx, vy, vz",
        "Battery is not written: there is no message for a Record",
    )
    back = transect.open(tmp_path / target, format="rosbag")
    assert {s.name: s.type for s in back} == {
        **{s.name: s.type for s in rec if s.name not in ("State", "Battery")},
        "State": Pose,
    }
    for stream in back:
        known = rec[stream.name]
        assert stream.t_ns.tolist() == known.t_ns.tolist()
        assert stream.frame == known.frame
        for name in set(known.columns) & set(stream.columns) - {"fix", "lat", "lon"}:
            assert same(stream.table[name], known.table[name]), name
    assert back["Imu"].log_ns.tolist() == (TIMES_NS + 5).tolist()
    assert np.isnan(back["Imu"]["qw"]).all()
    assert back["Gnss"]["lat"] == pytest.approx([0.5] * 4, abs=1e-15)
    assert back["Gnss"]["fix"] == ["differential", "none", "3d", "sbas"]
    assert back["Wheels"].child == "base"
    assert read_by_rosbags(tmp_path / target) == 40 + 1


def pose_of(**measured: Any) -> dict[str, Any]:
    """Columns of a pose, the ones that are not given as never measured."""
    return dict.fromkeys(("x", "y", "z", "qx", "qy", "qz", "qw"), np.full(4, np.nan)) | measured


@pytest.mark.parametrize("target", TARGETS)
def test_what_was_not_measured_is_nan_when_it_is_read_back(target: str, tmp_path: Path):
    moved, attitude = axes("x y z"), dict(zip(("qx", "qy", "qz", "qw"), EYE.T, strict=True))
    velocity = axes("vx vy vz")
    rec = Recording(
        "r",
        (
            values(Twist, "Twist", velocity),
            values(Odometry, "Wheels", velocity, frame="odom", child="base"),
            values(Pose, "Place", moved, frame="map"),
            values(Pose, "Attitude", attitude, frame="map"),
            values(Wrench, "Wrist", axes("fx fy fz")),
            values(LaserScan, "Laser", {"ranges": np.ones((4, 2), np.float32)}),
        ),
    )
    assert write(rec, tmp_path / target) == (
        "Twist: not measured, so geometry_msgs/msg/TwistStamped has 0: wx, wy, wz",
        "Wheels: not measured, so nav_msgs/msg/Odometry has 0 (qw 1): x, y, z, qx, qy, qz, qw, wx, wy, wz",
        "Place: not measured, so geometry_msgs/msg/PoseStamped has 0 (qw 1): qx, qy, qz, qw",
        "Attitude: not measured, so geometry_msgs/msg/PoseStamped has 0: x, y, z",
        "Wrist: not measured, so geometry_msgs/msg/WrenchStamped has 0: tx, ty, tz",
    )
    back = transect.open(tmp_path / target, format="rosbag")
    nothing = dict.fromkeys(("wx", "wy", "wz"), np.full(4, np.nan))
    expected = {
        "Twist": velocity | nothing,
        "Wheels": velocity | nothing | pose_of(),
        "Place": pose_of(**moved),
        "Attitude": pose_of(**attitude),
        "Wrist": axes("fx fy fz") | dict.fromkeys(("tx", "ty", "tz"), np.full(4, np.nan)),
        "Laser": dict.fromkeys(("start_angle", "angle_increment", "range_min"), np.full(4, np.nan)),
    }
    for name, columns in expected.items():
        for column, known in columns.items():
            np.testing.assert_array_equal(back[name][column], known, err_msg=f"{name} {column}")
        assert back[name][0].value is not None
    assert np.isnan(back["Wheels"]["pose_covariance"]).all()
    assert back.losses == ()
    assert read_by_rosbags(tmp_path / target) == 24 + 1


def fractions(message: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Iterate over the fractions in a message as rosbags has it, each with its path."""
    for name, value in vars(message).items():
        inside = f"{path}.{name}".lstrip(".")
        if hasattr(value, "__msgtype__"):
            yield from fractions(value, inside)
        elif isinstance(value, float):
            yield inside, value
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            yield from ((inside, float(number)) for number in value.reshape(-1))


@pytest.mark.parametrize("target", [*TARGETS, "out.db3"])
def test_ros_gets_no_nan_and_topics_with_a_slash(target: str, tmp_path: Path):
    """What sensor_msgs and REP 117 expect where nothing is known; only NavSatFix.altitude may be NaN."""
    plane = {
        **axes("x y"),
        "z": np.full(4, np.nan),
        **dict(zip(("qx", "qy", "qz", "qw"), EYE.T, strict=True)),
    }
    unknown = np.full((4, 36), np.nan)
    unknown[:2] = np.eye(6).reshape(-1)
    scan = {
        "ranges": np.ones((4, 5), np.float32),
        "start_angle": np.full(4, -1.0, np.float32),
        "angle_increment": np.full(4, 0.5, np.float32),
    }
    rec = Recording(
        "r",
        (
            values(LaserScan, "Laser/front", scan),
            values(Pose, "Plane", plane, frame="map"),
            values(Pose, "Located", {**plane, "covariance": unknown}),
            values(Odometry, "Wheels", axes("vx wz"), frame="odom", child="base"),
            values(Imu, "Gyro 1", axes("gyro_x gyro_y gyro_z")),
            values(NavFix, "1st fix", {**axes("lat lon", 0.1), "std_north": np.ones(4)}),
            values(Twist, "/cmd_vel", axes("vx vy vz wx wy wz")),
        ),
    )
    rest = "x, y, z, qx, qy, qz, qw, vy, vz, wx, wy"
    assert write(rec, tmp_path / "first.mcap") == (
        "Plane: not measured, so geometry_msgs/msg/PoseStamped has 0: z",
        "Located: not measured, so geometry_msgs/msg/PoseWithCovarianceStamped has 0: covariance, z",
        f"Wheels: not measured, so nav_msgs/msg/Odometry has 0 (qw 1): {rest}",
        "1st fix: not measured, so sensor_msgs/msg/NavSatFix has 0: status, service",
    )
    write(transect.open(tmp_path / "first.mcap", format="rosbag"), tmp_path / target)  # twice is as once
    with AnyReader([tmp_path / target]) as reader:
        found = {c.topic: reader.deserialize(data, c.msgtype) for c, _, data in reader.messages()}
    nans = {(topic, path) for topic, m in found.items() for path, number in fractions(m) if np.isnan(number)}
    assert nans == {("/_1st_fix", "altitude")}
    laser, fix, gyro = found["/Laser/front"], found["/_1st_fix"], found["/Gyro_1"]
    assert (laser.angle_max, laser.time_increment, laser.scan_time) == (1.0, 0.0, 0.0)
    assert (fix.position_covariance_type, fix.position_covariance.any()) == (0, False)
    assert (gyro.orientation_covariance[0], gyro.linear_acceleration_covariance[0]) == (-1.0, -1.0)
    assert gyro.angular_velocity_covariance[0] == 0.0
    assert found["/Wheels"].pose.pose.orientation.w == 1.0
    back = transect.open(tmp_path / target, format="rosbag")
    assert [s.name for s in back] == sorted(s.name for s in rec)
    assert np.isnan(back["Plane"]["z"]).all()
    assert np.isnan(back["Wheels"].array("x", "qw", "vy")).all()


def test_topics_that_would_have_one_name_get_two(tmp_path: Path):
    rec = Recording(
        "r", tuple(values(Twist, name, axes("vx vy vz wx wy wz")) for name in ("a b", "/a_b", "a_b"))
    )
    assert write(rec, tmp_path / "out.bag") == ()
    with AnyReader([tmp_path / "out.bag"]) as reader:
        assert set(reader.topics) == {"/a_b", "/a_b_2", "/a_b_3", "/transect"}
    assert [s.name for s in transect.open(tmp_path / "out.bag")] == ["/a_b", "a b", "a_b"]


@pytest.mark.parametrize("target", TARGETS)
def test_integers_that_were_not_measured_are_said_to_be_written_as_0(target: str, tmp_path: Path):
    fix = {"lat": np.zeros(4), "lon": np.zeros(4), "service": np.array([1.0, np.nan, 2.0, 1.0])}
    said = write(Recording("r", (values(NavFix, "Gnss", fix),)), tmp_path / target)
    assert said == ("Gnss: not measured, so sensor_msgs/msg/NavSatFix has 0: status, service",)
    back = transect.open(tmp_path / target, format="rosbag")["Gnss"]
    assert back["service"].tolist() == [1, 0, 2, 1]
    assert np.isnan(back["alt"]).all()
    assert np.isnan(back["std_north"]).all()


def test_transforms_that_were_not_measured_are_left_out_of_the_frames(tmp_path: Path):
    rec = transect.open(bags.write(tmp_path, "mcap"), format="rosbag")
    tf = rec["/tf"]
    gone = np.arange(len(tf)) % 2 == 1
    columns = {name: tf[name] for name in ("parent", "child", "x", "y", "z", "qx", "qy", "qz")}
    columns["qw"] = np.where(gone, np.nan, tf["qw"])
    holes = stream_of_values("/tf", tf.t_ns, columns, type=tf.type, log_ns=tf.log_ns)
    holes.meta.update(tf.meta)
    write(Recording("r", (holes,)), tmp_path / "out.mcap")
    back = transect.open(tmp_path / "out.mcap", format="rosbag")
    assert np.isnan(back["/tf"]["qw"]).sum() == gone.sum()
    parent, child, t_ns = tf["parent"][0], tf["child"][0], int(tf.t_ns[0])
    np.testing.assert_array_equal(
        back.frames.lookup(parent, child, t_ns), rec.frames.lookup(parent, child, t_ns)
    )


def scene(folder: Path) -> Recording:
    """Images as files and as arrays, clouds, depth, a path, a map, frames and a camera."""
    folder.mkdir()
    for k in range(4):
        cv2.imwrite(str(folder / f"{k}.png"), np.full((2, 3, 3), 10 * k, np.uint8))
    names = [f"{k}.png" for k in range(4)]
    table = arrow.table(TIMES_NS, {PAYLOAD: arrow.strings(names)})
    cloud = {
        "intensity": np.arange(3, dtype=np.uint16),
        "rgb": np.array([[255, 128, 1]] * 3, np.uint8),
        "normal": np.eye(3),
        "t_offset_ns": np.array([0, 5, 10]),
    }
    grays = np.arange(6, dtype=np.uint16).reshape(2, 3)
    metres = np.array([[1.0, np.nan]], np.float32)
    payloads: dict[str, tuple[type, Any]] = {
        "Thermal": (Image, lambda row: Image(grays, "thermal", row["t_ns"])),
        "Depth": (DepthMap, lambda row: DepthMap(metres, row["t_ns"])),
        "Lidar": (PointCloud, lambda row: PointCloud(np.eye(3, dtype=np.float32), cloud, row["t_ns"])),
        "Plan": (Trajectory, lambda _: Trajectory(TIMES_NS, np.ones((4, 3)))),
        "Map": (GridMap, lambda _: GridMap({"elevation": np.zeros((2, 2))}, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0))),
    }
    made = arrow.table(TIMES_NS, {PAYLOAD: arrow.strings(["w", "x", "y", "z"])})
    streams = [
        Stream(name, kind, made, loader=load_one, frame="f") for name, (kind, load_one) in payloads.items()
    ]
    decode = transect.formats.shared.images.image_loader(source_of(folder))
    streams.append(Stream("MainCam", Image, table, loader=decode, camera="MainCam", frame="cam"))
    frames = FrameTree()
    frames.add_static("base", "cam", np.array([[0.0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]]))
    frames.add_moving("map", "base", TIMES_NS, np.ones((4, 3)), EYE)
    camera = CameraModel(
        "MainCam",
        3,
        2,
        np.array([[9.0, 0, 1], [0, 9, 1], [0, 0, 1]]),
        "radtan",
        np.array([0.1, 0.2, 0.3, 0.4]),
        frame="cam",
    )
    return Recording("scene", tuple(streams), frames, {"MainCam": camera}, source=source_of(folder))


@pytest.mark.parametrize("target", TARGETS)
def test_payloads_frames_and_cameras_are_carried(target: str, tmp_path: Path):
    rec = scene(tmp_path / "scene")
    assert write(rec, tmp_path / target) == ("Map is not written: there is no message for a GridMap",)
    back = transect.open(tmp_path / target, format="rosbag")
    assert back["Thermal"][1].value.data.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert np.array_equal(back["Depth"][0].value.data, [[1.0, np.nan]], equal_nan=True)
    cloud = back["Lidar"][2].value
    assert cloud.points.tolist() == np.eye(3).tolist()
    assert cloud.fields["rgb"].tolist() == [[255, 128, 1]] * 3
    assert cloud.fields["normal"].tolist() == np.eye(3).tolist()
    assert cloud.fields["t_offset_ns"].tolist() == [0, 5, 10]
    assert cloud.fields["intensity"].dtype == np.uint16
    assert back["Plan"][0].value.t_ns.tolist() == TIMES_NS.tolist()
    assert back["MainCam"].meta["channel"].type == "sensor_msgs/msg/CompressedImage"
    assert back["MainCam"][3].value.data.tolist() == np.full((2, 3, 3), 30).tolist()
    assert back.cameras["MainCam"].same_as(rec.cameras["MainCam"])
    assert back["MainCam"].camera == "MainCam"
    assert back.frames.lookup("map", "cam", int(TIMES_NS[1])) == pytest.approx(
        rec.frames.lookup("map", "cam", int(TIMES_NS[1]))
    )
    streams, calibrations, static, moving, origin = 5 * 4, 4, 1, 4, 1
    assert read_by_rosbags(tmp_path / target) == streams + calibrations + static + moving + origin


def test_a_part_of_a_bag_can_be_cut_out_and_keeps_its_types(tmp_path: Path):
    rec = transect.open(bags.write(tmp_path, "sqlite3"), format="rosbag").slice("+0.2s", "+0.6s")
    write(rec, tmp_path / "cut")
    back = transect.open(tmp_path / "cut")
    assert len(back["/imu"]) == 8
    assert back["/status"]["voltage"].tolist() == [29.0, 34.0]
    assert np.array_equal(back["/left/image_raw"][0].value.data, bags.picture(5))


def test_an_existing_folder_is_not_written_into(tmp_path: Path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write(Recording("r", (foreign_streams()[0],)), tmp_path / "there")
    assert [p.name for p in (tmp_path / "there").iterdir()] == ["file"]


def test_an_empty_folder_may_be_filled(tmp_path: Path):
    (tmp_path / "new").mkdir()
    write(Recording("r", (foreign_streams()[0],)), tmp_path / "new")
    assert len(transect.open(tmp_path / "new")["Imu"]) == 4


@pytest.mark.parametrize("target", TARGETS)
def test_a_write_that_fails_leaves_nothing_behind(target: str, tmp_path: Path):
    def fail(_: Any) -> Any:
        raise OSError("no space left")

    table = arrow.table(TIMES_NS, {PAYLOAD: arrow.strings(["a", "b", "c", "d"])})
    rec = Recording("r", (Stream("Cam", Image, table, loader=fail),))
    with pytest.raises(OSError, match="no space left"):
        write(rec, tmp_path / "w" / target)
    assert list((tmp_path / "w").iterdir()) == []


@pytest.mark.parametrize(
    ("target", "t_ns"),
    [("out.bag", -5), ("out.bag", 2**32 * NS_PER_S), ("out", 2**31 * NS_PER_S), ("out.mcap", -1)],
)
def test_times_that_a_stamp_cannot_hold_are_refused(target: str, t_ns: int, tmp_path: Path):
    rec = Recording("r", (stream_of_values("Imu", np.array([t_ns]), {"acc_x": np.zeros(1)}, type=Imu),))
    with pytest.raises(UnsupportedError, match="times that a bag cannot hold"):
        write(rec, tmp_path / target)


@pytest.mark.parametrize("target", TARGETS)
def test_a_recording_without_anything_for_ros_is_an_empty_bag(target: str, tmp_path: Path):
    assert write(Recording("r", (foreign_streams()[-1],)), tmp_path / target)
    assert len(transect.open(tmp_path / target, format="rosbag")) == 0


def test_clocks_that_a_bag_cannot_name_are_said(tmp_path: Path):
    rec = Recording(
        "r", (stream_of_values("Imu", np.arange(3), {"acc_x": np.zeros(3)}, type=Imu, clock="sclk"),)
    )
    assert write(rec, tmp_path / "out.mcap") == (
        "Imu: not measured, so sensor_msgs/msg/Imu has 0: acc_y, acc_z",
        "Imu: its clock is sclk, which a bag does not say",
    )


def made(kind: type, load_one: Any, name: str = "It") -> Recording:
    """Return a recording of payloads that have no files."""
    table = arrow.table(TIMES_NS, {PAYLOAD: arrow.strings(["w", "x", "y", "z"])})
    return Recording("made", (Stream(name, kind, table, loader=load_one, frame="f"),))


@pytest.mark.parametrize("target", TARGETS)
def test_pixels_of_floating_point_are_32FC1(target: str, tmp_path: Path):
    pixels = np.array([[0.5, -1.0, 2.0**20]], np.float32)
    assert write(made(Image, lambda row: Image(pixels, "gray", row["t_ns"])), tmp_path / target) == ()
    (back,) = transect.open(tmp_path / target, format="rosbag").streams
    assert len(back) == 4
    with AnyReader([tmp_path / target]) as reader:
        connection, _, data = next(m for m in reader.messages() if m[0].msgtype == "sensor_msgs/msg/Image")
        message = reader.deserialize(data, connection.msgtype)
        assert (message.encoding, message.height, message.width) == ("32FC1", 1, 3)
        assert message.data.view("<f4").tolist() == pixels[0].tolist()


@pytest.mark.parametrize(
    ("pixels", "said"),
    [
        (np.zeros((2, 3), np.float64), "pixels of type float64"),
        (np.zeros((2, 3), np.int32), "pixels of type int32"),
        (np.zeros((2, 3, 2), np.uint8), "has no encoding in ROS"),
    ],
)
def test_pixels_that_ros_has_no_word_for_are_said(pixels: np.ndarray, said: str, tmp_path: Path):
    left = write(made(Image, lambda row: Image(pixels, "gray", row["t_ns"])), tmp_path / "out.bag")
    assert left
    assert all(said in line for line in left)
    with AnyReader([tmp_path / "out.bag"]) as reader:
        assert not [c for c, _, _ in reader.messages() if c.msgtype == "sensor_msgs/msg/Image"]


def test_a_path_in_the_plane_has_a_height_of_0(tmp_path: Path):
    flat = np.column_stack([np.arange(4.0), np.ones(4), np.full(4, np.nan)])
    assert write(made(Trajectory, lambda _: Trajectory(TIMES_NS, flat), "Plan"), tmp_path / "out.mcap") == ()
    (back,) = transect.open(tmp_path / "out.mcap", format="rosbag").streams
    assert back[0].value.positions.tolist() == [[float(k), 1.0, 0.0] for k in range(4)]


def test_lists_of_structures_that_columns_cannot_hold_are_said_to_be_empty(tmp_path: Path):
    def say(make: bags.Make) -> list[bags.Message]:
        pairs = [make("diagnostic_msgs/KeyValue", "volts", "24")]
        status = make("diagnostic_msgs/DiagnosticStatus", 2, "drive", "hot", "7", pairs)
        array = make("diagnostic_msgs/DiagnosticArray", make.header(START_NS, ""), [status, status])
        return [("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray", START_NS, array)]

    rec = transect.open(bags.write(tmp_path, "ros1", say), format="rosbag")
    said = write(rec, tmp_path / "out.mcap")
    assert any("/diagnostics" in line and "status" in line for line in said)
    with AnyReader([tmp_path / "out.mcap"]) as reader:
        connection, _, data = next(m for m in reader.messages() if m[0].topic == "/diagnostics")
        assert reader.deserialize(data, connection.msgtype).status == []


def test_a_time_that_was_not_recorded_is_said_to_be_written_as_0(tmp_path: Path):
    rec = transect.open(bags.write(tmp_path, "ros1"), format="rosbag")
    status = rec["/status"]
    assert "since_ns" in status.columns
    columns = {name: status.table.column(name) for name in status.columns if name != "since_ns"}
    less = stream_of_values("/status", status.t_ns, columns, type=status.type, log_ns=status.log_ns)
    less.meta.update(status.meta)
    said = write(Recording("r", (less,)), tmp_path / "out.bag")
    assert any("/status" in line and "since_ns" in line for line in said)
    with AnyReader([tmp_path / "out.bag"]) as reader:
        connection, _, data = next(m for m in reader.messages() if m[0].topic == "/status")
        since = reader.deserialize(data, connection.msgtype).since
        assert (since.sec, since.nanosec) == (0, 0)
