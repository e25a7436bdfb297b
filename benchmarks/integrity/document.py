"""What a benchmark found, as one JSON document."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from benchmarks.integrity.comparison import compare
from benchmarks.integrity.gates import list_gates
from benchmarks.integrity.summary import Summary

DOCUMENT_VERSION = 1
"""Version of the document; increases when a field is removed or its meaning changes."""


def document_of(summary: Summary) -> dict[str, Any]:
    """Return what a benchmark found; numbers that there are none of are null.

    `gates`, `faults`, `reasons`, `checks`, `clear`, `peers` are lists of rows, whose fields are those of
    `Gate` (and `met`), `FaultRow`, `ReasonRow`, `CheckRow` (and `counts`), `ClearRow` and `PeerRow`;
    `unnamed` has by fault the types of streams for which no check names it.
    """
    return {
        "version": DOCUMENT_VERSION,
        "seeds": sorted({result.case.seed for result in summary.results}),
        "cases": len(summary.results),
        "gates": [_row({**asdict(gate), "met": gate.met}) for gate in list_gates(summary)],
        "faults": [_row(asdict(row)) for row in summary.by_fault()],
        "reasons": [_row(asdict(row)) for row in summary.by_reason()],
        "checks": [_row({**asdict(row), "counts": row.counts}) for row in summary.by_check()],
        "clear": [_row(asdict(row)) for row in summary.by_base()],
        "peers": [_row(asdict(row)) for row in compare(summary)],
        "unnamed": summary.unnamed(),
    }


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
