"""GPX, KML and GeoJSON: positions for maps, written and opened again; files by hand; damage."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import transect
from transect import formats
from transect.errors import ParseError, UsageError
from transect.recording import Recording, stream_of_values
from transect.types import Imu, NavFix

START_NS = 1_656_936_023_000_000_000
NAMES = ("gpx", "kml", "geojson")
HOSTILE = "<script>&\"' \x07"

# As written by a receiver: additional waypoints, a second segment, one point without a height.
GPX = """<?xml version="1.0"?>
<gpx version="1.1" creator="hand" xmlns="http://www.topografix.com/GPX/1/1">
<wpt lat="1" lon="2"><name>camp</name></wpt>
<trk><name>walk</name>
<trkseg><trkpt lat="-32.95" lon="-60.66"><ele>25.5</ele><time>2022-07-04T12:00:23.5Z</time></trkpt></trkseg>
<trkseg><trkpt lat="-32.96" lon="-60.67"><time>2022-07-04T12:00:24Z</time></trkpt></trkseg>
</trk></gpx>
"""


def recording() -> Recording:
    """Return two receivers, one with a lost position, and an inertial sensor."""
    t_ns = START_NS + np.arange(4) * 123_456_789
    lat = np.radians([-32.951234567890123, -32.9, np.nan, -32.8])
    lon = np.radians([-60.66, -60.5, np.nan, 179.5])
    front = {"lat": lat, "lon": lon, "alt": np.array([25.125, np.nan, 1.0, -3.0])}
    return Recording(
        "day",
        (
            stream_of_values("Gps/Front", t_ns, front, type=NavFix),
            stream_of_values(
                f"Gps/{HOSTILE}",
                np.arange(2),
                {k: v[:2] for k, v in front.items()},
                type=NavFix,
                clock="index",
            ),
            stream_of_values("Imu", t_ns, {"acc_x": np.zeros(4)}, type=Imu),
        ),
    )


@pytest.mark.parametrize("name", NAMES)
def test_positions_are_written_and_read_again(name: str, tmp_path: Path) -> None:
    day, path = recording(), tmp_path / f"day.{name}"
    said = formats.write(day, path, name)
    assert sorted(said) == [
        "Gps/Front: 1 samples without a position",
        "Imu is not written: it is no position on Earth",
    ]
    back = transect.open(path)
    assert (back.format, len(back.streams), back.losses) == (name, 2, ())
    known, front = day["Gps/Front"], back["Gps/Front"]
    kept = [0, 1, 3]
    assert (front.type, front.clock) == (NavFix, "utc")
    assert front.t_ns.tolist() == known.t_ns[kept].tolist()
    for column in ("lat", "lon"):
        np.testing.assert_allclose(front[column], known[column][kept], rtol=4e-16)
    np.testing.assert_array_equal(front["alt"], known["alt"][kept])
    other = back.streams[1]
    assert other.clock == "index"
    assert other.name.startswith("Gps/<script>&\"'")


@pytest.mark.parametrize("name", NAMES)
def test_without_positions_nothing_is_written(name: str, tmp_path: Path) -> None:
    day = Recording("arm", (recording()["Imu"],))
    with pytest.raises(UsageError, match="no positions on Earth"):
        formats.write(day, tmp_path / f"arm.{name}", name)
    assert not list(tmp_path.iterdir())


def test_the_suffix_names_the_format(tmp_path: Path) -> None:
    assert [formats.format_of_suffix(tmp_path / f"day.{name}") for name in NAMES] == list(NAMES)


def test_a_receiver_s_gpx_is_read_with_its_segments(tmp_path: Path) -> None:
    (tmp_path / "walk.gpx").write_text(GPX)
    walk = transect.open(tmp_path / "walk.gpx")["walk"]
    assert (walk.t_ns - START_NS).tolist() == [500_000_000, 1_000_000_000]
    assert np.degrees(walk["lat"]).tolist() == pytest.approx([-32.95, -32.96])
    assert walk["alt"][0] == 25.5
    assert np.isnan(walk["alt"][1])


def test_gdal_reads_what_is_written(tmp_path: Path) -> None:
    if not shutil.which("ogrinfo"):
        pytest.skip("gdal: ogrinfo is not installed")
    layers = {"gpx": "track_points", "kml": "", "geojson": ""}
    for name, layer in layers.items():
        path = tmp_path / f"day.{name}"
        formats.write(recording(), path, name)
        asked = ["ogrinfo", "-ro", "-al", "-so", str(path), *filter(None, [layer])]
        found = subprocess.run(asked, capture_output=True, text=True, check=True)
        assert "Feature Count: " in found.stdout
        assert "Extent: (-60.66" in found.stdout
        assert not found.stderr


def cut(text: str) -> str:
    return text[: text.index('lat="-32.96"')]


def worded(text: str) -> str:
    return text.replace("-60.66", "west")


def dateless(text: str) -> str:
    return text.replace("<time>2022-07-04T12:00:24Z</time>", "")


def off_earth(text: str) -> str:
    return text.replace('lat="-32.95"', 'lat="132.95"')


@pytest.mark.parametrize(
    ("damage", "kept", "reason"),
    [
        (cut, 1, "not well-formed"),
        (worded, 1, "could not convert string to float: 'west'"),
        (dateless, 1, "without a time"),
        (off_earth, 1, "on no Earth"),
    ],
)
def test_damage_loses_what_it_touches_and_says_so(
    damage: Callable[[str], str], kept: int, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "walk.gpx").write_text(damage(GPX))
    day = transect.open(tmp_path / "walk.gpx")
    assert len(day.streams[0]) == kept
    assert any(reason in loss.reason for loss in day.losses)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.gpx", '<!DOCTYPE gpx [<!ENTITY x "y">]><gpx>&x;</gpx>'),
        ("a.gpx", "<gpx></gpx>"),
        ("a.kml", "<kml><Document/></kml>"),
        ("a.geojson", '{"type": "FeatureCollection", "features": '),
        ("a.geojson", '{"type": "FeatureCollection", "features": 7}'),
    ],
)
def test_files_without_a_track_are_refused(file: str, text: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(ParseError):
        transect.open(tmp_path / file)
