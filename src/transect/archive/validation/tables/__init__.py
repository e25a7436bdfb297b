"""Tables: their definition, then their records and fields, looked at by columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..options import ValidationOptions
from ..problems import ValidationProblem, located, problem
from .definition import DefinitionError, TableDef, check_record_end, is_readable, layout_problems, read_table

if TYPE_CHECKING:
    from transect.base.arrays import Bytes


def define_table(element: Any, kind: str) -> tuple[TableDef | None, list[ValidationProblem]]:
    """Return a table as the label defines it, or None if no data can be read by it; and what is wrong."""
    try:
        table = read_table(element, kind)
        found = list(layout_problems(table))
    except DefinitionError as error:
        return None, [problem("label.table_definition_problem", str(error), line=error.line)]
    found = list(located(found, part=table.name, line=table.line))
    return (table if is_readable(found) else None), found


def table_problems(
    table: TableDef, data: Bytes, options: ValidationOptions, last: bool
) -> Iterator[ValidationProblem]:
    """Yield problems of the data of a table.

    Parameters
    ----------
    data : (bytes,) uint8
        The whole file.
    options : Options
        Whether something other than blanks between fields is told, and whether formats count.
    last : bool
        Whether the table must go on to the end of the file.
    """
    if table.delimited:
        found = _check_delimited(table, data, options, last)
    elif table.kind == "Table_Character":
        from .records import fixed_problems

        found = fixed_problems(table, data, options, list(check_record_end(table)))
    else:
        from .records import binary_problems

        found = binary_problems(table, data)
    yield from located(found, part=table.name, line=table.line)


def _check_delimited(
    table: TableDef, data: Bytes, options: ValidationOptions, last: bool
) -> Iterator[ValidationProblem]:
    from .fields import field_problems
    from .records import record_problems, split_fields, split_records

    records = split_records(table, data)
    yield from record_problems(table, records, last)
    columns, rows, wrong = split_fields(table, records)
    yield from wrong
    for each, column in zip(table.fields, columns, strict=True):
        if len(column):
            yield from field_problems(each, column, delimited=True, rows=rows, formats=options.formats)
