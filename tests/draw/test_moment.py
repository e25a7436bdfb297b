"""The picture of a moment: one panel for each sensor, north or forward up, left on the left."""

import numpy as np
import pytest

from transect.draw.figures import save_figure
from transect.draw.moment import (
    CombinedPointPanel,
    CurvePanel,
    FieldPanel,
    ImagePanel,
    PixelRowPanel,
    PointPanel,
    RangePanel,
    SpectrumPanel,
    ViewLimits,
    WaterfallPanel,
    moment_figure,
)

IMAGE = ImagePanel("VideoVisual", np.full((60, 80, 3), 120, np.uint8), dt=-0.04)
SCAN = PointPanel(
    "LaserPort", np.array([[5.0, 1.0, 0.0], [6.0, -2.0, 0.0], [np.nan] * 3]), frame="Body", dt=0.0
)
CLOUD = PointPanel(
    "Lidar", np.array([[1.0, 0.0, 2.0], [-9.0, 3.0, 0.0], [4.0, 4.0, -1.0]]), dt=0.01, by_height=True
)
SIDE = PointPanel("LaserVertical", np.array([[2.0, 0.0, -1.0], [5.0, 0.0, 3.0]]), frame="Body", side=True)
TURN = SpectrumPanel(
    "RadarSpectrum",
    np.arange(12.0).reshape(3, 4),
    np.radians([10.0, -10.0, 0.0]),
    np.array([1.0, 2.0, 3.0, 4.0]),
    detected=np.array([[0.1, 2.0]]),
)
BEAMS = [np.column_stack([np.radians([-60.0, 0.0, 20.0]), [9.0, 4.0, 5.0]])]
AHEAD = ViewLimits(sector=np.radians(30), reach=12.0)


def test_each_sensor_has_a_panel_with_its_name_and_time_difference():
    figure = moment_figure([IMAGE, SCAN, RangePanel("radar, 3 turns", BEAMS)], "a day")
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["VideoVisual,  ΔT −40 ms", "LaserPort,  ΔT +0 ms", "radar, 3 turns"]
    assert figure.get_suptitle() == "a day"


def test_a_slightly_early_sample_is_not_at_minus_zero():
    figure = moment_figure([ImagePanel("VideoVisual", IMAGE.rgb, dt=-0.0001)])
    assert figure.axes[0].get_title(loc="left") == "VideoVisual,  ΔT +0 ms"


def test_a_long_title_is_wrapped_to_the_width_of_the_picture():
    short, long = (moment_figure([SCAN], words) for words in ("a day", "a day in the open air " * 5))
    assert all(len(line) < 45 for line in long.get_suptitle().splitlines())
    assert long.get_figheight() > short.get_figheight()


def test_forward_is_up_and_left_is_left():
    ax = moment_figure([SCAN]).axes[0]
    right, left = sorted(ax.get_xlim())
    assert ax.get_xlim() == (left, right)  # the axis runs from left, positive, to right
    assert ax.get_ylim()[1] > ax.get_ylim()[0]
    assert sorted(ax.collections[0].get_offsets().tolist()) == [[-2.0, 6.0], [1.0, 5.0]]


