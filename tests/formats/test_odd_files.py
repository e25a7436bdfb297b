"""What stands on disks all the same: columns of the wrong type, links in a circle, full disks."""

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcap.writer
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import commands
from tests.formats import every_type
from tests.formats.recordings import look_at_everything

import transect
from transect import formats
from transect.errors import TransectError
from transect.formats.shared.bags.streams import METADATA
from transect.recording import Recording, Stream, stream_of_values
from transect.types import Imu, JointState, LaserScan, NavFix, Pose

TYPES = {"Imu": Imu, "JointState": JointState, "LaserScan": LaserScan, "NavFix": NavFix, "Pose": Pose}
ODD: dict[str, Any] = {
    "text": pa.array(["a", "b", "c"]),
    "lists": pa.array([[1.0, 2.0], [3.0], []]),
    "lists of text": pa.array([["a"], [], ["b", "c"]]),
    "objects": pa.array([{"a": 1}, {"a": 2}, {"a": 3}]),
    "nothing": pa.nulls(3),
    "numbers": pa.array([1.0, 2.0, 3.0]),
}


def odd_stream(kind: type, column: str, odd: pa.Array) -> Stream:
    columns: dict[str, Any] = {name: np.ones(3) for name, form in kind.forms().items() if form == "number"}
    return stream_of_values(kind.__name__, np.arange(3), {**columns, column: odd}, type=kind)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", TYPES)
def test_a_column_that_does_not_hold_what_its_type_has_is_a_loss(name: str, odd: str):
    kind = TYPES[name]
    fitting = {
        "number": {"numbers"},
        "numbers": {"numbers", "lists"},
        "list": {"lists"},
        "text": {"text"},
        "texts": {"text", "lists of text"},
    }
    for column, form in kind.forms().items():
        stream = odd_stream(kind, column, ODD[odd])
        fits = odd in fitting[form]
        assert (column in stream.columns) == (fits or column == "ranges"), column  # there are none then
        assert [loss.count for loss in stream.losses] == ([] if fits else [3])
        assert all(f"the column {column} holds" in loss.reason for loss in stream.losses)
        for sample in stream:
            assert isinstance(sample.value, kind)
            assert repr(sample.value)


@pytest.mark.parametrize("odd", ["text", "lists", "lists of text", "objects"])
@pytest.mark.parametrize("format", ["parquet", "mcap"])
def test_files_with_odd_columns_are_opened_checked_and_exported(tmp_path: Path, format: str, odd: str):
    streams = "".join(
        f"- {{name: {name}, type: {name}, file: {name}.parquet, time: {{column: t, unit: ms}}}}\n"
        for name in TYPES
    )
    path = tmp_path / "day"
    path.mkdir()
    for name, kind in TYPES.items():
        columns = dict.fromkeys(kind.forms(), ODD[odd])
        pq.write_table(pa.table({"t": [0, 1, 2], **columns}), path / f"{name}.parquet")
    (path / "recording.yaml").write_text(f"streams:\n{streams}")
    if format == "mcap":
        path = tmp_path / "odd.mcap"
        write_json(
            path, {name: {c: ODD[odd].to_pylist() for c in kind.forms()} for name, kind in TYPES.items()}
        )
    recording = transect.open(path)
    assert look_at_everything(recording) == 15
    # JSON has no objects as values: their members become columns of their own
    assert bool(recording.losses) == ((format, odd) != ("mcap", "objects"))
    for number, written_as in enumerate(("rosbag", "csv", "parquet", "cdff_msgpack", "foxglove", "pocolog")):
        done = commands.transect("export", path, "--format", written_as, "-o", tmp_path / f"out{number}")
        assert done.returncode in (0, 1, 3), done.stderr
    assert commands.transect("check", path).returncode in (0, 3, 4)
    assert commands.transect("report", path, "-o", tmp_path / "report.html").returncode in (0, 3, 4)


def write_json(path: Path, streams: dict[str, dict[str, list[Any]]]) -> None:
    """Write JSON messages whose channels say that they are of our types."""
    with path.open("wb") as file:
        writer = mcap.writer.Writer(file)
        writer.start()
        for name, columns in streams.items():
            schema = writer.register_schema(name, "jsonschema", b'{"type": "object"}')
            said = {METADATA: json.dumps({"type": name})}
            channel = writer.register_channel(name, "json", schema, said)
            for k in range(3):
                row = {column: values[k] for column, values in columns.items()}
                writer.add_message(channel, k * 10**6, json.dumps(row).encode(), k * 10**6)
        writer.finish()


