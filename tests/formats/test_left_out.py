"""What a format refuses, leaves out or passes over, and how it says so."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import transect
from transect import formats
from transect.errors import ParseError, TransectError, UnsupportedError
from transect.formats import recognise
from transect.recording import Recording, Stream, arrow, stream_of_values
from transect.recording.arrow import PAYLOAD
from transect.types import (
    GridMap,
    Image,
    NavFix,
    Odometry,
    PointCloud,
    RadarSpectrum,
    Record,
    Trajectory,
)

NS_PER_S = 1_000_000_000
TIMES_NS = 1_700_000_000 * NS_PER_S + np.arange(4) * NS_PER_S


def of_payloads(kind: type, load_one: Callable[[Any], Any], count: int = 4) -> Recording:
    """Return a recording with one stream of payloads that have no files."""
    table = arrow.table(TIMES_NS[:count], {PAYLOAD: arrow.strings([f"{k}" for k in range(count)])})
    return Recording("made", (Stream("It", kind, table, loader=load_one, frame="f"),))


def of_columns(kind: type, columns: dict[str, Any], name: str = "It", **more: Any) -> Recording:
    return Recording("made", (stream_of_values(name, TIMES_NS, columns, type=kind, **more),))


def test_points_with_a_ring_alone_do_not_fit_into_raw_numbers(tmp_path: Path) -> None:
    fields = {"ring": np.zeros(3, np.uint16)}
    rec = of_payloads(PointCloud, lambda _: PointCloud(np.eye(3, dtype=np.float32), fields), 1)
    with pytest.raises(UnsupportedError, match="a ring without an intensity"):
        formats.write(rec, tmp_path / "a.bin", "pcd")
    assert not (tmp_path / "a.bin").exists()


def test_a_recording_without_clouds_is_no_pcd(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="made has no point clouds to write"):
        formats.write(of_columns(Record, {"a": np.arange(4.0)}), tmp_path / "a.pcd", "pcd")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("VIEWPOINT 0 0 0 1 0 0 0", "VIEWPOINT 0 0 0 1 0 0", "seven numbers"),
        ("FIELDS x y z", "FIELDS", "FIELDS is empty"),
    ],
)
def test_a_header_of_points_that_cannot_be_meant_is_refused(
    tmp_path: Path, old: str, new: str, why: str
) -> None:
    lines = ["VERSION .7", "FIELDS x y z", "SIZE 4 4 4", "TYPE F F F", "COUNT 1 1 1", "WIDTH 1", "HEIGHT 1"]
    lines += ["VIEWPOINT 0 0 0 1 0 0 0", "POINTS 1", "DATA ascii", "1 2 3", ""]
    path = tmp_path / "a.pcd"
    path.write_text("\n".join(lines))
    assert transect.open(path).streams[0][0].value.points.tolist() == [[1.0, 2.0, 3.0]]
    path.write_text("\n".join(lines).replace(old, new))
    (stream,) = transect.open(path).streams
    assert len(stream) == 0
    (loss,) = stream.losses
    assert why in loss.reason


def test_clouds_among_more_files_of_another_kind_are_not_a_folder_of_clouds(tmp_path: Path) -> None:
    (tmp_path / "a.pcd").write_text("VERSION .7\n")
    for k in range(3):
        (tmp_path / f"{k}.odd").write_bytes(b"\0\1\2")
    said = dict(recognise(tmp_path))["pcd"]
    assert not said
    assert said.reason == "it has 1 point clouds but more files of other kinds"


def test_texts_that_are_missing_are_blank_in_csv(tmp_path: Path) -> None:
    words = pa.array(["one", None, "two\nlines", "end"], pa.large_string())
    formats.write(of_columns(Record, {"word": words}), tmp_path / "out", "csv")
    (file,) = (path for path in (tmp_path / "out").iterdir() if path.suffix == ".csv")
    rows = list(csv.reader(file.read_text().splitlines()))
    assert [row[-1] for row in rows[1:]] == ["one", "", "two lines", "end"]


def test_images_that_cannot_be_filmed_leave_no_film(tmp_path: Path) -> None:
    odd = of_payloads(Image, lambda row: Image(np.zeros((4, 4, 2), np.uint8), "gray", row["t_ns"]))
    with pytest.raises(UnsupportedError) as caught:
        formats.write(odd, tmp_path / "films", "video")
    assert "It: none of its images can be filmed" in caught.value.why
    assert not list((tmp_path).rglob("*.mp4"))


def test_what_is_no_line_in_geojson_is_passed_over(tmp_path: Path) -> None:
    line = {"type": "LineString", "coordinates": [[8.0, 50.0], [8.1, 50.1]]}
    features = [
        7,
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [8, 50]}, "properties": {}},
        {"type": "Feature", "geometry": {"type": "LineString", "coordinates": 7}, "properties": {}},
        {"type": "Feature", "geometry": None, "properties": None},
        {"type": "Feature", "geometry": line, "properties": {"name": "way"}},
    ]
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    (stream,) = transect.open(path).streams
    assert (stream.name, len(stream)) == ("way", 2)


def test_a_track_of_kml_with_more_points_than_times_is_a_loss(tmp_path: Path) -> None:
    def track(times: int) -> str:
        whens = "".join(f"<when>2024-05-01T12:00:0{k}Z</when>" for k in range(times))
        return f"<Placemark><name>way {times}</name><gx:Track>{whens}{'<gx:coord>8 50 1</gx:coord>' * 3}"

    text = "".join(f"{track(times)}</gx:Track></Placemark>" for times in (2, 3))
    path = tmp_path / "a.kml"
    path.write_text(
        '<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">'
        f"<Document>{text}</Document></kml>"
    )
    rec = transect.open(path)
    assert [len(stream) for stream in rec.streams if len(stream)] == [3]
    assert [loss.reason for loss in rec.losses] == ["a track of 3 points and 2 times"]


@pytest.mark.parametrize("format", ["geojson", "kml", "gpx"])
def test_positions_that_are_missing_and_times_that_no_calendar_knows_are_said(
    tmp_path: Path, format: str
) -> None:
    columns = {"lat": np.array([0.5, np.nan, 0.6, 0.7]), "lon": np.full(4, 0.1), "alt": np.arange(4.0)}
    said = formats.write(of_columns(NavFix, columns, clock="device"), tmp_path / f"a.{format}", format)
    assert any("1 samples without a position" in line for line in said)
    assert any("times of its clock, which is device" in line for line in said)
    (stream,) = transect.open(tmp_path / f"a.{format}").streams
    np.testing.assert_allclose(stream["lat"], [0.5, 0.6, 0.7])


def test_labels_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(
        '<?xml version="1.0"?><Product xmlns="http://pds.nasa.gov/pds4/pds/v1"><a>'
    )
    with pytest.raises(ParseError, match="no label can be read") as caught:
        transect.open(tmp_path, format="pds4")
    assert caught.value.where == "a.xml"


def test_odometry_in_space_is_written_by_its_heading(tmp_path: Path) -> None:
    angles = np.array([0.0, 0.5, -1.5, 3.0])
    turn = {"qx": np.zeros(4), "qy": np.zeros(4), "qz": np.sin(angles / 2), "qw": np.cos(angles / 2)}
    place = {"x": np.arange(4.0), "y": np.zeros(4), "vx": np.ones(4), "wz": np.zeros(4)}
    formats.write(of_columns(Odometry, {**place, **turn}, name="ODOM"), tmp_path / "a.log", "carmen")
    (stream,) = transect.open(tmp_path / "a.log", format="carmen").streams
    np.testing.assert_allclose(stream["theta"], angles, atol=1e-6)


def test_a_map_without_layers_is_no_geotiff(tmp_path: Path) -> None:
    rec = of_payloads(GridMap, lambda _: GridMap({}, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)), 1)
    with pytest.raises(TransectError):
        formats.write(rec, tmp_path / "a.tif", "geotiff")
    assert not (tmp_path / "a.tif").exists()


def test_nothing_to_open_and_formats_that_are_only_read_are_said(tmp_path: Path) -> None:
    with pytest.raises(TransectError, match="nothing to open") as caught:
        transect.open()
    assert caught.value.hint == "give the path of a recording"
    rec = of_columns(Record, {"a": np.arange(4.0)})
    read_only = next(name for name in formats.names() if name not in formats.writing_names())
    with pytest.raises(UnsupportedError, match=f"the format {read_only} cannot be written"):
        formats.write(rec, tmp_path / "out", read_only)
    with pytest.raises(TransectError, match="written as a folder"):
        formats.format_of_suffix(tmp_path / "a.parquet")


def test_files_without_a_format_are_counted_by_their_suffix(tmp_path: Path) -> None:
    for k in range(3):
        (tmp_path / f"{k}.zzz").write_bytes(bytes([0, 255, 254, k]))
    with pytest.raises(TransectError) as caught:
        transect.open(tmp_path)
    assert "3 .zzz" in caught.value.why
    assert "no format reads any" in caught.value.why


@pytest.mark.parametrize(
    ("files", "format", "reason"),
    [
        (["VideoVisual/Images/a.bmp"], "sdi", "it has VideoVisual/Images"),
        (["applanix/gps_post_process.csv", "a.txt"], "boreas", ""),
    ],
)
def test_a_data_set_is_known_by_one_of_its_folders(
    tmp_path: Path, files: list[str], format: str, reason: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert dict(recognise(tmp_path))[format].reason.startswith(reason)


def test_payloads_that_foxglove_has_no_schema_for_are_said(tmp_path: Path) -> None:
    def spectrum(row: Any) -> RadarSpectrum:
        return RadarSpectrum(np.zeros((3, 2), np.uint8), np.zeros(3), np.zeros(2), t_ns=row["t_ns"])

    with pytest.raises(UnsupportedError) as caught:
        formats.write(of_payloads(RadarSpectrum, spectrum), tmp_path / "a.mcap", "foxglove")
    assert "It is not written: Foxglove has no schema for a RadarSpectrum" in caught.value.why


def test_a_path_keeps_its_covariances_and_where_it_has_no_attitude(tmp_path: Path) -> None:
    turns = np.tile([0.0, 0.0, 0.0, 1.0], (4, 1))
    turns[2] = np.nan
    covariances = np.arange(4 * 36.0).reshape(4, 6, 6)
    track = Trajectory(TIMES_NS, np.arange(12.0).reshape(4, 3), turns, covariances=covariances, frame="map")
    formats.write(of_payloads(Trajectory, lambda _: track, 1), tmp_path / "a.mcap", "foxglove")
    (stream,) = transect.open(tmp_path / "a.mcap").streams
    back = stream[0].value
    np.testing.assert_array_equal(back.orientations, turns)
    np.testing.assert_array_equal(back.covariances, covariances)
    assert back.t_ns.tolist() == TIMES_NS.tolist()


def test_rock_logs_hold_bytes_and_numbers_that_are_missing(tmp_path: Path) -> None:
    columns = {
        "count": pa.array([1, None, 3, 4], pa.int64()),
        "raw": pa.array([b"a", b"", b"\0\1", b"b"], pa.large_binary()),
        "row": arrow.from_numpy(np.arange(8.0).reshape(4, 2)),
    }
    formats.write(of_columns(Record, columns), tmp_path / "a.log", "pocolog")
    (stream,) = transect.open(tmp_path / "a.log", format="pocolog").streams
    np.testing.assert_array_equal(stream["count"], [1.0, np.nan, 3.0, 4.0])
    assert [bytes(raw) for raw in stream.table.column("raw").to_pylist()] == [b"a", b"", b"\0\1", b"b"]
    assert stream.table.column("row").to_pylist() == np.arange(8.0).reshape(4, 2).tolist()


@pytest.mark.parametrize(
    ("format", "why"),
    [("pocolog", "no stream that can be written"), ("cdff_msgpack", "complex64 has no depth in CDFF")],
)
def test_images_of_complex_numbers_have_no_place(tmp_path: Path, format: str, why: str) -> None:
    rec = of_payloads(Image, lambda row: Image(np.zeros((2, 2), np.complex64), "gray", row["t_ns"]))
    with pytest.raises(TransectError, match=why):
        formats.write(rec, tmp_path / "a.log", format)
    assert not (tmp_path / "a.log").exists()
