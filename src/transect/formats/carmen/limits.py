"""Old scans do not say how far their laser sees: a parameter of the log does, or the readings themselves."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats
from transect.recording import Parsed, arrow

from . import OLD, SCANS
from .messages import range_errors

FEWEST = 100
"""Readings; of so few that are equal nothing can be said."""
OFTEN, NEAR = 3, 0.95
"""A largest range is read so many times more often than all ranges between this part of it and itself."""


def limit_ranges(word: str, scans: Parsed, told: float | None) -> Parsed:
    """Return scans of the old form with `range_max`, if it is known, and no ranges from there on.

    Parameters
    ----------
    word : str
        Of the message; those of other forms tell their limit in each line.
    scans : Parsed
    told : float or None
        The limit by a parameter of the log, m.
    """
    if SCANS.get(word) is not OLD or not scans.table.num_rows:
        return scans
    ranges, offsets = arrow.lists_of(scans.table, "ranges")
    limit = told or find_limit(ranges)
    if not limit:
        return scans
    known, _ = arrow.lists_of(scans.table, "range_error")
    errors = np.where(ranges >= limit, range_errors(ranges, limit), known)
    columns = {
        "ranges": arrow.ragged_from_offsets(np.where(errors, np.nan, ranges), offsets),
        "range_error": arrow.ragged_from_offsets(errors.astype(np.uint16), offsets),
    }
    table = scans.table
    for name, column in columns.items():
        table = table.set_column(table.column_names.index(name), table.schema.field(name), column)
    limits = arrow.from_numpy(np.full(table.num_rows, limit))
    table = table.append_column(arrow.field_with_unit("range_max", limits.type, "m"), limits)
    here = int((ranges >= limit).sum())
    note = f"{word}: {here} readings of {limit:g} m, the most that the log has, are taken for no return"
    return Parsed(table, scans.losses, scans.notes if told else (*scans.notes, note))


def find_limit(ranges: Floats) -> float | None:
    """Return the largest of ranges (n,), m, if it stands for no return: whole metres, read all too often."""
    there = ranges[np.isfinite(ranges)]
    most = float(there.max(initial=0.0))
    if most < 1.0 or most != round(most):
        return None
    here, beside = int((there == most).sum()), int((there >= NEAR * most).sum())
    return most if here >= FEWEST and here > OFTEN * (beside - here) else None
