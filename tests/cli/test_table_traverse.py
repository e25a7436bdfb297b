"""`transect table traverse`, as a person types it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.commands import Done, transect

from transect.datasets.ameds import folders as ameds
from transect.datasets.ameds.folders.sample import sample_recording


def run(*arguments: object) -> Done:
    return transect("table", "traverse", *arguments)


@pytest.fixture(scope="module")
def traverse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five seconds of a circle at 0.3 m/s, named as if it were traverse 3."""
    folder = tmp_path_factory.mktemp("etna") / "traverse_3"
    rec = sample_recording(5.0)
    ameds.write(rec.select("Gnss/Pose", "Platform/*"), folder)
    return folder


def test_a_row_with_headings_the_published_row_and_the_threshold(traverse: Path):
    done = run(traverse)
    assert (done.returncode, done.stderr) == (0, "")
    heading, row, published = done.stdout.splitlines()[:3]
    assert "length [m]" in heading
    assert "height [m]" in heading
    # 4.99 s at 0.3 m/s.
    assert row.split()[:4] == ["traverse_3", "1.5", "0.0", "00:05"]
    assert "yes (100%)" in row
    assert "Gnss/Pose" in row
    # Document 000, Table 6, traverse 3.
    assert published.split() == [
        "as",
        "published",
        "239.1",
        "4.8",
        "14:44",
        *"---",
        "0.30",
        "yes",
        "AMEDS",
        "Table",
        "6",
    ]
    assert "slower than 0.05 m/s" in done.stdout


def test_several_paths_have_a_total(traverse: Path, tmp_path: Path):
    other = tmp_path / "mine"
    ameds.write(sample_recording(3.0).select("Gnss/*"), other)
    done = run(traverse, other)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["mine", "0.9"] in [row[:2] for row in rows]
    assert ["total", "2.4", "-", "00:08"] in [row[:4] for row in rows]


def test_json_has_every_number_and_nothing_else_on_stdout(traverse: Path):
    done = run(traverse, "--from", "+1s", "--to", "+3s", "--stop-speed", "0.5", "--json")
    document = json.loads(done.stdout)
    (row,) = document["traverses"]
    assert row["length_m"] == pytest.approx(0.3 * 1.99, abs=1e-3)
    assert row["duration_s"] == pytest.approx(1.99)
    assert (row["moving_m"], row["moving_speed"]) == (0.0, None)  # always slower than 0.5 m/s
    assert row["stop_speed"] == 0.5
    assert row["published"] is None  # a part of it is not what was published
    assert document["total"] is None


def test_truth_beside_a_recording_changes_nothing(traverse: Path, tmp_path: Path):
    with_truth = tmp_path / "traverse_3"
    shutil.copytree(traverse, with_truth)
    (with_truth / "truth").mkdir()
    # A truth that went 100 m, where the recording says 1.5 m.
    lines = [f"{1657013071 + t} {50 * t} 0 0 0 0 0 1\n" for t in range(3)]
    (with_truth / "truth/trajectory.tum").write_text("".join(lines))
    alone, beside = (json.loads(run(path, "--json").stdout)["traverses"] for path in (traverse, with_truth))
    assert beside == alone
    named = run(with_truth, "--stream", "truth/trajectory")
    assert "is truth, not a measurement" in named.stdout


def test_another_stream_can_be_named(traverse: Path):
    done = run(traverse, "--stream", "Platform/2DPoseEstimate")
    assert done.returncode == 0, done.stderr
    assert "Platform/2DPoseEstimate (2-D)" in done.stdout


def test_a_damaged_line_exits_with_three_and_a_recording_without_positions_with_one(
    traverse: Path, tmp_path: Path
):
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    lines = (traverse / "GnssPose.csv").read_text().splitlines(keepends=True)
    (damaged / "GnssPose.csv").write_text("".join([*lines[:5], "oops\n", *lines[5:]]))
    assert run(damaged).returncode == 3
    assert run(damaged, "--strict").returncode == 1
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "PlatformMotorEncoders.csv").write_bytes((traverse / "PlatformMotorEncoders.csv").read_bytes())
    done = run(bare)
    assert done.returncode == 1
    assert "no measured positions" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [[], ["--stop-speed", "-1", "x"], ["--no-such-option", "x"]])
def test_wrong_usage_exits_with_two(arguments: list[str]):
    assert run(*arguments).returncode == 2


def test_what_was_not_measured_is_not_explained(tmp_path: Path):
    table = "time,x,y,z\n" + "".join(f"{1_700_000_000 + i},{i * 0.5},0,0\n" for i in range(30))
    (tmp_path / "walk.csv").write_text(table)
    assert transect("new", "recording", tmp_path).returncode == 0
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "14.5" in done.stdout  # 29 steps of half a metre
    assert "RTK: yes" not in done.stdout
    assert "as published" not in done.stdout
