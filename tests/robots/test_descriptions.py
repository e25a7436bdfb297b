"""Robots' own YAML files that are not right: every problem is told, with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from transect import robots
from transect.errors import ParseError

HEAD = "name: mine\nframes:\n"


def refused(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        robots.robot_from_text(text, "mine.yaml")
    return caught.value


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("euler: {order: Z, angles: [90]}", "lacks its unit: expected degrees or radians"),
        ("euler: {order: Z}", "euler of cam lacks its unit"),
        ("euler: {order: Z, degrees: [9], radians: [1]}", "has both degrees and radians"),
        ("euler: {degrees: [90]}", "needs an order of axes"),
        ("euler: {order: XYZ, degrees: [90]}", "euler of cam has 1 number, expected 3"),
        ("euler: {order: XXY, degrees: [1, 2, 3]}", "unknown Euler convention 'XXY'"),
        ("matrix: [[1, 0, 0], [0, 1, 0], [0, 1]]", "matrix of cam has 8 numbers, expected 3 rows of 3"),
        ("matrix: [1, 0, 0, 0, 1, 0, 0, 0]", "matrix of cam has 8 numbers, expected 3 rows of 3"),
        ("matrix: [[1, 0, 0], [0, 1, 0], [0, 0, -1]]", "matrix of cam is not a rotation"),
        ("matrix: [[1, 0, 0], [0, 1, 0], [0, 0, a]]", "matrix of cam: 'a' is not a number"),
        ("quaternion: [0, 0, 1]", "quaternion of cam has 3 numbers, expected 4"),
        ("quaternion: [0, 0, 0, 0]", "quaternion of cam is zero"),
        ("quaternion: [0, 0, 0, 1], matrix: [[1, 0, 0], [0, 1, 0], [0, 0, 1]]", "two rotations"),
        ("xyz: [1, 2]", "xyz of cam has 2 numbers, expected 3"),
        ("xyz: 3", "xyz of cam is not a list of numbers"),
        ("xyz: [1, .nan, 2]", "nan is not a number"),
        (
            "quaternon: [0, 0, 0, 1]",
            "unknown key 'quaternon'\n  where: mine.yaml:4\n  try:   did you mean 'quaternion'?",
        ),
    ],
)
def test_a_bad_frame_is_told_with_its_line(entry: str, words: str) -> None:
    error = refused(f"{HEAD}  - {{frame: body, child: lidar}}\n  - {{frame: body, child: cam, {entry}}}\n")
    assert words in str(error)
    assert "mine.yaml:4" in str(error)


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        (
            "name: mine\nfrmes: []\n",
            "unknown key 'frmes'\n  where: mine.yaml:2\n  try:   did you mean 'frames'",
            2,
        ),
        ("name: mine\nz_down: maybe\n", "z_down should be true or false, not 'maybe'", 2),
        ("name:\n", "a robot has no name", 1),
        ("name: 3\n", "name should be text, not 3", 1),
        ("name: mine\nframes: {a: b}\n", "frames should be a list, not {'a': 'b'}", 2),
        ("name: mine\nconstants: 3\n", "constants should be a mapping, not 3", 2),
        (f"{HEAD}  - {{frame: body}}\n", "a `frame`, a `child`", 3),
        (f"{HEAD}  - {{frame: body, child: ''}}\n", "child is no name", 3),
        (f"{HEAD}  - {{frame: a, child: b}}\n  - {{frame: c, child: b}}\n", "two parents", 4),
        (f"{HEAD}  - {{frame: a, child: b}}\n  - {{frame: b, child: a}}\n", "cycle", 4),
        ("name: mine\ncameras:\n  c: {size: [1, 1]}\n", "camera c needs size, focal and centre", 3),
        ("name: mine\ntitle: a\ntitle: b\n", "'title' is given twice", 3),
        ("name: mine\nframes: [\n", "not YAML", 3),
        ("name: mine\nframes: &f [*f]\n", "an alias refers to itself", 2),
        ("title: mine\n", "a mapping with a name", 1),
    ],
)
def test_a_bad_file_is_told_with_its_line(text: str, words: str, line: int) -> None:
    error = refused(text)
    assert words in str(error)
    assert f"mine.yaml:{line}" in str(error)


@pytest.mark.parametrize(
    ("distortion", "words"),
    [
        ("{radtan: [1, 2, 3]}", "radtan of c has 3 numbers, expected 4 or 5 or 8"),
        ("{fisheye: [1, 2, 3, 4]}", "unknown distortion 'fisheye'"),
        ("[1, 2, 3, 4]", "not one model"),
    ],
)
def test_a_bad_distortion_is_told_with_its_line(distortion: str, words: str) -> None:
    camera = f"size: [640, 480], focal: [1, 1], centre: [0, 0], distortion: {distortion}"
    error = refused(f"name: mine\ncameras:\n  c:\n    {{{camera}}}\n")
    assert words in str(error)
    assert error.where == "mine.yaml:4"


def test_all_problems_are_listed_one_line_each() -> None:
    error = refused(
        "name: mine\n"
        "colour: red\n"
        "frames:\n"
        "  - frame: body\n"
        "    child: cam\n"
        "    euler: {order: Z, angles: [90]}\n"
        "  - frame: body\n"
        "    child: lidar\n"
        "    matrix:\n"
        "      - [1, 0, 0]\n"
        "      - [0, 1, 0]\n"
        "      - [0, 1]\n"
    )
    assert error.what == "mine.yaml has 4 problems"
    places = [line.split(": ")[0].strip() for line in error.why.splitlines()]
    assert places == ["mine.yaml:2", "mine.yaml:6", "mine.yaml:6", "mine.yaml:9"]
    assert all(words in error.why for words in ("colour", "angles", "lacks its unit", "8 numbers"))


def test_aliases_that_grow_without_end_are_refused() -> None:
    layers = [f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    bomb = "name: mine\nconstants:\n  a0: &a0 [1, 2, 3]\n" + "\n".join(layers) + "\n"
    assert "too large" in str(refused(bomb))


def test_brackets_without_end_are_refused() -> None:
    assert "nested too deeply" in str(refused("name: mine\nconstants: " + "[" * 20_000 + "]" * 20_000))


def test_aliases_that_stay_small_are_fine() -> None:
    text = "name: mine\nframes:\n  - &e {frame: a, child: b, xyz: [1, 2, 3]}\n  - {<<: *e, child: c}\n"
    robot = robots.robot_from_text(text, "mine.yaml")
    np.testing.assert_allclose(robot.frames.lookup("a", "c")[:3, 3], (1, 2, 3))


def test_a_copy_of_each_robot_that_comes_along_is_read_back(tmp_path: Path) -> None:
    for name in robots.names():
        text = robots.path_of(name).read_text(encoding="utf-8")
        copy = tmp_path / f"{name}.yaml"
        copy.write_text(text, encoding="utf-8")
        assert robots.load(copy).frames.frames == robots.load(name).frames.frames


def test_a_file_that_is_not_there_or_not_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="cannot be read"):
        robots.load(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(ParseError, match="cannot be read"):
        robots.load(tmp_path / "bytes.yaml")


def test_a_description_without_a_file_is_told_without_lines() -> None:
    with pytest.raises(ParseError, match="lacks its unit") as caught:
        robots.transform_from_description({"child": "cam", "euler": {"order": "Z"}}, "here")
    assert caught.value.where == "here"
    with pytest.raises(ParseError, match="a mapping with a name"):
        robots.robot_from_description({"title": "x"}, "here")
