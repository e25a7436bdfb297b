"""Tracks from above, over the ground."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes

from transect.draw.ground import GroundLayer
from transect.draw.tracks import PlottedTrack, TrackStyle, tracks_figure

EASTWARD = PlottedTrack("a", np.column_stack([np.arange(10.0), np.zeros(10)]), np.arange(10.0))


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_the_part_of_the_ground_in_a_window_is_cut_where_it_is():
    rows, columns = np.indices((10, 20))
    ground = GroundLayer(100.0 * rows + columns, (0.5, 0.0, -5.0, 0.0, -0.5, 4.0))
    part = ground.cut(np.array([0.0, 1.0]), np.array([2.0, 3.0]))
    assert part.image[0, 0] == 100 * 2 + 10
    assert part.image.shape == (4, 4)
    assert part.corners.tolist() == [[0, 3], [0, 1], [2, 3], [2, 1]]


def test_a_turned_ground_is_cut_to_the_cells_that_the_window_can_show():
    """A grid whose rows go to the north and columns to the west, as ROS may write it."""
    ground = GroundLayer(np.arange(48.0).reshape(6, 8), (0.0, -1.0, 0.0, 1.0, 0.0, 0.0), "occupancy")
    part = ground.cut(np.array([-3.0, 2.0]), np.array([-1.0, 4.0]))
    np.testing.assert_array_equal(part.image, ground.image[1:3, 2:4])
    assert part.corners[0].tolist() == [-1.0, 2.0]


def test_a_window_beyond_the_ground_shows_all_of_it_and_large_ground_is_subsampled():
    ground = GroundLayer(np.zeros((4, 6)), (0.5, 0.0, 0.0, 0.0, -0.5, 2.0))
    assert ground.cut(np.full(2, -9.0), np.full(2, 9.0)).image.shape == (4, 6)
    large = GroundLayer(np.zeros((5000, 2400)), (1.0, 0.0, 0.0, 0.0, -1.0, 5000.0))
    subsampled = large.cut(np.zeros(2), np.full(2, 5000.0))
    assert subsampled.image.shape == (1000, 480)
    assert subsampled.corners[-1].tolist() == [2400.0, 0.0]


def test_the_picture_is_widened_where_the_ground_below_a_track_is_not_known():
    rows, columns = np.indices((40, 40))
    heights = np.where(np.hypot(rows - 20, columns - 20) < 8, np.nan, 1.0)  # as a lidar sees around itself
    ground = GroundLayer(heights, (1.0, 0, -20.0, 0, -1.0, 20.0))
    track = PlottedTrack("a", np.array([[-1.0, 0.0], [1.0, 0.5]]))
    low, high = tracks_figure([track], ground).axes[0].get_xlim()
    assert (low, high) == (pytest.approx(-high), pytest.approx(high))
    assert 8 < high < 20


def test_gaps_are_marked_and_said_and_no_line_goes_over_them():
    track = PlottedTrack("a", EASTWARD.points, np.array([0, 1, 2, 3, 4, 12, 13, 14, 15, 16.0]))
    assert track.gaps().tolist() == [5]
    assert track.gaps(max_gap_s=9.0).tolist() == []
    figure = tracks_figure([track])
    lines = [np.asarray(line.get_xdata()).tolist() for line in figure.axes[0].lines]
    assert [0.0, 1.0, 2.0, 3.0, 4.0] in lines
    assert [4.0, 5.0] in lines  # the dots
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["start", "end", "a gap of 8.0 s"]


def test_the_picture_names_tracks_and_places_and_shows_all_of_them_with_a_scale_and_north():
    other = PlottedTrack("b", np.array([[0.0, 0.0], [9.0, 3.0], [np.nan, np.nan]]))
    style = TrackStyle(names=("east", "north"), north=True)
    axes = tracks_figure([EASTWARD, other], places={"lander": np.array([10.0, 0.0])}, style=style).axes[0]
    assert {"a", "b", "lander", "N", "2 m"} <= set(texts(axes))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("east [m]", "north [m]")
    assert axes.get_xlim()[1] == pytest.approx(11.2)  # 12 % of the longer side beyond the place
    assert axes.get_aspect() == 1.0
    ends = [np.asarray(line.get_xydata()).tolist() for line in axes.lines if line.get_marker() == "s"]
    assert ends == [[[9.0, 0.0]], [[9.0, 3.0]]]  # what is not known at the end is no end


def test_panels_have_one_scale_so_that_lengths_compare():
    short = PlottedTrack("b", np.array([[0.0, 0.0], [1.0, 0.5]]))
    first, second = tracks_figure([EASTWARD, short], style=TrackStyle(panels=True)).axes[:2]
    assert np.ptp(first.get_xlim()) == pytest.approx(np.ptp(second.get_xlim()))
    assert (first.get_title(loc="left"), second.get_title(loc="left")) == ("a", "b")


@pytest.mark.parametrize(
    ("ground", "bars"),
    [
        (GroundLayer(np.arange(64.0).reshape(8, 8), (2.0, 0, -2.0, 0, -2.0, 4.0)), ["height [m]"]),
        (GroundLayer(np.ones((8, 8)), (2.0, 0, -2.0, 0, -2.0, 4.0), cycle=0.5), ["height within 0.5 m [m]"]),
        (GroundLayer(np.array([[np.nan, 0.0], [50.0, 100.0]]), (9.0, 0, 0, 0, 9.0, 0), "occupancy"), []),
        (GroundLayer(np.full((2, 2, 3), 0.5), (9.0, 0, 0, 0, 9.0, 0), "colours"), []),
        (GroundLayer(np.array([[1.0, 1.0], [2.0, 2.0]]), kind="points"), []),
    ],
)
def test_each_kind_of_ground_is_drawn_and_explained(ground: GroundLayer, bars: list[str]):
    figure = tracks_figure([EASTWARD], ground, style=TrackStyle(colour="time"))
    labels = [axes.get_ylabel() for axes in figure.axes[1:]]
    assert labels == ["time from the start [s]", *bars]
    assert len(figure.axes[0].images) == (ground.kind != "points")
