"""What a picture of a moment takes from a recording."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from matplotlib.figure import Figure

from transect import robots
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
from transect.errors import StreamError, TransectError, UsageError
from transect.recording import Recording, Stream, arrow
from transect.recording.stream import stream_of_values
from transect.robots.moment import MomentOptions, draw_recordings
from transect.robots.moment.views import Moment, make_panel, revolution
from transect.types import GridMap, Image, LaserScan, Pose, RadarRange, RadarSpectrum, Record

NS = 1_000_000_000


def radar_streams(turns: float = 3.0, lines: int = 300) -> tuple[Stream, Stream]:
    """A radar that turns once a second, and sees a target at 5 m wherever it looks; bins are 1 m."""
    t_ns = np.arange(lines) * round(turns * NS / lines)
    angle = (2 * np.pi * t_ns / NS) % (2 * np.pi)
    spectra = np.zeros((lines, 8))
    spectra[:, 4] = 30.0
    columns = {
        "reflectivity": arrow.ragged_from_offsets(spectra.ravel(), 8 * np.arange(lines + 1)),
        "angle": angle,
        "bin_width": np.ones(lines),
        "range_offset": np.zeros(lines),
    }
    found = {"range": np.full(lines, 5.0), "angle": angle, "reflectivity": np.full(lines, 30.0)}
    return (
        Stream("RadarSpectrum", RadarSpectrum, arrow.table(t_ns, columns), frame="Radar"),
        Stream("RadarRangeBearing", RadarRange, arrow.table(t_ns, found), frame="Radar", role="derived"),
    )


def scan_stream(scans: int = 2) -> Stream:
    """Scans with a return straight ahead at 4 m, one to starboard at 2 m, and one that is no return."""
    columns = {
        "ranges": arrow.ragged_from_offsets(np.tile([4.0, 2.0, np.nan], scans), 3 * np.arange(scans + 1)),
        "range_error": arrow.ragged_from_offsets(np.tile([0, 0, 8191], scans), 3 * np.arange(scans + 1)),
        "start_angle": np.zeros(scans),
        "angle_increment": np.full(scans, np.pi / 2),
    }
    t_ns = NS + np.arange(scans) * (NS // 10)
    return Stream("LaserPort", LaserScan, arrow.table(t_ns, columns), frame="LaserPort")


def truth_streams() -> tuple[Stream, Stream]:
    """A vehicle that is 10 m east of the origin and looks east, a pole 4 m ahead of it, and a far tree."""
    columns = {"x": [10.0], "y": [0.0], "z": [0.0], "qx": [0.0], "qy": [0.0], "qz": [0.0], "qw": [1.0]}
    body = arrow.table(np.array([0]), {name: np.array(values) for name, values in columns.items()})
    size = arrow.ragged_from_offsets(np.full(6, 0.05), 3 * np.arange(3))
    things = {
        "kind": arrow.strings(["pole", "tree"]),
        "x": np.array([14.3, 60.0]),
        "y": np.array([0.55, 0.0]),
    }
    objects = arrow.table(np.zeros(2, np.int64), {**things, "z": np.zeros(2), "size": size})
    return (
        Stream("truth/trajectory", Pose, body, role="truth"),
        Stream("truth/objects", Record, objects, role="truth"),
    )


def image_stream(count: int = 3) -> Stream:
    """Images of 4 x 6 pixels, one a second; the line at half of the height is red, and greener each time."""

    def picture(row: dict[str, int]) -> Image:
        data = np.zeros((4, 6, 3), np.uint8)
        data[2] = (200, 10 * row["t_ns"] // NS, 0)
        return Image(data, t_ns=row["t_ns"])

    return Stream("Video", Image, arrow.table(np.arange(count) * NS, {}), frame="cam", loader=picture)


@pytest.fixture
def day() -> Recording:
    argo = robots.load("argo")
    return Recording("day", (*radar_streams(), scan_stream()), frames=argo.frames, robot=argo)


def moment(day: Recording, t_ns: int = NS, **changes: object) -> Moment:
    return dataclasses.replace(Moment(day, "utc", t_ns), **changes)


def test_a_revolution_is_half_a_turn_to_either_side(day: Recording):
    turn = revolution(day["RadarRangeBearing"], 3 * NS // 2)
    assert turn.t_ns[0] == pytest.approx(NS, abs=NS // 100)
    assert turn.t_ns[-1] == pytest.approx(2 * NS, abs=NS // 100)


def test_detected_ranges_lie_in_their_spectrum_and_have_no_panel_of_their_own(day: Recording):
    panel = make_panel(moment(day, 3 * NS // 2), [day["RadarSpectrum"]], "")
    assert isinstance(panel, SpectrumPanel)
    assert panel.reflectivity.shape == (len(panel.bearings), 8)
    assert panel.detected is not None
    assert panel.detected[:, 1] == pytest.approx(np.full(len(panel.bearings), 5.0))
    assert np.sort(panel.detected[:, 0]) == pytest.approx(np.sort(panel.bearings))
    figure = draw_recordings([day], MomentOptions(times=("+1.5s",), tolerance=0.6))[0]
    titles = [ax.get_title(loc="left").partition(",")[0] for ax in figure.axes]
    assert [title for title in titles if title] == ["LaserPort", "RadarSpectrum"]


def test_scans_are_drawn_in_the_body_with_left_positive_and_without_what_did_not_return(day: Recording):
    panel = make_panel(moment(day), [day["LaserPort"]], "above")
    assert isinstance(panel, PointPanel)
    assert panel.frame == "Body"
    # Table 2.2.5 of document 004: the laser is 0.55 m to port of the body, which is left.
    assert np.isnan(panel.points[2]).all()
    ahead, starboard = panel.points[:2]
    assert ahead[1] == pytest.approx(0.55, abs=0.3)
    assert starboard[1] < ahead[1] - 1.5


def test_nothing_is_called_forward_of_a_sensor_that_sits_on_no_known_body(day: Recording):
    panel = make_panel(moment(day.replace(robot=None)), [day["LaserPort"]], "above")
    axes = moment_figure([panel]).axes[0]
    frame = day["LaserPort"].frame
    assert (axes.get_xlabel(), axes.get_ylabel()) == (f"y of {frame} [m]", f"x of {frame} [m]")
    assert axes.lines[0].get_marker() == "o"


def test_in_a_window_the_points_of_all_its_scans_are_drawn(day: Recording):
    once, all_of_them = (
        make_panel(moment(day, window=window), [day["LaserPort"]], "above") for window in (None, (0, 2 * NS))
    )
    assert len(all_of_them.points) == 2 * len(once.points)
    assert (once.dt, all_of_them.dt) == (0.0, None)


def test_a_scan_in_a_vertical_plane_is_seen_from_the_side_unless_asked_for(day: Recording):
    upright = day["LaserPort"].replace(name="LaserVertical", frame="LaserVertical")
    assert make_panel(moment(day), [upright], "").side
    assert not make_panel(moment(day), [day["LaserPort"]], "").side


def test_ranges_over_bearing_are_one_for_each_scan_or_turn(day: Recording):
    scans = make_panel(moment(day, window=(0, 2 * NS)), [day["LaserPort"]], "dots")
    turns = make_panel(moment(day, window=(0, 3 * NS)), [day["RadarRangeBearing"]], "lines")
    assert isinstance(scans, RangePanel)
    assert (scans.name, len(scans.scans)) == ("LaserPort, 2 scans", 2)
    assert (turns.name, len(turns.scans)) == ("RadarRangeBearing, 3 turns", 3)
    assert np.concatenate(turns.scans)[:, 1] == pytest.approx(np.full(300, 5.0))


def test_beams_without_a_return_are_no_dots_but_take_lines_off_the_picture(day: Recording):
    dots, lines = (make_panel(moment(day), [day["LaserPort"]], view) for view in ("dots", "lines"))
    assert np.isnan(dots.scans[0][2, 1])
    ax = Figure().subplots()
    lines.draw(ax, ViewLimits())
    line = ax.collections[0].get_segments()[0]
    _, top = ax.get_ylim()
    assert top < 10  # what came back is 4 m away
    assert np.isin(line[:, 1], [2.0, 4.0]).sum() == 2
    assert line[:, 1].max() > top


def test_known_things_are_named_at_bearing_and_range_from_the_sensor_where_something_came_back(
    day: Recording,
):
    known = day.replace(streams=(*day.streams, *truth_streams()))
    streams = [known["LaserPort"], known["truth/objects"]]
    panel = make_panel(moment(known), streams, "dots")
    assert [name for name, _ in panel.landmarks] == ["pole"]
    bearing, distance = panel.landmarks[0][1]
    # The return straight ahead of the laser is 4 m away, and so, to 0.2 m, is the pole that it came from.
    assert bearing == pytest.approx(0.0, abs=0.05)
    assert distance == pytest.approx(4.0, abs=0.2)
    together = make_panel(moment(known), streams, "above")
    assert isinstance(together, CombinedPointPanel)
    assert [name for name, _ in together.landmarks] == ["pole"]


def test_a_line_of_images_is_taken_where_it_was_asked_for(day: Recording):
    video = image_stream()
    filmed = day.replace(streams=(*day.streams, video))
    marked, row, time = (
        make_panel(moment(filmed, window=(0, 3 * NS)), [video], view) for view in ("marked", "row", "time")
    )
    assert [type(panel) for panel in (marked, row, time)] == [ImagePanel, PixelRowPanel, WaterfallPanel]
    assert marked.row == 2
    assert row.rgb[:, 0].tolist() == [[200, 0, 0], [200, 10, 0], [200, 20, 0]]
    assert time.seconds.tolist() == [0.0, 1.0, 2.0]
    assert make_panel(moment(filmed), [video], "row").rgb.shape == (1, 6, 3)


def test_scans_and_spectra_over_time_have_a_line_for_each_sample(day: Recording):
    scans, spectra = (make_panel(moment(day), [day[name]], "time") for name in ("LaserPort", "RadarSpectrum"))
    assert scans.values.shape == (2, 3)
    assert scans.across.tolist() == sorted(scans.across.tolist(), reverse=True)
    assert np.isnan(scans.values).sum() == 2
    assert spectra.values.shape == (300, 8)
    assert spectra.values[:, 4] == pytest.approx(np.full(300, 30.0))


def test_a_column_is_drawn_over_time_or_over_another_with_its_unit(day: Recording):
    t_ns = np.arange(3) * NS
    columns = {"Fz": np.array([0.0, 5.0, 9.0]), "depth": np.array([0.0, 0.1, 0.2])}
    felt = stream_of_values("Forces", t_ns, columns, units={"Fz": "N", "depth": "m"})
    pressed = day.replace(streams=(felt,))
    over_time, over_depth = (make_panel(moment(pressed), [felt], view) for view in ("Fz", "Fz~depth"))
    assert isinstance(over_time, CurvePanel)
    assert over_time.curves[0][1].tolist() == [0.0, 1.0, 2.0]
    assert (over_depth.xlabel, over_depth.ylabel) == ("depth [m]", "Fz [N]")
    assert over_depth.curves[0][1].tolist() == [0.0, 0.1, 0.2]


def test_a_map_lies_where_its_corners_are_and_depth_is_an_image(day: Recording):
    values = np.arange(6.0).reshape(2, 3)
    panels = []
    for transform in ((0.5, 0, 10, 0, -0.5, 7), (1, 0, 0, 0, 1, 0)):
        grid = GridMap({"elevation": values}, transform)
        stream = Stream(
            "dem", GridMap, arrow.table(np.zeros(1, np.int64), {}), loader=lambda _, grid=grid: grid
        )
        panels.append(make_panel(moment(day), [stream], ""))
    assert all(isinstance(panel, FieldPanel) for panel in panels)
    assert [panel.extent for panel in panels] == [(10.0, 11.5, 6.0, 7.0), None]
    assert [panel.label for panel in panels] == ["elevation [m]", "depth [m]"]


def test_panels_of_several_recordings_name_the_recording(day: Recording):
    dusty = dataclasses.replace(day, name="dust")
    figure = draw_recordings([day, dusty], MomentOptions(panels=("LaserPort:dots",), times=("+1s",)))[0]
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
        "day: LaserPort, 1 scan",
        "dust: LaserPort, 1 scan",
    ]
    figure = draw_recordings(
        [day], MomentOptions(panels=("LaserPort",), times=("+1s", "+1.1s"), title="both")
    )[0]
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
        "+1s: LaserPort,  ΔT +0 ms",
        "+1.1s: LaserPort,  ΔT +0 ms",
    ]
    assert figure.get_suptitle() == "both"


def test_panels_come_in_the_order_asked_for_and_a_glob_is_one_for_each(day: Recording):
    figure = draw_recordings(
        [day], MomentOptions(panels=("Radar*:angle", "LaserPort:dots"), start="+1s", end="+2s")
    )[0]
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
        "RadarSpectrum, angle",
        "RadarRangeBearing, angle",
        "LaserPort, 2 scans",
    ]


@pytest.mark.parametrize(
    ("panel", "what"),
    [
        ("LaserPort:photo", "LaserPort has no view 'photo'"),
        ("Sonar", "there is no stream for --panel Sonar"),
        ("LaserPort+RadarRangeBearing:time", "cannot draw several streams as time"),
        ("LaserPort+RadarSpectrum:above", "RadarSpectrum has no points"),
    ],
)
def test_a_panel_that_cannot_be_drawn_is_refused(day: Recording, panel: str, what: str):
    with pytest.raises(TransectError, match=what):
        draw_recordings([day], MomentOptions(panels=(panel,), times=("+1s",)))


def test_streams_are_chosen_in_one_way_only(day: Recording):
    with pytest.raises(UsageError, match="both choose"):
        draw_recordings([day], MomentOptions(panels=("LaserPort",), streams=("Laser*",), times=("+1s",)))


def test_a_wrong_view_lists_what_there_is(day: Recording):
    with pytest.raises(UsageError) as caught:
        draw_recordings([day], MomentOptions(panels=("LaserPort:photo",), times=("+1s",)))
    assert "above, side, dots, lines, time" in str(caught.value)


def test_a_stream_that_is_far_in_time_is_left_out_and_named(day: Recording):
    figure, notes = draw_recordings([day], MomentOptions(times=("+2.5s",)))
    titles = [ax.get_title(loc="left").partition(",")[0] for ax in figure.axes]
    assert [title for title in titles if title] == ["RadarSpectrum"]
    assert notes == ["left out: LaserPort: its nearest sample is -1.400 s away"]


def test_streams_without_pictures_are_refused(day: Recording):
    with pytest.raises(StreamError, match="no images, scans, radars or clouds"):
        draw_recordings([day.select("Laser*").replace(streams=())], MomentOptions())
