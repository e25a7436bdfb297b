"""Tables of verdicts: a row for each check, stream and window, written as Parquet or CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Mask
from transect.base.files import write_bytes
from transect.base.tables import html_table
from transect.errors import ParseError
from transect.recording import arrow, parquet
from transect.types import STATES, Verdict

from .rules import GROUPS, roll_up, unite

TEXTS = ("sensor", "stream", "check", "group", "state", "raw", "reason", "note", "muted")
NUMBERS = ("t0_ns", "t1_ns", "version", "n")
_MAP, _LIST = pa.map_(pa.large_string(), pa.float64()), pa.large_list(pa.large_string())
SCHEMA = pa.schema(
    [
        ("sensor", pa.large_string()), ("stream", pa.large_string()),
        ("t0_ns", pa.int64()), ("t1_ns", pa.int64()),
        ("check", pa.large_string()), ("group", pa.large_string()), ("version", pa.int64()),
        ("state", pa.large_string()), ("raw", pa.large_string()), ("score", pa.float64()),
        ("reason", pa.large_string()), ("note", pa.large_string()),
        ("evidence", _MAP), ("threshold", _MAP), ("n", pa.int64()),
        ("peers", _LIST), ("region", pa.large_string()), ("muted", pa.large_string()),
    ]
)  # fmt: skip
"""Times are in ns on the stream's clock; `score` is null for UNKNOWN; `region` is as in `region_text`."""

STREAMS_KEY = "transect.streams"
"""Key of a file's metadata with the judged streams as JSON."""


