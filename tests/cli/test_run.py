"""`transect run`, as a person types it."""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Iterator
from pathlib import Path

import click
import cv2
import numpy as np
import pytest

import transect
from transect.cli import main
from transect.cli.run.execution import refuse_options_of_one
from transect.engine import Run
from transect.engine.compounds import CompoundError
from transect.engine.digest import RunsDifferError
from transect.engine.execution import NodeError
from transect.errors import ParseError, TransectError, UsageError

from .run_sample import NODES, START_NS, TRACK, document, run, write_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("project"))


@pytest.fixture
def track(project: Path) -> tuple[Path, Path]:
    return project / "track.yaml", project / "day"


def test_it_prints_the_wiring_the_outputs_and_the_digest_and_the_statistics_if_asked(track, tmp_path: Path):
    assert not any(line.startswith("heading ") for line in run(*track).stdout.splitlines())
    done = run(*track, "-o", tmp_path / "run", "--stats")
    assert done.return_value == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "Track2D/Plain on day"
    assert "imu    Imu    imu     by type" in lines
    assert next(line for line in lines if line.startswith("heading ")).split()[1] == "200"
    assert "pose    Pose        20  pose.tum" in lines
    digest = transect.run(str(track[0]), track[1]).digest
    assert lines.index(f"digest {digest}") < lines.index(f"wrote {tmp_path / 'run'}")
    assert lines[lines.index(f"wrote {tmp_path / 'run'}") - 1].startswith(
        "19 of 20 poses compared, 1.2 m, 1.9 s, ATE "
    )
    assert json.loads((tmp_path / "run" / "run.json").read_text())["digest"] == digest
    assert len(transect.open(tmp_path / "run" / "pose.tum").streams[0]) == 20
    assert (tmp_path / "latest").resolve() == (tmp_path / "run").resolve()


def test_without_a_folder_nothing_is_kept_and_it_says_so(track, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*track)
    assert done.return_value == 0
    assert done.stdout.endswith("no outputs were written; -o DIR writes them to a folder\n")
    assert list(tmp_path.iterdir()) == []


def test_as_json_it_is_one_document(track, tmp_path: Path):
    found = document(*track, "-o", tmp_path / "run")
    assert (found["name"], found["status"], found["errors"]) == ("Track2D/Plain", "complete", [])
    assert set(found["ports"]) == {"heading.out", "track.out"}
    assert found["outputs"]["pose"] == {"type": "Pose", "samples": 20, "files": ["pose.tum"]}
    assert found["wiring"]["twist"]["stream"] == "wheels"
    assert found["statistics"]["nodes"]["heading"]["calls"] == 200
    assert (found["folder"], found["golden"]) == (str(tmp_path / "run"), None)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["outputs"] == found["outputs"]


def test_two_implementations_are_two_algorithms(project: Path):
    day = project / "day"
    plain = document(f"{project / 'track.yaml'}/Plain", day)
    double = document(f"{project / 'track.yaml'}/Double", day)
    assert plain["digest"] != double["digest"]
    assert document(project / "track.yaml", day, "--set", "heading.gain=2.0")["digest"] == double["digest"]
    assert document(project / "track.yaml", day, "--jobs", 2)["digest"] == plain["digest"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("heading.gain=0.3", 0.3),
        ("heading.gain=3", 3.0),
        ("heading.gain=1e-3", 0.001),
        ("heading.axes=[1, 0, 0]", [1, 0, 0]),
        ("heading.name=north east", "north east"),
        ("heading.name=", ""),
        ("heading.loud=true", True),
    ],
)
def test_values_of_parameters_are_read_as_yaml(track, text: str, value: object):
    name = text.partition("=")[0].partition(".")[2]
    assert document(*track, "--set", text)["parameters"]["heading"][name] == value


def test_what_nodes_said_is_in_the_folder(track, tmp_path: Path):
    done = run(*track, "--set", "heading.loud=true", "-o", tmp_path / "run")
    assert f"nodes logged 200 lines: see {tmp_path / 'run' / 'log.txt'}" in done.stdout
    assert "-o DIR keeps it" in run(*track, "--set", "heading.loud=true").stdout


def test_a_part_is_played_at_a_rate_with_an_offset(track):
    found = document(*track, "--from", "+0.5s", "--to", "+1s", "--rate", 100, "--reorder", 0.1)
    assert found["statistics"]["nodes"]["heading"]["calls"] == 50
    assert found["time"]["reorder_s"] == 0.1
    done = run(*track, "--offset", "wheels=0.25")
    assert "offset: wheels: +0.250000000 s" in done.stdout


