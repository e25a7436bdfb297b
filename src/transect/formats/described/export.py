"""Writing of a recording as one table per stream, with a recording.yaml that describes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from transect import robots
from transect.base.files import file_paths, refuse_existing, write_bytes, write_text
from transect.recording import Recording, Sample, Stream, arrow
from transect.recording.arrow import LOG_NS, PAYLOAD, T_NS
from transect.types import GridMap, Image, PointCloud

from ..calibration.files import write_calibration
from ..calibration.model import CalibrationFile
from ..shared.interface import Note
from ..shared.payloads import frames_left_out, good_payloads, payload_file
from .model import FILE, TYPES

CALIBRATION = "calibration.yaml"
Encode = Callable[[pa.Table], tuple[bytes, dict[str, Any], list[str]]]
"""Converts a table to a file's content, its description, and sentences on what was left out."""


def export(recording: Recording, path: Path, suffix: str, encode: Encode) -> tuple[str, ...]:
    """Write every stream as a file of type `suffix`, payloads in a folder beside it, and a recording.yaml.

    Returns
    -------
    tuple of str
        What could not be written, a sentence each.
    """
    import yaml

    refuse_existing(path)
    notes: list[str] = []
    names = file_paths((s.name for s in recording.streams), taken=(Path(FILE).stem, Path(CALIBRATION).stem))
    named = zip(recording.streams, names, strict=True)
    streams = [
        _write_stream(recording, stream, path, f"{name}{suffix}", encode, notes) for stream, name in named
    ]
    content: dict[str, Any] = {"name": recording.name, "streams": streams}
    content |= _circumstances(recording, notes)
    if recording.cameras:
        write_bytes(path / CALIBRATION, write_calibration(CalibrationFile(recording.cameras), "ros"))
        content["calibration"] = CALIBRATION
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True)
    write_text(path / FILE, text)
    return tuple(notes)


def _write_stream(
    recording: Recording,
    stream: Stream,
    path: Path,
    file: str,
    encode: Encode,
    notes: list[str],
) -> dict[str, Any]:
    table = stream.table
    kind = stream.type.__name__
    if stream.type in (Image, PointCloud, GridMap):
        table = _with_payloads(recording, stream, path, file.removesuffix(Path(file).suffix), notes)
    elif PAYLOAD in table.column_names or kind not in TYPES:
        notes.append(
            f"{stream.name}: a {kind} has no file type here; its other columns are written as Record"
        )
        table, kind = table.drop_columns([c for c in (PAYLOAD,) if c in table.column_names]), "Record"
    data, reading, left_out = encode(table)
    notes += [f"{stream.name}: {sentence}" for sentence in left_out]
    write_bytes(path / file, data)
    described: dict[str, Any] = {"name": stream.name, "type": kind, "file": file}
    attributes = {key: getattr(stream, key) for key in ("frame", "child", "tag", "camera")}
    if stream.camera not in recording.cameras and attributes.pop("camera"):
        notes.append(Note(f"{stream.name}: the camera {stream.camera} is not known, and not named"))
    described |= {key: value for key, value in attributes.items() if value}
    described |= {"role": stream.role} if stream.role != "measurement" else {}
    time = reading.pop("time")
    return described | {"time": time | {"clock": stream.clock}} | reading


def _with_payloads(recording: Recording, stream: Stream, path: Path, name: str, notes: list[str]) -> pa.Table:
    """Write the payloads and return the table with their new names, without the rows of damaged ones."""
    files: list[str] = []
    keep = np.zeros(len(stream), dtype=bool)
    for sample, (suffix, data) in good_payloads(stream, partial(_payload, recording), notes):
        files.append(f"{name}/{sample.index:06d}{suffix}")
        write_bytes(path / files[-1], data)
        keep[sample.index] = True
    table = stream.take(keep).table
    others = [c for c in table.column_names if c != PAYLOAD]
    return table.select(others).append_column(PAYLOAD, arrow.strings(files))


def _payload(recording: Recording, sample: Sample) -> tuple[str, bytes]:
    """Return the suffix and the content of a payload's file."""
    if sample.stream.type is GridMap:
        from ..geotiff import encode_geotiff

        return ".tif", encode_geotiff(sample.value)
    return payload_file(recording, sample)


def _circumstances(recording: Recording, notes: list[str]) -> dict[str, Any]:
    """Return robot, conditions, static frames and notes as a description has them."""
    content: dict[str, Any] = {}
    known = {(e.parent, e.child) for e in recording.frames.edges}
    robot = recording.robot
    if robot and robot.name in robots.names() and {(e.parent, e.child) for e in robot.frames.edges} <= known:
        content["robot"] = robot.name
    elif robot:
        notes.append(Note(f"the robot {robot.name} is not written; its frames and cameras are"))
    conditions = json.loads(json.dumps(dict(recording.conditions), default=str))
    content |= {"conditions": conditions} if conditions else {}
    static = [e for e in recording.frames.edges if e.matrix is not None]
    if static:
        content["frames"] = [_frame(e.parent, e.child, e.matrix) for e in static]
    notes += frames_left_out([e for e in recording.frames.edges if e.moving], recording.streams)
    content |= {"notes": list(recording.all_notes)} if recording.all_notes else {}
    return content


def _frame(parent: str, child: str, matrix: Any) -> dict[str, Any]:
    T = np.asarray(matrix)
    return {"frame": parent, "child": child, "xyz": T[:3, 3].tolist(), "matrix": T[:3, :3].tolist()}


def times_of(table: pa.Table, titles: dict[str, str]) -> dict[str, Any]:
    """Return the times of a stream's table as a description has them."""
    times: dict[str, Any] = {"time": {"column": titles[T_NS], "unit": "ns"}}
    if LOG_NS in table.column_names:
        times["log_time"] = {"column": titles[LOG_NS], "unit": "ns"}
    return times
