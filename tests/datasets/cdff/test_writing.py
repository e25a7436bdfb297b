"""CDFF MessagePack logs written single, chunked, flattened and compressed: each reads back the same.

What CDFF-Dev's users see of a file is what `msgpack` makes of it, so the structure is asserted with that.
"""

from __future__ import annotations

import dataclasses
import itertools
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import transect
from transect.cli.export import command as export
from transect.datasets.cdff import msgpack as cdff_msgpack
from transect.datasets.cdff.msgpack import writing
from transect.datasets.cdff.msgpack.writing import flatten_sample, iterate_chunks
from transect.errors import TransectError, UnsupportedError, UsageError
from transect.formats import write
from transect.recording import Recording, Stream, stream_of_values
from transect.types import Image, Imu, JointState, PointCloud, Pose, Record

START_US = 1_530_195_435_193_075
"""Microseconds, the first time in a real log of CDFF (`spec/cdff.md` 1.8)."""
KINDS: list[dict[str, Any]] = [
    {}, {"chunk": 5}, {"flatten": True}, {"compress": True},
    {"chunk": 5, "flatten": True}, {"chunk": 7, "flatten": True, "compress": True},
]  # fmt: skip


def times(n: int, step_us: int = 10_000, first_us: int = START_US) -> Any:
    return (np.arange(n, dtype=np.int64) * step_us + first_us) * 1000


def small() -> Recording:
    rng = np.random.default_rng(1)
    imu = {f"{k}_{a}": rng.normal(size=20) for k in ("acc", "gyro", "mag_raw") for a in "xyz"}
    q = np.tile([0.0, 0.0, 0.6, 0.8], (4, 1)).T
    pose = dict(zip(("x", "y", "z", "qx", "qy", "qz", "qw"), [*rng.normal(size=(3, 4)), *q], strict=True))
    joints = {n: rng.normal(size=(6, 2)) for n in ("position", "velocity", "effort", "raw", "acceleration")}
    battery = {"voltage": rng.normal(size=5), "note": ["a", "", "ü", "d", "e"], "state": np.arange(5)}
    t = times(20)
    return Recording(
        "small",
        (
            stream_of_values("/imu.data", t, imu, type=Imu, log_ns=t + 5000),
            stream_of_values("/slam.pose", times(4, 40_000), pose, type=Pose),
            stream_of_values("/arm.joints", times(6, 30_000), joints, type=JointState),
            stream_of_values("/power.battery", times(5, 35_000), battery, type=Record),
            *payloads(times(3, 60_000)),
        ),
    )


def payloads(t_ns: Any) -> list[Stream]:
    rng = np.random.default_rng(2)
    pixels = rng.integers(0, 256, (3, 4, 5), dtype=np.uint8)
    points = rng.normal(size=(3, 6, 3))

    def at(row: Any) -> int:
        return int(np.searchsorted(t_ns, row["t_ns"]))

    def image(row: Any) -> Image:
        return Image(pixels[at(row)], "gray", t_ns=row["t_ns"], frame="cam")

    def cloud(row: Any) -> PointCloud:
        return PointCloud(points[at(row)], {"intensity": points[at(row), :, 0]}, t_ns=row["t_ns"])

    return [
        stream_of_values("/cam.image", t_ns, {}, type=Image).replace(loader=image, frame="cam"),
        stream_of_values("/lidar.cloud", t_ns, {}, type=PointCloud).replace(loader=cloud, frame="lidar"),
    ]


def assert_same(expected: Recording, found: Recording) -> None:
    assert not found.losses
    assert [s.name for s in found] == [s.name for s in expected]
    for one, other in zip(expected, found, strict=True):
        assert (other.type, other.t_ns.tolist()) == (one.type, one.t_ns.tolist())
        for name in one.columns:
            texts = [repr(s.table.column(name).to_pylist()) for s in (one, other)]
            assert texts[0] == texts[1], name
        if one.log_ns is not None:
            assert other.log_ns is not None
            assert other.log_ns.tolist() == one.log_ns.tolist()
        for a, b in zip(one, other, strict=True) if one.loader else ():
            for part in ("data", "points"):
                np.testing.assert_array_equal(getattr(a.value, part, 0), getattr(b.value, part, 0))


