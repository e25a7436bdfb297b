"""Lines: none of many megabytes, and files that are read in pieces read as they would whole."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.formats.corpus import Sample, sample
from tools.fuzz import mutations

import transect
from transect.errors import ParseError, TransectError
from transect.recording import Loss, Parsed, arrow, cache, source_of
from transect.recording.file_hashes import SMALL_FILE_BYTES
from transect.recording.text import line_pieces, lines, refuse_long_lines

TEXTS = {
    "ameds": "GnssPose.csv",
    "carmen": "log.clf",
    "described": "imu.csv",
    "euroc": "mav0/imu0/data.csv",
    "nmea": "",
    "sdi": "",
    "tum": "groundtruth.txt",
}
"""Readers of text, and the file that gets a long line; "" is any."""


def test_a_line_may_be_as_long_as_the_bound_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 64)
    for start in range(40):
        before = b"a" * start + b"\n"
        refuse_long_lines(before + b"b" * 64 + b"\nc\n", "a.txt")
        with pytest.raises(ParseError, match="a line of more than") as caught:
            refuse_long_lines(before + b"b" * 65 + b"\nc\n", "a.txt")
        assert caught.value.where == "a.txt:2"


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_with_a_line_of_no_log_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1 << 15)
    files = dict(sample(name).files)
    damaged = TEXTS[name] or next(file for file in files if file.endswith((".txt", ".nmea", ".log")))
    files[damaged] += b"1 2," * (1 << 14)
    told = ""
    try:
        recording = transect.open(sample(name).write(tmp_path, files))
        told = " ".join(loss.reason for loss in recording.losses)
        [stream.table for stream in recording]
    except TransectError as error:
        told += error.what
    assert "has a line of more than" in told


@pytest.mark.parametrize("piece", [1, 7, 40])  # some lines are longer
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_pieces_are_whole_lines_and_all_of_them(
    monkeypatch: pytest.MonkeyPatch, ending: str, piece: int
) -> None:
    monkeypatch.setattr(lines, "PIECE_BYTES", piece)
    text = "".join(f"{i}{'x' * (i % 17)}{ending}" for i in range(60)).encode()
    pieces = list(line_pieces(text, "a.txt"))
    assert b"".join(piece.data for piece in pieces) == text
    assert len(pieces) > 10
    before = [text[: text.index(piece.data)].decode().count(ending) for piece in pieces]
    assert before == [piece.before for piece in pieces]


ROWS = [f"{1_600_000_000 + i}.5 {i} {i / 8} {'yes' if i % 3 else 'no'}" for i in range(60)]
ROWS[20], ROWS[40] = "never 0 0 no", "1600000040.5 x 1.5 yes"
ROWS[30], ROWS[50] = "later 0 0 no", "1600000050.5 y 1.5 yes"
LAYOUTS = {
    "commas": ("time: {column: t}", ",".join, "."),
    "blanks": ("time: {column: t}", " ".join, "."),
    "decimal commas": ("time: {column: t}", ";".join, ","),
    "counted": ("delimiter: ','", ",".join, "."),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_described_file_in_pieces_reads_as_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    said, join, point = LAYOUTS[layout]
    text = "".join(join(row.replace(".", point).split()) + "\n" for row in ["t n x word", *ROWS])
    (tmp_path / "a.csv").write_text(text + "16")
    (tmp_path / "recording.yaml").write_text(f"streams: [{{name: a, file: a.csv, {said}}}]")
    assert_same_in_pieces(tmp_path, monkeypatch)


def test_a_file_of_ameds_in_pieces_reads_as_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, _, rows = sample("ameds").files["GnssPose.csv"].partition(b"\n")
    rows = rows * 3 + rows.replace(b",16", b",x6", 1) + rows.replace(b",16", b",06", 1)
    (tmp_path / "GnssPose.csv").write_bytes(header + b"\n" + rows + b"16")
    assert_same_in_pieces(tmp_path, monkeypatch)


def test_a_trajectory_in_pieces_reads_as_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{1_600_000_000 + i}.5 {i} 0 0 0 0 0 1\n" for i in range(40)]
    rows[20], rows[30] = "1 2 3\n", "never 0 0 0 0 0 0 1\n"
    (tmp_path / "a.tum").write_text("# time x y z qx qy qz qw\n" + "".join(rows) + "16")
    assert_same_in_pieces(tmp_path / "a.tum", monkeypatch)


READERS = (
    *("ameds", "boreas", "boreas-result", "described-csv", "euroc", "gtsam_points", "ida", "kitti"),
    *("kitti-odometry", "rosario", "rosario-paper", "rosario_tracks", "sdi", "tum"),
)
"""Samples of the readers that read texts of any size."""


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_text_in_pieces_reads_as_the_whole(tmp_path: Path, name: str) -> None:
    one = sample(name)
    for number in range(3):
        files = mutations.mutate(one.files, f"pieces/{name}/{number}") if number else one.files
        path = one.write(tmp_path / f"{number}", files)
        assert outcome_of(path, one, 40) == outcome_of(path, one, lines.PIECE_BYTES)


def outcome_of(path: Path, one: Sample, piece: int) -> object:
    """Return all that there is to see of a recording that is read in pieces of some bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "PIECE_BYTES", piece)
        try:
            recording = transect.open(path, format=one.format, **one.options)
            tables = [
                (s.name, s.type, s.clock, str(s.table.schema), str(s.table.to_pydict())) for s in recording
            ]
            return tables, sorted(map(str, recording.losses)), sorted(recording.all_notes)
        except TransectError as error:
            return str(error)


