"""`transect table odometry`, on a drive that is known in closed form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.test_cli import run
from tests.datasets.rosario.robot.drives import antenna, base, turned

import transect
from transect.datasets.rosario.robot.comparison import compare
from transect.recording import stream_of_values
from transect.types import Pose

START_NS = 1_514_301_955_465_000_000
ADDED_OFFSET_M = (1.96, -0.017, 1.02)
"""What was added to the published tracks (data/README.md)."""


@pytest.fixture(scope="module")
def tracks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tracks")
    t = np.arange(450) * 0.2
    rtk = turned(antenna(t), 2.0, (7.0, -3.0, 100.0)) + ADDED_OFFSET_M
    stamps = START_NS + np.round(t * 1e9).astype(np.int64)
    lines = [f"{s} {x!r} {y!r} {z!r} 0 0 0 1\n" for s, (x, y, z) in zip(stamps, rtk.tolist(), strict=True)]
    positions = base(np.arange(950) * 0.1)[0].tolist()
    blocks = [f"x: {x!r}\ny: {y!r}\nz: {z!r}\n---\n" for x, y, z in positions]
    for number in ("01", "04"):
        (folder / f"sequence{number}_new_gt_IMU_frame.txt").write_text("".join(lines))
        (folder / f"odometry_sequence{number}.txt").write_text("".join(blocks))
    return folder


def test_every_named_sequence_is_a_row_with_the_papers_length(tracks: Path) -> None:
    done = run("table", "odometry", tracks, "--option", "sequence=01", "--option", "sequence=04")
    assert done.returncode == 0, done.stderr
    heading, first, second = done.stdout.splitlines()[:3]
    assert heading.split()[:3] == ["recording", "odometry", "m"]
    assert (first.split()[0], second.split()[0]) == ("sequence01", "sequence04")
    assert "615.15" in first.split()  # Rosario, Table 3
    assert "152.32" in second.split()
    assert "10 Hz are assumed" in done.stdout
    assert "Horn, SE(3)" in done.stdout


def test_json_has_lengths_errors_and_how_they_were_aligned(tracks: Path) -> None:
    done = run("table", "odometry", tracks, "--option", "sequence=01", "--json")
    (row,) = json.loads(done.stdout)
    assert row["name"] == "sequence01"
    assert row["paper_m"] == 615.15
    assert row["odometry_m"] == pytest.approx(row["rtk_2d_m"], rel=0.1)
    assert row["whole"]["rmse"] < 0.1 < 1.0 < row["whole_at_base"]["rmse"]
    assert row["turning"]["pieces"] == 1
    assert "Horn" in row["whole"]["alignment"]


def test_a_cut_odometry_is_compared_and_the_loss_is_the_exit_code(tracks: Path, tmp_path: Path) -> None:
    for path in tracks.glob("*01*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    file = tmp_path / "odometry_sequence01.txt"
    file.write_bytes(file.read_bytes()[:-9])
    done = run("table", "odometry", tmp_path, "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)[0]["whole"]["rmse"] < 0.1


def test_a_folder_of_several_asks_which(tracks: Path) -> None:
    done = run("table", "odometry", tracks)
    assert done.returncode == 2
    assert "--option sequence=01" in done.stderr
    assert done.stdout == ""


def test_the_lengths_of_another_truth_are_not_called_rtk(tracks: Path) -> None:
    """A truth that is three times as long as the track that the receiver measured."""
    recording = transect.open(tracks, sequence="01")
    rtk = recording["Rtk"]
    x, y, z = rtk.array("x", "y", "z").T
    columns = {"x": 3 * x, "y": 3 * y, "z": z}
    true = stream_of_values(
        "truth/trajectory",
        rtk.t_ns,
        columns,
        type=Pose,
        role="truth",
        clock=rtk.clock,
        frame="world",
        child="gps",
    )
    others = [s for s in recording if s.role != "truth"]
    found = compare(recording.replace(streams=(*others, true)))
    plain = compare(recording)
    assert (found.rtk_2d_m, found.rtk_3d_m) == (plain.rtk_2d_m, plain.rtk_3d_m)
    assert found.truth_2d_m == pytest.approx(3 * plain.rtk_2d_m, rel=1e-6)
    assert found.reference == "truth/trajectory"
    assert np.isnan(plain.truth_2d_m)  # the published truth is the track of the receiver
    alone = compare(recording.replace(streams=tuple(s for s in (*others, true) if s.name != "Rtk")))
    assert np.isnan(alone.rtk_2d_m)
