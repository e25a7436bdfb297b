"""Parquet files with compression and page checksums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from transect.errors import ParseError

from . import arrow
from .column_forms import name_once
from .source import Buffer

STREAM_METADATA_KEY = b"transect"
"""Key of the schema metadata that describes a stream: type, clock, frame, child and port, as JSON."""


def open_writer(where: Any, schema: pa.Schema) -> Any:
    """Open a file or sink to which tables of one schema are written as row groups."""
    import pyarrow.parquet as pq

    return pq.ParquetWriter(where, schema, compression="zstd", write_page_checksum=True)


def write_table(table: pa.Table, where: Any) -> None:
    """Write one table to a file or sink."""
    with open_writer(where, table.schema) as writer:
        writer.write_table(table)


def read_table(content: Path | Buffer, name: str) -> pa.Table:
    """Read a whole table; a damaged file raises a ParseError with its `name`.

    The second of two columns with the same name is called `name (2)`.
    """
    import pyarrow.parquet as pq

    where = content if isinstance(content, Path) else arrow.reader_of(content)
    try:
        with pq.ParquetFile(where, page_checksum_verification=True) as file:
            table = file.read()
        table.validate(full=True)
        table.schema.to_string()  # names are decoded only now
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        raise ParseError(f"{name} cannot be read as Parquet", where=name, why=str(error)) from error
    return name_once(table)
