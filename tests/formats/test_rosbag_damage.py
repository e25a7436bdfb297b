"""Bags that were cut off, not closed, or changed: what is good is kept, what is lost is said."""

import base64
import resource
import struct
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats import bag_sample as bags
from tests.formats.bag_sample import STORES, Make

import transect
from transect.errors import ParseError, TransectError, UnsupportedError
from transect.formats import load
from transect.recording import Recording

CUT_COUNT = 20
BYTES_PER_MIB = 1 << 20
ZEROS = base64.b85decode(
    "LRx4!F+o`-Q&|oP;@<&Zjz9pw000Oe05E_}Mna$^sS1FXF+o`-Q&|oP;@<&Zjz9pw000Oe05E_}Mna$^sS1FXF+o`-Q&|oP"
    ";@<&Zjz9pw000Oe05E_}Mna$^sS1FXF+o`-Q&|oP;@<&Zjz9pw000Oe05E_}Mna$^sS1FXF+o`-Q&|oP;@<&Zjz9pw000Oe"
    "05E_}Mna$^sS1FXF+o`-Q&|oP;@<&Zjz9pw000Oe05E_}Mna$^sS1FXF+o`-Q(2;QZs!3k5<mpN000312p|A3%mpc?A_XI2"
    "L<&cXxgwk>NGj@khky"
)
"""300 MB of zeros, packed by bzip2; to pack them takes seconds."""


def file_of(path: Path) -> Path:
    return (
        path if path.is_file() else next(p for p in path.iterdir() if p.suffix in (".db3", ".mcap", ".zstd"))
    )


def used(path: Path) -> Recording:
    """Open a bag and ask for everything in it."""
    rec = transect.open(path, format="rosbag")
    assert repr(rec)
    assert rec.frames.edges is not None
    for stream in rec:
        try:
            _ = stream[0].value if len(stream) else None
        except TransectError:
            continue
    return rec


def ends(data: bytes, encoding: str) -> list[tuple[str, int]]:
    """Topic of each message, and the byte at which it ends in a file without compression."""
    store = STORES[encoding]
    write = store.serialize_ros1 if encoding == "ros1" else store.serialize_cdr
    at, found = 0, []
    for topic, kind, _, message in bags.rover(Make(encoding)):
        raw = bytes(write(message, kind))
        at = data.index(raw, at) + len(raw)
        found.append((topic, at))
    return found


@pytest.mark.parametrize("cut", range(1, CUT_COUNT))
@pytest.mark.parametrize("kind", ["ros1", "mcap"])
def test_a_cut_bag_keeps_every_whole_message(kind: str, cut: int, tmp_path: Path):
    path = bags.write(tmp_path, kind)
    file = file_of(path)
    data = file.read_bytes()
    size = len(data) * cut // CUT_COUNT
    whole = Counter(topic for topic, end in ends(data, "ros1" if kind == "ros1" else "cdr") if end <= size)
    file.write_bytes(data[:size])
    rec = used(path)
    kept = {
        s.name: len(set(s.log_ns.tolist())) if s.name.startswith("/tf") else len(s) for s in rec if len(s)
    }
    assert kept == whole
    assert any(loss.byte is not None and loss.byte <= size for loss in rec.losses)
    with pytest.raises(ParseError):
        transect.open(path, format="rosbag", strict=True)


