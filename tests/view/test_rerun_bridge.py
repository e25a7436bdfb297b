"""A scene as a file of Rerun, which Rerun's own program reads."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.view.viewer.test_viewer import HOSTILE, drive

from transect.errors import UsageError
from transect.view import rerun_bridge
from transect.view.viewer import ViewerScene


def rerun(*arguments: object) -> str:
    command = [sys.executable, "-m", "rerun", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def test_rerun_finds_pictures_points_paths_and_numbers_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "drive.rrd"
    assert rerun_bridge.save_scene(ViewerScene(drive()), file) == []
    assert "1 file verified without error" in rerun("rrd", "verify", file)
    listed = rerun("rrd", "print", file)
    for entity, rows in {"/pictures/Cam": 11, "/world/robot/Laser": 11, "/world/robot": 11}.items():
        assert f"with {rows} rows" in next(line for line in listed.splitlines() if f" - {entity} - " in line)
    assert "\\<img\\ src\\=x" in listed, HOSTILE
    with pytest.raises(UsageError, match="exists already"):
        rerun_bridge.save_scene(ViewerScene(drive()), file)


def test_the_window_listens_on_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: started.append(command))
    rerun_bridge.show_scene(ViewerScene(drive()))
    # Nothing is imported from the working directory, which may be a recording.
    assert started[0][1:6] == ["-P", "-m", "rerun", "--bind", "127.0.0.1"]
