"""MCAP without ROS: JSON as columns, anything else as bytes, and the round trip of our own files."""

import base64
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.writer import CompressionType, IndexType, Writer

import transect
from transect.errors import ParseError, TransectError, UnsupportedError, UsageError
from transect.formats import load, recognise
from transect.recording import Recording, Stream, arrow, stream_of_values
from transect.recording.arrow import PAYLOAD
from transect.recording.stream import LOGGED_TYPE
from transect.types import Image, Imu, PointCloud, Record

START_NS = 1_700_000_000_000_000_000
SCHEMA = {"type": "object", "properties": {"speed": {"type": "number", "unit": "m/s"}}}


def write(path: Path, messages: list[tuple[str, str, bytes]], **options: Any) -> Path:
    """Write messages of (topic, encoding, data), 1 ms apart, logged 2 ms after they were published."""
    with path.open("wb") as stream:
        writer = Writer(stream, **options)
        writer.start()
        schema = writer.register_schema("speed", "jsonschema", json.dumps(SCHEMA).encode())
        channels: dict[str, int] = {}
        for k, (topic, encoding, data) in enumerate(messages):
            if topic not in channels:
                channels[topic] = writer.register_channel(
                    topic, encoding, schema if encoding == "json" else 0
                )
            t_ns = START_NS + k * 1_000_000
            writer.add_message(channels[topic], t_ns + 2_000_000, data, publish_time=t_ns)
        writer.finish()
    return path


def objects(*values: Any, topic: str = "wheel") -> list[tuple[str, str, bytes]]:
    return [(topic, "json", json.dumps(value).encode()) for value in values]


def test_json_objects_become_columns_by_path(tmp_path: Path):
    values = [
        {"speed": 1.5, "gear": 2, "on": True, "name": "a", "axle": {"left": 1, "right": 2}, "raw": [1, 2, 3]}
    ] * 3
    wheel = transect.open(write(tmp_path / "a.mcap", objects(*values)))["wheel"]
    assert wheel.type is Record
    assert wheel["speed"].tolist() == [1.5] * 3
    assert wheel["gear"].dtype == np.int64
    assert wheel["on"].tolist() == [True] * 3
    assert wheel["name"] == ["a"] * 3
    assert wheel["axle.right"].tolist() == [2] * 3
    assert wheel["raw"].tolist() == [[1, 2, 3]] * 3
    assert wheel.units["speed"] == "m/s"


def test_published_is_the_time_and_logged_the_log_time(tmp_path: Path):
    wheel = transect.open(write(tmp_path / "a.mcap", objects({"speed": 1}, {"speed": 2})))["wheel"]
    assert wheel.t_ns.tolist() == [START_NS, START_NS + 1_000_000]
    assert (wheel.log_ns - wheel.t_ns).tolist() == [2_000_000] * 2
    assert wheel.clock == "utc"


def test_a_timestamp_as_foxglove_writes_it_is_the_time(tmp_path: Path):
    value = {"timestamp": {"sec": 1_600_000_000, "nsec": 7}, "speed": 1.0}
    wheel = transect.open(write(tmp_path / "a.mcap", objects(value)))["wheel"]
    assert wheel.t_ns.tolist() == [1_600_000_000_000_000_007]
    assert wheel.columns == ("speed",)


def test_values_that_are_missing_or_mixed_are_kept_as_they_can_be(tmp_path: Path):
    values = [{"a": 1, "b": "x", "c": [1], "d": [{"e": 1}]}, {"a": None, "b": 2, "c": [1, 2], "d": []}]
    wheel = transect.open(write(tmp_path / "a.mcap", objects(*values)))["wheel"]
    assert np.array_equal(wheel["a"], [1.0, np.nan], equal_nan=True)
    assert wheel["b"] == ['"x"', "2"]
    assert wheel.table["c"].to_pylist() == [[1], [1, 2]]
    assert wheel["d"] == ['[{"e": 1}]', "[]"]


def test_a_value_that_is_no_object_is_a_column_value(tmp_path: Path):
    assert transect.open(write(tmp_path / "a.mcap", objects(1, 2)))["wheel"]["value"].tolist() == [1, 2]


def test_messages_of_another_encoding_are_kept_as_bytes_with_a_note(tmp_path: Path):
    rec = transect.open(
        write(tmp_path / "a.mcap", [("radar", "protobuf", b"\x08\x01"), ("radar", "protobuf", b"\x08")])
    )
    radar = rec["radar"]
    assert radar["size"].tolist() == [2, 1]
    assert [sample.value for sample in radar] == [b"\x08\x01", b"\x08"]
    assert radar.parsed.notes[0].startswith("radar: messages of this type cannot be read here")


