"""Tables that a recording.yaml describes: Parquet files, texts with blanks, and what does not fit."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import transect
from transect.errors import ParseError, TimeError, TransectError
from transect.recording import Stream
from transect.types import Image, NavFix, Pose

NS = 10**9


def described(tmp_path: Path, file: str, **spec: Any) -> Stream:
    """Open a file of the folder by a description of one stream."""
    content = {"streams": [{"name": "it", "file": file, **spec}]}
    (tmp_path / "recording.yaml").write_text(yaml.safe_dump(content))
    return transect.open(tmp_path)["it"]


def from_parquet(tmp_path: Path, data: dict[str, Any], **spec: Any) -> Stream:
    pq.write_table(pa.table(data), tmp_path / "data.parquet")
    return described(tmp_path, "data.parquet", **spec)


def from_text(tmp_path: Path, text: str, **spec: Any) -> Stream:
    (tmp_path / "data.txt").write_text(text)
    return described(tmp_path, "data.txt", **spec)


def test_columns_of_a_parquet_file_are_converted_and_made_up(tmp_path: Path):
    columns = {
        "lat": {"source": "latitude", "unit": "deg"},
        "lon": {"source": 2, "unit": "deg"},
        "alt": {"value": 250, "unit": "cm"},
        "label": "label",
    }
    data = {"ms": [1000, 2500], "latitude": [45.0, 90.0], "longitude": [30.0, 60.0], "label": ["a", "b"]}
    time = {"column": "ms", "unit": "ms"}
    stream = from_parquet(tmp_path, data, type="NavFix", time=time, log_time=time, columns=columns)
    assert stream.type is NavFix
    assert stream.t_ns.tolist() == [NS, 2 * NS + NS // 2]
    assert stream.log_ns is not None
    assert stream.log_ns.tolist() == stream.t_ns.tolist()
    np.testing.assert_allclose(stream["lat"], [np.pi / 4, np.pi / 2])
    np.testing.assert_allclose(stream["lon"], [np.pi / 6, np.pi / 3])
    assert stream["alt"].tolist() == [2.5, 2.5]
    assert stream["label"] == ["a", "b"]
    assert (stream.units["lat"], stream.units["alt"]) == ("rad", "m")


def test_all_columns_of_a_parquet_file_come_along_where_none_are_named(tmp_path: Path):
    stream = from_parquet(tmp_path, {"t": [1, 2], "v": [0.5, 1.5], "n": [3, 4]}, time="t")
    assert stream.t_ns.tolist() == [NS, 2 * NS]
    assert set(stream.table.column_names) == {"t_ns", "v", "n"}


def test_rows_of_a_parquet_file_without_a_time_are_a_second_apart(tmp_path: Path):
    assert from_parquet(tmp_path, {"v": [5.0, 6.0, 7.0]}).t_ns.tolist() == [0, NS, 2 * NS]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_a_parquet_file_are_exact_in_their_own_unit(tmp_path: Path, unit: str):
    times = pa.array([1, 2_000], pa.timestamp(unit))
    stream = from_parquet(tmp_path, {"t": times, "v": [1.0, 2.0]}, time="t")
    step = {"s": NS, "ms": 10**6, "us": 1000, "ns": 1}[unit]
    assert stream.t_ns.tolist() == [step, 2_000 * step]


@pytest.mark.parametrize(
    "times",
    [
        pa.array([1, None, 3]),
        pa.array([1, 10**10, 3]),
        pa.array([1, -(10**10), 3]),
        pa.array([1, 2**63, 3], pa.uint64()),
    ],
)
def test_rows_of_a_parquet_file_whose_time_is_missing_or_too_large_are_a_loss(
    tmp_path: Path, times: pa.Array
):
    stream = from_parquet(tmp_path, {"t": times, "v": [1.0, 2.0, 3.0]}, time="t")
    assert stream["v"].tolist() == [1.0, 3.0]
    (loss,) = stream.losses
    assert loss.count == 1
    assert "row 2" in loss.reason


@pytest.mark.parametrize(
    ("time", "columns", "error", "words"),
    [
        ("v", {}, TimeError, "double"),
        ({"column": "t", "unit": "iso"}, {}, TimeError, "int64"),
        ("t", {"a": "w"}, ParseError, "no column 'w'"),
        ("t", {"a": 9}, ParseError, "no column 9"),
        ("when", {}, ParseError, "no column 'when'"),
        ("t", {"a": {"source": ["t", "v"]}}, ParseError, "no column"),
    ],
)
def test_what_a_parquet_file_does_not_have_is_an_error_that_names_it(
    tmp_path: Path, time: Any, columns: dict[str, Any], error: type[TransectError], words: str
):
    with pytest.raises(error) as caught:
        _ = from_parquet(tmp_path, {"t": [1], "v": [0.5]}, time=time, columns=columns).table
    assert words in str(caught.value) + caught.value.why
    assert "data.parquet" in caught.value.where


BLANK = "t  x  name\n1  0.5  a\n2  1.5  b\n"


def test_a_text_with_blanks_holds_numbers_texts_and_exact_times(tmp_path: Path):
    text = "1403636580838555648 0.5 a\n1.403636580838555649e+18 1.5 b\n"
    columns = {"x": 1, "name": {"source": 2, "text": True}}
    stream = from_text(tmp_path, text, header=0, time={"column": 0, "unit": "ns"}, columns=columns)
    assert stream.t_ns.tolist() == [1403636580838555648, 1403636580838555649]
    assert stream["x"].tolist() == [0.5, 1.5]
    assert stream["name"] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("3 2.5\n", "not 3 fields"),
        ("3 far c\n", "text where a number"),
        ("late 2.5 c\n", "text where a number or a time"),
        ("1e300 2.5 c\n", "text where a number or a time"),
    ],
)
def test_a_line_with_blanks_that_does_not_fit_is_located(tmp_path: Path, line: str, reason: str):
    columns = {"x": "x", "name": {"source": "name", "text": True}}
    stream = from_text(tmp_path, BLANK + line + "4 3.5 d\n", time="t", columns=columns)
    assert stream["x"].tolist() == [0.5, 1.5, 3.5]
    (loss,) = stream.losses
    assert (loss.line, loss.count) == (4, 1)
    assert reason in loss.reason


def test_a_column_may_be_a_number_and_a_text_at_once(tmp_path: Path):
    columns = {"v": {"source": "v"}, "label": {"source": "v", "text": True}}
    stream = from_text(tmp_path, "t,v\n1,05\n2,x\n3,7\n", time="t", columns=columns)
    assert stream["v"].tolist() == [5.0, 7.0]
    assert stream["label"] == ["05", "7"]
    (loss,) = stream.losses
    assert (loss.line, loss.count) == (3, 1)


def test_a_list_of_any_length_may_have_numbers_that_are_missing(tmp_path: Path):
    ranges = {"source": "r", "numbers": True, "unit": "mm", "missing": [-1]}
    stream = from_text(tmp_path, "t,r\n1,1000 -1\n2,\n3,500\n", time="t", columns={"ranges": ranges})
    first, none, last = stream.table.column("ranges").to_pylist()
    assert first[0] == 1.0
    assert np.isnan(first[1])
    assert (none, last) == ([], [0.5])


def test_a_list_column_without_a_complete_row_is_empty(tmp_path: Path):
    ranges = {"source": "r", "numbers": True}
    stream = from_text(tmp_path, "t,r\n1,a b\n2,c\n", time="t", columns={"ranges": ranges})
    assert len(stream) == 0
    assert sum(loss.count for loss in stream.losses) == 2


def test_decimals_of_a_second_stay_where_the_format_ends_with_it(tmp_path: Path):
    text = "t,v\n2022-07-01 12:00:00.123456789,1\n2022-07-01 12:00:01,2\n"
    stream = from_text(tmp_path, text, time={"column": "t", "format": "%Y-%m-%d %H:%M:%S"})
    assert stream.t_ns.tolist() == [1656676800_123456789, 1656676801_000000000]
    text = "t,v\n12h00m30 01.07.2022,1\n"
    stream = from_text(tmp_path, text, time={"column": "t", "format": "%Hh%Mm%S %d.%m.%Y"})
    assert stream.t_ns.tolist() == [1656676830_000000000]


def test_roll_and_pitch_that_are_not_there_are_level(tmp_path: Path):
    columns = {
        name: {"source": name, "unit": unit} for name, unit in (("x", "m"), ("y", "m"), ("yaw", "deg"))
    }
    stream = from_text(tmp_path, "t,x,y,yaw\n1,2,3,90\n", type="Pose", time="t", columns=columns)
    assert stream.type is Pose
    half = np.sqrt(0.5)
    np.testing.assert_allclose(stream.array("qx", "qy", "qz", "qw"), [[0, 0, half, half]], atol=1e-12)
    assert np.isnan(stream["z"]).all()


def test_a_row_that_names_no_picture_is_a_loss(tmp_path: Path):
    cv2.imwrite(str(tmp_path / "a.png"), np.full((2, 2), 7, np.uint8))
    (tmp_path / "list.txt").write_text("t,f\n1,a.png\n2,b.png\n")
    columns = {"payload": {"source": "f", "text": True}}
    stream = described(tmp_path, "list.txt", type="Image", time="t", columns=columns)
    assert stream.type is Image
    assert stream[0].value.data.tolist() == [[7, 7], [7, 7]]
    (loss,) = stream.losses
    assert (loss.count, "b.png is not there" in loss.reason) == (1, True)
    pq.write_table(pa.table({"t": [1, 2], "payload": ["a.png", None]}), tmp_path / "list.parquet")
    stream = described(tmp_path, "list.parquet", type="Image", time="t", columns={"payload": "payload"})
    assert len(stream) == 1
    assert [loss.reason for loss in stream.losses] == ["a row names no file"]


def test_an_empty_list_of_pictures_is_a_loss_and_no_error(tmp_path: Path):
    columns = {"payload": {"source": "f", "text": True}}
    stream = from_text(tmp_path, "", type="Image", time="t", columns=columns)
    assert len(stream) == 0
    assert [loss.reason for loss in stream.losses] == ["it is empty"]
