"""CSV: a table of poses or positions with a header opens by itself; other tables by a recording.yaml.

Written is one file per stream, units in the header, with a recording.yaml by which the folder opens again.
Lists are written as numbers separated by blanks. Images and clouds lie in a folder per stream.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from transect.errors import UnsupportedError
from transect.recording import Recording, Source, arrow
from transect.recording.arrow import LOG_NS, T_NS

from .described.export import export, times_of
from .recognition import recognise_csv


def read(source: Source) -> Recording:
    """Read a table of positions with guessed columns, which are listed in its notes."""
    if not (match := recognise_csv(source)):
        raise UnsupportedError(
            "a CSV file alone does not say what its columns are",
            where=str(source.path),
            why=match.reason,
            hint=f"transect new recording {source.path}  writes a recording.yaml that does",
        )
    from .described.guess import guess
    from .described.model import parse
    from .described.reading import recording_of

    text, notes = guess(source)
    recording = recording_of(source, parse(text, f"the guess for {source.names[0]}"), source.names[0])
    keep = f"guessed; transect new recording {source.path} writes it down to be changed"
    return recording.replace(format="csv", notes=(*notes, keep))


_NUMBER_TYPES = {
    name: name
    for name in ("float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")
} | {"double": "float64", "float": "float32"}


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one CSV file per stream, and a recording.yaml; return what could not be written."""
    return export(recording, path, ".csv", _encode)


def _encode(table: pa.Table) -> tuple[bytes, dict[str, Any], list[str]]:
    import pyarrow.csv as pv

    columns: dict[str, pa.ChunkedArray] = {}
    described: dict[str, Any] = {}
    titles: dict[str, str] = {}
    notes: list[str] = []
    for field in table.schema:
        unit = arrow.unit_of(field)
        title = titles[field.name] = f"{field.name} [{unit}]" if unit else field.name
        kind, plain = _as_text(table.column(field.name))
        if plain is None:
            notes.append(f"the column {field.name} of type {field.type} is not written")
            continue
        columns[title] = plain
        if field.name not in (T_NS, LOG_NS):
            described[field.name] = {
                "source": title,
                **kind,
                **({"unit": unit, "convert": False} if unit else {}),
            }
    sink = pa.BufferOutputStream()
    pv.write_csv(pa.Table.from_arrays(list(columns.values()), names=list(columns)), sink)
    reading = {"delimiter": ",", "header": 1, **times_of(table, titles), "columns": described}
    return sink.getvalue().to_pybytes(), reading, notes


def _as_text(column: pa.ChunkedArray) -> tuple[dict[str, Any], pa.ChunkedArray | None]:
    """Return the description of a column, and the column for CSV; None if CSV cannot represent it."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return {"text": True}, _on_one_line(column)
    if str(kind) in _NUMBER_TYPES:
        name = _NUMBER_TYPES[str(kind)]
        return {"type": "float64" if column.null_count else name}, column
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if str(kind.value_type) not in _NUMBER_TYPES or column.null_count:
            return {}, None
        numbers = kind.list_size if pa.types.is_fixed_size_list(kind) else True
        joined = pa.chunked_array([_join(chunk) for chunk in column.chunks], pa.large_string())
        return {"numbers": numbers, "type": _NUMBER_TYPES[str(kind.value_type)]}, joined
    return {}, None


def _on_one_line(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.null_count:
        column = pa.chunked_array([arrow.strings([text or "" for text in column.to_pylist()])])
    return pc.replace_substring_regex(column, r"[\r\n]+", " ")  # pyright: ignore[reportAttributeAccessIssue]


def _join(chunk: pa.Array) -> pa.Array:
    """Return lists of numbers as text, separated by blanks."""
    lists = chunk.cast(pa.large_list(chunk.type.value_type))
    texts = pa.LargeListArray.from_arrays(lists.offsets, lists.values.cast(pa.large_string()))
    blanks = arrow.strings([" "] * len(texts))  # one blank as a scalar would wake pandas
    return pc.binary_join(texts, blanks)  # pyright: ignore[reportAttributeAccessIssue]
