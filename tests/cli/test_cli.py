"""The command line, as a person types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from tests.commands import transect as run

from transect import formats
from transect.formats.ameds.sample import sample_recording


@pytest.fixture(scope="module")
def etna(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made-up") / "etna"
    formats.write(sample_recording(), folder, "ameds")
    return folder


def test_info_prints_a_table_and_exits_with_zero(etna: Path) -> None:
    done = run("info", etna)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Lidar" in done.stdout
    assert "interact" in done.stdout


def test_the_package_is_the_command(etna: Path) -> None:
    command = [sys.executable, "-m", "transect", "info", str(etna)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, run("info", etna).stdout)


def test_info_as_json_has_streams_and_nothing_else_on_stdout(etna: Path) -> None:
    done = run("info", etna, "--json", "--clocks", "--frames")
    document = json.loads(done.stdout)
    assert {s["name"] for s in document["streams"]} >= {"Gnss/Pose", "Lidar", "MainCam"}
    assert document["losses"] == []
    assert all(len(source["sha256"]) == 64 for source in document["sources"])
    assert {edge["child"] for edge in document["frames"]} >= {"Lidar"}
    assert {clock["stream"] for clock in document["clocks"]} == {s["name"] for s in document["streams"]}


def test_info_does_not_wake_pandas(etna: Path) -> None:
    code = f"import sys, transect; repr(transect.open({str(etna)!r})); print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False", done.stderr


def test_a_recording_with_a_bad_line_exits_with_three_and_strict_refuses(etna: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    assert run("export", etna, "--format", "ameds", "-o", damaged).returncode == 0
    file = damaged / "GnssBodyAcceleration.csv"
    lines = file.read_text().splitlines(keepends=True)
    lines[3] = "oops\n"
    file.write_text("".join(lines))
    done = run("info", damaged)
    assert done.returncode == 3
    assert "GnssBodyAcceleration.csv:4" in done.stdout
    strict = run("info", damaged, "--strict")
    assert strict.returncode == 1
    assert "GnssBodyAcceleration.csv:4" in strict.stderr
    assert "Traceback" not in strict.stderr


def test_a_cut_keeps_its_format_and_opens_again(etna: Path, tmp_path: Path) -> None:
    out = tmp_path / "cut"
    done = run(
        "export", etna, "--format", "ameds", "-o", out, "--from", "+1s", "--to", "+2s", "--streams", "Gnss/*"
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(run("info", out, "--json").stdout)
    assert document["format"] == "ameds"
    assert all(s["name"].startswith("Gnss/") for s in document["streams"])
    start, end = document["spans_ns"]["utc"]
    assert end - start < 10**9


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_an_export_to_tables_opens_again_with_the_same_samples(etna: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    done = run("export", etna, "--format", name, "-o", out)
    assert done.returncode == 0, done.stderr
    before = {s["name"]: s["samples"] for s in json.loads(run("info", etna, "--json").stdout)["streams"]}
    after = {s["name"]: s["samples"] for s in json.loads(run("info", out, "--json").stdout)["streams"]}
    assert after == before


def test_pictures_are_written(etna: Path, tmp_path: Path) -> None:
    for what in ("frames", "streams"):
        out = tmp_path / f"{what}.png"
        assert run("draw", what, etna, "-o", out).returncode == 0
        assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("info", "no/such/path"), 1, "does not exist"),
        (("ifno",), 2, "did you mean 'info'"),
        (("info",), 2, "PATH"),
        (("export", ".", "--format", "csv"), 2, "--out"),
        (("ls", "marulan"), 2, "known are"),
    ],
)
def test_mistakes_get_one_clear_message(
    arguments: tuple[str, ...], code: int, message: str, tmp_path: Path
) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_of_unknown_files_lists_what_each_format_missed(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("nothing here")
    done = run("info", tmp_path)
    assert done.returncode == 1
    for expected in ("no format recognises", "ameds", "rosbag", "transect new recording"):
        assert expected in done.stderr


def test_an_empty_file_and_an_empty_folder_are_called_that(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "folder").mkdir()
    assert "is empty" in run("info", tmp_path / "empty.csv").stderr
    assert "holds no files" in run("info", tmp_path / "folder").stderr


def test_a_full_disk_is_an_error_without_a_traceback(etna: Path) -> None:
    done = run("export", etna, "--format", "tum", "-o", "/dev/full/x.tum", "--streams", "Platform/2DPose*")
    assert done.returncode == 1
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_catalogues_are_listed(tmp_path: Path) -> None:
    assert {"ameds", "rosario", "sdi"} <= {e["name"] for e in json.loads(run("ls", "--json").stdout)}
    dusty = json.loads(run("ls", "sdi", "--condition", "dust", "--json").stdout)
    assert "04-StaticLightDust" in {entry["name"] for entry in dusty}
    assert "07-StaticSmoke" not in {entry["name"] for entry in dusty}


def test_the_cache_tells_its_size_and_can_be_cleared(etna: Path, tmp_path: Path) -> None:
    own = {"TRANSECT_CACHE_DIR": str(tmp_path / "cache")}
    run("info", etna, **own)
    assert json.loads(run("cache", "info", "--json", **own).stdout)["entries"] > 0
    assert run("cache", "clear", **own).returncode == 0
    assert json.loads(run("cache", "info", "--json", **own).stdout)["entries"] == 0


def test_the_doctor_names_versions(tmp_path: Path) -> None:
    facts = json.loads(run("doctor", "--json").stdout)
    assert facts["python"].startswith("3.")
    assert facts["packages"]["numpy"]


def test_a_pipe_that_closes_early_is_no_error(etna: Path) -> None:
    command = " ".join(
        ["exec", f"'{sys.executable}' -c 'from transect.cli import main; main()'", "info", f"'{etna}'"]
    )
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; ({command}) | head -1"], capture_output=True, text=True, timeout=60
    )
    assert "Traceback" not in done.stderr


def test_an_export_that_leaves_a_damaged_image_out_exits_with_three(tmp_path: Path) -> None:
    (tmp_path / "in" / "left").mkdir(parents=True)
    good = cv2.imencode(".bmp", np.zeros((4, 4), np.uint8))[1].tobytes()
    for second, data in ((1, good), (2, b"not an image")):
        (tmp_path / "in" / "left" / f"{1_560_000_000 + second}.000000000.bmp").write_bytes(data)
    done = run("export", tmp_path / "in", "--format", "euroc", "-o", tmp_path / "out")
    assert done.returncode == 3
    assert "lost: left: 1 of 2 payloads are left out" in done.stderr
    assert (tmp_path / "out").is_dir()


@pytest.mark.parametrize("group", [(), ("draw",), ("table",), ("graph",), ("new",), ("cache",)])
def test_no_sentence_of_the_help_is_cut_at_80_columns(group: tuple[str, ...]) -> None:
    shown = run(*group, "--help", COLUMNS="80").stdout.splitlines()
    assert not [line for line in shown[1:] if line.endswith("...") or len(line) > 80]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("inof", "x"), "there is no verb 'inof'; did you mean 'info'?"),
        (("archive", "biuld"), "there is no command 'biuld'; did you mean 'build'?"),
        (("graph", "chek"), "there is no command 'chek'; did you mean 'check'"),
    ],
)
def test_a_typo_in_a_command_is_told_what_was_meant(typed: tuple[str, ...], meant: str) -> None:
    done = run(*typed)
    assert done.returncode == 2
    assert meant in done.stderr


def test_times_that_look_like_seconds_are_told_how_they_are_written(etna: Path) -> None:
    assert "did you mean +5s?" in run("check", etna, "--from", "5s").stderr
