"""`transect table KIND PATH`: the tables that papers print, made from a recording; one file each."""

from __future__ import annotations

import click

from .._groups import FileGroup


@click.group(cls=FileGroup, package=__name__, kind="table")
def command() -> None:
    """Make a table that a paper would print."""
