"""Writing Rock logs (POCOSIM version 2)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from transect.base import files
from transect.errors import UnsupportedError, UsageError
from transect.formats.shared.payloads import loadable
from transect.recording import Recording, Stream
from transect.types import Image

from ..rock.columns import LOGICAL, VALUE
from ..rock.kinds import COVARIANCES
from ..rock.samples import PARTS, Sample, list_lost_content, sample_format, time_name
from . import MAGIC
from .marshalling import TypelibEncoder, make_layout
from .reading import BLOCK, FORMAT_VERSION, PROLOGUE, SAMPLE, BlockType, StreamType
from .typelib import STRING, Fields, TypeDefinitions, read_registry

_BLOCK_PADDING = 0xFF
_NUMBERS = {
    "double": "/double",
    "float": "/float",
    "bool": "/bool",
    **{f"{u}int{n}": f"/{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)},
}
_MODES = {"GRAY": "MODE_GRAYSCALE", "RGB": "MODE_RGB", "RGBA": "MODE_UNDEFINED", "UYVY": "MODE_UYVY"}
"""Rock's image modes; an undefined mode with four bytes per pixel is read as RGBA."""


@dataclass(frozen=True)
class WrittenStream:
    """A stream with its Rock type, the structs of that type, and its samples."""

    stream: Stream
    type_name: str
    structs: Mapping[str, Fields]
    samples: Callable[[], Iterator[Any]]


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write all streams as one log; a path without suffix gets `.0.log`.

    Real time is log time, logical time is sample time; both are microseconds.
    """
    path = path if path.suffix else path.with_name(f"{path.name}.0.log")
    files.refuse_existing(path, hint="choose a new file with -o")
    notes: list[str] = []
    streams = [loadable(stream, notes) for stream in recording.streams if sample_format(stream) is not None]
    chosen = [written for stream in streams if (written := _write(stream)) is not None]
    if not chosen:
        raise UsageError(f"{recording.name} has no stream that can be written")
    with files.atomic_write(path) as out:
        out.write(PROLOGUE.pack(MAGIC, FORMAT_VERSION, 0))
        for index, written in enumerate(chosen):
            _write_stream(out, index, written)
    return (
        *notes,
        *list_lost_content(recording, [w.stream for w in chosen], both_times=True),
        *_lacking(chosen),
    )


def _lacking(chosen: Sequence[WrittenStream]) -> Iterator[str]:
    """Yield fields of CDFF's types that Rock's types lack."""
    for written in chosen:
        stream = written.stream
        if stream.camera or any(name.partition(".")[0] in PARTS for name in stream.columns):
            yield f"{stream.name}: {', '.join(PARTS)} of CDFF are not part of Rock's type"
        if written.type_name.endswith("Pointcloud_m"):
            yield f"{stream.name}: a Rock cloud has no intensity"


def _write_stream(out: IO[bytes], index: int, written: WrittenStream) -> None:
    stream = written.stream
    xml = TypeDefinitions(written.structs).xml(written.type_name)
    metadata = f"rock_stream_type: port\nrock_cxx_type_name: {written.type_name}\n"
    declaration = bytes([StreamType.DATA])
    for part in (stream.name.encode(), written.type_name.encode(), xml, metadata.encode()):
        declaration += len(part).to_bytes(4, "little") + part
    out.write(BLOCK.pack(BlockType.STREAM, _BLOCK_PADDING, index, len(declaration)) + declaration)
    encoder = TypelibEncoder(make_layout(read_registry(xml).resolve(written.type_name)))
    logged = stream.t_ns if stream.log_ns is None else stream.log_ns
    given = stream[LOGICAL] if LOGICAL in stream.columns else stream.t_ns
    times_us = ((t_ns // 1000).tolist() for t_ns in (logged, given))
    for sample, real, logical in zip(written.samples(), *times_us, strict=True):
        data = encoder.encode(sample)
        header = _header(real, logical, len(data), stream.name)
        out.write(BLOCK.pack(BlockType.DATA, _BLOCK_PADDING, index, len(header) + len(data)) + header + data)


def _header(real: int, logical: int, size: int, name: str) -> bytes:
    try:
        return SAMPLE.pack(*divmod(real, 10**6), *divmod(logical, 10**6), size, 0)
    except struct.error as error:
        why = f"{real} and {logical} us are not both between 1970 and 2106"
        raise UnsupportedError(f"a time of {name} cannot be written to a Rock log", why=why) from error


def _write(stream: Stream) -> WrittenStream | None:
    form = sample_format(stream)
    if form is None or (stream.type is Image and not _is_plain(stream)):
        return None
    if form.type_name in _ROCK:
        type_name, convert = _ROCK[form.type_name]
        return WrittenStream(stream, type_name, {}, lambda: map(convert, form.samples(stream)))
    kinds = {name: _type_of(stream.table.column(name)) for name in stream.columns if name != LOGICAL}
    if stream.columns == (VALUE,):
        return WrittenStream(stream, kinds[VALUE], {}, lambda: form.samples(stream))
    fields = {time_name(stream): "/base/Time", **kinds}
    return WrittenStream(stream, form.type_name, {form.type_name: fields}, lambda: form.samples(stream))


def _is_plain(stream: Stream) -> bool:
    """Whether a stream's images are 8-bit or 16-bit in a mode of Rock."""
    if not len(stream):
        return True
    image: Image = stream[0].value
    return image.data.dtype.str[1:] in ("u1", "u2") and (
        image.mode.upper() in _MODES or "bayer" in image.mode
    )


