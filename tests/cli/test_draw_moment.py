"""`transect draw moment`: the files that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from transect.cli import command
from transect.errors import TransectError, UsageError


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=True)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    day = folder / "etna"
    assert run("simulate", "etna", "-o", day, "--seconds", "4", "--scale", "0.05").exit_code == 0
    return folder


def test_the_picture_of_a_recording_is_written_and_a_palette_makes_it_smaller(demo: Path, tmp_path: Path):
    sizes = []
    some = ("--streams", "MainCam", "--streams", "Lidar")
    for more in (some, (*some, "--colours", 64)):
        out = tmp_path / "moment.png"
        done = run("draw", "moment", demo / "etna", "--at", "+2s", "--dpi", 60, "-o", out, *more)
        assert done.exit_code == 0, done.output
        assert out.read_bytes().startswith(b"\x89PNG")
        sizes.append(out.stat().st_size)
    assert sizes[1] < 0.8 * sizes[0]
    assert [path.name for path in tmp_path.iterdir()] == ["moment.png"]


def test_a_palette_is_for_png_only(demo: Path, tmp_path: Path):
    done = run("draw", "moment", demo / "etna", "--colours", 64, "-o", tmp_path / "moment.svg")
    assert isinstance(done.exception, UsageError)
    assert list(tmp_path.iterdir()) == []


def test_a_pattern_that_matches_nothing_is_an_error(demo: Path, tmp_path: Path):
    done = run("draw", "moment", demo / "etna", "--streams", "Gnss*", "-o", tmp_path / "m.png")
    assert isinstance(done.exception, TransectError)
    assert not (tmp_path / "m.png").exists()
