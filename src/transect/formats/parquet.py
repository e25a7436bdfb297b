"""Parquet, one file per stream, units in the metadata, with a recording.yaml that opens the folder again.

A table that a run wrote says itself what it is, and opens alone.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from transect.base.clocks import CLOCKS
from transect.errors import ParseError, UnsupportedError
from transect.recording import Parsed, Recording, Source, Stream, cache
from transect.recording.arrow import LOG_NS, PAYLOAD, T_NS
from transect.recording.source import Buffer
from transect.types import Record

from ._base import Match, no
from ._export import export, times_of
from ._rows import only_file
from .described.model import StreamSpec, Time, type_named
from .described.tables import read_parquet

ABOUT = b"transect"
"""Schema metadata of a table that says itself what it is: type, clock, frame, child and port, as JSON."""


def recognises(source: Source) -> Match:
    """Recognise one table; several are opened by the description that is written beside them."""
    if len(source.names) != 1 or not source.names[0].lower().endswith(".parquet"):
        return no("Parquet files are opened by the recording.yaml beside them")
    begins = source.head(source.names[0], 4) == b"PAR1"
    return Match(0.6, "one Parquet file") if begins else no("it is named .parquet but begins otherwise")


def read(source: Source) -> Recording:
    """Read one table that says in its metadata what it is, as the output ports of a run do."""
    if not recognises(source):
        raise _unsaid(source)
    name = only_file(source)
    said = _about(source, name)
    stream = Stream(
        said.get("port") or source.stem,
        type_named(said.get("type", "")) or Record,
        lambda: cache.parsed(source, name, "parquet/1", partial(_parsed, file=name)),
        clock=said.get("clock", "utc"),
        role="derived",
        frame=said.get("frame", ""),
        child=said.get("child", ""),
    )
    return Recording(source.stem, (stream,), format="parquet", source=source)


def _about(source: Source, name: str) -> dict[str, Any]:
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(pa.BufferReader(pa.py_buffer(source.buffer(name))))
        said = json.loads((schema.metadata or {}).get(ABOUT, b"null"))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ParseError(f"{name} cannot be read as Parquet", where=name, why=str(error)) from error
    if not isinstance(said, dict) or said.get("clock") not in CLOCKS:
        raise _unsaid(source)
    return {key: value for key, value in said.items() if isinstance(value, str)}


def _unsaid(source: Source) -> UnsupportedError:
    return UnsupportedError(
        "a Parquet file alone does not say what its columns are",
        where=str(source.path),
        hint="a recording.yaml beside it does: see docs/formats.md",
    )


def _parsed(buffer: Buffer, file: str) -> Parsed:
    return read_parquet(buffer, StreamSpec(file, time=Time(column=T_NS, unit="ns")), file)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one Parquet file per stream, and a recording.yaml; return what could not be carried."""
    return export(recording, path, ".parquet", _encoded)


def _encoded(table: pa.Table) -> tuple[bytes, dict[str, Any], list[str]]:
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    names = {name: name for name in table.column_names}
    reading = times_of(table, names)
    if PAYLOAD in names:
        reading["columns"] = {name: name for name in names if name not in (T_NS, LOG_NS)}
    return sink.getvalue().to_pybytes(), reading, []
