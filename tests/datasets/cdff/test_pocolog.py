"""Rock logs, written by hand as `spec-v2.txt` of pocolog and real files have them, and read back."""

import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transect
from transect.errors import ParseError, TransectError, UsageError
from transect.formats import write
from transect.recording import Recording, Stream, stream_of_values
from transect.types import Image, Imu, JointState, LaserScan, PointCloud, Pose, Record, RigidBodyState

START_S = 1_501_161_448
"""27 July 2017 in seconds."""
NUMBERS = """
  <numeric name="/int8_t" category="sint" size="1"/>
  <numeric name="/uint8_t" category="uint" size="1"/>
  <numeric name="/int16_t" category="sint" size="2"/>
  <numeric name="/int32_t" category="sint" size="4"><metadata key="doc"><![CDATA[a < b]]></metadata></numeric>
  <numeric name="/int64_t" category="sint" size="8"/>
  <numeric name="/float" category="float" size="4"/>
  <numeric name="/double" category="float" size="8"/>
  <container name="/std/string" of="/int8_t" size="32" kind="/std/string"/>
  <container name="/std/vector&lt;/double&gt;" of="/double" size="24" kind="/std/vector"/>
  <alias name="/int" source="/int32_t"/>
  <compound name="/base/Time" size="8"><field name="microseconds" type="/int64_t" offset="0"/></compound>
"""


def text(content: bytes) -> bytes:
    return struct.pack("<I", len(content)) + content


def block(kind: int, stream: int, content: bytes) -> bytes:
    return struct.pack("<BBHI", kind, 0xFF, stream, len(content)) + content


def declare(stream: int, name: str, kind: str, types: str = "", metadata: str = "") -> bytes:
    xml = f'<?xml version="1.0"?>\n<typelib>{NUMBERS}{types}</typelib>'
    parts = (name, kind, xml, metadata) if metadata else (name, kind, xml)
    return block(1, stream, b"\x01" + b"".join(text(part.encode()) for part in parts))


def sample(stream: int, data: bytes, second: int = 0, flags: int = 0) -> bytes:
    """Real time is 20 us after logical time."""
    times = struct.pack("<IIII", START_S + second, 120, START_S + second, 100)
    return block(2, stream, times + struct.pack("<IB", len(data), flags) + data)


def log(*blocks: bytes, big: bool = False) -> bytes:
    return b"POCOSIM\x00" + struct.pack("<II", 2, int(big)) + b"".join(blocks)


def opened(tmp_path: Path, *blocks: bytes, big: bool = False) -> Recording:
    path = tmp_path / f"task{len(list(tmp_path.iterdir()))}.0.log"
    path.write_bytes(log(*blocks, big=big))
    return transect.open(path, format="pocolog")


def integers(count: int) -> list[bytes]:
    return [sample(0, struct.pack("<i", 1000 + i), i) for i in range(count)]


INT = declare(0, "/task.out", "/int32_t", metadata="rock_task_name: /task\n")


def test_integers_have_real_and_logical_time(tmp_path: Path):
    rec = opened(tmp_path, INT, *integers(3))
    stream = rec["/task.out"]
    assert rec.format == "pocolog"
    assert (stream.type, stream.clock) == (Record, "utc")
    assert stream["value"].tolist() == [1000, 1001, 1002]
    assert stream.t_ns.tolist() == [(START_S + i) * 10**9 + 100_000 for i in range(3)]
    assert stream.log_ns is not None
    assert stream.log_ns.tolist() == [(START_S + i) * 10**9 + 120_000 for i in range(3)]
    assert stream.meta["rock_type"] == "/int32_t"
    assert stream.meta["rock"] == {"rock_task_name": "/task"}
    assert not rec.losses


def test_big_endian_samples_are_turned_round(tmp_path: Path):
    """Headers are little endian in any case."""
    vector = struct.pack(">Qdd", 2, 1.5, -2.5)
    rec = opened(
        tmp_path,
        INT,
        declare(1, "/task.list", "/std/vector</double>"),
        sample(0, struct.pack(">i", 77)),
        sample(1, vector),
        big=True,
    )
    assert rec["/task.out"]["value"].tolist() == [77]
    assert rec["/task.list"]["value"].tolist() == [[1.5, -2.5]]


