"""The command line, as a person types it."""

from __future__ import annotations

import errno
import functools
import json
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from unittest import mock

import cv2
import numpy as np
import pytest
from tests.commands import transect as run

from transect import formats
from transect.datasets.ameds.folders.sample import sample_recording

ROOT = Path(__file__).resolve().parents[2]


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


@pytest.mark.parametrize(
    ("name", "content", "near"),
    [
        ("readme.md", b"nothing here", "carmen"),
        ("counts.txt", b"1 2 3\n4 5 6\n", "csv"),
        ("log.bin", bytes(range(256)), "pcd"),
        ("later.bag", b"#ROSBAG V9.9\n", "rosbag"),
    ],
)
def test_a_file_of_no_format_names_the_three_nearest_and_how_to_see_all(
    name: str, content: bytes, near: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    done = run("info", file)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) < 12
    nearest = done.stderr.partition("the nearest formats miss\n")[2].partition("  try:")[0].splitlines()
    assert len(nearest) == 3
    assert near in {line.split()[0] for line in nearest}
    listed = run("info", file, "--formats")
    assert f"transect info {file} --formats" in done.stderr
    assert (listed.returncode, {"ameds", "rosbag", near} <= set(listed.stdout.split())) == (0, True)


@pytest.mark.parametrize("order", ["little", "big"])
def test_a_capture_of_packets_is_refused_as_one_though_a_receiver_speaks_in_it(
    order: str, tmp_path: Path
) -> None:
    sentence = b"$GPRMC,214829,A,3707.7900,N,12139.2900,W,000.0,112.7,280612,013.3,E,D*0D\r\n"
    magic = (0xA1B2C3D4).to_bytes(4, order)  # type: ignore[arg-type]
    packets = [bytes(42) + bytes(range(256)) * 4, bytes(42) + bytes(198) + sentence.ljust(314, b"\0")] * 30
    (tmp_path / "drive.pcap").write_bytes(magic + bytes(20) + b"".join(bytes(16) + each for each in packets))
    done = run("info", tmp_path / "drive.pcap")
    assert (done.returncode, "capture of network packets" in done.stderr) == (1, True)
    (tmp_path / "capture.log").write_bytes(b"".join(packets))  # without the header of a capture
    assert "no format recognises" in run("info", tmp_path / "capture.log").stderr
    (tmp_path / "receiver.log").write_bytes(b"\xff\xfe" * 8 + sentence * 20)  # noise of a serial line
    assert "nmea" in run("info", tmp_path / "receiver.log").stdout


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
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {
        re.split("[^A-Za-z0-9_.-]", each)[0].lower() for each in required
    }  # with upper bounds, too: numpy<3
    assert {name: facts["packages"].get(name) for name in names} == {name: version(name) for name in names}


def test_a_place_on_a_map_is_in_degrees_where_positions_are_on_earth(etna: Path, tmp_path: Path) -> None:
    out = tmp_path / "track.png"
    for text in ("here=91,13", "here=38,181"):
        wrong = run("draw", "track", etna, "--place", text, "-o", out)
        assert (wrong.returncode, "is no latitude and longitude in degrees" in wrong.stderr) == (2, True)
    assert not out.exists()


def test_a_moment_is_drawn_of_what_was_there_and_a_cloud_is_coloured_if_asked(
    etna: Path, tmp_path: Path
) -> None:
    drawn = run("draw", "moment", etna, "--dpi", 50, "-o", tmp_path / "moment.png", "--colours", 16)
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "moment.png").read_bytes().startswith(b"\x89PNG")


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
        (("inof", "x"), "there is no command 'inof'; did you mean 'info'?"),
        (("archive", "biuld"), "there is no command 'biuld'; did you mean 'build'?"),
        (("graph", "chek"), "there is no command 'chek'; did you mean 'check'"),
    ],
)
def test_a_typo_in_a_command_suggests_the_right_one(typed: tuple[str, ...], meant: str) -> None:
    done = run(*typed)
    assert done.returncode == 2
    assert meant in done.stderr


def test_times_that_look_like_seconds_have_a_hint(etna: Path) -> None:
    assert "did you mean +5s?" in run("check", etna, "--from", "5s").stderr


def test_files_that_cannot_be_joined_name_a_command_that_opens_them(tmp_path: Path) -> None:
    for name, start in (("a b.nmea", "214829"), ("b.nmea", "214829")):
        body = f"GPGGA,{start},3707.7900,N,12139.2900,W,1,08,0.9,10.0,M,0.0,M,,"
        total = functools.reduce(lambda a, b: a ^ b, body.encode())
        (tmp_path / name).write_text(f"${body}*{total:02X}\r\n")
    done = run("info", tmp_path / "a b.nmea", tmp_path / "b.nmea")
    assert (done.returncode, "overlap" in done.stderr) == (1, True)
    hint = done.stderr.partition("try:")[2].partition("  keeps")[0]
    words = shlex.split(hint)
    assert words[0] == "transect"
    again = run(*words[1:])
    assert again.returncode == 0
    assert {"a b/Gps/Fix", "b/Gps/Fix"} <= {line[:11].strip() for line in again.stdout.splitlines()}


def test_a_folder_of_logs_of_several_kinds_names_a_command_that_opens_one(tmp_path: Path) -> None:
    (tmp_path / "walk.txt").write_text("1.0 0 0 0 0 0 0 1\n2.0 1 0 0 0 0 0 1\n" * 12)
    (tmp_path / "ride.txt").write_text("1.0 0 0 0 0 0 0 1\n2.0 1 0 0 0 0 0 1\n" * 12)
    done = run("info", tmp_path)
    assert done.returncode in (1, 2)
    hint = done.stderr.partition("try:")[2].strip().splitlines()[0]
    again = run(*shlex.split(hint)[1:])
    assert (again.returncode, "Trajectory" in again.stdout) == (0, True)


def test_a_reader_that_went_away_ends_a_command_without_a_failure(etna: Path) -> None:
    gone = mock.Mock(side_effect=BrokenPipeError(errno.EPIPE, "broken pipe"))
    with mock.patch("transect.cli.info.show_summary", gone):
        done = run("info", etna)
    assert (done.returncode, done.stderr) == (0, "")