def test_a_message_that_is_not_json_is_lost_and_located(tmp_path: Path):
    messages = objects({"speed": 1.0}, {"speed": 2.0})
    messages.insert(1, ("wheel", "json", b'{"speed": '))
    path = write(tmp_path / "a.mcap", messages)
    wheel = transect.open(path)["wheel"]
    assert wheel["speed"].tolist() == [1.0, 2.0]
    (loss,) = wheel.losses
    assert (loss.file, loss.count) == ("a.mcap", 1)
    assert loss.byte is not None
    with pytest.raises(ParseError):
        transect.open(path, strict=True)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": CompressionType.NONE},
        {"compression": CompressionType.LZ4},
        {"use_chunking": False},
        {"use_statistics": False},
        {"index_types": IndexType.NONE},
        {"repeat_channels": False, "repeat_schemas": False},
        {"chunk_size": 100},
        {"enable_crcs": False},
    ],
)
def test_every_way_of_writing_mcap_reads_the_same(options: dict[str, Any], tmp_path: Path):
    messages = objects(*({"speed": k / 2} for k in range(50)))
    wheel = transect.open(write(tmp_path / "a.mcap", messages, **options))["wheel"]
    assert wheel["speed"].tolist() == [k / 2 for k in range(50)]
    assert wheel.losses == ()


@pytest.mark.parametrize("cut", [0, 10])
def test_attachments_are_noted(cut: int, tmp_path: Path):
    path = tmp_path / "a.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        writer.add_attachment(0, 0, "calibration.yaml", "text/yaml", b"K: 1")
        writer.finish()
    path.write_bytes(path.read_bytes()[: path.stat().st_size - cut])
    assert transect.open(path, format="mcap").notes == ("a.mcap has 1 attachments, which are not read",)


def test_a_file_without_its_end_keeps_the_messages_before(tmp_path: Path):
    messages = objects(*({"speed": k} for k in range(50)))
    path = write(tmp_path / "a.mcap", messages, compression=CompressionType.NONE)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b'{"speed": 40}')])
    rec = transect.open(path)
    assert rec["wheel"]["speed"].tolist() == list(range(40))
    assert rec.losses[0].byte is not None


def test_a_changed_message_outside_a_chunk_is_found_by_the_checksum_of_the_data(tmp_path: Path):
    path = write(tmp_path / "a.mcap", objects({"speed": 1.0}), use_chunking=False, enable_data_crcs=True)
    assert transect.open(path).losses == ()
    path.write_bytes(path.read_bytes().replace(b'"speed": 1.0', b'"speed": 7.0'))
    assert "checksum" in transect.open(path).losses[0].reason


def test_a_record_that_claims_terabytes_ends_the_file(tmp_path: Path):
    path = write(tmp_path / "a.mcap", objects({"speed": 1.0}))
    path.write_bytes(path.read_bytes()[:40] + b"\x05" + struct.pack("<Q", 2**42))
    assert transect.open(path).losses


def sample() -> Recording:
    t_ns = START_NS + np.arange(5)
    gyro = {
        "gyro_x": np.array([0.1, np.nan, np.inf, -np.inf, 1e-300]),
        "acc_x": np.arange(5, dtype=np.float32),
    }
    imu = stream_of_values(
        "Imu", t_ns, gyro, type=Imu, log_ns=t_ns + 7, clock="device", role="estimate", tag="aux", frame="imu"
    )
    others = {
        "count": np.array([0, 1, 2**63 - 1, -(2**63), 7]),
        "big": np.array([0, 1, 2**64 - 1, 5, 6], np.uint64),
        "small": np.arange(5, dtype=np.int8),
        "flag": np.array([True, False, True, False, True]),
        "word": ["", "a", "é", '"', "\n"],
        "fixed": np.arange(10.0).reshape(5, 2),
        "ragged": arrow.ragged([np.arange(k, dtype=np.float32) for k in range(5)]),
    }
    status = stream_of_values("Status", np.arange(5), others, clock="index", units={"count": "1"})
    return Recording("sample", (imu, status))


