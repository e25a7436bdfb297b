"""Hashes of the content of a recording: the tables of its streams, and the calibration of the robot.

In contrast to file hashes, these also identify recordings that were joined or changed in memory.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from . import arrow

if TYPE_CHECKING:
    from .recording import Recording
    from .stream import Stream

RECTIFICATION = "rectification"
"""Source of frames that nodes derive from the cameras and add to a recording's tree; they are not hashed."""


def hash_stream(stream: Stream, block_rows: int = 1 << 16) -> str:
    """Return the sha256 over all columns of a stream and its attributes."""
    digest = hashlib.sha256()
    attributes = (stream.type.__name__, stream.clock, stream.role, stream.tag, stream.frame, stream.child)
    _feed(digest, (*attributes, stream.camera, stream.seams, stream.table.num_rows))
    for name, kind in zip(stream.table.schema.names, stream.table.schema.types, strict=True):
        _feed(digest, (name, str(kind)))
        for start in range(0, stream.table.num_rows, block_rows):
            for chunk in stream.table.column(name).slice(start, block_rows).chunks:
                _feed_chunk(digest, chunk)
    return digest.hexdigest()


def hash_calibration(recording: Recording) -> str:
    """Return the sha256 over the cameras, static frames and robot parameters of a recording."""
    digest = hashlib.sha256()
    static = [e for e in recording.frames.edges if not e.moving and e.source != RECTIFICATION]
    _feed(digest, sorted(((e.parent, e.child, e.matrix) for e in static), key=lambda edge: edge[:2]))
    _feed(digest, recording.cameras)
    robot = recording.robot
    if robot is not None:
        _feed(digest, (robot.name, robot.constants, robot.body, robot.z_down))
    return digest.hexdigest()


def _feed_chunk(digest: Any, chunk: pa.Array) -> None:
    """Add the values of an array, independent of their memory layout."""
    kind = chunk.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        if not pa.types.is_fixed_size_list(kind):
            _feed_chunk(digest, chunk.value_lengths())
        _feed_chunk(digest, chunk.flatten())
    elif arrow.holds_numbers(kind):
        if chunk.null_count:
            _feed_chunk(digest, chunk.is_null())
            chunk = chunk.drop_null()
        digest.update(np.ascontiguousarray(arrow.numbers(pa.table({"": chunk}), "")).data)
    else:
        digest.update(repr(chunk.to_pylist()).encode("utf-8", "surrogatepass"))


def _feed(digest: Any, value: Any) -> None:
    """Add a value and its type: arrays by their bytes, dataclasses and mappings by their members."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _feed(digest, {field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            digest.update(repr(key).encode())  # pyright: ignore[reportUnknownArgumentType]
            _feed(digest, value[key])
    elif isinstance(value, list | tuple):
        digest.update(f"{len(value)}:".encode())  # pyright: ignore[reportUnknownArgumentType]
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            _feed(digest, each)
    else:
        digest.update(f"{type(value).__name__}:{value!r};".encode("utf-8", "surrogatepass"))
