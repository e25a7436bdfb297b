"""`transect ls [sdi|ameds|rosario]`: the recordings of published data sets."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from .shared.options import json_option
from .shared.output import all_option


@click.command()
@click.argument("dataset", required=False)
@click.option(
    "--condition", "conditions", multiple=True, metavar="WORD", help="Only recordings with this condition."
)
@all_option
@json_option
def command(dataset: str | None, conditions: tuple[str, ...], as_json: bool) -> None:
    """List the recordings of a published data set.

    For example: transect ls sdi --condition dust
    """
    from transect.formats.shared import catalogues

    from .shared.output import show_json, show_table

    if dataset is None:
        rows = [
            (name, str(len(known.CATALOGUE)), known.TITLE)
            for name in catalogues.names()
            for known in (catalogues.catalogue(name),)
        ]
        if as_json:
            show_json([{"name": n, "recordings": int(c), "title": t} for n, c, t in rows])
        else:
            show_table(("data set", "recordings", "title"), rows, right=frozenset({1}), prose=(2,))
        return
    entries = catalogues.matching(dataset, conditions)
    documents = [dataclasses.asdict(entry) for entry in entries]
    if as_json:
        show_json(documents)
        return
    columns = catalogues.catalogue(dataset).COLUMNS
    show_table(columns, [[_cell(d[c]) for c in columns] for d in documents])


def _cell(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(v) for v in value)
    return "" if value is None else str(value)
