"""Reading single Parquet tables that say what they are."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pyarrow as pa

from transect.base.clocks import CLOCKS
from transect.errors import ParseError, UnsupportedError
from transect.recording import Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.arrow import T_NS
from transect.recording.source import Buffer
from transect.types import Record

from ..described.model import StreamSpec, Time, type_named
from ..described.tables import read_parquet
from ..shared.rows import only_file
from . import ABOUT, recognises


def read(source: Source) -> Recording:
    """Read one table that says in its metadata what it is, as the output ports of a run do."""
    if not recognises(source):
        raise _unsaid(source)
    name = only_file(source)
    said = _about(source, name)
    stream = Stream(
        said.get("port") or source.stem,
        type_named(said.get("type", "")) or Record,
        lambda: cache.parse(source, name, "parquet/1", partial(_parse, file=name), text=False),
        clock=said.get("clock", "utc"),
        role="derived",
        frame=said.get("frame", ""),
        child=said.get("child", ""),
    )
    return Recording(source.stem, (stream,), format="parquet", source=source)


def _about(source: Source, name: str) -> dict[str, Any]:
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(arrow.reader_of(source.buffer(name)))
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


def _parse(buffer: Buffer, file: str) -> Parsed:
    return read_parquet(buffer, StreamSpec(file, time=Time(column=T_NS, unit="ns")), file)