@pytest.mark.parametrize(
    "kind", ["ros1-bz2", "ros1-lz4", "sqlite3", "sqlite3-message", "sqlite3-file", "mcap-storage"]
)
def test_a_bag_cut_anywhere_keeps_what_it_can_and_says_what_it_lost(kind: str, tmp_path: Path):
    path = bags.write(tmp_path, kind)
    file = file_of(path)
    data, whole = file.read_bytes(), used(path)
    for cut in range(1, CUT_COUNT):
        file.write_bytes(data[: len(data) * cut // CUT_COUNT])
        try:
            rec = used(path)
        except ParseError:
            continue
        assert rec.losses
        for stream in rec:
            known = set(whole[stream.name].t_ns.tolist())
            assert set(stream.t_ns.tolist()) <= known


def test_values_before_the_cut_are_unchanged(tmp_path: Path):
    path = bags.write(tmp_path, "ros1")
    whole = used(path)["/imu"].table
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 3 // 5])
    kept = used(path)["/imu"].table
    assert 5 < kept.num_rows < 20
    assert kept.equals(whole.slice(0, kept.num_rows))


def test_a_bag_that_was_never_closed_is_read_by_its_records(tmp_path: Path):
    """A recorder that dies leaves index_pos 0 and no index (wiki.ros.org/Bags/Format/2.0)."""
    path = bags.write(tmp_path, "ros1")
    data = bytearray(path.read_bytes())
    at = data.index(b"index_pos=") + len(b"index_pos=")
    (index_pos,) = struct.unpack("<Q", data[at : at + 8])
    data[at : at + 8] = bytes(8)
    path.write_bytes(data[:index_pos])
    rec = used(path)
    assert len(rec["/imu"]) == 20
    assert rec.losses == ()
    assert any("was not closed" in note for note in rec.notes)


def test_messages_of_the_chunk_that_was_being_written_are_found(tmp_path: Path):
    """While a chunk is open, rosbag has written its header with a size of 0, and the messages behind it."""
    path = bags.write(tmp_path, "ros1")
    data = bytearray(path.read_bytes())
    chunk = data.index(b"op=\x05") - 8
    (length,) = struct.unpack_from("<I", data, chunk)
    size_at = chunk + 4 + length
    (size,) = struct.unpack_from("<I", data, size_at)
    data[size_at : size_at + 4] = bytes(4)
    at = data.index(b"index_pos=") + len(b"index_pos=")
    data[at : at + 8] = bytes(8)
    path.write_bytes(data[: size_at + 4 + size])
    assert len(used(path)["/imu"]) == 20


def test_a_bag_with_a_broken_index_is_read_by_its_records(tmp_path: Path):
    path = bags.write(tmp_path, "ros1")
    whole = used(path)
    data = bytearray(path.read_bytes())
    at = data.index(b"op=\x04")  # the first index record
    data[at + 3] = 9
    path.write_bytes(data)
    rec = used(path)
    assert all(stream.table.equals(whole[stream.name].table) for stream in rec)
    assert len(rec) == len(whole)
    assert rec.losses == ()


def test_an_encrypted_bag_says_how_to_decrypt_it(tmp_path: Path):
    path = bags.write(tmp_path, "ros1")
    data = path.read_bytes()
    (size,) = struct.unpack_from("<I", data, 13)
    (padding,) = struct.unpack_from("<I", data, 17 + size)
    field = b"encryptor=rosbag/AesCbcEncryptor"
    field = struct.pack("<I", len(field)) + field
    header = data[17 : 17 + size] + field
    rest = struct.pack("<I", padding - len(field)) + data[21 + size + len(field) :]
    path.write_bytes(data[:13] + struct.pack("<I", len(header)) + header + rest)
    with pytest.raises(UnsupportedError, match="encrypted") as caught:
        transect.open(path, format="rosbag")
    assert "rosbag decrypt" in caught.value.hint


@pytest.mark.parametrize(
    ("after", "old", "new"),
    [
        (b"op=\x06", b"count=", b"\xff\xff\0\0"),  # of a chunk: more connections than are listed
        (b"op=\x04", b"ver=", b"\x02\0\0\0"),  # of an index: a version that does not exist
        (b"op=\x04", b"count=", b"\x01\x01\0\0"),  # of an index: more messages than are listed
    ],
)
def test_an_index_that_contradicts_itself_loses_no_message(
    tmp_path: Path, after: bytes, old: bytes, new: bytes
):
    path = bags.write(tmp_path, "ros1")
    whole = used(path)
    data = bytearray(path.read_bytes())
    record = data.index(after)
    start = (
        data.rindex(old, 0, record) if record - data.rfind(old, 0, record) < 60 else data.index(old, record)
    )
    data[start + len(old) : start + len(old) + 4] = new
    path.write_bytes(data)
    rec = used(path)
    assert all(stream.table.equals(whole[stream.name].table) for stream in rec)
    assert len(rec) == len(whole)
    assert sum(loss.count or 0 for loss in rec.losses) == 0


def test_messages_of_a_chunk_that_is_not_where_the_index_says_are_counted(tmp_path: Path):
    path = bags.write(tmp_path, "ros1")
    data = bytearray(path.read_bytes())
    at = data.index(b"chunk_pos=") + len(b"chunk_pos=")
    struct.pack_into("<Q", data, at, 13)
    path.write_bytes(data)
    (loss,) = transect.open(path, format="rosbag").losses
    assert (loss.reason, loss.byte) == ("there is no chunk where the index says so", 13)
    assert loss.count == len(bags.rover(Make("ros1")))


def test_a_connection_without_a_type_costs_its_messages_alone(tmp_path: Path):
    path = bags.write(tmp_path, "ros1")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"type=sensor_msgs/Imu", b"tipe=sensor_msgs/Imu"))
    rec = used(path)
    assert "/imu" not in {stream.name for stream in rec}
    assert len(rec["/odom"]) == 10
    assert sum(loss.count or 0 for loss in rec.losses) == 20


