"""`transect inject`, as a person types it."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from tests.datasets.marulan import sample as sdi_sample
from tests.formats.test_truth import write_truth
from tests.test_project import ROOT

import transect
from transect.cli.inject import command
from transect.datasets.marulan.logs import LOGS
from transect.errors import TransectError, UsageError
from transect.simulation.faults import FAULTS

CODES = """
    NO_DATA LATE_START EARLY_STOP GAP RATE JITTER BACKWARD DUPLICATE CLOCK_JUMP CLOCK_DRIFT LATENCY META_TIME
    STUCK SATURATED RANGE_LIMIT NAN NOISE SPIKES BIAS UNIT DUST SMOKE RAIN BLOCKED MULTIPATH BLUR DARK
    OVEREXPOSED HAZE FROZEN_IMAGE FIX_LOST DISAGREE OBJECT_CONFIRMED EXTRINSIC SLIP NIS NEES GATE_INERT
    COV_INVALID POSITION_JUMP
    DIVERGED INLIERS MATCH ROUNDNESS
"""
"""Reasons that a verdict may have."""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], standalone_mode=False)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = sdi_sample.write_dataset(tmp_path / "30-DynamicDayTriangleDust")
    write_truth(folder / "truth")
    return folder


def test_every_fault_says_what_it_counts_and_what_a_check_should_say() -> None:
    for fault in FAULTS.values():
        assert fault.unit
        assert set(fault.reasons) <= set(CODES.split()), fault.name
        assert fault.reasons or fault.damage is not None


def test_the_page_of_faults_is_what_the_faults_say() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "fault_table.py"))
    assert tool["PAGE"].read_text("utf-8") == tool["page"]()


def test_without_a_fault_it_lists_them_all() -> None:
    done = run()
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == list(FAULTS)
    document = json.loads(run("--json").stdout)
    assert {fault["name"] for fault in document["faults"]} == set(FAULTS)
    assert document["faults"][0]["parameters"]["wind"] == 1.5


def test_a_fault_without_a_recording_is_described() -> None:
    lines = {line[:18].strip(): line[18:] for line in run("--fault", "encoder-drift").stdout.splitlines()}
    assert lines["streams"] == "JointState (encoders of joints that also have potentiometers)"
    assert (lines["unit of severity"], lines["detected as"]) == ("rad", "DISAGREE")
    assert lines["parameters"] == "--set radians=0.2"


def test_a_recording_without_a_fault_lists_those_that_can_happen_to_it(dataset: Path) -> None:
    faults = json.loads(run(dataset, "--json").stdout)["faults"]
    listed = {fault["name"]: set(fault["streams"]) for fault in faults}
    assert {"LaserPort", "LaserHorizontal"} <= listed["saturation"] < {s.name for s in transect.open(dataset)}
    assert listed["bit_flip"] == {"files"}
    assert not {"encoder_drift", "swapped_coordinates", "exchanged_cameras"} & set(listed)


def test_it_writes_the_recording_its_truth_and_the_labels(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "noisy"
    done = run(dataset, "--fault", "noise", "--severity", 1, "--seed", 4, "--streams", "LaserPort", "-o", out)
    assert done.return_value == 0
    assert "LaserPort:" in done.stdout
    assert done.stdout.endswith(f"wrote {out}\n")
    labels = pq.ParquetFile(out / "truth" / "faults.parquet").read()
    assert {"stream", "index", "t_ns", "fault", "severity"} <= set(labels.column_names)
    assert set(labels.column("fault").to_pylist()) == {"noise"}
    assert (out / "truth" / "trajectory.tum").exists()
    assert transect.open(out).format == "sdi"


def test_json_has_the_counts_and_nothing_else_is_on_stdout(dataset: Path, tmp_path: Path) -> None:
    done = run(dataset, "--fault", "bit-flip", "--streams", "Nav/*", "-o", tmp_path / "bad", "--json")
    document = json.loads(done.stdout)
    assert list(document["touched"]) == [f"Nav/{LOGS['Nav']}"]
    assert document["labels"] == sum(document["touched"].values()) > 0
    assert document["path"] == str(tmp_path / "bad")


def test_another_format_and_parameters_of_the_fault_can_be_asked_for(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "tables"
    window = ("--from", "+0s", "--to", "+10s")
    done = run(
        *(dataset, "--fault", "latency", "--set", "seconds=2.0", "--severity", 1, *window),
        *("--streams", "Nav", "--format", "parquet", "-o", out),
    )
    assert done.return_value == 0
    before, after = transect.open(dataset)["Nav"], transect.open(out)["Nav"]
    assert (after.t_ns - before.t_ns).tolist() == [2_000_000_000] * len(before)


def test_what_the_format_cannot_carry_is_said(dataset: Path, tmp_path: Path) -> None:
    arguments = ("--fault", "stuck", "--severity", 1, "--format", "rosbag", "-o", tmp_path / "log")
    done = run(dataset, *arguments)
    assert "not written: " in done.stderr


def test_a_format_that_cannot_hold_the_fault_is_refused(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "log"
    window = ("--from", "+0s", "--to", "+10s", "--severity", 1)
    done = run(dataset, "--fault", "latency", "--streams", "Nav", *window, "--format", "carmen", "-o", out)
    assert isinstance(done.exception, TransectError)
    assert "latency would not be in the output" in str(done.exception)
    assert "--format parquet" in str(done.exception)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--fault", "dusk", "-o", "out"), "no fault 'dusk'"),
        (("--fault", "dust"), "no folder to write"),
        (("--fault", "dust", "-o", "out", "--set", "wind"), "not KEY=VALUE"),
        (("--fault", "dust", "-o", "out", "--set", "wind=strong"), "not a number"),
        (("--fault", "dust", "-o", "out", "--severity", "2"), "not between 0 and 1"),
        (("--fault", "dust", "-o", "out", "--format", "described"), "cannot be written"),
    ],
)
def test_a_wrong_question_is_refused_and_nothing_is_written(
    arguments: tuple[str, ...], said: str, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(dataset, *arguments)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_an_existing_target_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    done = run(tmp_path / "not-there", "--fault", "dust", "-o", tmp_path / "full")
    assert isinstance(done.exception, TransectError)
    assert "exists already" in str(done.exception)
    assert (tmp_path / "full" / "mine.txt").read_text() == "mine"


def test_data_that_was_lost_on_reading_gives_exit_code_3(dataset: Path, tmp_path: Path) -> None:
    log = next((dataset / "LaserPort").iterdir())
    log.write_text(log.read_text() + "*1224199789.0 RANGE_DATA rubbish\n")
    done = run(dataset, "--fault", "stuck", "--severity", 1, "-o", tmp_path / "out")
    assert done.return_value == 3
    assert "could not be read" in done.stderr