def test_text_and_lists(tmp_path: Path):
    strings = (
        '<container name="/std/vector&lt;/std/string&gt;" of="/std/string" size="24" kind="/std/vector"/>'
    )

    def string(content: bytes) -> bytes:
        return struct.pack("<Q", len(content)) + content

    rec = opened(
        tmp_path,
        declare(0, "/t.text", "/std/string"),
        declare(1, "/t.words", "/std/vector</std/string>", strings),
        declare(2, "/t.numbers", "/std/vector</double>"),
        sample(0, string(b"1337")),
        sample(0, string("é".encode())),
        sample(1, struct.pack("<Q", 2) + string(b"hello") + string(b"world")),
        sample(1, struct.pack("<Q", 0)),
        sample(2, struct.pack("<Qd", 1, 0.5)),
        sample(2, struct.pack("<Qdd", 2, 1.5, 2.5)),
    )
    assert rec["/t.text"]["value"] == ["1337", "é"]
    assert rec["/t.words"].table.column("value").to_pylist() == [["hello", "world"], []]
    assert rec["/t.numbers"].table.column("value").to_pylist() == [[0.5], [1.5, 2.5]]


COLLECTIONS = """
  <enum name="/Mode"><value symbol="SLOW" value="1"/><value symbol="FAST" value="7"/></enum>
  <compound name="/Point" size="24"><field name="xy" type="/double[2]" offset="0"/>
    <field name="ok" type="/int8_t" offset="16"/></compound>
  <container name="/std/vector&lt;/Point&gt;" of="/Point" size="24" kind="/std/vector"/>
  <compound name="/All" size="112">
    <field name="first" type="/int" offset="0"/>
    <field name="list" type="/std/vector&lt;/double&gt;" offset="8"/>
    <field name="small" type="/int8_t" offset="32"/>
    <field name="points" type="/std/vector&lt;/Point&gt;" offset="40"/>
    <field name="mode" type="/Mode" offset="64"/>
    <field name="time" type="/base/Time" offset="72"/>
    <field name="matrix" type="/float[3]" offset="80"/>
    <field name="last" type="/int16_t" offset="96"/>
  </compound>"""


def collections(padding: bytes = b"") -> bytes:
    """One `/All`: padding is written between fields, also before containers, and in elements, not at the end.

    As typelib's own `test_marshalling.cc` (test_marshalapply_containers) expects it.
    """
    return (
        struct.pack("<i4x", -5)
        + struct.pack("<Qdd", 2, 0.25, 0.5)
        + struct.pack("<b7x", -106)
        + struct.pack("<Q", 2)
        + struct.pack("<ddb7x", 1.0, 2.0, 1)
        + struct.pack("<ddb7x", 3.0, 4.0, 0)
        + struct.pack("<i4x", 7)
        + struct.pack("<q", (START_S + 5) * 1_000_000)
        + struct.pack("<3f4x", 1.0, 2.0, 3.0)
        + struct.pack("<h", 5235)
        + padding
    )


@pytest.mark.parametrize("padding", [b"", bytes(14)])
def test_a_struct_with_padding_containers_arrays_and_enumerations(tmp_path: Path, padding: bytes):
    rec = opened(tmp_path, declare(0, "/t.all", "/All", COLLECTIONS), *[sample(0, collections(padding))] * 2)
    assert not rec.losses
    stream = rec["/t.all"]
    assert stream[1].row == {
        "t_ns": (START_S + 5) * 10**9,
        "log_ns": START_S * 10**9 + 120_000,
        "first": -5,
        "list": [0.25, 0.5],
        "small": -106,
        "points.xy": [1.0, 2.0, 3.0, 4.0],
        "points.ok": [1, 0],
        "mode": "FAST",
        "matrix": [1.0, 2.0, 3.0],
        "last": 5235,
        "logical_ns": START_S * 10**9 + 100_000,
    }


