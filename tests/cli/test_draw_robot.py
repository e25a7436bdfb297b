"""`transect draw robot`, as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.image import imread
from tests.cli.test_draw import run

from transect import robots
from transect.draw.robots import SHEET
from transect.errors import TransectError


def test_a_folder_gets_a_file_named_after_the_robot_and_the_view(tmp_path: Path):
    for more, name in (((), "weeder-views.png"), (("--picture", "side"), "weeder-side.png")):
        done = run("draw", "robot", "weeder", "-o", tmp_path / "out", "--dpi", 60, *more)
        assert done.exit_code == 0, done.output
        assert f"wrote {tmp_path / 'out' / name}" in done.output
        assert imread(tmp_path / "out" / name).shape[1] == round(60 * SHEET.width)


def test_one_s_own_copy_follows_its_numbers(tmp_path: Path):
    text = robots.path_of("weeder").read_text(encoding="utf-8")
    mine = text.replace("name: weeder", "name: mine").replace("wheelbase: 1.6", "wheelbase: 1.2")
    (tmp_path / "mine.yaml").write_text(mine, encoding="utf-8")
    picture = tmp_path / "mine.svg"
    done = run("draw", "robot", tmp_path / "mine.yaml", "--picture", "top", "-o", picture)
    assert done.exit_code == 0, done.output
    text = picture.read_text("utf-8")
    assert "<!-- wheelbase 1.20 m -->" in text
    assert "<!-- wheelbase 1.60 m" not in text


def test_a_urdf_of_a_robot_is_drawn_too(tmp_path: Path):
    assert run("new", "urdf", "interact", "-o", tmp_path / "mine.urdf").exit_code == 0
    done = run("draw", "robot", tmp_path / "mine.urdf", "-o", tmp_path / "mine.png", "--dpi", 50)
    assert done.exit_code == 0, done.output


def test_without_a_path_the_file_is_named_after_the_robot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert run("draw", "robot", "weeder", "--picture", "top", "--dpi", 50).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["weeder.png"]


def test_an_unknown_picture_and_an_unknown_robot_list_the_known_ones(tmp_path: Path):
    done = run("draw", "robot", "ida", "--picture", "sid", "-o", tmp_path / "x.png")
    assert isinstance(done.exception, TransectError)
    assert "did you mean 'side'" in str(done.exception)
    done = run("draw", "robot", "interakt", "-o", tmp_path / "x.png")
    assert "did you mean 'interact'" in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_frames_can_be_drawn_finer_or_coarser(tmp_path: Path):
    for dpi in (50, 100):
        assert run("draw", "frames", "weeder", "--dpi", dpi, "-o", tmp_path / f"{dpi}.png").exit_code == 0
    coarse, fine = (imread(tmp_path / f"{dpi}.png").shape for dpi in (50, 100))
    assert fine[1] == pytest.approx(2 * coarse[1], abs=2)
