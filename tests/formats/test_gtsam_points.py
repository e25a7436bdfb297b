"""gtsam_points dumps: clouds meet their poses, IMU and trajectory are exact, bad lines are located."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.formats.recordings import assert_same, rewritten

import transect
from transect import formats
from transect.errors import ParseError, TransectError, UsageError
from transect.formats.shared.clouds import encode_cloud
from transect.recording import Recording, source_of, stream_of_values
from transect.types import Imu, PointCloud, Pose, Record

GRAPH = "v0 1.5 0 0 0 0 0 1\nv1 2.5 0.25 -1 0 0 0.70710678 0.70710678\n"
IMU = (
    "1647090478.710633039 -0.6 -7.6 6.2 0.03 0.009 -0.02\n"
    "1647090478.720633030 -0.5 -7.5 6.1 0.02 0.008 -0.01\n"
)
TRAJECTORY = "1647090478.400633 3.9 0.02 -1.1 0 0 0 1\n1647090478.500633 3.8 0.02 -1.1 0 0 0 1\n"


def dump(path: Path, graph: str = GRAPH, imu: str = IMU) -> Path:
    for i in range(2):
        (path / f"dump/{i:06d}").mkdir(parents=True)
        points = PointCloud(np.full((4, 3), i - 0.5, "f4"))
        (path / f"dump/{i:06d}/points.bin").write_bytes(encode_cloud(points, ".bin"))
    (path / "dump/graph.txt").write_text(graph)
    (path / "continuous").mkdir()
    (path / "continuous/imu.txt").write_text(imu)
    (path / "continuous/traj.txt").write_text(TRAJECTORY)
    return path


def test_clouds_and_poses_stand_at_the_same_places(tmp_path: Path):
    recording = transect.open(dump(tmp_path))
    assert recording.format == "gtsam_points"
    clouds, graph = recording["dump/points"], recording["dump/graph"]
    assert clouds.t_ns.tolist() == graph.t_ns.tolist()
    assert clouds[1].value.points[0].tolist() == [0.5, 0.5, 0.5]
    np.testing.assert_array_equal(graph[1].value.position, [2.5, 0.25, -1])
    assert graph.role == "truth"


def test_stamps_are_exact_to_the_nanosecond(tmp_path: Path):
    recording = transect.open(dump(tmp_path))
    assert recording["continuous/imu"].t_ns.tolist() == [1647090478_710633039, 1647090478_720633030]
    assert recording["continuous/traj"].t_ns[0] == 1647090478_400633000
    np.testing.assert_array_equal(recording["continuous/imu"][0].value.angular_velocity, [0.03, 0.009, -0.02])


@pytest.mark.parametrize(
    ("graph", "imu", "where"),
    [
        (GRAPH.replace("2.5", "x"), IMU, "dump/graph.txt:2"),
        (GRAPH.replace("v1", "w1"), IMU, "dump/graph.txt:2"),
        (GRAPH, IMU.replace("-7.5", "none"), "continuous/imu.txt:2"),
        (GRAPH, IMU[:-20], "continuous/imu.txt:2"),
        (GRAPH, IMU + "1647090478.73\n", "continuous/imu.txt:3"),
    ],
)
def test_bad_lines_are_located_and_the_others_stay(tmp_path: Path, graph: str, imu: str, where: str):
    recording = transect.open(dump(tmp_path, graph, imu))
    assert [loss.where for loss in recording.losses] == [where]
    assert len(recording["dump/graph"]) + len(recording["continuous/imu"]) >= 3
    with pytest.raises(ParseError):
        transect.open(tmp_path, strict=True)


def test_a_cut_cloud_is_kept_in_part(tmp_path: Path):
    path = dump(tmp_path) / "dump/000001/points.bin"
    path.write_bytes(path.read_bytes()[:-5])
    recording = transect.open(tmp_path)
    assert len(recording["dump/points"][1].value) == 3
    assert recording.losses[0].byte == 36


def test_a_graph_of_something_else_is_declined_with_a_reason(tmp_path: Path):
    dump(tmp_path, "VERTEX_SE3:QUAT 0 0 0 0\n")
    match = transect.formats.load("gtsam_points").recognises(source_of(tmp_path))
    assert not match
    assert " but " in match.reason


@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_mutated_texts_raise_nothing_but_transect_errors(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[float, int]]
):
    path = dump(tmp_path_factory.mktemp("m"))
    for name in ("dump/graph.txt", "continuous/imu.txt"):
        data = bytearray((path / name).read_bytes())
        for place, value in changes:
            data[int(place * (len(data) - 1))] = value
        (path / name).write_bytes(bytes(data))
    try:
        recording = transect.open(path, format="gtsam_points")
        rows = sum(len(stream) for stream in recording)
    except TransectError:
        return
    assert rows >= 4


POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")


def test_a_written_folder_opens_the_same(tmp_path: Path):
    recording = transect.open(dump(tmp_path / "a"))
    assert formats.write(recording, tmp_path / "b", "gtsam_points") == ()
    again = transect.open(tmp_path / "b")  # recognised by itself
    assert again.format == "gtsam_points"
    assert_same(recording, again)


def test_features_keep_their_numbers_and_vertices_count_them(tmp_path: Path):
    root = tmp_path / "newer"
    root.mkdir()
    for number in (10, 30):
        for kind in ("edges", "planes"):
            cloud = PointCloud(np.full((2, 3), number, "f4"))
            (root / f"{kind}_{number:06d}.bin").write_bytes(encode_cloud(cloud, ".bin"))
    (root / "graph.txt").write_text(GRAPH + "v7 0 0 0 0 0 0 1\n")
    recording = transect.open(root)
    again = rewritten(recording, tmp_path / "again", "gtsam_points")
    assert_same(recording, again)
    assert again["graph"].t_ns.tolist() == [10 * 10**9, 30 * 10**9, 7 * 10**9]
    words = [line.split()[0] for line in (tmp_path / "again/graph.txt").read_text().splitlines()]
    assert words == ["v0", "v1", "v7"]


def test_a_graph_that_lost_a_line_is_written_with_the_others(tmp_path: Path):
    recording = transect.open(dump(tmp_path / "a", GRAPH.replace("2.5", "x")))
    again = rewritten(recording, tmp_path / "b", "gtsam_points")
    assert (len(again["dump/points"]), len(again["dump/graph"])) == (2, 1)


@given(
    hnp.arrays(np.float64, (3, 7), elements=st.floats(width=64)),
    st.lists(st.integers(0, 2**62), min_size=3, max_size=3),
)
def test_any_values_at_any_time_survive_being_written(
    tmp_path_factory: pytest.TempPathFactory, values: np.ndarray, times: list[int]
):
    poses = {name: values[:, i].copy() for i, name in enumerate(POSE)}
    inertial = dict(zip((f"{k}_{a}" for k in ("acc", "gyro") for a in "xyz"), values.T.copy(), strict=False))
    streams = (
        stream_of_values("imu", np.array(times), inertial, type=Imu),
        stream_of_values("traj", np.array(times), poses, type=Pose, role="truth"),
    )
    again = rewritten(Recording("r", streams), tmp_path_factory.mktemp("g") / "a", "gtsam_points")
    for stream in streams:
        assert again[stream.name].t_ns.tolist() == times
        np.testing.assert_array_equal(
            again[stream.name].array(*stream.columns), stream.array(*stream.columns)
        )


def clouds_of_another_format(times: list[int]) -> tuple:
    cloud = PointCloud(np.eye(3, dtype="f4"), {"intensity": np.ones(3, "f4")})
    clouds = stream_of_values("/lidar/points", np.array(times), {}, type=PointCloud, loader=lambda row: cloud)
    poses = dict.fromkeys(POSE, np.zeros(len(times))) | {"x": np.arange(len(times), dtype=float)}
    return clouds, stream_of_values("/odom", np.array(times), poses, type=Pose)


def test_clouds_of_another_format_are_numbered_with_the_poses_at_their_times(tmp_path: Path):
    recording = Recording("r", clouds_of_another_format([5, 7]))
    said = formats.write(recording, tmp_path / "a", "gtsam_points")
    assert said == (
        "/odom: clouds and their poses are numbered, their times have no place in a dump",
        "/lidar/points: points are written without intensity",
    )
    again = transect.open(tmp_path / "a")
    assert again["lidar/graph"]["x"].tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(again["lidar/points"][1].value.points, np.eye(3))
    assert again["odom/traj"].t_ns.tolist() == [5, 7]


def test_what_has_no_place_is_said_and_nothing_at_all_is_refused(tmp_path: Path):
    clouds, poses = clouds_of_another_format([5, 7])
    other = stream_of_values("battery", np.array([1]), {"volts": np.ones(1)}, type=Record)
    late = poses.replace(source=poses.take(np.array([True, False])).table)
    said = formats.write(Recording("r", (clouds, late, other)), tmp_path / "a", "gtsam_points")
    assert said == (
        "/lidar/points: not written, no stream has a pose at each of their times",
        "battery (Record) has no place in a gtsam_points folder",
    )
    with pytest.raises(UsageError, match="nothing to write"):
        formats.write(Recording("r", (clouds, other)), tmp_path / "b", "gtsam_points")


def test_clouds_without_points_or_at_one_time_are_said_and_the_others_kept(tmp_path: Path):
    clouds, poses = clouds_of_another_format([5, 7, 7, 9])
    empty = PointCloud(np.zeros((0, 3), "f4"))
    full = PointCloud(np.eye(3, dtype="f4"))
    clouds = clouds.replace(loader=lambda row: empty if row["t_ns"] == 5 else full)
    said = formats.write(Recording("r", (clouds, poses)), tmp_path / "a", "gtsam_points")
    assert any("no place for a cloud without points" in line for line in said)
    assert any("1 clouds have the time of another; of such, one is kept" in line for line in said)
    assert len(transect.open(tmp_path / "a")["lidar/points"]) == 2


def test_poses_of_no_cloud_and_times_of_a_device_are_said(tmp_path: Path):
    times = [0, 10**9, 3 * 10**9]
    clouds, poses = clouds_of_another_format(times)
    half = 10**9 // 2
    more = stream_of_values(
        "/odom",
        np.array(sorted([*times, half])),
        dict.fromkeys(POSE, np.zeros(4)) | {"x": np.array([0.0, 9.0, 1.0, 2.0])},
        type=Pose,
        clock="index",
    )
    walk = stream_of_values("walk", poses.t_ns, {n: poses[n] for n in POSE}, type=Pose, clock="device")
    streams = (clouds.replace(clock="index"), more, walk)
    said = formats.write(Recording("r", streams), tmp_path / "a", "gtsam_points")
    assert "/odom: 1 poses are of no cloud, and their numbers are those of others" in said
    assert "walk: not written, times here are UTC and not of the device clock" in said
    assert transect.open(tmp_path / "a")["lidar/graph"]["x"].tolist() == [0.0, 1.0, 2.0]