def test_a_sample_of_another_size_is_left_out_and_located(tmp_path: Path):
    blocks = [INT, *integers(2), sample(0, b"\x01\x02"), sample(0, struct.pack("<i", 3))]
    rec = opened(tmp_path, *blocks)
    assert rec["/task.out"]["value"].tolist() == [1000, 1001, 3]
    (loss,) = rec.losses
    place = len(log(*blocks[:3])) + 8 + 21
    assert (loss.byte, loss.count) == (place, 1)
    long = collections(bytes(15))
    rec = opened(
        tmp_path, declare(0, "/t.all", "/All", COLLECTIONS), sample(0, long), sample(0, collections())
    )
    assert len(rec["/t.all"]) == 1
    assert "its type needs" in rec.losses[0].reason


def test_a_container_that_claims_too_much_is_left_out(tmp_path: Path):
    claims = [
        b"\x01\0\0",
        struct.pack("<Qd", 2**60, 1.0),
        struct.pack("<Qd", 2, 1.0),
        struct.pack("<Qd", 1, 1.0),
    ]
    rec = opened(
        tmp_path, declare(0, "/t.list", "/std/vector</double>"), *[sample(0, claim) for claim in claims]
    )
    assert rec["/t.list"].table.column("value").to_pylist() == [[1.0]]
    assert sum(loss.count for loss in rec.losses) == 3


def test_compressed_samples_are_unpacked(tmp_path: Path):
    packed = zlib.compress(struct.pack("<i", 42))
    rec = opened(tmp_path, INT, sample(0, packed, flags=1), sample(0, b"no zlib", flags=1), *integers(1))
    assert rec["/task.out"]["value"].tolist() == [42, 1000]
    assert "decompressed" in rec.losses[0].reason
    rec = opened(tmp_path, INT, sample(0, packed[:-5], flags=1), *integers(1))
    assert rec["/task.out"]["value"].tolist() == [1000]
    assert "cut off" in rec.losses[0].reason


FRAME = """
  <numeric name="/uint16_t" category="uint" size="2"/>
  <enum name="/mode_t"><value symbol="MODE_GRAYSCALE" value="1"/></enum>
  <container name="/std/vector&lt;/uint8_t&gt;" of="/uint8_t" size="24" kind="/std/vector"/>
  <compound name="/size_t" size="4"><field name="width" type="/uint16_t" offset="0"/>
    <field name="height" type="/uint16_t" offset="2"/></compound>
  <compound name="/base/samples/frame/Frame" size="40">
    <field name="time" type="/base/Time" offset="0"/>
    <field name="image" type="/std/vector&lt;/uint8_t&gt;" offset="8"/>
    <field name="size" type="/size_t" offset="32"/>
    <field name="frame_mode" type="/mode_t" offset="36"/>
  </compound>"""


def image_data(second: int, *pixels: int) -> bytes:
    time = struct.pack("<q", (START_S + second) * 1_000_000)
    return time + struct.pack("<Q", len(pixels)) + bytes(pixels) + struct.pack("<HHi", 3, 2, 1)


def test_an_image_is_read_from_its_place_in_the_file(tmp_path: Path):
    samples = [sample(0, image_data(i, *range(10 * i, 10 * i + 6))) for i in range(2)]
    stream = opened(tmp_path, declare(0, "/cam.frame", "/base/samples/frame/Frame", FRAME), *samples)[
        "/cam.frame"
    ]
    assert stream.type is Image
    assert stream[1].value.data.tolist() == [[10, 11, 12], [13, 14, 15]]
    assert stream[1].value.mode == "gray"
    assert stream.t_ns.tolist() == [START_S * 10**9, (START_S + 1) * 10**9]


def test_an_image_shorter_than_its_size_is_an_error(tmp_path: Path):
    rec = opened(
        tmp_path,
        declare(0, "/cam.frame", "/base/samples/frame/Frame", FRAME),
        sample(0, image_data(0, 1, 2, 3)),
    )
    with pytest.raises(ParseError, match="shorter"):
        _ = rec["/cam.frame"][0].value


