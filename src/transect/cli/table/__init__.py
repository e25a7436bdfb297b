"""`transect table KIND PATH`: the tables that papers print, made from a recording; one file each."""

from __future__ import annotations

import click

from ..shared.groups import LazyGroup


@click.group(cls=LazyGroup, offered="tables", kind="table")
def command() -> None:
    """Make a table that a paper would print."""
