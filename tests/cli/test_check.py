"""`transect check`: a screen, a document, files, exit codes."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from tests.commands import transect
from tests.integrity.recordings import drive, yard
from tests.integrity.test_laser_checks import at_rest, sparse_cloud

from transect import formats
from transect.integrity import VerdictTable
from transect.simulation.faults import inject


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("check") / "clean"
    formats.write(drive(20), folder, format="parquet")
    return folder


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("check") / "faulty"
    recording, _ = inject(drive(20), "stuck", 0.5, streams=["imu"])
    recording, _ = inject(recording, "nan", 1.0, streams=["imu"], start="+14s", end="+18s")
    formats.write(recording, folder, format="parquet")
    return folder


def test_a_clean_recording_is_ok_and_exits_with_0(clean: Path) -> None:
    done = transect("check", clean)
    assert done.returncode == 0, done.stderr
    assert "3 sensors: 3 OK" in done.stdout


def test_a_screen_has_a_strip_a_sentence_and_what_to_do(faulty: Path) -> None:
    done = transect("check", faulty)
    assert done.returncode == 4
    lines = done.stdout.splitlines()
    assert max(map(len, lines[1:])) <= 80
    strip = next(line for line in lines if line.startswith("imu"))
    assert strip.endswith(" BAD")
    assert "-----#####" in strip  # from 5 s to 10 s
    assert "repeated one sample: +5 s to +10 s" in done.stdout
    assert "(S04 NAN)" in done.stdout  # every reason that is BAD has its sentence
    assert "try: restart the sensor" in done.stdout
    assert next(line for line in lines if line.startswith("odom")).endswith(" OK")


def test_a_sensor_without_a_baseline_is_unknown_and_a_reference_helps(tmp_path: Path) -> None:
    formats.write(sparse_cloud(), tmp_path / "day", format="parquet")
    formats.write(at_rest(yard(12, seed=3)), tmp_path / "clear", format="parquet")
    done = transect("check", tmp_path / "day")
    assert done.returncode == 0
    assert next(line for line in done.stdout.splitlines() if line.startswith("laser")).endswith(" UNKNOWN")
    assert "NO_BASELINE" in done.stdout
    assert "--reference CLEAR" in done.stdout
    assert f"try: transect check {tmp_path / 'day'} --reference" in " ".join(done.stdout.split())
    assert transect("check", tmp_path / "day", "--reference", tmp_path / "clear").returncode == 4
    missing = transect("check", tmp_path / "day", "--reference", tmp_path / "none")
    assert missing.returncode in (1, 2)
    assert "none" in missing.stderr


def test_json_names_the_problem_and_files_hold_verdicts_and_pictures(faulty: Path, tmp_path: Path) -> None:
    done = transect("check", faulty, "--json", "-o", tmp_path / "out", "--check", "S01", "--check", "T01")
    assert done.returncode == 4
    document = json.loads(done.stdout)
    sensors = {each["sensor"]: each for each in document["sensors"]}
    assert [sensors[name]["state"] for name in ("gps", "imu", "odom")] == ["OK", "BAD", "OK"]
    assert sensors["imu"]["problems"][0]["reason"] == "STUCK"
    verdicts = VerdictTable.read(tmp_path / "out" / "verdicts.parquet")
    assert verdicts.csv() == (tmp_path / "out" / "verdicts.csv").read_text()
    assert set(verdicts.column("check")) == {"S01", "T01"}
    pictures = sorted(path.name for path in (tmp_path / "out" / "pictures").iterdir())
    assert pictures == ["01_imu_STUCK.png", "sensors.png"]


def test_a_muted_verdict_does_not_count_and_its_reason_is_repeated(faulty: Path, tmp_path: Path) -> None:
    config = tmp_path / "robot.yaml"
    config.write_text('mute: [{checks: "S0*", streams: imu, reason: a dummy was logged}]\n')
    done = transect("check", faulty, "--config", config, "--check", "S01", "--check", "T01")
    assert done.returncode == 0
    assert "muted: S01 of imu: a dummy was logged" in done.stdout


def test_the_times_that_document_004_misprints_are_found() -> None:
    # integrity.md, section 0: 35 of 78 UTC times, and AEDT of 01 and 02, start and end
    done = transect("check", "--catalogue", "sdi", "--json")
    assert done.returncode == 4
    misprints = json.loads(done.stdout)["misprints"]
    late = [each for each in misprints if each["column"] == "utc"]
    assert (len(late), len({each["name"] for each in late})) == (35, 28)
    assert {each["off_s"] for each in late} == {1.0}
    local = [each for each in misprints if each["column"] == "aedt"]
    assert [(each["name"][:2], each["which"], each["off_s"]) for each in local] == [
        ("01", "start", -7200.0), ("01", "end", -7200.0), ("02", "start", -7200.0), ("02", "end", -7200.0),
    ]  # fmt: skip
    assert transect("check", "--catalogue", "ameds").returncode == 2


def test_a_name_out_of_a_log_does_not_command_the_terminal(tmp_path: Path) -> None:
    config = tmp_path / "robot.yaml"
    config.write_text('streams: {imu: {sensor: "imu\\e[31m"}}\n')
    formats.write(drive(3), tmp_path / "day", format="parquet")
    done = transect("check", tmp_path / "day", "--config", config)
    assert "\x1b" not in done.stdout


def test_what_to_try_can_be_typed(tmp_path: Path) -> None:
    jumped, _ = inject(drive(20), "clock_jump", 1.0, streams=["imu"], start="+5s", end="+9s")
    folder = tmp_path / "a day"
    formats.write(jumped, folder, format="parquet")
    done = transect("check", folder, "--all", "--json")
    problems = [each for sensor in json.loads(done.stdout)["sensors"] for each in sensor["problems"]]
    tries = {each["reason"]: each["mend"] for each in problems}
    assert "CLOCK_JUMP" in tries
    assert not re.search(r"\b(?:COMPOUND|PATH|STREAM|TIME)\b|[{}]", " ".join(tries.values()))
    typed = shlex.split(tries["CLOCK_JUMP"].partition("transect ")[2].partition(";")[0])
    assert typed[:2] == ["check", str(folder)]
    assert transect(*typed).returncode in (0, 4)