@pytest.mark.parametrize(
    ("kind", "types", "reason"),
    [
        ("/Secret", '<opaque name="/Secret" size="8"/>', "opaque"),
        ("/Missing", "", "not defined"),
        ("/P", '<pointer name="/P" of="/int8_t"/>', "pointer"),
        ("/L", '<numeric name="/L" category="float" size="16"/>', "16 bytes"),
        (
            "/S",
            """<compound name="/S" size="24"><field name="s" type="/V" offset="0"/></compound>
            <container name="/V" of="/S" size="24" kind="/std/vector"/>""",
            "nested too deeply",
        ),
        (
            "/O",
            """<compound name="/O" size="8"><field name="a" type="/double" offset="0"/>
            <field name="b" type="/int" offset="4"/></compound>""",
            "overlap",
        ),
        ("/Z", '<compound name="/Z" size="x"/>', "cannot be read"),
        ("/E", '<compound name="/E" size="8"/>', "without content"),
        (
            "/B",
            '<compound name="/B" size="4"><field name="a" type="/double" offset="0"/></compound>',
            "beyond their struct",
        ),
        (
            "/A",
            """<compound name="/C" size="8"><field name="a" type="/double" offset="0"/></compound>
            <compound name="/A" size="16"><field name="c" type="/C[2]" offset="0"/></compound>""",
            "an array of structs",
        ),
        (
            "/Huge",
            """<compound name="/Huge" size="8">
            <field name="a" type="/double[99999999999]" offset="0"/></compound>""",
            "bytes",
        ),
    ],
)
def test_samples_of_a_type_that_cannot_be_decoded_are_kept_as_bytes(
    tmp_path: Path, kind: str, types: str, reason: str
):
    rec = opened(tmp_path, declare(0, "/t.x", kind, types), sample(0, b"12345678"))
    assert rec["/t.x"].table.column("value").to_pylist() == [b"12345678"]
    (note,) = rec.notes
    assert "kept as bytes" in note
    assert reason in note


@pytest.mark.parametrize(
    "xml",
    [
        b'<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><typelib>&b;</typelib>',
        b'<!DOCTYPE t SYSTEM "file:///etc/passwd"><typelib/>',
        b"<typelib",
        b"",
    ],
)
def test_definitions_with_a_dtd_or_none_at_all_are_not_trusted(tmp_path: Path, xml: bytes):
    declaration = block(1, 0, b"\x01" + text(b"/t.x") + text(b"/int32_t") + text(xml))
    rec = opened(tmp_path, declaration, sample(0, b"abcd"))
    assert rec["/t.x"].table.column("value").to_pylist() == [b"abcd"]
    assert "kept as bytes" in rec.notes[0]


@pytest.mark.parametrize(("wrapped", "levels"), [("/T{}", 29), ("/std/vector&lt;/T{}&gt;", 14)])
def test_definitions_that_double_at_every_level_end(tmp_path: Path, wrapped: str, levels: int):
    types = '<compound name="/T0" size="8"><field name="x" type="/double" offset="0"/></compound>'
    for i in range(1, levels + 1):
        of = wrapped.format(i - 1)
        size = 24 if "vector" in of else 8 * 2 ** min(i - 1, 20)
        types += (
            f'<container name="/std/vector&lt;/T{i - 1}&gt;" of="/T{i - 1}" size="24" kind="/std/vector"/>'
        )
        types += f'<compound name="/T{i}" size="{2 * size}"><field name="a" type="{of}" offset="0"/>'
        types += f'<field name="b" type="{of}" offset="{size}"/></compound>'
    rec = opened(tmp_path, declare(0, "/t.x", f"/T{levels}", types), sample(0, b"x"))
    assert rec["/t.x"].table.column("value").to_pylist() == [b"x"]
    assert "more than 10000 fields" in rec.notes[0]


def test_a_log_cut_anywhere_keeps_its_whole_blocks(tmp_path: Path):
    blocks = [INT, *integers(5)]
    whole = log(*blocks)
    edges = [len(log(*blocks[: i + 1])) for i in range(6)]
    for size in range(edges[0], len(whole)):
        path = tmp_path / f"{size}.0.log"
        path.write_bytes(whole[:size])
        rec = transect.open(path, format="pocolog")
        count = sum(edge <= size for edge in edges) - 1
        assert len(rec["/task.out"]) == count
        if size not in edges:
            (loss,) = rec.losses
            assert loss.byte == edges[count]
            with pytest.raises(ParseError):
                transect.open(path, format="pocolog", strict=True)


