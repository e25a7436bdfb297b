"""Reading of recordings that a recording.yaml describes."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from transect import robots
from transect.base.clocks import Clock
from transect.base.file_bytes import Content
from transect.errors import ParseError, did_you_mean
from transect.recording import (
    FrameTree,
    Loss,
    Parsed,
    Recording,
    Robot,
    Source,
    Stream,
    arrow,
    cache,
    source_of,
)
from transect.recording.arrow import PAYLOAD
from transect.types import CameraModel, GridMap, Image, PointCloud, Record

from ..calibration.files import read_calibration
from ..shared.clouds import cloud_loader, cloud_table
from ..shared.file_groups import file_table, sort_by_time
from ..shared.file_heads import suffix_of
from ..shared.images import image_loader
from . import NAMES
from .model import PAYLOADS, RecordingDescription, StreamSpec, parse, type_named
from .tables import read_parquet, read_text


def read(source: Source) -> Recording:
    """Read what the recording.yaml describes."""
    if len(source.names) == 1 and source.path.is_file():
        source = source_of(source.path.parent)
    name = next((n for n in NAMES if n in source), None)
    if name is None:
        raise ParseError(f"{source.path} has no {NAMES[0]}", where=str(source.path))
    source.record_read(name)
    return recording_of(source, parse(source.text(name), name), name)


def recording_of(source: Source, description: RecordingDescription, name: str) -> Recording:
    """Return the recording that a description makes of files; `name` is the description's, for errors."""
    robot = _robot(description, source, name)
    cameras, frames = _cameras_and_frames(description, source, robot, name)
    found = [_stream(spec, source, cameras, name) for spec in description.streams]
    return Recording(
        name=description.name or source.stem,
        streams=tuple(s for s in found if isinstance(s, Stream)),
        frames=frames,
        cameras=cameras,
        robot=robot,
        conditions=description.conditions,
        format="described",
        source=source,
        notes=tuple(description.notes),
        reader_losses=tuple(loss for loss in found if isinstance(loss, Loss)),
    )


def _robot(description: RecordingDescription, source: Source, where: str) -> Robot | None:
    if not description.robot:
        return None
    if description.robot in source:
        return robots.robot_from_text(source.text(description.robot), description.robot)
    if description.robot not in robots.names():
        known = [*robots.names(), *(n for n in source.names if n.endswith((".yaml", ".yml")))]
        raise ParseError(
            f"there is no robot {description.robot!r}",
            where=where,
            hint=did_you_mean(description.robot, known),
        )
    return robots.load(description.robot)


def _cameras_and_frames(
    description: RecordingDescription, source: Source, robot: Robot | None, where: str
) -> tuple[dict[str, CameraModel], FrameTree]:
    cameras: dict[str, CameraModel] = dict(robot.cameras) if robot else {}
    frames = robot.frames.copy() if robot else FrameTree()
    given = description.calibration
    for file in [given] if isinstance(given, str) and given else given:
        _refuse_missing(file, source, where)
        source.record_read(file)
        calibration = read_calibration(source.document(file), file)
        cameras |= calibration.cameras
        frames = frames.merge(calibration.tree(file))
    for key, camera in description.cameras.items():
        cameras[key] = robots.camera_from_description(key, camera, where)
    for edge in description.frames:
        frame, child, matrix = robots.edge_from_description(edge, where)
        frames.add_static(frame, child, matrix, source=where, replace=True)
    return cameras, frames


def _refuse_missing(file: str, source: Source, where: str) -> None:
    if file not in source:
        raise ParseError(f"there is no file {file!r}", where=where, hint=did_you_mean(file, source.names))


