"""`transect table arm`: the table, its verdict and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.datasets.insight.robot import scihi_sample as sample

from transect.cli import command
from transect.errors import ParseError, StreamError, UsageError


def table_arm(*arguments: object) -> int:
    """Return the exit code of `transect table arm ...`, run in this process."""
    return command.main(["table", "arm", *(str(a) for a in arguments)], standalone_mode=False)


def spoilt(heading: str, by: float) -> list[dict[str, float]]:
    table = sample.rows()
    table[7][heading] += by
    return table


def test_a_consistent_file_prints_its_table_and_a_sentence_and_exits_with_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert table_arm(sample.write(tmp_path)) == 0
    out = capsys.readouterr().out
    assert "Arm/SciHi" in out
    assert any(
        line.split()[:2] == ["x_enc_defl", "Scoop"] and "consistent" in line for line in out.split("\n")
    )
    assert out.rstrip().endswith("56 columns are consistent; none disagrees.")  # 18 of all rows, 19 a tool


def test_what_a_residual_proves_is_said_below_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table_arm(sample.write(tmp_path))
    out = capsys.readouterr().out
    for word in ("proved:", "printed:", "assumed:", "measured:"):
        assert f"\n{word} " in out
    reading = next(line for line in out.split("\n") if line.endswith("F_T as printed, gravity added"))
    number = reading.split()[0]
    assert [line.split()[0] for line in out.split("\n") if line.endswith(f" {number}")] == [
        "Fr",
        "Ft",
        "Fz",
    ] * 2


def test_a_spoilt_column_exits_with_four_and_is_named(tmp_path: Path) -> None:
    folder = sample.write(tmp_path, spoilt("x_enc(m)", 0.002))
    code = "from transect.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "table", "arm", str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ),
    )
    assert (done.returncode, done.stderr) == (4, "")
    assert "1 disagrees: x_enc (Scoop)" in done.stdout


def test_json_has_every_residual_and_null_for_missing_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = sample.write(tmp_path, spoilt("Fz(N)", 1.0), parameters=sample.PLACES)
    table_arm(folder, "--json")
    document = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    (table,) = document["tables"]
    assert table["stream"] == "Arm/SciHi"
    fz = next(r for r in table["columns"] if (r["column"], r["tool"]) == ("Fz", "Scoop"))
    assert fz["verdict"] == "undecided"  # the links' masses are not all known
    assert document["parameters"] == [f"the parameter files of {tmp_path.name}", "the SIS"]
    table_arm(sample.write(tmp_path / "bare", parameters=None), "--json")
    bare = json.loads(capsys.readouterr().out)["tables"][0]["columns"]
    scoop = next(r for r in bare if (r["column"], r["tool"]) == ("x_enc", "Scoop"))
    assert (scoop["verdict"], scoop["max_abs"]) == ("not computed", None)
    assert scoop["remark"] == "RA_ARM_PARAMS lacks x_scoop"


def test_a_parameter_file_is_put_over_those_of_the_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = sample.write(tmp_path / "data", parameters=sample.PLACES.replace("0.12", "0.21"))
    assert table_arm(folder) == 4  # the scoop is elsewhere
    beside = tmp_path / "mine.txt"
    beside.write_text(sample.PARAMETERS)
    capsys.readouterr()
    assert table_arm(folder, "--parameters", beside) == 0
    assert "none disagrees" in capsys.readouterr().out


def test_a_parameter_file_with_a_bad_line_is_data_lost_and_strict_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = sample.write(tmp_path / "data", parameters=None)
    beside = tmp_path / "mine.txt"
    beside.write_text(sample.PARAMETERS + "\nParameter Set: RA_THERMAL\nCM_r = [ 0.1 oops ]\n")
    assert table_arm(folder, "--parameters", beside) == 3
    assert "exit code 3" in capsys.readouterr().err
    with pytest.raises(ParseError, match=r"mine\.txt"):
        table_arm(folder, "--parameters", beside, "--strict")


def test_a_file_without_parameters_is_refused(tmp_path: Path) -> None:
    folder = sample.write(tmp_path / "data")
    (tmp_path / "empty.txt").write_text("nothing here\n")
    with pytest.raises(UsageError, match="no parameters"):
        table_arm(folder, "--parameters", tmp_path / "empty.txt")


def test_lost_lines_exit_with_three_and_a_bad_verdict_goes_before_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, by, code in (("whole", 0.0, 3), ("spoilt", 0.002, 4)):
        folder = sample.write(tmp_path / name, spoilt("x_enc(m)", by))
        with (folder / sample.NAME).open("a") as file:
            file.write("oops\r\n")
        assert table_arm(folder) == code
        assert "could" in capsys.readouterr().err


def test_a_table_of_no_rows_is_computed_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = sample.write(tmp_path)
    (folder / sample.NAME).write_text(",".join(sample.HEADINGS) + "\r\n")
    assert table_arm(folder) == 0
    assert "0 columns are consistent" in capsys.readouterr().out


def test_another_robots_recording_is_an_error_that_says_what_is_needed(tmp_path: Path) -> None:
    (tmp_path / sample.PARAMETER_NAME).write_text(sample.PARAMETERS)
    with pytest.raises(StreamError, match="no SciHi"):
        table_arm(tmp_path)
