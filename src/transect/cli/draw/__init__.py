"""`transect draw KIND PATH`: figures of a recording or a robot; one module each."""

from __future__ import annotations

import click

from ..shared.options import LazyGroup


@click.group(cls=LazyGroup, offered="drawings", kind="drawing")
def command() -> None:
    """Draw a figure of a recording or a robot."""