@dataclass(frozen=True, eq=False)
class VerdictTable:
    """All verdicts on a recording, in the order of stream, check and time."""

    table: pa.Table  # columns as in `SCHEMA`
    # number of samples and hash of each judged stream, if known
    streams: Mapping[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])

    def __len__(self) -> int:
        return self.table.num_rows

    def __iter__(self) -> Iterator[Verdict]:
        for begin in range(0, len(self), 4096):
            yield from map(_verdict_of, self.table.slice(begin, 4096).to_pylist())

    def __getitem__(self, index: int) -> Verdict:
        return _verdict_of(self.table.slice(index, 1).to_pylist()[0])

    def _repr_html_(self) -> str:
        from .report import report_sensors

        rows = [
            (
                report.sensor,
                report.state,
                "-" if report.mean_score is None else f"{report.mean_score:.2f}",
                report.problems[0].sentence(report.windows[0].t0_ns) if report.problems else "",
            )
            for report in report_sensors(self)
        ]
        return html_table(f"{len(self)} verdicts", [("sensor", "worst", "mean score", "why"), *rows])

    def column(self, name: str) -> list[Any]:
        """Return a column as a list."""
        return self.table.column(name).to_pylist()

    def select(self, **wanted: str | Sequence[str]) -> VerdictTable:
        """Return the rows with given texts: ``select(check="T02", state=("SUSPECT", "BAD"))``."""
        keep = np.ones(len(self), np.bool_)
        for name, value in wanted.items():
            known = {value} if isinstance(value, str) else set(value)
            keep &= np.fromiter((each in known for each in self.column(name)), np.bool_, len(self))
        return VerdictTable(self.table.filter(arrow.from_numpy(keep)), self.streams)

    @cached_property
    def by_sensor(self) -> dict[str, list[Verdict]]:
        """Combined verdicts of all checks by sensor, in order of time (see `rules.roll_up`)."""
        return self._roll_up("sensor")

    @cached_property
    def by_stream(self) -> dict[str, list[Verdict]]:
        """Combined verdicts of all checks by stream, in order of time."""
        return self._roll_up("stream")

    def _roll_up(self, key: str) -> dict[str, list[Verdict]]:
        names, times = self.column(key), self.column("t0_ns")
        counted = [not muted for muted in self.column("muted")]
        rows: dict[tuple[str, int], list[int]] = {}
        for index, (name, t0) in enumerate(zip(names, times, strict=True)):
            rows.setdefault((name, t0), [])
            if counted[index]:
                rows[name, t0].append(index)
        columns = {
            name: self.column(name)
            for name in ("group", "score", "state", "raw", "reason", "region", "t1_ns")
        }
        ends = dict(zip(zip(names, times, strict=True), columns["t1_ns"], strict=True))
        rolled: dict[str, list[Verdict]] = {}
        for (name, t0), indices in sorted(rows.items()):
            inputs = [
                [columns[what][i] for i in indices] for what in ("group", "score", "state", "raw", "reason")
            ]
            total = roll_up(*inputs)
            at = self[indices[total.at]] if total.at is not None else Verdict(name, name, t0, ends[name, t0])
            region = unite([_region_of(text) for i in indices if (text := columns["region"][i])])
            verdict = replace(
                at, sensor=name if key == "sensor" else at.sensor, state=total.state, raw=total.raw,
                score=total.score, region=region, t1_ns=ends[name, t0],
            )  # fmt: skip
            rolled.setdefault(name, []).append(verdict)
        return rolled

    def write(self, path: Path | str) -> None:
        """Write a CSV or Parquet file, by the suffix. Equal tables give equal bytes."""
        path = Path(path)
        if path.suffix.lower() == ".csv":
            write_bytes(path, self.csv().encode())
            return
        sink = pa.BufferOutputStream()
        streams = json.dumps(self.streams, sort_keys=True) if self.streams else ""
        metadata = {STREAMS_KEY: streams} if streams else None
        parquet.write_table(self.table.replace_schema_metadata(metadata), sink)
        write_bytes(path, sink.getvalue().to_pybytes())

    def csv(self) -> str:
        """Return the table as CSV; evidence and thresholds are JSON, peers are separated by blanks."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(SCHEMA.names)
        for begin in range(0, len(self), 4096):
            for row in self.table.slice(begin, 4096).to_pylist():
                writer.writerow(_csv_cell(row[name]) for name in SCHEMA.names)
        return text.getvalue()

    @staticmethod
    def read(path: Path | str) -> VerdictTable:
        """Read a file written by `write`."""
        path = Path(path)
        if path.suffix.lower() == ".csv":
            return _read_csv(path)
        table = parquet.read_table(path, str(path))
        if not set(SCHEMA.names) <= set(table.column_names):
            missing = [name for name in SCHEMA.names if name not in table.column_names]
            why = f"it has no column {missing[0]}"
            raise ParseError(f"{path} is not a table of verdicts", where=str(path), why=why)
        return VerdictTable(table.select(SCHEMA.names).cast(SCHEMA), _judged_streams(table, path))


def _judged_streams(table: pa.Table, path: Path) -> dict[str, tuple[int, str]]:
    try:
        streams = json.loads((table.schema.metadata or {}).get(STREAMS_KEY.encode(), b"{}"))
        return {str(name): (int(count), str(sha256)) for name, (count, sha256) in streams.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise ParseError(f"{path} is damaged", where=f"{path}: {STREAMS_KEY}", why=str(error)) from error


def table_of(verdicts: Iterable[Verdict], groups: Mapping[str, str]) -> pa.Table:
    """Return verdicts as rows of `SCHEMA`.

    Parameters
    ----------
    groups : mapping of str to str
        Group of each check by its identifier.
    """
    rows = list(verdicts)
    texts = {name: [getattr(row, name) for row in rows] for name in TEXTS if name != "group"}
    texts["group"] = [groups.get(row.check, "") for row in rows]
    texts["region"] = [region_text(row.region) for row in rows]
    columns: dict[str, Any] = {name: arrow.strings(values) for name, values in texts.items()}
    for name in NUMBERS:
        columns[name] = arrow.from_numpy(np.array([getattr(row, name) for row in rows], np.int64))
    columns["score"] = _nullable([row.score for row in rows])
    columns["evidence"] = _maps([row.evidence for row in rows])
    columns["threshold"] = _maps([row.threshold for row in rows])
    columns["peers"] = _lists([row.peers for row in rows])
    return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _nullable(values: Sequence[float | None]) -> pa.Array:
    known = np.array([value is not None for value in values], np.bool_)
    numbers = np.array([value or 0.0 for value in values], np.float64)
    bits = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(pa.float64(), len(values), [bits, pa.py_buffer(numbers)])


def _maps(values: Sequence[Mapping[str, float]]) -> pa.Array:
    offsets = arrow.offsets_of([len(each) for each in values]).astype(np.int32)
    keys = arrow.strings([key for each in values for key in each])
    items = arrow.from_numpy(np.array([value for each in values for value in each.values()], np.float64))
    return pa.MapArray.from_arrays(arrow.from_numpy(offsets), keys, items)


def _lists(values: Sequence[Sequence[str]]) -> pa.Array:
    offsets = arrow.from_numpy(arrow.offsets_of([len(each) for each in values]))
    return pa.LargeListArray.from_arrays(offsets, arrow.strings([item for each in values for item in each]))


def region_text(region: Mask | None) -> str:
    """Return a region as text: its shape, then the run lengths, row by row, of kept, masked, kept, ... ."""
    if region is None:
        return ""
    flat = np.ascontiguousarray(region, dtype=np.bool_).reshape(-1)
    edges = np.flatnonzero(np.diff(flat, prepend=False))
    lengths = np.diff(np.concatenate([[0], edges, [flat.size]]))
    return f"{'x'.join(map(str, region.shape))}:{' '.join(map(str, lengths))}"


def _region_of(text: str) -> Mask:
    shape, _, lengths = text.partition(":")
    runs = np.array(lengths.split(), dtype=np.int64)
    flat = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    return flat.reshape([int(size) for size in shape.split("x")])


def _verdict_of(row: Mapping[str, Any]) -> Verdict:
    return Verdict(
        **{name: row[name] for name in (*TEXTS, *NUMBERS, "score") if name != "group"},
        evidence=dict(row["evidence"]),
        threshold=dict(row["threshold"]),
        peers=tuple(row["peers"]),
        region=_region_of(row["region"]) if row["region"] else None,
    )


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        named = all(isinstance(item, tuple) for item in value)
        return json.dumps(dict(value)) if value and named else " ".join(value)
    return repr(value) if isinstance(value, float) else str(value)


def _read_csv(path: Path) -> VerdictTable:
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    groups = {row["check"]: row["group"] for row in rows}
    try:
        return VerdictTable(table_of([_from_csv(row) for row in rows], groups))
    except (KeyError, ValueError) as error:
        raise ParseError(f"{path} is not a table of verdicts", where=str(path), why=str(error)) from error


def _from_csv(row: Mapping[str, str]) -> Verdict:
    plain: dict[str, Any] = {name: row[name] for name in TEXTS if name != "group"}
    plain.update({name: int(row[name]) for name in NUMBERS})
    return Verdict(
        **plain,
        score=float(row["score"]) if row["score"] else None,
        evidence=json.loads(row["evidence"] or "{}"),
        threshold=json.loads(row["threshold"] or "{}"),
        peers=tuple(row["peers"].split()),
        region=_region_of(row["region"]) if row["region"] else None,
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a verdict in `--json` and in tables."""
    text, whole, numbers = {"type": "string"}, {"type": "integer"}, {"type": "object"}
    state = {"enum": list(STATES)}
    properties: dict[str, Any] = {
        **dict.fromkeys(TEXTS, text), **dict.fromkeys(NUMBERS, whole), "state": state, "raw": state,
        "group": {"enum": list(GROUPS)}, "score": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "evidence": {**numbers, "additionalProperties": {"type": ["number", "null"]}},
        "threshold": {**numbers, "additionalProperties": {"type": "number"}},
        "peers": {"type": "array", "items": text}, "region": text,
    }  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Verdict",
        "type": "object",
        "properties": {name: properties[name] for name in SCHEMA.names},
        "required": SCHEMA.names,
    }


def to_dict(verdict: Verdict, group: str = "") -> dict[str, Any]:
    """Return a verdict as plain values; NaN is None."""
    plain = {name: getattr(verdict, name) for name in SCHEMA.names if name not in ("group", "region")}
    numbers = {k: None if v != v else v for k, v in verdict.evidence.items()}
    changed = {"evidence": numbers, "threshold": dict(verdict.threshold), "peers": list(verdict.peers)}
    return {**plain, **changed, "group": group, "region": region_text(verdict.region)}
