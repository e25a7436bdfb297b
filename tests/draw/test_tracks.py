"""Tracks from above, over the ground."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from transect.draw.figures import save_figure
from transect.draw.tracks import Ground, tracks_figure


def test_the_part_of_the_ground_between_two_corners_is_cut_where_they_are():
    rows, columns = np.indices((10, 20))
    ground = Ground(100.0 * rows + columns, west=-5.0, north=4.0, cell=0.5)
    part = ground.cut(np.array([0.0, 1.0]), np.array([2.0, 3.0]))
    assert part.heights[0, 0] == 100 * 2 + 10
    west, east, south, north = part.extent
    assert (west, north) == (0.0, 3.0)
    assert east >= 2.0
    assert south <= 1.0


def test_a_window_beyond_the_ground_shows_all_of_it():
    ground = Ground(np.zeros((4, 6)), west=0.0, north=2.0, cell=0.5)
    assert ground.cut(np.array([-9.0, -9.0]), np.array([9.0, 9.0])).extent == ground.extent == (0, 3, 0, 2)


def test_the_picture_names_every_track_and_shows_all_of_them():
    tracks = {
        "odometry": np.array([[0.0, 0.0], [10.0, 1.0]]),
        "gps": np.array([[0.0, 0.0, 5.0], [9.0, 3.0, 5.0]]),
    }
    axes = tracks_figure(tracks, axes_names=("ahead", "left")).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["odometry", "gps"]
    assert axes.get_xlabel() == "ahead (m)"
    assert axes.get_xlim()[1] == pytest.approx(11.5)  # 15 % of the longer side beyond the end
    assert axes.get_aspect() == 1.0


def test_positions_that_are_not_known_are_left_out(tmp_path: Path):
    track = np.array([[0.0, 0.0], [np.nan, np.nan], [2.0, 2.0], [np.nan, np.nan]])
    figure = tracks_figure({"gps": track}, Ground(np.zeros((8, 8)), -2.0, 4.0, 1.0))
    ends = [line.get_xydata()[-1].tolist() for line in figure.axes[0].lines if len(line.get_xydata()) == 1]
    assert ends == [[2.0, 2.0]]
    save_figure(figure, tmp_path / "tracks.png")
    assert (tmp_path / "tracks.png").stat().st_size > 1000
