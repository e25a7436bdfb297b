"""Real Rock and CDFF logs written as MessagePack logs of every kind; `msgpack` alone says what they hold."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import transect
from transect.formats import write
from transect.recording import Stream

LOGS = (
    "msgpack/xsens_imu_00.msg",
    "msgpack/dynamixel_2.msg",
    "msgpack/frames2.msg",
    "msgpack/asn1_bitstream.msg",
    "pocolog/joints.0.log",
    "pocolog/laser_scan.0.log",
    "pocolog/rigid_body_state.0.log",
    "pocolog/strings.0.log",
    "pocolog/vector_int.0.log",
    "pocolog/vector_string.0.log",
    "pocolog/depth_map.0.log",
    "pocolog/camera32bit.0.log",
)
KINDS: dict[str, dict[str, Any]] = {
    "single": {},
    "chunked": {"chunk": 40},
    "flattened": {"flatten": True},
    "compressed": {"compress": True},
}


def unpacked(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.iterdir())
    packed = [f.read_bytes() if f.suffix == ".msg" else zlib.decompress(f.read_bytes()) for f in files]
    return [msgpack.unpackb(data) for data in packed]


def carried(stream: Stream) -> list[str]:
    """Columns that a log keeps; of an image the others say where its bytes lie, or are nanoseconds."""
    if stream.loader is None:
        return [name for name in stream.columns if name != "logical_ns"]
    parts = ("width", "height", "intrinsic.", "extrinsic.", "metadata.")
    return [name for name in stream.columns if name.startswith(parts)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOGS)
def test_a_real_log_reads_back_the_same(real_data: Path, tmp_path: Path, name: str, kind: str) -> None:
    recording = transect.open(real_data / "rock_logs" / name)
    write(recording, tmp_path / "out" / "log.msg", "cdff_msgpack", **KINDS[kind])
    found = transect.open(tmp_path / "out")
    assert not found.losses
    for stream in recording:
        other = found[stream.name]
        assert other.t_ns.tolist() == (stream.t_ns // 1000 * 1000).tolist()
        for column in carried(stream):
            texts = [repr(s.table.column(column).to_pylist()) for s in (stream, other)]
            assert texts[0] == texts[1], column
        for a, b in zip(stream, other, strict=True) if stream.loader else ():
            np.testing.assert_array_equal(a.value.data, b.value.data)
            assert a.value.mode == b.value.mode


@pytest.mark.parametrize("name", ["xsens_imu_01.msg", "dynamixel_0.msg"])
def test_what_cdff_logged_is_written_with_its_own_fields_and_numbers(
    real_data: Path, tmp_path: Path, name: str
) -> None:
    path = real_data / "rock_logs" / "msgpack" / name
    original = msgpack.unpackb(path.read_bytes())
    (port,) = [key for key in original if not key.endswith(".meta")]
    write(transect.open(path, quaternion="xyzw"), tmp_path / "single" / "log.msg", "cdff_msgpack")
    (log,) = unpacked(tmp_path / "single")
    assert log.keys() == original.keys()
    assert log[f"{port}.meta"]["timestamps"] == original[f"{port}.meta"]["timestamps"]
    for mine, theirs in zip(log[port], original[port], strict=True):
        common = mine.keys() & theirs.keys()
        assert {"acc", "gyro", "ref_time"} <= common or {"pos", "orient", "cov_position"} <= common
        assert repr({key: mine[key] for key in sorted(common)}) == repr(
            {key: theirs[key] for key in sorted(common)}
        )


def test_chunks_and_fields_of_a_real_log_are_those_of_the_single_one(real_data: Path, tmp_path: Path) -> None:
    recording = transect.open(real_data / "rock_logs" / "msgpack" / "xsens_imu_02.msg")
    for kind, options in KINDS.items():
        write(recording, tmp_path / kind / "log.msg", "cdff_msgpack", **options)
    (single,), (flat,), (small,) = (unpacked(tmp_path / k) for k in ("single", "flattened", "compressed"))
    port = recording.streams[0].name
    chunks = unpacked(tmp_path / "chunked")
    assert [len(log[port]) for log in chunks] == [40, 40, 20]
    assert [sample for log in chunks for sample in log[port]] == single[port] == small[port]
    assert flat[f"{port}/acc"] == [sample["acc"] for sample in single[port]]
    assert flat[f"{port}/ref_time/microseconds"] == [s["ref_time"]["microseconds"] for s in single[port]]
