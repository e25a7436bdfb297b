"""`transect archive JOB`: PDS4 bundles, built and checked; one file for each job."""

from __future__ import annotations

import click

from .._groups import FileGroup


@click.group(cls=FileGroup, package=__name__)
def command() -> None:
    """Build and check PDS4 archives."""
