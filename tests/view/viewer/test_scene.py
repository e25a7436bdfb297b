"""Where things lie: paths of other frames, maps, the robot's shapes and joints, and what runs left."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.view.viewer.test_viewer import NS_PER_S, START_NS, drive

from transect.engine.output_files import write_port
from transect.errors import ParseError
from transect.evaluation.positions.paths import EARTH, RecordedPath
from transect.geometry import rotations, se3
from transect.recording import FrameTree, Recording, Stream, arrow, stream_of_values
from transect.recording.place_maps import PlaceMapError, write_map
from transect.robots import load
from transect.types import GridMap, JointState, NavFix, PlaceMap, PointCloud
from transect.view.viewer.encoding import apply_urdf, encode_surface, solids_of
from transect.view.viewer.run_streams import streams_of_run
from transect.view.viewer.scene import ViewerScene, describe

TIMES_NS = START_NS + np.arange(11) * NS_PER_S
LINE = np.column_stack([np.arange(11.0), np.zeros(11), np.zeros(11)])
LEVEL = np.tile([0.0, 0, 0, 1], (11, 1))
URDF = """<robot name="pan">
  <link name="base"><visual><geometry><box size="1 2 0.5"/></geometry></visual></link>
  <link name="head"><visual><origin xyz="0 0 1"/><geometry><sphere radius="0.1"/></geometry></visual>
    <visual><geometry><mesh filename="gone.stl"/></geometry></visual></link>
  <joint name="neck" type="revolute"><parent link="base"/><child link="head"/><origin xyz="0.5 0 0"/>
    <axis xyz="0 0 1"/><limit lower="-3" upper="3"/></joint>
