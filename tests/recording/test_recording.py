"""Recordings: choosing, cutting, merging, joining, and the table a person sees."""

from __future__ import annotations

import numpy as np
import pytest

from transect.base.tables import fit_table
from transect.errors import StreamError, TimeError, TransectError
from transect.recording import FrameTree, Loss, Parsed, Recording, Stream, arrow, join, stream_of_values
from transect.recording.stream import LOGGED_TYPE
from transect.recording.summary import count_copies, rate_text, stream_facts, stream_table
from transect.types import CameraModel, NavFix, Pose

NS = 1_000_000_000


def stream(name: str, times: list[int], **attributes: object) -> Stream:
    return stream_of_values(name, np.array(times, np.int64), {"v": np.arange(len(times)) * 1.0}, **attributes)


def recording(*streams: Stream, name: str = "r", **attributes: object) -> Recording:
    return Recording(name, streams, **attributes)  # pyright: ignore[reportArgumentType]


def test_a_stream_is_found_by_its_name_or_a_unique_part_of_it() -> None:
    rec = recording(stream("Gnss/Pose", [0]), stream("Gnss/Imu", [0]), stream("Lidar", [0]))
    assert rec["Gnss/Pose"].name == rec["pose"].name == "Gnss/Pose"
    with pytest.raises(StreamError, match="Gnss/Imu"):
        rec["gnss"]
    with pytest.raises(StreamError, match="Lidar"):
        rec["Lidr"]


def test_a_stream_stands_for_its_name() -> None:
    rec = recording(stream("a", [0, NS]), stream("b", [0]))
    assert rec.slice(0, NS)[rec.streams[0]].t_ns.tolist() == [0]
    assert rec.streams[0] in rec
    assert stream("c", [0]) not in rec
    for wrong in (stream("c", [0]), 0, None):
        with pytest.raises(StreamError, match=r"no stream 'c'|is not the name of a stream"):
            rec[wrong]  # pyright: ignore[reportArgumentType]


def test_two_streams_of_one_name_are_refused() -> None:
    with pytest.raises(StreamError, match="several"):
        recording(stream("a", [0]), stream("a", [1]))


def test_merge_is_in_time_order_and_ties_go_by_name_then_row() -> None:
    rec = recording(stream("b", [1, 2, 2]), stream("a", [2, 0]))
    merged = [(s.t_ns, s.stream.name, s.index) for s in rec.merge()]
    assert merged == [(0, "a", 1), (1, "b", 0), (2, "a", 0), (2, "b", 1), (2, "b", 2)]


def test_merge_refuses_streams_of_different_clocks() -> None:
    rec = recording(stream("a", [0]), stream("b", [0], clock="sclk"))
    with pytest.raises(TimeError, match="sclk"):
        next(rec.merge())
    assert [s.stream.name for s in rec.merge("b")] == ["b"]


def test_a_slice_counts_from_the_first_sample_of_the_recording() -> None:
    rec = recording(stream("a", [10 * NS, 11 * NS, 12 * NS]), stream("b", [11 * NS, 13 * NS]))
    cut = rec.slice("+1s", "+2s")
    assert cut["a"].t_ns.tolist() == [11 * NS]
    assert cut["b"].t_ns.tolist() == [11 * NS]


def test_joined_recordings_are_laid_end_to_end_with_a_seam() -> None:
    first = recording(stream("a", [0, 1, 2]), name="t0")
    second = recording(stream("a", [100, 101]), stream("b", [100]), name="t1")
    whole = join([second, first])
    assert whole["a"].t_ns.tolist() == [0, 1, 2, 100, 101]
    assert whole["a"].seams == (3,)
    assert whole["a"].timing.gap_s == pytest.approx(1e-9)
    assert len(whole["b"]) == 1


def test_overlapping_recordings_are_joined_only_with_a_prefix() -> None:
    first, second = recording(stream("a", [0, 5]), name="t0"), recording(stream("a", [3]), name="t1")
    with pytest.raises(TimeError, match="overlap"):
        join([first, second])
    both = join([first, second.replace(streams=(stream("a", [3], frame="imu"),))], prefix=True)
    assert [(s.name, s.frame) for s in both] == [("t0/a", ""), ("t1/a", "t1/imu")]


def test_unequal_calibrations_are_not_joined() -> None:
    def camera(f: float) -> CameraModel:
        return CameraModel("cam", 4, 3, np.diag([f, f, 1.0]))

    first = recording(stream("a", [0]), cameras={"cam": camera(1.0)})
    second = recording(stream("a", [1]), cameras={"cam": camera(2.0)})
    with pytest.raises(TransectError, match="calibrations"):
        join([first, second])


