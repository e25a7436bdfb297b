"""The picture of a moment: one panel for each sensor, north or forward up, left on the left."""

import numpy as np
import pytest

from transect.draw.figures import save_figure
from transect.draw.moment import FromAbove, Photo, Spectrum, moment_figure

IMAGE = Photo("VideoVisual", np.full((60, 80, 3), 120, np.uint8), dt=-0.04)
SCAN = FromAbove("LaserPort", np.array([[5.0, 1.0, 0.0], [6.0, -2.0, 0.0], [np.nan] * 3]), frame="Body")
CLOUD = FromAbove(
    "Lidar", np.array([[1.0, 0.0, 2.0], [-9.0, 3.0, 0.0], [4.0, 4.0, -1.0]]), dt=0.01, by_height=True
)
TURN = Spectrum(
    "RadarSpectrum",
    np.arange(12.0).reshape(3, 4),
    np.radians([10.0, -10.0, 0.0]),
    np.array([1.0, 2.0, 3.0, 4.0]),
    detected=np.array([[0.1, 2.0]]),
)


def test_each_sensor_has_a_panel_with_its_name_and_time_difference():
    figure = moment_figure([IMAGE, SCAN], "a day")
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["VideoVisual,  ΔT −40 ms", "LaserPort,  ΔT +0 ms"]
    assert figure.get_suptitle() == "a day"


def test_forward_is_up_and_left_is_left():
    ax = moment_figure([SCAN]).axes[0]
    right, left = sorted(ax.get_xlim())
    assert ax.get_xlim() == (left, right)  # the axis runs from left, positive, to right
    assert ax.get_ylim()[1] > ax.get_ylim()[0]
    assert sorted(ax.collections[0].get_offsets().tolist()) == [[-2.0, 6.0], [1.0, 5.0]]


def test_what_is_behind_is_shown_only_where_something_is_behind():
    ahead, around = (moment_figure([panel]).axes[0].get_ylim() for panel in (SCAN, CLOUD))
    assert ahead[0] == pytest.approx(-0.12 * ahead[1])
    assert around[0] == -around[1]


def test_colours_of_a_cloud_tell_the_height_and_high_points_are_on_top():
    figure = moment_figure([CLOUD])
    marks = figure.axes[0].collections[0]
    assert marks.get_array().tolist() == [-1.0, 0.0, 2.0]
    assert figure.axes[1].get_ylabel() == "height / m"


def test_a_spectrum_lies_by_bearing_and_range_with_what_was_detected():
    ax = moment_figure([TURN]).axes[0]
    mesh = ax.collections[0]
    # Bearings are sorted: -10 degrees was the second line, 4 to 7.
    assert mesh.get_array().reshape(4, 3)[:, 0].tolist() == [4.0, 5.0, 6.0, 7.0]
    assert ax.lines[0].get_xdata() == pytest.approx([np.degrees(0.1)])
    assert ax.get_ylim() == (0.0, 2.5)
    assert ax.get_xlim() == pytest.approx((10.0, -10.0))


@pytest.mark.parametrize(("count", "shape"), [(1, (1, 1)), (4, (1, 4)), (7, (2, 4)), (9, (3, 3))])
def test_panels_fill_rows_of_at_most_four(count, shape):
    figure = moment_figure([SCAN] * count)
    assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == shape


def test_a_scan_without_any_return_is_still_drawn():
    nothing = FromAbove("LaserPort", np.full((3, 3), np.nan), by_height=True)
    ax = moment_figure([nothing]).axes[0]
    assert ax.get_xlim() == (10.0, -10.0)


def test_the_same_moment_is_the_same_file(tmp_path):
    for name in ("a.png", "b.png"):
        save_figure(moment_figure([IMAGE, SCAN, TURN, CLOUD]), tmp_path / name, dpi=50)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
