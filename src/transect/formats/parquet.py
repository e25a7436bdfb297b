"""Parquet, one file per stream, units in the metadata, with a recording.yaml that opens the folder again.

A table that a run wrote has its description in the metadata, and needs no recording.yaml.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from transect.base.clocks import CLOCKS
from transect.errors import ParseError, UnsupportedError
from transect.recording import Parsed, Recording, Source, Stream, arrow, cache, parquet
from transect.recording.arrow import LOG_NS, PAYLOAD, T_NS
from transect.recording.source import Buffer
from transect.types import Record

from .described.export import export, times_of
from .described.model import StreamSpec, Time, type_named
from .described.tables import read_parquet
from .recognition import recognise_parquet
from .shared.rows import only_file


def read(source: Source) -> Recording:
    """Read one table with a description in its metadata, such as an output of a run."""
    if not recognise_parquet(source):
        raise _missing_description_error(source)
    name = only_file(source)
    metadata = _read_metadata(source, name)
    stream = Stream(
        metadata.get("port") or source.stem,
        type_named(metadata.get("type", "")) or Record,
        lambda: cache.parse(source, name, "parquet/1", partial(_parse, file=name), text=False),
        clock=metadata.get("clock", "utc"),
        role="derived",
        frame=metadata.get("frame", ""),
        child=metadata.get("child", ""),
    )
    return Recording(source.stem, (stream,), format="parquet", source=source)


def _read_metadata(source: Source, name: str) -> dict[str, Any]:
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(arrow.reader_of(source.buffer(name)))
        metadata = json.loads((schema.metadata or {}).get(parquet.STREAM_METADATA_KEY, b"null"))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ParseError(f"{name} cannot be read as Parquet", where=name, why=str(error)) from error
    if not isinstance(metadata, dict) or metadata.get("clock") not in CLOCKS:
        raise _missing_description_error(source)
    return {key: value for key, value in metadata.items() if isinstance(value, str)}


def _missing_description_error(source: Source) -> UnsupportedError:
    return UnsupportedError(
        "a Parquet file alone does not say what its columns are",
        where=str(source.path),
        hint="a recording.yaml beside it does: see docs/formats.md",
    )


def _parse(buffer: Buffer, file: str) -> Parsed:
    return read_parquet(buffer, StreamSpec(file, time=Time(column=T_NS, unit="ns")), file)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one Parquet file per stream, and a recording.yaml; return what could not be written."""
    return export(recording, path, ".parquet", _encode)


def _encode(table: pa.Table) -> tuple[bytes, dict[str, Any], list[str]]:
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    names = {name: name for name in table.column_names}
    description = times_of(table, names)
    if PAYLOAD in names:
        description["columns"] = {name: name for name in names if name not in (T_NS, LOG_NS)}
    return sink.getvalue().to_pybytes(), description, []
