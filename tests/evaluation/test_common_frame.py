"""Tracks of recordings and runs in one frame, and the map under them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import StreamError, UsageError
from transect.evaluation.inputs import map_of, open_ground
from transect.evaluation.positions.common_frame import MapLayout, lay_out
from transect.evaluation.positions.paths import EARTH, RecordedPath, guides_of, paths_of
from transect.formats.geotiff import encode_geotiff
from transect.formats.shared.clouds.ply import encode_ply
from transect.geometry import geodesy
from transect.recording import Recording
from transect.recording.stream import stream_of_values
from transect.types import GridMap, NavFix, Odometry, PointCloud, Pose

DATUM = np.array([np.radians(37.72351), np.radians(15.00668), 2639.838])
T_NS = np.arange(60, dtype=np.int64) * NS
ARC = np.column_stack([30 * np.sin(T_NS / NS / 30), 20 * np.cos(T_NS / NS / 30), np.zeros(60)])
"""East, north, up: metres."""
ELSEWHERE = geodesy.geodetic_from_local(np.array([400.0, -300.0, 5.0]), DATUM)


def fixes(name: str, metres: Floats, start_s: int = 0, datum: Floats = DATUM) -> RecordedPath:
    return RecordedPath(
        name, T_NS + start_s * NS, geodesy.geodetic_from_local(metres, datum), None, EARTH, "utc"
    )


def local(name: str, metres: Floats, frame: str = "odom", start_s: int = 0) -> RecordedPath:
    return RecordedPath(name, T_NS + start_s * NS, metres, None, frame, "utc")


def points(layout: MapLayout) -> list[Floats]:
    return [track.points for track in layout.tracks]


def test_drives_with_fixes_lie_where_they_were_on_the_earth():
    layout = lay_out([fixes("0", ARC), fixes("1", ARC, 3600, ELSEWHERE)])
    first, second = points(layout)
    np.testing.assert_allclose(second - first, np.tile([400.0, -300.0], (60, 1)), atol=0.02)
    assert layout.view.names == ("east", "north")
    assert "37.723690° N, 15.006680° E" in layout.caption  # 20 m north of the lander, where ARC begins
    assert layout.notes == []


def test_what_was_recorded_together_in_another_frame_is_turned_onto_the_fixes_and_said():
    turned = np.column_stack([ARC[:, 1], -ARC[:, 0], ARC[:, 2]]) + 7.0
    layout = lay_out([fixes("gps", ARC), local("wheels", turned)])
    gps, wheels = points(layout)
    np.testing.assert_allclose(wheels, gps, atol=1e-3)
    assert layout.notes[0].startswith("wheels is aligned with gps by translation and rotation by 90.0 deg")


def test_a_part_of_a_track_is_cut_by_time():
    assert lay_out([local("a", ARC).between("+10s", "+20s")]).tracks[0].points.shape == (10, 2)
    with pytest.raises(UsageError, match="no positions between"):
        local("a", ARC).between("+100s", None)


def test_axes_that_are_named_are_moved_and_not_turned():
    north_west_up = np.column_stack([ARC[:, 1], -ARC[:, 0], ARC[:, 2]])
    layout = lay_out([fixes("gps", ARC), local("pose", north_west_up, "NWU")])
    np.testing.assert_allclose(points(layout)[1], points(layout)[0], atol=1e-3)
    assert layout.notes[0].startswith("pose is aligned with gps by translation")


def test_runs_on_one_recording_stay_in_their_frame_and_other_days_begin_at_their_own_start():
    together = lay_out([local("a", ARC), local("b", ARC + 1.0)])
    np.testing.assert_allclose(points(together)[1] - points(together)[0], 1.0)
    assert together.caption == "in the frame odom"
    apart = lay_out([local("a", ARC), local("b", ARC + 5.0, start_s=9000)])
    assert points(apart)[1][0].tolist() == [0.0, 0.0]
    assert apart.notes == ["drawn from its own start, as nothing relates it to the others: b"]
    assert apart.view.names == ("x from the start", "y from the start")


@pytest.mark.parametrize("crs", ["EPSG:32633", "EPSG:4326"])
def test_a_map_of_the_earth_lies_under_the_place_that_it_shows(crs: str):
    """Its corner is put where pyproj says that a point 40 m west and 60 m north of the datum is."""
    from pyproj import Transformer

    lat, lon, _ = np.degrees(geodesy.geodetic_from_local(np.array([-40.0, 60.0, 0.0]), DATUM))
    x, y = Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(lon, lat)
    cell = 0.5 if crs == "EPSG:32633" else 0.5 / 111_000
    below = GridMap({"elevation": np.zeros((300, 300))}, (cell, 0, x, 0, -cell, y), crs)
    layout = lay_out([fixes("0", ARC)], below)
    assert layout.ground is not None
    start = ARC[0, :2]
    np.testing.assert_allclose(layout.ground.corners[0], np.array([-40.0, 60.0]) - start, atol=0.05)


def test_a_map_in_a_frame_takes_tracks_of_that_frame_and_fixes_that_were_recorded_with_them():
    grid = GridMap({"occupancy": np.zeros((200, 200))}, (1.0, 0, -100, 0, 1.0, -100), "", "map")
    layout = lay_out([local("amcl", ARC, "map"), fixes("gps", ARC)], grid)
    np.testing.assert_allclose(points(layout)[1], ARC[:, :2], atol=1e-3)
    assert layout.ground is not None
    assert layout.ground.kind == "occupancy"
    with pytest.raises(UsageError, match="gps cannot be laid on the map"):
        lay_out([fixes("gps", ARC)], grid)
    with pytest.raises(UsageError, match="does not lie under the tracks"):
        lay_out([local("amcl", ARC + 500, "map")], grid)


def test_the_map_of_a_run_is_named_by_its_folder_or_by_its_port(tmp_path: Path):
    grid = GridMap({"elevation": np.zeros((20, 30))}, (1.0, 0, -10, 0, -1.0, 10), "", "level")
    (tmp_path / "map.tif").write_bytes(encode_geotiff(grid))
    (tmp_path / "cloud.ply").write_bytes(encode_ply(PointCloud(np.zeros((5, 3)))))
    (tmp_path / "run.json").write_text('{"config": {}}')
    (tmp_path / "pose.tum").write_text("# frame odom, child base\n1 0 0 0 0 0 0 1\n2 1 0 0 0 0 0 1\n")
    for over in (tmp_path, f"{tmp_path}:map", tmp_path / "map.tif"):
        below, guides, notes = open_ground(str(over))
        assert isinstance(below, GridMap)
        assert (below.frame, [guide.frame for guide in guides], len(notes)) == ("odom", ["odom"], 1)
    below, guides, _ = open_ground(f"{tmp_path}:cloud")
    assert isinstance(below, PointCloud)
    assert len(guides) == 1
    with pytest.raises(UsageError, match=r"no \.tif or \.ply file of pose"):
        open_ground(f"{tmp_path}:pose")


def test_the_best_measurement_of_a_recording_is_drawn_or_what_is_named():
    xyz = dict(zip("xyz", ARC.T, strict=True))
    lat, lon, alt = geodesy.geodetic_from_local(ARC, DATUM).T
    alt[:] = np.nan  # a receiver that gave no heights
    lat[3] = lon[3] = 0.0  # and once no fix
    day = Recording("day", (
        stream_of_values("odom", T_NS, xyz, type=Odometry, frame="odom"),
        stream_of_values("gps", T_NS, {"lat": lat, "lon": lon, "alt": alt}, type=NavFix),
        stream_of_values("true", T_NS, xyz, type=Pose, frame="map", role="truth"),
    ))  # fmt: skip
    (best,) = paths_of(day)  # though the fixes of a receiver without velocities measure lengths badly
    assert (best.frame, len(best.t_ns)) == (EARTH, 59)
    assert paths_of(day, "odom")[0].frame == "odom"
    assert [path.name for path in paths_of(day, patterns=("o*", "t*"))] == ["day odom", "day true"]
    assert paths_of(day.select("true"))[0].frame == "map"
    assert [path.name for path in guides_of(day, "map")] == ["day true"]
    with pytest.raises(StreamError, match="no positions"):
        paths_of(
            Recording(
                "day",
                (
                    stream_of_values(
                        "e", T_NS, {"lat": lat * np.nan, "lon": lon * np.nan, "alt": alt}, type=NavFix
                    ),
                ),
            )
        )
    with pytest.raises(UsageError, match="day is not one map"):
        map_of(day)
