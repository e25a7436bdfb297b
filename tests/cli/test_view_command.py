"""`transect view`: which streams and times it shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.viewed import view
from tests.commands import transect


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ten seconds of poses and of speeds, and a run on them."""
    folder = tmp_path_factory.mktemp("view")
    (folder / "day").mkdir()
    rows = [f"{k / 10},{k / 5},0,0,0,0,0,1\n" for k in range(101)]
    (folder / "day" / "track.csv").write_text("t,x,y,z,qx,qy,qz,qw\n" + "".join(rows))
    (folder / "day" / "speed.csv").write_text("t,v\n" + "".join(f"{k / 10},2\n" for k in range(101)))
    assert transect("new", "recording", "day", cwd=folder).returncode == 0
    return folder


def names_of(scene: dict[str, object]) -> list[str]:
    streams = scene["streams"]
    assert isinstance(streams, list)
    return [stream["name"] for stream in streams]


def test_only_the_chosen_streams_are_shown(place: Path) -> None:
    assert sorted(names_of(view(place, "day"))) == ["speed", "track"]
    assert names_of(view(place, "day", "--streams", "spe*")) == ["speed"]


def test_only_the_chosen_times_are_shown(place: Path) -> None:
    assert view(place, "day")["duration"] == pytest.approx(10.0)
    shown = view(place, "day", "--from", "+2s", "--to", "+5s")
    assert shown["duration"] == pytest.approx(2.9)
    assert shown["start"].startswith("2.000")


def test_a_misspelt_stream_is_not_a_page_of_all(place: Path) -> None:
    done = transect("view", "day", "--streams", "sped", "--no-browser", cwd=place)
    assert done.returncode == 1
    assert "did you mean 'speed'?" in done.stderr
    assert done.stdout == ""


def test_a_signal_that_comes_twice_ends_it_without_a_traceback() -> None:
    code = (
        "import os, signal, sys, atexit\n"
        "from transect.cli import _terminate\n"
        "signal.signal(signal.SIGTERM, _terminate)\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGTERM)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (143, "")


def test_of_a_run_its_own_streams_can_be_chosen_too(place: Path) -> None:
    words = "run PoseFusion day --wire motion=track --wire position=track -o run"
    assert transect(*words.split(), cwd=place).returncode in (0, 4)
    every = names_of(view(place, "run"))
    assert {"track", "speed"} < set(every)
    own = next(name for name in every if name.startswith("run "))
    assert names_of(view(place, "run", "--streams", own)) == [own]
    assert view(place, "run", "--from", "+2s", "--to", "+5s")["duration"] == pytest.approx(2.9, abs=0.11)