def same(a: Stream, b: Stream) -> bool:
    return all(
        np.array_equal(x, y, equal_nan=True)
        if isinstance(x, np.ndarray) and x.dtype.kind == "f"
        else str(x) == str(y)
        for x, y in ((a[name], b[name]) for name in a.table.column_names if name != "ragged")
    )


def test_what_was_written_reads_back_with_its_types_units_and_clocks(tmp_path: Path):
    rec = sample()
    assert load("mcap").write(rec, tmp_path / "out.mcap") == ()
    back = transect.open(tmp_path / "out.mcap")
    assert back.format == "mcap"
    for stream in rec:
        other = back[stream.name]
        assert other.table.schema.equals(stream.table.schema, check_metadata=True)
        assert same(stream, other)
        for name in ("type", "clock", "role", "tag", "frame", "child"):
            assert getattr(other, name) == getattr(stream, name)
    assert back["Status"].table["ragged"].equals(rec["Status"].table["ragged"])


def test_other_tools_read_what_was_written(tmp_path: Path):
    load("mcap").write(sample(), tmp_path / "out.mcap")
    with (tmp_path / "out.mcap").open("rb") as stream:
        read = [
            json.loads(message.data)
            for _, _, message in make_reader(stream, validate_crcs=True).iter_messages("Imu")
        ]
    assert read[1] == {"gyro_x": None, "acc_x": 1.0}


@given(
    values=st.lists(st.floats(), min_size=1, max_size=10),
    text=st.lists(st.text(st.characters(blacklist_categories=["Cs"])), min_size=1, max_size=10),
)
def test_any_column_survives_the_round_trip(
    values: list[float], text: list[str], tmp_path_factory: pytest.TempPathFactory
):
    path = tmp_path_factory.mktemp("round") / "out.mcap"
    streams = (
        stream_of_values("v", np.arange(len(values)), {"v": np.array(values)}),
        stream_of_values("t", np.arange(len(text)), {"t": text}),
    )
    load("mcap").write(Recording("r", streams), path)
    back = transect.open(path, format="mcap")
    assert np.array_equal(back["v"]["v"], np.array(values), equal_nan=True)
    assert back["t"]["t"] == text


def images(name: str, values: list[Any], mode: str = "gray") -> Stream:
    """A stream of images in memory; an exception among them is a damaged one."""

    def load(row: Mapping[str, Any]) -> Image:
        value = values[int(row[PAYLOAD])]
        if isinstance(value, Exception):
            raise value
        return Image(value, mode, row["t_ns"], "optical")

    table = arrow.table(
        START_NS + np.arange(len(values)), {PAYLOAD: arrow.strings(map(str, range(len(values))))}
    )
    return Stream(name, Image, table, frame="optical", tag="left", loader=load)


