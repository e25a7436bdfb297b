"""`transect table KIND PATH`: tables as in publications, from recordings; one module each."""

from __future__ import annotations

import click

from ..shared.options import LazyGroup


@click.group(cls=LazyGroup, offered="tables", kind="table")
def command() -> None:
    """Print tables as in publications."""
