"""What tests of formats do with recordings: open, damage, look at everything, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import transect
from transect import formats
from transect.recording import Recording, Stream, source_of
from transect.types import Image, PointCloud, RadarSpectrum


def put(folder: Path, name: str, content: str | bytes) -> None:
    """Write a file into a folder, which is made if need be."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def opened(path: Path, format: str, **options: Any) -> Recording:
    return transect.open(path, format=format, **options)


def rewritten(recording: Recording, path: Path, format: str) -> Recording:
    """Write a recording to a file or a folder, and open what was written."""
    formats.write(recording, path, format)
    return transect.open(path, format=format)


def said_of(path: Path, format: str) -> formats.Match:
    """Return what a format says of a path."""
    return formats.load(format).recognises(source_of(path))


def losses(recording: Recording) -> list[tuple[str, int | None, int, str]]:
    """Return file, line, count and reason of each loss."""
    return [(loss.file, loss.line, loss.count, loss.reason) for loss in recording.losses]


def look_at_everything(recording: Recording) -> int:
    """Read every table and the first and last payload of each stream; return how many samples there are."""
    assert repr(recording)
    for stream in recording:
        for index in {0, len(stream) - 1} & set(range(len(stream))):
            assert stream[index].value is not None
    assert recording.frames is not None
    return sum(len(stream) for stream in recording) + 0 * len(recording.losses)


def damaged(content: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for at, count, piece in edits:
        content = content[:at] + piece + content[at + count :]
    return content


def assert_same(a: Recording, b: Recording, attitude: float = 0.0) -> None:
    """Hold two recordings against each other: streams, times, columns, payloads, cameras and frames.

    Quaternions may differ by `attitude`, for formats that write them as matrices.
    """
    assert [s.name for s in a] == [s.name for s in b]
    for one, other in zip(a, b, strict=True):
        assert_same_stream(one, other, attitude)
    assert a.cameras.keys() == b.cameras.keys()
    for name, camera in a.cameras.items():
        assert camera.same_as(b.cameras[name]), name
    edges = {(e.parent, e.child): e.matrix for e in a.frames.edges}
    found = {(e.parent, e.child): e.matrix for e in b.frames.edges}
    assert edges.keys() == found.keys()
    for key, matrix in edges.items():
        np.testing.assert_allclose(found[key], matrix, rtol=0, atol=1e-15)


def assert_same_stream(one: Stream, other: Stream, attitude: float = 0.0) -> None:
    for attribute in ("type", "clock", "role", "tag", "frame", "child", "camera", "columns", "units"):
        assert getattr(one, attribute) == getattr(other, attribute), (one.name, attribute)
    np.testing.assert_array_equal(one.t_ns, other.t_ns, err_msg=one.name)
    for column in one.columns:
        what = f"{one.name}: {column}"
        if column in ("qx", "qy", "qz", "qw"):
            np.testing.assert_allclose(other.column(column), one.column(column), 0, attitude, err_msg=what)
        else:
            assert _texts(one, column) == _texts(other, column), what
    if one.loader is not None:
        for index in range(len(one)):
            assert_same_payload(one[index].value, other[index].value)


def _texts(stream: Stream, column: str) -> list[str]:
    """Return a column, ragged or not, as text: `repr` tells any two floats apart, and NaN from none."""
    return [repr(value) for value in stream.table.column(column).to_pylist()]


def assert_same_payload(one: Any, other: Any) -> None:
    if isinstance(one, Image):
        np.testing.assert_array_equal(one.data, other.data)
        assert one.mode == other.mode
    elif isinstance(one, RadarSpectrum):
        np.testing.assert_array_equal(one.reflectivity, other.reflectivity)
        np.testing.assert_array_equal(one.angle, other.angle)
        assert (one.bin_width, one.range_offset) == (other.bin_width, other.range_offset)
    else:
        assert isinstance(one, PointCloud)
        np.testing.assert_array_equal(one.points, other.points)
        assert one.fields.keys() == other.fields.keys()
        for name, values in one.fields.items():
            np.testing.assert_array_equal(values, other.fields[name])
