"""`transect draw robot`, as a person types it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from matplotlib.image import imread
from tests.cli.test_draw import run

from transect import robots
from transect.draw.robots import HEADING, WIDTH
from transect.errors import TransectError
from transect.robots.pictures import pictures_of


def test_a_folder_gets_a_file_for_each_picture(tmp_path: Path):
    done = run("draw", "robot", "weeder", "-o", tmp_path / "out", "--dpi", 60)
    assert done.exit_code == 0, done.output
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == ["weeder-steering.png", "weeder-turns.png"]
    assert all(f"wrote {tmp_path / 'out' / name}" in done.output for name in files)


def test_a_picture_s_name_makes_a_sheet_of_all(tmp_path: Path):
    assert run("draw", "robot", "weeder", "-o", tmp_path / "x.png", "--dpi", 60).exit_code == 0
    height = HEADING + sum(picture.height for picture in pictures_of(robots.load("weeder")))
    assert imread(tmp_path / "x.png").shape[:2] == (round(60 * height), round(60 * WIDTH))


def test_one_picture_of_one_s_own_copy_follows_its_numbers(tmp_path: Path):
    text = (resources.files(robots) / "weeder.yaml").read_text(encoding="utf-8")
    mine = text.replace("name: weeder", "name: mine").replace("wheelbase: 1.6", "wheelbase: 1.2")
    (tmp_path / "mine.yaml").write_text(mine, encoding="utf-8")
    picture = tmp_path / "mine.svg"
    done = run("draw", "robot", tmp_path / "mine.yaml", "--picture", "steering", "-o", picture)
    assert done.exit_code == 0, done.output
    text = picture.read_text("utf-8")
    assert "<!-- 3.49 m = wheelbase / tan δ -->" in text  # 1.2 / tan(19 degrees) = 3.485
    assert "<!-- 4.65 m" not in text


def test_without_a_path_the_file_is_named_after_the_robot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert run("draw", "robot", "weeder", "--picture", "turns", "--dpi", 50).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["weeder.png"]


def test_an_unknown_picture_and_an_unknown_robot_are_told_what_there_is(tmp_path: Path):
    done = run("draw", "robot", "ida", "--picture", "arn", "-o", tmp_path / "x.png")
    assert isinstance(done.exception, TransectError)
    assert "did you mean 'arm'" in str(done.exception)
    done = run("draw", "robot", "interakt", "-o", tmp_path / "x.png")
    assert "did you mean 'interact'" in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_frames_can_be_drawn_finer_or_coarser(tmp_path: Path):
    for dpi in (50, 100):
        assert run("draw", "frames", "weeder", "--dpi", dpi, "-o", tmp_path / f"{dpi}.png").exit_code == 0
    coarse, fine = (imread(tmp_path / f"{dpi}.png").shape for dpi in (50, 100))
    assert fine[1] == pytest.approx(2 * coarse[1], abs=2)
