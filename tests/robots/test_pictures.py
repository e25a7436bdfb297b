"""Pictures of the robots: they follow the descriptions, all words fit, and docs/ has them."""

from __future__ import annotations

import dataclasses
import itertools
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from transect import robots
from transect.draw.figures import save_figure
from transect.draw.robots import SHEET, RobotScene, robot_figure
from transect.errors import ParseError, TransectError
from transect.robots import urdf
from transect.robots.description import body_of, number_of
from transect.robots.pictures import load_scene, scene_of, scene_of_urdf

ROBOT_PAGES = Path(__file__).resolve().parents[2] / "docs" / "robots"
DPI = 100
"""Resolution of the pictures in docs/robots; docs/robots.md has the command."""
EACH = pytest.mark.parametrize("name", robots.names())


def scene(name: str) -> RobotScene:
    return load_scene(name)[1]


@cache
def drawn(name: str) -> Figure:
    return robot_figure(scene(name))


def words(figure: Figure) -> list[tuple[str, tuple[float, ...]]]:
    """What is written on a figure and where: left, bottom, right, top."""
    figure.draw_without_rendering()
    found = [*figure.texts, *(text for ax in figure.axes for text in ax.texts)]
    shown = [text for text in found if text.get_text().strip()]
    return [(text.get_text(), Text.get_window_extent(text).extents) for text in shown]


@EACH
def test_all_words_are_on_the_paper_and_none_is_on_another(name: str):
    figure = drawn(name)
    placed = words(figure)
    assert placed
    width, height = figure.bbox.size
    outside = [w for w, (a, b, c, d) in placed if a < 0 or b < 0 or c > width or d > height]
    clashes = [
        (one, other)
        for (one, a), (other, b) in itertools.combinations(placed, 2)
        if min(a[2], b[2]) - max(a[0], b[0]) > 1 and min(a[3], b[3]) - max(a[1], b[1]) > 1
    ]
    assert (outside, clashes) == ([], [])


@EACH
def test_docs_have_the_picture_as_it_is_drawn_today(name: str, tmp_path: Path):
    save_figure(drawn(name), tmp_path / "now.png", DPI)
    then, now = imread(ROBOT_PAGES / f"{name}-views.png"), imread(tmp_path / "now.png")
    assert then.shape == now.shape
    assert now.shape[1] == round(SHEET.width * DPI)
    # Other versions of matplotlib may smooth a line differently; a moved or changed thing is more than that.
    assert np.abs(then - now).mean() < 0.003
    assert now[..., :3].std() > 0.05


@EACH
def test_the_drawing_shows_every_frame_of_the_description(name: str):
    assert set(robots.load(name).frames.frames) <= set(scene(name).poses)


def test_the_drawn_wheels_are_at_the_documents_places():
    # AMEDS section 4: L = 402, W = 396, d = 143, H = 135 mm; Table 2: Platform is 81 mm below Origin
    wheels = [solid for solid in scene("interact").solids if solid.kind == "wheel"]
    centres = np.array([(wheel.points.min(axis=0) + wheel.points.max(axis=0)) / 2 for wheel in wheels])
    assert [wheel.name for wheel in wheels] == ["1", "2", "3", "4"]
    np.testing.assert_allclose(centres[0], [0.402, 0.396 + 0.143, -0.081 - 0.135], atol=1e-12)
    np.testing.assert_allclose(centres[2], [-0.402, -0.396 - 0.143, -0.081 - 0.135], atol=1e-12)


def test_the_drawn_lengths_are_the_documents():
    # AMEDS section 4; Rosario 4.6 and Table 1; document 004, Table 1; SIS 5.1.3.1
    expected = {
        "interact": {"L 0.402 m", "W 0.396 m", "d 0.143 m", "H 0.135 m", "Lidar over Origin 1.389 m"},
        "weeder": {"wheelbase 1.60 m", "antenna ahead 1.80 m", "antenna up 1.593 m"},
        "argo": {"wheels apart 1.57 m", "Radar over Body 1.399 m", "side lasers apart 1.083 m"},
        "ida": {"upper arm 0.977 m", "forearm 0.858 m"},
    }
    for name, texts in expected.items():
        assert {span.text for span in scene(name).spans} == texts


def test_the_radar_looks_below_the_horizon_and_its_bearings_run_against_those_of_the_lasers():
    poses = scene("argo").poses
    # errata: the radar hangs upside down; its pitch of 191.16 degrees looks 11.16 below the horizon
    assert np.degrees(np.arcsin(-poses["Radar"][2, 0])) == pytest.approx(11.16, abs=0.01)
    assert poses["Radar"][2, 2] > 0.9 > 0 > poses["LaserPort"][2, 2]


