"""Writer of the files of Table 7, with columns in the documented order and units.

Numbers are written with as many digits as an exact round trip needs, times with nine decimals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
from numpy.typing import NDArray

from transect.base import files
from transect.base.arrays import Floats
from transect.base.clocks import decimal_from_ns
from transect.base.files import refuse_existing
from transect.errors import ParseError, UsageError
from transect.formats.shared.interface import Note
from transect.formats.shared.payloads import good_payloads, payload_bytes, source_file
from transect.formats.shared.rows import from_si_exactly
from transect.geometry import rotations
from transect.recording import Recording, Sample, Stream, arrow
from transect.types import FIX_TYPES, Image, Pose, Record

from ..robot.arms import ATTITUDE
from .columns import BY_STEM, BY_STREAM, DEVICE, CsvColumn, CsvFile
from .files import FEEDS, PAYLOADS, VIDEOS, PayloadFiles
from .headers import unit_from_header

Columns = list[tuple[str, Any]]
"""Headers and values of columns."""
TIME_HEADER = "timestamp [unix seconds]"
_QUATERNION = ("qx", "qy", "qz", "qw")


def write_folder(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a recording to a new folder; return a sentence for each loss."""
    if path.suffix.lower() == ".zip":
        raise UsageError(
            f"AMEDS is written as a folder, not as {path.name}", hint="write a folder and zip it"
        )
    refuse_existing(path)
    path.mkdir(parents=True, exist_ok=True)
    feeds = {feed.stream for feed in FEEDS.values()}
    streams = [stream for stream in recording if stream.name not in feeds]
    losses = [sentence for stream in streams for sentence in _write_stream(recording, stream, path)]
    losses += [sentence for name in VIDEOS for sentence in _copy_video(recording, name, path)]
    if recording.robot is None or recording.robot.name != "interact":
        losses.append("frames and calibrations are not written: readers will use those of the rover Interact")
    return tuple(losses)


def _write_stream(recording: Recording, stream: Stream, path: Path) -> Iterator[str]:
    file = BY_STREAM.get(stream.name)
    payload = next((kind for kind in PAYLOADS if kind.stream == stream.name), None)
    if stream.clock != "utc":
        yield f"{stream.name} is on the {stream.clock} clock, and AMEDS has unix times only"
    elif file is not None and file.type is stream.type:
        yield from _write_table(stream, file, path / f"{file.stem}.csv")
    elif payload is not None and payload.type is stream.type:
        yield from _write_payloads(recording, stream, payload, path)
    elif stream.type is Record and stream.loader is None:
        yield from _write_record(stream, path)
    else:
        yield f"{stream.name} ({stream.type.__name__}) has no file in AMEDS"


def _write_table(stream: Stream, file: CsvFile, path: Path) -> Iterator[str]:
    columns = _list_documented(stream, file)
    taken = {*file.lists, *(column.name for column in file.columns)}
    taken.update(_QUATERNION if file.type is Pose else ())
    taken.update(name for name in file.unmeasured if _is_unmeasured(stream, name))
    yield from _add_extras(stream, columns, [name for name in stream.columns if name not in taken])
    first = stream.t_ns
    if stream.log_ns is not None:
        if DEVICE in file.by_name():
            first = stream.log_ns
        else:
            yield f"{stream.name}: the log times of samples are not written"
    _write_csv(path, [(TIME_HEADER, _decimals(first)), *columns])


def _list_documented(stream: Stream, file: CsvFile) -> Columns:
    """Return the documented columns in order; uncertain groups only if the stream has them."""
    values = {column.name: _flat(stream, file, column) for column in file.columns}
    groups = {"", *(column.group for column in file.columns if values[column.name] is not None)}
    missing = np.full(len(stream), np.nan)
    return [
        (c.header, _in_file_unit(missing if values[c.name] is None else values[c.name], c))
        for c in file.columns
        if c.group in groups
    ]


def _is_unmeasured(stream: Stream, name: str) -> bool:
    return name not in stream.table.column_names or bool(np.isnan(stream.column(name)).all())


def _flat(stream: Stream, file: CsvFile, column: CsvColumn) -> Any:
    """Return the values of a documented column in SI, None if the stream does not contain them."""
    name, known = column.name, stream.table.column_names
    if name == DEVICE:
        return _decimals(stream.column(DEVICE) if DEVICE in known else stream.t_ns)
    if name == "fix":
        return _fix_codes(stream) if "fix" in known else None
    for list_name, parts in file.lists.items():
        if name in parts:
            return stream.column(list_name)[:, parts.index(name)] if list_name in known else None
    if name in ("roll", "pitch", "yaw") and name not in known and set(_QUATERNION) <= set(known):
        angles = rotations.euler_from_quaternion(ATTITUDE, stream.array(*_QUATERNION))
        return angles[:, ("roll", "pitch", "yaw").index(name)]
    return np.asarray(stream.column(name), np.float64) if name in known else None