def test_a_part_without_images_does_not_argue_about_calibration_and_what_it_lacks_is_said() -> None:
    """A reader scales a calibration to the images that there are; where there are none, it cannot."""

    def camera(width: int) -> CameraModel:
        return CameraModel("cam", width, width, np.diag([width, width, 1.0]))

    seen = stream("images", [0, NS], camera="cam")
    first = recording(stream("a", [0]), name="t0", cameras={"cam": camera(100)})
    second = recording(stream("a", [NS]), seen, name="t1", cameras={"cam": camera(50)})
    both = join([first, second])
    assert both.cameras["cam"].width == 50
    assert (len(both["a"]), len(both["images"])) == (2, 2)
    assert both.notes == ("t0 has no images",)


def test_truth_is_the_six_dof_stream_of_that_role() -> None:
    t = np.arange(2)
    columns = {c: np.zeros(2) for c in ("x", "y", "z", "qx", "qy", "qz", "qw")}
    full = stream_of_values("z_truth", t, columns, type=Pose, role="truth")
    fixes = stream_of_values("a_fix", t, {"lat": np.zeros(2)}, type=NavFix, role="truth")
    assert recording(fixes, full).truth is full
    assert recording(fixes).truth is fixes
    labels = stream_of_values("a/faults", t, {"severity": np.zeros(2)}, role="truth")
    assert recording(labels, fixes).truth is fixes
    assert recording(stream("a", [0])).truth is None


