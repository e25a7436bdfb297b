"""Parquet, one file per stream, units in the metadata, with a recording.yaml that opens the folder again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from transect.errors import UnsupportedError
from transect.recording import Recording, Source
from transect.recording.arrow import LOG_NS, PAYLOAD, T_NS

from ._base import Match, no
from ._export import export, times_of


def recognises(source: Source) -> Match:
    """Leave opening to the description that is written beside the files."""
    return no("Parquet files are opened by the recording.yaml beside them")


def read(source: Source, **options: Any) -> Recording:
    """Refuse: a Parquet file alone does not say what it is."""
    raise UnsupportedError(
        "a Parquet file alone does not say what its columns are",
        where=str(source.path),
        hint="a recording.yaml beside it does: see docs/formats.md",
    )


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