def test_an_index_may_point_at_the_connection_before_a_message(tmp_path: Path):
    path = bags.write(tmp_path, "ros1")
    whole = used(path)
    data = bytearray(path.read_bytes())
    chunk = data.index(b"op=\x05") - 8
    (length,) = struct.unpack_from("<I", data, chunk)
    inside = chunk + 8 + length  # where the chunk's records begin
    (size,) = struct.unpack_from("<I", data, inside - 4)
    records = list(ros1_records(data, inside, inside + size))
    (connection, message) = next(
        (at, after)
        for (at, op, _), (after, next_op, _) in pairwise(records)
        if (op, next_op) == (b"\x07", b"\x02")
    )
    start = next(start for _, op, start in ros1_records(data, inside + size, len(data)) if op == b"\x04")
    assert struct.unpack_from("<I", data, start + 8)[0] == message - inside
    struct.pack_into("<I", data, start + 8, connection - inside)
    path.write_bytes(data)
    rec = used(path)
    assert all(stream.table.equals(whole[stream.name].table) for stream in rec)
    assert rec.losses == ()


def ros1_records(data: bytes, at: int, end: int) -> Iterator[tuple[int, bytes, int]]:
    """Give where each record is, its kind, and where its data begin."""
    while at < end:
        (header,) = struct.unpack_from("<I", data, at)
        fields = data[at + 4 : at + 4 + header]
        (size,) = struct.unpack_from("<I", data, at + 4 + header)
        op = fields.index(b"op=") + 3
        yield at, bytes(fields[op : op + 1]), at + 8 + header
        at += 8 + header + size


