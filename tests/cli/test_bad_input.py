"""What people's files are really like: everything good is kept, the rest located, in bounded memory.

Each case is opened by `transect info`; where memory is at stake, by a process whose peak is measured.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import transect

LIMIT_BYTES = 512 * 2**20
CHILD = """
import resource, sys
from transect.cli import main
sys.argv = ["transect", *sys.argv[1:]]
try:
    main()
finally:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"peak {peak}", file=sys.stderr)
"""


def info(*arguments: object) -> tuple[int, str]:
    """Return exit code and all output of `transect info`."""
    done = transect("info", *arguments)
    return done.returncode, done.stdout + done.stderr


def measured_info(*arguments: object) -> tuple[int, str, int]:
    """Return exit code, all output, and peak memory in bytes of `transect info` in a process of its own."""
    # A child inherits the peak of the process that forks it, so a small interpreter starts it.
    starter = (
        "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', *sys.argv[1:]]).returncode)"
    )
    command = [sys.executable, "-S", "-c", starter, CHILD, "info", *(str(a) for a in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=dict(os.environ))
    peak = int(done.stderr.rsplit("peak ", 1)[1])
    return done.returncode, done.stdout + done.stderr, peak


def euroc(folder: Path) -> Path:
    """Write a small EuRoC folder by hand."""
    imu = folder / "mav0" / "imu0"
    imu.mkdir(parents=True)
    rows = [f"{1403715273262142976 + 5_000_000 * i},0.1,0.2,0.3,9.{i:02d},0.5,0.6\n" for i in range(20)]
    (imu / "data.csv").write_text("#timestamp [ns],wx,wy,wz,ax,ay,az\n" + "".join(rows))
    (imu / "sensor.yaml").write_text("%YAML:1.0\nsensor_type: imu\n")
    return folder


def edit(path: Path, change: Callable[[list[str]], None]) -> None:
    lines = path.read_text().splitlines(keepends=True)
    change(lines)
    path.write_text("".join(lines))


def cut_last(lines: list[str]) -> None:
    lines[-1] = lines[-1][:30]


def text_in_number(lines: list[str]) -> None:
    lines[5] = lines[5].replace("0.2", "zwei")


def windows(lines: list[str]) -> None:
    lines[:] = [line.replace("\n", "\r\n") for line in lines]


def not_measured(lines: list[str]) -> None:
    lines[5] = lines[5].replace("0.2", "NaN")


def jump_back(lines: list[str]) -> None:
    lines[5], lines[15] = lines[15], lines[5]


def twice(lines: list[str]) -> None:
    lines[5] = lines[4]


@pytest.mark.parametrize(
    ("change", "kept", "code", "said"),
    [
        (cut_last, 19, 3, "data.csv:21"),
        (text_in_number, 19, 3, "data.csv:6"),
        (windows, 20, 0, ""),
        (not_measured, 20, 0, ""),
        (jump_back, 20, 0, ""),
        (twice, 20, 0, ""),
    ],
)
def test_a_blemished_table_keeps_its_good_rows(
    tmp_path: Path, change: Callable[[list[str]], None], kept: int, code: int, said: str
) -> None:
    folder = euroc(tmp_path / "r")
    edit(folder / "mav0/imu0/data.csv", change)
    exit_code, output = info(folder)
    assert exit_code == code, output
    assert f" {kept} " in output
    assert said in output
    if code == 3:
        exit_code, output = info(folder, "--strict")
        assert exit_code == 1
        assert said in output
        assert "Traceback" not in output


def test_disorder_of_stamps_is_counted(tmp_path: Path) -> None:
    folder = euroc(tmp_path / "r")
    edit(folder / "mav0/imu0/data.csv", jump_back)
    edit(folder / "mav0/imu0/data.csv", lambda lines: lines.__setitem__(9, lines[8]))
    _, output = info(folder, "--json")
    (stream,) = json.loads(output)["streams"]
    assert stream["backwards"] == 2
    assert stream["repeated"] == 1


def test_an_image_that_is_not_one_is_named_when_it_is_asked_for(tmp_path: Path) -> None:
    import transect
    from transect.errors import ParseError

    folder = euroc(tmp_path / "r")
    camera = folder / "mav0" / "cam0"
    (camera / "data").mkdir(parents=True)
    (camera / "data" / "1.png").write_text("this is text")
    (camera / "data.csv").write_text("#timestamp [ns],filename\n1,1.png\n")
    (camera / "sensor.yaml").write_text("sensor_type: camera\n")
    recording = transect.open(folder)
    with pytest.raises(ParseError, match=r"1\.png is not an image"):
        _ = recording["cam0"][0].payload


def test_a_zip_that_points_outside_keeps_the_rest(tmp_path: Path) -> None:
    folder = euroc(tmp_path / "r")
    path = tmp_path / "r.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.rglob("*"):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
        archive.writestr("../../evil.csv", "1,2\n")
        archive.writestr("/etc/evil.csv", "1,2\n")
    code, output = info(path)
    assert code == 3
    assert output.count("the name points outside the archive") == 2
    assert "imu0" in output
    assert info(path, "--strict")[0] == 1


def test_a_bomb_is_refused_in_little_memory(tmp_path: Path) -> None:
    folder, path = euroc(tmp_path / "r"), tmp_path / "r.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in folder.rglob("*"):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
        with archive.open("mav0/imu1/data.csv", "w", force_zip64=True) as member:
            for _ in range(12):
                member.write(b"0" * 50_000_000)
    code, output, peak = measured_info(path)
    assert code == 3
    assert "which no recording does" in output
    assert peak < LIMIT_BYTES


def test_a_cloud_that_claims_a_billion_points_is_refused_in_little_memory(tmp_path: Path) -> None:
    from transect.errors import ParseError
    from transect.formats.shared.clouds import decode_cloud

    header = (
        "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 1000000000\nHEIGHT 1\n"
        "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 1000000000\nDATA binary\n"
    )
    path = tmp_path / "a.pcd"
    path.write_bytes(header.encode() + b"\0" * 120)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ParseError):
        decode_cloud(path.read_bytes(), "a.pcd")
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 100 * 2**20
    assert measured_info(path)[2] < LIMIT_BYTES


def test_megabytes_of_empty_lists_do_not_fill_the_memory(tmp_path: Path) -> None:
    count = 700_000  # 56 MB and more as Python objects
    path = tmp_path / "a.msg"
    path.write_bytes(b"\x81\xa2/a\xdd" + count.to_bytes(4, "big") + b"\x90" * count)
    code, output, peak = measured_info(path, "--read-as", "cdff_msgpack")
    assert code == 0, output
    assert "Traceback" not in output
    assert peak < 140 * 2**20


def test_a_missing_folder_and_an_empty_file_are_said(tmp_path: Path) -> None:
    folder = euroc(tmp_path / "r")
    (folder / "mav0/imu0/data.csv").write_text("")
    code, output = info(folder)
    assert code in (0, 3)
    assert "Traceback" not in output
    assert "does not exist" in info(tmp_path / "nowhere")[1]


def test_a_stream_that_cannot_be_read_is_left_out_and_the_others_are_shown(tmp_path: Path) -> None:
    streams = [
        f"- {{name: {name}, file: {name}.csv, time: {{column: t, unit: s}}" for name in ("good", "bad")
    ]
    (tmp_path / "recording.yaml").write_text(f"streams:\n{streams[0]}}}\n{streams[1]}, columns: {{x: y}}}}\n")
    for name in ("good", "bad"):
        (tmp_path / f"{name}.csv").write_text("t,x\n1,2\n2,3\n")
    code, output = info(tmp_path)
    assert code == 3
    assert "lost: bad.csv: bad is left out: bad.csv has no column 'y' (known are: t, x)" in output
    assert "good " in output
    assert info(tmp_path, "--strict")[0] == 1
    (tmp_path / "good.csv").unlink()
    code, output = info(tmp_path)
    assert (code, "error: bad.csv has no column 'y'" in output) == (1, True)
