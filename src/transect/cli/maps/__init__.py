"""`transect maps JOB`: maps brought together, shown and exported; one file for each job."""

from __future__ import annotations

import click

from .._groups import FileGroup


@click.group(cls=FileGroup, package=__name__)
def command() -> None:
    """Bring maps together, show and export them."""
