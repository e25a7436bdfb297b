"""Units of streams held against those of the types that inputs take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect.base.units import Unit, unit_of
from transect.errors import UsageError
from transect.recording import Stream, arrow


def convert_units(stream: Stream) -> tuple[Stream, tuple[str, ...]]:
    """Return a stream in the units of its type, and what was converted, a sentence each.

    A column without a unit is taken to have the right one.

    Raises
    ------
    UsageError
        If a column has a unit of another kind, such as m/s where rad/s is wanted, or one that is not known.
    """
    canonical: dict[str, str] = getattr(stream.type, "units", dict)()
    others = {
        name: (unit, canonical[name])
        for name, unit in (stream.units if canonical else {}).items()
        if unit and canonical.get(name) and unit != canonical[name]
    }
    table, said = stream.table if others else None, list[str]()
    for name, (unit, si) in others.items():
        known = _comparable(stream, name, unit, si)
        if table is None or known.is_si:
            continue
        values = known.to_si(np.asarray(stream.column(name), np.float64))
        column = arrow.table(stream.t_ns, {name: values}, units={name: si})
        place = table.column_names.index(name)
        table = table.set_column(place, column.schema.field(name), column.column(name))
        said.append(f"{stream.name}: {name} is in {unit}, and is converted to {si}")
    if table is None or not said:
        return stream, ()
    return stream.replace(source=replace(stream.parsed, table=table)), tuple(said)


def _comparable(stream: Stream, name: str, unit: str, si: str) -> Unit:
    """Return a unit, if it measures the same as another one does."""
    try:
        known = unit_of(unit)
    except UsageError as error:
        raise _error(stream, name, unit, si, error.what) from error
    if known.si != unit_of(si).si:
        raise _error(stream, name, unit, si, f"that is a unit of another kind than {si}")
    return known


def _error(stream: Stream, name: str, unit: str, si: str, why: str) -> UsageError:
    return UsageError(
        f"{stream.name} has {name} in {unit}, where {si} is wanted",
        why=why,
        hint=f"correct the unit of {name} where the recording is described, or --wire another stream",
    )
