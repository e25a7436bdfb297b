"""`transect eval` of height maps, and what a run says of the one that it made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.evaluation.test_height_maps import CELL_SIZE_M, ground, made

from transect.cli.eval import command
from transect.errors import UsageError
from transect.evaluation.figures import _maps
from transect.evaluation.map_reports import MapInput, evaluate_maps, place_map
from transect.evaluation.runs.reference import judge_map
from transect.formats.geotiff import decode_geotiff, encode_geotiff
from transect.formats.shared.file_groups import file_table
from transect.geometry import se3
from transect.recording import Recording, Stream
from transect.recording.stream import stream_of_values
from transect.types import GridMap, Pose

COLUMNS = ("x", "y", "z", "qx", "qy", "qz", "qw")
START_NS = 1_600_000_000_000_000_000


def written(path: Path, grid: GridMap) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_geotiff(grid))
    return path


def measured(*arguments: object) -> dict[str, float]:
    done = CliRunner().invoke(command, [*(str(a) for a in arguments), "--json"], catch_exceptions=False)
    return json.loads(done.stdout)["results"][0]["metrics"]["map"]


def test_a_shift_is_taken_out_and_with_align_none_it_stays(tmp_path: Path):
    truth = written(tmp_path / "drone.tif", made())
    off = written(tmp_path / "ours.tif", made(moved=(0.1, -0.06, 0.5)))
    fitted = measured(truth, off)
    np.testing.assert_allclose(fitted["shift_m"], [-0.1, 0.06, -0.5], atol=0.1 * CELL_SIZE_M)
    assert fitted["rmse"] < 1e-3
    assert max(fitted["deviation_shift_m"]) < 0.1 * CELL_SIZE_M
    left = measured(truth, off, "--align", "none")
    assert left["bias"] == pytest.approx(0.5, abs=0.05)
    assert left["deviation_shift_m"] == [None, None, None]
    shown = CliRunner().invoke(command, [str(truth), str(off)], catch_exceptions=False)
    assert "a shift was removed: x -0.100 +-" in shown.output


def test_a_map_of_a_site_is_put_into_that_of_a_drone_by_a_shift(tmp_path: Path):
    drone = written(tmp_path / "drone.tif", made(origin=(500_000.0, 4_178_000.0), crs="EPSG:32633"))
    ours = written(tmp_path / "ours.tif", made(moved=(0, 0, -1900.0)))
    with pytest.raises(UsageError, match="no coordinate reference system") as caught:
        measured(drone, ours)
    assert "--shift" in caught.value.hint
    assert measured(drone, ours, "--shift", "500000,4178000,1900")["rmse"] < 1e-3
    with pytest.raises(UsageError, match="three lengths"):
        measured(drone, ours, "--shift", "500000,north")


def test_the_map_of_a_run_is_named_by_its_port_and_drawn(tmp_path: Path):
    truth = written(tmp_path / "drone.tif", made())
    written(tmp_path / "run" / "dem.tif", made(moved=(0, 0, 0.2)))
    done = CliRunner().invoke(
        command,
        [str(truth), f"{tmp_path / 'run'}:dem", "--align", "none", "--figure", str(tmp_path)],
        catch_exceptions=False,
    )
    assert "map rmse [m]" in done.stdout
    assert " 0.2 " in done.stdout
    assert (tmp_path / "map_dem.png").stat().st_size > 10_000
    (tmp_path / "run" / "run.json").write_text("{}")
    for pair in ((truth, tmp_path / "run"), (tmp_path / "run", truth), (f"{tmp_path / 'run'}:dem", truth)):
        assert measured(*pair, "--align", "none")["rmse"] == pytest.approx(0.2)


def test_what_holds_no_map_is_refused(tmp_path: Path):
    truth = written(tmp_path / "drone.tif", made())
    (tmp_path / "path.tum").write_text("1 0 0 0 0 0 0 1\n2 0 0 0 0 0 0 1\n")
    with pytest.raises(UsageError, match="no maps"):
        CliRunner().invoke(command, [str(truth), str(tmp_path / "path.tum")], catch_exceptions=False)
    with pytest.raises(UsageError, match="nothing to compare"):
        CliRunner().invoke(command, [str(truth)], catch_exceptions=False)


def test_the_frame_of_a_local_map_is_kept_in_the_file():
    grid = GridMap(made().layers, made().transform, frame="level")
    assert decode_geotiff(encode_geotiff(grid), "dem.tif").frame == "level"


def seen_from(T_world_odom: np.ndarray) -> GridMap:
    """What a run that began at (0, 0, 0) of `odom` would have made of the ground, exactly."""
    rows, cols, cell = 60, 70, 0.05
    col, row = np.meshgrid(np.arange(cols) + 0.5, np.arange(rows) + 0.5)
    places = np.stack([cell * col - 1.5, 1.5 - cell * row, np.zeros_like(row)], axis=-1)
    x, y, _ = np.moveaxis(se3.apply(T_world_odom, places.reshape(-1, 3)).reshape(rows, cols, 3), -1, 0)
    heights = ground(x, y) - T_world_odom[2, 3]
    return GridMap({"elevation": heights}, (cell, 0.0, -1.5, 0.0, -cell, 1.5), frame="level")


@pytest.fixture
def start() -> np.ndarray:
    return se3.from_quaternion([0.0, 0.0, np.sin(0.6), np.cos(0.6)], [3.0, 2.4, 1.3])


def test_a_map_of_a_run_is_put_where_it_began(tmp_path: Path, start: np.ndarray):
    turned, place = se3.to_quaternion(start)
    columns = {name: np.full(2, value) for name, value in zip(COLUMNS, [*place, *turned], strict=True)}
    truth = stream_of_values(
        "truth/trajectory",
        START_NS + np.arange(2),
        columns,
        type=Pose,
        role="truth",
        frame="world",
        child="body",
    )
    ground_truth = Stream(
        "truth/dem", GridMap, file_table([0], ["dem"]), role="truth", clock="index", loader=lambda row: made()
    )
    day = Recording("day", (truth, ground_truth), format="")
    written(tmp_path / "dem.tif", seen_from(start))
    (tmp_path / "run.json").write_text('{"config": {}}')
    (tmp_path / "pose.tum").write_text(
        "# frame odom, child body\n1600000000.000000000 0 0 0 0 0 0 1\n1600000000.000000001 0 0 0 0 0 0 1\n"
    )
    found = judge_map(tmp_path, day, "Ours")
    assert found is not None
    assert not found.failure
    assert found.metrics["map"]["before"]["rmse"] < 2e-3  # only what lies between cells
    assert any("first pose" in note for note in found.notes)


def test_of_a_rotation_only_the_part_about_the_vertical_is_taken(start: np.ndarray):
    tilted = start @ se3.exp(np.array([0, 0, 0, 0.1, 0.05, 0.0]))
    plain, leaning = (place_map(made(), T, "world") for T in (start, tilted))
    np.testing.assert_allclose(leaning.transform, plain.transform, atol=0.01)
    np.testing.assert_array_equal(leaning.layers["elevation"], made().layers["elevation"] + 1.3)


def test_a_raster_that_is_no_height_map_is_not_compared(tmp_path: Path):
    written(tmp_path / "dem.tif", made())
    depth = GridMap({"depth": made().layers["elevation"]}, (1, 0, 0, 0, 1, 0))
    for rows, grid in ((1, depth), (2, made())):  # a depth image; something that comes more than once
        table = file_table(list(range(rows)), ["a"] * rows)
        stream = Stream("Depth", GridMap, table, clock="index", loader=lambda row, grid=grid: grid)
        assert judge_map(tmp_path, Recording("day", (stream,), format=""), "Ours") is None


def test_a_reference_that_lies_askew_is_drawn_in_metres_along_its_sides(tmp_path: Path, start: np.ndarray):
    askew = place_map(made(), start, "world")
    result = evaluate_maps(MapInput("askew", askew), MapInput("ours", askew), register=False)
    assert result.metrics["map"]["rmse"] == pytest.approx(0, abs=1e-12)
    ((_, make),) = _maps([result])
    figure = make()
    assert figure.axes[0].get_xlim() == pytest.approx((0, 150 * CELL_SIZE_M))
    assert figure.axes[0].get_ylim() == pytest.approx((0, 120 * CELL_SIZE_M))


def test_a_recording_without_a_map_says_nothing(tmp_path: Path):
    written(tmp_path / "dem.tif", made())
    assert judge_map(tmp_path, Recording("day", (), format=""), "Ours") is None


def test_a_map_in_its_start_frame_is_said_to_be_that(tmp_path: Path):
    truth = MapInput("truth", replace(made(), frame="world"), source="day:dem")
    begun = MapInput("run", replace(made(), frame="level"), source="a run")
    [said] = [note for note in evaluate_maps(truth, begun).notes if "own frame" in note]
    assert "'level', which begins level where the robot started; the reference in 'world'" in said
    assert "transect maps align day:dem 'a run'" in said
    same = evaluate_maps(truth, replace(begun, grid=truth.grid)).notes
    assert not any("own frame" in note for note in same)
