"""`transect draw KIND PATH`: pictures of a recording, or of a robot; one file each."""

from __future__ import annotations

import click

from ..shared.groups import LazyGroup


@click.group(cls=LazyGroup, offered="drawings", kind="drawing")
def command() -> None:
    """Draw a picture of a recording, or of a robot."""
