"""`transect run` judges its poses where the recording has truth."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from click.testing import CliRunner

import transect
from transect import formats
from transect.cli.compare import command as compare
from transect.cli.run import command
from transect.engine import Run
from transect.engine.wiring import WiringError
from transect.errors import GeometryError, UsageError
from transect.evaluation.result import Input, load_result
from transect.evaluation.runs.comparison import compare_run
from transect.evaluation.runs.reference import reference_of
from transect.recording import Recording
from transect.recording.stream import stream_of_values
from transect.types import Pose, Trajectory

from .run_sample import document, recording, run, write_project

REFUSES = """

class Refuses(Node):
    def process(self, twist: Twist, yaw: Latest[float]) -> Pose | None:
        return self.ctx.skip("too dark")
"""

FED = """
name: Fed
doc: Dead reckoning that is also given positions
input_ports: [{name: imu, type: Imu}, {name: twist, type: Twist}, {name: position, type: Pose}]
output_ports: [{name: pose, type: Pose}]
implementations:
  - name: Fed
    nodes: {heading: {node: Heading}, track: {node: Track}, again: {node: same}}
    wires: [imu -> heading.imu, twist -> track.twist, heading.out -> track.yaw, position -> again.pose,
            track.out -> pose]
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
def printed(project: Path) -> str:
    """All implementations, side by side."""
    done = run(f"{project / 'track.yaml'}/*", project / "day", "-o", project / "all")
    assert done.return_value == 0
    return done.stdout


@pytest.fixture(scope="module")
def judged(project: Path, printed: str) -> Path:
    return project / "all" / "Plain"


def test_the_error_is_that_between_the_file_of_poses_and_the_truth(judged: Path):
    result = load_result(judged / "pose.result")
    t, x, y, qz, qw = np.loadtxt(judged / "pose.tum", usecols=(0, 1, 2, 6, 7)).T
    t, x, y = (column[:-1] for column in (t, x, y))  # after the last true pose nothing is known
    truth = (t - 1_600_000_000) * 0.5
    yaw = 2 * np.arctan2(qz[0], qw[0])
    moved = ((x - x[0]) + 1j * (y - y[0])) * np.exp(-1j * yaw)
    off = np.abs(moved - (truth - truth[0]))  # a straight path is compared from its start
    assert result.alignment["mode"] == "origin"
    assert result.metrics["ate"]["translation"]["rmse"] == pytest.approx(np.sqrt(np.mean(off**2)), rel=1e-4)
    assert (result.estimate, result.reference) == ("Track2D/Plain", "truth/pose")


def test_the_table_and_the_figures_are_printed_and_there(judged: Path, printed: str):
    assert "Track2D/Plain" in printed
    assert "ATE rmse [m]" in printed
    drawn = sorted(path.name for path in (judged / "evaluation").glob("*.png"))
    assert drawn == ["drift.png", "errors.png", "trajectory_Track2D_Plain.png"]
    assert f"\nfigures in {judged / 'evaluation'}: {', '.join(drawn)}\n" in printed
    assert " of 20 poses compared, " in printed


def test_runs_are_compared_by_their_folders(judged: Path, capsys: pytest.CaptureFixture[str]):
    compare.main([str(judged), str(judged.parent / "Double")], standalone_mode=False)
    table, _, said = capsys.readouterr().out.partition("\n\n")
    rows = [line.split()[0] for line in table.splitlines() if line.startswith("Track2D/")]
    assert rows == ["Track2D/Plain", "Track2D/Double"]
    assert "Track2D/Double against Track2D/Plain: " in said


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
    assert done.stdout.splitlines()[-2:] == [
        f"wrote {tmp_path / 'run'}",
        f"figures in {figure.parent}: path.png",
    ]
    assert figure.stat().st_size > 5000
    assert not (tmp_path / "run" / "pose.result").exists()


