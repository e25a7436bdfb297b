"""Reports on real recordings of several kinds: each has its page, and the story says what is known of it."""

from pathlib import Path

import pytest

from transect import formats
from transect.view.report import ReportOptions, gather, write_page
from transect.view.report.sentences import summarise


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nmea/nmea.log", "a GNSS receiver at 2 Hz"),
        ("rock_logs/pocolog/joints.0.log", "No stream has positions of the robot."),
        ("rock_logs/msgpack/xsens_imu_00.msg", "IMU"),
        ("pds4/ida_label", "It has no streams."),
        ("dem_geotiff/rasterio/float.tif", "it has no times"),
    ],
)
def test_every_kind_of_recording_has_its_page(real_data: Path, path: str, said: str):
    report, _ = gather([path], lambda *_: formats.open(real_data / path), ReportOptions(pictures=0))
    assert said in " ".join(summarise(report))
    page = write_page(report)
    assert page.startswith("<!doctype html>")
    assert len(page) < 3_000_000
