"""`transect maps show` and `maps export` of a map that LaserSlam made of simulated corridors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from tests.algorithms.slam.rooms import ROUND, SCAN_BEAMS, block, odometry_of, record, walk
from tests.commands import transect as typed

import transect
from transect import formats
from transect.algorithms.slam.occupancy_grid import build_occupancy_grid
from transect.algorithms.slam.place_maps import HALF_TURN_ABOUT_X, flip_z_up
from transect.draw.place_maps import draw_map
from transect.evaluation.runs import judge_run
from transect.evaluation.runs.loop_closures import find_ways
from transect.geometry import se3
from transect.geometry.align import umeyama
from transect.recording import FrameTree, Recording, arrow, stream_of_values
from transect.recording.place_maps import read_map
from transect.types import Pose
from transect.types.places import Anchor

pytest.importorskip("gtsam")
ANTENNA_FORWARD_M = 1.0
"""m from the robot to the antenna whose truth is known."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("maps") / "run"
    truth = walk([(0.0, 0.0), (6.0, 0.0)], step=0.2)
    transect.run("LaserSlam", record(block(), truth), out=folder)
    return folder


def test_a_map_is_described_and_drawn(kept: Path, tmp_path: Path) -> None:
    shown = typed("maps", "show", kept, "--json", "-o", tmp_path / "map.png")
    assert shown.returncode == 0
    facts = json.loads(shown.stdout)
    assert facts["kind"] == "LaserSlam"
    assert facts["keyframes"] == len(read_map(kept))
    assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"


def antenna_of(poses: np.ndarray) -> np.ndarray:
    """Return where the antenna is (n, 3) on a robot at poses (n, 3)."""
    x, y, heading = poses.T
    return np.column_stack(
        [x + ANTENNA_FORWARD_M * np.cos(heading), y + ANTENNA_FORWARD_M * np.sin(heading), np.zeros(len(x))]
    )


def know_truth(recording: Recording, poses: np.ndarray) -> Recording:
    """Return the recording with true poses (n, 3) of its robot, with an antenna `ANTENNA_FORWARD_M` in front.

    They are in a world turned and shifted against the first.
    """
    c, s = np.cos(0.7), np.sin(0.7)
    x, y = (antenna_of(poses)[:, :2] @ np.array([[c, s], [-s, c]]) + (40.0, -7.0)).T
    half, nothing = (poses[:, 2] + 0.7) / 2, np.zeros(len(poses))
    columns = {"x": x, "y": y, "z": nothing, "qx": nothing, "qy": nothing}
    columns |= {"qz": np.sin(half), "qw": np.cos(half)}
    about = {"type": Pose, "clock": "device", "frame": "world", "child": "antenna", "role": "truth"}
    mounted = FrameTree()
    mounted.add_static("robot", "antenna", se3.from_quaternion([0, 0, 0, 1], [ANTENNA_FORWARD_M, 0, 0]))
    truth = stream_of_values("truth/pose", recording["scan"].t_ns, columns, **about)
    return recording.replace(streams=(*recording, truth), frames=mounted)


