"""`transect simulate`, with a world that is made in no time."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from click.testing import CliRunner, Result

import transect
from transect.base import files, plugins
from transect.base.plugins import Plugin
from transect.cli.shared import output
from transect.cli.simulate import command
from transect.errors import TransectError, UsageError
from transect.simulation import day

TINY = '''\
"""A rover that drives east along a line."""

import numpy as np

from transect.recording import Recording, stream_of_values
from transect.simulation.day import Day, Truth, WorldOptions
from transect.simulation.motion import Motion
from transect.simulation.randomness import generator
from transect.types import Imu, Odometry


def make_day(options: WorldOptions) -> Day:
    t_ns = 1_600_000_000 * 10**9 + np.arange(round(100 * options.seconds)) * 10**7
    x = 0.5 * np.arange(len(t_ns)) / 100
    zero = np.zeros(len(t_ns))
    position, turn = np.column_stack([x, zero, zero]), np.column_stack([zero, zero, zero, zero + 1])
    motion = Motion.through(t_ns, position, turn)
    speed = 0.5 + 0.01 * generator(options.seed, "Odometry").normal(size=len(t_ns))
    odometry = stream_of_values("ODOM", t_ns, {"x": x, "y": zero, "vx": speed}, type=Odometry)
    imu = stream_of_values("Imu", t_ns, {"acc_x": zero}, type=Imu)
    recording = Recording("tiny", (odometry, imu), format="carmen", conditions=dict(options.conditions))
    return Day(recording, Truth(motion, body="robot"))
'''


@pytest.fixture(autouse=True)
def tiny_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    package = tmp_path / "worlds" / "tiny_test_worlds"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "tiny.py").write_text(TINY)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, "tiny_test_worlds", raising=False)
    with plugins.added(Plugin(name="tiny", worlds={"tiny_test_world": "tiny_test_worlds.tiny"})):
        yield


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], standalone_mode=False)


def test_without_a_world_it_lists_them_all_with_what_they_are() -> None:
    done = run()
    lines = dict(line.split(None, 1) for line in done.stdout.splitlines()[1:])
    assert list(lines) == list(day.names())
    assert lines["tiny_test_world"] == "A rover that drives east along a line."
    document = json.loads(run("--json").stdout)
    assert [world["name"] for world in document["worlds"]] == list(day.names())


def test_it_writes_a_recording_that_opens_with_its_truth(tmp_path: Path) -> None:
    out = tmp_path / "day"
    done = run("tiny_test_world", "-o", out, "--seconds", 2, "--seed", 7)
    assert done.return_value == 0
    assert done.stdout == f"wrote {out}\n"
    assert "not written: Imu" in done.stderr
    recording = transect.open(out)
    assert recording.format == "carmen"
    assert len(recording["ODOM"]) == 200
    assert recording.truth is not None
    assert recording.truth.name == "truth/trajectory"
    assert recording.truth["x"][100] == pytest.approx(0.5)


def test_it_says_what_it_will_take_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transect.cli.simulate.MIN_ANNOUNCED_S", 0.0)
    done = run("tiny_test_world", "-o", tmp_path / "day", "--seconds", 60)
    expected = re.match(r"simulating tiny_test_world: about (\d+) s and (\d+) kB\n", done.stderr)
    assert expected, done.stderr
    log = sum(p.stat().st_size for p in (tmp_path / "day").glob("*") if p.is_file())
    assert float(expected[2]) * 1e3 == pytest.approx(log, rel=0.2)


def test_a_disk_that_is_too_small_is_said_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: Mock(free=1000))
    asked = ("tiny_test_world", "--seconds", 1)
    assert "warning: only 1 kB of disk space are free" in run(*asked, "-o", tmp_path / "day").stderr
    monkeypatch.setattr("shutil.disk_usage", lambda path: Mock(free=10**12))
    assert "of disk space are free" not in run(*asked, "-o", tmp_path / "other").stderr


def test_progress_is_a_line_now_and_then_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(seconds_each: float, **options: bool) -> list[str]:
        clock = itertools.count(0.0, seconds_each)
        monkeypatch.setattr(output.time, "monotonic", lambda: next(clock))
        with output.ProgressDisplay(**options).of_files(200, "simulating"):
            for _ in range(200):
                files.write_bytes("file", b"")
        return capsys.readouterr().err.splitlines()

    monkeypatch.chdir(tmp_path)
    tenths = write(1.0, lines=True)
    assert tenths[0] == "simulating: 10%, 3 min left"
    assert [line.split()[1].rstrip(",") for line in tenths] == [f"{k}%" for k in range(10, 101, 10)]
    assert len(write(30.0, lines=True)) == 100  # one a minute
    assert write(0.005, lines=True) == []  # done in a second
    assert write(1.0) == write(1.0, lines=True, quiet=True) == []


def test_a_bar_never_shows_more_than_there_is() -> None:
    bar = Mock()
    watch = output._FileProgressBar(bar, 0, 3)  # pyright: ignore[reportPrivateUsage]
    for _ in range(4):
        watch.wrote(Path("file"))
    shown = [(call.kwargs["completed"], call.kwargs["total"]) for call in bar.update.call_args_list]
    assert shown == [(1, 3), (2, 3), (3, 3), (4, 4)]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    def content(name: str, seed: int) -> dict[str, bytes]:
        out = tmp_path / name / "day"
        run("tiny_test_world", "-o", out, "--seconds", 1, "--seed", seed)
        return {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*") if p.is_file()}

    assert content("a", 1) == content("b", 1) != content("c", 2)


def test_json_says_what_was_asked_for_and_what_was_not_carried(tmp_path: Path) -> None:
    arguments = ("--seconds", 1, "--condition", "light=night", "--json")
    document = json.loads(run("tiny_test_world", "-o", tmp_path / "day", *arguments).stdout)
    assert document["world"] == "tiny_test_world"
    assert document["options"]["seconds"] == 1.0
    assert document["options"]["conditions"] == {"light": "night"}
    assert any("Imu" in sentence for sentence in document["not_carried"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("atlantis", "-o", "out"), "no world 'atlantis'"),
        (("tiny_test_world",), "no folder to write"),
        (("tiny_test_world", "-o", "out", "--seconds", "0"), "--seconds 0 is not more than 0"),
        (("tiny_test_world", "-o", "out", "--condition", "night"), "not KEY=VALUE"),
    ],
)
def test_a_wrong_question_is_refused_and_nothing_is_written(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_an_existing_target_is_refused(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    done = run("tiny_test_world", "-o", tmp_path / "full")
    assert isinstance(done.exception, TransectError)
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine.txt"]