def test_images_survive_and_other_tools_read_them(tmp_path: Path):
    """A JPEG file as it is, colours, 16 bits and a mosaic in PNG; what cannot be had is said."""
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 255, (6, 8), np.uint8)
    jpeg = cv2.imencode(".jpg", pixels)[1].tobytes()
    (tmp_path / "cam").mkdir()
    (tmp_path / "cam" / "1700000000.5.jpg").write_bytes(jpeg)
    from_file = transect.open(tmp_path / "cam", format="folder").streams[0].replace(name="file")
    colour, deep = rng.integers(0, 255, (2, 6, 8, 3), np.uint8), rng.integers(0, 60_000, (1, 6, 8), np.uint16)
    made = (
        from_file,
        images("colour", [*colour, ParseError("it is cut off")], "rgb"),
        images("deep", [*deep]),
        images("mosaic", [pixels], "bayer_rggb"),
        images("float", [pixels / 7.0]),
    )
    rec = Recording("day", made, source=transect.recording.source_of(tmp_path / "cam"))
    said = transect.formats.write(rec, tmp_path / "day.mcap", "mcap")
    assert said == (
        "colour: 1 of 3 payloads are left out, the first: it is cut off",
        "float: 1 of 1 payloads are left out, the first: an image of float64 has no place in a PNG",
    )
    back = transect.open(tmp_path / "day.mcap")
    np.testing.assert_array_equal([sample.value.data for sample in back["colour"]], colour)
    np.testing.assert_array_equal(back["deep"][0].value.data, deep[0])
    assert (back["mosaic"][0].value.mode, back["colour"][0].value.mode) == ("bayer_rggb", "rgb")
    assert (back["colour"].frame, back["colour"].tag, back["colour"].log_ns) == ("optical", "left", None)
    assert back["colour"].t_ns.tolist() == [START_NS, START_NS + 1]
    with (tmp_path / "day.mcap").open("rb") as stream:
        read = {c.topic: (s, json.loads(m.data)) for s, c, m in make_reader(stream).iter_messages()}
    schema, message = read["file"]
    assert (schema.name, message["format"]) == ("foxglove.CompressedImage", "jpeg")
    assert base64.b64decode(message["data"]) == jpeg
    assert message["timestamp"] == {"sec": START_NS // 10**9, "nsec": 500_000_000}
    deep_file = np.frombuffer(base64.b64decode(read["deep"][1]["data"]), np.uint8)
    np.testing.assert_array_equal(cv2.imdecode(deep_file, cv2.IMREAD_UNCHANGED), deep[0])


def test_images_that_another_tool_wrote_are_read_and_damaged_ones_say_so(tmp_path: Path):
    png = cv2.imencode(".png", np.eye(3, dtype=np.uint8))[1].tobytes()
    stamp = {"sec": 1_600_000_000, "nsec": 5}
    values = [
        {"timestamp": stamp, "frame_id": "cam", "data": base64.b64encode(png).decode(), "format": "png"},
        {"frame_id": "cam", "data": "no base64!", "format": "png"},
    ]
    path = tmp_path / "a.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        schema = writer.register_schema("foxglove.CompressedImage", "jsonschema", b"{}")
        channel = writer.register_channel("/right/image", "json", schema)
        for k, value in enumerate(values):
            writer.add_message(channel, START_NS + k, json.dumps(value).encode(), publish_time=START_NS + k)
        writer.finish()
    stream = transect.open(path)["/right/image"]
    assert (stream.type, stream.frame, stream.tag) == (Image, "cam", "right")
    assert stream.meta[LOGGED_TYPE] == "foxglove.CompressedImage"
    assert stream.t_ns.tolist() == [1_600_000_000_000_000_005, START_NS + 1]
    np.testing.assert_array_equal(stream[0].value.data, np.eye(3))
    with pytest.raises(ParseError, match="cannot be decoded"):
        _ = stream[1].value


def test_what_json_cannot_carry_is_said(tmp_path: Path):
    table = arrow.table(np.arange(1), {PAYLOAD: arrow.strings(["a"])})
    cloud = Stream("Lidar", PointCloud, table, loader=lambda _: PointCloud(np.zeros((1, 3))))
    rec = sample()
    rec.frames.add_static("a", "b", np.eye(4))
    said = load("mcap").write(rec.replace(streams=(*rec.streams, cloud)), tmp_path / "out.mcap")
    assert said == (
        (
            "Lidar is not written: JSON messages carry columns and images, not a PointCloud; "
            "--format foxglove does, and so does a ROS bag (--format rosbag)"
        ),
        "1 frames are not written: a -> b",
    )
    with pytest.raises(UnsupportedError, match="nothing of r can be written as mcap"):
        transect.formats.write(Recording("r", (cloud,)), tmp_path / "empty.mcap", "mcap")
    assert not (tmp_path / "empty.mcap").exists()


def test_times_before_zero_are_refused(tmp_path: Path):
    rec = Recording("r", (stream_of_values("v", np.array([-1]), {"v": np.zeros(1)}),))
    with pytest.raises(UnsupportedError, match="before zero"):
        load("mcap").write(rec, tmp_path / "out.mcap")
    with pytest.raises(UsageError, match="is a folder"):
        load("mcap").write(sample(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_mcap_is_recognised_and_ros_left_to_rosbag(tmp_path: Path):
    name, match = recognise(write(tmp_path / "a.mcap", objects({"speed": 1})))[0]
    assert (name, match.confidence) == ("mcap", 0.9)
    (tmp_path / "b.mcap").write_bytes(b"not one")
    assert " but " in load("mcap").recognises(transect.recording.source_of(tmp_path / "b.mcap")).reason


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    path = tmp_path_factory.mktemp("written") / "out.mcap"
    load("mcap").write(sample(), path)
    return path, path.read_bytes()


@given(data=st.data())
def test_a_changed_byte_is_found_or_does_not_matter(written: tuple[Path, bytes], data: st.DataObject):
    path, content = written
    changed = bytearray(content)
    changed[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(changed)
    try:
        rec = transect.open(path, format="mcap")
        lost = bool(rec.losses)
    except TransectError:
        return
    whole = sample()
    assert lost or all(stream.name in rec and same(stream, rec[stream.name]) for stream in whole)
