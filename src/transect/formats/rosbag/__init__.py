"""ROS bags: ROS 1 (.bag), ROS 2 in SQLite (.db3) and in MCAP, a file or the folder with its metadata.yaml."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transect.errors import ParseError
from transect.recording import Loss, Recording, Source
from transect.recording.source import Buffer

from .._base import Match, no
from . import mcap, ros1, sqlite
from .file import BagFile
from .mcap import McapFile
from .packing import MAX_CHUNK, Damaged, unpacked
from .ros1 import Ros1File
from .sqlite import SqliteFile
from .streams import recording_of

METADATA = "metadata.yaml"
MAX_UNPACKED = 1 << 30
"""A file compressed as a whole is unpacked in memory up to this size, and to 20 times its own."""
_SUFFIXES = (".bag", ".bag.active", ".db3", ".mcap", ".db3.zstd", ".mcap.zstd")
_NUMBERED = re.compile(r"(.*?)(?:_(\d+))?")
_DATE = re.compile(r"\d{4}(-\d{2}){5}")
"""rosbag puts the time at which a part began into its name."""


def recognises(source: Source) -> Match:
    """Recognise a bag by its file names and first bytes."""
    names = _bag_names(source)
    if not names:
        return no("it has no .bag, .db3 or .mcap file")
    if METADATA in source and b"rosbag2_bagfile_information" in source.head(METADATA):
        return Match(0.97, f"a ROS 2 bag of {len(names)} files with its {METADATA}")
    if not _are_parts(names):
        return no(f"it has {len(names)} bags but they are not parts of one recording: open them one by one")
    if any(
        name not in names for name in source.names if "/" not in name and not name.endswith(("-wal", "-shm"))
    ):
        return _recognised(source, names[0], 0.6)
    return _recognised(source, names[0], 0.95)


def _recognised(source: Source, name: str, confidence: float) -> Match:
    head = source.head(name)
    if name.endswith(".zstd"):
        return Match(confidence - 0.1, "a ROS 2 bag, compressed")
    if head.startswith(ros1.MAGIC):
        return Match(confidence, "a ROS 1 bag")
    if head.startswith(b"#ROS"):
        return no(f"{name} is a ROS 1 bag but of a version before 2.0: convert it with 'rosbag fix'")
    if head.startswith(sqlite.MAGIC):
        if b"serialization_format" in head:
            return Match(confidence, "a ROS 2 bag in SQLite")
        return no(f"{name} is an SQLite file but has no table of topics")
    if head.startswith(mcap.MAGIC):
        if head[17:].startswith((b"\x04\x00\x00\x00ros1", b"\x04\x00\x00\x00ros2")):
            return Match(confidence, "a ROS bag in MCAP")
        return no(f"{name} is an MCAP file but not of ROS")
    return no(f"{name} is named like a bag but does not begin like one")


def _bag_names(source: Source) -> list[str]:
    """Names of the bag files at the top, parts in the order of their numbers."""
    found = [name for name in source.names if "/" not in name and name.lower().endswith(_SUFFIXES)]
    return sorted(found, key=_part)


def _part(name: str) -> tuple[str, int, str]:
    """What a file is a part of, and which; -1 if it has no number."""
    match = _NUMBERED.fullmatch(_DATE.sub("", name.partition(".")[0]))
    return (match[1], int(match[2] or -1), name) if match else (name, -1, name)


def _are_parts(names: list[str]) -> bool:
    parts = [_part(name) for name in names]
    return len(names) == 1 or (len({stem for stem, _, _ in parts}) == 1 and all(n >= 0 for _, n, _ in parts))


def read(source: Source) -> Recording:
    """Read a bag.

    A sample's time is the stamp in its header, and its log time is when the bag received it; messages without
    a stamp have their log time as time. What the files hold is believed, whatever `metadata.yaml` says.
    """
    metadata, notes = _metadata(source)
    unpack = _unpack_message if str(metadata.get("compression_mode", "")).lower() == "message" else None
    files: list[BagFile] = []
    errors: list[ParseError] = []
    for name in _bag_names(source):
        try:
            files.append(_opened(source, name, unpack))
        except ParseError as error:
            errors.append(error)
    if not files:
        raise errors[0] if errors else ParseError(f"{source.path} holds no bag", where=str(source.path))
    losses = [Loss(error.where or source.stem, f"{error.what}: {error.why}", count=0) for error in errors]
    losses += _missing(source, metadata) + _left_in_logs(source)
    return recording_of(source, files, [*notes, *_disagreements(metadata, files)], losses)


def _opened(source: Source, name: str, unpack: Callable[[bytes], bytes] | None) -> BagFile:
    buffer: Buffer = source.buffer(name)
    path = source.local(name)
    if name.endswith(".zstd"):
        buffer, path = _unpacked_file(name, buffer), None
    if bytes(buffer[: len(mcap.MAGIC)]) == mcap.MAGIC:
        return McapFile(name, buffer)
    if name.removesuffix(".zstd").endswith(".db3"):
        return SqliteFile(name, path, buffer, unpack)
    return Ros1File(name, buffer)


def _unpacked_file(name: str, buffer: Buffer) -> bytes:
    limit = min(MAX_UNPACKED, max(20 * len(buffer), 64 << 20))
    try:
        data = unpacked(memoryview(buffer), "zstd", limit + 1)
    except Damaged as damage:
        raise ParseError(f"{name} cannot be unpacked", where=name, why=str(damage)) from damage
    if len(data) > limit:
        why = f"it has more than {limit >> 20} MiB"
        raise ParseError(
            f"{name} is too large to be unpacked in memory", where=name, why=why, hint=f"zstd -d {name}"
        )
    return bytes(data)


def _unpack_message(data: bytes) -> bytes:
    try:
        return bytes(unpacked(memoryview(data), "zstd", MAX_CHUNK))
    except Damaged as damage:
        raise ParseError("a message cannot be unpacked", why=str(damage)) from damage


def _metadata(source: Source) -> tuple[Mapping[str, Any], list[str]]:
    """Read what the recorder wrote of the bag; nothing of it is needed."""
    if METADATA not in source:
        return {}, []
    import yaml

    try:
        described = yaml.safe_load(source.text(METADATA))
    except (yaml.YAMLError, RecursionError) as error:
        line = str(error).partition("\n")[0]
        return {}, [f"{METADATA} is not YAML ({line}), the files are read without it"]
    found = described.get("rosbag2_bagfile_information") if isinstance(described, dict) else None
    return (found, []) if isinstance(found, dict) else ({}, [f"{METADATA} does not describe a bag"])


def _listed(metadata: Mapping[str, Any]) -> list[str]:
    paths: Any = metadata.get("relative_file_paths")
    return [Path(str(path)).name for path in paths] if isinstance(paths, list) else []


def _missing(source: Source, metadata: Mapping[str, Any]) -> list[Loss]:
    reason = f"{METADATA} lists this file, and it is not there"
    return [Loss(name, reason, count=0) for name in _listed(metadata) if name not in source]


def _left_in_logs(source: Source) -> list[Loss]:
    """Report the write-ahead log of a database that was not closed: its messages are not in the database."""
    reason = (
        "messages in this write-ahead log are not read: 'PRAGMA wal_checkpoint' in sqlite3 brings them in"
    )
    logs = [
        f"{name}-wal"
        for name in _bag_names(source)
        if (path := source.local(name)) and _is_filled(Path(f"{path}-wal"))
    ]
    return [Loss(name, reason, count=0) for name in logs]


def _is_filled(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _disagreements(metadata: Mapping[str, Any], files: Sequence[BagFile]) -> list[str]:
    """Compare files, number of messages and start with what the recorder noted."""
    listed = _listed(metadata)
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


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a recording as a bag.

    Parameters
    ----------
    recording : Recording
    path : Path
        `*.bag` becomes a ROS 1 bag, `*.mcap` a ROS 2 bag in MCAP, any other a folder with one in SQLite.

    Returns
    -------
    tuple of str
        What the bag could not carry.
    """
    from .._payloads import PAYLOAD_ERRORS, LeftOut
    from .outgoing import in_log_order, outgoing_of
    from .sinks import encoding_of, sink_for

    topics, said = outgoing_of(recording, encoding_of(path))
    with sink_for(path) as open_topic:
        writes = [open_topic(topic.topic, topic.type, topic.store) for topic in topics]
        bad = [LeftOut(topic.topic) for topic in topics]
        for which, row in in_log_order([topic.log_ns for topic in topics]):
            log_ns = int(topics[which].log_ns[row])
            try:
                message = topics[which].message(row)
            except PAYLOAD_ERRORS as error:
                bad[which].add(error)
                continue
            writes[which](log_ns, log_ns, message)
    said += [text for lost, topic in zip(bad, topics, strict=True) for text in lost.said(len(topic.log_ns))]
    return tuple(said)
