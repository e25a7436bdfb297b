"""Ground truth of a recording as streams, read on access, and its writing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from transect.base import files
from transect.base.clocks import Clock
from transect.errors import ParseError, TransectError
from transect.recording import Loss, Parsed, Recording, Source, Stream, arrow, cache, parquet
from transect.recording.arrow import PAYLOAD, T_NS
from transect.recording.source import Buffer
from transect.types import GridMap, Pose, Record

from ..tum import frames_of, parse_poses
from ..tum import write as write_tum
from . import FOLDER, MAP, TABLE, TRAJECTORY

WORLD, BODY = "world", "body"
SOURCE = "truth_source"


def attach(recording: Recording, truth: Source) -> Recording:
    """Return a recording with the streams of its ground truth, read on access."""
    clock = _clock(recording)
    here = [name for name in truth.names if "/" not in name]
    streams = [_trajectory(truth, name, clock) for name in here if name.endswith(TRAJECTORY)]
    streams += [_table(truth, name, clock) for name in here if name.endswith(TABLE)]
    streams += [_map(truth, name) for name in here if name.endswith(MAP)]
    new = {s.name: s for s in streams if s.name not in recording}
    return recording.replace(streams=(*recording.streams, *new.values()))


def _clock(recording: Recording) -> Clock:
    """Return the clock of most streams, which is that of the ground truth."""
    used: Counter[Clock] = Counter(stream.clock for stream in recording if stream.clock != "index")
    (clock, _), *_ = used.most_common(1) or [("utc", 0)]
    return clock


def _stream(truth: Source, file: str, kind: type, source: Any, **attributes: Any) -> Stream:
    name = f"{FOLDER}/{file.rpartition('.')[0]}"
    meta = {SOURCE: (truth, file), **attributes.pop("meta", {})}
    return Stream(name, kind, source, role="truth", meta=meta, **attributes)


def _trajectory(truth: Source, file: str, clock: Clock) -> Stream:
    world, child = _frames(truth, file)
    load = partial(cache.parse_pieces, truth, file, "tum/2", partial(parse_poses, file=f"{FOLDER}/{file}"))
    return _stream(truth, file, Pose, load, clock=clock, frame=world, child=child)


def _frames(truth: Source, trajectory: str) -> tuple[str, str]:
    """Return the names of world and body in a trajectory."""
    head = truth.head(trajectory, 1024) if trajectory in truth else b""
    return frames_of(head, WORLD, BODY)


def _table(truth: Source, file: str, clock: Clock) -> Stream:
    def load() -> Parsed:
        truth.record_read(file)
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
    from ..geotiff import decode_geotiff
    from ..shared.file_groups import file_table

    def load(row: Mapping[str, Any]) -> GridMap:
        truth.record_read(file)
        return decode_geotiff(truth.buffer(file), file, t_ns=row[T_NS])

    table = file_table(np.zeros(1, np.int64), [f"{FOLDER}/{file}"])
    world, _ = _frames(truth, f"trajectory{TRAJECTORY}")
    return _stream(
        truth, file, GridMap, table, clock="index", frame=world, loader=load, meta={"timeless": True}
    )


def is_attached(stream: Stream) -> bool:
    """Return whether a stream is of a folder `truth/`, and goes back into one."""
    return stream.role == "truth" and stream.name.startswith(f"{FOLDER}/")


def without(recording: Recording) -> Recording:
    """Return a recording as its format writes it; one of truth alone stays as it is."""
    own = tuple(stream for stream in recording if not is_attached(stream))
    return recording.replace(streams=own) if own else recording


def write_beside(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write the truth of a recording that was written to `path`; return what could not be carried.

    Parameters
    ----------
    recording : Recording
        As it was before `without`.
    path : Path
        What the format wrote: a folder gets a `truth/`, a single file has no place for one.
    """
    streams = [stream for stream in recording if is_attached(stream)]
    if not streams or len(streams) == len(recording):
        return ()
    if not path.is_dir():
        listed = ", ".join(stream.name for stream in streams)
        return (f"{listed}: {path.name} is a single file and gets no folder {FOLDER}/",)
    notes = [sentence for stream in streams for sentence in _write(stream, path)]
    sources = {id(kept[0]): kept[0] for s in streams if (kept := s.meta.get(SOURCE))}
    for source in sources.values():
        _copy_others(source, path / FOLDER)
    return tuple(notes)


def _write(stream: Stream, folder: Path) -> Iterator[str]:
    """Write one stream: the original file if it is unchanged, else a new one."""
    kept: tuple[Source, str] | None = stream.meta.get(SOURCE)
    suffix = {Pose: TRAJECTORY, GridMap: MAP}.get(stream.type, TABLE)
    file = folder / f"{files.file_path(stream.name)}{suffix}"
    if kept is not None and (callable(stream.source) or stream.type is GridMap):
        files.write_bytes(file, kept[0].read(kept[1]))
    elif stream.type is Pose:
        write_tum(Recording(stream.name, (stream,)), file)
    elif stream.type is Record:
        _write_table(stream, file)
    else:
        yield f"{stream.name} ({stream.type.__name__}) has no file in a folder {FOLDER}/"


def _write_table(stream: Stream, file: Path) -> None:
    table = stream.table
    if PAYLOAD in table.column_names:
        raise ParseError(f"{stream.name} is no table: it has payloads")
    with files.atomic_write(file) as out:
        parquet.write_table(table, out)


def _copy_others(source: Source, folder: Path) -> None:
    for name in source.names:
        if "/" in name or not name.endswith((TRAJECTORY, TABLE, MAP)):
            files.write_bytes(folder / name, source.read(name))