def test_a_run_that_was_judged_is_drawn_before_and_after_its_loops(tmp_path: Path) -> None:
    truth = walk([*ROUND, (3.0, 0.0)], step=0.3)
    recording = know_truth(record(block(), truth), truth)
    run = transect.run("LaserSlam", recording, set={"places.min_loop_path": 6.0}, out=tmp_path / "run")
    places = read_map(tmp_path / "run")
    undecided = find_ways(tmp_path / "run", places)
    assert undecided is not None
    assert undecided.rmse_m is None
    judge_run(run, recording, draw=lambda folder: None)
    ways = find_ways(tmp_path / "run", places)
    assert ways is not None
    assert ways.rmse_m is not None
    two = replace(places, session=np.arange(len(places)) // 20)
    assert find_ways(tmp_path / "run", two) is None  # odometry does not lead from one to the next
    wheels = odometry_of(truth)
    said, true = antenna_of(wheels), antenna_of(truth)
    off = umeyama(said, true).apply(said) - true
    assert ways.rmse_m[0] == pytest.approx(np.sqrt(np.mean(np.sum(off**2, axis=1))), rel=0.02)
    assert ways.rmse_m[1] < 0.2 * ways.rmse_m[0]
    assert np.linalg.norm(ways.odometry - wheels[:, :2], axis=1).max() < 0.02  # the map begins there, too
    assert np.linalg.norm(ways.truth - truth[:, :2], axis=1).max() < 0.2
    shown = typed("maps", "show", tmp_path / "run", "--json", "-o", tmp_path / "map.svg")
    assert shown.returncode == 0
    facts = json.loads(shown.stdout)
    assert (facts["RMSE of odometry [m]"], facts["RMSE with loop closures [m]"]) == pytest.approx(
        ways.rmse_m, abs=6e-4
    )
    drawn = (tmp_path / "map.svg").read_text("utf-8")
    for name in ("odometry", "with loop closures", "ground truth", "loop closures", "walls"):
        assert f"<!-- {name}" in drawn


def test_a_map_is_exported_as_map_server_and_as_geotiff_read_it(kept: Path, tmp_path: Path) -> None:
    done = typed("maps", "export", kept, "-o", tmp_path / "floor.yaml")
    assert done.returncode == 0
    about = yaml.safe_load((tmp_path / "floor.yaml").read_text())
    gray = np.asarray(next(iter(transect.open(tmp_path / about["image"])))[0].payload.data)
    x, y = about["origin"][:2]

    def value(east: float, north: float) -> int:
        row = gray.shape[0] - 1 - int((north - y) / about["resolution"])
        return int(gray[row, int((east - x) / about["resolution"])])

    assert value(3.0, 0.0) == 254  # along the way it is free
    assert value(-20.0 if x < -20 else x + 0.01, y + 0.01) == 205  # the corner was never seen
    near = [value(4.0, 1.2 + shift) for shift in np.arange(-0.1, 0.11, 0.05)]
    assert 0 in near  # the wall of the block, 1.2 m to the left
    assert typed("maps", "export", kept, "-o", tmp_path / "floor.tif").returncode == 0
    [stream] = transect.open(tmp_path / "floor.tif")
    assert stream[0].payload.layers["occupancy"].shape == gray.shape


def test_bad_requests_are_said(kept: Path, tmp_path: Path) -> None:
    assert typed("maps", "show", tmp_path).returncode == 2
    assert typed("maps", "export", kept, "-o", tmp_path / "floor.jpg").returncode == 2
    cut = next((kept / "map").glob("points.npy"))
    whole = cut.read_bytes()
    cut.write_bytes(whole[:100])
    failed = typed("maps", "show", kept)
    cut.write_bytes(whole)
    assert failed.returncode == 1
    assert "cut short" in failed.stderr


def test_walls_of_the_grid_are_where_they_are(kept: Path) -> None:
    grid = build_occupancy_grid(read_map(kept))
    cell, _, left, _, _, top = grid.transform
    rows, columns = np.nonzero(grid.layers["occupancy"] > 0.65)
    x, y = left + (columns + 0.5) * cell, top - (rows + 0.5) * cell
    walls = block()
    a, b = walls[:, :2], walls[:, 2:]
    along = np.clip(
        np.sum((np.stack([x, y], -1)[:, None] - a) * (b - a), -1) / np.sum((b - a) ** 2, -1), 0, 1
    )
    away = np.linalg.norm(a + along[..., None] * (b - a) - np.stack([x, y], -1)[:, None], axis=-1).min(axis=1)
    assert np.percentile(away, 90) < 0.1


def test_a_map_whose_z_points_down_is_seen_from_above(kept: Path) -> None:
    places = read_map(kept)
    below = replace(
        places, poses=HALF_TURN_ABOUT_X @ places.poses, calibration={**places.calibration, "z_down": True}
    )
    np.testing.assert_allclose(flip_z_up(below).poses, places.poses)
    [drawn], [usual] = (draw_map(each).axes for each in (below, places))
    np.testing.assert_allclose(drawn.get_ylim(), usual.get_ylim())
    anchored = replace(below, anchor=Anchor("EPSG:32720", np.eye(4)))
    np.testing.assert_allclose(flip_z_up(anchored).poses, below.poses)


def test_a_run_that_made_a_map_is_viewed(tmp_path: Path) -> None:
    day, run = tmp_path / "day", tmp_path / "run"
    formats.write(record(block(), walk([(0.0, 0.0), (3.0, 0.0)], step=0.2)), day, "parquet")
    assert typed("run", "LaserSlam", day, "-o", run).returncode == 0
    shown = typed("view", run, "--save", tmp_path / "scene.rrd")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert (tmp_path / "scene.rrd").stat().st_size > 0


@pytest.fixture(scope="module")
def untrusted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a recording on disk, of scans of nothing that do not match."""
    folder = tmp_path_factory.mktemp("untrusted")
    way = walk([(0.0, 0.0), (6.0, 0.0)], step=0.15)
    sound, random = record(block(), way), np.random.default_rng(4)
    scan = sound["scan"]
    nonsense = arrow.column(arrow.ragged([random.uniform(1.0, 9.0, SCAN_BEAMS) for _ in way]))
    at = scan.table.column_names.index("ranges")
    replaced = scan.replace(source=scan.table.set_column(at, scan.table.schema.field(at), nonsense))
    formats.write(sound.replace(streams=(replaced, sound["wheels"])), folder / "day", "parquet")
    assert typed("run", "LaserSlam", folder / "day", "-o", folder / "run").returncode == 4
    return folder / "run"


def test_a_map_that_is_not_to_be_trusted_says_so_first(untrusted: Path, kept: Path) -> None:
    for path in (untrusted, untrusted / "map"):
        shown = typed("maps", "show", path)
        assert shown.stdout.startswith("BAD: ")
        assert "scans did not match" in shown.stdout.splitlines()[0]
        assert "scans did not match" in json.loads(typed("maps", "show", path, "--json").stdout)["bad"][0]
    assert draw_map(read_map(untrusted), failed=True).axes[0].get_title("left").startswith("BAD, do not use")
    assert "BAD" not in typed("maps", "show", kept).stdout
    assert "bad" not in json.loads(typed("maps", "show", kept, "--json").stdout)


def test_a_report_on_a_run_that_is_not_to_be_trusted_begins_with_it(untrusted: Path, tmp_path: Path) -> None:
    done = typed("report", untrusted, "-o", tmp_path / "page.html", "--no-check")
    assert done.returncode in (0, 4), done.stderr
    story = (tmp_path / "page.html").read_text().partition('class="story">')[2]
    assert story.startswith('<p class="bad">Not trustworthy: run run: ')
    assert "scans did not match" in story.partition("</p>")[0]


def test_looking_at_a_run_that_is_not_to_be_trusted_says_so_first(untrusted: Path, tmp_path: Path) -> None:
    shown = typed("view", untrusted, "--save", tmp_path / "scene.rrd")
    assert shown.stdout.startswith("BAD: ")
    assert "scans did not match" in shown.stdout.splitlines()[0]