def unpacked(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return msgpack.unpackb(zlib.decompress(data) if path.suffix == ".zz" else data)


@pytest.mark.parametrize("options", KINDS)
def test_every_kind_reads_back_the_same(tmp_path: Path, options: dict[str, Any]) -> None:
    recording = small()
    assert write(recording, tmp_path / "logs" / "log.msg", "cdff_msgpack", **options) == ()
    assert_same(recording, transect.open(tmp_path / "logs"))


@pytest.mark.parametrize("options", KINDS)
def test_a_batch_of_any_size_gives_the_same_bytes(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(small(), tmp_path / "a" / "log.msg", "cdff_msgpack", **options)
    monkeypatch.setattr(writing, "BUFFERS", dataclasses.replace(writing.BUFFERS, rows=3, samples=2))
    write(small(), tmp_path / "b" / "log.msg", "cdff_msgpack", **options)
    files = sorted((tmp_path / "a").iterdir())
    assert [f.read_bytes() for f in files] == [(tmp_path / "b" / f.name).read_bytes() for f in files]


def test_every_file_of_a_chunked_log_has_all_streams_and_the_chunk_size(tmp_path: Path) -> None:
    recording = small()
    write(recording, tmp_path / "run.msg", "cdff_msgpack", chunk=10)
    files = sorted(tmp_path.iterdir())
    assert [f.name for f in files] == [f"run_{i:09d}.msg" for i in range(5)]  # 41 samples
    logs = [unpacked(f) for f in files]
    ports = [key for s in recording for key in (s.name, f"{s.name}.meta")]
    assert all(list(log) == ports for log in logs)
    assert [sum(len(log[s.name]) for s in recording) for log in logs] == [10, 10, 10, 10, 1]
    for log in logs:
        for s in recording:
            assert len(log[f"{s.name}.meta"]["timestamps"]) == len(log[s.name])
    imu = [sample for log in logs for sample in log["/imu.data"]]
    assert [s["ref_time"]["microseconds"] for s in imu] == [START_US + 10_000 * i for i in range(20)]


def test_chunks_follow_one_another_in_time(tmp_path: Path) -> None:
    write(small(), tmp_path / "run.msg", "cdff_msgpack", chunk=10)
    spans: list[list[int]] = []
    for file in sorted(tmp_path.iterdir()):
        stamps = [t - 5 if "imu" in k else t for k, v in unpacked(file).items() if k.endswith(".meta")
                  for t in v["timestamps"]]  # fmt: skip
        spans.append([min(stamps), max(stamps)])
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


def test_a_chunked_log_without_a_suffix_is_a_folder(tmp_path: Path) -> None:
    write(small(), tmp_path / "run", "cdff_msgpack", chunk=30)
    assert sorted(f.name for f in (tmp_path / "run").iterdir()) == ["run_000000000.msg", "run_000000001.msg"]
    assert_same(small(), transect.open(tmp_path / "run"))


def test_a_flattened_log_has_a_list_per_field(tmp_path: Path) -> None:
    write(small(), tmp_path / "log", "cdff_msgpack", flatten=True)
    log = unpacked(tmp_path / "log.msg")
    joints = small()["/arm.joints"]
    assert [key for key in log if key.startswith("/arm.joints")] == [
        "/arm.joints/timestamp/microseconds",
        "/arm.joints/names",
        "/arm.joints/elements/position",
        "/arm.joints/elements/speed",
        "/arm.joints/elements/effort",
        "/arm.joints/elements/raw",
        "/arm.joints/elements/acceleration",
        "/arm.joints.meta",
    ]
    assert log["/arm.joints/elements/position"] == joints["position"].tolist()
    assert log["/arm.joints/timestamp/microseconds"] == [START_US + 30_000 * i for i in range(6)]
    assert log["/arm.joints.meta"] == {
        "type": "Joints",
        "timestamps": [START_US + 30_000 * i for i in range(6)],
    }
    assert log["/cam.image/data/data"] == [s.value.data.reshape(-1).tolist() for s in small()["/cam.image"]]
    assert all(len(v) == 20 for k, v in log.items() if k.startswith("/imu.data/"))


def test_a_compressed_log_is_the_plain_one_through_zlib(tmp_path: Path) -> None:
    write(small(), tmp_path / "log", "cdff_msgpack")
    write(small(), tmp_path / "packed", "cdff_msgpack", compress=True)
    write(small(), tmp_path / "named.msg.zz", "cdff_msgpack")
    plain = (tmp_path / "log.msg").read_bytes()
    assert zlib.decompress((tmp_path / "packed.msg.zz").read_bytes()) == plain
    assert zlib.decompress((tmp_path / "named.msg.zz").read_bytes()) == plain
    assert len((tmp_path / "packed.msg.zz").read_bytes()) < len(plain)


def test_lists_that_are_empty_in_some_samples_are_flattened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "BUFFERS", dataclasses.replace(writing.BUFFERS, samples=2))
    lengths = [0, 0, 0, 2, 0, 1]
    columns = {n: [np.arange(float(k)) for k in lengths] for n in ("position", "velocity")}
    recording = Recording("r", (stream_of_values("/a.j", times(6), columns, type=JointState),))
    write(recording, tmp_path / "log.msg", "cdff_msgpack", flatten=True)
    log = unpacked(tmp_path / "log.msg")
    assert log["/a.j/elements/position"] == [[], [], [], [0.0, 1.0], [], [0.0]]
    assert "/a.j/elements" not in log
    found = transect.open(tmp_path / "log.msg")["/a.j"]
    assert found.table.column("velocity").to_pylist() == log["/a.j/elements/speed"]


def test_a_stream_without_samples_is_written_in_every_kind(tmp_path: Path) -> None:
    empty = stream_of_values("/b.p", np.zeros(0, np.int64), {"x": np.zeros(0)}, type=Record)
    recording = Recording("r", (stream_of_values("/a.v", times(3), {"x": np.arange(3.0)}), empty))
    for number, options in enumerate(KINDS):
        write(recording, tmp_path / f"{number}" / "log.msg", "cdff_msgpack", **options)
        found = transect.open(tmp_path / f"{number}")
        assert not found.losses
        assert found["/a.v"]["x"].tolist() == [0.0, 1.0, 2.0]
        assert len(found["/b.p"]) == 0


def test_fields_that_could_be_taken_for_ports_are_not_flattened(tmp_path: Path) -> None:
    slashed = stream_of_values("/a.v", times(2), {"x/y": np.arange(2.0)})
    port = stream_of_values("/b.v/x", times(2), {"q": np.arange(2.0)})
    above = stream_of_values("/b.v", times(2), {"x": np.arange(2.0)})
    recording = Recording("r", (slashed, port, above))
    said = write(recording, tmp_path / "log.msg", "cdff_msgpack", flatten=True)
    assert [s.partition(":")[0] for s in said] == ["/a.v", "/b.v"]
    assert_same(recording, transect.open(tmp_path / "log.msg"))


def test_a_sample_is_taken_apart_by_field() -> None:
    sample = {"t": {"us": 1}, "l": [1, 2], "m": [{"p": 1, "q": {"r": 2}}, {"p": 3, "q": {"r": 4}}], "e": {}}
    assert flatten_sample(sample) == {"/t/us": 1, "/l": [1, 2], "/m/p": [1, 3], "/m/q/r": [2, 4]}
    assert flatten_sample(5) == {"": 5}


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=4),
    st.integers(1, 9),
)
def test_chunks_hold_every_sample_once_in_the_order_recorded(all_times: list[list[int]], size: int) -> None:
    streams = [stream_of_values(f"s{i}", np.array(t, np.int64), {}) for i, t in enumerate(all_times)]
    parts = list(iterate_chunks(streams, size))
    total = sum(map(len, all_times))
    counts = [sum(len(s) for s in part) for part in parts]
    assert counts == ([size] * (total // size) + [total % size] * bool(total % size) or [0])
    for i, expected in enumerate(all_times):
        assert [t for part in parts for t in part[i].t_ns.tolist()] == expected


def test_memory_does_not_grow_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BUFFERS", dataclasses.replace(writing.BUFFERS, rows=100, samples=100))
    for name, options in (("plain", {}), ("flat", {"flatten": True})):
        peaks: list[int] = []
        for n in (1_000, 8_000):
            columns = {f"{k}_{a}": np.zeros(n) for k in ("acc", "gyro") for a in "xyz"}
            recording = Recording("r", (stream_of_values("/i.d", times(n), columns, type=Imu),))
            tracemalloc.start()
            cdff_msgpack.write(recording, tmp_path / f"{name}{n}.msg", **options)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[1] < 2 * peaks[0], name


DEFINITIONS = """Base DEFINITIONS AUTOMATIC TAGS ::= BEGIN
Vector3d ::= SEQUENCE (SIZE(3)) OF REAL
Quaterniond ::= SEQUENCE (SIZE(4)) OF REAL
Pose ::= SEQUENCE { pos Vector3d, orient Quaterniond }
END"""


def test_poses_become_bit_streams_where_their_definition_is_given(tmp_path: Path) -> None:
    asn1tools = pytest.importorskip("asn1tools")
    (tmp_path / "base.asn").write_text(DEFINITIONS)
    recording = small().select("/slam.pose", "/imu.data")
    write(recording, tmp_path / "log.msg", "cdff_msgpack", bitstream=tmp_path / "base.asn")
    log = unpacked(tmp_path / "log.msg")
    first = log["/slam.pose"][0]
    assert log["/slam.pose.meta"]["type"] == "asn1_bitstream"
    assert (first["serialization_method"], first["type"]) == (0, "asn1SccPose")
    decoded = asn1tools.compile_string(DEFINITIONS, "uper").decode("Pose", bytes(first["data"]))
    assert decoded["pos"] == recording["/slam.pose"].array("x", "y", "z")[0].tolist()
    assert_same(recording, transect.open(tmp_path / "log.msg", definitions=tmp_path / "base.asn"))


def test_definitions_without_a_pose_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("asn1tools")
    (tmp_path / "base.asn").write_text("Base DEFINITIONS AUTOMATIC TAGS ::= BEGIN A ::= BOOLEAN END")
    with pytest.raises(UnsupportedError, match="no type Pose"):
        write(small(), tmp_path / "log.msg", "cdff_msgpack", bitstream=tmp_path / "base.asn")
    assert [p.name for p in tmp_path.iterdir()] == ["base.asn"]


@pytest.mark.parametrize("chunk", [-1, "many"])
def test_a_chunk_is_a_number_of_samples(tmp_path: Path, chunk: Any) -> None:
    with pytest.raises(UsageError, match=f"chunk={chunk}"):
        write(small(), tmp_path / "log.msg", "cdff_msgpack", chunk=chunk)


def test_an_option_that_the_format_does_not_have_suggests_those_it_has(tmp_path: Path) -> None:
    with pytest.raises(TransectError, match="no option for writing 'chunks'") as caught:
        write(small(), tmp_path / "log.msg", "cdff_msgpack", chunks=5)
    assert caught.value.hint == "did you mean 'chunk'?"
    with pytest.raises(TransectError, match="tum has no option"):
        write(small(), tmp_path / "log.tum", "tum", chunk=5)


def test_files_that_are_there_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "log_000000001.msg").write_bytes(b"mine")
    with pytest.raises(UsageError, match="exists already"):
        write(small(), tmp_path / "log.msg", "cdff_msgpack", chunk=5)
    assert [p.name for p in tmp_path.iterdir()] == ["log_000000001.msg"]
    assert (tmp_path / "log_000000001.msg").read_bytes() == b"mine"


def test_a_log_larger_than_is_read_again_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = dataclasses.replace(writing.LIMITS, unpacked_bytes=100, samples=10)
    monkeypatch.setattr(writing, "LIMITS", limits)
    said = write(small(), tmp_path / "log", "cdff_msgpack", compress=True)
    assert "log.msg.zz unpacks to" in said[0]
    assert said[1].startswith("/imu.data: only 10 samples")


def test_export_passes_options_to_the_writer(tmp_path: Path) -> None:
    write(small(), tmp_path / "log.msg", "cdff_msgpack")
    asked = [str(tmp_path / "log.msg"), "--format", "cdff_msgpack", "-o", str(tmp_path / "out")]
    asked += ["--write-option", "chunk=20", "--write-option", "compress=true"]
    result = CliRunner().invoke(export, asked)
    assert result.exit_code == 0, result.output
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        f"out_{i:09d}.msg.zz" for i in range(3)
    ]  # fmt: skip
    assert_same(small(), transect.open(tmp_path / "out"))
