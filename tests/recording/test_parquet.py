"""Parquet tables: what is written is checked page by page, and damage is a typed error."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import transect
from transect.errors import ParseError, StreamError
from transect.recording import Stream, arrow, parquet
from transect.types import Record

TABLE = pa.table({"t_ns": np.arange(500) * 10**9, "x": np.sqrt(np.arange(500.0))})


def test_no_flipped_bit_of_a_page_goes_unseen(tmp_path: Path):
    path = tmp_path / "a.parquet"
    parquet.write_table(TABLE, path)
    content = path.read_bytes()
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    for at in range(4, len(content) - footer, 97):
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        try:
            read = parquet.read_table(path, "a")
        except ParseError:
            continue
        assert read.equals(TABLE)  # a bit of a page's header that means nothing


def described(tmp_path: Path, table: pa.Table, more: str = "") -> transect.Recording:
    parquet.write_table(table, tmp_path / "a.parquet")
    time = "{column: t, unit: s, clock: utc}"
    description = f"streams:\n- {{name: A, file: a.parquet, time: {time}{more}}}\n"
    (tmp_path / "recording.yaml").write_text(description)
    return transect.open(tmp_path)


@pytest.mark.parametrize("times", [
    pa.array([1, None, 3]),
    pa.array([1, 2**62, 3]),
    pa.array([1, -(2**62), 3]),
    pa.array([1, 2**64 - 1, 3], pa.uint64()),
    pa.array([1, None, 3], pa.timestamp("s")),
])  # fmt: skip
def test_a_row_whose_time_is_missing_or_does_not_fit_is_lost_alone(times: pa.Array, tmp_path: Path):
    rec = described(tmp_path, pa.table({"t": times, "x": [1.0, 2.0, 3.0]}))
    assert rec["A"].t_ns.tolist() == [10**9, 3 * 10**9]
    assert rec["A"].column("x").tolist() == [1.0, 3.0]
    (loss,) = rec["A"].losses
    assert loss.reason.endswith("(row 2)")


def test_rows_of_images_without_a_name_of_a_file_are_lost(tmp_path: Path):
    (tmp_path / "b.png").write_bytes(b"")
    table = pa.table({"t": [1, 2], "payload": ["b.png", None]})
    rec = described(tmp_path, table, ", type: Image, columns: {payload: payload}")
    assert len(rec["A"]) == 1
    assert [loss.reason for loss in rec["A"].losses] == ["a row names no file"]


def test_units_that_are_no_text_are_replaced():
    assert arrow.unit_of(pa.field("x", pa.float64(), metadata={b"unit": b"\x82m"})) == "\ufffdm"


def test_columns_of_text_and_bytes_are_lists_and_not_numbers():
    values = [[b"\1", b""], [b"\2"]]
    stream = Stream("a", Record, pa.table({"t_ns": [1, 2], "b": values}))
    assert stream.to_numpy()["b"] == values
    with pytest.raises(StreamError, match="holds no numbers"):
        arrow.numbers(stream.table, "b")
