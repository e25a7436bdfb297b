"""What a run leaves behind: every port as a file of a kind that a person can open."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transect
from transect.engine import output_tables, outputs
from transect.engine.output_files import PortWriter, file_base, read_port, write_port
from transect.engine.output_tables import KeepingError
from transect.errors import ParseError, UnsupportedError
from transect.formats.geotiff import decode_geotiff
from transect.formats.shared.clouds import decode_cloud
from transect.formats.shared.images import decode_image
from transect.recording.arrow import unit_of
from transect.types import (
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
    RadarSpectrum,
    Record,
    RigidBodyState,
    Trajectory,
    Transform,
    Verdict,
)

T0_NS = 1_656_676_800_000_000_000
TIMES = [T0_NS, T0_NS + 1, T0_NS + 10**9]
LEVEL = np.array([0, 0, 0, 1.0])


def pose(x: float, **attributes: Any) -> Pose:
    return Pose(np.array([x, 0.1, -2.0]), LEVEL, **attributes)


def track(n: int, **attributes: Any) -> Trajectory:
    return Trajectory(T0_NS + np.arange(n), np.arange(3.0 * n).reshape(n, 3), **attributes)


def test_poses_are_a_tum_file_that_opens_as_a_recording(tmp_path: Path) -> None:
    files = write_port(tmp_path, "icp.pose", Pose, TIMES, [pose(x) for x in (0.1, 0.2, 1 / 3)])
    assert files == [tmp_path / "icp.pose.tum"]
    opened = transect.open(files[0])["Trajectory"]
    assert opened.t_ns.tolist() == TIMES
    assert opened["x"].tolist() == [0.1, 0.2, 1 / 3]


def test_a_stamped_pose_keeps_its_own_time(tmp_path: Path) -> None:
    (file,) = write_port(tmp_path, "pose", Pose, [5], [pose(1.0, t_ns=T0_NS)])
    assert read_port(file)[0].tolist() == [T0_NS]


def test_a_tum_file_says_clock_and_frames(tmp_path: Path) -> None:
    (file,) = write_port(tmp_path, "p", Pose, [5], [pose(1.0, frame="map", child="base")], "device")
    assert file.read_text().splitlines()[:3] == [
        "# p, clock device",
        "# timestamp tx ty tz qx qy qz qw",
        "# frame map, child base",
    ]


def test_a_trajectory_keeps_only_its_own_times(tmp_path: Path) -> None:
    assert write_port(tmp_path, "slam", Trajectory, [7], [track(4)]) == [tmp_path / "slam.tum"]
    times, columns = read_port(tmp_path / "slam.tum")
    assert times.tolist() == list(range(T0_NS, T0_NS + 4))
    assert columns["y"].tolist() == [1.0, 4.0, 7.0, 10.0]
    assert columns["qw"].tolist() == [1.0] * 4
    assert not (tmp_path / "slam").exists()


def test_of_several_trajectories_the_last_has_the_ports_name(tmp_path: Path) -> None:
    files = write_port(tmp_path, "slam", Trajectory, [1, 2, 3], [track(1), track(2), track(3)])
    assert [f.relative_to(tmp_path).as_posix() for f in files] == [
        "slam.tum", "slam/000000.tum", "slam/000001.tum", "slam/000002.tum",
    ]  # fmt: skip
    assert [len(read_port(f)[0]) for f in files] == [3, 1, 2, 3]


def test_a_state_is_a_trajectory_and_a_table_with_the_rest(tmp_path: Path) -> None:
    states = [RigidBodyState(np.zeros(3), LEVEL, velocity=np.array([x, 0, 0])) for x in (1.0, 2.0)]
    files = write_port(tmp_path, "state", RigidBodyState, [1, 2], states)
    assert [f.name for f in files] == ["state.tum", "state.parquet"]
    assert read_port(files[1])[1]["vx"].tolist() == [1.0, 2.0]


def test_odometry_without_a_pose_is_a_table_alone(tmp_path: Path) -> None:
    values = [Odometry(velocity=np.ones(3))]
    assert [f.name for f in write_port(tmp_path, "odo", Odometry, [1], values)] == ["odo.parquet"]


@pytest.mark.parametrize(
    "values",
    [[1.5, float("nan"), -0.0], [1, 2**62, -3], [True, False, True], ["a", "", "ü\n"]],
)
def test_scalars_are_a_column_called_value(tmp_path: Path, values: list[Any]) -> None:
    (file,) = write_port(tmp_path, "v", type(values[0]), TIMES, values)
    times, columns = read_port(file)
    assert times.tolist() == TIMES
    assert [repr(v) for v in np.asarray(columns["value"]).tolist()] == [repr(v) for v in values]
    assert pq.read_schema(file).names == ["t_ns", "value"]


def test_whole_numbers_on_a_port_of_floats_are_floats(tmp_path: Path) -> None:
    (file,) = write_port(tmp_path, "v", float, [1, 2], [3, 4])
    assert str(pq.read_schema(file).field("value").type) == "double"


def test_a_sensor_type_has_its_canonical_columns_with_units(tmp_path: Path) -> None:
    values = [Imu(np.full(3, i), np.zeros(3), temperature=20.0, frame="imu") for i in (0.0, 1.0)]
    (file,) = write_port(tmp_path, "imu", Imu, [1, 2], values)
    schema = pq.read_schema(file)
    assert schema.names == [
        "t_ns", "acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z", "temperature",
    ]  # fmt: skip
    assert [unit_of(schema.field(n)) for n in ("t_ns", "acc_x", "gyro_z", "temperature")] == [
        "ns", "m/s2", "rad/s", "degC",
    ]  # fmt: skip
    assert schema.metadata[b"transect"] == (b'{"type": "Imu", "port": "imu", "clock": "utc", "frame": "imu"}')


def test_a_table_opens_as_the_type_that_was_sent(tmp_path: Path) -> None:
    fix = NavFix(0.8, 0.2, 3300.0, np.array([0.1, 0.2, 0.3]), fix="rtk fixed", satellites=12, frame="ant")
    (file,) = write_port(tmp_path, "nav.fix", NavFix, [T0_NS], [fix], "device")
    (stream,) = transect.open(file)
    assert (stream.name, stream.type, stream.clock, stream.frame) == ("nav.fix", NavFix, "device", "ant")
    assert (stream.role, stream.units["lat"]) == ("derived", "rad")
    read = stream[0].value
    assert (read.t_ns, read.latitude, read.fix, read.satellites) == (T0_NS, 0.8, "rtk fixed", 12)
    assert read.std.tolist() == [0.1, 0.2, 0.3]


def test_a_table_of_no_type_of_ours_opens_as_records(tmp_path: Path) -> None:
    (stream,) = transect.open(write_port(tmp_path, "v", float, [1, 2], [0.5, 1.5])[0])
    assert (stream.type, stream["value"].tolist()) == (Record, [0.5, 1.5])


def test_a_table_that_does_not_say_what_it_is_does_not_open_alone(tmp_path: Path) -> None:
    pq.write_table(pq.read_table(write_port(tmp_path, "v", float, [1], [0.5])[0]).select(["value"])
                   .replace_schema_metadata({}), tmp_path / "x.parquet")  # fmt: skip
    with pytest.raises(UnsupportedError, match="does not say"):
        transect.open(tmp_path / "x.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "x.parquet").read_bytes()[:-9])
    with pytest.raises(ParseError, match="cannot be read"):
        transect.open(tmp_path / "cut.parquet")


def test_lists_of_unequal_length_are_list_columns(tmp_path: Path) -> None:
    scans = [LaserScan(np.arange(float(n)), -1.0, 0.01) for n in (3, 0, 2)]
    (file,) = write_port(tmp_path, "scan", LaserScan, [1, 2, 3], scans)
    assert read_port(file)[1]["ranges"] == [[0.0, 1.0, 2.0], [], [0.0, 1.0]]


def test_names_of_joints_are_a_list_of_texts(tmp_path: Path) -> None:
    (file,) = write_port(tmp_path, "arm", JointState, [1], [JointState(np.zeros(2), names=("a", "b"))])
    assert read_port(file)[1]["names"] == [["a", "b"]]


def test_an_array_has_its_shape_beside_it(tmp_path: Path) -> None:
    spectrum = RadarSpectrum(np.arange(6, dtype=np.uint8).reshape(2, 3), np.zeros(2), 0.1, 0.0)
    columns = read_port(write_port(tmp_path, "radar", RadarSpectrum, [1], [spectrum])[0])[1]
    assert columns["reflectivity"] == [[0, 1, 2, 3, 4, 5]]
    assert columns["reflectivity_shape"] == [[2, 3]]
    turned = Transform("map", "base", np.eye(4), target_t_ns=5)
    columns = read_port(write_port(tmp_path, "T", Transform, [1], [turned])[0])[1]
    assert columns["matrix_shape"] == [[4, 4]]
    assert (columns["target"], columns["target_t_ns"].tolist()) == (["map"], [5])


def test_mappings_and_classes_inside_classes_are_joined_by_a_dot(tmp_path: Path) -> None:
    @outputs
    class Fit:
        error: float
        where: Any
        empty: float

    @dataclass
    class Place:
        row: int
        about: dict[str, Any]

    values: list[Any] = [Fit(error=0.5, where=Place(3, {"kind": "edge"}))]  # pyright: ignore[reportCallIssue]
    (file,) = write_port(tmp_path, "fit", Fit, [1], values)
    assert {k: list(v) for k, v in read_port(file)[1].items()} == {
        "error": [0.5], "where.row": [3], "where.about.kind": ["edge"],
    }  # fmt: skip


def test_rows_as_mappings_may_lack_keys(tmp_path: Path) -> None:
    rows = [{"t_ns": 9, "a": 1, "b": "x"}, {"a": 2.5}, {"a": None, "b": "y"}]
    columns = read_port(write_port(tmp_path, "row", dict, [1, 2, 3], rows)[0])[1]
    np.testing.assert_array_equal(columns["a"], [1.0, 2.5, np.nan])
    assert columns["b"] == ["x", None, "y"]


def test_verdicts_can_be_kept(tmp_path: Path) -> None:
    verdict = Verdict("lidar", "scan", 0, 10, "C01", score=0.5, reason="DUST", evidence={"near": 0.7})
    columns = read_port(write_port(tmp_path, "check", Verdict, [10], [verdict])[0])[1]
    assert (columns["reason"], columns["evidence.near"].tolist()) == (["DUST"], [0.7])


def test_columns_that_come_later_are_null_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_tables, "MAX_GROUP_ROWS", 2)
    rows = [{"a": 1}, {"a": 2}, {"a": 0.5, "v": np.array([1, 2])}, {"a": 3, "v": np.zeros(0)}, {"c": "x"}]
    (file,) = write_port(tmp_path, "row", dict, range(5), rows)
    times, columns = read_port(file)
    assert times.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(columns["a"], [1, 2, 0.5, 3, np.nan])
    assert columns["v"] == [None, None, [1.0, 2.0], [], None]
    assert columns["c"] == [None] * 4 + ["x"]
    assert [p.name for p in tmp_path.iterdir()] == ["row.parquet"]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_images_are_lossless_png_files_named_by_time(tmp_path: Path, dtype: Any) -> None:
    pixels = np.arange(24).reshape(2, 4, 3).astype(dtype)
    files = write_port(tmp_path, "view", Image, [5, 6], [Image(pixels, "rgb"), Image(pixels[..., 0])])
    assert [f.relative_to(tmp_path).as_posix() for f in files] == ["view/5.png", "view/6.png"]
    read = decode_image(files[0].read_bytes(), "5.png")
    np.testing.assert_array_equal(read.data, pixels)
    assert (read.mode, read.data.dtype) == ("rgb", dtype)


def test_depths_are_float_tiff_with_nan(tmp_path: Path) -> None:
    depth = np.array([[1.5, np.nan]], np.float32)
    (file,) = write_port(tmp_path, "depth", DepthMap, [5], [DepthMap(depth)])
    assert file == tmp_path / "depth/5.tiff"
    np.testing.assert_array_equal(cv2.imread(str(file), cv2.IMREAD_UNCHANGED), depth)


def test_two_images_of_one_time_are_both_kept(tmp_path: Path) -> None:
    image = Image(np.zeros((2, 2), np.uint8))
    files = write_port(tmp_path, "view", Image, [5, 5, 5], [image] * 3)
    assert [f.name for f in files] == ["5.png", "5_2.png", "5_3.png"]


def test_clouds_are_ply_files_with_all_their_fields(tmp_path: Path) -> None:
    fields = {"intensity": np.arange(4, dtype=np.uint8), "t_offset_ns": np.arange(4) * 10**7}
    cloud = PointCloud(np.arange(12, dtype=np.float32).reshape(4, 3), fields)
    assert [f.name for f in write_port(tmp_path, "cloud", PointCloud, [5, 6], [cloud] * 2)] == [
        "5.ply",
        "6.ply",
    ]
    (file,) = write_port(tmp_path, "map", PointCloud, [5], [cloud])
    assert file == tmp_path / "map.ply"
    read = decode_cloud(file.read_bytes(), "map.ply")
    np.testing.assert_array_equal(read.points, cloud.points)
    assert {k: v.tolist() for k, v in read.fields.items()} == {k: v.tolist() for k, v in fields.items()}


def test_maps_are_geotiff_with_their_reference_system(tmp_path: Path) -> None:
    dem = GridMap({"elevation": np.ones((2, 3))}, (0.5, 0.0, 500_000.0, 0.0, -0.5, 4_000_000.0), "EPSG:32633")
    (file,) = write_port(tmp_path, "dem", GridMap, [5], [dem])
    assert file == tmp_path / "dem.tif"
    read = decode_geotiff(file.read_bytes(), "dem.tif")
    assert (read.crs, read.transform) == ("EPSG:32633", dem.transform)
    assert len(write_port(tmp_path, "dems", GridMap, [5, 6], [dem, dem])) == 2


@pytest.mark.parametrize("value", [object(), {1, 2}, b"raw", [pose(1.0)], 2**70, {"a": [[1], [2, 3]]}])
def test_what_has_no_file_is_refused_by_name(tmp_path: Path, value: Any) -> None:
    with pytest.raises(KeepingError, match=r"^graph\.out: ") as caught:
        write_port(tmp_path, "graph.out", object, [1], [value])
    assert caught.value.hint
    assert not list(tmp_path.iterdir())


def test_a_value_of_another_kind_is_refused_and_the_others_are_kept(tmp_path: Path) -> None:
    with PortWriter(tmp_path, "a") as writer:
        writer.add(1, 0.5)
        with pytest.raises(KeepingError, match="a: str among values of float"):
            writer.add(2, "half")
    assert read_port(tmp_path / "a.parquet")[1]["value"].tolist() == [0.5]


def test_an_interrupted_run_keeps_what_was_written(tmp_path: Path) -> None:
    def interrupted(port: str, value: Any) -> None:
        with PortWriter(tmp_path, port) as writer:
            writer.add(1, value)
            assert not (tmp_path / f"{port}.tum").exists()
            raise KeyboardInterrupt

    for port, value in (("p", pose(1.0)), ("v", 2.0)):
        with pytest.raises(KeyboardInterrupt):
            interrupted(port, value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p.tum", "v.parquet"]


def test_a_port_without_values_leaves_no_file(tmp_path: Path) -> None:
    assert write_port(tmp_path, "p", Pose, [], []) == []
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("port", "file"),
    [
        ("icp.pose", "icp.pose"),
        ("map/dem", "map/dem"),
        ("a b:c", "a%20b%3Ac"),
        ("../x", "%2E%2E/x"),
        ("/x", "x"),
    ],
)
def test_a_port_names_its_file_inside_the_folder(tmp_path: Path, port: str, file: str) -> None:
    assert file_base(tmp_path, port) == tmp_path / file


def test_files_without_columns_are_not_read_as_such(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"map\.ply"):
        read_port(tmp_path / "map.ply")


@pytest.mark.parametrize("value", [pose(1.0), 0.5, LaserScan(np.zeros(200), 0.0, 0.1)])
def test_memory_does_not_grow_with_the_number_of_values(
    tmp_path: Path, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_tables, "MAX_GROUP_ROWS", 100)
    monkeypatch.setattr(output_tables, "MAX_BUFFERED_POSES", 100)
    peaks: list[int] = []
    tracemalloc.start()
    with PortWriter(tmp_path, "p") as writer:
        for count in (1_000, 4_000):
            for t in range(count):
                writer.add(t + 1, value)
            peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@given(st.lists(st.floats(width=64), min_size=1, max_size=20), st.integers(-(2**62), 2**62))
def test_numbers_read_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, values: Any, t: int) -> None:
    folder = tmp_path_factory.mktemp("port")
    times, columns = read_port(write_port(folder, "v", float, [t] * len(values), values)[0])
    assert times.tolist() == [t] * len(values)
    assert [repr(v) for v in columns["value"].tolist()] == [repr(v) for v in values]
