"""`transect table faults`: the rules, and what a recording shows."""

import json
from pathlib import Path

import pytest
from tests.datasets.insight.robot import scihi_sample as sample

from transect.cli import command
from transect.errors import StreamError


def table_faults(*arguments: object) -> int:
    """Return the exit code of `transect table faults ...`, run in this process."""
    return command.main(["table", "faults", *(str(a) for a in arguments)], standalone_mode=False)


def test_every_fault_is_listed_with_its_parameter_rule_and_section(capsys: pytest.CaptureFixture[str]):
    assert table_faults() == 0
    out = capsys.readouterr().out
    assert "encoder-pot  (SIS 5.1.3.11)" in out
    # SIS 5.1.3.11: enc_pot_delta = 0.1; enc_pot_samples = 2 are allowed.
    assert "declared on number 3 in a row (more than enc_pot_samples)" in out
    assert "RA_FAULT_DETECT enc_pot_delta = 0.1 rad" in out
    assert "RA_THERMAL temp_max_rotor = 95 degC" in out


def test_the_rules_as_json_are_a_list(capsys: pytest.CaptureFixture[str]):
    table_faults("--json")
    names = {row["name"] for row in json.loads(capsys.readouterr().out)}
    assert {"vref", "stalled", "dvia", "rotor-overheat"} <= names


def test_a_pot_that_leaves_its_encoder_is_found_and_exits_with_four(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    table = sample.rows()
    for row in table[10:14]:
        row["pot2(rad)"] = row["enc2(rad)"] + 0.2
    assert table_faults(sample.write(tmp_path, table)) == 4
    out = capsys.readouterr().out
    line = next(line for line in out.split("\n") if line.startswith("encoder-pot  joint 2 "))
    assert line.split()[-5:] == ["0.2", "rad", "0.1", "4", "Arm/SciHi"]
    assert "1 fault; " in out
    assert table_faults(tmp_path, "--letter") == 4
    line = next(line for line in capsys.readouterr().out.split("\n") if " encoder-pot " in line)
    assert line.split()[-4:] == ["0.2", "rad", "0.1", "4"]
    assert "joint 2" in line


def test_faults_are_grouped_and_the_worst_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    table = sample.rows()
    for row in (*table[4:8], *table[12:16]):
        row["pot2(rad)"] = row["enc2(rad)"] + 0.15
    for row in table[10:14]:
        row["pot3(rad)"] = row["enc3(rad)"] + 0.4
    assert table_faults(sample.write(tmp_path, table), "--json") == 4
    document = json.loads(capsys.readouterr().out)
    worst, other = (g for g in document["groups"] if g["fault"] == "encoder-pot")
    assert (worst["part"], worst["times"]) == ("joint 3", 1)
    assert (other["part"], other["times"], other["samples"]) == ("joint 2", 2, 4)
    assert worst["excess"] == pytest.approx(3.0, abs=0.01)
    assert len(document["streams"]["Arm/SciHi"]["events"]) >= 3


def test_what_could_not_be_looked_for_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    table_faults(sample.write(tmp_path))
    out = capsys.readouterr().out
    line = next(line for line in out.split("\n") if line.startswith("runaway-joint "))
    assert "runaway_samples" in line


def test_a_recording_without_the_arm_is_refused(tmp_path: Path):
    track = tmp_path / "track.txt"
    track.write_text("1.0 0 0 0 0 0 0 1\n2.0 1 0 0 0 0 0 1\n")
    with pytest.raises(StreamError, match="no telemetry of InSight's arm"):
        table_faults(track)