def test_truth_must_be_asked_for_and_the_result_says_that_it_was_used(project: Path):
    done = run(project / "same.yaml", project / "day")
    assert isinstance(done.exception, UsageError)
    assert "--wire pose=truth/pose" in done.exception.hint
    done = run(project / "same.yaml", project / "day", "--wire", "pose=truth/pose")
    assert "note: pose takes truth/pose, which is truth" in done.stdout
    assert "note: the result uses ground truth" in done.stdout
    found = document(project / "same.yaml", project / "day", "--wire", "pose=truth/pose")
    assert found["used_truth"] is True


def test_a_golden_run_is_the_same_or_the_error_says_which_port_differed_first_and_when(track, tmp_path: Path):
    golden = tmp_path / "golden"
    run(*track, "-o", golden)
    done = run(*track, "--golden", golden)
    assert done.return_value == 0
    assert "identical to the golden run in all 2 ports" in done.stdout
    assert document(*track, "--golden", golden)["golden"]["same"] is True
    done = run(*track, "--golden", golden, "--set", "heading.gain=1.5", "-o", tmp_path / "other", "--json")
    assert isinstance(done.exception, RunsDifferError)
    assert done.exception.exit_code == 4
    assert done.exception.where == f"heading.out@2020-09-13T12:26:40.000 ({START_NS} ns)"
    assert "parameters.heading.gain: 1.5, other 1.0" in done.exception.why
    first = json.loads(done.stdout)["golden"]["differ"][0]
    assert first == {"port": "heading.out", "first_ns": START_NS, "samples": [200, 200], "differing": 200}
    assert (tmp_path / "other" / "run.json").is_file()


MISTAKES = {
    "no folder": (("--golden", "{tmp}/nowhere"), "there is no run"),
    "no run": (("--golden", "{tmp}"), "not the folder of a run"),
    "occupied": (("-o", "{project}"), "exists already"),
    "no value": (("--set", "heading.gain"), "not KEY=VALUE"),
    "no node": (("--set", "gain=2"), "'gain' names no parameter of a node"),
    "other node": (("--set", "headin.gain=2"), "no node 'headin'"),
    "other parameter": (("--set", "heading.gian=2"), "no parameter 'gian'"),
    "bad value": (("--set", "heading.gain=fast"), "cannot be 'fast'"),
    "bad yaml": (("--set", "heading.axes=[1"), "cannot be read"),
    "no stream": (("--wire", "imu"), "not KEY=VALUE"),
    "other input": (("--wire", "imuu=imu"), "no input 'imuu'"),
    "other stream": (("--wire", "imu=lidar"), "no stream 'lidar'"),
    "wrong type": (("--wire", "imu=wheels"), "wheels cannot feed imu"),
    "no offset": (("--offset", "imu=soon"), "neither seconds nor auto"),
    "offset of nothing": (("--offset", "lidar=1"), "no such stream"),
    "backwards": (("--from", "+1s", "--to", "+0.5s"), "not after the start"),
    "not a time": (("--from", "noon"), "cannot read 'noon' as a time"),
    "too late": (("--from", "+1h"), "no samples; it was recorded from 2020-09-13T12:26:40.000 to 2020"),
    "no log": (("--clock", "log"), "no log times"),
    "endless": (("--reorder", "inf"), "reorder horizon is inf"),
    "no rate": (("--rate", "nan"), "not more than 0"),
    "step as json": (("--step", "--json"), "--step is interactive"),
    "step at once": (("--step", "--jobs", "2"), "step by step, on one thread"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_a_usage_error_before_anything_is_played(track, tmp_path: Path, mistake: str):
    arguments, said = MISTAKES[mistake]
    named = [a.format(tmp=tmp_path, project=track[0].parent) for a in arguments]
    folder = [] if "-o" in arguments else ["-o", tmp_path / "run"]
    done = run(*track, *folder, *named)
    assert isinstance(done.exception, UsageError), done.output
    assert said in str(done.exception)
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value"), [("--jobs", "0"), ("--rate", "0"), ("--reorder", "-1"), ("--clock", "wall")]
)
def test_a_number_out_of_range_is_a_usage_error(track, option: str, value: str):
    done = run(*track, option, value)
    assert getattr(done.exception, "exit_code", None) == 2
    assert option in done.exception.format_message()


@pytest.mark.parametrize(
    ("compound", "said"),
    [
        ("Trackk", "there is no compound 'Trackk'"),
        ("{project}/nothing.yaml", "there is no file"),
        ("{project}/track.yaml/Plane", "has no implementation 'Plane'"),
        ("{project}/day", "is a folder, not a compound"),
    ],
)
def test_a_compound_that_is_not_there_is_a_usage_error(project: Path, compound: str, said: str):
    done = run(compound.format(project=project), project / "day")
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)


