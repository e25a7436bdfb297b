"""`transect draw KIND PATH`: pictures of a recording, or of a robot; one file each."""

from __future__ import annotations

from functools import partial

import click

from transect.base.plugins import strings

from ..shared.groups import LazyGroup


@click.group(cls=LazyGroup, commands=partial(strings, "drawings"), kind="drawing")
def command() -> None:
    """Draw a picture of a recording, or of a robot."""