def _fix_codes(stream: Stream) -> Floats:
    values = stream.column("fix")
    if not isinstance(values, list):
        return np.asarray(values, np.float64)
    codes = {text: _fix_code(text) for text in set(values)}
    return np.array([codes[text] for text in values], np.float64)


def _fix_code(text: str | None) -> float:
    if text in FIX_TYPES:
        return float(FIX_TYPES.index(text))
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def _in_file_unit(values: Any, column: CsvColumn) -> Any:
    unit = unit_from_header(column.si, column.unit)
    if column.name == DEVICE or unit is None or unit.is_si:
        return values
    return from_si_exactly(values, unit)


def _add_extras(stream: Stream, columns: Columns, names: Sequence[str]) -> Iterator[str]:
    """Append undocumented columns with their names, which the reader keeps."""
    for name in names:
        values, unit = stream.table.column(name), stream.units[name]
        if pa.types.is_nested(values.type):
            yield f"{stream.name}: the list column {name} is not written"
            continue
        header = re.sub(r'[,"\s]+', " ", f"{name} [{unit}]" if unit else name)
        columns.append((header, values.cast(pa.uint8()) if pa.types.is_boolean(values.type) else values))


def _write_record(stream: Stream, path: Path) -> Iterator[str]:
    """Write a stream that is not in Table 7 as a separate CSV file, which the reader accepts."""
    name = PurePosixPath(f"{stream.name}.csv")
    if files.file_path(stream.name) != stream.name or name.stem in BY_STEM:
        yield f"{stream.name} cannot be the name of a file in AMEDS"
    elif not len(stream):
        yield f"{stream.name} has no samples, and readers would ignore a file without any"
    else:
        columns: Columns = [(TIME_HEADER, _decimals(stream.t_ns))]
        yield from _add_extras(stream, columns, stream.columns)
        if stream.log_ns is not None:
            yield f"{stream.name}: the log times of samples are not written"
        _write_csv(path / name, columns)


def _decimals(t_ns: NDArray[np.int64]) -> pa.Array:
    """Return nanoseconds as decimal seconds, exactly."""
    words = np.empty((len(t_ns), 2), np.int64)
    words[:, 0], words[:, 1] = t_ns, t_ns >> 63
    return pa.Array.from_buffers(pa.decimal128(19, 9), len(t_ns), [None, pa.py_buffer(words)])


def _write_csv(path: Path, columns: Columns) -> None:
    arrays = [arrow.column(values) for _, values in columns]
    table = pa.Table.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
    texts = any(pa.types.is_string(t) or pa.types.is_large_string(t) for t in table.schema.types)
    options = pv.WriteOptions(include_header=False, quoting_style="needed" if texts else "none")
    with files.atomic_write(path) as target:
        target.write((",".join(header for header, _ in columns) + "\n").encode())
        pv.write_csv(table, target, options)


def _write_payloads(recording: Recording, stream: Stream, kind: PayloadFiles, path: Path) -> Iterator[str]:
    own = [_own_name(recording, sample, kind) for sample in stream]
    by_time = (f"{kind.prefix}{decimal_from_ns(t)}{kind.suffixes[0]}" for t in stream.t_ns.tolist())
    names = [kept or name for kept, name in zip(own, by_time, strict=True)]

    def content(sample: Sample) -> bytes:
        return payload_bytes(recording, sample, PurePosixPath(names[sample.index]).suffix.lower())

    losses: list[str] = []
    written: set[str] = set()
    encoded = 0
    new = (sample for sample in stream if names[sample.index] not in written)
    for sample, data in good_payloads(new, content, losses):
        files.write_bytes(path / names[sample.index], data)
        written.add(names[sample.index])
        encoded += not own[sample.index]
    yield from losses
    if encoded and kind.type is Image:
        yield Note(f"{encoded} images of {stream.name} were encoded as JPEG, which is lossy")
    if duplicates := len(stream) - len(set(names)):
        yield f"{stream.name}: {duplicates} samples have the time of another one, by which AMEDS names files"


def _own_name(recording: Recording, sample: Sample, kind: PayloadFiles) -> str:
    """Return the name of a payload's file if it is a name of AMEDS, else ""."""
    name = (source_file(recording, sample) or "").rpartition("/")[2]
    return name if name.startswith(kind.prefix) and name.endswith(kind.suffixes) else ""


def _copy_video(recording: Recording, camera: str, path: Path) -> Iterator[str]:
    """Copy the film of a camera if the recording contains all of its images unchanged."""
    source, name = recording.source, VIDEOS[camera]
    found = [] if source is None else [n for n in source.glob(f"*{name}") if n.rpartition("/")[2] == name]
    if source is None or not found:
        return
    images = sum(n.rpartition("/")[2].startswith(f"{camera}_") for n in source.names)
    if camera not in recording or len(recording[camera]) != images:
        yield f"{name} is not written: it contains more images than the recording"
        return
    if not all(source_file(recording, sample) for sample in recording[camera]):
        yield f"{name} is not written: some of its images were changed"
        return
    try:
        film = source.read(found[0])
    except ParseError as error:
        yield f"{name} is not written: {error.what}"
        return
    files.write_bytes(path / name, film)