</robot>"""


def turned_path(degrees: float, orientations: bool = True) -> RecordedPath:
    """Return the path of `drive` as seen from a frame that is turned and moved against its own."""
    matrix = se3.from_matrix(rotations.matrix_from_euler("z", [np.radians(degrees)]), (5.0, -3.0, 0.0))
    turn = rotations.quaternion_from_matrix(matrix[:3, :3])
    turned = rotations.multiply(np.broadcast_to(turn, LEVEL.shape), LEVEL) if orientations else None
    return RecordedPath("mine", TIMES_NS, se3.apply(matrix, LINE), turned, "odom", "utc")


@pytest.mark.parametrize("orientations", [True, False])
def test_a_path_in_a_frame_of_its_own_is_laid_on_the_first(orientations: bool) -> None:
    scene = ViewerScene(drive(), (turned_path(90, orientations),))
    recorded, mine = scene.paths
    assert (recorded.name, mine.name, mine.kind) == ("Poses", "mine", "run")
    assert mine.positions == pytest.approx(recorded.positions, abs=1e-9)
    fixed, place = scene.locate("odom", START_NS)
    assert fixed
    assert se3.apply(place, np.array([[5.0, -3.0, 0.0]])) == pytest.approx(np.zeros((1, 3)), abs=1e-9)


def test_the_robot_is_drawn_on_a_path_that_was_measured() -> None:
    scene = ViewerScene(drive(), (turned_path(90),))
    assert scene.paths[scene.carrier].name == "Poses"


def test_a_receiver_tells_north() -> None:
    fixes = {"lat": 0.66 + 1e-6 * np.arange(11), "lon": np.full(11, 0.26), "alt": np.full(11, 100.0)}
    day = Recording("walk", (stream_of_values("Gnss", TIMES_NS, fixes, type=NavFix),))
    scene = ViewerScene(day, (turned_path(33),))
    assert (scene.layout.frame, scene.layout.is_north_up) == (EARTH, True)
    measured, mine = scene.paths
    assert measured.positions[-1] == pytest.approx(
        [0.0, 63.6, 0.0], abs=0.2
    )  # 10 micro-radians of a meridian
    heading = mine.positions[-1] - mine.positions[0]
    assert heading[:2] / np.linalg.norm(heading) == pytest.approx([0.0, 1.0], abs=1e-3)


def test_a_robot_that_points_down_stands_on_its_wheels_without_orientations() -> None:
    fixes = {"lat": 0.66 + 1e-6 * np.arange(11), "lon": np.full(11, 0.26), "alt": np.full(11, 100.0)}
    day = Recording("walk", (stream_of_values("Gnss", TIMES_NS, fixes, type=NavFix),), robot=load("interact"))
    down = ViewerScene(day).paths[0].pose(5.0)[:3, 2]
    assert down == pytest.approx([0, 0, -1], abs=1e-9)


def test_a_map_is_cells_with_heights_where_they_are_known() -> None:
    heights = np.arange(12.0).reshape(3, 4)
    heights[1, 1] = np.nan
    grid = GridMap({"elevation": heights}, (0.5, 0, 10.0, 0, -0.5, 20.0))
    data = encode_surface((True, np.eye(4)), grid)
    head = np.frombuffer(data, "<f4", 19)
    assert head[[0, 17, 18]].tolist() == [1, 3, 4]
    cells = np.frombuffer(data, "<f4", 36, 76).reshape(3, 4, 3)
    assert cells[0, 0].tolist() == [10.25, 19.75, 0.0]  # the middle of its first cell
    assert np.isnan(cells[..., 2]).sum() == 1
    assert len(data) == 76 + 36 * 4 + 12 * 4


def test_a_large_map_is_subsampled_and_occupancy_lies_flat() -> None:
    taken = np.zeros((1000, 500))
    taken[500:] = 100.0
    data = encode_surface((True, np.eye(4)), GridMap({"occupancy": taken}, (1.0, 0, 0, 0, 1.0, 0)))
    rows, columns = np.frombuffer(data, "<f4", 2, 68).astype(int)
    assert (rows, columns) == (200, 100)
    cells = np.frombuffer(data, "<f4", rows * columns * 3, 76).reshape(rows, columns, 3)
    assert set(cells[..., 2].ravel()) == {0.0}
    colours = np.frombuffer(data, np.uint8, rows * columns * 4, 76 + cells.nbytes).reshape(rows, columns, 4)
    assert colours[0, 0, 0] > 200 > 50 > colours[-1, 0, 0]


def test_known_robots_look_as_their_description_says() -> None:
    robot = load("interact")
    day = Recording("day", (), robot.frames, robot=robot)
    solids = solids_of(ViewerScene(day))
    assert [solid.role for solid in solids].count("wheel") == 4
    wheel = next(solid for solid in solids if solid.role == "wheel").triangles.reshape(-1, 3)
    assert np.ptp(wheel, axis=0) == pytest.approx([0.4, 0.14, 0.4], abs=1e-6)  # rolls along x


def test_a_urdf_dresses_a_recording_and_its_joints_move(tmp_path: Path) -> None:
    (tmp_path / "pan.urdf").write_text(URDF)
    angles = {"position": np.linspace(0, np.pi / 2, 11)[:, None]}
    joints = stream_of_values("Neck", TIMES_NS, angles, type=JointState)
    day = drive()
    day = day.replace(streams=(*day.streams, joints))
    scene, said = apply_urdf(ViewerScene(day), tmp_path / "pan.urdf")
    solids = scene.solids
    assert solids
    assert [(solid.frame, solid.role) for solid in solids] == [("base", "body"), ("head", "body")]
    assert ["gone.stl" in sentence for sentence in said] == [True]
    assert scene.mount("head", int(TIMES_NS[0])) is not None
    assert solids[1].triangles[..., 2].mean() == pytest.approx(1.0, abs=1e-6)


def test_joints_that_a_stream_names_move_the_frames(tmp_path: Path) -> None:
    (tmp_path / "pan.urdf").write_text(URDF)
    table = arrow.table(TIMES_NS, {"position": np.linspace(0, np.pi / 2, 11)[:, None]})
    stream = Stream("Neck", JointState, table.append_column("names", pa.array([["neck"]] * 11)))
    day = drive()
    scene, _ = apply_urdf(ViewerScene(day.replace(streams=(*day.streams, stream))), tmp_path / "pan.urdf")
    assert scene.moving == ("head",)
    turned = scene.place_moving(int(TIMES_NS[-1]))[0]
    assert turned[:3, :3] == pytest.approx(rotations.matrix_from_euler("z", [np.pi / 2]), abs=1e-9)
    assert turned[:3, 3].tolist() == [0.5, 0, 0]


def test_what_a_run_wrote_is_shown_and_nothing_outside_of_its_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    cloud = PointCloud(np.array([[1.0, 2, 3]], np.float32))
    files = {
        "map": ("PointCloud", write_port(run, "map", PointCloud, [int(TIMES_NS[3])], [cloud])),
        "scan": ("PointCloud", write_port(run, "scan", PointCloud, TIMES_NS[:2].tolist(), [cloud, cloud])),
        "error": ("float", write_port(run, "error", float, TIMES_NS.tolist(), np.arange(11.0).tolist())),
        "out": ("PointCloud", [run / ".." / "secret.ply"]),
    }
    (tmp_path / "secret.ply").write_bytes(b"ply")
    outputs = {
        name: {"type": kind, "samples": len(paths), "files": [str(p.relative_to(run)) for p in paths]}
        for name, (kind, paths) in files.items()
    }
    (run / "run.json").write_text(json.dumps({"outputs": outputs}))
    found = {stream.name: stream for stream in streams_of_run(run, "odom", START_NS)}
    assert sorted(found) == ["run error", "run map", "run scan"]
    assert found["run map"].t_ns.tolist() == [START_NS]  # it stands for the whole run
    assert found["run scan"].t_ns.tolist() == TIMES_NS[:2].tolist()
    assert found["run scan"][1].value.points.tolist() == [[1, 2, 3]]
    assert found["run scan"][1].value.frame == "odom"
    assert found["run error"].column("value").tolist() == list(range(11))


def test_north_is_told_only_where_it_is_known_of_all_that_is_drawn() -> None:
    fixes = {"lat": 0.66 + 1e-6 * np.arange(11), "lon": np.full(11, 0.26), "alt": np.full(11, 100.0)}
    receiver = stream_of_values("Gps", TIMES_NS, fixes, type=NavFix, frame="antenna")
    day = Recording("day", (receiver,))
    assert describe(ViewerScene(day))["north"]
    together = RecordedPath("together", TIMES_NS, 6.4 * LINE, None, "odom", "utc")  # as far as the receiver
    assert describe(ViewerScene(day, (together,)))["north"]
    later = RecordedPath("later", TIMES_NS + 60 * NS_PER_S, LINE, None, "odom", "utc")
    assert not describe(ViewerScene(day, (later,)))["north"]  # nothing says how it is turned
    named = RecordedPath("named", TIMES_NS + 60 * NS_PER_S, LINE, None, "ENU", "utc")
    assert describe(ViewerScene(day, (named,)))["north"]
    assert not describe(ViewerScene(drive()))["north"]


def test_the_page_names_untrusted_results() -> None:
    assert describe(ViewerScene(drive(), failures=("30 of 40 scans did not match",)))["failures"] == [
        "30 of 40 scans did not match"
    ]
    assert describe(ViewerScene(drive()))["failures"] == []


def test_the_points_of_a_map_of_slam_are_shown(tmp_path: Path) -> None:
    seen = [np.array([[1.0, 0, 0]]), np.array([[2.0, 0, 1]])]
    poses = np.stack([np.eye(4), se3.from_matrix(rotations.matrix_from_euler("z", [np.pi / 2]), (5, 0, 0))])
    places = PlaceMap(
        "LidarSlam", TIMES_NS[:2], poses, np.tile(np.eye(6), (2, 1, 1)), np.zeros(2, int),
        observations=[{"points": points} for points in seen],
    )  # fmt: skip
    run = tmp_path / "run"
    run.mkdir()
    outputs = {
        "map": {
            "type": "PlaceMap",
            "files": [str(p.relative_to(run)) for p in write_map(places, run / "map")],
        },
        "loops": {
            "type": "int",
            "files": [
                str(p.relative_to(run)) for p in write_port(run, "loops", int, [int(TIMES_NS[0])], [3])
            ],
        },
    }
    (run / "run.json").write_text(json.dumps({"outputs": outputs}))
    found = {stream.name: stream for stream in streams_of_run(run, "map", START_NS)}
    assert sorted(found) == ["run loops", "run map"]
    cloud = found["run map"][0].value
    assert cloud.frame == "map"
    assert cloud.points == pytest.approx(np.array([[1.0, 0, 0], [5, 2, 1]]), abs=1e-6)
    (run / "map" / "points.npy").write_bytes(b"")
    with pytest.raises(PlaceMapError):
        found["run map"][0].payload  # noqa: B018, it is read now


@pytest.mark.parametrize(
    "text",
    [
        "[]", "{", '{"outputs": []}', '{"outputs": {"a": 3}}', '{"outputs": {"a": {"type": "Image"}}}',
        '{"config": [], "outputs": {}}', '{"outputs": {"a": {"type": "Image", "files": 3}}}',
    ],
)  # fmt: skip
def test_a_run_json_that_no_run_wrote_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ParseError, match="is not a complete run"):
        list(streams_of_run(tmp_path, "", START_NS))


@pytest.mark.parametrize("name", ["1²", "99999999999999999999", "9999999999999999999", "one"])
def test_a_file_of_a_run_whose_name_is_no_time_stands_for_all_of_it(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.ply").write_bytes(b"")
    output = {"type": "PointCloud", "files": [f"{name}.ply"]}
    (tmp_path / "run.json").write_text(json.dumps({"outputs": {"cloud": output}}))
    (found,) = streams_of_run(tmp_path, "", START_NS)
    assert found.t_ns.tolist() == [START_NS]


def test_frames_without_a_parent_are_completed_from_another_tree() -> None:
    mine, other = FrameTree(), FrameTree()
    mine.add_static("base", "laser", np.eye(4))
    other.add_static("base", "laser", se3.from_matrix(np.eye(3), (9, 9, 9)))
    other.add_static("laser", "lens", np.eye(4))
    both = mine.complete(other)
    assert both.lookup("base", "lens").tolist() == np.eye(4).tolist()
    assert "lens" not in mine
