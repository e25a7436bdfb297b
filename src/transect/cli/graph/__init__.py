"""`transect graph check|draw|list|schema|show`: nodes and compounds as they are described; one file each."""

from __future__ import annotations

import click

from .._groups import FileGroup


@click.group(cls=FileGroup, package=__name__)
def command() -> None:
    """Check, draw, list and show nodes and compounds."""
