"""Where maps and paths lie in the scene: on the Earth, in a frame of their own, or about their own middle."""

from __future__ import annotations

import numpy as np
import pytest
from tests.view.viewer.test_scene import LEVEL, LINE, TIMES_NS
from tests.view.viewer.test_viewer import NS_PER_S, START_NS, drive

from transect.errors import StreamError
from transect.evaluation.positions.paths import RecordedPath
from transect.geometry import geodesy, rotations, se3
from transect.recording import FrameTree, Recording, Stream, stream_of_values
from transect.types import GridMap, NavFix, Pose
from transect.view.viewer.encoding import encode_surface
from transect.view.viewer.scene import ViewerScene, describe

UTM = "EPSG:32633"
ORIGIN = np.array([0.66, 0.26, 100.0])


def receiver(metres: np.ndarray) -> Stream:
    """Return fixes at places east, north and up of an origin."""
    lat, lon, alt = geodesy.geodetic_from_local(metres, ORIGIN).T
    return stream_of_values(
        "Gps", TIMES_NS, {"lat": lat, "lon": lon, "alt": alt}, type=NavFix, frame="antenna"
    )


def earth_map(height: float, unknown: bool = False) -> GridMap:
    """Return 100 m of flat ground about the origin, in metres of a UTM zone."""
    east, north = geodesy.utm_from_geodetic(ORIGIN[None])[0][0, :2]
    layer = np.full((100, 100), np.nan if unknown else height)
    return GridMap({"elevation": layer}, (1.0, 0, east - 50, 0, -1.0, north + 50), crs=UTM)


def corners(scene: ViewerScene, grid: GridMap) -> np.ndarray:
    """Return the cells of a map (rows, columns, 3) in the scene."""
    located, moved = scene.place_map(grid, START_NS)
    drawn = encode_surface(located, moved)
    rows, columns = np.frombuffer(drawn, "<f4", 2, offset=68).astype(int)
    cells = np.frombuffer(drawn, "<f4", rows * columns * 3, offset=76).reshape(rows, columns, 3)
    return se3.apply(located[1], cells.reshape(-1, 3).astype(float)).reshape(rows, columns, 3)


def test_a_map_of_the_earth_lies_under_the_receivers_path() -> None:
    scene = ViewerScene(Recording("day", (receiver(LINE),)))
    cells = corners(scene, earth_map(1234.0))  # its heights count from another zero
    assert cells[..., 2] == pytest.approx(np.zeros(cells.shape[:2]), abs=1e-3)
    nearest = np.hypot(cells[..., 0], cells[..., 1]).min()
    assert nearest < 1.0  # a cell's width
    assert np.abs(cells[..., :2]).max() < 60


def test_a_map_of_the_earth_without_heights_below_the_path_is_not_moved_up() -> None:
    scene = ViewerScene(Recording("day", (receiver(LINE),)))
    assert np.isnan(corners(scene, earth_map(0.0, unknown=True))[..., 2]).all()
    with pytest.raises(StreamError):
        corners(ViewerScene(drive()), earth_map(1234.0))  # its path is not on the Earth


def test_a_map_whose_frame_nothing_places_is_refused_or_lies_about_its_own_middle() -> None:
    grid = GridMap({"elevation": np.full((4, 6), 7.0)}, (0.5, 0, 100.0, 0, -0.5, 200.0), frame="elsewhere")
    imu = drive()[drive().streams[2].name]
    frames = FrameTree()
    frames.add_static("base", "laser", np.eye(4))
    with pytest.raises(StreamError, match="the pose of the map is not known"):
        ViewerScene(Recording("day", (imu,), frames)).place_map(grid, START_NS)
    cells = corners(ViewerScene(Recording("day", (imu,))), grid)
    assert cells.reshape(-1, 3).mean(axis=0) == pytest.approx([0, 0, 0], abs=1e-6)
    unknown = GridMap({"elevation": np.full((4, 6), np.nan)}, grid.transform, frame="elsewhere")
    assert np.isnan(corners(ViewerScene(Recording("day", (imu,))), unknown)[..., 2]).all()


def test_a_map_of_the_first_paths_frame_lies_with_it() -> None:
    grid = GridMap({"elevation": np.zeros((2, 2))}, (1.0, 0, 3.0, 0, -1.0, 1.0), frame="map")
    scene = ViewerScene(drive())
    (fixed, place), same = scene.place_map(grid, START_NS)
    assert (fixed, same) == (True, grid)
    assert place == pytest.approx(np.eye(4))
    on_robot = GridMap(grid.layers, grid.transform, frame="laser")
    assert scene.place_map(on_robot, START_NS)[0][0] is False


@pytest.mark.parametrize("layers", [["occupancy"], ["red", "green", "blue"]])
def test_maps_without_heights_are_not_lifted(layers: list[str]) -> None:
    given = earth_map(50.0)
    grid = GridMap({name: np.full((100, 100), 50.0) for name in layers}, given.transform, crs=UTM)
    cells = corners(ViewerScene(Recording("day", (receiver(LINE + np.array([0.0, 0.0, 9.0])),))), grid)
    assert (cells[..., 2] == 0).all()


def test_a_path_that_stood_still_is_moved_onto_the_first_and_not_turned() -> None:
    still = RecordedPath("still", TIMES_NS, np.tile([5.0, 5.0, 0.0], (11, 1)), None, "odom", "utc")
    scene = ViewerScene(drive(), (still,))
    laid = next(path for path in scene.paths if path.name == "still")
    assert laid.positions == pytest.approx(np.tile(LINE.mean(axis=0), (11, 1)), abs=1e-9)
    assert not laid.related


def test_a_path_from_another_time_begins_where_the_first_one_does() -> None:
    later = RecordedPath(
        "later", TIMES_NS + 100 * NS_PER_S, LINE + np.array([50.0, 0, 0]), LEVEL, "odom", "utc"
    )
    scene = ViewerScene(drive(), (later,))
    laid = next(path for path in scene.paths if path.name == "later")
    assert np.ptp(laid.positions, axis=0) == pytest.approx([10, 0, 0], abs=1e-9)
    assert not laid.related


def test_a_robot_that_points_down_drives_upright() -> None:
    turned = rotations.quaternion_from_matrix(np.diag([1.0, -1.0, -1.0]))
    columns = dict(zip(("qx", "qy", "qz", "qw"), np.tile(turned, (11, 1)).T, strict=True))
    columns |= dict(zip("xyz", LINE.T, strict=True))
    pose = stream_of_values("Pose", TIMES_NS, columns, type=Pose, frame="down", child="base")
    scene = ViewerScene(Recording("down", (pose,)))
    assert scene.paths[0].positions[:, 2] == pytest.approx(np.zeros(11), abs=1e-9)
    assert describe(scene)["carrier"] == 0
    assert scene.carrier == 0
    assert ViewerScene(Recording("none", (drive().streams[2],))).carrier == -1
