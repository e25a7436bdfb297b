"""CARMEN log: planar laser and odometry, one message per line (`.clf`, `.log`, also as `.bz2` or `.gz`)."""

from __future__ import annotations

import bz2
import gzip
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from .._base import Match, no
from .forms import PLANAR, SCANS

if TYPE_CHECKING:
    from transect.recording import Recording, Source

UNPACK = {".bz2": bz2.open, ".gz": gzip.open}
_PACKED_HEAD = 1 << 20
"""Bytes; bzip2 gives nothing before its first block, of up to 900,000 bytes of text, is complete."""
CHUNK = 1 << 16


def recognises(source: Source) -> Match:
    """Recognise one file whose lines begin with FLASER, ODOM and the like."""
    if len(source.names) != 1:
        return no("a CARMEN log is one file")
    head = _head(source, source.names[0])
    words = {line.split(None, 1)[0] for line in head.split(b"\n") if line.strip()}
    if known := words & {word.encode() for word in (*SCANS, *PLANAR)}:
        return Match(0.95, f"its lines begin with {', '.join(sorted(w.decode() for w in known))}")
    if b"CARMEN" in head[:200]:
        return Match(0.9, "it calls itself a CARMEN log")
    return no("no line begins with FLASER or ODOM")


def _head(source: Source, name: str) -> bytes:
    suffix = Path(name).suffix.lower()
    if suffix not in UNPACK:
        return source.head(name)
    head = source.head(name, _PACKED_HEAD)
    try:
        if suffix == ".bz2":
            return bz2.BZ2Decompressor().decompress(head, CHUNK)
        return zlib.decompressobj(31).decompress(head, CHUNK)
    except (OSError, ValueError, zlib.error):
        return b""


def read(source: Source) -> Recording:
    """Read scans, odometry and true poses; the clock is that of the IPC stamps.

    Which messages a log holds shows only at its end, so it is parsed when it is opened (once: see the cache).
    """
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write scans, planar odometry and true poses in order of time, to a file or to a folder."""
    from .writing import write_log

    return write_log(recording, path)
