"""The published data sets, recording by recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transect.base import plugins
from transect.errors import UsageError, did_you_mean


def catalogue(dataset: str) -> Any:
    """Return the module of a data set: `TITLE`, `COLUMNS` and `CATALOGUE`.

    The catalogue has an entry for each recording, a frozen dataclass with `name` and `conditions`.
    """
    if dataset not in names():
        raise UsageError(f"there is no catalogue of {dataset!r}", hint=did_you_mean(dataset, names()))
    return plugins.load("catalogues", dataset)


def names() -> tuple[str, ...]:
    """Return the names of the data sets."""
    return plugins.names("catalogues")


def matching(dataset: str, conditions: Sequence[str]) -> list[Any]:
    """Return the entries that have all the conditions.

    `dust` finds light and heavy dust but not `after dust`; a word that is no condition of its own, such as
    `people`, finds the conditions that contain it.
    """
    entries: tuple[Any, ...] = catalogue(dataset).CATALOGUE
    for wanted in conditions:
        entries = _with_condition(dataset, entries, wanted.strip().lower())
    return list(entries)


def _with_condition(dataset: str, entries: Sequence[Any], wanted: str) -> tuple[Any, ...]:
    known = {c for entry in catalogue(dataset).CATALOGUE for c in entry.conditions}
    chosen = {c for c in known if c.lower() == wanted} or {c for c in known if wanted in c.lower()}
    if not chosen:
        hint = did_you_mean(wanted, known)
        raise UsageError(f"no recording of {dataset} has the condition {wanted!r}", hint=hint)
    return tuple(entry for entry in entries if chosen & set(entry.conditions))
