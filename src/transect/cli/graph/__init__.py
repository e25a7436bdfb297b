"""`transect graph check|draw|list|schema|show`: nodes and compounds as they are described; one file each."""

from __future__ import annotations

from functools import partial

import click

from transect.base.plugins import list_modules

from ..shared.groups import LazyGroup


@click.group(cls=LazyGroup, commands=partial(list_modules, __name__, "command"))
def command() -> None:
    """Check, draw, list and show nodes and compounds."""