def test_all_implementations_without_truth_are_compared_by_what_they_gave(project: Path, tmp_path: Path):
    from tests.commands import transect as command_line

    day = recording()
    untrue = day.replace(streams=tuple(stream for stream in day if stream.role != "truth"))
    formats.write(untrue, tmp_path / "day", "parquet")
    done = command_line("run", f"{project / 'track.yaml'}/*", tmp_path / "day", "-o", tmp_path / "all")
    again = command_line("compare", tmp_path / "all")
    assert done.returncode == again.returncode == 0
    assert again.stdout.splitlines()[0].split()[0] == "implementation"
    assert "length [m]" in again.stdout
    assert "not judged: no truth" in again.stdout
    assert " against " in again.stdout
    assert again.stdout.strip() in done.stdout


def test_times_that_do_not_meet_are_said_to_and_the_run_is_kept(project: Path, tmp_path: Path):
    day = recording()
    truth = day["truth/pose"]
    columns = {name: truth.column(name) for name in truth.columns}
    later = stream_of_values(truth.name, truth.t_ns + 3600 * 10**9, columns, type=Pose, role="truth")
    kept = tuple(stream for stream in day if stream.role != "truth")
    formats.write(day.replace(streams=(*kept, later)), tmp_path / "day", "parquet")
    done = run(project / "track.yaml", tmp_path / "day", "-o", tmp_path / "run")
    assert done.return_value == 0
    assert "failed: no poses match" in done.stdout
    assert load_result(tmp_path / "run" / "pose.result").failure


def test_all_implementations_run_side_by_side_and_stand_in_one_table(judged: Path, printed: str):
    assert sorted(path.name for path in judged.parent.iterdir()) == ["Double", "Plain", "latest"]
    table = printed[printed.rindex("implementation  ") :].splitlines()
    assert table[0].split()[:3] == ["implementation", "time", "[s]"]
    assert [line.split()[0] for line in table[1:3]] == ["Track2D/Double", "Track2D/Plain"]


def receiver(kept: np.ndarray, turned: float = 0.0, name: str = "GroundTruth") -> Recording:
    """The day judged by the track of a receiver, with only some measured positions, `Rtk`."""
    day = recording()
    truth = day["truth/pose"]
    c, s = np.cos(turned), np.sin(turned)
    x, y = np.array([[c, -s], [s, c]]) @ truth.array("x", "y")[kept].T
    places = {"x": x, "y": y, "z": np.zeros(len(x))}
    rtk = stream_of_values("Rtk", truth.t_ns[kept], places, type=Pose)
    kept_streams = (stream for stream in day if stream is not truth)
    return day.replace(streams=(*kept_streams, truth.replace(name=name), rtk))


def test_a_run_is_judged_by_the_positions_that_were_withheld_from_it(project: Path, tmp_path: Path):
    kept = np.arange(20) < 8
    (project / "fed.yaml").write_text(FED)
    formats.write(receiver(kept), tmp_path / "day", "parquet")
    done = run(project / "fed.yaml", tmp_path / "day", "-o", tmp_path / "run")
    said = "judged by the 12 of 20 positions of GroundTruth that Rtk does not have"
    assert said in done.stdout
    result = load_result(tmp_path / "run" / "pose.result")
    assert said in result.notes
    assert (result.truth["poses"], result.pairs["matched"]) == (12, 11)  # the last is after the truth
    assert "drift" not in result.metrics


@pytest.mark.parametrize(
    ("turned", "name", "fed"),
    [(0.0, "GroundTruth", "wholly"), (1.0, "GroundTruth", "wholly"), (0.0, "truth/path", "not")],
)
def test_a_reference_that_was_an_input_is_said_to_be_one(turned: float, name: str, fed: str):
    day = receiver(np.ones(20, dtype=bool), turned, name)
    wired = SimpleNamespace(config={"wiring": {"position": {"stream": "Rtk"}, "imu": {"stream": "imu"}}})
    reference, found = reference_of(cast(Run, wired), day, day[name])
    said = "the reference was an input (Rtk): this is how well the run fits it, not how true it is"
    assert (found, reference.notes) == (fed, (said,) if fed == "wholly" else ())
    assert len(reference.trajectory) == 20