def assert_same_in_pieces(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = transect.open(path)
    (stream,), losses, notes = whole.streams, whole.losses, whole.all_notes
    monkeypatch.setattr(lines, "PIECE_BYTES", 200)
    pieces = transect.open(path)
    assert pieces.streams[0].table.column(0).num_chunks > 3
    assert pieces.streams[0].table.equals(stream.table)
    assert losses
    assert sorted(pieces.losses, key=str) == sorted(losses, key=str)
    assert set(pieces.all_notes) == set(notes)


def test_pieces_are_cached_as_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSECT_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "a.txt").write_bytes(b"1\n" * SMALL_FILE_BYTES)
    source = source_of(tmp_path / "a.txt")
    loss = Loss("a.txt", "why", line=3, count=2)

    def build(_: object) -> list[Parsed]:
        return [Parsed(arrow.table([i, i], {"x": [i, i]}), (loss,), ("noted",)) for i in range(3)]

    for load in (cache._load, cache._load, lambda _: None):  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(cache, "_load", load)  # the last as where the cache cannot be written
        parsed = cache.parse_pieces(source, "a.txt", "p/1", build)
        assert arrow.numbers(parsed.table, "x").tolist() == [0, 0, 1, 1, 2, 2]
        assert parsed.losses == (Loss("a.txt", "why", line=3, count=6),)
        assert parsed.notes == ("noted",)


def test_a_piece_that_is_written_to_the_cache_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty slices of written tables once kept all of them in memory."""
    monkeypatch.setenv("TRANSECT_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "a.txt").write_bytes(b"1\n" * SMALL_FILE_BYTES)
    made: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def build(_: object) -> Iterator[Parsed]:
        for number in range(3):
            alive.append(sum(ref() is not None for ref in made))
            values = np.arange(1000.0)
            made.append(weakref.ref(values))
            yield Parsed(arrow.table(np.arange(1000), {"x": values}), notes=(f"{number}",))

    parsed = cache.parse_pieces(source_of(tmp_path / "a.txt"), "a.txt", "p/1", build)
    assert parsed.table.num_rows == 3000
    assert max(alive) <= 1  # what is just handed over
