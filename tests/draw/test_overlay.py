"""The picture of an overlay: what is written, where the points are, and that it is the same each time."""

import io

import numpy as np
import pytest

from transect.draw.overlay import Dots, Triad, overlay_figure

IMAGE = np.full((100, 200, 3), 90, np.uint8)
LIDAR = Dots("Lidar", np.array([[10.0, 20.0], [150.0, 80.0]]), np.array([2.0, 20.0]), 500, dt=-0.0123)
LINE = np.array([[50.0, 50.0], [60.0, 50.0]])
WHEEL = Triad("Wheel1", np.array([50.0, 50.0]), (LINE, LINE[::-1], np.full((2, 2), np.nan)))


def labels(figure) -> str:
    legend = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return "\n".join([*legend, *(text.get_text() for text in figure.texts)])


def test_the_legend_tells_sensor_points_in_view_and_time_difference():
    text = labels(overlay_figure(IMAGE, [LIDAR], title="drive", notes=["crop unknown"]))
    assert "Lidar:  2 of 500 points in view,  ΔT −12.3 ms" in text
    assert "drive" in text
    assert "crop unknown" in text


def test_points_lie_on_their_pixels_and_the_near_ones_on_top():
    ax = overlay_figure(IMAGE, [LIDAR]).axes[0]
    scatter = ax.collections[0]
    assert scatter.get_offsets().tolist() == [[150.0, 80.0], [10.0, 20.0]]
    assert ax.get_xlim() == (-0.5, 199.5)
    assert ax.get_ylim() == (99.5, -0.5)


def test_near_and_far_have_different_colours_and_a_bar_says_which():
    figure = overlay_figure(IMAGE, [LIDAR])
    figure.draw_without_rendering()
    far, near = figure.axes[0].collections[0].get_facecolors()
    assert near[0] > near[2]  # red
    assert far[2] > far[0]  # blue
    assert figure.axes[1].get_ylabel() == "depth [m]"


def test_axes_are_red_green_blue_and_have_a_name():
    ax = overlay_figure(IMAGE, [], [WHEEL]).axes[0]
    colours = [line.get_color() for line in ax.lines]
    assert {"#d1495b", "#3a9d5d", "#2f6fb3"} <= set(colours)
    assert [text.get_text() for text in ax.texts] == ["Wheel1"]


def test_nothing_in_view_is_told_and_has_no_bar():
    empty = Dots("Radar", np.zeros((0, 2)), np.zeros(0), 60)
    figure = overlay_figure(IMAGE, [empty])
    assert len(figure.axes) == 1
    assert "Radar:  0 of 60 points in view" in labels(figure)


@pytest.mark.parametrize("shape", [(100, 200, 3), (200, 100, 3), (48, 64, 3)])
def test_the_image_keeps_its_shape(shape):
    figure = overlay_figure(np.zeros(shape, np.uint8), [LIDAR])
    place, (width, height) = figure.axes[0].get_position(), figure.get_size_inches()
    assert (place.width * width) / (place.height * height) == pytest.approx(shape[1] / shape[0])


def test_long_notes_are_broken_into_lines():
    figure = overlay_figure(IMAGE, [LIDAR], notes=["word " * 200])
    assert max(len(text.get_text()) for text in figure.texts) < 200
    assert labels(figure).count("word") == 200


def test_the_same_overlay_is_the_same_picture():
    def pixels() -> bytes:
        buffer = io.BytesIO()
        overlay_figure(IMAGE, [LIDAR], [WHEEL]).savefig(buffer, format="raw", dpi=40)
        return buffer.getvalue()

    assert pixels() == pixels()
