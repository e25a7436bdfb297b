"""Cache of verdicts, as checking half an hour of two cameras takes minutes."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from transect.engine.provenance import hash_of_package, versions
from transect.recording import Recording
from transect.recording.cache import cached_value
from transect.recording.file_hashes import FileState, file_state_of

from .runner import check
from .table import VerdictTable


def check_once(recording: Recording) -> VerdictTable:
    """Return the verdicts of `check` on a recording, from the cache if nothing has changed since.

    The key contains the recording's files (size, times and inode), selected streams and times, options, and
    the modules of transect. Not for recordings whose values were changed after they were opened.
    """
    if not recording.sources:
        return check(recording)
    text = cached_value(f"integrity.check_once/1|{_identity(recording)}", lambda: _pack(check(recording)))
    return VerdictTable(parquet.read_table(pa.BufferReader(base64.b64decode(text))))


def _pack(verdicts: VerdictTable) -> str:
    sink = pa.BufferOutputStream()
    parquet.write_table(verdicts.table, sink, compression="zstd")
    return base64.b64encode(sink.getvalue().to_pybytes()).decode("ascii")


def _identity(recording: Recording) -> str:
    """Return everything that verdicts depend on, as text."""
    files = [_identities(source.path) for source in recording.sources]
    streams = [
        (
            s.name,
            s.type.__name__,
            s.clock,
            s.role,
            s.tag,
            s.frame,
            s.camera,
            len(s),
            list(s.t_ns[[0, -1]]) if len(s) else [],
        )
        for s in recording
    ]
    identity = {
        "files": files,
        "streams": streams,
        "options": dict(recording.options),
        "conditions": dict(recording.conditions),
        "robot": recording.robot.name if recording.robot else "",
        "program": hash_of_package(),
        "versions": versions(),
    }
    return json.dumps(identity, sort_keys=True, default=str)


def _identities(path: Path) -> list[tuple[str, FileState]]:
    """Return each file of a folder, or a file itself, with its size, times and inode."""
    if path.is_file():
        return [(str(path), file_state_of(path.stat()))]
    found: list[tuple[str, FileState]] = []
    for folder, _, names in os.walk(path):
        chosen = (Path(folder) / name for name in names)
        found += [(str(file), file_state_of(file.stat())) for file in chosen if file.is_file()]
    return sorted(found)
