"""`transect table KIND PATH`: the tables that papers print, made from a recording; one file each."""

from __future__ import annotations

from functools import partial

import click

from transect.base.plugins import strings

from ..shared.groups import LazyGroup


@click.group(cls=LazyGroup, commands=partial(strings, "tables"), kind="table")
def command() -> None:
    """Make a table that a paper would print."""