def _stream(
    spec: StreamSpec, source: Source, cameras: Mapping[str, CameraModel], where: str
) -> Stream | Loss:
    """Return a stream, or the loss of its missing files."""
    files = _files(spec, source)
    if not files:
        hint = f"; {did_you_mean(spec.file, source.names)}" if spec.file else ""
        return Loss(where, f"{spec.name}: there is no file {spec.file or spec.files!r}{hint}")
    if spec.camera and spec.camera not in cameras:
        raise ParseError(
            f"{spec.name}: there is no camera {spec.camera!r}",
            where=where,
            hint=did_you_mean(spec.camera, cameras),
        )
    kind = type_named(spec.type) or Record
    if kind.__name__ in PAYLOADS and PAYLOAD not in spec.columns:
        table, clock = _loose(source, files, kind)
    else:
        table, clock = partial(_table, source, spec, files, kind), spec.time.clock if spec.time else "index"
    return Stream(
        spec.name,
        kind,
        table,
        clock=clock,
        role=spec.role,
        tag=spec.tag,
        frame=spec.frame,
        child=spec.child,
        camera=spec.camera,
        loader=_loader(source, spec, kind, cameras.get(spec.camera)),
    )


def _files(spec: StreamSpec, source: Source) -> list[str]:
    """Return the files of a stream; `*` in a pattern stays inside a folder."""
    patterns = [spec.file] if spec.file else [spec.files] if isinstance(spec.files, str) else spec.files
    found: dict[str, None] = {}
    for pattern in patterns:
        if pattern in source:
            found[pattern] = None
            continue
        parts = PurePosixPath(pattern).parts
        found.update(
            (n, None) for n in source.names if _matches(PurePosixPath(n).parts, parts) and n not in NAMES
        )
    return list(found)


def _matches(name: Sequence[str], pattern: Sequence[str]) -> bool:
    return len(name) == len(pattern) and all(map(fnmatch.fnmatchcase, name, pattern))


def _loose(source: Source, files: Sequence[str], kind: type) -> tuple[Callable[[], Parsed], Clock]:
    """Return the table of images or clouds that are timed by their names."""
    ordered, t_ns, clock = sort_by_time(files)
    if kind is PointCloud:
        return partial(cloud_table, source, t_ns, ordered), clock
    return lambda: Parsed(file_table(list(t_ns), ordered)), clock


def _loader(
    source: Source, spec: StreamSpec, kind: type, camera: CameraModel | None
) -> Callable[[Mapping[str, Any]], Any] | None:
    if kind is Image:
        return image_loader(source, spec.frame, camera)
    if kind is PointCloud:
        return cloud_loader(source, spec.frame, partial=PAYLOAD not in spec.columns)
    if kind is GridMap:
        from ..geotiff import decode_geotiff

        return lambda row: decode_geotiff(source.buffer(row[PAYLOAD]), row[PAYLOAD], row["t_ns"])
    return None


def _table(source: Source, spec: StreamSpec, files: Sequence[str], kind: type) -> Parsed:
    """Read and concatenate the files of a stream."""
    digest = json.dumps(dataclasses.asdict(spec), sort_keys=True)
    parts = [
        cache.parse_pieces(source, file, f"described/4|{file}|{digest}", partial(_parse, spec, file))
        for file in files
    ]
    table = parts[0].table
    if len(parts) > 1:
        table = pa.concat_tables([part.table for part in parts], promote_options="permissive")
    losses = [loss for part in parts for loss in part.losses]
    if kind.__name__ in PAYLOADS:
        table, missing = _with_files(table, source, files[0])
        losses += missing
    return Parsed(table, tuple(losses))


def _parse(spec: StreamSpec, file: str, content: Content) -> Iterable[Parsed]:
    if suffix_of(file) == ".parquet" and len(content):
        return [read_parquet(bytes(content), spec, file)]
    return read_text(content, spec, file)


def _with_files(table: pa.Table, source: Source, file: str) -> tuple[pa.Table, list[Loss]]:
    """Leave out the rows whose image or cloud is not there."""
    if PAYLOAD not in table.column_names:  # an empty file, which is a loss already
        return table, []
    names: list[Any] = table.column(PAYLOAD).to_pylist()
    exists = np.array([isinstance(name, str) and name in source for name in names], dtype=bool)
    if exists.all():
        return table, []
    first = names[int(np.argmin(exists))]
    reason = "a row names no file" if first is None else f"the file {first} is not there"
    loss = Loss(file, reason, count=int((~exists).sum()))
    return table.filter(arrow.from_numpy(exists)), [loss]