def test_a_damaged_block_in_the_middle_loses_only_itself(tmp_path: Path):
    blocks = [INT, *integers(6)]
    damaged = bytearray(log(*blocks))
    place = len(log(*blocks[:3]))
    damaged[place : place + 12] = b"\x99" * 12
    (tmp_path / "a.0.log").write_bytes(damaged)
    rec = transect.open(tmp_path / "a.0.log")
    assert rec["/task.out"]["value"].tolist() == [1000, 1001, 1003, 1004, 1005]
    (loss,) = rec.losses
    assert (loss.byte, loss.reason) == (place, f"a block is damaged: {len(integers(1)[0])} bytes are lost")


def test_a_damaged_declaration_loses_only_its_stream(tmp_path: Path):
    other = declare(1, "/task.other", "/int32_t")
    broken = block(1, 0, b"\x01" + struct.pack("<I", 2**31) + b"name")
    rec = opened(
        tmp_path, broken, other, sample(0, b"abcd"), sample(1, struct.pack("<i", 9)), sample(0, b"efgh")
    )
    assert rec["/task.other"]["value"].tolist() == [9]
    reasons = [(loss.reason, loss.count) for loss in rec.losses]
    assert ("the declaration of a stream is damaged", 1) in reasons
    assert ("samples of stream 0, which is not declared", 2) in reasons


def test_control_streams_are_passed(tmp_path: Path):
    rec = opened(tmp_path, INT, block(1, 5, b"\x02"), block(3, 5, b"any data"), *integers(1))
    assert [s.name for s in rec] == ["/task.out"]
    assert not rec.losses


def test_a_stream_without_samples_is_empty(tmp_path: Path):
    rec = opened(tmp_path, INT)
    assert len(rec["/task.out"]) == 0
    assert not rec.losses


def test_other_versions_and_other_files_are_refused(tmp_path: Path):
    (tmp_path / "old.0.log").write_bytes(b"POCOSIM\x00" + struct.pack("<II", 1, 0))
    with pytest.raises(ParseError, match="version 1"):
        transect.open(tmp_path / "old.0.log")
    (tmp_path / "x.log").write_text("just text\n")
    with pytest.raises(ParseError, match="no Rock log"):
        transect.open(tmp_path / "x.log", format="pocolog")


def test_parts_of_a_log_are_joined_in_order_and_other_tasks_stand_beside(tmp_path: Path):
    for part in (10, 9):
        blocks = [sample(0, struct.pack("<i", part), part)]
        (tmp_path / f"task.{part}.log").write_bytes(log(INT, *blocks))
    (tmp_path / "other.0.log").write_bytes(log(declare(3, "/other.out", "/std/string")))
    (tmp_path / "notes.log").write_text("not a Rock log")
    rec = transect.open(tmp_path)
    assert rec["/task.out"]["value"].tolist() == [9, 10]
    assert [s.name for s in rec] == ["/other.out", "/task.out"]
    assert [loss.file for loss in rec.losses] == ["notes.log"]


