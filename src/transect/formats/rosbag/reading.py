"""Reading of ROS bags in all containers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transect.base.file_bytes import Content
from transect.base.yaml_parts import parse
from transect.errors import ParseError
from transect.recording import Loss, Recording, Source

from ..shared.bags import MCAP_MAGIC
from ..shared.bags.bag_file import MAX_CHUNK_BYTES, BagFile, DamagedChunkError, unpack
from ..shared.bags.ros1 import Ros1File
from ..shared.bags.streams import recording_of
from . import METADATA, bag_names

MAX_UNPACKED_BYTES = 1 << 30
"""Compressed files are unpacked in memory up to this size, and up to 20 times their own."""
MAX_MISSING_LISTED = 100
"""Number of missing files that are listed individually."""


def read(source: Source) -> Recording:
    """Read a bag.

    A sample's time is the stamp in its header, and its log time is when the bag received it; messages without
    a stamp have their log time as time. The files take precedence over `metadata.yaml`.
    """
    metadata, notes = _metadata(source)
    unpack = _unpack_message if str(metadata.get("compression_mode", "")).lower() == "message" else None
    files: list[BagFile] = []
    errors: list[ParseError] = []
    for name in bag_names(source):
        try:
            files.append(_open_one(source, name, unpack))
        except ParseError as error:
            errors.append(error)
    if not files:
        raise errors[0] if errors else ParseError(f"{source.path} holds no bag", where=str(source.path))
    losses = [Loss(error.where or source.stem, f"{error.what}: {error.why}", count=0) for error in errors]
    losses += _missing(source, metadata) + _left_in_logs(source)
    return recording_of(source, files, [*notes, *_disagreements(metadata, files)], losses)


def _open_one(source: Source, name: str, unpack: Callable[[bytes], bytes] | None) -> BagFile:
    content = source.content(name)
    path = source.local(name)
    if name.endswith(".zstd"):
        content, path = _unpack_file(name, content), None
    if bytes(content[: len(MCAP_MAGIC)]) == MCAP_MAGIC:
        from ..shared.bags.mcap import McapFile

        return McapFile(name, content)
    if name.removesuffix(".zstd").endswith(".db3"):
        from ..shared.bags.sqlite import SqliteFile

        return SqliteFile(name, path, content, unpack)
    return Ros1File(name, content)


def _unpack_file(name: str, content: Content) -> bytes:
    limit = min(MAX_UNPACKED_BYTES, max(20 * len(content), 64 << 20))
    try:
        data = unpack(bytes(content), "zstd", limit + 1)
    except DamagedChunkError as damage:
        raise ParseError(f"{name} cannot be unpacked", where=name, why=str(damage)) from damage
    if len(data) > limit:
        why = f"it has more than {limit >> 20} MiB"
        raise ParseError(
            f"{name} is too large to be unpacked in memory", where=name, why=why, hint=f"zstd -d {name}"
        )
    return data


def _unpack_message(data: bytes) -> bytes:
    try:
        return unpack(data, "zstd", MAX_CHUNK_BYTES)
    except DamagedChunkError as damage:
        raise ParseError("a message cannot be unpacked", why=str(damage)) from damage


def _metadata(source: Source) -> tuple[Mapping[str, Any], list[str]]:
    """Read the recorder's metadata, which are optional."""
    if METADATA not in source:
        return {}, []
    try:
        described, _ = parse(source.text(METADATA), METADATA)
    except ParseError as error:
        why = f" ({error.why})" if error.why else ""
        return {}, [f"{error.where}: {error.what}{why}, the files are read without it"]
    found = described.get("rosbag2_bagfile_information") if isinstance(described, dict) else None
    return (found, []) if isinstance(found, dict) else ({}, [f"{METADATA} does not describe a bag"])


def _list_files(metadata: Mapping[str, Any]) -> list[str]:
    paths: Any = metadata.get("relative_file_paths")
    return [str(path).rstrip("/").rpartition("/")[2] for path in paths] if isinstance(paths, list) else []


def _missing(source: Source, metadata: Mapping[str, Any]) -> list[Loss]:
    reason = f"{METADATA} lists this file, and it is not there"
    names = [name for name in _list_files(metadata) if name not in source]
    losses = [Loss(name, reason, count=0) for name in names[:MAX_MISSING_LISTED]]
    if len(names) > MAX_MISSING_LISTED:
        more = f"lists {len(names) - MAX_MISSING_LISTED} further files that are not there"
        losses.append(Loss(METADATA, more, count=0))
    return losses


def _left_in_logs(source: Source) -> list[Loss]:
    """Report the write-ahead log of a database that was not closed: its messages are not in the database."""
    reason = (
        "messages in this write-ahead log are not read: 'PRAGMA wal_checkpoint' in sqlite3 brings them in"
    )
    logs = [
        f"{name}-wal"
        for name in bag_names(source)
        if (path := source.local(name)) and _is_filled(Path(f"{path}-wal"))
    ]
    return [Loss(name, reason, count=0) for name in logs]


def _is_filled(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _disagreements(metadata: Mapping[str, Any], files: Sequence[BagFile]) -> list[str]:
    """Compare files, number of messages and start with the recorder's metadata."""
    listed = set(_list_files(metadata))
    parts = [(file, channel) for file in files for channel in file.channels]
    starts = [t_ns for file, channel in parts if (t_ns := file.first_log(channel)) is not None]
    start: Any = metadata.get("starting_time")
    noted = {
        "messages": (metadata.get("message_count"), sum(file.count(channel) for file, channel in parts)),
        "ns as start": (
            start.get("nanoseconds_since_epoch") if isinstance(start, dict) else None,
            min(starts, default=0),
        ),
    }
    notes = [
        f"{METADATA} does not list {f.name}, which is read, too"
        for f in files
        if listed and f.name not in listed
    ]
    return notes + [
        f"{METADATA} says {said} {what}, in the files it is {found}"
        for what, (said, found) in noted.items()
        if isinstance(said, int) and said != found
    ]