def test_all_problems_of_a_compound_are_listed(project: Path, tmp_path: Path):
    bad = TRACK.replace("node: Track}", "node: Trakc}").replace("imu -> heading.imu", "imu -> heading.imuu")
    (tmp_path / "my_nodes.py").write_text(NODES)
    (tmp_path / "bad.yaml").write_text(bad)
    done = run(tmp_path / "bad.yaml", project / "day", "-o", tmp_path / "run")
    assert isinstance(done.exception, CompoundError)
    assert "Trakc" in str(done.exception)
    assert "imuu" in str(done.exception)
    assert not (tmp_path / "run").exists()


def test_nodes_that_fail_are_all_named_and_the_rest_is_kept(project: Path, tmp_path: Path):
    out = tmp_path / "run"
    done = run(project / "broken.yaml", project / "day", "-o", out, "--golden", _golden(project, tmp_path))
    assert isinstance(done.exception, NodeError)
    said, where = str(done.exception).splitlines()
    assert said == "the node 'fails' (Fails) failed: ValueError: lost the horizon"
    assert re.fullmatch(rf"  where: fails\.imu@{START_NS + 100_000_000} ns, \w+\.py:\d+", where)
    assert "error: the node 'late' (Fails) failed" in done.stderr
    assert "not compared with" in done.stderr
    kept = tmp_path / "run.failed"
    assert done.stdout.endswith(f"wrote {kept}\n")
    assert len(transect.open(kept / "yaw.parquet").streams[0]) == 200
    assert len(transect.open(kept / "one.parquet").streams[0]) == 10
    assert (out.exists(), (tmp_path / "latest").resolve().name) == (False, "golden")
    found = document(project / "broken.yaml", project / "day")
    assert (found["status"], len(found["errors"])) == ("failed", 2)
    assert found["errors"][0]["node"] == "fails"
    assert found["errors"][0]["t_ns"] == START_NS + 100_000_000


def _golden(project: Path, tmp_path: Path) -> Path:
    run(project / "track.yaml", project / "day", "-o", tmp_path / "golden")
    return tmp_path / "golden"


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Return a folder of five images, the third of them truncated."""
    folder = tmp_path / "pictures" / "left"
    folder.mkdir(parents=True)
    data = cv2.imencode(".png", np.zeros((4, 4), np.uint8))[1].tobytes()
    for number in range(5):
        name = f"{1_560_000_000 + number}.000000000.png"
        (folder / name).write_bytes(data[:20] if number == 2 else data)
    return folder.parent


def test_an_image_that_cannot_be_read_is_left_out_and_the_exit_code_is_3(
    project: Path, pictures: Path, tmp_path: Path
):
    done = run(project / "negative.yaml", pictures, "-o", tmp_path / "run")
    assert done.return_value == 3
    assert "left: 1 of 5 samples could not be read" in done.stdout
    assert len(list((tmp_path / "run" / "out").iterdir())) == 4
    assert "1 lines, messages or files could not be read" in done.stderr
    found = document(project / "negative.yaml", pictures)
    assert found["losses"][0]["file"].endswith("1560000002.000000000.png")
    assert found["statistics"]["streams"]["left"] == {"samples": 5, "played": 4, "late": 0, "lost": 1}


def test_strictly_an_image_that_cannot_be_read_ends_the_run(project: Path, pictures: Path, tmp_path: Path):
    done = run(project / "negative.yaml", pictures, "-o", tmp_path / "run", "--strict")
    assert isinstance(done.exception, ParseError)
    kept = tmp_path / "run.failed"
    assert f"partial outputs are kept in {kept}\n" in done.stderr
    assert json.loads((kept / "run.json").read_text())["status"] == "failed"
    assert len(list((kept / "out").iterdir())) == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_run_keeps_what_there_is(project: Path, tmp_path: Path, jobs: int):
    out = tmp_path / "run.interrupted"
    done = run(project / "presses.yaml", project / "day", "-o", tmp_path / "run", "--jobs", jobs)
    assert done.return_value == 130
    assert "interrupted: 2020-09-13T12:26:4" in done.stderr
    assert f"partial outputs are kept in {out}" in done.stderr
    assert done.stdout.endswith(f"wrote {out}\n")
    content = json.loads((out / "run.json").read_text())
    assert content["status"] == "interrupted"
    kept = len(transect.open(out / "out.parquet").streams[0])
    assert 50 <= kept == content["outputs"]["out"]["samples"] < 200
    assert [p.name for p in tmp_path.iterdir()] == ["run.interrupted"]


def test_interrupted_without_a_folder_nothing_is_kept(project: Path):
    done = run(project / "presses.yaml", project / "day", "--json")
    assert done.return_value == 130
    assert "(+0.490 s); no outputs are kept" in done.stderr
    assert json.loads(done.stdout)["outputs"]["out"]["samples"] == 50


def test_interrupted_twice_it_stops_at_once_and_keeps_what_there_is(project: Path, tmp_path: Path):
    out = tmp_path / "run"
    presses = (project / "presses.yaml", project / "day", "-o", out, "--set", "one.times=2")
    pressed = [run(*presses), run(*presses)]
    for done, name in zip(pressed, ("run.interrupted", "run.interrupted-2"), strict=True):
        assert isinstance(done.exception, KeyboardInterrupt | click.Abort)
        assert f"partial outputs are kept in {tmp_path / name}\n" in done.stderr
        content = json.loads((tmp_path / name / "run.json").read_text())
        assert (content["status"], content["outputs"]["out"]["samples"]) == ("interrupted", 49)


@pytest.mark.parametrize(("error", "name"), [(KeyboardInterrupt, "interrupted"), (OSError, "failed")])
def test_the_folder_of_a_run_is_not_there_before_it_is_judged(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], name: str
):
    there: list[str] = []

    def judge(result: Run, recording: object, draw: object) -> None:
        there.extend(path.name for path in tmp_path.iterdir() if not path.name.startswith("."))
        raise error

    monkeypatch.setattr("transect.evaluation.runs.judge_run", judge)
    done = run(project / "track.yaml", project / "day", "-o", tmp_path / "run")
    assert isinstance(done.exception, error | click.Abort)
    assert there == []
    assert [path.name for path in tmp_path.iterdir()] == [f"run.{name}"]
    assert (tmp_path / f"run.{name}" / "pose.tum").is_file()


def test_what_an_interrupted_run_left_does_not_block_runs_of_all_implementations(tmp_path: Path):
    (tmp_path / "Plain.interrupted-3").mkdir()
    refuse_options_of_one(tmp_path, as_json=False, played_by="")
    (tmp_path / "Plain").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        refuse_options_of_one(tmp_path, as_json=False, played_by="")


@pytest.fixture
def small_files() -> Iterator[None]:
    """Let no file grow beyond 4 MB, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
