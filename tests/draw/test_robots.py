"""Drawings of robots: views, axes, hulls and lengths."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from transect.draw import robots
from transect.draw.figures import new_figure, save_figure
from transect.draw.frames import AXIS_COLOURS
from transect.draw.robots import SHEET, VIEWS, Dimension, RobotScene, RobotSolid, robot_figure
from transect.errors import UsageError


def axes():
    ax = new_figure(4.0, 4.0).add_subplot()
    ax.set(xlim=(-1, 1), ylim=(-1, 1))
    return ax


def box(*size: float) -> np.ndarray:
    signs = np.stack(np.meshgrid(*[[-0.5, 0.5]] * 3), axis=-1).reshape(-1, 3)
    return signs * size


def arrows(ax) -> dict[tuple[float, ...], np.ndarray]:
    """Tips of the arrows by colour."""
    return {t.arrow_patch.get_edgecolor(): np.array(t.xy) for t in ax.texts if hasattr(t, "arrow_patch")}


@pytest.mark.parametrize(
    ("view", "tips", "marker"),
    [
        # x, y, z on the paper; None stands on it. From above z comes to the reader, from the right y goes
        # away, from the front x comes.
        ("top", [(1, 0), (0, 1), None], "o"),
        ("side", [(1, 0), None, (0, 1)], "x"),
        ("front", [None, (1, 0), (0, 1)], "o"),
    ],
)
def test_axes_point_as_their_view_has_it(view, tips, marker):
    ax = axes()
    robots._draw_axes(ax, VIEWS[view][1], np.eye(4), 1.0)
    found = arrows(ax)
    for colour, tip in zip(AXIS_COLOURS, tips, strict=True):
        if tip is None:
            assert to_rgba(colour) not in found
        else:
            np.testing.assert_allclose(found[to_rgba(colour)], tip)
    assert [line.get_marker() for line in ax.lines] == ["o", marker]


@pytest.mark.parametrize(
    ("metres", "told"), [(1.6, "1.60 m"), (0.402, "0.402 m"), (1.0, "1.00 m"), (0.97666, "0.977 m")]
)
def test_lengths_have_two_or_three_digits(metres, told):
    assert Dimension("", np.zeros(3), np.array([metres, 0, 0])).text == told


def scene(**parts) -> RobotScene:
    solids = [RobotSolid(box(2.0, 1.0, 0.5)), RobotSolid(box(0.4, 0.1, 0.4) - [0, 0.6, 0.3], "wheel", "left")]
    return RobotScene("a robot", {"base": np.eye(4)}, solids, **parts)


def test_each_length_is_shown_once_in_a_view_where_it_is_true():
    spans = [Dimension(name, np.zeros(3), np.eye(3)[k]) for k, name in enumerate(("along", "across", "up"))]
    figure = robot_figure(scene(spans=spans))
    shown = [[t.get_text() for t in ax.texts if t.get_text().endswith("m")] for ax in figure.axes]
    assert [sorted(texts) for texts in shown] == [["across 1.00 m", "along 1.00 m"], ["up 1.00 m"], []]


def test_all_views_have_one_scale_and_the_side_stands_below_the_top():
    figure = robot_figure(scene())
    assert [len(figure.axes), figure.get_size_inches()[0]] == [3, SHEET.width]
    top, side, front = figure.axes
    scales = [ax.get_window_extent().width / np.ptp(ax.get_xlim()) for ax in figure.axes]
    scales += [ax.get_window_extent().height / np.ptp(ax.get_ylim()) for ax in figure.axes]
    np.testing.assert_allclose(scales, scales[0])
    assert top.get_xlim() == side.get_xlim()
    assert top.get_window_extent().y0 >= side.get_window_extent().y1 - 1
    assert front.get_window_extent().x0 >= side.get_window_extent().x1 - 1


def test_one_view_alone_and_a_wrong_name_says_which_there_are():
    assert len(robot_figure(scene(), "side").axes) == 1
    with pytest.raises(UsageError, match="did you mean 'front'"):
        robot_figure(scene(), "fron")


def test_the_same_picture_is_the_same_file(tmp_path):
    for name in ("a.png", "b.png"):
        save_figure(robot_figure(scene()), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