def test_the_table_shows_what_a_person_wants_and_what_was_lost() -> None:
    loss = Loss("gnss.csv", "the last line is cut off", line=7)
    lossy = Stream("Gnss", NavFix, Parsed(arrow.table(np.arange(3) * NS, {}), (loss,), ("a note",)))
    rec = recording(lossy, stream("Imu", [0, NS // 100, 5 * NS]), name="etna")
    text = repr(rec)
    for expected in ("etna", "Gnss", "NavFix", "longest gap", "4.99 s", "gnss.csv:7", "a note"):
        assert expected in text
    assert "<table>" in rec._repr_html_()
    assert "gnss.csv:7" in rec._repr_html_()


def test_the_type_in_the_log_stands_beside_ours_and_fits_into_80_columns() -> None:
    odom = stream("/husky_velocity_controller/odom", [0, NS], meta={LOGGED_TYPE: "nav_msgs/msg/Odometry"})
    table = stream_table(recording(odom, stream("/clock", [0, NS])))
    assert [row[2] for row in table.rows] == ["nav_msgs/Odometry", "-"]
    fitted = fit_table([table.headings, *table.rows], table.right, width=80, order=table.order, names=(0,))
    assert max(map(len, fitted.lines)) <= 80
    assert all(heading in fitted.lines[0] for heading in ("rate", "longest gap", "role"))
    wider = fit_table([table.headings, *table.rows], table.right, width=110, order=table.order, names=(0,))
    assert "logged as" in wider.lines[0]
    assert fitted.lines[1].startswith("/husky_velocity_controller/odom  Record")  # a name is typed, so whole
    assert "logged as" not in repr(recording(stream("Imu", [0, NS])))
    joined = join([recording(odom), recording(odom.replace(source=stream("", [5 * NS]).source))])
    assert "nav_msgs/Odometry" in repr(joined)


def test_samples_that_were_stamped_in_one_go_have_no_rate() -> None:
    """Two messages 2.5 ns apart once had a rate of 4.02e+05 kHz."""
    assert rate_text(1 / 2.5e-9) == "at once"
    assert "at once" in repr(recording(stream("/tf_static", [0, 2, 5])))
    assert (rate_text(99.84), rate_text(1000.0), rate_text(8e4)) == ("99.8 Hz", "1 kHz", "80 kHz")


@pytest.mark.parametrize("block", [1, 4, arrow.BLOCK_ROWS])
def test_rows_of_a_receiver_that_are_copies_are_counted_and_the_real_rate_is_said(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(arrow, "BLOCK_ROWS", block)
    values = np.repeat(np.arange(5.0), 2)
    columns = {"lat": values, "lon": values, "alt": np.full(10, np.nan), "fix": ["3d"] * 10}
    t_ns = np.arange(10) * NS // 10
    fixes = stream_of_values("Gps", t_ns, columns, type=NavFix)
    assert count_copies(fixes) == stream_facts(fixes)["copied_rows"] == 5
    assert "note: Gps: 5 of 10 rows are copies of the row before: new values come at 5 Hz" in repr(
        recording(fixes)
    )
    at_rest = stream_of_values("Wheels", t_ns, {"x": np.zeros(10)}, type=Pose)
    assert count_copies(at_rest) == 0  # a vehicle may stand still


def test_a_clock_that_goes_back_is_said_once_for_all_streams_on_it() -> None:
    times = [0, 3 * NS, NS, 2 * NS, 5 * NS, 4 * NS]
    shown = repr(recording(stream("Imu", times), stream("Fix", times), stream("Odo", [0, NS])))
    (note,) = [line for line in shown.splitlines() if "goes back" in line]
    assert note == (
        "note: Imu, Fix: the clock goes back 2 times, by up to 2.00 s, first after 1970-01-01T00:00:03.000; "
        "--clocks shows more"
    )
    joined = join([recording(stream("Imu", [2 * NS, 3 * NS])), recording(stream("Imu", [0, NS]))])
    assert "goes back" not in repr(joined)
    of_several_nodes = stream("/tf", times, meta={LOGGED_TYPE: "tf2_msgs/msg/TFMessage"})
    assert "goes back" not in repr(recording(of_several_nodes))


def test_selecting_streams_that_do_not_exist_names_the_nearest() -> None:
    rec = recording(stream("Gnss/Pose", [0]), stream("Gnss/Imu", [0]), stream("Lidar", [0]))
    assert [s.name for s in rec.select("gnss/*")] == ["Gnss/Pose", "Gnss/Imu"]
    with pytest.raises(StreamError, match="Lidar"):
        rec.select("Lidars")


def test_each_pattern_must_match_a_whole_name() -> None:
    rec = recording(stream("Gnss/Pose", [0]), stream("Gnss/Imu", [0]), stream("Lidar", [0]))
    for missed in ("Gnss", "imu", "Lidar2"):
        with pytest.raises(StreamError, match=f"matches {missed}\n"):
            rec.select("Gnss/Pose", missed)
    assert [s.name for s in rec.select("lidar", "GNSS/I*")] == ["Gnss/Imu", "Lidar"]


def test_joined_recordings_keep_the_conditions_of_each() -> None:
    first = recording(stream("a", [0]), name="t0", conditions={"rtk": True, "a": 1})
    second = recording(stream("a", [1]), name="t1", conditions={"rtk": False, "b": 2})
    whole = join([first, second])
    assert (whole.conditions["rtk"], whole.conditions["b"]) == (True, 2)
    assert [part["rtk"] for part in whole.conditions["joined"]] == [True, False]


def loaded(stream: Stream) -> list[int]:
    return [sample.payload for sample in stream]


def test_a_joined_stream_loads_each_payload_from_its_own_part() -> None:
    def part(values: list[int], mark: int) -> Recording:
        table = arrow.table(np.arange(len(values)) * NS, {"payload": [str(v) for v in values]})
        image = Stream("Image", Pose, table, clock="index", loader=lambda row: int(row["payload"]) + mark)
        return recording(image, name=f"r{mark}")

    first, nothing, last = part([1, 2], 100), part([], 200), part([1, 2, 3], 300)
    whole = join([first, nothing, last])
    assert loaded(whole["Image"]) == [101, 102, 301, 302, 303]
    assert loaded(join([whole, part([7], 400)])["Image"]) == [101, 102, 301, 302, 303, 407]
    assert loaded(join([first, last], prefix=True)["r300/Image"]) == [301, 302, 303]


def test_streams_that_are_not_alike_are_not_joined() -> None:
    metres, millimetres = (
        recording(stream_of_values("a", np.array([t]), {"v": np.ones(1)}, units={"v": unit}), name=unit)
        for t, unit in ((0, "m"), (1, "mm"))
    )
    with pytest.raises(StreamError, match="in m in one recording and in mm"):
        join([metres, millimetres])
    with pytest.raises(StreamError, match="another frame"):
        join([recording(stream("a", [0], frame="x")), recording(stream("a", [1], frame="y"))])


def test_an_end_before_the_start_is_refused() -> None:
    with pytest.raises(TimeError, match="not after"):
        recording(stream("a", [0, NS])).slice("+1s", "+0s")


def test_the_main_clock_is_the_one_that_covers_most() -> None:
    rec = recording(stream("static", [1778234353 * NS]), stream("odom", [0, 90 * NS], clock="device"))
    assert rec.clock == "device"
    assert rec.span == (0, 90 * NS)


def test_columns_in_which_no_stream_has_anything_are_left_out():
    rec = Recording("clouds", (stream_of_values("a", np.arange(3), {"v": np.zeros(3)}, clock="index"),))
    heading = str(rec).splitlines()[1]
    assert heading.split() == ["stream", "type", "samples", "role"]


def test_recordings_of_one_name_side_by_side_stay_apart() -> None:
    first, second = Recording("log", (stream("a", [1]),)), Recording("log", (stream("a", [1]),))
    assert [s.name for s in join([first, second], prefix=True)] == ["log/a", "log_2/a"]


def test_side_by_side_what_a_run_gave_keeps_the_body_of_its_recording() -> None:
    frames = FrameTree()
    frames.add_static("base_link", "gps", np.eye(4))
    drive = recording(stream("a", [0], frame="gps"), name="drive", frames=frames)
    run = recording(stream("pose", [0], frame="map", child="base_link"), name="run")
    both = join([drive, run], prefix=True)
    assert (both["drive/a"].frame, both["run/pose"].frame) == ("drive/gps", "run/map")
    assert both["run/pose"].child == "drive/base_link"
    twins = join([drive, drive.replace(name="twin"), run], prefix=True)  # whose body it is, nobody says
    assert twins["run/pose"].child == "run/base_link"
