"""The SDI catalogue and the Argo, held against the report's own text, where a copy lies beside the data."""

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import pytest

from transect import robots
from transect.base.clocks import ns_from_decimal
from transect.datasets.marulan.catalogue import CATALOGUE

DATASETS = [entry for entry in CATALOGUE if entry.number]
_TABLE = re.compile(
    r"Dataset name: (\S+)\n.*?Start\t(\S+)\t(\S+)\t(\S+)\s*\n"
    r"End\t(\S+)\t(\S+)\t(\S+)\s*\nDuration\t(\S+) seconds",
    re.DOTALL,
)


@pytest.fixture(scope="module")
def report(real_data: Path) -> str:
    found = sorted((real_data.parent / "seeds").glob("004_*.txt"))
    if not found:
        pytest.skip(f"real: no copy of the report at {real_data.parent / 'seeds'}")
    return found[0].read_text("utf-8")


def test_there_are_39_datasets_and_no_13th():
    assert [entry.number for entry in DATASETS] == [n for n in range(1, 41) if n != 13]
    assert [entry.name for entry in CATALOGUE if entry.kind == "calibration"] == [
        *("VisualCameraCalibration", "IRcameraCalibration", "RangeSensorsCalibration")
    ]


def test_all_names_of_section_4_5_are_there_in_order(report: str):
    listed = re.findall(r"^- (\S+)$", report[report.rindex("4.5 List of all Datasets") :], re.MULTILINE)
    assert listed == [entry.name for entry in CATALOGUE]


def test_all_78_unix_times_stand_in_the_report(report: str):
    times = [time for entry in DATASETS for time in (entry.start, entry.end)]
    assert len(times) == 78
    assert [time for time in times if report.count(time) != 1] == []


def test_every_printed_time_is_that_of_its_dataset(report: str):
    body = report[report.index("Table 1: Elements") :]
    printed = {match[0]: match[1:] for match in _TABLE.findall(body)}
    assert printed == {
        e.name: (e.start, e.utc[0], e.aedt[0], e.end, e.utc[1], e.aedt[1], e.duration) for e in DATASETS
    }


def test_durations_are_end_minus_start():
    for entry in DATASETS:
        assert abs(Decimal(entry.end) - Decimal(entry.start) - Decimal(entry.duration)) <= Decimal("0.001")
        start, end = entry.span_ns or (0, 0)
        assert (start, end) == (ns_from_decimal(entry.start), ns_from_decimal(entry.end))


def test_the_printed_utc_is_late_by_a_second_where_the_fraction_is_half_or_more():
    """Errata: 35 of the 78 times were printed with rounded seconds, those whose fraction is >= .5."""
    late = 0
    for entry in DATASETS:
        for unix, utc in zip((entry.start, entry.end), entry.utc, strict=True):
            seconds, _, fraction = unix.partition(".")
            moment = dt.datetime.fromtimestamp(int(seconds), dt.UTC)
            rounded = moment + dt.timedelta(seconds=int(fraction) >= 500)
            assert f"{rounded:%H:%M:%S}.{fraction}" == utc, entry.name
            late += int(fraction) >= 500
    assert late == 35


def test_the_summary_tables_agree_on_dust_smoke_rain_and_humans():
    def numbers(word: str) -> set[int | None]:
        return {entry.number for entry in DATASETS if word in entry.conditions}

    # 4.2.4 and 4.3.4
    assert numbers("dust") == {4, 5, 6, 15, 16, 30, 31, 36, 37}
    assert numbers("smoke") == {7, 17, 20, 38}
    assert numbers("rain") == {8, 9, 10, 18, 19, 39}
    assert numbers("human") == {3, 6, 9, 23, 24, 34}
    assert numbers("night") == {25, 26, 27, 28}
    assert {entry.number for entry in DATASETS if entry.radar_reflectors} == {22, 23, 24}
    assert {entry.area for entry in DATASETS if entry.kind == "dynamic"} == {
        "open area",
        "houses area",
        "dam area",
    }


def test_the_argos_table_of_transformations_is_the_reports(report: str):
    described = robots.path_of("argo").read_text("utf-8")
    for sensor in ("LaserH", "LaserV", "LaserP", "LaserS", "Radar"):
        row = re.search(rf"^{sensor}\t(.*)$", report, re.MULTILINE)
        assert row is not None
        roll, pitch, yaw, x, y, z = row[1].split("\t")
        assert f"xyz: [{x}, {y}, {z}], euler: {{order: rpy, degrees: [{roll}, {pitch}, {yaw}]}}" in described


def test_the_laser_to_camera_tables_are_the_reports(report: str):
    row = r"^(-?0\.\d+)\t(-?0\.\d+)\t(-?0\.\d+)\t(-?\d+\.\d+)\t(-?\d\.\d+)(?:\t(-?\d\.\d+))?\t*$"
    rows = re.findall(row, report, re.MULTILINE)
    assert len(rows) == 8
    constants = robots.load("argo").constants
    known = [
        (*row["metres"], *row["degrees"])
        for table in ("laser_to_visual_camera", "laser_to_ir_camera")
        for row in constants[table].values()
    ]
    for printed, ours in zip(rows, known, strict=True):
        numbers = [float(number) for number in printed if number]
        assert tuple(numbers) == ours[: len(numbers)]
    # errata: phiZ of LaserHorizontal, lost in print, is -0.3140 - 0.1090
    assert known[0][5] == pytest.approx(-0.3140 - (-2.0218 + 2.1308))


def test_the_intrinsics_are_the_reports(report: str):
    for camera in robots.load("argo").cameras.values():
        for value in (
            camera.K[0, 0],
            camera.K[1, 1],
            camera.K[0, 2],
            camera.K[1, 2],
            *camera.coefficients[:2],
        ):
            assert any(float(number) == value for number in re.findall(r"-?\d+\.\d{15}", report)), value
