"""Writing the truth of a recording as a folder beside what its format wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from transect.base import files
from transect.errors import ParseError
from transect.recording import Recording, Source, Stream
from transect.recording.arrow import PAYLOAD
from transect.types import GridMap, Pose, Record

from ..tum.writing import write as write_tum
from . import FOLDER, MAP, TABLE, TRAJECTORY
from .reading import SOURCE


def is_attached(stream: Stream) -> bool:
    """Tell whether a stream is of a folder `truth/`, and goes back into one."""
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
    said = [sentence for stream in streams for sentence in _write(stream, path)]
    sources = {id(kept[0]): kept[0] for s in streams if (kept := s.meta.get(SOURCE))}
    for source in sources.values():
        _copy_others(source, path / FOLDER)
    return tuple(said)


def _write(stream: Stream, folder: Path) -> Iterator[str]:
    """Write one stream: the file as it was where nothing was cut or changed, else anew."""
    kept: tuple[Source, str] | None = stream.meta.get(SOURCE)
    suffix = {Pose: TRAJECTORY, GridMap: MAP}.get(stream.type, TABLE)
    file = folder / f"{stream.name}{suffix}"
    if kept is not None and (callable(stream.source) or stream.type is GridMap):
        files.write_bytes(file, kept[0].read(kept[1]))
    elif stream.type is Pose:
        write_tum(Recording(stream.name, (stream,)), file)
    elif stream.type is Record:
        _write_table(stream, file)
    else:
        yield f"{stream.name} ({stream.type.__name__}) has no file in a folder {FOLDER}/"


def _write_table(stream: Stream, file: Path) -> None:
    import pyarrow.parquet as pq

    table = stream.table
    if PAYLOAD in table.column_names:
        raise ParseError(f"{stream.name} is no table: it has payloads")
    with files.atomic_write(file) as out:
        pq.write_table(table, out)


def _copy_others(source: Source, folder: Path) -> None:
    for name in source.names:
        if "/" in name or not name.endswith((TRAJECTORY, TABLE, MAP)):
            files.write_bytes(folder / name, source.read(name))
