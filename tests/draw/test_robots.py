"""Parts of the drawings of robots: views, axes, numbers, and sheets."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from transect.draw import _robots_parts as parts
from transect.draw.figures import new_figure, save_figure
from transect.draw.frames import AXIS_COLOURS
from transect.draw.robots import HEADING, WIDTH, Picture, sheet_figure


def axes():
    ax = new_figure(4.0, 4.0).add_subplot()
    parts.drawing(ax)
    parts.show(ax, (-1, -1), (1, 1))
    return ax


def arrows(ax) -> dict[str, np.ndarray]:
    """Tips of the arrows by colour."""
    return {
        text.arrow_patch.get_edgecolor(): np.array(text.xy)
        for text in ax.texts
        if hasattr(text, "arrow_patch")
    }


@pytest.mark.parametrize(
    ("view", "tips"),
    [
        # x, y, z of an upright frame on the paper; None stands on it
        (parts.TOP_LEFT, [(0, 1), (-1, 0), None]),
        (parts.TOP_RIGHT, [(0, 1), (1, 0), None]),
        (parts.BEHIND, [None, (-1, 0), (0, 1)]),
        (parts.SIDE, [(1, 0), None, (0, -1)]),
    ],
)
def test_a_triad_points_as_its_view_has_it(view, tips):
    from matplotlib.colors import to_rgba

    ax = axes()
    parts.triad(ax, view, np.eye(4), 1.0)
    found = arrows(ax)
    for colour, tip in zip(AXIS_COLOURS, tips, strict=True):
        if tip is None:
            assert to_rgba(colour) not in found
        else:
            np.testing.assert_allclose(found[to_rgba(colour)], tip)


@pytest.mark.parametrize(
    ("view", "marker"),
    [(parts.TOP_LEFT, "o"), (parts.TOP_RIGHT, "x"), (parts.BEHIND, "x"), (parts.SIDE, "o")],
)
def test_an_axis_towards_the_reader_is_a_dot_and_one_away_a_cross(view, marker):
    # from above on z up: a dot; on z down: a cross; from behind x goes away; from the right y (right) comes
    ax = axes()
    parts.triad(ax, view, np.eye(4), 1.0)
    assert [line.get_marker() for line in ax.lines] == ["o", marker]


@pytest.mark.parametrize(
    ("value", "digits", "told"),
    [
        (12.4, 0, "+12°"),
        (-3.44, 1, "−3.4°"),
        (0.0, 0, "0°"),
        (-0.2, 0, "0°"),
        (0.04, 1, "0.0°"),
        (10.0, 0, "+10°"),
    ],
)
def test_signs_are_told_but_not_of_zero(value, digits, told):
    assert parts.signed(value, digits) == told


def test_an_arc_begins_and_ends_at_its_angles():
    points = parts.arc((1.0, 2.0), 3.0, 0.0, np.pi / 2)
    np.testing.assert_allclose(points[[0, -1]], [(4.0, 2.0), (1.0, 5.0)], atol=1e-12)


def test_a_box_stands_where_it_should_and_along_its_heading():
    ax = axes()
    parts.box(ax, (0.2, 0.1), (0.0, 1.0), 0.6, 0.2)
    ax.figure.draw_without_rendering()
    corners = ax.transData.inverted().transform(ax.patches[0].get_window_extent().corners())
    np.testing.assert_allclose(corners[[0, -1]], [(0.1, -0.2), (0.3, 0.4)], atol=0.01)


def picture(name: str, height: float) -> Picture:
    def draw(figure) -> None:
        figure.subplots().set_title(name)

    return Picture(name, height, draw)


def test_a_picture_alone_is_as_wide_as_all_and_as_high_as_it_says():
    assert picture("one", 3.0).figure().get_size_inches().tolist() == [WIDTH, 3.0]


def test_a_sheet_has_all_pictures_below_each_other_under_a_heading():
    sheet = sheet_figure([picture("one", 3.0), picture("two", 2.0)], "robot")
    assert isinstance(sheet, Figure)
    assert sheet.get_size_inches().tolist() == [WIDTH, pytest.approx(5.0 + HEADING)]
    sheet.draw_without_rendering()
    one, two = sheet.axes
    assert (one.get_title(), two.get_title()) == ("one", "two")
    assert one.get_window_extent().y0 > two.get_window_extent().y1
    assert sheet.subfigs[0].texts[0].get_text() == "robot"


def test_the_same_picture_is_the_same_file(tmp_path):
    for name in ("a.png", "b.png"):
        save_figure(picture("one", 2.0).figure(), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