def test_from_the_side_forward_is_right_and_heights_are_up():
    ax = moment_figure([SIDE]).axes[0]
    assert sorted(ax.collections[0].get_offsets().tolist()) == [[2.0, -1.0], [5.0, 3.0]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("ahead of Body [m]", "height [m]")
    assert ax.get_ylim()[0] < -1.0 < 3.0 < ax.get_ylim()[1]


def test_what_is_behind_is_shown_only_where_something_is_behind():
    ahead, around = (moment_figure([panel]).axes[0].get_ylim() for panel in (SCAN, CLOUD))
    assert ahead[0] == pytest.approx(-0.12 * ahead[1])
    assert around[0] == -around[1]


def test_limits_say_how_far_points_and_ranges_go():
    above, over = moment_figure([SCAN, RangePanel("LaserPort", BEAMS)], limits=AHEAD).axes
    assert above.get_ylim()[1] == 12.0
    assert above.get_xlim() == pytest.approx((6.0, -6.0))  # sin 30 degrees of 12 m
    assert over.get_xlim() == pytest.approx((30.0, -30.0))
    assert over.get_ylim() == (0.0, 12.0)


def test_colours_of_a_cloud_show_the_height_and_high_points_are_on_top():
    figure = moment_figure([CLOUD])
    marks = figure.axes[0].collections[0]
    assert marks.get_array().tolist() == [-1.0, 0.0, 2.0]
    assert figure.axes[1].get_ylabel() == "height [m]"


def test_a_spectrum_lies_by_bearing_and_range_with_what_was_detected():
    ax = moment_figure([TURN]).axes[0]
    mesh = ax.collections[0]
    # Bearings are sorted: -10 degrees was the second line, 4 to 7.
    assert mesh.get_array().reshape(4, 3)[:, 0].tolist() == [4.0, 5.0, 6.0, 7.0]
    assert ax.lines[0].get_xdata() == pytest.approx([np.degrees(0.1)])
    assert ax.get_ylim() == (0.0, 2.5)
    assert ax.get_xlim() == pytest.approx((10.0, -10.0))


def test_ranges_are_dots_or_lines_over_bearing_in_degrees():
    dots, lines = (moment_figure([RangePanel("r", BEAMS, lines=each)]).axes[0] for each in (False, True))
    assert dots.lines[0].get_xdata() == pytest.approx([-60.0, 0.0, 20.0])
    assert dots.lines[0].get_ydata() == pytest.approx([9.0, 4.0, 5.0])
    assert lines.collections[0].get_segments()[0] == pytest.approx(np.array([[-60, 9], [0, 4], [20, 5]]))
    assert dots.get_xlim()[0] > dots.get_xlim()[1]


def test_things_are_named_where_they_are_and_only_inside_the_picture():
    things = (("pole", np.array([5.0, 1.0, 0.0])), ("far tree", np.array([50.0, 0.0, 0.0])))
    other = PointPanel("LaserStarboard", np.array([[7.0, 0.0, 0.0]]), frame="Body")
    ax = moment_figure(
        [CombinedPointPanel("returns", (SCAN, other), things)], limits=ViewLimits(reach=12.0)
    ).axes[0]
    assert [text.get_text() for text in ax.texts] == ["pole"]
    assert ax.texts[0].xy == (1.0, 5.0)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["LaserPort", "LaserStarboard"]


def test_names_of_things_do_not_lie_over_each_other():
    things = tuple((f"pole {k}", np.array([6.0, 0.1 * k, 0.0])) for k in range(4))
    figure = moment_figure([CombinedPointPanel("returns", (SCAN,), things)], limits=ViewLimits(reach=12.0))
    figure.draw_without_rendering()
    # The box of an annotation holds its line too; the text's own box is what must not be covered.
    boxes = [text.get_bbox_patch().get_window_extent() for text in figure.axes[0].texts]
    overlaps = [(a, b) for a in range(4) for b in range(a) if boxes[a].overlaps(boxes[b])]
    assert overlaps == []


def test_a_line_of_an_image_is_drawn_as_red_green_and_blue():
    rgb = np.array([[[10, 20, 30], [40, 50, 60]]], np.uint8)
    ax = moment_figure([PixelRowPanel("VideoVisual", rgb)]).axes[0]
    assert [line.get_ydata().tolist() for line in ax.lines] == [[10, 40], [20, 50], [30, 60]]


def test_a_marked_image_has_its_line_in_black():
    ax = moment_figure([ImagePanel("VideoVisual", IMAGE.rgb, row=25)]).axes[0]
    assert (list(ax.lines[0].get_ydata()), ax.lines[0].get_color()) == ([25, 25], "black")


def test_time_goes_down_and_left_bearings_are_on_the_left():
    seen = WaterfallPanel(
        "LaserPort", np.ones((3, 2)), np.array([0.0, 0.5, 1.0]), np.array([0.5, -0.5]), "bearing", "m"
    )
    ax = moment_figure([seen], limits=AHEAD).axes[0]
    assert ax.get_ylim() == (1.0, 0.0)
    assert ax.get_xlim() == pytest.approx((30.0, -30.0))


def test_no_echo_of_a_spectrum_falls_between_the_lines_that_are_drawn():
    spectra = np.zeros((1201, 4))
    spectra[777, 2] = 60.0
    seen = WaterfallPanel("Radar", spectra, np.arange(1201.0), np.arange(4.0), "range", "reflectivity")
    mesh = moment_figure([seen]).axes[0].collections[0]
    assert mesh.get_array().max() == 60.0
    assert len(mesh.get_array()) < 200


def test_curves_have_a_legend_where_there_are_several():
    t, y = np.arange(3.0), np.array([1.0, np.nan, 2.0])
    alone = moment_figure([CurvePanel("Fz", (("felt", t, y),), "time [s]", "Fz [N]")]).axes[0]
    both = moment_figure([CurvePanel("Fz", (("felt", t, y), ("true", t, y)), "time [s]", "Fz [N]")]).axes[0]
    assert alone.get_legend() is None
    assert [text.get_text() for text in both.get_legend().get_texts()] == ["felt", "true"]
    assert both.get_ylabel() == "Fz [N]"


def test_depth_has_a_logarithmic_bar_with_plain_numbers_and_a_map_has_metres():
    depth = FieldPanel("depth", np.geomspace(1, 50, 12).reshape(3, 4), "depth [m]")
    ground = FieldPanel("dem", np.arange(12.0).reshape(3, 4), "elevation [m]", (0.0, 4.0, 0.0, 3.0))
    figure = moment_figure([depth, ground])
    figure.draw_without_rendering()
    bars = [ax for ax in figure.axes if ax.get_ylabel().endswith("[m]") and ax.get_xlabel() == ""]
    assert [bar.get_ylabel() for bar in bars] == ["depth [m]", "elevation [m]"]
    assert {"5", "10"} <= {text.get_text() for text in bars[0].get_yticklabels()}
    assert figure.axes[2].get_xlim() == (0.0, 4.0)


@pytest.mark.parametrize(("count", "shape"), [(1, (1, 1)), (4, (1, 4)), (7, (2, 4)), (9, (3, 3))])
def test_panels_fill_rows_of_at_most_four(count, shape):
    figure = moment_figure([SCAN] * count)
    assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == shape


def test_the_number_of_columns_can_be_set():
    figure = moment_figure([SCAN] * 3, columns=1)
    assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == (3, 1)


def test_a_scan_without_any_return_is_still_drawn():
    nothing = PointPanel("LaserPort", np.full((3, 3), np.nan), by_height=True)
    ax = moment_figure([nothing]).axes[0]
    assert ax.get_xlim() == (10.0, -10.0)


def test_the_same_moment_is_the_same_file(tmp_path):
    for name in ("a.png", "b.png"):
        save_figure(moment_figure([IMAGE, SCAN, TURN, CLOUD]), tmp_path / name, dpi=50)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
