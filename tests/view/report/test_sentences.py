"""The story of the first screen: every sentence is true of the facts."""

import numpy as np
import pytest
from tests.integrity.recordings import START_NS, drive
from tests.view.report.pages import broken_report, gather_one

from transect.base.clocks import NS
from transect.recording import Loss, Recording, stream_of_values
from transect.types import Imu, Pose, Record
from transect.view.report.facts import ReportFacts
from transect.view.report.sentences import list_names, small_metres, summarise


@pytest.fixture(scope="module")
def broken() -> ReportFacts:
    return broken_report()


def test_a_drive_that_went_well_is_told_in_five_to_eight_sentences():
    said = summarise(gather_one(drive(12)))
    assert 5 <= len(said) <= 8
    text = " ".join(said)
    assert "starts on 2023-11-14 at 22:13:20 UTC and lasts" in text  # 1,700,000,000 s since 1970
    assert "an IMU at 100 Hz" in text
    assert "a GNSS receiver at 5 Hz" in text
    assert "No stream has a gap of more than five median steps." in said
    assert not any(" bad: " in sentence for sentence in said)


def test_what_broke_is_told_with_its_time(broken: ReportFacts):
    said = summarise(broken)
    assert any(s.startswith("The longest gap is 4.05 s, in odom at +19.9 s") for s in said), said
    bad = [sentence for sentence in said if " bad: " in sentence]
    assert any("gps" in sentence for sentence in bad), said
    assert any("odom" in sentence for sentence in bad), said


def test_the_facts_know_gaps_states_and_where_they_were(broken: ReportFacts):
    [facts] = broken.recordings
    odom = next(stream for stream in facts.streams if stream.name == "odom")
    [gap] = odom.gaps
    assert odom.gap_count == 1
    assert (gap.start, gap.end) == pytest.approx((19.95, 24.0), abs=1e-6)
    gps = next(stream for stream in facts.streams if stream.name == "gps")
    bad = [judged for judged in gps.states if judged.state == "BAD"]
    assert gps.state == "BAD"
    assert min(judged.start for judged in bad) >= 17  # the first jump is at 18 s
    assert broken.map is not None
    assert broken.map.kinds == ("measured",)


def test_what_could_not_be_read_is_told():
    whole = drive(5)
    lossy = whole.replace(reader_losses=(Loss("imu.csv", "text in a number", line=7, count=3),))
    said = summarise(gather_one(lossy, check=False))
    assert (
        "Three lines, messages or files could not be read; the first is imu.csv:7: text in a number." in said
    )
    assert "Its sensors were not checked." in said


def test_a_recording_without_positions_times_or_samples_has_its_story_too():
    times = START_NS + NS * np.arange(30)
    imu = stream_of_values("imu", times, {"acc_x": np.sin(np.arange(30.0))}, type=Imu)
    said = " ".join(summarise(gather_one(Recording("still", (imu,)))))
    assert "No stream has positions of the robot." in said
    rows = stream_of_values("rows", np.arange(5), {"x": np.arange(5.0)}, type=Record, clock="index")
    said = " ".join(summarise(gather_one(Recording("rows", (rows,)))))
    assert "it has no times" in said
    none = stream_of_values("imu", times[:0], {"acc_x": np.zeros(0)}, type=Imu)
    said = " ".join(summarise(gather_one(Recording("none", (none,)))))
    assert "imu is empty" in said
    assert "has no streams" in " ".join(summarise(gather_one(Recording("nothing", ()))))


def test_poses_that_were_never_measured_do_not_take_the_map_away():
    nothing = {name: np.full(60, np.nan) for name in "xyz"}
    lost = stream_of_values("slam", START_NS + NS * np.arange(60), nothing, type=Pose)
    whole = drive(12)
    report = gather_one(whole.replace(streams=(*whole.streams, lost)), check=False)
    assert report.map is not None
    assert [track.name for track in report.map.layout.tracks] == ["gps"]


def test_a_stream_far_from_the_others_in_time_does_not_stretch_the_axis():
    whole = drive(20)
    early = whole["imu"].replace(name="old", source=whole["imu"].table)
    shifted = stream_of_values("old", early.t_ns - 10**17, {"acc_x": early["acc_x"]}, type=Imu)
    [facts] = gather_one(whole.replace(streams=(*whole.streams, shifted)), check=False).recordings
    assert [len([s for s in facts.streams if s.axis == axis]) for axis in facts.axes] == [3, 1]
    assert all(axis.duration_s == pytest.approx(20, abs=0.3) for axis in facts.axes)


@pytest.mark.parametrize(
    ("metres", "text"),
    [(0.0004, "0.4 mm"), (0.0191, "1.9 cm"), (0.4, "40 cm"), (2.345, "2.35 m"), (1234, "1234 m")],
)  # fmt: skip
def test_errors_have_the_unit_that_suits_them(metres, text):
    assert small_metres(metres) == text


def test_names_are_listed_as_people_do():
    assert [list_names(["a", "b", "c"][:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


def test_a_recording_of_truth_alone_is_not_called_empty():
    t = START_NS + np.arange(50) * NS // 10
    columns = {name: np.zeros(50) for name in ("y", "z", "qx", "qy", "qz")}
    columns |= {"x": np.arange(50.0), "qw": np.ones(50)}
    truth = stream_of_values("truth/pose", t, columns, type=Pose, role="truth", clock="utc")
    said = summarise(gather_one(Recording("reference", (truth,))))
    assert "It has no measurements, only ground truth: truth/pose." in said
    assert not any("no streams" in sentence or "sensor" in sentence for sentence in said), said
