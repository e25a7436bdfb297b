"""`transect maps JOB`: maps brought together, shown and exported; one file for each job."""

from __future__ import annotations

from functools import partial

import click

from transect.base.plugins import list_modules

from ..shared.groups import LazyGroup


@click.group(cls=LazyGroup, commands=partial(list_modules, __name__, "command"))
def command() -> None:
    """Bring maps together, show and export them."""
