"""Streams of the truth beside a recording, none of which is read before it is asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from transect.base.clocks import Clock
from transect.errors import TransectError
from transect.recording import Loss, Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.arrow import T_NS
from transect.recording.source import Buffer
from transect.types import GridMap, Pose, Record

from ..tum.reading import parse_poses
from . import FOLDER, MAP, TABLE, TRAJECTORY

WORLD, BODY = "world", "body"
SOURCE = "truth_source"
_CHILD = re.compile(rb"^#.*\bchild (\S+)", re.MULTILINE)
_FRAME = re.compile(rb"^#.*\bframe ([^\s,]+)", re.MULTILINE)


def attached(recording: Recording, truth: Source) -> Recording:
    """Return a recording with the streams of its truth, none of which is read yet."""
    clock = _clock(recording)
    here = [name for name in truth.names if "/" not in name]
    streams = [_trajectory(truth, name, clock) for name in here if name.endswith(TRAJECTORY)]
    streams += [_table(truth, name, clock) for name in here if name.endswith(TABLE)]
    streams += [_map(truth, name) for name in here if name.endswith(MAP)]
    new = {s.name: s for s in streams if s.name not in recording}
    return recording.replace(streams=(*recording.streams, *new.values()))


def _clock(recording: Recording) -> Clock:
    """Return the clock of most streams: truth is told in the recording's own time."""
    used: Counter[Clock] = Counter(stream.clock for stream in recording if stream.clock != "index")
    (clock, _), *_ = used.most_common(1) or [("utc", 0)]
    return clock


def _stream(truth: Source, file: str, kind: type, source: Any, **attributes: Any) -> Stream:
    name = f"{FOLDER}/{file.rpartition('.')[0]}"
    meta = {SOURCE: (truth, file), **attributes.pop("meta", {})}
    return Stream(name, kind, source, role="truth", meta=meta, **attributes)


def _trajectory(truth: Source, file: str, clock: Clock) -> Stream:
    world, child = _name(truth, file, _FRAME, WORLD), _name(truth, file, _CHILD, BODY)
    load = partial(cache.parsed, truth, file, "tum/1", partial(parse_poses, file=f"{FOLDER}/{file}"))
    return _stream(truth, file, Pose, load, clock=clock, frame=world, child=child)


def _name(truth: Source, trajectory: str, name: re.Pattern[bytes], usual: str) -> str:
    """Return what the comments at the top of a trajectory call a frame."""
    found = name.search(truth.head(trajectory, 1024)) if trajectory in truth else None
    return found[1].decode("utf-8", "replace") if found else usual


def _table(truth: Source, file: str, clock: Clock) -> Stream:
    def load() -> Parsed:
        truth.touch(file)
        return _parse_table(truth.buffer(file), f"{FOLDER}/{file}")

    return _stream(truth, file, Record, load, clock=clock)


def _parse_table(buffer: Buffer, file: str) -> Parsed:
    from ..described.model import StreamSpec, Time
    from ..described.tables import read_parquet

    try:
        return read_parquet(buffer, StreamSpec(file, time=Time(column=T_NS, unit="ns")), file)
    except TransectError as error:
        return Parsed(arrow.empty(), (Loss(file, error.why or error.what),))


def _map(truth: Source, file: str) -> Stream:
    from .._images import file_table
    from ..geotiff.reading import decode_geotiff

    def load(row: Mapping[str, Any]) -> GridMap:
        truth.touch(file)
        return decode_geotiff(truth.buffer(file), file, t_ns=row[T_NS])

    table = file_table(np.zeros(1, np.int64), [f"{FOLDER}/{file}"])
    world = _name(truth, f"trajectory{TRAJECTORY}", _FRAME, WORLD)
    return _stream(
        truth, file, GridMap, table, clock="index", frame=world, loader=load, meta={"timeless": True}
    )
