"""The robots that come with transect, by the documents' numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from transect import robots
from transect.errors import ParseError, TransectError


def test_the_four_machines_of_the_documents_are_there() -> None:
    assert set(robots.names()) == {"argo", "ida", "interact", "weeder"}


@pytest.mark.parametrize("name", ["argo", "ida", "interact", "weeder"])
def test_each_says_where_its_numbers_come_from(name: str) -> None:
    robot = robots.load(name)
    assert robot.reference
    assert robot.title
    assert len(robot.frames) > 1


def test_the_lidar_of_interact_is_on_its_mast() -> None:
    # Document 000, Table 2: Lidar to Origin -549 0 -1389 mm; Origin has z down (errata).
    T = robots.load("interact").frames.lookup("Origin", "Lidar")
    assert np.allclose(T[:3, 3], (-0.549, 0.0, -1.389))
    assert np.allclose(T[:3, :3] @ (0, 0, 1), (0, 0, -1))  # its z axis points up


def test_the_cameras_of_interact_are_those_of_table_4() -> None:
    camera = robots.load("interact").cameras["MainCam"]
    assert (camera.width, camera.height) == (1920, 1080)
    assert np.allclose(camera.K[[0, 1, 0, 1], [0, 1, 2, 2]], (885.015, 887.440, 955.893, 533.638))
    assert np.allclose(camera.coefficients, (-0.2418, 0.0974, 0.00048, 0.00019, -0.0226))


def test_the_antenna_of_the_weeder_is_ahead_and_above() -> None:
    # Document 001, Table 1: base_link to gps 1.8 -0.030 1.593.
    assert np.allclose(robots.load("weeder").frames.lookup("base_link", "gps")[:3, 3], (1.8, -0.030, 1.593))


def test_one_s_own_robot_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: mine\n"
        "frames:\n"
        "  - {frame: body, child: cam, xyz: [1, 0, 0.5], euler: {order: Z, degrees: [90]}}\n"
        "cameras:\n"
        "  cam: {size: [640, 480], focal: [500, 501], centre: [320, 240],\n"
        "        distortion: {radtan: [0.1, 0, 0, 0]}}\n"
    )
    robot = robots.load(path)
    assert np.allclose(robot.frames.lookup("body", "cam") @ (1, 0, 0, 1), (1, 1, 0.5, 1))
    assert robot.cameras["cam"].distortion == "radtan"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("just text", "mapping"),
        ("name: [", "not YAML"),
        (
            "name: a\nframes: [{frame: a, child: b, matrix: [[1, 0, 0], [0, 2, 0], [0, 0, 1]]}]",
            "not a rotation",
        ),
        ("name: a\ncameras: {c: {focal: [1, 1]}}", "size, focal and centre"),
    ],
)
def test_a_bad_description_is_refused_with_the_reason(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ParseError, match=message):
        robots.load(path)


def test_an_unknown_robot_names_the_known_ones() -> None:
    with pytest.raises(TransectError, match="interact"):
        robots.load("interct")