def test_the_drawn_arm_stands_where_the_sis_prints_it():
    # target.x of the IDC, SIS 5.1.1: 0.960 0.218 -0.098 in Payload, z down; 6, 2 and 5 mm are left (sag)
    place = scene("ida").poses["IDC"][:3, 3]
    np.testing.assert_allclose(place * [1, -1, -1], [0.960, 0.218, -0.098], atol=7e-3)


def test_a_copy_follows_its_constants_and_its_body():
    weeder = robots.load("weeder")
    shorter = dataclasses.replace(weeder, constants={**weeder.constants, "wheelbase": 1.2})
    assert "wheelbase 1.20 m" in {span.text for span in scene_of(shorter).spans}
    bare = scene_of(dataclasses.replace(weeder, body={}))
    assert not bare.spans
    assert all(solid.kind == "camera" for solid in bare.solids)


def test_frames_that_only_a_recording_places_are_named():
    facts = dict(scene_of(dataclasses.replace(robots.load("weeder"), body={})).facts)
    assert facts["not drawn: only a recording\nknows their place"] == ["imu", "left_camera", "right_camera"]


def test_numbers_may_be_sums_of_constants():
    interact = robots.load("interact")
    assert number_of(interact, "-platform.half_length - platform.swivel_length + 1.5") == pytest.approx(0.955)
    with pytest.raises(TransectError, match=r"no constant platform\.width"):
        number_of(interact, "platform.width")
    with pytest.raises(TransectError, match="no sum of constants"):
        number_of(interact, "2 * platform.half_width")


BAD = """name: mine
frames: [{frame: a, child: b}]
body:
  wheels:
    - {frame: a, xyz: [0, 0], diameter: 0.3, width: 0.1}
  lengths: [{name: x, frame: a, start: [0, 0, 0], finish: [1, 0, 0]}]
"""


def test_what_is_wrong_with_a_body_is_listed_with_its_line():
    with pytest.raises(ParseError) as caught:
        robots.robot_from_text(BAD, "mine.yaml")
    assert "mine.yaml:6: lengths has an unknown key 'finish'" in str(caught.value) or "finish" in str(
        caught.value
    )
    with pytest.raises(ParseError) as caught:
        robots.robot_from_text(BAD.replace("finish", "end"), "mine.yaml")
    assert (caught.value.what, caught.value.where) == ("xyz has 2 numbers, expected 3", "mine.yaml:5")


def test_a_body_that_names_a_strange_frame_says_which_there_are():
    good = BAD.replace("finish", "end").replace("frame: a, xyz: [0, 0]", "frame: c, xyz: [0, 0, 0]")
    mine = robots.robot_from_text(good, "mine.yaml")
    assert body_of(mine).wheels[0].frame == "c"
    with pytest.raises(TransectError, match=r"'c' is no frame[\s\S]*its frames are a, b"):
        scene_of(mine)


URDF = """<robot name="arm">
<link name="base"><visual><geometry><box size="0.4 0.3 0.2"/></geometry></visual></link>
<link name="upper"><visual><origin xyz="0 0 0.25"/><geometry><cylinder radius="0.05" length="0.5"/></geometry>
</visual></link><link name="ball"><visual><geometry><sphere radius="0.1"/></geometry></visual></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.1"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="end" type="fixed"><parent link="upper"/><child link="ball"/><origin xyz="0 0 0.5"/></joint>
</robot>"""


def test_a_urdf_is_drawn_with_its_shapes_and_overall_lengths(tmp_path: Path):
    arm = scene_of_urdf(urdf.parse(URDF.encode(), "arm.urdf"))
    assert set(arm.poses) == {"base", "upper", "ball"}
    # the base is 0.2 high about its origin; the ball's centre is at 0.6 over it, its radius 0.1
    assert [span.text for span in arm.spans] == ["length 0.40 m", "width 0.30 m", "height 0.80 m"]
    save_figure(robot_figure(arm), tmp_path / "arm.png", 60)
    assert imread(tmp_path / "arm.png")[..., :3].std() > 0.02


def test_a_urdf_is_drawn_whose_root_hangs_on_a_floating_joint():
    weeder = urdf.parse(urdf.text_from_robot(robots.load("weeder")).encode(), "weeder.urdf")
    scene = scene_of_urdf(weeder)
    assert set(scene.poses) == {"rear_wheel_odometry", "base_link", "gps"}
    assert ("not drawn: their place is not fixed", ["imu", "left_camera", "right_camera"]) in [
        (title, sorted(lines)) for title, lines in scene.facts
    ]


def test_a_robot_without_frames_is_refused():
    with pytest.raises(TransectError, match="has no frames to draw"):
        scene_of(dataclasses.replace(robots.load("weeder"), frames=type(robots.load("weeder").frames)()))