def test_a_full_disk_is_named_and_no_half_of_a_file_is_left(project: Path, tmp_path: Path):
    out = tmp_path / "run"
    done = run(project / "large.yaml", project / "day", "-o", out)
    assert isinstance(done.exception, OSError)
    assert "File too large" in str(done.exception)
    assert done.exception.filename == "output out"
    out = tmp_path / "run.failed"
    assert f"partial outputs are kept in {out}" in done.stderr
    content = json.loads((out / "run.json").read_text())
    assert (content["status"], content["outputs"]["out"]["files"]) == ("failed", [])
    assert "File too large" in content["errors"][0]
    assert sorted(out.glob("*out*")) == []


def test_a_folder_that_cannot_be_written_at_all_leaves_nothing(project: Path, tmp_path: Path, monkeypatch):
    def full(path: object, text: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("transect.engine.folder.files.write_text", full)
    done = run(project / "track.yaml", project / "day", "-o", tmp_path / "run")
    assert isinstance(done.exception, OSError)
    assert not isinstance(done.exception, TransectError)
    assert "no outputs are kept" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_failing_node_is_said_without_a_traceback_unless_it_is_debugged(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    typed = ["transect", "run", str(project / "broken.yaml"), str(project / "day")]
    monkeypatch.setattr("sys.argv", typed)
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr().err
    assert left.value.code == 1
    assert "error: the node 'fails' (Fails) failed: ValueError: lost the horizon" in said
    assert "Traceback" not in said
    monkeypatch.setattr("sys.argv", [*typed, "--debug"])
    with pytest.raises(NodeError) as raised:
        main()
    assert isinstance(raised.value.__cause__, ValueError)


def test_without_a_compound_the_compounds_are_listed():
    done = run()
    assert done.return_value == 0
    assert "Pose of a camera from its images" in done.stdout
    assert "inputs (some of): Image (left, right, image), WheelState (wheels)" in done.stdout
    assert [each["name"] for each in json.loads(run("--json").stdout)["compounds"]][-1] == "WheelDrift"


def test_help_of_a_compound_lists_its_inputs_outputs_and_parameters(project: Path):
    shown = run("WheelDrift", "--help").stdout
    assert "wheels  WheelState  encoder measurements of wheels and steering" in shown
    assert "odometry.max_gap      0.5       s     > 0 " in shown
    assert "node.gain  1 " in run(f"{project / 'my_nodes.py'}/Heading", "--help").stdout
    alone = document(f"{project / 'my_nodes.py'}/Heading", project / "day", "--set", "node.gain=2")
    assert alone["parameters"]["node"]["gain"] == 2
    assert "Usage:" in shown