def test_a_scan_without_ranges_has_no_beams():
    ranges = pa.array([[1.0, None], None, []], pa.large_list(pa.float64()))
    columns = {"ranges": ranges, "start_angle": np.zeros(3), "angle_increment": np.ones(3)}
    scans = [sample.value for sample in stream_of_values("Laser", np.arange(3), columns, type=LaserScan)]
    assert [repr(scan.measured.tolist()) for scan in scans] == ["[1.0, nan]", "[]", "[]"]
    assert [scan.angles.tolist() for scan in scans] == [[0.0, 1.0], [], []]


def test_decimal_numbers_are_numbers():
    lat = pa.array(["0.1", "0.2", None]).cast(pa.decimal128(20, 10))
    fixes = stream_of_values("Gnss", np.arange(3), {"lat": lat, "lon": np.ones(3)}, type=NavFix)
    np.testing.assert_allclose(fixes["lat"], [0.1, 0.2, np.nan])
    assert not fixes.losses
    assert fixes.units["lat"] == "rad"


def test_parquet_columns_that_share_a_name_are_both_read(tmp_path: Path):
    table = pa.table(
        [[0, 1], [1.0, 2.0], [3.0, 4.0], ["a", "b"], [5, 6]], names=["t", "v", "v", "v (2)", "v"]
    )
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "recording.yaml").write_text(
        "streams: [{name: it, file: a.parquet, time: {column: t, unit: s}}]\n"
    )
    stream = transect.open(tmp_path)["it"]
    assert {name: list(stream[name]) for name in stream.columns} == {
        "v": [1.0, 2.0], "v (3)": [3.0, 4.0], "v (2)": ["a", "b"], "v (4)": [5, 6],
    }  # fmt: skip


@pytest.mark.parametrize("encoding", ["jsonschema", "ros2msg", "protobuf"])
def test_a_protobuf_message_whose_schema_is_damaged_is_lost_alone(tmp_path: Path, encoding: str):
    with (tmp_path / "a.mcap").open("wb") as file:
        writer = mcap.writer.Writer(file)
        writer.start()
        for topic, name in (
            ("log", "foxglove.Log"),
            ("scan", "foxglove.LaserScan"),
            ("other", "robot.Other"),
        ):
            schema = writer.register_schema(name, encoding, b"\x0a\x05\xff\xfe\xe4\xb8\xad")
            channel = writer.register_channel(topic, "protobuf", schema)
            writer.add_message(channel, 1, b"\x08\x01", 1)
        schema = writer.register_schema("wheel", "jsonschema", b"{}")
        writer.add_message(writer.register_channel("wheel", "json", schema), 1, b'{"speed": 1.5}', 1)
        writer.finish()
    recording = transect.open(tmp_path / "a.mcap")
    look_at_everything(recording)
    assert recording["wheel"]["speed"].tolist() == [1.5]
    if encoding == "protobuf":
        assert {loss.reason.partition(" (")[0] for loss in recording.losses if loss.count}


def test_links_in_a_circle_and_pipes_leave_the_rest_of_a_recording(tmp_path: Path):
    lines = "1 0 0 0 0 0 0 1\n2 1 0 0 0 0 0 1\n"
    day = tmp_path / "day"
    (day / "sub").mkdir(parents=True)
    (day / "groundtruth.txt").write_text(lines)
    (day / "loop.txt").symlink_to("loop.txt")
    (day / "sub" / "there").symlink_to("back")
    (day / "sub" / "back").symlink_to("there")
    (day / "up").symlink_to("..")
    os.mkfifo(day / "pipe.log")
    recording = transect.open(day, format="tum")
    assert len(recording.streams[0]) == 2
    assert sorted(loss.file for loss in recording.losses) == ["loop.txt", "sub/back", "sub/there"]
    assert "symbolic links" in recording.losses[0].reason
    done = commands.transect("info", day)
    assert done.returncode == 3
    assert "loop.txt" in done.stdout + done.stderr
    for path in ("loop.txt", "pipe.log", "sub/there"):
        done = commands.transect("info", day / path)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Let this process write 16 kB into a file, as if the disk were full then."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    "format", ["rosbag", "mcap", "foxglove", "parquet", "csv", "cdff_msgpack", "pocolog"]
)
def test_a_full_disk_is_said_and_nothing_half_written_stays(tmp_path: Path, format: str, full_disk: None):
    t_ns = every_type.START_NS + np.arange(4000) * 10**7
    noise = np.random.default_rng(1).normal(size=(9, 4000))
    names = ("x", "y", "z", "qx", "qy", "qz", "qw", "vx", "vy")
    poses = stream_of_values("Pose", t_ns, dict(zip(names, noise, strict=True)), type=Pose)
    with pytest.raises((TransectError, OSError)) as caught:
        formats.write(Recording("day", (poses,)), tmp_path / "out", format)
    assert isinstance(caught.value, OSError) or "free some space" in caught.value.hint
    assert list(tmp_path.iterdir()) == []
