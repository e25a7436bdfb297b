"""Pictures of reconstructions: the ground is found and levelled, and nothing is drawn of nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text

from transect.draw.clouds import Reconstruction, cloud_figure, draw_perspective, level, reconstruction_figure
from transect.draw.figures import save_figure
from transect.errors import UsageError
from transect.geometry import rotations


def ground(pitch: float, roll: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Level ground 1.2 m below a camera, a box of 0.5 m on it, and both in the camera's axes."""
    rng = np.random.default_rng(seed)
    there = np.column_stack([rng.uniform(-3, 3, 4000), rng.uniform(2, 9, 4000), rng.normal(0, 0.005, 4000)])
    box = (np.abs(there[:, 0]) < 0.3) & (np.abs(there[:, 1] - 5) < 0.3)
    there[box, 2] += 0.5
    axes = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # right, down, forward
    turn = rotations.matrix_from_rotation_vector([pitch, 0, 0]) @ rotations.matrix_from_rotation_vector(
        [0, 0, roll]
    )
    return there, (there - [0, 0, 1.2]) @ axes.T @ turn.T


@given(st.floats(-0.5, 0.5), st.floats(-0.1, 0.1))
def test_the_ground_is_level_for_any_tilt_of_the_camera(pitch: float, roll: float):
    true, seen = ground(pitch, roll)
    found = level(seen)
    np.testing.assert_allclose(found[:, 2], true[:, 2], atol=0.03)
    np.testing.assert_allclose(
        np.linalg.norm(found[:, :2], axis=1), np.linalg.norm(true[:, :2], axis=1), atol=0.05
    )


def test_the_nearest_of_two_points_on_one_pixel_is_seen():
    points = np.random.default_rng(1).uniform([-1, 2, 0], [1, 4, 0.01], (5000, 3))
    colours = np.full((5000, 3), (10, 200, 10), np.uint8)
    above = np.vstack([points, points[:500] + np.array([0, 0, 0.3])])
    picture = draw_perspective(above, np.vstack([colours, np.full((500, 3), (200, 10, 10), np.uint8)]), 5.0)
    reds = (picture == (200, 10, 10)).all(axis=2)
    assert reds.sum() >= 500


def test_a_reconstruction_is_drawn_in_four_panels(tmp_path: Path):
    _, points = ground(0.3, 0.02)
    disparity = np.where(np.indices((60, 80))[0] > 20, 12.0, np.nan)
    image = np.zeros((60, 80, 3), np.uint8)
    seen = Reconstruction(image, disparity, points, np.full(len(points), 90, np.uint8), max_range_m=20.0)
    figure = reconstruction_figure(seen, "a box")
    titles = [ax.get_title() for ax in figure.axes]
    assert "disparity: 65 % matched (grey: no match)" in titles
    assert "points up to 20 m, in perspective" in titles
    save_figure(figure, tmp_path / "box.png", dpi=40)
    assert (tmp_path / "box.png").stat().st_size > 1000


def test_points_out_of_reach_are_refused():
    _, points = ground(0.3, 0.0)
    seen = Reconstruction(
        np.zeros((4, 4), np.uint8), np.ones((4, 4)), points, np.zeros(len(points), np.uint8), 1.0
    )
    with pytest.raises(UsageError, match="within 1 m"):
        reconstruction_figure(seen)


def test_a_cloud_far_from_the_origin_is_drawn_with_round_numbers_apart():
    near = np.random.default_rng(1).uniform(0, 50, (500, 3))
    plain, far = (
        cloud_figure(near, title="here"),
        cloud_figure(near + np.array([6_155_000, 226_000, -640]), title="map"),
    )
    assert plain.axes[0].get_xlabel() == "x [m]"
    assert far.axes[0].get_xlabel() == "x - 6155000 [m]"
    assert far.axes[0].get_ylabel() == "y - 226000 [m]"
    assert far.get_suptitle() == "map: 500 points from above"
    assert plain.axes[0].get_xlim() == pytest.approx(far.axes[0].get_xlim(), abs=1e-6)


def test_a_map_in_one_plane_has_no_scale_of_heights():
    points = np.random.default_rng(1).uniform(0, 5, (50, 3)) * [1, 1, 1e-16] + [0, 0, 0.2]
    points[:, 1] *= 20  # a narrow map; its title is wider
    figure = cloud_figure(points, title="a map of an aisle in a hall")
    assert len(figure.axes) == 1
    (title,) = [
        text for text in figure.findobj(Text) if "points from above, all at z = 0.2 m" in text.get_text()
    ]
    figure.draw_without_rendering()
    box = title.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width


def test_a_cloud_of_two_points_is_refused():
    with pytest.raises(UsageError, match="2 points"):
        cloud_figure(np.zeros((2, 3)))