def rock_recording() -> Recording:
    t_ns = np.arange(4, dtype=np.int64) * 100_000_000 + START_S * 10**9
    rng = np.random.default_rng(5)
    pose = {n: rng.normal(size=4) for n in ("x", "y", "z", "qx", "qy", "qz", "qw")}
    columns: dict[type, dict[str, Any]] = {
        Imu: {f"{n}_{a}": rng.normal(size=4) for n in ("acc", "gyro", "mag_raw") for a in "xyz"},
        Pose: pose,
        RigidBodyState: {
            **pose,
            **{f"{n}{a}": rng.normal(size=4) for n in "vw" for a in "xyz"},
            "cov_position": rng.normal(size=(4, 9)),
            "source_frame": ["body"] * 4,
            "target_frame": ["world"] * 4,
        },
        JointState: {"position": rng.normal(size=(4, 2)), "velocity": np.full((4, 2), 0.5)},
        LaserScan: {
            "ranges": [np.array([1.5, np.nan]), np.array([2.25]), np.zeros(0), np.array([3.0])],
            "start_angle": rng.normal(size=4),
            "angle_increment": np.full(4, 0.1),
        },
        Record: {
            "flag": np.array([0, 1, 2, 3], dtype=np.uint8),
            "count": np.array([-1, 2, -3, 4]),
            "ratio": rng.normal(size=4).astype(np.float32),
            "pair": rng.normal(size=(4, 2)),
            "word": ["a", "", "ü", "long enough"],
            "list": [np.array([1.0]), np.zeros(0), np.array([2.0, 3.0]), np.array([4.0])],
        },
    }
    streams = [
        stream_of_values(f"/robot.{kind.__name__}", t_ns, parts, type=kind, log_ns=t_ns + 5000)
        for kind, parts in columns.items()
    ]
    pixels = rng.integers(0, 2**16, (4, 3, 5), dtype=np.uint16)
    points = rng.normal(size=(4, 6, 3))

    def image(row: Any) -> Image:
        return Image(pixels[int(np.searchsorted(t_ns, row["t_ns"]))], "gray", t_ns=row["t_ns"])

    def cloud(row: Any) -> PointCloud:
        return PointCloud(points[int(np.searchsorted(t_ns, row["t_ns"]))], t_ns=row["t_ns"])

    payloads = [
        stream_of_values("/cam.image", t_ns, {}, type=Image).replace(loader=image),
        stream_of_values("/lidar.cloud", t_ns, {}, type=PointCloud).replace(loader=cloud),
    ]
    return Recording("small", (*streams, *payloads))


def assert_same_values(expected: Stream, found: Stream) -> None:
    assert found.type is expected.type
    assert found.t_ns.tolist() == expected.t_ns.tolist()
    assert found.log_ns is not None
    assert expected.log_ns is not None
    assert found.log_ns.tolist() == expected.log_ns.tolist()
    for name in expected.columns:
        assert repr(found.table.column(name).to_pylist()) == repr(expected.table.column(name).to_pylist()), (
            name
        )


def test_what_is_written_reads_back_the_same(tmp_path: Path):
    recording = rock_recording()
    said = write(recording, tmp_path / "robot", "pocolog")
    assert said == ("/lidar.cloud: a Rock cloud has no intensity",)
    found = transect.open(tmp_path / "robot.0.log")
    assert not found.losses
    for stream in recording:
        if stream.loader is None:
            assert_same_values(stream, found[stream.name])
    for name in ("/cam.image", "/lidar.cloud"):
        for a, b in zip(recording[name], found[name], strict=True):
            same = (a.value.data, b.value.data) if name == "/cam.image" else (a.value.points, b.value.points)
            np.testing.assert_array_equal(*same)


def test_a_written_log_follows_the_specification(tmp_path: Path):
    t_ns = np.array([START_S * 10**9 + 100_000])
    stream = stream_of_values("/a.b", t_ns, {"value": np.array([7], dtype=np.int32)}, log_ns=t_ns + 20_000)
    write(Recording("r", (stream,)), tmp_path / "a.0.log", "pocolog")
    content = (tmp_path / "a.0.log").read_bytes()
    assert content.startswith(log())
    assert content.endswith(sample(0, struct.pack("<i", 7)))
    assert content[16:18] == b"\x01\xff"
    assert text(b"/a.b") + text(b"/int32_t") in content


def test_the_writer_replaces_nothing_and_needs_something(tmp_path: Path):
    path = tmp_path / "a.0.log"
    path.write_bytes(b"precious")
    with pytest.raises(UsageError):
        write(rock_recording(), path, "pocolog")
    assert path.read_bytes() == b"precious"
    with pytest.raises(UsageError):
        write(Recording("none", ()), tmp_path / "b.0.log", "pocolog")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("written") / "log.0.log"
    write(rock_recording(), path, "pocolog")
    return path.read_bytes()


@given(data=st.data())
def test_damaged_bytes_never_cause_an_untyped_error_or_a_silent_loss(
    data: st.DataObject, written: bytes, tmp_path_factory: pytest.TempPathFactory
):
    damaged = bytearray(written)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "log.0.log"
    path.write_bytes(damaged)
    try:
        rec = transect.open(path, format="pocolog")
        count = sum(len(s) for s in rec)
        lost = rec.losses
    except TransectError:
        return
    assert count == 4 * 8 or lost
    for stream in rec:
        if len(stream):
            with suppress(TransectError):
                _ = stream[0].value
