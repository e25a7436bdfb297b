"""ROS 2 bags in SQLite that are damaged, unusual or hostile: typed errors, and what is good is kept."""

import sqlite3
import zipfile
from pathlib import Path

import pytest
import tests.formats.bag_sample as bags

import transect
from transect.errors import ParseError

TEXT = "std_msgs/msg/String"
MESSAGE_COUNT = 12
PAGE_BYTES = 4096


def write_bag(path: Path, data: str = "data BLOB NOT NULL", mode: str = "DELETE") -> Path:
    """A bag of texts so long that each is alone on its page."""
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        db.execute(f"PRAGMA journal_mode = {mode}")
        topic = "name TEXT, type TEXT, serialization_format TEXT"
        db.execute(f"CREATE TABLE topics(id INTEGER PRIMARY KEY, {topic})")
        message = f"topic_id INTEGER, timestamp INTEGER, {data}"
        db.execute(f"CREATE TABLE messages(id INTEGER PRIMARY KEY, {message})")
        db.execute("INSERT INTO topics VALUES (1, '/said', ?, 'cdr')", (TEXT,))
        for number in range(1, MESSAGE_COUNT + 1):
            if "GENERATED" in data:
                db.execute("INSERT INTO messages(id, topic_id, timestamp) VALUES (?, 1, ?)", (number, number))
            else:
                payload = _text(number)
                db.execute("INSERT INTO messages VALUES (?, 1, ?, ?)", (number, number * 10**9, payload))
    db.close()
    return path


def _text(number: int) -> bytes:
    said = f"word {number:03}".encode() + b"." * 3000 + b"\0"
    return b"\0\1\0\0" + len(said).to_bytes(4, "little") + said


def words(path: Path) -> list[str]:
    return [row["data"][:8] for row in transect.open(path, format="rosbag")["/said"].table.to_pylist()]


@pytest.mark.parametrize("damaged", [1, 2, 7, MESSAGE_COUNT - 1, MESSAGE_COUNT])
def test_a_damaged_page_costs_the_messages_on_it_and_no_others(damaged: int, tmp_path: Path):
    path = write_bag(tmp_path / "a.db3")
    content = bytearray(path.read_bytes())
    at = content.index(b"word %03d" % damaged) // PAGE_BYTES * PAGE_BYTES
    content[at : at + PAGE_BYTES] = bytes(PAGE_BYTES)
    path.write_bytes(content)
    assert words(path) == [f"word {n:03}" for n in range(1, MESSAGE_COUNT + 1) if n != damaged]
    assert any("damaged" in loss.reason for loss in transect.open(path, format="rosbag").losses)


def test_a_bag_that_was_written_with_a_wal_is_read_from_a_zip_and_cut(tmp_path: Path):
    path = write_bag(tmp_path / "a.db3", mode="WAL")
    assert path.read_bytes()[18:20] == b"\2\2"
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(path, "a.db3")
    assert words(tmp_path / "a.zip") == words(path) == [f"word {n:03}" for n in range(1, MESSAGE_COUNT + 1)]
    cut = tmp_path / "cut.db3"
    cut.write_bytes(path.read_bytes()[: -PAGE_BYTES // 2])
    assert words(cut) == [f"word {n:03}" for n in range(1, MESSAGE_COUNT)]


def test_a_column_that_is_computed_is_refused(tmp_path: Path):
    path = write_bag(tmp_path / "a.db3", "data BLOB GENERATED ALWAYS AS (zeroblob(9)) VIRTUAL")
    with pytest.raises(ParseError) as caught:
        transect.open(path, format="rosbag")
    assert caught.value.why == "the column data of messages is computed, not recorded"


@pytest.mark.parametrize("change", ["name = NULL", "type = NULL", "serialization_format = x'ff'"])
def test_a_topic_without_a_name_or_type_is_lost_with_its_messages(change: str, tmp_path: Path):
    path = bags.write(tmp_path, "sqlite3") / "rover.db3"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE loose AS SELECT * FROM topics")
        db.execute("DROP TABLE topics")
        db.execute("ALTER TABLE loose RENAME TO topics")
        db.execute(f"UPDATE topics SET {change} WHERE name = '/imu'")
    db.close()
    rec = transect.open(path, format="rosbag")
    assert "/imu" not in rec
    assert "/odom" in rec
    assert sorted(loss.count for loss in rec.losses) == [1, 20]
