"""The second process of `transect run`, which draws the figures."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from transect.cli.run import figure_process
from transect.cli.run.figure_process import DrawingProcess, _start
from transect.evaluation.result import FIGURES

from .run_sample import run, write_project


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run that was judged, its figures drawn by this process."""
    project = write_project(tmp_path_factory.mktemp("project"))
    assert run(project / "track.yaml", project / "day", "-o", project / "run").return_value == 0
    return project / "run"


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Iterator[DrawingProcess]:
    """Start the second process, although this one can draw."""
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    monkeypatch.setattr(figure_process, "_start", _start)
    monkeypatch.setattr(figure_process, "cores", lambda: 2)
    with DrawingProcess() as started:
        monkeypatch.undo()
        yield started


def pictures(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / FIGURES).iterdir()}


def test_another_process_draws_the_same_and_leaves_nothing_half_drawn_when_interrupted(
    folder: Path, other: DrawingProcess
) -> None:
    here = pictures(folder)
    for name in here:
        (folder / FIGURES / name).unlink()
    assert other._ask(folder)
    assert pictures(folder) == here
    process = other._process
    assert process is not None
    assert process.stdout is not None
    for name in here:
        (folder / FIGURES / name).unlink()
    process.stdout.close()
    process.stdout = _Impatient(folder / FIGURES)
    with pytest.raises(KeyboardInterrupt):
        other.draw(folder)
    assert process.returncode is not None
    assert not pictures(folder).keys() - here.keys()


class _Impatient(io.BytesIO):
    """The answers of a process, for somebody who presses Ctrl-C when it begins to write."""

    def __init__(self, figures: Path) -> None:
        super().__init__()
        self.figures = figures

    def readline(self, *_: object) -> bytes:
        while not any(self.figures.iterdir()):
            time.sleep(0.001)
        raise KeyboardInterrupt


def test_this_process_draws_if_the_other_one_was_killed(folder: Path, other: DrawingProcess) -> None:
    (folder / FIGURES / "drift.png").unlink(missing_ok=True)
    assert other._process is not None
    other._process.kill()
    other.draw(folder)
    assert "drift.png" in pictures(folder)
