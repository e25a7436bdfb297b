"""What verbs that use a run say when the run was bad, or when its inputs are not what they were."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.algorithms.slam.rooms import block, record, walk
from tests.cli.viewed import view
from tests.commands import Done, transect

from transect import formats
from transect.engine.folder import check_run

pytest.importorskip("gtsam")
CHANGED = "warning: the inputs of run changed since it ran: wheels.parquet was changed"
BAD = "9 of 10 scans did not match"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recording, another of the same names, and the run of a SLAM on the first."""
    folder = tmp_path_factory.mktemp("made")
    for name, begin, step in (("day", 0.0, 0.2), ("other", 0.35, 0.1)):
        way = walk([(begin, 0.0), (6.0, 0.0)], step=step)
        formats.write(record(block(), way), folder / name, "parquet")
    for name, run in (("other", "second"), ("day", "run")):
        done = transect("run", "LaserSlam", name, "-o", run, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "place", symlinks=True)


def change(place: Path) -> None:
    shutil.copyfile(place / "other" / "wheels.parquet", place / "day" / "wheels.parquet")


def spoil(run: Path, **said: Any) -> None:
    """Let a run be one that failed, or concluded that its result is bad."""
    document = json.loads((run / "run.json").read_text("utf-8"))
    (run / "run.json").write_text(json.dumps(document | said), "utf-8")


def conclude_bad(run: Path) -> None:
    spoil(run, conclusions=[{"node": "slam", "text": BAD, "bad": True}])


USES = {
    "eval": "eval run/pose.tum run",
    "eval of a port": "eval run/pose.tum run:trajectory",
    "eval of a file": "eval run/trajectory.tum run/pose.tum",
    "eval as JSON": "eval run/pose.tum run --json",
    "eval as CSV": "eval run/pose.tum run --format csv",
    "compare": "compare run",
    "compare as a table of a paper": "compare run --format latex",
    "compare by a truth": "compare run --truth run/pose.tum",
    "show a map": "maps show run",
    "export a map": "maps export run -o floor.yaml",
    "export the map itself": "maps export run/map -o floor.tif",
    "merge maps": "maps merge run second -o both",
    "view": "view run --save scene.rrd",
    "draw": "draw track run -o track.png",
    "find itself in a map": "run LaserSlam other --map run -o again",
    "extend a map": "run LaserSlam other --map run/map --extend -o again",
    "report": "report run -o page.html --no-check",
}


def use(place: Path, how: str) -> Done:
    done = transect(*USES[how].split(), cwd=place, together=True)
    assert "Traceback" not in done.stdout
    return done


@pytest.mark.parametrize("how", USES)
def test_a_changed_input_is_named_once_and_the_result_is_still_there(place: Path, how: str) -> None:
    before = use(place, how)
    assert "changed since" not in before.stdout
    for made in ("floor.yaml", "floor.png", "floor.tif", "scene.rrd", "track.png", "page.html"):
        (place / made).unlink(missing_ok=True)
    for made in ("both", "again"):
        shutil.rmtree(place / made, ignore_errors=True)
    change(place)
    after = use(place, how)
    assert after.returncode == before.returncode, after.stdout
    assert CHANGED in after.stdout
    assert "scan.parquet was changed" not in after.stdout
    assert after.stdout.count(CHANGED) == 1


@pytest.mark.parametrize("how", USES)
def test_a_bad_run_is_called_bad_by_every_command(place: Path, how: str) -> None:
    conclude_bad(place / "run")
    done = use(place, how)
    assert BAD in done.stdout
    assert done.returncode == (4 if "--map" in USES[how] else 0), done.stdout


def test_a_run_that_failed_says_why(place: Path) -> None:
    spoil(place / "run", status="failed", errors=["node slam: no disk\n  why: full"])
    for how in ("eval", "compare", "show a map", "view", "export a map"):
        assert "the run failed: node slam: no disk" in use(place, how).stdout
    spoil(place / "run", status="interrupted", errors=[])
    assert "the run was interrupted" in use(place, "compare").stdout


def test_a_report_begins_with_it_and_has_it_among_the_problems(place: Path) -> None:
    change(place)
    conclude_bad(place / "run")
    assert use(place, "report").returncode == 0
    page = (place / "page.html").read_text("utf-8")
    said = "The inputs of run changed since it ran: wheels.parquet was changed"
    story, broke = page.index(said), page.index("Problems</h2>")
    assert story < broke < page.index(said, broke)
    assert page.index(f"Not trustworthy: run run: {BAD}") < story
    assert BAD in page[broke:]