@pytest.mark.parametrize(("frame", "mode"), [("map", "yaw"), ("odom", "origin")])
def test_a_straight_path_is_turned_about_the_vertical_where_that_is_known(frame: str, mode: str):
    t_ns, way = np.arange(20), np.column_stack([np.arange(20.0), np.zeros((20, 2))])
    turned = np.tile([0.0, 0.0, 0.0, 1.0], (20, 1))
    sides = [Input(n, "", n, Trajectory(t_ns, way, turned, frame=n)) for n in ("SimulatedWorld", frame)]
    assert compare_run(*sides, "not", "").alignment["mode"] == mode


def test_all_implementations_need_a_folder(project: Path):
    with pytest.raises(UsageError, match="several runs need an output folder"):
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
    assert "no output of pose: track: too dark (20 of 20 times)" in done.stdout
    assert done.return_value == 4  # a script notices


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
    every = run(f"{project / 'choice.yaml'}/*", project / "day", "-o", tmp_path / "all")
    assert every.return_value == 0
    heading, row = every.stdout.strip().splitlines()[-2:]
    assert heading.split() == ["not", "run", "reason"]
    assert row.startswith("Track2D/Plain  cannot tell which stream of day feeds fix (NavFix): no ")
    assert [path.name for path in (tmp_path / "all").iterdir() if not path.is_symlink()] == ["Double"]


# Positions only, one pose, and runs of a SLAM


def straight(turned: bool, wiggle: float = 0.3) -> tuple[Trajectory, Trajectory]:
    """Return a truth along a lane to the north-east, and an odometry of it that begins with x ahead."""
    s = np.linspace(0.0, 60.0, 121)
    way = np.column_stack([s, wiggle * np.sin(s / 7), 0.1 * np.sin(s / 3)])
    c, d = np.cos(0.7), np.sin(0.7)
    there = way @ np.array([[c, d, 0.0], [-d, c, 0.0], [0.0, 0.0, 1.0]]) + (400.0, 300.0, 20.0)
    t_ns, level = np.arange(121) * 200_000_000, np.tile([0.0, 0.0, 0.0, 1.0], (121, 1))
    scaled = way * 1.001  # 0.1 % too long
    return Trajectory(t_ns, there, level if turned else None, frame="enu"), Trajectory(
        t_ns, scaled, level, frame="odom"
    )


@pytest.mark.parametrize(("wiggle", "mode"), [(0.3, "se3"), (0.0, "line")])
def test_positions_along_a_lane_are_turned_onto_a_truth_that_has_positions_only(wiggle: float, mode: str):
    truth, path = straight(turned=False, wiggle=wiggle)
    if not wiggle:
        truth, path = (replace(side, positions=side.positions * (1, 1, 0)) for side in (truth, path))
    sides = Input("truth", "", "truth", truth), Input("run", "", "run", path)
    found = compare_run(*sides, "not", "")
    assert found.alignment["mode"] == mode
    assert found.metrics["ate"]["percent"] < 0.1


def test_one_pose_has_no_error():
    truth, path = straight(turned=True)
    alone = replace(
        path, t_ns=path.t_ns[:1], positions=path.positions[:1], orientations=path.orientations[:1]
    )
    sides = Input("truth", "", "truth", truth), Input("run", "", "run", alone)
    with pytest.raises(GeometryError, match="only one pose"):
        compare_run(*sides, "not", "")


ONCE = """
import numpy as np

from transect import Node
from transect.engine import outputs
from transect.types import Pose, Twist


@outputs
class Found:
    pose: Pose | None = None
    success: bool | None = None


class Once(Node):
    def reset(self) -> None:
        self.given = 0

    def process(self, twist: Twist) -> Found:
        self.given += 1
        if self.given > 1:
            return Found(success=False)
        return Found(Pose(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), self.ctx.time, "odom", "robot"), True)
"""