def test_a_damaged_record_header_loses_that_message_only(tmp_path: Path):
    path = bags.write(tmp_path, "ros1")
    data = bytearray(path.read_bytes())
    raw = bytes(STORES["ros1"].serialize_ros1(Make("ros1").imu(bags.START_NS, 0), "sensor_msgs/msg/Imu"))
    header = data.rindex(b"op=\x02", 0, data.index(raw))
    data[header + 3] = 99
    path.write_bytes(data)
    rec = used(path)
    assert rec["/imu"].t_ns.tolist() == [bags.START_NS + k * bags.NS_PER_S // 20 for k in range(1, 20)]
    assert len(rec["/odom"]) == 10
    (loss,) = rec.losses
    assert loss.count == 1
    assert "/imu" in loss.reason


def test_a_chunk_with_a_wrong_checksum_is_lost_and_located(tmp_path: Path):
    path = tmp_path / "checked.mcap"
    load("rosbag").write(transect.open(bags.write(tmp_path, "mcap"), format="rosbag"), path)
    data = bytearray(path.read_bytes())
    data[data.index(b"zstd") + 200] ^= 1
    path.write_bytes(data)
    rec = used(path)
    assert not any(len(stream) for stream in rec)
    assert (
        sum(loss.count for loss in rec.losses) == 63 + 1
    )  # the transforms of tf_static are two messages now
    assert {loss.byte for loss in rec.losses} == {data.index(b"zstd") - 41}  # where its record begins


def test_a_chunk_that_claims_four_gigabytes_is_refused_without_memory(tmp_path: Path):
    path = bags.write(tmp_path, "ros1-lz4")
    data = bytearray(path.read_bytes())
    at = data.index(b"size=") + 5
    data[at : at + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rec = used(path)
    assert rec.losses
    assert "4294967295" in rec.losses[0].reason
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


def test_a_bomb_of_a_chunk_is_not_unpacked(tmp_path: Path):
    path = bags.write(tmp_path, "ros1-bz2")
    data = path.read_bytes()
    start = data.index(b"BZh")
    (length,) = struct.unpack_from("<I", data, start - 4)
    bombed = data[: start - 4] + struct.pack("<I", len(ZEROS)) + ZEROS + data[start + length :]
    path.write_bytes(bombed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert used(path).losses
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


def test_a_bomb_of_a_file_is_refused(tmp_path: Path):
    import zstandard

    (tmp_path / "bomb.db3.zstd").write_bytes(zstandard.compress(bytes(100 * BYTES_PER_MIB)))
    with pytest.raises(ParseError, match="too large") as caught:
        transect.open(tmp_path / "bomb.db3.zstd", format="rosbag")
    assert "zstd -d" in caught.value.hint


def test_messages_of_a_topic_that_is_not_listed_are_counted(tmp_path: Path):
    import sqlite3

    folder = bags.write(tmp_path, "sqlite3")
    with sqlite3.connect(folder / "rover.db3") as db:
        db.execute("DELETE FROM topics WHERE name = '/imu'")
    db.close()
    (loss,) = transect.open(folder, format="rosbag").losses
    assert loss.count == 20


@pytest.mark.parametrize(
    "content", [b"", b"#ROSBAG V2.0\n", b"#ROSBAG V2.0\n" + bytes(40), b"#ROSBAG V2.0\n\xff\xff\xff\xff"]
)
def test_a_bag_of_nothing_is_an_error_or_a_loss(content: bytes, tmp_path: Path):
    path = tmp_path / "empty.bag"
    path.write_bytes(content)
    try:
        rec = used(path)
    except ParseError:
        return
    assert len(rec) == 0
    assert rec.losses or rec.notes


@pytest.fixture(scope="module", params=["ros1", "ros1-lz4", "sqlite3", "mcap", "mcap-storage"])
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    path = bags.write(tmp_path_factory.mktemp("sound"), request.param)
    return path, file_of(path).read_bytes()


@given(data=st.data())
def test_changed_bytes_never_raise_anything_untyped(sound: tuple[Path, bytes], data: st.DataObject):
    path, content = sound
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        changed[at] = data.draw(st.integers(0, 255))
    file_of(path).write_bytes(changed)
    try:
        rec = used(path)
    except TransectError:
        return
    kept = sum(len(stream) for stream in rec)
    # A transform less is not a message less where the type of tf is no longer known, which is noted.
    assert kept >= 64 or rec.losses or any("kept as" in note for note in rec.all_notes)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, Recording]:
    """An MCAP bag of our own, with checksums."""
    folder = tmp_path_factory.mktemp("checked")
    rec = transect.open(bags.write(folder, "mcap"), format="rosbag")
    load("rosbag").write(rec, folder / "checked.mcap")
    return folder / "checked.mcap", (folder / "checked.mcap").read_bytes(), rec


@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_no_flipped_bit_changes_a_value_unseen(checked: tuple[Path, bytes, Recording], at: float, bit: int):
    path, content, whole = checked
    changed = bytearray(content)
    changed[int(at * len(content))] ^= 1 << bit
    path.write_bytes(changed)
    try:
        rec = used(path)
    except TransectError:
        return
    same = {stream.name for stream in rec} == {stream.name for stream in whole} and all(
        np.array_equal(stream.t_ns, whole[stream.name].t_ns)
        and ("payload" in stream.table.column_names or stream.table.equals(whole[stream.name].table))
        for stream in rec
    )
    assert same or rec.losses or rec.all_notes != whole.all_notes
