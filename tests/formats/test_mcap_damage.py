"""MCAP files whose index and records contradict each other: what is found, and what is said to be lost."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from mcap.writer import CompressionType, Writer

import transect
from transect.recording import Recording

START_NS = 1_700_000_000_000_000_000
OP_HEADER, OP_FOOTER, OP_CHUNK, OP_MESSAGE_INDEX, OP_CHUNK_INDEX, OP_STATISTICS, OP_DATA_END = (
    1,
    2,
    6,
    7,
    8,
    11,
    15,
)
MESSAGE_COUNT = 6


def written(chunked: bool = True) -> bytearray:
    """Return a file with one message {"speed": k} in each chunk, without checksums of chunks and summary."""
    out = io.BytesIO()
    writer = Writer(
        out,
        chunk_size=1,
        compression=CompressionType.NONE,
        use_chunking=chunked,
        enable_crcs=False,
    )
    writer.start()
    channel = writer.register_channel("wheel", "json", 0)
    for k in range(MESSAGE_COUNT):
        writer.add_message(channel, START_NS + k, b'{"speed": %d}' % k, publish_time=START_NS + k)
    writer.finish()
    return bytearray(out.getvalue())


def records(data: bytes, op: int) -> list[int]:
    """Return where the contents of all records of a kind begin."""
    at, found = 8, list[int]()
    while at + 9 <= len(data) - 8:
        (kind, length) = struct.unpack_from("<BQ", data, at)
        found += [at + 9] if kind == op else []
        at += 9 + length
    return found


def opened(folder: Path, data: bytes) -> tuple[Recording, list[int], list[str]]:
    """Open a file; return it, the speeds that are found and what is said to be lost."""
    (folder / "a.mcap").write_bytes(data)
    rec = transect.open(folder / "a.mcap")
    speeds = rec["wheel"]["speed"].tolist() if len(rec.streams) else []
    return rec, speeds, [loss.reason for loss in (*rec.losses, *(rec["wheel"].losses if speeds else ()))]


def no_summary(data: bytearray) -> None:
    struct.pack_into("<Q", data, records(data, OP_FOOTER)[0], 0)


def index_of_no_chunk(data: bytearray) -> None:
    struct.pack_into("<Q", data, records(data, OP_CHUNK_INDEX)[1] + 16, records(data, OP_HEADER)[0] - 9)


def index_behind_the_end(data: bytearray) -> None:
    struct.pack_into("<Q", data, records(data, OP_CHUNK_INDEX)[1] + 16, len(data) + 100)


def index_of_another_channel(data: bytearray) -> None:
    struct.pack_into("<H", data, records(data, OP_MESSAGE_INDEX)[2], 77)


def messages_indexed_by_no_index(data: bytearray) -> None:
    at = records(data, OP_CHUNK_INDEX)[1] + 32  # behind times, place and length of the chunk: the map's bytes
    (length,) = struct.unpack_from("<I", data, at)
    assert length == 10
    struct.pack_into("<Q", data, at + 6, records(data, OP_HEADER)[0] - 9)


def place_of_no_message(data: bytearray) -> None:
    struct.pack_into("<Q", data, records(data, OP_MESSAGE_INDEX)[4] + 6 + 8, 3)


@pytest.mark.parametrize(
    "damage",
    [
        no_summary,
        index_of_no_chunk,
        index_behind_the_end,
        index_of_another_channel,
        messages_indexed_by_no_index,
        place_of_no_message,
    ],
)
def test_a_wrong_index_is_rejected_and_loses_nothing(
    tmp_path: Path, damage: Callable[[bytearray], None]
) -> None:
    data = written()
    damage(data)
    _, speeds, lost = opened(tmp_path, data)
    assert speeds == list(range(MESSAGE_COUNT))
    assert lost == []


def test_statistics_that_count_more_than_there_is_are_a_loss(tmp_path: Path) -> None:
    data = written()
    struct.pack_into("<Q", data, records(data, OP_STATISTICS)[0], MESSAGE_COUNT + 3)
    rec, speeds, lost = opened(tmp_path, data)
    assert speeds == list(range(MESSAGE_COUNT))
    assert lost == ["the summary counts more messages than are found"]
    assert [loss.count for loss in rec.losses] == [3]


def test_a_chunk_with_a_damaged_header_is_lost_alone(tmp_path: Path) -> None:
    data = written()
    no_summary(data)
    at = records(data, OP_CHUNK)[2]
    struct.pack_into("<I", data, at + 28, 1_000_000)  # how long the name of its compression is
    _, speeds, lost = opened(tmp_path, data)
    assert speeds == [0, 1, 3, 4, 5]
    assert lost == ["the header of a chunk is damaged"]


@pytest.mark.parametrize("kept", [4, 20, 33])
def test_a_file_that_is_cut_in_the_header_of_a_chunk_keeps_those_before(tmp_path: Path, kept: int) -> None:
    data = written()
    _, speeds, lost = opened(tmp_path, data[: records(data, OP_CHUNK)[3] + kept])
    assert speeds == [0, 1, 2]
    assert lost == ["the file is cut off or damaged here"]


def test_messages_without_chunks_are_read_up_to_the_cut(tmp_path: Path) -> None:
    data = written(chunked=False)
    _, speeds, lost = opened(tmp_path, data[: records(data, OP_DATA_END)[0] - 9])
    assert speeds == list(range(MESSAGE_COUNT))
    assert lost == ["the file is cut off or damaged here"]


def test_types_of_ros_1_have_the_names_of_ros_2(tmp_path: Path) -> None:
    out = io.BytesIO()
    writer = Writer(out, compression=CompressionType.NONE)
    writer.start(profile="ros1")
    schema = writer.register_schema("std_msgs/Float64", "ros1msg", b"float64 data")
    channel = writer.register_channel("/speed", "ros1", schema)
    for k in range(3):
        writer.add_message(channel, START_NS + k, struct.pack("<d", 0.5 * k), publish_time=START_NS + k)
    writer.finish()
    (tmp_path / "a.mcap").write_bytes(out.getvalue())
    rec = transect.open(tmp_path / "a.mcap")
    assert rec.format == "rosbag"
    (stream,) = rec.streams
    assert stream["data"].tolist() == [0.0, 0.5, 1.0]
    assert stream.meta["channel"].type == "std_msgs/msg/Float64"