def test_a_run_that_found_one_pose_says_how_many_and_has_no_error(project: Path, tmp_path: Path):
    from tests.commands import transect as command_line

    (tmp_path / "once.py").write_text(ONCE)
    done = command_line("run", tmp_path / "once.py", project / "day", "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "ATE 0 m" not in done.stdout
    compared = command_line("compare", tmp_path / "run")
    row = next(line for line in compared.stdout.splitlines() if line.startswith("Once"))
    assert "X" in row.split()
    assert "1/20" in row.split()
    assert "only one pose" in compared.stdout


@pytest.fixture(scope="module")
def slam(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run of LaserSlam round a block, in a recording with truth, and that truth in a file."""
    pytest.importorskip("gtsam")
    from tests.algorithms.slam.rooms import ROUND, block, record, walk
    from tests.commands import transect as command_line

    folder = tmp_path_factory.mktemp("slam")
    poses = walk([*ROUND, (3.0, 0.0)], step=0.15)
    day = record(block(), poses)
    nothing = np.zeros(len(poses))
    columns = {"x": poses[:, 0], "y": poses[:, 1], "z": nothing, "qx": nothing, "qy": nothing}
    columns |= {"qz": np.sin(poses[:, 2] / 2), "qw": np.cos(poses[:, 2] / 2)}
    about = {"type": Pose, "role": "truth", "clock": "device", "frame": "world", "child": "robot"}
    true = stream_of_values("truth/pose", day["scan"].t_ns, columns, **about)
    formats.write(day.replace(streams=(*day.streams, true)), folder / "day", "parquet")
    formats.write(day.replace(streams=(true,)), folder / "truth.tum", "tum")
    done = command_line(
        "run", "LaserSlam", folder / "day", "--set", "places.min_loop_path=6", "-o", folder / "run"
    )
    assert done.returncode == 0, done.stderr
    (folder / "printed.txt").write_text(done.stdout)
    return folder / "run", folder / "truth.tum"


def test_a_slam_is_judged_by_its_corrected_path_and_rows_name_their_ports(slam: tuple[Path, Path]):
    folder, _ = slam
    printed = (folder.parent / "printed.txt").read_text()
    results = {port: load_result(folder / f"{port}.result") for port in ("trajectory", "pose", "odometry")}
    errors = {port: result.metrics["ate"]["translation"]["rmse"] for port, result in results.items()}
    assert errors["trajectory"] < errors["pose"] < errors["odometry"]
    assert f"ATE {errors['trajectory']:.3g} m" in printed.split("\nwrote ")[0].splitlines()[-1]
    rows = [line.split()[0] for line in printed.splitlines() if line.startswith("LaserSlam/Led:")]
    assert rows == ["LaserSlam/Led:trajectory", "LaserSlam/Led:odometry", "LaserSlam/Led:pose"]


def test_runs_are_compared_with_a_file_of_poses(slam: tuple[Path, Path], tmp_path: Path):
    from tests.commands import transect as command_line

    folder, truth = slam
    before = load_result(folder / "trajectory.result").metrics["ate"]["translation"]["rmse"]
    done = command_line("compare", folder, "--truth", truth, "--json")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    assert [each["estimate"].split(":")[1] for each in results] == ["trajectory", "odometry", "pose"]
    assert results[0]["metrics"]["ate"]["translation"]["rmse"] == pytest.approx(before, rel=0.05)
    refused = command_line("compare", folder / "trajectory.result", "--truth", truth)
    assert refused.returncode == 2
    page = tmp_path / "report.html"
    reported = command_line("report", folder, "--truth", truth, "--no-check", "--pictures", 0, "-o", page)
    assert reported.returncode == 0, reported.stderr
    assert "truth.tum" in page.read_text() or truth.stem in page.read_text()
    unjudged = command_line("eval", truth, folder, "--json")
    assert json.loads(unjudged.stdout)["results"][0]["metrics"]["ate"]["translation"]["rmse"] < 2 * before