def _type_of(column: pa.ChunkedArray) -> str:
    """Return the Rock type of a column; integers with missing values become doubles."""
    kind = column.type
    if column.null_count and not pa.types.is_floating(kind) and str(kind) in _NUMBERS:
        return "/double"
    return _type_name(kind)


def _type_name(kind: pa.DataType) -> str:
    if str(kind) in _NUMBERS:
        return _NUMBERS[str(kind)]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return STRING
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "/std/vector</uint8_t>"
    if pa.types.is_fixed_size_list(kind):
        return f"{_type_name(kind.value_type)}[{kind.list_size}]"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"/std/vector<{_type_name(kind.value_type)}>"
    raise UnsupportedError(f"a column of {kind} cannot be written to a Rock log")


def _wrap(sample: Sample, *names: str) -> Sample:
    """Wrap vectors and matrices as in Rock."""
    return {name: {"data": np.reshape(sample[name], -1)} for name in names}


def _pose(sample: Sample) -> Sample:
    *imaginary, real = sample["orient"]
    return {"position": {"data": sample["pos"]}, "orientation": {"im": imaginary, "re": real}}


def _imu(sample: Sample) -> Sample:
    return {"time": sample["ref_time"], **_wrap(sample, "acc", "gyro", "mag")}


def _state(sample: Sample) -> Sample:
    frames = {name: sample[name] for name in ("sourceFrame", "targetFrame")}
    others = _wrap(sample, "velocity", "angular_velocity", *COVARIANCES)
    return {"time": sample["timestamp"], **frames, **_pose(sample), **others}


def _frame(sample: Sample) -> Sample:
    data, metadata = sample["data"], sample["metadata"]
    mode = metadata["mode"].removeprefix("mode_")
    size = data["rowSize"] // max(data["cols"], 1)
    return {
        "time": metadata["timeStamp"],
        "received_time": metadata["receivedTime"],
        "image": data["data"],
        "attributes": [],
        "size": {"width": data["cols"], "height": data["rows"]},
        "data_depth": 8 * size // data["channels"],
        "pixel_size": size,
        "row_size": data["rowSize"],
        "frame_mode": _MODES.get(mode, f"MODE_{mode}"),
        "frame_status": metadata["status"].upper(),
    }


def _cloud(sample: Sample) -> Sample:
    data = sample["data"]
    points, colors = (np.asarray(data[name], dtype=np.float64) for name in ("points", "colors"))
    time = sample["metadata"]["timeStamp"]
    return {"time": time, "points": points.reshape(-1, 3), "colors": colors.reshape(-1, 4)}


_ROCK: dict[str, tuple[str, Callable[[Sample], Sample]]] = {
    "IMUSensors": ("/base/samples/IMUSensors_m", _imu),
    "Pose": ("/base/Pose_m", _pose),
    "RigidBodyState": ("/base/samples/RigidBodyState_m", _state),
    "Joints": ("/base/samples/Joints", lambda s: {**s, "time": s["timestamp"]}),
    "LaserScan": ("/base/samples/LaserScan", lambda s: {**s, "time": s["ref_time"]}),
    "Frame": ("/base/samples/frame/Frame", _frame),
    "Pointcloud": ("/base/samples/Pointcloud_m", _cloud),
}
"""Rock type by CDFF type, and the conversion of a sample."""
