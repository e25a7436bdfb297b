"""ROS bags: ROS 1 (.bag), ROS 2 in SQLite (.db3) and in MCAP, a file or the folder with its metadata.yaml."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from transect.base.lazy import exporter

from ..shared.bags import MCAP_MAGIC, ROS1_MAGIC, SQLITE_MAGIC
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from transect.recording import Source

METADATA = "metadata.yaml"
_SUFFIXES = (".bag", ".bag.active", ".db3", ".mcap", ".db3.zstd", ".mcap.zstd")
_NUMBERED = re.compile(r"(.*?)(?:_(\d+))?")
_DATE = re.compile(r"\d{4}(-\d{2}){5}")
"""rosbag puts the time at which a part began into its name."""


def recognises(source: Source) -> Match:
    """Recognise a bag by its file names and first bytes."""
    names = bag_names(source)
    if not names:
        return no("it has no .bag, .db3 or .mcap file")
    if METADATA in source and b"rosbag2_bagfile_information" in source.head(METADATA):
        return Match(0.97, f"a ROS 2 bag of {len(names)} files with its {METADATA}")
    if not _are_parts(names):
        return no(f"it has {len(names)} bags but they are not parts of one recording: open them one by one")
    if any(
        name not in names for name in source.names if "/" not in name and not name.endswith(("-wal", "-shm"))
    ):
        return _recognise(source, names[0], 0.6)
    return _recognise(source, names[0], 0.95)


def _recognise(source: Source, name: str, confidence: float) -> Match:
    head = source.head(name)
    if name.endswith(".zstd"):
        return Match(confidence - 0.1, "a ROS 2 bag, compressed")
    if head.startswith(ROS1_MAGIC):
        return Match(confidence, "a ROS 1 bag")
    if head.startswith(b"#ROS"):
        return no(f"{name} is a ROS 1 bag but of a version before 2.0: convert it with 'rosbag fix'")
    if head.startswith(SQLITE_MAGIC):
        if b"serialization_format" in head:
            return Match(confidence, "a ROS 2 bag in SQLite")
        return no(f"{name} is an SQLite file but has no table of topics")
    if head.startswith(MCAP_MAGIC):
        if head[17:].startswith((b"\x04\x00\x00\x00ros1", b"\x04\x00\x00\x00ros2")):
            return Match(confidence, "a ROS bag in MCAP")
        return no(f"{name} is an MCAP file but not of ROS")
    return no(f"{name} is named like a bag but does not begin like one")


def bag_names(source: Source) -> list[str]:
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


__getattr__, __dir__ = exporter(__name__, {"reading": ("read",), "writing": ("write",)})
