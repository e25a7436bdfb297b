"""`transect run` judges its poses where the recording has truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import transect
from transect import formats
from transect.cli.compare import command as compare
from transect.cli.run import command
from transect.engine.wiring import WiringError
from transect.errors import UsageError
from transect.evaluation.result import load_result
from transect.recording.stream import stream_of_values
from transect.types import Pose

from .run_sample import document, recording, run, write_project

REFUSES = """

class Refuses(Node):
    def process(self, twist: Twist, yaw: Latest[float]) -> Pose | None:
        return self.ctx.skip("too dark")
"""

MORE = "{name: imu, type: Imu}, {name: fix, type: NavFix}"
NORTH = """
from transect import Node
from transect.types import NavFix


class North(Node):
    def process(self, fix: NavFix) -> float:
        return 0.0
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def judged(project: Path) -> Path:
    done = run(project / "track.yaml", project / "day", "-o", project / "run")
    assert done.return_value == 0
    (project / "printed.txt").write_text(done.stdout)
    return project / "run"


def test_the_error_is_that_between_the_file_of_poses_and_the_truth(judged: Path):
    result = load_result(judged / "pose.result")
    t, x, y = np.loadtxt(judged / "pose.tum", usecols=(0, 1, 2)).T
    t, x, y = (column[:-1] for column in (t, x, y))  # after the last true pose nothing is known
    truth = (t - 1_600_000_000) * 0.5
    off = np.hypot((x - x[0]) - (truth - truth[0]), y - y[0])  # a straight path is compared from its start
    assert result.alignment["mode"] == "origin"
    assert result.metrics["ate"]["translation"]["rmse"] == pytest.approx(np.sqrt(np.mean(off**2)), rel=1e-4)
    assert (result.estimate, result.reference) == ("Track2D/Plain", "truth/pose")


def test_the_table_and_the_figures_are_printed_and_there(judged: Path):
    printed = (judged.parent / "printed.txt").read_text()
    assert "Track2D/Plain" in printed
    assert "ATE rmse [m]" in printed
    drawn = sorted(path.name for path in (judged / "evaluation").glob("*.png"))
    assert drawn == ["drift.png", "errors.png", "trajectory_Track2D_Plain.png"]
    assert f"figures: {judged / 'evaluation' / 'drift.png'}" in printed


def test_runs_are_compared_by_their_folders(judged: Path, project: Path, capsys: pytest.CaptureFixture[str]):
    assert (
        run(f"{project / 'track.yaml'}/Double", project / "day", "-o", project / "double").return_value == 0
    )
    compare.main([str(judged), str(project / "double")], standalone_mode=False)
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("Track2D/")]
    assert rows == ["Track2D/Plain", "Track2D/Double"]


def test_as_json_the_evaluation_stands_in_the_document(project: Path, tmp_path: Path):
    said = document(project / "track.yaml", project / "day", "-o", tmp_path / "run")
    assert [result["estimate"] for result in said["evaluation"]] == ["Track2D/Plain"]


def test_without_truth_nothing_is_judged(project: Path, tmp_path: Path):
    day = recording()
    untrue = day.replace(streams=tuple(stream for stream in day if stream.role != "truth"))
    formats.write(untrue, tmp_path / "day", "parquet")
    done = run(project / "track.yaml", tmp_path / "day", "-o", tmp_path / "run")
    assert done.return_value == 0
    figure = tmp_path / "run" / "evaluation" / "path.png"
    assert done.stdout.splitlines()[-2:] == [f"wrote {tmp_path / 'run'}", f"figures: {figure}"]
    assert figure.stat().st_size > 5000
    assert not (tmp_path / "run" / "pose.result").exists()


def test_times_that_do_not_meet_are_said_to_and_the_run_is_kept(project: Path, tmp_path: Path):
    day = recording()
    truth = day["truth/pose"]
    columns = {name: truth.column(name) for name in truth.columns}
    later = stream_of_values(truth.name, truth.t_ns + 3600 * 10**9, columns, type=Pose, role="truth")
    kept = tuple(stream for stream in day if stream.role != "truth")
    formats.write(day.replace(streams=(*kept, later)), tmp_path / "day", "parquet")
    done = run(project / "track.yaml", tmp_path / "day", "-o", tmp_path / "run")
    assert done.return_value == 0
    assert "failed: no poses belong together" in done.stdout
    assert load_result(tmp_path / "run" / "pose.result").failure


def test_all_implementations_run_side_by_side_and_stand_in_one_table(project: Path, tmp_path: Path):
    done = run(f"{project / 'track.yaml'}/*", project / "day", "-o", tmp_path / "all")
    assert done.return_value == 0
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["Double", "Plain", "latest"]
    table = done.stdout[done.stdout.rindex("implementation  ") :].splitlines()
    assert table[0].split()[:3] == ["implementation", "time", "[s]"]
    assert [line.split()[0] for line in table[1:3]] == ["Track2D/Double", "Track2D/Plain"]


def test_all_implementations_need_a_folder(project: Path):
    with pytest.raises(UsageError, match="several runs need a place"):
        CliRunner().invoke(
            command, [f"{project / 'track.yaml'}/*", str(project / "day")], standalone_mode=False,
            catch_exceptions=False,
        )  # fmt: skip


def test_what_gave_nothing_is_said_with_the_reason(tmp_path: Path):
    project = write_project(tmp_path / "project")
    text = (project / "track.yaml").read_text().replace("{node: Track}", "{node: Refuses}")
    (project / "refuses.yaml").write_text(text)
    with (project / "my_nodes.py").open("a") as file:
        file.write(REFUSES)
    done = run(project / "refuses.yaml", project / "day", "-o", tmp_path / "run")
    assert "nothing came out of pose: track: too dark (20 of 20 times)" in done.stdout


def test_without_a_name_the_first_implementation_that_the_recording_can_feed_is_run(
    project: Path, tmp_path: Path
):
    text = (project / "track.yaml").read_text().replace("{name: imu, type: Imu}", MORE, 1)
    text = text.replace("imu -> heading.imu", "fix -> heading.fix", 1).replace(
        "node: Heading", "node: North", 1
    )
    (project / "choice.yaml").write_text(text)
    (project / "north.py").write_text(NORTH)
    done = run(project / "choice.yaml", project / "day", "-o", tmp_path / "run")
    assert done.return_value == 0, done.exception
    assert done.stdout.startswith("Track2D/Double on day")
    with pytest.raises(WiringError, match="feeds fix"):
        transect.run(f"{project / 'choice.yaml'}/Plain", project / "day")
