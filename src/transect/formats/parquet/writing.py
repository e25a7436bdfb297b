"""Writing Parquet files and the recording.yaml that opens them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from transect.recording import Recording, parquet
from transect.recording.arrow import LOG_NS, PAYLOAD, T_NS

from ..shared.table_export import export, times_of


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one Parquet file per stream, and a recording.yaml; return what could not be carried."""
    return export(recording, path, ".parquet", _encode)


def _encode(table: pa.Table) -> tuple[bytes, dict[str, Any], list[str]]:
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    names = {name: name for name in table.column_names}
    reading = times_of(table, names)
    if PAYLOAD in names:
        reading["columns"] = {name: name for name in names if name not in (T_NS, LOG_NS)}
    return sink.getvalue().to_pybytes(), reading, []
