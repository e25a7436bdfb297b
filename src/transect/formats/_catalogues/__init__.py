"""The published data sets, recording by recording."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from transect.errors import UsageError, did_you_mean

TITLES = {
    "ameds": "ARCHES Mount Etna rover data set: traverses and rock pickings",
    "rosario": "Rosario agricultural data set: sequences of the weeding robot",
    "sdi": "ACFR Sensor Data Integrity: 39 data sets in dust, smoke and rain, 3 calibration sets",
}
COLUMNS = {
    "ameds": ("name", "duration_s", "length_m", "height_m", "velocity_m_s", "rtk", "conditions"),
    "rosario": ("name", "difficulty", "length_m", "duration_min", "identifier", "conditions"),
    "sdi": ("name", "kind", "area", "start", "duration", "conditions"),
}
"""What a table shows of each entry; `--json` has all of it."""


def catalogue(dataset: str) -> tuple[Any, ...]:
    """Return the entries of a data set: frozen dataclasses with `name` and `conditions`."""
    if dataset not in TITLES:
        raise UsageError(f"there is no catalogue of {dataset!r}", hint=did_you_mean(dataset, TITLES))
    return importlib.import_module(f"{__name__}.{dataset}").CATALOGUE


def matching(dataset: str, conditions: Sequence[str]) -> list[Any]:
    """Return the entries that have all the conditions.

    `dust` finds light and heavy dust but not `after dust`; a word that is no condition of its own, such as
    `people`, finds the conditions that contain it.
    """
    entries = catalogue(dataset)
    for wanted in conditions:
        entries = _with_condition(dataset, entries, wanted.strip().lower())
    return list(entries)


def _with_condition(dataset: str, entries: Sequence[Any], wanted: str) -> tuple[Any, ...]:
    known = {c for entry in catalogue(dataset) for c in entry.conditions}
    chosen = {c for c in known if c.lower() == wanted} or {c for c in known if wanted in c.lower()}
    if not chosen:
        hint = did_you_mean(wanted, known)
        raise UsageError(f"no recording of {dataset} has the condition {wanted!r}", hint=hint)
    return tuple(entry for entry in entries if chosen & set(entry.conditions))
