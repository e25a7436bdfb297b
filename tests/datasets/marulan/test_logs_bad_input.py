"""SDI datasets that are damaged: what is good is kept, what is not is located and counted."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.datasets.marulan import sample
from tests.datasets.marulan.sample import opened

from transect import formats
from transect.datasets.marulan.logs.lines import read_log
from transect.datasets.marulan.logs.tables import TABLE, laser_block
from transect.errors import ParseError
from transect.recording import Parsed, Recording, cache

LASER_LOG = "LaserPort/RangeBearingQAsciiData.txt"


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return sample.write_dataset(tmp_path / sample.DYNAMIC)


def with_laser(folder: Path, text: str) -> Recording:
    sample.write_file(folder / LASER_LOG, text)
    return opened(folder)


def same(a: pa.Table, b: pa.Table) -> bool:
    """Return whether two tables hold the same, NaN (no return) among it."""
    return a.schema == b.schema and repr(a.to_pylist()) == repr(b.to_pylist())


def found(rec: Recording) -> list[tuple[str, int | None, int]]:
    return [(loss.file, loss.line, loss.count) for loss in rec.losses]


def test_a_cut_last_line_is_lost_and_located(dataset: Path):
    logs = (
        *("Nav/NavQAsciiData.txt", "Payload/PayloadData1.txt", "RadarSpectrum/HSR_ScalarPoints1.txt"),
        *("RadarRangeBearing/RangeBearingQAsciiData.txt", "VideoVisual/VideoLogAscii.txt", LASER_LOG),
    )
    for name in logs:
        (dataset / name).write_bytes((dataset / name).read_bytes()[:-3])
    rec = opened(dataset)
    assert {file: line for file, line, _ in found(rec)} == {
        "Nav/NavQAsciiData.txt": 2,
        "Payload/PayloadData1.txt": 11,
        "RadarSpectrum/HSR_ScalarPoints1.txt": 2,
        "RadarRangeBearing/RangeBearingQAsciiData.txt": 2,
        "VideoVisual/VideoLogAscii.txt": 2,
        LASER_LOG: 5,
    }
    names = ("Nav", "Payload/Engine", "RadarSpectrum", "RadarRangeBearing", "VideoVisual", "LaserPort")
    assert [len(rec[name]) for name in names] == [1, 1, 1, 1, 1, 4]
    with pytest.raises(ParseError, match="cannot read all"):
        opened(dataset, strict=True)


def test_a_line_that_might_be_cut_is_kept_and_noted(tmp_path: Path):
    rec = with_laser(tmp_path, "\n".join(sample.LASER.splitlines()[:4]))
    assert (len(rec["LaserPort"]), rec.losses) == (4, ())
    assert any("no newline" in note for note in rec.all_notes)


@pytest.mark.parametrize(("claimed", "kept", "reason"), [(9, 5, "fewer"), (3, 3, "more")])
def test_an_nscans_that_lies_keeps_the_smaller_number(tmp_path: Path, claimed: int, kept: int, reason: str):
    rec = with_laser(tmp_path, sample.LASER.replace(" 2 5 110", f" 2 {claimed} 110"))
    assert rec["LaserPort"][4].value.ranges.tolist() == [1.1, 1.11, 1.12, 1.13, 1.14][:kept]
    (loss,) = rec.losses
    assert (loss.line, loss.count) == (5, 1)
    assert reason in loss.reason


@pytest.mark.parametrize("nscans", ["-1", "nan", "2.5", "inf"])
def test_an_nscans_that_is_no_count_loses_its_line(tmp_path: Path, nscans: str):
    rec = with_laser(tmp_path, sample.LASER.replace(" 2 5 110", f" 2 {nscans} 110"))
    assert len(rec["LaserPort"]) == 4
    assert found(rec) == [(LASER_LOG, 5, 1)]


def test_a_huge_nscans_takes_no_memory(tmp_path: Path):
    rec = with_laser(tmp_path, sample.LASER.replace(" 2 5 110", " 2 1e300 110"))
    assert len(rec["LaserPort"][4].value.ranges) == 5
    assert found(rec) == [(LASER_LOG, 5, 1)]


@pytest.mark.parametrize("unit", ["0", "5", "1.5", "nan", "-1"])
def test_an_unknown_unit_loses_its_line(tmp_path: Path, unit: str):
    rec = with_laser(tmp_path, sample.LASER.replace(" 2 5 110", f" {unit} 5 110"))
    assert len(rec["LaserPort"]) == 4
    assert "RangeUnitType" in rec.losses[0].reason


def test_text_in_a_number_loses_that_line_only(tmp_path: Path):
    rec = with_laser(tmp_path, sample.LASER.replace("301", "3o1").replace("401", "x"))
    assert len(rec["LaserPort"]) == 3
    assert found(rec) == [(LASER_LOG, 3, 2)]
    assert rec.losses[0].reason == "text where a number is expected"


@pytest.mark.parametrize("stamp", ["*nan", "*", "*1224199788.1.2", "*1.2e9", "*99999999999999.5"])
def test_a_stamp_that_is_no_time_loses_its_line(tmp_path: Path, stamp: str):
    rec = with_laser(tmp_path, sample.LASER.replace("*1224199788.133", stamp))
    assert len(rec["LaserPort"]) == 4
    assert found(rec) == [(LASER_LOG, 3, 1)]


def test_lines_of_another_type_are_rejected(tmp_path: Path):
    rec = with_laser(tmp_path, sample.LASER.replace("133 RANGE_DATA", "133 RANGE_DATUM"))
    assert rec.losses[0].reason == "not a RANGE_DATA line"
    assert len(rec["LaserPort"]) == 4


def test_nan_and_negative_ranges_are_not_measured(tmp_path: Path):
    rec = with_laser(tmp_path, sample.LASER.replace("110 111 112", "nan -5 inf"))
    np.testing.assert_array_equal(rec["LaserPort"][4].value.ranges, [np.nan, np.nan, np.nan, 1.13, 1.14])
    assert rec.losses == ()
    assert any("(2 x)" in note for note in rec.all_notes)


def test_crlf_lines_and_missing_stars_read_alike(tmp_path: Path):
    expected = with_laser(tmp_path / "a", sample.LASER)["LaserPort"].table
    crlf = with_laser(tmp_path / "b", sample.LASER.replace("\n", "\r\n").replace("*", ""))
    assert same(crlf["LaserPort"].table, expected)
    assert crlf.losses == ()


def test_an_empty_log_and_a_missing_one_are_reported(dataset: Path):
    (dataset / "Nav/NavQAsciiData.txt").write_bytes(b"")
    (dataset / "LaserVertical/RangeBearingQAsciiData.txt").rename(dataset / "LaserVertical/other.txt")
    rec = opened(dataset)
    assert {loss.file: loss.reason for loss in rec.losses} == {
        "Nav/NavQAsciiData.txt": "the file is empty",
        "LaserVertical/RangeBearingQAsciiData.txt": "the log is missing",
    }
    assert len(rec["Nav"]) == 0
    assert len(rec["LaserPort"]) == 5


def test_a_missing_folder_is_noted_and_the_rest_opens(dataset: Path):
    shutil.rmtree(dataset / "RadarSpectrum")
    rec = opened(dataset)
    assert rec.losses == ()
    assert "missing: RadarSpectrum" in rec.notes
    assert len(rec["RadarRangeBearing"]) == 2


def test_clocks_that_jump_back_and_equal_stamps_are_kept_as_recorded(tmp_path: Path):
    text = sample.LASER.replace("788.133", "788.100").replace("788.146", "788.119")
    rec = with_laser(tmp_path, text)
    timing = rec["LaserPort"].timing
    assert (timing.count, timing.backwards, timing.repeated) == (5, 1, 0)
    assert (rec["LaserPort"].t_ns // 10**6 % 1000).tolist() == [106, 119, 100, 119, 159]
    formats.write(rec, tmp_path / "out", "sdi")
    assert same(opened(tmp_path / "out")["LaserPort"].table, rec["LaserPort"].table)


def test_payload_rows_keep_their_order_when_the_clock_jumps_back(tmp_path: Path):
    lines = "*5.5 SENSOR_DATA 0 1\n*5.1 SENSOR_DATA 0 2\n*5.2 SENSOR_DATA 2 3\n*5.6 SENSOR_DATA 0 4\n"
    sample.write_file(tmp_path / "a/Payload/PayloadData1.txt", lines)
    rec = opened(tmp_path / "a")
    formats.write(rec, tmp_path / "b", "sdi")
    sample.assert_same_tables(rec, opened(tmp_path / "b"))


def test_unknown_payload_lines_and_sensors_are_counted(tmp_path: Path):
    text = (
        sample.PAYLOAD
        + "*1224199789.1 HORN_DATA 1\n*1224199789.2 SENSOR_DATA 6 1\n*1224199789.3 BRAKE_DATA 1 2\n"
    )
    sample.write_file(tmp_path / "Payload/PayloadData1.txt", text)
    rec = opened(tmp_path)
    assert {loss.line: loss.reason for loss in rec.losses} == {
        12: "the type of the line is unknown",
        13: "the sensor's number is none of 0 to 5",
        14: "the line is incomplete: 6 fields are expected",
    }
    assert [len(rec[name]) for name in ("Payload/Engine", "Payload/Brakes")] == [2, 1]


def test_radar_lines_that_contradict_themselves_are_noted(tmp_path: Path):
    text = sample.RADAR.replace("0 -0.7854 3 1", "0 0 3 1").replace("0 -0.7767 3 1", "0 -0.7767 3 2")
    sample.write_file(tmp_path / "RadarRangeBearing/RangeBearingQAsciiData.txt", text)
    rec = opened(tmp_path)
    assert len(rec["RadarRangeBearing"]) == 2
    assert any("EndAngleRads is not StartAngleRads" in note for note in rec.all_notes)
    assert [(loss.line, "NScans" in loss.reason) for loss in rec.losses] == [(2, True)]


def test_images_without_line_and_lines_without_image(dataset: Path):
    images = dataset / "VideoVisual/Images"
    (images / sample.VISUAL_IMAGES[0]).rename(images / "Image1224199799-0000.bmp")
    rec = opened(dataset)
    assert len(rec["VideoVisual"]) == 1
    assert found(rec) == [("VideoVisual/VideoLogAscii.txt", 1, 1)]
    assert any("1 images without a line" in note for note in rec.all_notes)


def test_without_a_log_the_names_of_the_images_give_the_time(dataset: Path):
    (dataset / "VideoVisual/VideoLogAscii.txt").unlink()
    sample.write_bmp(dataset / "VideoVisual/Images/snapshot.bmp", sample.picture(4, 3))
    rec = opened(dataset)
    assert (rec["VideoVisual"].t_ns // 10**6 % 1000).tolist() == [106, 172]
    assert {loss.reason for loss in rec.losses} == {"the log is missing", "no log and no time in the name"}


def test_an_image_that_is_not_one_says_so_when_asked_for(dataset: Path):
    (dataset / "VideoVisual/Images" / sample.VISUAL_IMAGES[0]).write_bytes(b"BMnothing")
    rec = opened(dataset)
    with pytest.raises(ParseError, match="not an image"):
        _ = rec["VideoVisual"][0].payload
    assert rec["VideoVisual"][1].payload.width == 1360


def test_a_log_cannot_name_files_outside_its_folder(dataset: Path):
    (dataset / "VideoVisual/VideoLogAscii.txt").write_text("*1224199788.106 VISION_FRAME ../../secret.bmp\n")
    rec = opened(dataset)
    assert len(rec["VideoVisual"]) == 0
    assert len(rec.losses) == 1


def test_a_broken_calibration_leaves_the_reports(tmp_path: Path):
    folder = sample.write_calibration_set(tmp_path / "VisualCameraCalibration")
    (folder / "Calibration/Calib_Results.m").write_text("fc = [ 1 ];")
    rec = opened(folder)
    assert rec.cameras["VideoVisual"].K[0, 0] == 1023.094873083798120
    assert [loss.file for loss in rec.losses] == ["Calibration/Calib_Results.m"]


def test_calibration_images_without_their_log_have_no_times(tmp_path: Path):
    folder = sample.write_calibration_set(tmp_path / "VisualCameraCalibration")
    (folder / "Calibration/VideoLogAsciiCalibration.txt").unlink()
    images = opened(folder)["Calibration/Images"]
    assert (images.clock, len(images)) == ("index", 3)


def laser_of(data: bytes) -> Parsed:
    return cache.join_parts(read_log(data, "log", laser_block))[TABLE]


@given(st.integers(0, len(sample.LASER)))
def test_a_log_cut_anywhere_keeps_its_whole_lines_and_says_so(size: int):
    cut = laser_of(sample.LASER.encode()[:size])
    whole = laser_of(sample.LASER.encode()).table
    lines = sample.LASER[:size].count("\n")
    assert same(cut.table.slice(0, lines), whole.slice(0, lines))
    assert cut.table.num_rows - lines in (0, 1)
    if size not in np.cumsum([0] + [len(line) for line in sample.LASER.splitlines(keepends=True)])[1:]:
        assert cut.losses or cut.notes


LINES = sample.LASER.splitlines()


@given(st.integers(0, 4), st.data())
def test_a_mutated_line_changes_no_other_line_and_none_is_lost_silently(number: int, data: st.DataObject):
    letters = st.characters(codec="ascii", exclude_characters="\n")
    at = data.draw(st.integers(0, len(LINES[number]) - 1))
    mutated = LINES[number][:at] + data.draw(letters) + LINES[number][at + 1 :]
    parsed = laser_of(("\n".join([*LINES[:number], mutated, *LINES[number + 1 :]]) + "\n").encode())
    whole = laser_of(sample.LASER.encode()).table
    assert same(parsed.table.slice(0, number), whole.slice(0, number))
    after = 4 - number
    assert same(parsed.table.slice(parsed.table.num_rows - after), whole.slice(number + 1))
    if parsed.table.num_rows < 5:
        assert [(loss.line, loss.count) for loss in parsed.losses] == [(number + 1, 1)]