def test_a_page_of_the_viewer_is_told(place: Path) -> None:
    change(place)
    conclude_bad(place / "run")
    scene = view(place, "run")
    assert scene["failures"] == [BAD]
    assert CHANGED.removeprefix("warning: ") in scene["warnings"][0]


def test_other_bytes_count_and_not_other_times(place: Path) -> None:
    wheels = place / "day" / "wheels.parquet"
    content = wheels.read_bytes()
    assert check_run(place / "run").warnings == ()
    wheels.unlink()
    assert check_run(place / "run").changes == ("wheels.parquet is gone",)
    wheels.write_bytes(content)  # another inode
    os.utime(wheels, (1e9, 1e9))
    assert check_run(place / "run").warnings == ()
    shutil.rmtree(place / "day")  # a run that is copied without its recording has nothing to compare
    assert check_run(place / "run").warnings == ()


def test_a_recording_elsewhere_is_found_from_the_run(place: Path) -> None:
    change(place)
    with mock.patch("os.getcwd", return_value="/"):
        assert check_run(place / "run").changes[0].startswith("wheels.parquet was changed")


def test_a_large_file_is_hashed_once(tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    big = tmp_path / "day" / "images.bin"
    big.write_bytes(bytes(100_000))
    os.utime(big, (1e9, 1e9))
    document = {"request": {"recording": {"paths": ["day"]}}, "status": "complete"}
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps(document), "utf-8")
    (run / "inputs.sha256").write_text(f"{hashlib.sha256(bytes(100_000)).hexdigest()}  images.bin\n", "utf-8")
    hashed = mock.Mock(side_effect=hashlib.file_digest)
    with (
        mock.patch(
            "transect.recording.file_hashes._MIN_FILE_AGE_NS", -(10**12)
        ),  # it was written a moment ago
        mock.patch("hashlib.file_digest", hashed),
    ):
        assert check_run(run).warnings == ()
        assert hashed.call_count == 1
        assert check_run(run).warnings == ()
        assert hashed.call_count == 1
        big.write_bytes(bytes(99_999) + b"1")
        assert check_run(run).changes[0].startswith("images.bin was changed")


def test_a_map_merged_from_a_bad_one_is_bad(place: Path) -> None:
    conclude_bad(place / "run")
    assert use(place, "merge maps").returncode == 0
    assert BAD in transect("maps", "export", "both", "-o", "both.yaml", cwd=place).stderr
    assert BAD in transect("maps", "show", "both", cwd=place).stdout


def test_a_map_that_was_replaced_is_an_input_that_changed(place: Path) -> None:
    assert use(place, "find itself in a map").returncode == 0
    assert check_run(place / "again").warnings == ()
    shutil.rmtree(place / "run")
    assert check_run(place / "again").warnings == ()
    assert transect("run", "LaserSlam", "other", "-o", "run", cwd=place).returncode == 0
    assert check_run(place / "again").changes == ("the map run was changed",)


def test_a_file_beside_the_recording_is_an_input_too(tmp_path: Path) -> None:
    poses = [f"1 0 0 {k / 10} 0 1 0 0 0 0 1 {k / 5}\n" for k in range(30)]
    (tmp_path / "drive.txt").write_text("".join(poses))
    (tmp_path / "drive_times.txt").write_text("".join(f"{k / 10}\n" for k in range(30)))
    words = "run PoseFusion drive.txt --wire motion=Trajectory --wire position=Trajectory -o run"
    transect(*words.split(), cwd=tmp_path)
    assert check_run(tmp_path / "run").changes == ()
    (tmp_path / "drive_times.txt").write_text("".join(f"{k / 5}\n" for k in range(30)))
    assert check_run(tmp_path / "run").changes[0].startswith("drive_times.txt was changed")


def test_an_output_that_gave_nothing_is_known_later(tmp_path: Path) -> None:
    (tmp_path / "drive.txt").write_text("1 0 0 0 0 1 0 0 0 0 1 0\n" * 30)
    (tmp_path / "drive_times.txt").write_text("".join(f"{k / 10}\n" for k in range(30)))
    words = "run PoseFusion drive.txt --wire motion=Trajectory --wire position=Trajectory -o run"
    done = transect(*words.split(), cwd=tmp_path)
    assert done.returncode == 4
    assert "no output of pose" in transect("compare", "run", cwd=tmp_path).stdout
